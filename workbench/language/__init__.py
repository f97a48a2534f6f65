"""SQL and the Python builder; both lower to the same logical queries."""

from workbench.language.builder import QueryBuilder, col, query
from workbench.language.parse import parse_queries
from workbench.language.register import register_aggregate
from workbench.language.relations import Catalog
from workbench.language.sources import bind_snippet

__all__ = ["Catalog", "QueryBuilder", "bind_snippet", "col", "parse_queries", "query", "register_aggregate"]
