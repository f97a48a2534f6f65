"""An archive of Spark's loaded classes, so that the next JVM maps them instead of loading them one by one.

Java's class data sharing halves the time until a cold kernel shows its first result (docs/decisions/0002). The
archive belongs to one Java and one PySpark, lies in the user's cache folder (some 180 MB), and is only ever an
acceleration: a JVM that cannot use it starts without.
"""

from __future__ import annotations

import os
import subprocess
import sys
from hashlib import sha256
from pathlib import Path

import pyspark

from workbench.cache import cache_folder
from workbench.errors import EngineError
from workbench.spark.java import JavaHome, find_java

#: Tells the process that makes the archive where to put it.
_MAKING = "WINQUERY_MAKE_ARCHIVE"
#: Seconds that making it may take on a slow machine.
_PATIENCE = 600


def jvm_options(java: JavaHome) -> list[str]:
    """The options that let a JVM use the archive, or make it; none where there is neither."""
    making = os.environ.get(_MAKING)
    if making:
        return [f"-XX:ArchiveClassesAtExit={making}"]
    path = archive_path(java)
    if path is None or not path.exists():
        return []
    return [f"-XX:SharedArchiveFile={path}", "-Xshare:auto", "-Xlog:cds=off", "-Xlog:cds+dynamic=off"]


def archive_path(java: JavaHome) -> Path | None:
    """Where the archive of this Java and this PySpark lies or would lie; None without a cache folder."""
    folder = cache_folder("java")
    # Java takes an archive only with the very jar files it was made from: their time stamps are part of the name, so
    # that an environment that is made anew gets an archive of its own.
    jars = Path(pyspark.__file__).parent / "jars"
    stamp = max((jar.stat().st_mtime_ns for jar in jars.glob("spark-core*.jar")), default=0)
    made_by = f"{java.executable.resolve()} {java.version} {pyspark.__version__} {pyspark.__file__} {stamp}"
    return None if folder is None else folder / f"classes-{sha256(made_by.encode()).hexdigest()[:12]}.jsa"


def prepare(program: str) -> Path | None:
    """Make the archive from the classes that ``program`` (Python source that runs a query) loads.

    Returns its path, at once where it is there already, or None where there is no cache folder. Takes about a
    minute, in a process of its own. Raises EngineError where the program or the JVM fails.
    """
    path = archive_path(find_java())
    if path is None or path.exists():
        return path
    aside = path.with_name(f"{path.name}.{os.getpid()}")
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, _MAKING: str(aside)},
        capture_output=True,
        text=True,
        timeout=_PATIENCE,
        check=False,
    )
    if done.returncode != 0 or not aside.exists():
        aside.unlink(missing_ok=True)
        raise EngineError(f"Spark's classes could not be archived:\n{done.stderr[-2_000:]}")
    os.replace(aside, path)
    return path
