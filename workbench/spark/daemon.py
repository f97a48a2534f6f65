"""Spark's Python worker daemon with our imports done: workers are forks of it, so none of them pays for these again."""

from pyspark.daemon import manager

import workbench.runtime  # noqa: F401

if __name__ == "__main__":
    manager()
