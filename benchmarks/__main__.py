"""The command line: ``list``, ``run``, ``figures`` and ``compare``."""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections.abc import Iterable, Sequence
from itertools import groupby
from pathlib import Path
from textwrap import fill

from benchmarks import runner
from benchmarks.compare import compare, medians
from benchmarks.workload import Workload
from benchmarks.workloads import WORKLOADS


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; ``run`` exits with 1 where a bar is missed by a full (not quick) run."""
    options = _parser().parse_args(arguments)
    if options.command == "list":
        print(listing(WORKLOADS.values()))
        return 0
    if options.command == "compare":
        print(compare(options.before, options.after))
        return 0
    if options.command == "figures":
        return _draw(options.results, options.folder)
    with contextlib.ExitStack() as stack:
        out = [sys.stdout]
        if options.out:
            out.append(stack.enter_context(options.out.open("a", encoding="utf-8")))
        ok = runner.run(WORKLOADS[options.name], options.quick, out, options.repeats)
    return 0 if ok or options.quick else 1


def _draw(results: Path, folder: Path) -> int:
    """Draw the pictures of every workload that ``results`` has figures of."""
    by_workload: dict[str, dict[str, float]] = {}
    for (name, figure), value in medians(results).items():
        by_workload.setdefault(name, {})[figure] = value
    drawn = 0
    for name, found in by_workload.items():
        draw = WORKLOADS[name].draw if name in WORKLOADS else None
        for path in draw(found, folder) if draw else ():
            print(path)
            drawn += 1
    return 0 if drawn else 1


def listing(workloads: Iterable[Workload]) -> str:
    """All workloads by group, each with what it measures and its bars."""
    lines = []
    for group, members in groupby(workloads, key=lambda workload: workload.group):
        lines += ["", f"{group}:"]
        for workload in members:
            bars = ", ".join(map(str, workload.bars)) or "none"
            lines += [
                f"  {workload.name}: {workload.summary}",
                fill(bars, 110, initial_indent="    bar: ", subsequent_indent=" " * 9),
            ]
    return "\n".join(lines[1:])


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Measure winquery on this machine.")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("list", help="the workloads and their bars")
    run = commands.add_parser("run", help="measure one workload")
    run.add_argument("name", choices=sorted(WORKLOADS))
    run.add_argument("--quick", action="store_true", help="a small input, once")
    run.add_argument("--repeats", type=int, help="runs to take the median of")
    run.add_argument("--out", type=Path, help="also append the lines to this file")
    figures = commands.add_parser("figures", help="draw the pictures of a file written by `run --out`")
    figures.add_argument("results", type=Path)
    figures.add_argument("--folder", type=Path, default=Path("docs/images"))
    both = commands.add_parser("compare", help="two files written by `run --out`, side by side")
    both.add_argument("before", type=Path)
    both.add_argument("after", type=Path)
    return parser


if __name__ == "__main__":
    sys.exit(main())
