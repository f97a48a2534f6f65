"""From which micro-batch on a plan holds, for a query whose tasks cannot be told of it by their source.

A micro-batch that Spark has decided on runs by the plan of that moment, however often it runs. Spark may keep the
state that either attempt has written, so two attempts by different plans would mix their states.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from pyspark import TaskContext


class Epochs:
    """From which micro-batch on each version of the plan holds; beside the plans, as lasting as the checkpoint."""

    def __init__(self, folder: Path, checkpoint: Path) -> None:
        self._folder = folder
        self._offsets = checkpoint / "offsets"

    def planned(self) -> int:
        """The latest micro-batch that Spark has decided on, whether it is done or will run again; -1 before any."""
        names = [path.name for path in self._offsets.iterdir()] if self._offsets.exists() else []
        return max((int(name) for name in names if name.isdigit()), default=-1)

    def begin(self, version: int) -> None:
        """A version that has none yet holds from the next micro-batch on. Only while no query runs."""
        if version not in self._firsts():
            aside = self._folder / f".from-{version}"
            aside.write_text(str(self.planned() + 1))
            aside.rename(self._folder / f"from-{version}")

    def needed(self) -> dict[int, int]:
        """The versions that a query needs which starts now, each with its first micro-batch."""
        firsts, planned = self._firsts(), self.planned()
        in_force = [
            max(v for v, first in firsts.items() if first <= batch) for batch in (max(planned, 0), planned + 1)
        ]
        return {version: firsts[version] for version in in_force}

    def _firsts(self) -> dict[int, int]:
        return {int(path.name[5:]): int(path.read_text()) for path in self._folder.glob("from-*")}


def current() -> int:
    """The micro-batch of this task, which is a property that it has of Spark; 0 in a batch query."""
    context = TaskContext.get()
    return int((context and context.getLocalProperty("streaming.sql.batchId")) or 0)


def in_force(plans: Mapping[int, bytes]) -> bytes:
    """The plan that the micro-batch of this task runs."""
    batch = current()
    return plans[max(first for first in plans if first <= batch)]
