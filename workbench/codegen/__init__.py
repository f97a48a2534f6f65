"""Kernels made to measure for a shared plan: source text from checked parts, compiled behind the scenes."""

from workbench.codegen.assembly import AssembleKernel, Scans
from workbench.codegen.integer_sums import IntegerSums
from workbench.codegen.kernels import BLOCK, FoldKernel, Lanes, Runs
from workbench.codegen.row_windows import RowWindows
from workbench.codegen.running_sums import RunningSums

__all__ = [
    "BLOCK",
    "AssembleKernel",
    "FoldKernel",
    "IntegerSums",
    "Lanes",
    "RowWindows",
    "RunningSums",
    "Runs",
    "Scans",
]
