"""A SPARK_HOME that makes Python workers start quickly.

Spark puts ``$SPARK_HOME/python/lib/pyspark.zip`` first on the path of its Python processes. A zip holds no compiled
modules, so each of the seven processes of a first query compiled PySpark anew, for 1.4 s of CPU. In a home without
that zip they import the installed PySpark, which is the same code.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import site
import sys
from hashlib import sha256
from pathlib import Path

import pyspark

from workbench.cache import cache_folder, put_script

#: Our daemon of Python workers, in place of PySpark's own.
DAEMON = "workbench.spark.daemon"
#: Starts it, if a driver that has this package from a path of its own has not left it without.
_START = (
    "import importlib.util, runpy; "
    f"daemon = '{DAEMON}' if importlib.util.find_spec('workbench') else 'pyspark.daemon'; "
    "runpy.run_module(daemon, run_name='__main__', alter_sys=True)"
)


def lean_home() -> Path | None:
    """A folder that links to the parts of the installed Spark that its launcher needs.

    None where Spark has to be taken as it is: somebody chose a SPARK_HOME, workers would not find the installed
    PySpark by themselves, there is no cache folder, or no links (Windows).
    """
    installed, folder = _installed(), cache_folder("spark")
    if "SPARK_HOME" in os.environ or installed is None or folder is None:
        return None
    home = folder / sha256(str(installed).encode()).hexdigest()[:12]
    home.mkdir(mode=0o700, exist_ok=True)
    for part in ("bin", "jars"):
        with contextlib.suppress(FileExistsError):
            (home / part).symlink_to(installed / part, target_is_directory=True)
    return home


def lean_python() -> Path | None:
    """This interpreter as a script, for a Spark that somebody else has started: its home and its daemon are settled.

    The script leaves PySpark's zip out of the path, and starts our daemon where PySpark's own is asked for, so that
    workers have done their imports when they are forked. None where Spark has to be taken as it is.
    """
    installed, folder = _installed(), cache_folder("python")
    if installed is None or folder is None:
        return None
    python, zipped = shlex.quote(sys.executable), shlex.quote(str(installed / "python" / "lib" / "pyspark.zip"))
    script = (
        "#!/bin/sh",
        "# Starts Python for Spark with modules that are compiled, and with the daemon that has imported them.",
        f"zipped={zipped}",
        'path=":$PYTHONPATH:"',
        'case "$path" in *":$zipped:"*) path="${path%%":$zipped:"*}:${path#*":$zipped:"}" ;; esac',
        'path="${path#:}"',
        'export PYTHONPATH="${path%:}"',
        f'[ "$*" = "-m pyspark.daemon pyspark.worker" ] && exec {python} -c {shlex.quote(_START)} pyspark.worker',
        f'exec {python} "$@"',
    )
    path = folder / sha256("\n".join(script).encode()).hexdigest()[:12] / "python"
    if not path.exists():
        put_script(path, script)
    return path


def _installed() -> Path | None:
    """PySpark's folder, where workers would find it by themselves and there are links and scripts (no Windows)."""
    installed = Path(pyspark.__file__).parent
    return installed if str(installed.parent) in site.getsitepackages() and os.name != "nt" else None
