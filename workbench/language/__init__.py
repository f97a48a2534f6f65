"""SQL and the Python builder; both lower to the same logical queries."""

from workbench.language.builder import QueryBuilder, col, query
from workbench.language.parse import parse_queries
from workbench.language.printed import sql_of
from workbench.language.register import register_aggregate, register_window_type
from workbench.language.relations import Catalog
from workbench.language.sources import bind_snippet
from workbench.language.windows import parse_level

__all__ = [
    "Catalog",
    "QueryBuilder",
    "bind_snippet",
    "col",
    "parse_level",
    "parse_queries",
    "query",
    "register_aggregate",
    "register_window_type",
    "sql_of",
]
