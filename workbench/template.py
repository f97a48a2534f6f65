"""``python -m workbench new FILE``: a notebook that shows a file of events as a live dashboard."""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as is_

from workbench.errors import SourceError
from workbench.feeds.formats import read_block, scan, schema_of
from workbench.feeds.times import to_micros
from workbench.session import Source
from workbench.session.sources import make_source, recorded_files
from workbench.widgets.draft import DURATIONS, Draft, Value, columns_for, likely_keys

#: Distinct values of a column that is worth a line each: more than one, and not a name for each row.
_KEYS = range(2, 201)
#: Windows that the whole recording has in the coarse and in the fine level, about, and how far windows overlap.
LEVELS = ((150, 4), (1_000, 5))
_NEXT = """\
Drag and turn the wheel over the plot: the level of windows follows. *Options* picks keys, *Export* gives files.

The query is a handle; as the last line of a cell it tells how it is doing and what can be done with it."""


@dataclass(frozen=True)
class Sample:
    """What the beginning and the end of a recording tell, microseconds: the first and the last time, the first rows,
    and how far one time is from the next there.
    """

    first: int
    last: int
    gap: int
    rows: pa.Table


def write(data: Path, target: Path | None = None, time: str | None = None) -> Path:
    """Write a notebook about a recording; returns its path.

    ``data`` is a file, or a folder of files; ``target`` the notebook, by default ``NAME.ipynb`` in the current
    folder. ``time`` names the timestamp column, by default the first one there is. The beginning and the end of the
    data are looked at. Raises SourceError for data that cannot be a source, and where the notebook exists already.
    """
    name = name_of(data)
    target = target or Path(f"{data.stem}.ipynb")
    if target.exists():
        raise SourceError(f"there is a notebook `{target}` already", hint="name another one with `--to`")
    source = make_source(name, str(data), time=time or time_of(data))
    draft = drafted(source, sample_of(source))
    called = f"{name}_by_{name_of(Path(draft.keys[0]))}" if draft.keys else f"{name}_over_time"
    place = os.path.relpath(data.expanduser().resolve(), target.absolute().parent)
    cells = [
        _markdown(f"# {data.name}\n\nRun the cells one after the other: Shift + Enter."),
        _code(
            "%load_ext workbench\nimport workbench\n\n"
            f"workbench.source({name!r}, {place!r}, time={source.stream.time!r})"
        ),
        _code(draft.cell(called)),
        _markdown(_NEXT),
        _code(called),
        _markdown("Another question? Change the cell above, or put a query together by hand:"),
        _code(f"workbench.builder({name!r})"),
    ]
    cells = [{"id": f"cell-{number}", **cell} for number, cell in enumerate(cells)]
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    sheet = {"cells": cells, "metadata": kernel, "nbformat": 4, "nbformat_minor": 5}
    target.write_text(json.dumps(sheet, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return target


def name_of(path: Path) -> str:
    """A name that SQL and Python can say, after that of a file."""
    words = re.sub(r"\W+", "_", path.stem, flags=re.ASCII).strip("_").lower() or "events"
    return words if words[0].isalpha() else f"events_{words}"


def sample_of(source: Source) -> Sample:
    """The first and the last block of the recording. Raises SourceError for one without a row."""
    schema, time = source.stream.schema, source.stream.time
    files = [scan(str(path), source.format) for path in source.paths]
    blocks = [(file.path, block) for file in files for block in file.blocks]
    if not blocks:
        raise SourceError("the data has no row, so there is nothing to show")
    rows = read_block(blocks[0][0], source.format, blocks[0][1], schema)
    ends = [rows, read_block(blocks[-1][0], source.format, blocks[-1][1], schema)]
    stamps = [to_micros(table.column(time), time, blocks[0][0]).cast(pa.int64()) for table in ends]
    bounds = [pc.min_max(column).as_py() for column in stamps]
    first = [each["min"] for each in bounds if each["min"] is not None]
    last = [each["max"] for each in bounds if each["max"] is not None]
    if not first:
        raise SourceError(f"the column `{time}` has no time at the beginning or the end of the data")
    times = np.unique(stamps[0].drop_null().to_numpy())
    gap = int(np.median(np.diff(times))) if len(times) > 1 else 0
    return Sample(min(first), max(last), gap, rows)


def drafted(source: Source, sample: Sample) -> Draft:
    """A first question: averages of the first two measured columns by a column of few names, in two levels."""
    stream = source.stream
    keys = tuple(name for name in likely_keys(stream) if _names(sample.rows, name))[:1]
    measured = [name for name in columns_for("avg", stream) if name not in keys][:2]
    values = (*(Value("avg", name) for name in measured), Value("count", ""))
    levels = (level_of(sample.last - sample.first, sample.gap, *shape) for shape in LEVELS)
    return Draft(stream, keys, values, tuple({slide: (slide, size) for slide, size in levels}.values()))


def time_of(data: Path) -> str:
    """The first column of times, or of texts all of which are times. Raises SourceError where there is none."""
    paths, kind = recorded_files(data, None)
    names = schema_of(str(paths[0]), kind).names
    found = schema_of(str(paths[0]), kind, tuple(names))
    times = [field.name for field in found if is_.is_timestamp(field.type)]
    if not times:
        raise SourceError(
            f"no column of `{data.name}` holds times: {', '.join(f'`{name}`' for name in names)}",
            hint="times look like 2024-03-01 10:00:00; pandas.to_datetime makes them of other texts and of numbers",
        )
    return times[0]


def _names(rows: pa.Table, column: str) -> bool:
    kind = rows.schema.field(column).type
    text = is_.is_string(kind) or is_.is_large_string(kind) or is_.is_boolean(kind)
    return text and pc.count_distinct(rows.column(column)).as_py() in _KEYS


def level_of(span: int, gap: int, windows: int, overlap: int) -> tuple[int, int]:
    """Slide and size of windows of which ``span`` has at most so many, each ``overlap`` slides long at least; rows
    have a distance of ``gap``. Microseconds.
    """
    slide = next((each for each in DURATIONS if each >= max(span / windows, gap)), DURATIONS[-1])
    fitting = (each for each in DURATIONS if each >= slide * overlap and each % slide == 0)
    return slide, next(fitting, slide)


def _markdown(text: str) -> dict[str, Any]:
    return {"cell_type": "markdown", "metadata": {}, "source": text.splitlines(keepends=True)}


def _code(text: str) -> dict[str, Any]:
    empty: dict[str, Any] = {"cell_type": "code", "execution_count": None, "metadata": {}, "outputs": []}
    return {**empty, "source": text.splitlines(keepends=True)}
