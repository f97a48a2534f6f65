"""Runs a workload, writes a JSON line per figure and run, and ends with one line that says ok or short."""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, TextIO

from benchmarks import machine
from benchmarks.workload import FEW, Bar, Workload


def run(workload: Workload, quick: bool, out: Iterable[TextIO], repeats: int | None = None) -> bool:
    """Warm up, measure, report to every stream of ``out``; returns whether all bars hold on the medians."""
    streams = list(out)
    workload.warm_up(quick)
    rounds: list[Mapping[str, float]] = []
    for number in range(repeats or (1 if quick else workload.repeats)):
        before = {**machine.describe(), **workload.about()}
        figures = workload.run(quick)
        rounds.append(figures)
        for name, value in figures.items():
            _write(streams, _line(workload, quick, number, name, value, before))
    medians = {name: statistics.median(figures[name] for figures in rounds) for name in rounds[0]}
    missed = [bar for bar in workload.bars if not bar.holds(medians[bar.figure])]
    _write(streams, summary(workload, medians, missed))
    return not missed


def summary(workload: Workload, medians: Mapping[str, float], missed: Sequence[Bar]) -> str:
    """The last line: ``NAME figure=value ... bar=figure<=limit,... ok|short``; of many bars it names the missed."""
    figures = " ".join(f"{name}={short(medians[name])}" for name in workload.shown(medians))
    many = len(workload.bars) > FEW
    bars = ",".join(map(str, missed if many and missed else workload.bars)) or "none"
    if many:
        bars = f"{len(workload.bars) - len(missed)} of {len(workload.bars)}" + (f", not {bars}" if missed else "")
    about = "".join(f" {name}={text!r}" for name, text in workload.about().items())
    return f"{workload.name} {figures}{about} bar={bars} {'short' if missed else 'ok'}"


def short(value: float) -> str:
    """A figure with four digits that count, without an exponent for large ones."""
    return f"{value:,.0f}".replace(",", "_") if abs(value) >= 10_000 else f"{value:.4g}"


def _line(workload: Workload, quick: bool, number: int, name: str, value: float, before: Mapping[str, Any]) -> str:
    record = {
        "workload": workload.name,
        "figure": name,
        "value": value,
        "run": number,
        "quick": quick,
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        **before,
    }
    return json.dumps(record)


def _write(streams: list[TextIO], line: str) -> None:
    for stream in streams:
        print(line, file=stream, flush=True)
