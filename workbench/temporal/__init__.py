"""Time-centric expressions (*TiLT*): signals as functions of time, resolved and fused. Nothing runs here."""

from workbench.temporal.boundaries import Boundaries, Reach, resolve
from workbench.temporal.expressions import DEFAULT, Expression, Windowed, duration, signal
from workbench.temporal.program import Program, program

__all__ = [
    "DEFAULT",
    "Boundaries",
    "Expression",
    "Program",
    "Reach",
    "Windowed",
    "duration",
    "program",
    "resolve",
    "signal",
]
