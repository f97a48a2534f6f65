"""Spark's daemon of Python workers with their imports done: workers are its forks, so none pays for these again."""

import gc

import pyspark.sql.streaming.proto.StateMessage_pb2
import pyspark.worker  # noqa: F401
from pyspark.daemon import manager

import workbench.kernels.jit
import workbench.runtime
import workbench.spark.fused
import workbench.spark.processor

if __name__ == "__main__":
    workbench.kernels.jit.warm_up()
    # What has been imported stays: else each full collection of a worker walks through all of it, 50 ms at a time.
    gc.collect()
    gc.freeze()
    manager()
