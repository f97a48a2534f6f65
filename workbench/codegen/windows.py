"""Windows from slice partials of any kinds: compiled where they can be, array code for the others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from workbench.algebra import PARTIALS
from workbench.codegen.kernels import AssembleKernel
from workbench.kernels.two_stacks import assemble

Array = npt.NDArray[Any]
Fields = tuple[Array, ...]


class WindowKernel:
    """Levels 2 and 3 of one kind of window: one compiled kernel, and array code for partials that are objects."""

    def __init__(self, kinds: Sequence[str]) -> None:
        self.kinds = tuple(PARTIALS[kind] for kind in kinds)
        self._kernel = AssembleKernel([kind.name for kind in self.kinds if kind.compiled])

    def __call__(self, first: Array, last: Array, partials: Sequence[Fields]) -> list[Fields]:
        """Partials of the windows ``[first[w], last[w])`` in the order of ``kinds``; see :class:`AssembleKernel`."""
        numbers = [fields for kind, fields in zip(self.kinds, partials, strict=True) if kind.compiled]
        compiled = iter(self._kernel(first, last, numbers))
        with np.errstate(all="ignore"):
            return [
                next(compiled) if kind.compiled else assemble(first, last, fields, kind.identity, kind.combine)
                for kind, fields in zip(self.kinds, partials, strict=True)
            ]
