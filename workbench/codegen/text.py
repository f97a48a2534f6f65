"""Writing the source of a kernel: lines that are repeated for every field of a partial."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from workbench.algebra import PartialKind
from workbench.kernels import combine

#: Monoids of one field that are one machine instruction: scanned with SIMD (``kernels/scan.py``).
SCANS = {combine.combine_add: "add", combine.combine_min: "min", combine.combine_max: "max"}


#: Windows of up to so many rows are combined row by row: less work than a stack.
_FEW = 4


class KernelText:
    """The lines of one kernel over the partials of one kind.

    No text of a user's ever gets here: lines are made of generated names and of the names of the kind's functions.
    A ``#`` in a line stands for the number of a field.
    """

    def __init__(self, kind: PartialKind) -> None:
        self.kind = kind
        self.fields = range(len(kind.fields))
        self.scan = SCANS.get(kind.combine) if len(kind.fields) == 1 else None
        self.lines: list[str] = []

    def __call__(self, *lines: str) -> None:
        self.lines += lines

    def each(self, line: str) -> None:
        """The line once for every field, ``#`` its number."""
        self.lines += [line.replace("#", str(j)) for j in self.fields]

    def merge(self, indent: str, target: str, *operands: str, function: str = "combine_") -> None:
        """``target = operand . operand . ...`` on all fields, from the right, so that the left one comes last."""
        *before, right = [self.every(operand) for operand in operands]
        while before:
            left = before.pop()
            name = self.every(target) if not before else self.every("t#")
            self.lines.append(f"{indent}{name}, = {function}({left}, {right})")
            right = self.every("t#")

    def every(self, text: str) -> str:
        return ", ".join(text.replace("#", str(j)) for j in self.fields)

    def prefix(self, indent: str, source: str, target: str, carry: str) -> None:
        """A prefix scan of slices; ``source`` and ``target`` are sliceable names, ``carry`` names per field."""
        if self.scan:
            self.lines.append(f"{indent}prefix({source.replace('#', '0')}, {target.replace('#', '0')}, {carry}0)")
            return
        for j in self.fields:
            self.lines.append(f"{indent}u{j} = {source.replace('#', str(j))}")
            self.lines.append(f"{indent}v{j} = {target.replace('#', str(j))}")
        self.lines.append(f"{indent}for e in range(u0.size):")
        self.merge(indent + "    ", f"{carry}#", f"{carry}#", "u#[e]")
        self.lines += [f"{indent}    v{j}[e] = {carry}{j}" for j in self.fields]

    def suffix(self, indent: str, source: str, target: str, carry: str) -> None:
        """As :meth:`prefix`, from the end."""
        if self.scan:
            self.lines.append(f"{indent}suffix({source.replace('#', '0')}, {target.replace('#', '0')}, {carry}0)")
            return
        for j in self.fields:
            self.lines.append(f"{indent}u{j} = {source.replace('#', str(j))}")
            self.lines.append(f"{indent}v{j} = {target.replace('#', str(j))}")
        self.lines.append(f"{indent}for e in range(u0.size - 1, -1, -1):")
        self.merge(indent + "    ", f"{carry}#", "u#[e]", f"{carry}#")
        self.lines += [f"{indent}    v{j}[e] = {carry}{j}" for j in self.fields]

    def stacks(self, indent: str, limit: str, out: str, *, grow: bool = True) -> None:
        """TwoStacks over rows: the windows ``[first[i], last[i])`` of ``x`` from ``i`` to ``limit``, to ``out[i]``.

        Neither end ever descends, and a window may be empty. The front stack is a scan of the rows ``[base, top)``
        back to front; until a window begins behind it, the rows ``[top, done)`` and those that join go through one
        scan on the other side. So all is done in loops that neither branch nor wait. :meth:`stack_room` goes before
        it, with ``top = -1``; without ``grow`` it is enough.
        """
        at = indent + "    "
        self(
            f"{indent}while i < {limit}:",
            f"{at}low, high = first[i], last[i]",
            f"{at}if low >= top and 0 < high - low <= {_FEW}:",
        )
        self.each(f"{at}    z# = x#[high - 1]")
        self(f"{at}    for j in range(high - 2, low - 1, -1):")
        self.merge(f"{at}        ", "z#", "x#[j]", "z#")
        self.each(f"{at}    {out}[i] = z#")
        self(f"{at}    i += 1", f"{at}    continue", f"{at}if low >= top:")
        self(f"{at}    base, top, done = low, high, high")
        if grow:
            self(f"{at}    if high - low >= f0.size:")
            self.each(f"{at}        f# = np.empty(2 * (high - low), x#.dtype)")
        self.each(f"{at}    b# = unit#[0]")
        self.each(f"{at}    z# = unit#[0]")
        self.suffix(f"{at}    ", "x#[low:high]", "f#[:high - low]", "z")
        self.each(f"{at}    f#[high - low] = unit#[0]")
        self(f"{at}to = behind(first, i, {limit}, top)", f"{at}joined = last[to - 1] - done")
        if grow:
            self(f"{at}if joined >= g0.size:")
            self.each(f"{at}    g# = np.empty(2 * joined + 1, x#.dtype)")
        self.each(f"{at}g#[0] = b#")
        self.prefix(at, "x#[done:done + joined]", "g#[1:joined + 1]", "b")
        self.each(f"{at}b# = g#[joined]")
        self(f"{at}for j in range(i, to):")
        self.merge(f"{at}    ", f"{out}[j]", "f#[np.uint64(first[j] - base)]", "g#[np.uint64(last[j] - done)]")
        self(f"{at}i, done = to, done + joined")

    def stack_room(self, indent: str, rows: str = "256") -> None:
        """Room for :meth:`stacks`, ``f#`` and ``g#``."""
        self.each(f"{indent}f#, g# = np.empty({rows}, x#.dtype), np.empty({rows}, x#.dtype)")

    def stack_start(self, indent: str) -> None:
        """Where :meth:`stacks` begin."""
        self.each(f"{indent}b# = unit#[0]")
        self(f"{indent}base, top, done = 0, -1, 0")

    def text(self, name: str, parameters: Sequence[str], **used: str) -> str:
        """The whole text; ``used`` are the names that it uses of other modules of kernels."""
        return "\n".join([*self.head(**used), self.function(name, parameters), ""])

    def named(self, names: Sequence[str]) -> str:
        """A list of names in which ``#`` stands for each field."""
        return ", ".join(p.replace("#", str(j)) for p in names for j in (self.fields if "#" in p else [0]))

    def function(self, name: str, parameters: Sequence[str], compiled: str = "jit") -> str:
        """The lines as a function."""
        return "\n".join([f"@{compiled}", f"def {name}({self.named(parameters)}):", *self.lines])

    def head(self, **used: str) -> list[str]:
        """What functions of the kind need before them."""
        head = ["import numpy as np", "from workbench.kernels import combine, scan"]
        head.append("from workbench.kernels.jit import bare, jit")
        head += [f"from workbench.kernels.{module} import {names}" for module, names in used.items()]
        head.append(
            f"combine_ = scan.combine_{self.scan}" if self.scan else self._bound("combine", self.kind.combine)
        )
        if self.kind.invert is not None:
            head.append(self._bound("invert", self.kind.invert))
        if self.scan:
            head += [f"prefix = scan.prefix_{self.scan}", f"suffix = scan.suffix_{self.scan}"]
        return head

    def _bound(self, role: str, function: Callable[..., object]) -> str:
        """A line that gives a function of the kind its name in the text; a user's is in the module already."""
        name = function.__name__
        return f"{role}_ = {name}" if name in self.kind.scalars else f"{role}_ = jit(combine.{name})"
