"""``%%winquery`` and ``%winquery``: thin over :mod:`workbench.notebook.api`."""

from __future__ import annotations

import argparse
import shlex
from collections import ChainMap
from typing import Any, NoReturn

from IPython.core.error import UsageError
from IPython.core.interactiveshell import InteractiveShell
from IPython.core.magic import Magics, line_cell_magic, magics_class
from IPython.core.magic_arguments import argument, magic_arguments

from workbench.errors import QueryError, WorkbenchError, did_you_mean
from workbench.language.parameters import read_value
from workbench.notebook import api
from workbench.notebook.commands import run_command
from workbench.notebook.completion import add_completions
from workbench.notebook.failed import FailedQuery
from workbench.plan import explain
from workbench.session import default_session
from workbench.session.status import unattended

_EXAMPLES = """
examples:
  %%winquery delays --source flights --live
  SELECT carrier, avg(dep_delay) AS mean FROM flights
  WHERE dep_delay > {{limit}}
  GROUP BY carrier, zoom(ts, '15 minutes / 1 minute', '1 day / 1 hour')

  %%winquery --save late            keep a SELECT without windows under a name
  %%winquery worst --with late      ... FROM late GROUP BY ...
  %%winquery d << --param limit=30  the handle, or the failed query, in `d`

`%winquery help` lists the commands; docs/sql.md is the reference of the language.
"""


@magics_class
class WinqueryMagics(Magics):
    """The magics of the workbench."""

    @magic_arguments()
    @argument("name", nargs="?", default=None, help="name of the query; the variable that holds its handle")
    @argument("--source", "-s", default=None, help="source to read where the SQL leaves it open")
    @argument("--live", "-l", action="store_true", help="show a live, zoomable picture below the cell")
    @argument("--from-now", action="store_true", help="join the running plan at once, without rows from before")
    @argument("--numerics", default=None, metavar="HOW", help="`fast` lets aggregates of floats be differences of "
              "prefixes, at a cost in exactness; `exact` is the default")  # fmt: skip
    @argument("--explain", "-e", action="store_true", help="print the shared plan as well")
    @argument("--dry-run", "-n", action="store_true", help="check the SQL and print the plan; start nothing")
    @argument("--param", "-p", action="append", default=[], metavar="NAME=VALUE", help="a value for {{NAME}}; others "
              "are the variables of the notebook")  # fmt: skip
    @argument("--save", default=None, metavar="NAME", help="keep the cell, a SELECT without windows, as a snippet")
    @argument("--with", "-w", dest="snippets", action="append", default=[], metavar="NAME[,NAME]",
              help="snippets that FROM may use")  # fmt: skip
    @argument("--out", "-o", default=None, metavar="NAME", help="variable for the handle, or for the failed query; "
              "`NAME <<` is the same")  # fmt: skip
    @argument("--help", "-h", action="store_true", help="show this text")
    @line_cell_magic
    def winquery(self, line: str, cell: str | None = None) -> Any:
        """Run SQL over a stream as part of its shared plan.

        The cell holds one statement, or several on one source. Running the cell again replaces its queries. In a
        line of its own: ``%winquery list``, ``%winquery status NAME`` ...; ``%winquery help`` tells all.
        """
        try:
            if cell is None:
                return self._line(line)
            options = _options(line)
            if options.help:
                _print_help()
                return None
            return self._cell(options, cell)
        except WorkbenchError:
            raise
        except Exception as error:
            error.add_note(
                "This is a fault of winquery, not of your cell: please report it with the cell, this trace and what "
                "`python -m workbench doctor` prints."
            )
            raise

    def _line(self, line: str) -> Any:
        if line.strip() in ("--help", "-h"):
            return _print_help()
        return run_command(line.split())

    def _cell(self, options: argparse.Namespace, cell: str) -> None:
        assert self.shell is not None
        for name in filter(None, (options.name, options.out)):
            api.check_variable(name, self.shell.user_ns)
        try:
            if options.save is not None:
                self._save(options, cell)
            else:
                self._run(options, cell)
        except WorkbenchError as error:
            if options.out is not None:
                self._push({options.out: FailedQuery(options.name or options.out, cell, error)})
            raise

    def _run(self, options: argparse.Namespace, cell: str) -> None:
        name = options.name or options.out or "query"
        _warn_of_snippets(options.snippets)
        queries = api.bind(
            cell,
            name,
            options.source,
            snippets=options.snippets,
            parameters=self._parameters(options.param),
            numerics=options.numerics,
        )
        if options.live:
            api.require_picture(queries)
        if options.explain or options.dry_run:
            print(explain(default_session().plan(queries)))
        if options.dry_run:
            return
        if default_session().is_cold():
            print("starting Spark, once a kernel: ten seconds, more on a busy machine", flush=True)
        handles = default_session().start(queries, history=False if options.from_now else None)
        self._push({handle.name: handle for handle in handles})
        if options.out is not None:
            self._push({options.out: handles[0] if len(handles) == 1 else handles})
        background = handles[0].status().background if handles else ()
        if background:
            print(unattended(background))
        if options.live:
            # Bokeh is loaded while Spark prepares the first batch.
            from workbench.notebook.dashboards import show

            for handle in handles:
                show(handle)
            return
        print("\n".join(f"`{handle.name}` runs: {handle.name}.results(), .status(), .stop()" for handle in handles))

    def _save(self, options: argparse.Namespace, cell: str) -> None:
        given = [option for option in ("out", "live", "explain", "dry_run", "numerics") if getattr(options, option)]
        if options.name or given:
            word = options.name or f"--{given[0].replace('_', '-')}"
            raise QueryError(f"`{word}` means nothing beside `--save`: a snippet does not run", hint="leave it out")
        relation = default_session().save(
            options.save,
            cell,
            source=options.source,
            snippets=options.snippets,
            parameters=self._parameters(options.param),
        )
        if options.save in default_session().sources:
            print(f"`{options.save}` is a source as well: FROM means the source, or the snippet behind --with")
        used = ",".join([*options.snippets, options.save])
        print(f"saved `{options.save}` ({', '.join(relation.names)}): use it with --with {used}")

    def _parameters(self, given: list[str]) -> ChainMap[str, object]:
        """The values of ``--param``, before the variables of the notebook."""
        own: dict[str, object] = {}
        for entry in given:
            name, sign, value = entry.partition("=")
            if not sign or not name.isidentifier():
                raise QueryError(f"cannot read the parameter `{entry}`", hint="write it as `--param name=value`")
            own[name] = read_value(value)
        assert self.shell is not None
        return ChainMap(own, self.shell.user_ns)

    def _push(self, values: dict[str, object]) -> None:
        assert self.shell is not None
        self.shell.push(values)


