"""Source text of the one loop that a program of time-centric expressions becomes (*TiLT* §6.1).

The loop goes over *cuts*: pieces of time of one key, each with the rows that boundary resolution asks for, so that
any of them can be computed without the others. Within a cut it goes block by block of points, and each block through
the stages of the program: pointers into the rows move on, reductions slide between two pointers (TwoStacks over whole
blocks, scans in SIMD, nothing ever subtracted), and one loop over the block does the arithmetic of all expressions of
the stage. What the stages hand each other is never longer than a block and stays in the first-level cache; only the
operands of reductions are kept for the whole cut.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from workbench.algebra import PARTIALS as KINDS
from workbench.algebra import PartialKind
from workbench.codegen import modules
from workbench.codegen.text import KernelText
from workbench.temporal.nodes import Apply, Constant, Node, Reduce, Reducer, Sample, per_row
from workbench.temporal.program import PARTIALS, POINTS, Pointer, Program, Slide, Stage, slide_of

#: Points at a time.
BLOCK = 1024
#: A value and whether there is one, as texts.
Value = tuple[str, str]
#: A column that has rows without a value, by source and name.
Nullable = frozenset[tuple[str, str]]

#: ``{0}``, ``{1}``: the values of the operands.
_PLAIN = {
    "add": "{} + {}",
    "subtract": "{} - {}",
    "multiply": "{} * {}",
    "negate": "-{}",
    "abs": "abs({})",
    "sqrt": "np.sqrt({})",
    "exp": "np.exp({})",
    "least": "combine_min({}, {})[0]",
    "greatest": "combine_max({}, {})[0]",
    "less": "1.0 if {} < {} else 0.0",
    "less_equal": "1.0 if {} <= {} else 0.0",
    "greater": "1.0 if {} > {} else 0.0",
    "greater_equal": "1.0 if {} >= {} else 0.0",
    "equal": "1.0 if {} == {} else 0.0",
    "not_equal": "1.0 if {} != {} else 0.0",
    "and": "1.0 if {} != 0.0 and {} != 0.0 else 0.0",
    "or": "1.0 if {} != 0.0 or {} != 0.0 else 0.0",
    "not": "0.0 if {} != 0.0 else 1.0",
}
#: The value of a reduction, and where there is one; ``n`` is the count, other letters are fields of its partial.
_REDUCED = {
    Reducer.COUNT: ("float({n})", "True"),
    Reducer.SUM: ("{sum}", "{n} > 0"),
    Reducer.MEAN: ("{sum} / {n}", "{n} > 0"),
    Reducer.MIN: ("{min}", "{n} > 0"),
    Reducer.MAX: ("{max}", "{n} > 0"),
    Reducer.VAR: ("{m2} / ({n} - 1.0)", "{n} > 1.0"),
    Reducer.STD: ("np.sqrt({m2} / ({n} - 1.0))", "{n} > 1.0"),
    Reducer.SKEWNESS: ("np.sqrt({n}) * {m3} / ({m2} * np.sqrt({m2}))", "{n} > 0.0 and {m2} != 0.0"),
    Reducer.KURTOSIS: ("{n} * {m4} / ({m2} * {m2}) - 3.0", "{n} > 0.0 and {m2} != 0.0"),
}


def slide_source(kind: PartialKind) -> str:
    """``slide(first, last, x.., f.., g.., c.., at, unit.., o..)``: the windows ``[first[i], last[i])`` of a block.

    ``at`` (base, top, done) and ``c``, the partial of the rows ``[top, done)``, are the state of
    :meth:`.KernelText.stacks` between two blocks; ``top`` is -1 before the first. ``f`` and ``g`` have room for all
    rows and one more, so they stay where they are.
    """
    t = KernelText(kind)
    t("    base, top, done = at[0], at[1], at[2]", "    i = 0")
    t.each("    b# = c#[0]")
    t.stacks("    ", "first.size", "o#")
    t("    at[0], at[1], at[2] = base, top, done")
    t.each("    c#[0] = b#")
    return t.text("slide", ["first", "last", "x#", "f#", "g#", "c#", "at", "unit#", "o#"], frames="behind")


def load(program: Program, nullable: Nullable) -> Callable[..., None]:
    """The compiled loop; its arguments are those of :func:`program_source`."""
    source, kinds = program_source(program, nullable)
    for kind in kinds:
        text = slide_source(KINDS[kind])
        modules.load(modules.digest(text), text, {})
    function: Callable[..., None] = modules.load(modules.digest(source), source, {}).run
    return function


def program_source(program: Program, nullable: Nullable) -> tuple[str, list[str]]:
    """The text of the loop, and the kinds of partials that slide in it.

    ``run(cuts, rows.., begin, end, points, times.., columns.., present.., out.., there..)``: of each cut the points
    ``cuts[c] = (first, first to be kept, end)``; of each source its ``rows[c] = (first, end)``, times and columns;
    ``present`` of each nullable column; for each output its values, and where there are any. Times and columns have
    one element more than rows.
    """
    text = _ProgramText(program, nullable)
    return text.whole(), text.kinds


class _ProgramText:
    """Writes the loop of one program. Names are made here; no text of a user's gets into it."""

    def __init__(self, program: Program, nullable: Nullable) -> None:
        self.program, self.nullable = program, nullable
        self.sources = {name: number for number, name in enumerate(program.sources)}
        self.columns = {
            (source, column): number
            for number, (source, column) in enumerate(
                (source, column) for source in program.sources for column in program.columns[source]
            )
        }
        self.pointers: dict[Pointer, str] = {}
        #: The lifted values of an operand: a name for each of its kinds.
        self.lifted: dict[tuple[Node, str], str] = {}
        self.slides: dict[tuple[Slide, str], str] = {}
        self._number()
        self.lines: list[str] = []

    @property
    def kinds(self) -> list[str]:
        """The kinds of partials that slide, each once."""
        return list(dict.fromkeys(kind for _, kind in self.slides))

    def _number(self) -> None:
        for stage in self.program.stages:
            for pointer in stage.pointers:
                self.pointers.setdefault(pointer, f"q{len(self.pointers)}")
            for slide, kinds in stage.slides.items():
                for kind in kinds:
                    if kind == "count" and not self.missing(slide.operand):
                        continue
                    self.slides[slide, kind] = f"s{len(self.slides)}"
                    self.lifted.setdefault((slide.operand, kind), f"x{len(self.lifted)}_")

    def missing(self, node: Node) -> bool:
        """Whether an operand may be without a value at a row or point: before the first row, for one."""
        if isinstance(node, Sample) and per_row(node) is not None:
            return (node.source, node.column) in self.nullable
        return True

    def whole(self) -> str:
        """The module."""
        head = [
            "import numpy as np",
            "from workbench.kernels import combine",
            "from workbench.kernels.jit import jit",
        ]
        head += ["from workbench.kernels.instants import before_tumbling, upto"]
        head += ["from workbench.kernels.scan import combine_max, combine_min"]
        for kind in self.kinds:
            module = f"winquery_kernel_{modules.digest(slide_source(KINDS[kind]))}"
            head.append(f"from {module} import slide as slide_{kind}")
            head.append(f"lift_{kind} = jit(combine.{KINDS[kind].lift.__name__})")
        self._room()
        self("    for c in range(begin, end):", "        origin, kept, stop = cuts[c, 0], cuts[c, 1], cuts[c, 2]")
        self("        p = points[origin:stop]")
        self._rows()
        for name in self.slides.values():
            self(f"        {name}_at[0], {name}_at[1], {name}_at[2] = 0, -1, 0")
        for name in self.pointers.values():
            self(f"        {name} = 0")
        self(f"        for low in range(0, p.size, {BLOCK}):", f"            high = min(low + {BLOCK}, p.size)")
        self("            t = p[low:high]")
        for stage in self.program.stages:
            self._stage(stage, stage is self.program.stages[-1])
        return "\n".join([*head, "@jit", f"def run({', '.join(self._parameters())}):", *self.lines, ""])

    def __call__(self, *lines: str) -> None:
        self.lines += lines

    def _parameters(self) -> list[str]:
        numbers = range(len(self.sources))
        names = ["cuts", *(f"rows{s}" for s in numbers), "begin", "end", "points", *(f"times{s}" for s in numbers)]
        names += [f"column{n}" for n in self.columns.values()]
        names += [f"present{n}" for key, n in self.columns.items() if key in self.nullable]
        outputs = range(len(self.program.outputs))
        return names + [f"out{n}" for n in outputs] + [f"there{n}" for n in outputs]

    def _room(self) -> None:
        """Memory that all cuts use: of a block, or of the rows of the largest cut."""
        self(f"    most = np.zeros({len(self.sources) + 1}, np.int64)", "    for c in range(begin, end):")
        for s in self.sources.values():
            self(f"        most[{s}] = max(most[{s}], rows{s}[c, 1] - rows{s}[c, 0])")
        self(f"        most[{len(self.sources)}] = max(most[{len(self.sources)}], cuts[c, 2] - cuts[c, 0])")
        for name in self.pointers.values():
            self(f"    {name}_ = np.empty({BLOCK}, np.int64)")
        for (node, kind), name in self.lifted.items():
            if not self._bare(node, kind):
                for j, field in enumerate(KINDS[kind].fields):
                    self(f"    {name}{j}_room = np.empty({self._most(node)} + 1, np.{field.dtype})")
        for (slide, kind), name in self.slides.items():
            self(f"    {name}_at = np.zeros(3, np.int64)")
            for j, field in enumerate(KINDS[kind].fields):
                self(f"    {name}_unit{j} = np.full(1, {_literal(field.identity)}, np.{field.dtype})")
                self(f"    {name}_c{j} = np.full(1, {_literal(field.identity)}, np.{field.dtype})")
                for side in "fg":
                    self(f"    {name}_{side}{j} = np.empty({self._most(slide.operand)} + 2, np.{field.dtype})")
                self(f"    {name}_{j} = np.empty({BLOCK}, np.{field.dtype})")

    def _most(self, operand: Node) -> str:
        of = next(slide.of for slide, _ in self.slides if slide.operand == operand)
        return f"most[{len(self.sources) if of == POINTS else self.sources[of]}]"

    def _bare(self, node: Node, kind: str) -> bool:
        """Whether the column itself is the lifted operand."""
        plain = isinstance(node, Sample) and not self.missing(node)
        return plain and KINDS[kind].lift is KINDS["sum_float"].lift and kind != "count"

    def _rows(self) -> None:
        """The rows of a cut, and the operands that each row decides by itself."""
        for name, s in self.sources.items():
            self(f"        first, last = rows{s}[c, 0], rows{s}[c, 1]", f"        n{s} = last - first")
            self(f"        r{s} = times{s}[first:last + 1]")
            for column in self.program.columns[name]:
                n = self.columns[name, column]
                self(f"        v{n} = column{n}[first:last + 1]")
                if (name, column) in self.nullable:
                    self(f"        e{n} = present{n}[first:last + 1]")
        for (node, kind), name in self.lifted.items():
            of = next(slide.of for slide, _ in self.slides if slide.operand == node)
            size = "p.size" if of == POINTS else f"n{self.sources[of]}"
            if self._bare(node, kind):
                assert isinstance(node, Sample)
                self(f"        {name}0 = v{self.columns[node.source, node.column]}[:{size}]")
                continue
            for j in range(len(KINDS[kind].fields)):
                self(f"        {name}{j} = {name}{j}_room[:{size}]")
        for node in dict.fromkeys(node for node, kind in self.lifted if not self._bare(node, kind)):
            of = next(slide.of for slide, _ in self.slides if slide.operand == node)
            if of != POINTS:
                self(f"        for i in range(n{self.sources[of]}):")
                self._lift(_Arithmetic(self, " " * 12, row="i"), node, "i")

    def _lift(self, arithmetic: _Arithmetic, node: Node, index: str) -> None:
        """The partials of one value of an operand, or the identity where it has none."""
        value, there = arithmetic.emit(node)
        for (operand, kind), name in self.lifted.items():
            if operand != node or self._bare(node, kind):
                continue
            fields = KINDS[kind].fields
            targets = ", ".join(f"{name}{j}[{index}]" for j in range(len(fields)))
            lifted = "(1,)" if kind == "count" else f"lift_{kind}({value})"
            arithmetic(f"if {there}:", f"    {targets}, = {lifted}", "else:")
            arithmetic(f"    {targets}, = ({', '.join(_literal(field.identity) for field in fields)},)")

    def _stage(self, stage: Stage, last: bool) -> None:
        at = " " * 12
        for pointer in stage.pointers:
            name = self.pointers[pointer]
            rows = "p" if pointer.of == POINTS else f"r{self.sources[pointer.of]}[:n{self.sources[pointer.of]}]"
            if pointer.width:
                given = f"{pointer.back}, {pointer.width}, {int(pointer.end)}"
                self(f"{at}{name} = before_tumbling({rows}, t, {given}, {name}, {name}_)")
            else:
                self(f"{at}{name} = upto({rows}, t, {pointer.back}, {name}, {name}_)")
        for slide, kinds in stage.slides.items():
            for kind in kinds:
                if (slide, kind) in self.slides:
                    self._slide(slide, kind)
        start = "max(0, kept - origin - low)" if last and not stage.values else "0"
        if stage.values or last:
            self(f"{at}for j in range({start}, high - low):")
        arithmetic = _Arithmetic(self, " " * 16)
        for node in stage.values:
            self._lift(arithmetic, node, "low + j")
        if last:
            for number, node in enumerate(self.program.outputs.values()):
                value, there = arithmetic.emit(node)
                arithmetic(f"out{number}[origin + low + j] = {value}", f"there{number}[origin + low + j] = {there}")

    def _slide(self, slide: Slide, kind: str) -> None:
        name, operand = self.slides[slide, kind], self.lifted[slide.operand, kind]
        count = range(len(KINDS[kind].fields))
        bounds = [f"{self.pointers[each]}_[:high - low]" for each in (slide.first, slide.last)]
        parts = [[f"{operand}{j}" for j in count]]
        parts += [[f"{name}_{side}{j}" for j in count] for side in "fgc"]
        parts += [[f"{name}_at"], [f"{name}_unit{j}" for j in count], [f"{name}_{j}" for j in count]]
        self(f"            slide_{kind}({', '.join([*bounds, *(each for part in parts for each in part)])})")


