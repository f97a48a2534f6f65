"""``python -m workbench``: look at this machine (`doctor`), `prepare` it, write a notebook (`new`) or run one."""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from workbench import doctor, prepare
from workbench.errors import AmbiguousError, WorkbenchError

#: What can be said about CSV; without it, it is found out.
_LINES = {
    "--time-format": "of the times, such as 'dd.MM.yyyy HH:mm' or 'epoch ms'",
    "--sep": "what stands between the fields of CSV",
    "--decimal": "decimal mark of CSV, . or ,",
    "--thousands": "mark between the thousands of CSV",
    "--encoding": "of CSV, such as cp1252",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit status: 0 where all is well, 1 where something is missing or failed, 130
    after Ctrl-C, as shells have it.
    """
    options = _parser().parse_args(arguments)
    try:
        if options.command == "doctor":
            return doctor.report(java_only=options.java)
        if options.command == "prepare":
            return prepare.run()
        if options.command == "calibrate":
            # `doctor` must run where a package is missing, so whatever needs one is imported where it is used.
            from workbench import calibrate

            return calibrate.run()
        if options.command == "new":
            return _new(options)
        # Only this command needs nbclient, which the `demo` extra brings.
        from workbench import headless

        return headless.run(options.path, timeout=options.timeout)
    except WorkbenchError as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        return 130


def _new(options: argparse.Namespace) -> int:
    # Only this command needs widgets, and with them Bokeh.
    from workbench import template
    from workbench.feeds.dialect import LineOptions

    lines = {name: value for name in LineOptions.__annotations__ if (value := getattr(options, name)) is not None}
    try:
        written = template.write(options.data, options.to, options.time, **lines)
    except AmbiguousError as error:
        print(f"{error.message}; say which one it is:", file=sys.stderr)
        option = f"--{error.option.replace('_', '-')}"
        for value, what in error.readings.items():
            command = shlex.join(["python", "-m", "workbench", "new", str(options.data), option, value])
            print(f"  {command}  # {what}", file=sys.stderr)
        return 1
    print(f"wrote {written}: open it in JupyterLab, or run `jupyter lab {written}`")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m workbench", description="Many sliding windows over one stream: tools around it."
    )
    commands = parser.add_subparsers(dest="command", required=True)
    check = commands.add_parser("doctor", help="say which versions are here and what is missing")
    check.add_argument("--java", action="store_true", help="look at Java alone")
    commands.add_parser("prepare", help="once a machine: make the first queries start quickly (a minute, 180 MB)")
    commands.add_parser("calibrate", help="measure the constants of the cost model on this machine (minutes)")
    new = commands.add_parser("new", help="write a notebook that shows a file of events as a live dashboard")
    new.add_argument("data", type=Path, help="CSV, JSON lines, Parquet or Arrow; a file, or a folder of them")
    new.add_argument("--time", help="column of times (default: the first one)")
    for option, said in _LINES.items():
        new.add_argument(option, help=said)
    new.add_argument("--names", type=lambda text: text.split(","), help="names of columns, divided by commas")
    new.add_argument("--header", action=argparse.BooleanOptionalAction, help="whether the first line has names")
    new.add_argument("--to", type=Path, metavar="NOTEBOOK", help="where to write it (default: NAME.ipynb, here)")
    run = commands.add_parser("run-notebook", help="run a notebook without a browser and print what its cells said")
    run.add_argument("path", type=Path)
    run.add_argument("--timeout", type=int, default=300, help="seconds for one cell (default: %(default)s)")
    return parser


if __name__ == "__main__":
    sys.exit(main())
