"""Kernels made to measure for a shared plan: source text from checked parts, compiled behind the scenes."""

from workbench.codegen.assembly import AssembleKernel, Scans
from workbench.codegen.float_sums import FloatSums
from workbench.codegen.integer_sums import IntegerSums
from workbench.codegen.kernels import BLOCK, FoldKernel, Runs
from workbench.codegen.row_windows import RowWindows

__all__ = ["BLOCK", "AssembleKernel", "FloatSums", "FoldKernel", "IntegerSums", "RowWindows", "Runs", "Scans"]
