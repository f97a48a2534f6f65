"""SQL and the Python builder; both lower to the same logical queries."""

from workbench.language.builder import QueryBuilder, col, query
from workbench.language.parse import parse_queries
from workbench.language.register import register_aggregate
from workbench.language.relations import Catalog

__all__ = ["Catalog", "QueryBuilder", "col", "parse_queries", "query", "register_aggregate"]
