"""Results of running queries: their shapes, and the store that running plans write and plots read."""

from workbench.results.bundles import ResultBundle, Targets, batches_of
from workbench.results.keys import encode_columns, encode_keys, key_values
from workbench.results.shapes import Level, ResultBatch, ResultColumns, Schema, Series, Status
from workbench.results.shelf import MANY, Shelves
from workbench.results.store import QueryResults
from workbench.results.units import Unit

__all__ = [
    "MANY",
    "Level",
    "QueryResults",
    "ResultBatch",
    "ResultBundle",
    "ResultColumns",
    "Schema",
    "Series",
    "Shelves",
    "Status",
    "Targets",
    "Unit",
    "batches_of",
    "encode_columns",
    "encode_keys",
    "key_values",
]
