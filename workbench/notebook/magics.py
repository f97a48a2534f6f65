"""``%%winquery`` and ``%winquery``: thin over :mod:`workbench.notebook.api`."""

from __future__ import annotations

from typing import Any

from IPython.core.interactiveshell import InteractiveShell
from IPython.core.magic import Magics, line_cell_magic, magics_class
from IPython.core.magic_arguments import argument, magic_arguments, parse_argstring
from IPython.display import display

from workbench.errors import QueryError, did_you_mean
from workbench.notebook import api
from workbench.plan import explain
from workbench.session import LiveQuery, default_session

_COMMANDS = ("list", "status", "explain", "plan", "stop", "sources")


@magics_class
class WinqueryMagics(Magics):
    """The magics of the workbench."""

    @magic_arguments()
    @argument("name", nargs="?", default=None, help="name of the query; the variable that holds its handle")
    @argument("--source", "-s", default=None, help="source to read where the SQL leaves it open")
    @argument("--live", "-l", action="store_true", help="show a live, zoomable picture below the cell")
    @argument("--explain", "-e", action="store_true", help="print the shared plan as well")
    @argument("--dry-run", "-n", action="store_true", help="check the SQL and print the plan; start nothing")
    @line_cell_magic
    def winquery(self, line: str, cell: str | None = None) -> Any:
        """Run SQL over a stream as part of its shared plan.

        The cell holds one statement, or several on one source. Running the cell again replaces its queries. In a
        line of its own: ``%winquery list | sources | status [NAME] | explain NAME | plan NAME | stop [NAME]``.
        """
        if cell is None:
            return self._command(line.split())
        options = parse_argstring(type(self).winquery, line)
        name = options.name or "query"
        if not name.isidentifier():
            raise QueryError(f"`{name}` cannot name a query", hint="use letters, digits and `_`")
        queries = api.bind(cell, name, options.source)
        if options.explain or options.dry_run:
            print(explain(default_session().plan(queries)))
        if options.dry_run:
            return None
        if default_session().is_cold():
            print("starting Spark, once a kernel: some ten seconds", flush=True)
        handles = default_session().start(queries)
        assert self.shell is not None
        self.shell.push({handle.name: handle for handle in handles})
        if options.live:
            # Bokeh is loaded while Spark prepares the first batch.
            from workbench.notebook.dashboards import show

            for handle in handles:
                show(handle)
            return None
        print("\n".join(f"`{handle.name}` runs: {handle.name}.results(), .status(), .stop()" for handle in handles))
        return None

    def _command(self, words: list[str]) -> Any:
        command, names = (words[0], words[1:]) if words else ("list", [])
        if command not in _COMMANDS:
            raise QueryError(f"no command `{command}`", hint=did_you_mean(command, _COMMANDS, "command"))
        if command == "sources":
            print("\n".join(map(repr, api.sources().values())) or "no source yet: workbench.source(...)")
            return
        handles = [_running(name) for name in names] or api.queries()
        if not handles:
            print("no query is running")
        for handle in handles:
            if command == "list":
                print(f"{handle.name} on {handle.query.stream.name}: {handle.progress().state}")
            elif command == "status":
                print(handle.status())
            elif command == "explain":
                print(handle.explain())
            elif command == "plan":
                display(handle.plan())
            else:
                handle.stop()


def _running(name: str) -> LiveQuery:
    handles = {handle.name: handle for handle in api.queries()}
    if name not in handles:
        raise QueryError(f"no running query `{name}`", hint=did_you_mean(name, handles, "running query"))
    return handles[name]


def load_ipython_extension(shell: InteractiveShell) -> None:
    """``%load_ext workbench``. Loading twice changes nothing."""
    shell.register_magics(WinqueryMagics)
