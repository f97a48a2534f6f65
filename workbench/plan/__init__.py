"""From a workload to one shared plan: slice edges, shared partials, shared windows."""

from workbench.plan.explain import explain
from workbench.plan.shared import Assembly, Fold, Ingredient, Partial, QueryPlan, SharedPlan
from workbench.plan.sharing import compile_workload
from workbench.plan.slicing import Edges, slice_edges

__all__ = [
    "Assembly",
    "Edges",
    "Fold",
    "Ingredient",
    "Partial",
    "QueryPlan",
    "SharedPlan",
    "compile_workload",
    "explain",
    "slice_edges",
]
