"""Spark's daemon of Python workers with their imports done: workers are its forks, so none pays for these again."""

import pyspark.sql.streaming.proto.StateMessage_pb2
import pyspark.worker  # noqa: F401
from pyspark.daemon import manager

import workbench.kernels.jit
import workbench.runtime
import workbench.spark.fused
import workbench.spark.processor
import workbench.spark.worker

if __name__ == "__main__":
    workbench.kernels.jit.warm_up()
    workbench.spark.worker.settle()
    manager()
