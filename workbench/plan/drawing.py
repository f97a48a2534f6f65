"""A picture of a shared plan as SVG: rows cut into slices, folded into partials, assembled into windows of queries.

Every partial stands once, whoever uses it; the lines show who does. Written by hand, without a library: the same text
for equal plans.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from workbench.plan.explain import cut_at, explain, nanoseconds
from workbench.plan.shared import Assembly, Fold, SharedPlan
from workbench.time import format_duration

#: Pixels: the whole, the three columns (left, width), a line of text, the room between boxes.
WIDTH = 820
_FOLDS, _WINDOWS, _QUERIES = (0, 360), (410, 206), (664, 156)
_LINE, _PAD, _GAP, _HEAD = 17, 8, 12, 40
#: Width of a letter by the size of the font, about (bold ones are as wide as larger ones); what does not fit is cut.
_LETTER = 0.53


@dataclass(frozen=True)
class Inks:
    """The colours of a picture, as CSS."""

    ink: str
    muted: str
    rule: str
    box: str
    head: str
    line: str
    paper: str


#: In the colours of the page it stands in (JupyterLab's variables), light where it has none.
PAGE = Inks(
    ink="var(--jp-ui-font-color1, #1f2933)",
    muted="var(--jp-ui-font-color2, #5f6b7a)",
    rule="var(--jp-border-color1, #b8c2cc)",
    box="var(--jp-layout-color1, #ffffff)",
    head="var(--jp-layout-color2, #eef1f4)",
    line="var(--jp-brand-color1, #0072b2)",
    paper="transparent",
)
#: On white ground, for pages that are no pages.
PRINT = Inks("#1f2933", "#5f6b7a", "#b8c2cc", "#ffffff", "#eef1f4", "#0072b2", "#ffffff")


class PlanView:
    """The picture of a shared plan, in a notebook; printed, its text."""

    def __init__(self, plan: SharedPlan) -> None:
        self.shared = plan

    def _repr_html_(self) -> str:
        return f'<div style="max-width:{WIDTH}px">{draw(self.shared)}</div>'

    def _repr_svg_(self) -> str:
        return draw(self.shared, PRINT)

    def __repr__(self) -> str:
        return explain(self.shared)


def draw(plan: SharedPlan, inks: Inks = PAGE) -> str:
    """The plan as SVG text, ``WIDTH`` pixels wide unless its place is narrower."""
    return _Drawing(plan, inks).svg()


@dataclass
class _Drawing:
    plan: SharedPlan
    inks: Inks

    def svg(self) -> str:
        self.boxes: list[str] = []
        self.lines: list[str] = []
        windows: list[float] = []
        top = float(self._slices())
        column = top + _HEAD - 8
        for (left, _), name in (
            (_FOLDS, "folded once a slice, into partials"),
            (_WINDOWS, "assembled into windows"),
            (_QUERIES, "for queries"),
        ):
            self.boxes.append(self._text(left, column, name, muted=True, size=12))
        top += _HEAD
        place: dict[int, float] = {}
        bottom = top
        for number, fold in enumerate(self.plan.folds):
            ports, fold_end = self._fold(number, fold, top)
            mine = [(at, entry) for at, entry in enumerate(self.plan.assemblies) if entry.fold == number]
            tall = len(mine) * (2 * _LINE + _PAD + _GAP) - _GAP
            at = top + max(0.0, (fold_end - top - tall) / 2)
            for index, entry in mine:
                place[index] = self._window(entry, at, ports)
                at += 2 * _LINE + _PAD + _GAP
            bottom = max(fold_end, at - _GAP)
            windows.append(bottom)
            top = bottom + _GAP
        bottom = max(bottom, self._queries(place, float(self._slices_bottom) + _HEAD, bottom))
        height = bottom + 6
        title = f"the shared plan of {self.plan.stream.name}"
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="-1 -1 {WIDTH + 2} {height:.0f}" width="{WIDTH}" '
            f'style="max-width:100%;height:auto;background:{self.inks.paper};'
            f"font-family:Inter,'Segoe UI',Roboto,'Helvetica Neue','DejaVu Sans',sans-serif\" role=\"img\">"
            f"<title>{escape(title)}</title>{''.join(self.lines)}{''.join(self.boxes)}</svg>"
        )

    def _slices(self) -> float:
        """The box of the stream, with a ruler of slices; returns where it ends."""
        plan = self.plan
        delay = format_duration(plan.stream.delay)
        self._box(0, 0, WIDTH, 62, f"{plan.stream.name}: cut into slices at {cut_at(plan)}")
        note = f"by {plan.stream.time}, one pass over the rows, watermark {delay} behind the latest"
        self.boxes.append(self._text(_PAD, 40, _fit(note, 540, 12), muted=True, size=12))
        # A ruler: what is between two ticks is folded once.
        for tick in range(9):
            x = 580 + tick * 28
            self.boxes.append(f'<path d="M{x} 33v14" style="stroke:{self.inks.line};stroke-width:1.5"/>')
        self.boxes.append(f'<path d="M580 40h224" style="stroke:{self.inks.line};stroke-width:1.5"/>')
        self._slices_bottom = 62.0
        return self._slices_bottom

    def _fold(self, number: int, fold: Fold, top: float) -> tuple[list[float], float]:
        """The box of a fold; returns where the line of each partial leaves it, and where the box ends."""
        left, width = _FOLDS
        by = ", ".join(str(named.expression) for named in fold.keys)
        where = f"where {fold.where}" if fold.where is not None else "all rows"
        if fold.columns is None:
            gaps = "".join(f" and {gap.label}" for gap in fold.gaps)
            heads = [f"by slice{gaps}" + (f" and {by}" if by else ""), where]
        else:
            heads = ["rows are kept" + (f", by {by}" if by else ""), where]
        height = 2 * _LINE + 2 * _PAD + len(fold.partials) * (2 * _LINE - 2)
        self._box(left, top, width, height, heads[0])
        y = top + _PAD + _LINE + 10
        self.boxes.append(self._text(left + _PAD, y, _fit(heads[1], width - 2 * _PAD, 12), muted=True, size=12))
        ports = []
        methods = {(method.fold, method.partial): method for method in self.plan.methods}
        for index, partial in enumerate(fold.partials):
            y += _LINE if index else _LINE + 4
            users = sum(
                index in ingredient.partials
                for entry in self.plan.queries
                if entry.fold == number
                for ingredient in entry.ingredients
            )
            shared = f"for {users} aggregates" if users > 1 else ""
            room = width - 2 * _PAD - len(shared) * 11 * _LETTER - 6
            self.boxes.append(self._text(left + _PAD, y, _fit(str(partial), room, 13)))
            if shared:
                text = self._text(left + width - _PAD, y, shared, size=11, anchor="end", fill=self.inks.line)
                self.boxes.append(text)
            ports.append(y - 4)
            y += _LINE - 2
            method = methods.get((number, index))
            if method is not None:
                cost = next((c.cost for c in method.considered if c.algorithm is method.algorithm), None)
                chunk = f", chunks of {method.chunk}" if method.chunk > 1 else ""
                told = f"{method.algorithm.value}{chunk}" + (f", {nanoseconds(cost)} a slice" if cost else "")
                text = self._text(left + _PAD + 12, y, _fit(told, width - 3 * _PAD, 11), muted=True, size=11)
                self.boxes.append(text)
        return ports, top + height

    def _window(self, entry: Assembly, top: float, ports: Sequence[float]) -> float:
        """The box of the windows of one kind; returns the height at which lines leave it."""
        left, width = _WINDOWS
        height = 2 * _LINE + _PAD
        self._box(left, top, width, height, entry.window.label)
        used = f"{len(entry.partials)} of {len(ports)} partials" if len(ports) > 1 else "1 partial"
        self.boxes.append(self._text(left + _PAD, top + 2 * _LINE + 2, used, muted=True, size=11))
        middle = top + height / 2
        for partial in entry.partials:
            self._line(_FOLDS[0] + _FOLDS[1], ports[partial], left, middle)
        return middle

    def _queries(self, windows: dict[int, float], top: float, bottom: float) -> float:
        """The boxes of the queries, each near its windows; returns where the last one ends."""
        left, width = _QUERIES
        wanted = []
        for number, plan in enumerate(self.plan.queries):
            mine = [
                windows[at]
                for at, entry in enumerate(self.plan.assemblies)
                if any(query == number for query, _ in entry.users)
            ]
            height = _LINE + 2 * _PAD + len(plan.query.values) * _LINE
            wanted.append((sum(mine) / len(mine) - height / 2, number, height, mine))
        at = top
        for goal, number, height, mine in sorted(wanted):
            at = max(at, goal)
            query = self.plan.queries[number].query
            self._box(left, at, width, height, query.name)
            for line, named in enumerate(query.values):
                y = at + (line + 2) * _LINE + 6
                text = _fit(str(named.expression), width - 2 * _PAD, 11)
                self.boxes.append(self._text(left + _PAD, y, text, size=11))
            for middle in mine:
                self._line(_WINDOWS[0] + _WINDOWS[1], middle, left, at + 13)
            at += height + _GAP
        return max(bottom, at - _GAP)

    def _box(self, left: float, top: float, width: float, height: float, head: str) -> None:
        inks = self.inks
        self.boxes.append(
            f'<rect x="{left}" y="{top:.1f}" width="{width}" height="{height:.1f}" rx="4" '
            f'style="fill:{inks.box};stroke:{inks.rule}"/>'
            f'<path d="M{left + 0.5} {top + 22:.1f}v-18a3.5 3.5 0 0 1 3.5 -3.5h{width - 8}'
            f'a3.5 3.5 0 0 1 3.5 3.5v18z" style="fill:{inks.head}"/>'
        )
        self.boxes.append(self._text(left + _PAD, top + 16, _fit(head, width - 2 * _PAD, 15), size=13, weight=600))

    def _line(self, x0: float, y0: float, x1: float, y1: float) -> None:
        bend = (x1 - x0) / 2
        self.lines.append(
            f'<path d="M{x0} {y0:.1f}C{x0 + bend} {y0:.1f} {x1 - bend} {y1:.1f} {x1} {y1:.1f}" '
            f'style="fill:none;stroke:{self.inks.line};stroke-width:1.2;stroke-opacity:.55"/>'
        )

    def _text(
        self,
        x: float,
        y: float,
        text: str,
        *,
        size: int = 13,
        weight: int = 400,
        muted: bool = False,
        anchor: str = "start",
        fill: str | None = None,
    ) -> str:
        colour = fill or (self.inks.muted if muted else self.inks.ink)
        return (
            f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}" font-weight="{weight}" '
            f'style="fill:{colour}">{escape(text)}</text>'
        )


def _fit(text: str, width: float, size: int) -> str:
    """The text, cut where it is longer than ``width`` pixels."""
    letters = max(1, int(width / (size * _LETTER)))
    return text if len(text) <= letters else text[: letters - 1].rstrip() + "…"
