"""From a workload to one shared plan: slice edges, shared partials, shared windows."""

from workbench.plan.changing import Carried, Passage, carry, passage
from workbench.plan.characteristics import lasting
from workbench.plan.drawing import PlanView
from workbench.plan.explain import explain
from workbench.plan.grid import Bounds, Grid
from workbench.plan.grids import grid_of, slice_edges
from workbench.plan.gridset import Chosen, GridSet, Span
from workbench.plan.shared import Assembly, Fold, Ingredient, Partial, QueryPlan, SharedPlan
from workbench.plan.sharing import compile_workload, stream_time
from workbench.plan.slicing import Edges

__all__ = [
    "Assembly",
    "Bounds",
    "Carried",
    "Chosen",
    "Edges",
    "Fold",
    "Grid",
    "GridSet",
    "Ingredient",
    "Partial",
    "Passage",
    "PlanView",
    "QueryPlan",
    "SharedPlan",
    "Span",
    "carry",
    "compile_workload",
    "explain",
    "grid_of",
    "lasting",
    "passage",
    "slice_edges",
    "stream_time",
]
