"""Writing the source of a kernel: lines that are repeated for every field of a partial."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from workbench.algebra import PartialKind
from workbench.kernels import combine

#: Monoids of one field that are one machine instruction: scanned with SIMD (``kernels/scan.py``).
SCANS = {combine.combine_add: "add", combine.combine_min: "min", combine.combine_max: "max"}


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
        self.lines.append(f"{indent}for i in range(u0.size):")
        self.merge(indent + "    ", f"{carry}#", f"{carry}#", "u#[i]")
        self.lines += [f"{indent}    v{j}[i] = {carry}{j}" for j in self.fields]

    def suffix(self, indent: str, source: str, target: str, carry: str) -> None:
        """As :meth:`prefix`, from the end."""
        if self.scan:
            self.lines.append(f"{indent}suffix({source.replace('#', '0')}, {target.replace('#', '0')}, {carry}0)")
            return
        for j in self.fields:
            self.lines.append(f"{indent}u{j} = {source.replace('#', str(j))}")
            self.lines.append(f"{indent}v{j} = {target.replace('#', str(j))}")
        self.lines.append(f"{indent}for i in range(u0.size - 1, -1, -1):")
        self.merge(indent + "    ", f"{carry}#", "u#[i]", f"{carry}#")
        self.lines += [f"{indent}    v{j}[i] = {carry}{j}" for j in self.fields]

    def text(self, name: str, parameters: Sequence[str]) -> str:
        names = [p.replace("#", str(j)) for p in parameters for j in (self.fields if "#" in p else [0])]
        head = ["import numpy as np", "from workbench.kernels import combine, scan"]
        head.append("from workbench.kernels.jit import jit")
        head.append(
            f"combine_ = scan.combine_{self.scan}" if self.scan else self._bound("combine", self.kind.combine)
        )
        if self.kind.invert is not None:
            head.append(self._bound("invert", self.kind.invert))
        if self.scan:
            head += [f"prefix = scan.prefix_{self.scan}", f"suffix = scan.suffix_{self.scan}"]
        return "\n".join([*head, "@jit", f"def {name}({', '.join(names)}):", *self.lines, ""])

    def _bound(self, role: str, function: Callable[..., object]) -> str:
        """A line that gives a function of the kind its name in the text; a user's is in the module already."""
        name = function.__name__
        return f"{role}_ = {name}" if name in self.kind.scalars else f"{role}_ = jit(combine.{name})"
