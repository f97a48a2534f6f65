"""``python -m workbench new FILE``: a notebook that shows a file of events as a live dashboard."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Unpack
from unicodedata import normalize

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as is_

from workbench.errors import AmbiguousError, SourceError
from workbench.feeds.dialect import LineOptions
from workbench.feeds.formats import LINES, find_dialect, read_block, scan, schema_of
from workbench.feeds.sniff import times_in
from workbench.feeds.times import is_text, to_micros
from workbench.logical.types import language_type
from workbench.session import Source
from workbench.session.columns import schema_of_files
from workbench.session.sources import make_source, recorded_files
from workbench.time import DAY, format_duration
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


def write(data: Path, target: Path | None = None, time: str | None = None, **lines: Unpack[LineOptions]) -> Path:
    """Write a notebook about a recording; returns its path.

    ``data`` is a file, or a folder of files; ``target`` the notebook, by default ``NAME.ipynb`` in the current
    folder. ``time`` names the timestamp column, by default the first one there is. ``lines`` say what cannot be found
    out about CSV and JSON (see :func:`workbench.source`). The beginning and the end of the data are looked at. Raises
    SourceError for data that cannot be a source, and where the notebook exists already or cannot be written.
    """
    name = name_of(data)
    target = target or sheet_of(data)
    if target.suffix != ".ipynb":
        raise SourceError(f"`{target}` is no name of a notebook", hint="names of notebooks end in `.ipynb`")
    if target.exists():
        raise SourceError(f"there is a notebook `{target}` already", hint="name another one with `--to`")
    source = make_source(name, str(data), time=time or time_of(data, **lines), **lines)
    draft = drafted(source, sample_of(source))
    called = f"{name}_by_{name_of(Path(draft.keys[0]))}" if draft.keys else f"{name}_over_time"
    place = os.path.relpath(data.expanduser().resolve(), target.absolute().parent)
    options = {"time": source.stream.time, **source.dialect.options(), **disorder(source)}
    call = ", ".join([repr(name), repr(place), *(f"{option}={value!r}" for option, value in options.items())])
    cells = [
        _markdown(f"# {data.name}\n\nRun the cells one after the other: Shift + Enter."),
        _code(f"%load_ext workbench\nimport workbench\n\nworkbench.source({call})"),
        _code(draft.cell(called)),
        _markdown(_NEXT),
        _code(called),
        _markdown("Another question? Change the cell above, or put a query together by hand:"),
        _code(f"workbench.builder({name!r})"),
    ]
    cells = [{"id": f"cell-{number}", **cell} for number, cell in enumerate(cells)]
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    sheet = {"cells": cells, "metadata": kernel, "nbformat": 4, "nbformat_minor": 5}
    try:
        target.write_text(json.dumps(sheet, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    except OSError as error:
        raise SourceError(f"cannot write `{target}`: {error.strerror}", hint="name another one with `--to`") from None
    return target


def offer(data: str, options: Mapping[str, Any]) -> str:
    """What the launcher asks for, as JSON: the ``path`` of the notebook about a file, which is written unless it is
    there; or, of a file that can be read in several ways, the ``message``, the ``option`` and its ``readings``.
    """
    sheet = sheet_of(Path(data))
    try:
        path = sheet if sheet.exists() else write(Path(data), **options)
    except AmbiguousError as error:
        return json.dumps({"message": error.message, "option": error.option, "readings": error.readings})
    return json.dumps({"path": path.as_posix()})


def sheet_of(data: Path) -> Path:
    """Where the notebook about a file goes: beside where one is, under its name without the ending."""
    return Path(f"{data.name.removesuffix(data.suffix).removesuffix('.csv')}.ipynb")


def name_of(path: Path) -> str:
    """A name that SQL and Python can say, after that of a file; letters lose their marks."""
    plain = normalize("NFKD", sheet_of(path).stem.replace("\u00df", "ss")).encode("ascii", "ignore").decode()
    words = re.sub(r"\W+", "_", plain, flags=re.ASCII).strip("_").lower() or "events"
    return words if words[0].isalpha() else f"events_{words}"


def sample_of(source: Source) -> Sample:
    """The first and the last block of the recording. Raises SourceError for one without a row."""
    schema, time = source.stream.schema, source.stream.time
    files = [scan(str(path), source.format, dialect=source.dialect) for path in source.paths]
    blocks = [(file.path, block) for file in files for block in file.blocks]
    if not blocks:
        raise SourceError("the data has no row, so there is nothing to show")
    ends = [read_block(path, source.format, block, schema, source.dialect) for path, block in (blocks[0], blocks[-1])]
    stamps = [to_micros(table.column(time), time, blocks[0][0]).cast(pa.int64()) for table in ends]
    bounds = [pc.min_max(column).as_py() for column in stamps]
    first = [each["min"] for each in bounds if each["min"] is not None]
    last = [each["max"] for each in bounds if each["max"] is not None]
    if not first:
        raise SourceError(f"the column `{time}` has no time at the beginning or the end of the data")
    times = np.unique(stamps[0].drop_null().to_numpy())
    gap = int(np.median(np.diff(times))) if len(times) > 1 else 0
    return Sample(min(first), max(last), gap, ends[0])


def disorder(source: Source) -> dict[str, str]:
    """The ``delay`` that a recording needs so that no row is late, where the usual one does not do.

    Rows stand in any order in many files, such as the newest one first; all times are looked at.
    """
    names = pa.schema([source.stream.schema.field(source.stream.time)])
    latest, behind = np.iinfo(np.int64).min, 0
    for path in source.paths:
        for block in scan(str(path), source.format, dialect=source.dialect).blocks:
            column = read_block(str(path), source.format, block, names, source.dialect).column(0)
            times = to_micros(column, source.stream.time, str(path)).cast(pa.int64()).drop_null().to_numpy()
            if len(times):
                running = np.maximum(np.maximum.accumulate(times), latest)
                behind, latest = max(behind, int((running - times).max())), int(running[-1])
    if behind <= source.stream.delay:
        return {}
    return {"delay": format_duration(next((each for each in DURATIONS if each >= behind), -(-behind // DAY) * DAY))}


def drafted(source: Source, sample: Sample) -> Draft:
    """A first question: averages of the first two measured columns by a column of few names, in two levels."""
    stream = source.stream
    keys = tuple(name for name in likely_keys(stream) if _names(sample.rows, name))[:1]
    measured = [name for name in columns_for("avg", stream) if name not in keys][:2]
    values = (*(Value("avg", name) for name in measured), Value("count", ""))
    levels = (level_of(sample.last - sample.first, sample.gap, *shape) for shape in LEVELS)
    return Draft(stream, keys, values, tuple({slide: (slide, size) for slide, size in levels}.values()))


def time_of(data: Path, **lines: Unpack[LineOptions]) -> str:
    """The first column of times, or of what all can be read as times. Raises SourceError where there is none."""
    paths, kind = recorded_files(data, None)
    first = str(paths[0])
    if kind in LINES:
        dialect = find_dialect(first, kind, (), lines)
        names = schema_of_files(paths[:1], kind, (), dialect).names
        times = list(times_in(first, kind, dialect, lines))
        hint = "times look like 2024-03-01 10:00:00, 1.3.2024 10:00 or 1709287200; others need their `time_format`"
    else:
        found = schema_of(first, kind)
        names = found.names
        times = [field.name for field in found if is_text(field.type)]
        hint = "pandas makes times of texts and numbers by `pandas.to_datetime`: the DataFrame can be a source"
    if not times:
        listed = ", ".join(f"`{name}`" for name in names)
        raise SourceError(f"no column of `{data.name}` holds times: {listed}", hint=hint)
    return times[0]


def _names(rows: pa.Table, column: str) -> bool:
    kind = language_type(rows.schema.field(column).type)
    text = is_.is_string(kind) or is_.is_boolean(kind)
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
