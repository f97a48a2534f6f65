"""Window aggregation one element at a time: the algorithms of the literature behind one interface.

Each file is one algorithm, named after its paper. :mod:`workbench.kernels.fifo.interface` says what all of them
promise; ``docs/algorithms.md`` compares them.
"""
