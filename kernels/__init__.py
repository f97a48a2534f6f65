"""Compiled kernels and the plain array functions they are made of.

One algorithm per file. Everything here works on NumPy arrays and scalars only and knows nothing of queries.
Imported as ``workbench.kernels`` alone, never as a top-level package.
"""
