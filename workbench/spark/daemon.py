"""Spark's daemon of Python workers with our imports done: workers are forks of it, so none pays for them again."""

from pyspark.daemon import manager

import workbench.runtime  # noqa: F401

if __name__ == "__main__":
    manager()
