"""The running parts of a plan, free of any host: rows in, partials between, windows out."""

from workbench.runtime.level1 import Level1
from workbench.runtime.operator import BucketOperator
from workbench.runtime.state import StateChanges
from workbench.runtime.wire import Report, decode_report

__all__ = ["BucketOperator", "Level1", "Report", "StateChanges", "decode_report"]
