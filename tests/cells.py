"""Cells of partials in a form that can be compared: two sketches of the same rows may differ in their bytes."""

from __future__ import annotations

from typing import Any

from datasketches import hll_sketch, kll_doubles_sketch


def readable(cell: Any) -> Any:
    """What a cell says about its rows; only sketches are not plain already."""
    if not isinstance(cell, bytes):
        return cell
    if not cell:
        return "no rows"
    try:
        sketch = kll_doubles_sketch.deserialize(cell)
    except (RuntimeError, ValueError):
        return round(hll_sketch.deserialize(cell).get_estimate(), 3)
    return sketch.n, sketch.n and sketch.get_quantiles([0, 0.3, 0.5, 0.9, 1])
