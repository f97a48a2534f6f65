"""Kernels made to measure for a shared plan: source text from checked parts, compiled behind the scenes."""

from workbench.codegen.kernels import AssembleKernel, FoldKernel
from workbench.codegen.windows import WindowKernel

__all__ = ["AssembleKernel", "FoldKernel", "WindowKernel"]
