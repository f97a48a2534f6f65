"""Spark's daemon of Python workers with their imports done: workers are its forks, so none pays for these again.

Spark has a daemon for each kind of process, named by the first argument: only that of tasks needs the kernels.
"""

import sys

from pyspark.daemon import manager

import workbench.spark.fused

_TASKS = "pyspark.worker"

if __name__ == "__main__":
    if sys.argv[1:2] == [_TASKS]:
        import pyspark.sql.streaming.proto.StateMessage_pb2
        import pyspark.worker  # noqa: F401

        import workbench.kernels.jit
        import workbench.runtime
        import workbench.spark.processor
        import workbench.spark.worker

        workbench.kernels.jit.warm_up()
        workbench.spark.worker.settle()
    manager()
