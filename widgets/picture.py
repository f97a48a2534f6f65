"""A still picture of a dashboard as SVG, made in the kernel without a browser.

It stands in saved notebooks, in nbconvert's pages and on GitHub, where no kernel answers. Its lines are the points
that the live plot draws: same level choice, same M4, same colours.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from workbench.results import QueryResults
from workbench.time import DAY, HOUR, MINUTE, SECOND, format_time
from workbench.widgets import theme
from workbench.widgets.keys import Key, key_label, rank_keys
from workbench.widgets.levels import choose_level
from workbench.widgets.points import Points
from workbench.widgets.reading import read_points
from workbench.widgets.theme import LIGHT
from workbench.widgets.values import Kind, kind_of

Array = npt.NDArray[Any]

_LEFT, _RIGHT, _GAP, _HEAD, _FOOT = 84, 18, 18, 34, 54
_STEPS = (
    *(SECOND * n for n in (1, 2, 5, 10, 15, 30)),
    *(MINUTE * n for n in (1, 2, 5, 10, 15, 30)),
    *(HOUR * n for n in (1, 2, 3, 6, 12)),
    *(DAY * n for n in (1, 2, 5, 7, 14, 30, 60, 90, 180, 365, 730, 1825, 3650)),
)


def picture(
    results: QueryResults,
    title: str = "",
    visible: tuple[int, int] | None = None,
    *,
    level: int | None = None,
    keys: Sequence[Key] | None = None,
    top: int = 20,
    width: int = 960,
    height: int = 200,
) -> str:
    """SVG text of a query's results, one panel of ``height`` pixels per value column.

    ``visible`` is the range of window ends in microseconds, by default all that is kept; ``level`` by default
    the one that a plot of this width would choose; ``keys`` by default the ``top`` most important ones. An empty
    store gives a picture that says so.
    """
    shapes = results.schema.levels
    inner = width - _LEFT - _RIGHT
    start, end = visible or _extent(results)
    chosen = choose_level(shapes, end - start, inner) if level is None else level
    keys = rank_keys(results, top) if keys is None else keys
    parts = [_text(_LEFT, 22, title or results.schema.query, size=16, weight=600)]
    parts.append(_text(width - _RIGHT, 22, f"level: {shapes[chosen].label}", anchor="end", ink=LIGHT.muted))
    top_edge: float = _HEAD
    if results.schema.keys and keys:
        entries, top_edge = _legend([key_label(key) for key in keys], top_edge, width)
        parts += entries
    points = read_points(results, chosen, start, end, inner, keys)
    names, kinds = list(points), {name: kind_of(kind) for name, kind in results.schema.values}
    label = "window end (UTC)" if shapes[chosen].regular else "time (UTC)"
    for position, name in enumerate(names):
        box = _Box(start, end, top_edge, inner, height, label)
        parts += box.panel(name, points[name], kinds[name], last=position == len(names) - 1)
        top_edge += height + _GAP
    if not keys:
        parts.append(_text(width / 2, _HEAD + height / 2, "no window yet", anchor="middle", ink=LIGHT.muted))
    total = top_edge - _GAP + _FOOT
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {total}" width="{width}" height="{total}" '
        f'font-family="{escape(theme.FONT)}" role="img"><title>{escape(title or results.schema.query)}</title>'
        f'<rect width="100%" height="100%" fill="#fff"/>{"".join(parts)}</svg>'
    )


def save_svg(results: QueryResults, path: str | Path, title: str = "") -> Path:
    """Write :func:`picture` to a file and return its path."""
    path = Path(path)
    path.write_text(picture(results, title), encoding="utf-8")
    return path


class _Box:
    """The frame of one panel: maps times and values to pixels."""

    def __init__(self, start: int, end: int, top: float, width: float, height: float, label: str) -> None:
        self.start, self.end, self.label = start, max(end, start + 1), label
        self.top, self.width, self.height = top, width, height

    def panel(self, name: str, points: Points, kind: Kind, last: bool) -> list[str]:
        """The parts of a panel: axes, grid, lines."""
        inside = (points.x >= self.start) & (points.x <= self.end)
        seen = points.y[inside & np.isfinite(points.y)]
        low, high = (float(seen.min()), float(seen.max())) if len(seen) else (0.0, 1.0)
        pad = (high - low) * 0.08 or (HOUR / 1_000 if kind is Kind.TIME else abs(high) * 0.08) or 1.0
        self.low, self.high = low - pad, high + pad
        parts = [*self._value_axis(name, kind), *self._time_axis(last)]
        bottom = self.top + self.height
        clip = f"c{round(self.top)}"
        parts.append(
            f'<clipPath id="{clip}"><rect x="{_LEFT}" y="{self.top:.0f}" width="{self.width}" '
            f'height="{self.height}"/></clipPath><g clip-path="url(#{clip})" fill="none" stroke-width="1.6">'
        )
        for key in range(points.y.shape[1]):
            parts.append(self._path(points.final(), key, ""))
            dash = " ".join(map(str, theme.OPEN_DASH))
            extra = f' stroke-dasharray="{dash}" stroke-opacity="{theme.OPEN_ALPHA}"'
            parts.append(self._path(points.provisional(), key, extra))
        for x, y, key in zip(*points.dots(), strict=True):
            parts.append(f'<circle cx="{self._x(x):.1f}" cy="{self._y(y):.1f}" r="2" fill="{LIGHT.colour(key)}"/>')
        edge = f"M{_LEFT} {self.top}V{bottom}H{_LEFT + self.width}"
        parts.append(f'</g><path d="{edge}" fill="none" stroke="{LIGHT.rule}"/>')
        return parts

    def _x(self, time: Any) -> Any:
        return _LEFT + (time - self.start) / (self.end - self.start) * self.width

    def _y(self, value: Any) -> Any:
        # Divided before subtracted: the difference of two values near 1e308 has no float.
        scale = max(abs(self.low), abs(self.high))
        low, high = self.low / scale, self.high / scale
        return self.top + self.height * (1 - (value / scale - low) / (high - low))

    def _path(self, points: Points, key: int, extra: str) -> str:
        if not len(points.x):
            return ""
        xs, ys = self._x(points.x[:, key]), self._y(points.y[:, key])
        commands = []
        drawing = False
        for at, value, there in zip(xs, ys, np.isfinite(ys), strict=True):
            if there:
                commands.append(f"{'L' if drawing else 'M'}{at:.1f} {value:.1f}")
            drawing = bool(there)
        if not commands:
            return ""
        return f'<path d="{"".join(commands)}" stroke="{LIGHT.colour(key)}"{extra}/>'

    def _value_axis(self, name: str, kind: Kind) -> list[str]:
        middle = self.top + self.height / 2
        parts = [
            f'<text transform="translate(18 {middle:.0f}) rotate(-90)" text-anchor="middle" font-size="13" '
            f'fill="{LIGHT.ink}">{escape(name)}</text>'
        ]
        for tick, written in _ticks(self.low, self.high, kind):
            y = self._y(tick)
            parts.append(f'<path d="M{_LEFT} {y:.1f}h{self.width}" stroke="{LIGHT.grid}"/>')
            parts.append(_text(_LEFT - 8, y + 4, written, anchor="end", size=11, ink=LIGHT.muted))
        return parts

    def _time_axis(self, last: bool) -> list[str]:
        step = next((step for step in _STEPS if (self.end - self.start) / step <= self.width / 90), _STEPS[-1])
        parts = []
        day = None
        for tick in range(-(-self.start // step) * step, self.end + 1, step):
            x = self._x(tick)
            parts.append(f'<path d="M{x:.1f} {self.top}v{self.height}" stroke="{LIGHT.grid}"/>')
            if not last:
                continue
            date, clock = format_time(tick).split()
            bottom = self.top + self.height
            if step < DAY:
                shown = clock[:5] if step >= MINUTE else clock[:8]
                parts.append(_text(x, bottom + 16, shown, anchor="middle", size=11, ink=LIGHT.muted))
            if date != day:
                below = bottom + (30 if step < DAY else 16)
                parts.append(_text(x, below, date, anchor="middle", size=11, ink=LIGHT.muted))
            day = date
        if last:
            label = self.label
            parts.append(_text(_LEFT + self.width, self.top + self.height + 48, label, anchor="end", size=12))
        return parts


def _extent(results: QueryResults) -> tuple[int, int]:
    """First and last window end of the finest level that has any; one hour of 1970 for an empty store."""
    for level, shape in enumerate(results.schema.levels):
        extent = results.extent(level)
        if extent is not None:
            start = extent[0] + (shape.size if shape.regular else 0)
            return start, max(extent[1], start + shape.slide, start + 1)
    return 0, HOUR


def _legend(labels: Sequence[str], top: float, width: int) -> tuple[list[str], float]:
    parts = []
    column = 40 + 8 * max(len(label) for label in labels)
    columns = max(1, (width - _LEFT - _RIGHT) // column)
    for position, label in enumerate(labels):
        row, place = divmod(position, columns)
        x, y = _LEFT + place * column, top + 8 + row * 18
        parts.append(f'<path d="M{x} {y}h18" stroke="{LIGHT.colour(position)}" stroke-width="2.5"/>')
        parts.append(_text(x + 24, y + 4, label, size=12))
    return parts, top + 18 * (1 + (len(labels) - 1) // columns) + 10


def _ticks(low: float, high: float, kind: Kind) -> list[tuple[float, str]]:
    """About five round values of a kind between two, with their texts."""
    rough = high / 5 - low / 5
    if not np.isfinite(rough) or rough <= 0:
        return []
    if kind is Kind.TRUTH:
        return [(0.0, "false"), (1.0, "true")]
    if kind is Kind.TIME:
        step = next((each for each in _STEPS if each / 1_000 >= rough), _STEPS[-1]) / 1_000
        return [(at, _moment(round(at * 1_000), round(step * 1_000))) for at in _multiples(low, high, step)]
    power = 10.0 ** np.floor(np.log10(rough))
    step = next(power * factor for factor in (1, 2, 2.5, 5, 10) if power * factor >= rough)
    return [(at, f"{at:,.10g}") for at in _multiples(low, high, max(step, 1) if kind is Kind.WHOLE else step)]


def _moment(tick: int, step: int) -> str:
    """A time of an axis whose ticks are a step apart, in microseconds."""
    date, clock = format_time(tick).split()
    return date if step >= DAY else f"{date[-5:]} {clock[:5]}" if step >= MINUTE else clock[:8]


def _multiples(low: float, high: float, step: float) -> list[float]:
    """The multiples of a step between two values."""
    found: list[float] = (np.arange(np.ceil(low / step), np.floor(high / step) + 1) * step + 0.0).tolist()
    return found


def _text(
    x: float, y: float, text: str, *, anchor: str = "start", size: int = 13, weight: int = 400, ink: str = LIGHT.ink
) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}" font-weight="{weight}" '
        f'fill="{ink}">{escape(text)}</text>'
    )