class _Arithmetic:
    """The statements of one loop: each node once, as a value and whether there is one.

    ``row``: the loop is over rows of a source, otherwise over the points of a block.
    """

    def __init__(self, text: _ProgramText, indent: str, row: str | None = None) -> None:
        self._text, self._indent, self._row = text, indent, row
        self._known: dict[Node, Value] = {}

    def __call__(self, *lines: str) -> None:
        self._text(*(self._indent + line for line in lines))

    def emit(self, node: Node) -> Value:
        """Write what a node needs."""
        if node not in self._known:
            value, there = self._emitted(node)
            number = len(self._known)
            # A condition that always holds stays one: it is what LLVM leaves out.
            self(f"a{number} = {value}")
            if there not in ("True", "False"):
                self(f"h{number} = {there}")
                there = f"h{number}"
            self._known[node] = f"a{number}", there
        return self._known[node]

    def _emitted(self, node: Node) -> Value:
        if isinstance(node, Constant):
            return ("0.0", "False") if node.value is None else (_literal(node.value), "True")
        if isinstance(node, Sample):
            return self._sample(node)
        if isinstance(node, Reduce):
            return self._reduced(node)
        assert isinstance(node, Apply)
        return _applied(node.operation, [self.emit(each) for each in node.operands])

    def _sample(self, node: Sample) -> Value:
        number = self._text.columns[node.source, node.column]
        checked = (node.source, node.column) in self._text.nullable
        if self._row is not None:
            return f"v{number}[{self._row}]", f"e{number}[{self._row}]" if checked else "True"
        source = self._text.sources[node.source]
        count = f"{self._text.pointers[Pointer(node.source, node.back)]}_[j]"
        name = f"i{len(self._known)}"
        self(f"{name} = {count} - {1 + node.previous}")
        there = [f"{count} > 0"]
        if node.previous:
            there.append(f"0 <= {name} < n{source}")
        if node.hold is not None:
            there.append(f"t[j] - {node.back} - r{source}[{count} - 1] < {node.hold}")
        self(f"{name}_ = {' and '.join(there)}", f"{name} = np.uint64({name} if {name}_ else 0)")
        if node.what == "age":
            return f"(t[j] - {node.back} - r{source}[{name}]) / 1e6", f"{name}_"
        return f"v{number}[{name}]", f"{name}_ and e{number}[{name}]" if checked else f"{name}_"

    def _reduced(self, node: Reduce) -> Value:
        slide = slide_of(node)
        names = {}
        for kind in PARTIALS[node.reducer]:
            name = self._text.slides.get((slide, kind))
            if name is None:  # a count of rows that all have a value
                first, last = (self._text.pointers[each] for each in (slide.first, slide.last))
                names["n"] = f"({last}_[j] - {first}_[j])"
            else:
                names |= {field.name: f"{name}_{k}[j]" for k, field in enumerate(KINDS[kind].fields)}
        value, there = _REDUCED[node.reducer]
        return value.format(**names), there.format(**names)


