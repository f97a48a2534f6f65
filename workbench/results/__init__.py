"""Results of running queries: their shapes, and the store that running plans write and plots read."""

from workbench.results.keys import encode_columns, encode_keys, key_values
from workbench.results.shapes import Level, ResultBatch, ResultColumns, Schema, Series, Status
from workbench.results.store import QueryResults
from workbench.results.units import Unit

__all__ = [
    "Level",
    "QueryResults",
    "ResultBatch",
    "ResultColumns",
    "Schema",
    "Series",
    "Status",
    "Unit",
    "encode_columns",
    "encode_keys",
    "key_values",
]
