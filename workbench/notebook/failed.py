"""What a cell leaves under its name when it fails."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NoReturn

from workbench.errors import WorkbenchError


class MissingQueryError(WorkbenchError, AttributeError):
    """What a query would have is asked of a cell that failed."""


@dataclass(frozen=True)
class FailedQuery:
    """A cell that did not become a query: its name, its text, and the error that says why. Nothing of it runs."""

    name: str
    sql: str
    error: WorkbenchError

    def __getattr__(self, name: str) -> NoReturn:
        """What a query has is not here: whoever asks for it is told why."""
        if name.startswith("_"):
            raise AttributeError(name)  # of copies and of notebooks, which look what there is
        raise MissingQueryError(f"`{self.name}` has no `{name}`, as its cell failed: {self.error.message}")

    def __repr__(self) -> str:
        return f"FailedQuery `{self.name}`: {self.error}"
