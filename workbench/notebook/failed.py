"""What a cell leaves under its name when it fails."""

from __future__ import annotations

from dataclasses import dataclass

from workbench.errors import WorkbenchError


@dataclass(frozen=True)
class FailedQuery:
    """A cell that did not become a query: its name, its text, and the error that says why. Nothing of it runs."""

    name: str
    sql: str
    error: WorkbenchError

    def __repr__(self) -> str:
        return f"FailedQuery `{self.name}`: {self.error}"
