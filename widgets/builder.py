"""A form that puts a query together: source, keys, aggregates, levels; SQL and plan follow every change."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from html import escape
from keyword import iskeyword
from typing import Any

import ipywidgets as ipw

from workbench.errors import QueryError, WorkbenchError
from workbench.logical import Stream, Window
from workbench.time import DAY, HOUR, MINUTE, format_duration
from workbench.widgets.cell import CellButton
from workbench.widgets.draft import DURATIONS, FUNCTIONS, Draft, Value, columns_for, likely_keys

#: Levels at most; with more the form would not fit on a page.
LEVELS = 4
_NEXT = ((MINUTE, 15 * MINUTE), (10 * MINUTE, 2 * HOUR), (HOUR, DAY), (DAY, 7 * DAY))
_PRE = (
    "margin:0;padding:8px 10px;white-space:pre-wrap;word-break:normal;overflow-wrap:anywhere;"
    "font:12.5px/1.45 ui-monospace,Menlo,Consolas,monospace;"
    "background:var(--jp-layout-color2,#f3f5f7);color:var(--jp-ui-font-color1,#1f2933)"
)


class QueryForm(ipw.VBox):  # type: ignore[misc]
    """The form. It owns no query: ``plan(sql, name)`` gives the picture of the plan as HTML and raises WorkbenchError
    for what cannot be run, ``run(sql, name)`` starts the query and returns the widget that shows it. ``create(cell)``
    hands a cell over where the page cannot put it into the notebook itself, and returns a remark about it.
    """

    def __init__(
        self,
        streams: Mapping[str, Stream],
        *,
        plan: Callable[[str, str], str],
        create: Callable[[str], str],
        run: Callable[[str, str], ipw.Widget],
    ) -> None:
        self._streams, self._plan, self._create, self._run = dict(streams), plan, create, run
        self._quiet = False
        self.source = ipw.Dropdown(options=list(streams), description="source")
        self.name = ipw.Text(value="query", description="name", continuous_update=True)
        self.where = ipw.Text(placeholder="such as dep_delay > 0", description="where", continuous_update=False)
        self.by: dict[str, ipw.ToggleButton] = {}
        self.values: list[tuple[ipw.Dropdown, ipw.Dropdown]] = []
        self.levels: list[ipw.SelectionRangeSlider] = []
        self._key_box = ipw.HBox(layout=ipw.Layout(flex_flow="row wrap"))
        self._value_box, self._level_box = ipw.VBox(), ipw.VBox()
        self.add_value = ipw.Button(description="+ aggregate", layout=ipw.Layout(width="120px"))
        self.add_level = ipw.Button(description="+ level", layout=ipw.Layout(width="120px"))
        self.create_cell = CellButton(self._put)
        self.run_query = ipw.Button(description="Run", button_style="success")
        self.said = ipw.HTML()
        self.sql = ipw.HTML()
        self.picture = ipw.HTML()
        self.place = ipw.VBox()
        self.source.observe(lambda change: self._begin(), "value")
        for widget in (self.name, self.where):
            widget.observe(lambda change: self._changed(), "value")
        self.add_value.on_click(lambda button: self._more_values("avg"))
        self.add_level.on_click(lambda button: self._more_levels())
        self.run_query.on_click(lambda button: self._act(self._start))
        super().__init__(self._parts(), layout=ipw.Layout(width="100%", padding="4px"))
        self.create_cell.shown_in = self.model_id
        self._begin()

    @property
    def draft(self) -> Draft:
        """What is chosen now."""
        return Draft(
            self._streams[self.source.value],
            tuple(name for name, button in self.by.items() if button.value),
            tuple(dict.fromkeys(Value(function.value, column.value or "") for function, column in self.values)),
            tuple(slider.value for slider in self.levels),
            self.where.value,
        )

    def _parts(self) -> list[ipw.Widget]:
        def head(text: str) -> ipw.HTML:
            return ipw.HTML(f'<b style="color:var(--jp-ui-font-color1,#1f2933)">{text}</b>')

        form = ipw.VBox(
            [
                self.source, self.name, self.where,
                head("keys"), self._key_box,
                head("aggregates"), self._value_box, self.add_value,
                head("levels: a window (right end) every so often (left end)"), self._level_box, self.add_level,
                ipw.HBox([self.create_cell, self.run_query]), self.said,
            ],
            layout=ipw.Layout(flex="1 1 380px", min_width="340px", max_width="640px"),
        )  # fmt: skip
        wide = ipw.Layout(flex="2 1 580px", min_width="340px", padding="0 0 0 12px")
        preview = ipw.VBox([head("SQL"), self.sql, head("shared plan"), self.picture], layout=wide)
        return [ipw.HBox([form, preview], layout=ipw.Layout(flex_flow="row wrap", width="100%")), self.place]

    def _begin(self) -> None:
        """Start anew on the chosen source: no key, a count and an average, three levels."""
        self._quiet = True
        stream = self._streams[self.source.value]
        self.by = {
            name: ipw.ToggleButton(description=name, tooltip=f"group by {name}", layout=ipw.Layout(width="auto"))
            for name in likely_keys(stream)
        }
        for button in self.by.values():
            button.observe(lambda change: self._changed(), "value")
        self._key_box.children = tuple(self.by.values())
        self.where.value = ""
        self.values, self.levels = [], []
        self._more_values("count")
        if columns_for("avg", stream):
            self._more_values("avg")
        for _ in range(3):
            self._more_levels()
        self._quiet = False
        self._changed()

    def _more_values(self, function: str) -> None:
        stream = self._streams[self.source.value]
        offered = [name for name in FUNCTIONS if columns_for(name, stream)]
        kind = ipw.Dropdown(options=offered, value=function, layout=ipw.Layout(width="130px"))
        column = ipw.Dropdown(layout=ipw.Layout(width="170px"))
        away = ipw.Button(icon="times", tooltip="take it away", layout=ipw.Layout(width="34px"))
        row = ipw.HBox([kind, column, away])

        def fit(change: Any = None) -> None:
            kept, fitting = column.value, columns_for(kind.value, stream)
            quiet, self._quiet = self._quiet, True
            column.options = fitting
            column.value = kept if kept in fitting else fitting[0]
            column.disabled = kind.value == "count"
            self._quiet = quiet
            self._changed()

        def remove(button: Any) -> None:
            self.values.remove((kind, column))
            self._value_box.children = tuple(each for each in self._value_box.children if each is not row)
            self._changed()

        self.values.append((kind, column))
        kind.observe(fit, "value")
        column.observe(lambda change: self._changed(), "value")
        away.on_click(remove)
        kept = self._value_box.children if len(self.values) > 1 else ()
        self._value_box.children = (*kept, row)
        fit()

    def _more_levels(self) -> None:
        if len(self.levels) >= LEVELS:
            return
        # All sliders on the same axis: the text beside them must not take room by its length.
        slider = ipw.SelectionRangeSlider(
            options=[(format_duration(each), each) for each in DURATIONS],
            value=next(pair for pair in _NEXT[len(self.levels) :] + _NEXT if pair not in self.draft.levels),
            readout=False,
            layout=ipw.Layout(flex="1 1 auto", width="auto", min_width="120px"),
        )
        told = ipw.Label(layout=ipw.Layout(flex="0 0 170px", width="170px"))
        away = ipw.Button(icon="times", tooltip="take it away", layout=ipw.Layout(width="34px"))
        row = ipw.HBox([slider, told, away])

        def tell(change: Any = None) -> None:
            slide, size = slider.value
            told.value = Window(size, slide).label
            self._changed()

        def remove(button: Any) -> None:
            self.levels.remove(slider)
            self._level_box.children = tuple(each for each in self._level_box.children if each is not row)
            self.add_level.disabled = False
            self._changed()

        self.levels.append(slider)
        slider.observe(tell, "value")
        away.on_click(remove)
        kept = self._level_box.children if len(self.levels) > 1 else ()
        self._level_box.children = (*kept, row)
        self.add_level.disabled = len(self.levels) >= LEVELS
        tell()

    def _changed(self) -> None:
        """Show the SQL and the plan of what is chosen, or why it cannot be run."""
        if self._quiet:
            return
        self.said.value = ""
        try:
            for chosen, noun in ((self.values, "aggregate"), (self.levels, "level")):
                if not chosen:
                    raise WorkbenchError(f"there is no {noun}", hint=f"press `+ {noun}`")
            sql = self.draft.sql()
            self.sql.value = f'<pre style="{_PRE}">{escape(sql)}</pre>'
            if not self.name.value.isidentifier() or iskeyword(self.name.value):
                raise QueryError(f"`{self.name.value}` cannot name a query", hint="use letters, digits and `_`")
            self.picture.value = self._plan(sql, self.name.value)
            self.create_cell.cell = self.draft.cell(self.name.value)
        except WorkbenchError as error:
            self.picture.value = self.create_cell.cell = ""
            self._complain(error)

    def _act(self, action: Callable[[], None]) -> None:
        try:
            action()
        except WorkbenchError as error:
            self._complain(error)

    def _put(self, done: bool) -> None:
        def hand_over() -> None:
            self.said.value = escape(self._create(self.create_cell.cell))

        if done:
            self.said.value = "the cell stands below"
        else:
            self._act(hand_over)

    def _start(self) -> None:
        self.place.children = (self._run(self.draft.sql(), self.name.value),)

    def _complain(self, error: WorkbenchError) -> None:
        red = "color:var(--jp-error-color1,#c92a2a)"
        self.said.value = f'<pre role="alert" style="{_PRE};{red}">{escape(str(error))}</pre>'