def _options(line: str) -> argparse.Namespace:
    """The options of a cell; ``NAME <<`` at its beginning is ``-o NAME``."""
    before, arrow, after = line.partition("<<")
    out = before.strip() if arrow and (before.strip().isidentifier() or not before.strip()) else None
    if out == "":
        raise QueryError("`<<` needs a name before it", hint="such as `%%winquery delays << --live`")
    try:
        words = shlex.split(line if out is None else after)
        options = WinqueryMagics.winquery.parser.parse_args(words)
    except (UsageError, ValueError) as error:
        _refuse_option(str(error), line)
    options.out = out or options.out
    options.snippets = [name for entry in options.snippets for name in entry.split(",") if name]
    return options


def _refuse_option(message: str, line: str) -> NoReturn:
    """The error for a line that argparse cannot read, with the option that may be meant."""
    known = [word for action in WinqueryMagics.winquery.parser._actions for word in action.option_strings]
    unknown = next(
        (word for word in line.split() if word.startswith("-") and word.partition("=")[0] not in known), ""
    )
    near = did_you_mean(unknown, [word for word in known if word.startswith("--")], "option") if unknown else ""
    fault = f"unknown option `{unknown}`" if near.startswith("did") else message.partition("\n")[0]
    raise QueryError(fault, hint=near if near.startswith("did") else "`%winquery --help` lists the options") from None


def _warn_of_snippets(snippets: list[str]) -> None:
    for name in snippets:
        if name in default_session().sources:
            print(f"`{name}` is a source and a snippet: here FROM {name} is the snippet, as --with says")


def _print_help() -> None:
    text = WinqueryMagics.winquery.parser.format_help()
    print(text.replace("::\n\n  %winquery", "%%winquery", 1) + _EXAMPLES)


def load_ipython_extension(shell: InteractiveShell) -> None:
    """``%load_ext workbench``. Loading twice changes nothing."""
    shell.register_magics(WinqueryMagics)
    add_completions(shell)