def _applied(operation: str, operands: list[Value]) -> Value:
    values, present = [value for value, _ in operands], [there for _, there in operands]
    if operation == "where":
        return values[0], _all([*present, f"{values[1]} != 0.0"])
    if operation == "fill":
        (value, there), (other, otherwise) = operands
        return (value, "True") if there == "True" else (f"{value} if {there} else {other}", f"{there} or {otherwise}")
    if operation == "is_missing":
        return f"0.0 if {present[0]} else 1.0", "True"
    if operation == "divide":
        return f"{values[0]} / {values[1]}", _all([*present, f"{values[1]} != 0.0"])
    if operation == "log":
        return f"np.log({values[0]})", _all([*present, f"not {values[0]} <= 0.0"])
    return _PLAIN[operation].format(*values), _all(present)


def _all(conditions: list[str]) -> str:
    """All of some conditions, those that always hold left out."""
    needed = list(dict.fromkeys(each for each in conditions if each != "True"))
    if "False" in needed:
        return "False"
    return " and ".join(needed) or "True"


def _literal(value: Any) -> str:
    """A number as text that gives it back."""
    if isinstance(value, int):
        return str(value)
    if np.isnan(value):
        return "np.nan"
    return f"{'-' if value < 0 else ''}np.inf" if np.isinf(value) else repr(float(value))
