"""Measurements: one file per workload in :mod:`benchmarks.workloads`, one runner, results as JSON lines.

``python -m benchmarks list``, ``python -m benchmarks run NAME [--quick]``, ``python -m benchmarks compare A B``.
Numbers are never asserted on by tests: a bar is printed beside what was measured, with the load of the machine.
"""
