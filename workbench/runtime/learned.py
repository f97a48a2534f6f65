"""What tasks have learned of the rows of a fold, as a running query tells it (*Grizzly* §6.1: instrumentation)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from workbench.plan import Fold
from workbench.runtime.keyrange import KeyProfile
from workbench.runtime.predicates import Profile

#: A condition, the rows it was asked about, and those that passed it.
Asked = tuple[str, int, int]


@dataclass(frozen=True)
class Learned:
    """Of one fold: its conditions in the order in which they are asked now, and its keys.

    ``reordered`` counts changes of that order, ``drifted`` how often a condition passed another share of rows than
    was assumed. ``range`` is where keys are assumed to be, empty for nowhere, ``hottest`` the share of rows of the
    most frequent key in a sample; ``held`` batches kept to the range, ``generic`` ones were done without, and
    ``violated`` ranges had to be given up.
    """

    where: tuple[Asked, ...] = ()
    reordered: int = 0
    drifted: int = 0
    range: str = ""
    hottest: float = 0.0
    held: int = 0
    generic: int = 0
    violated: int = 0

    @staticmethod
    def of(filters: list[Profile], keys: KeyProfile) -> Learned:
        """What was learned so far in this process."""
        asked = [profile.predicates[number] for profile in filters for number in profile.order.order]
        return Learned(
            tuple((each.text, each.rows, each.passed) for each in asked),
            sum(profile.reordered for profile in filters),
            sum(profile.drifted for profile in filters),
            ", ".join(f"{low}..{high}" for low, high in keys.assumed or ()),
            round(keys.hottest, 4),
            keys.held,
            keys.generic,
            keys.violations,
        )

    def since(self, before: Learned) -> Learned:
        """With counts from then on."""
        return self._counted(before, -1)

    def plus(self, later: Learned) -> Learned:
        """With the counts of both, and else what came later."""
        return later._counted(self, 1)

    def _counted(self, other: Learned, sign: int) -> Learned:
        known = {text: (rows, passed) for text, rows, passed in other.where}
        where = []
        for text, rows, passed in self.where:
            more, of_these = known.get(text, (0, 0))
            where.append((text, rows + sign * more, passed + sign * of_these))
        counts: dict[str, Any] = {name: getattr(self, name) + sign * getattr(other, name) for name in _COUNTS}
        return replace(self, where=tuple(where), **counts)

    def written(self) -> dict[str, Any]:
        """As JSON takes it; inverse of :func:`read_learned`."""
        return asdict(self)

    def lines(self) -> list[str]:
        """What there is to tell, one fact a line."""
        found = []
        if self.where:
            shares = ", ".join(f"{text} {_share(passed, rows)}" for text, rows, passed in self.where)
            changes = f"; order changed {self.reordered:,} times" if len(self.where) > 1 else ""
            found.append(f"  where      {shares}{changes}")
        if self.range or self.violated:
            hot = f", the most frequent one in {self.hottest:.1%} of rows" if self.hottest else ""
            kept = f"{self.held:,} of {self.held + self.generic:,} batches kept to an assumed range"
            now = f"in {self.range}" if self.range else "in no range now"
            found.append(f"  keys       {now}{hot}; {kept}, {self.violated:,} ranges given up")
        return found


_COUNTS = ("reordered", "drifted", "held", "generic", "violated")


def _share(passed: int, rows: int) -> str:
    return f"({passed / rows:.1%} of {rows:,})" if rows else "(not asked)"


def read_learned(written: Mapping[str, Any]) -> Learned:
    """What :meth:`Learned.written` has written."""
    return Learned(**{**written, "where": tuple((text, rows, passed) for text, rows, passed in written["where"])})


def together(parts: list[Mapping[str, Learned]]) -> dict[str, Learned]:
    """What several tasks or micro-batches have learned, in their order, by fold."""
    total: dict[str, Learned] = {}
    for part in parts:
        for subject, learned in part.items():
            total[subject] = total[subject].plus(learned) if subject in total else learned
    return total


def subject_of(fold: Fold) -> str:
    """What tells folds of one stream apart for their readers: conditions and keys, whatever is computed of them."""
    return f"{'' if fold.where is None else fold.where} BY {', '.join(map(str, fold.keys))}"
