"""A SPARK_HOME that makes Python workers start quickly.

Spark puts ``$SPARK_HOME/python/lib/pyspark.zip`` first on the path of its Python processes. A zip holds no compiled
modules, so each of the seven processes of a first query compiled PySpark anew, for 1.4 s of CPU. In a home without
that zip they import the installed PySpark, which is the same code.
"""

from __future__ import annotations

import contextlib
import os
import site
from hashlib import sha256
from pathlib import Path

import pyspark

from workbench.cache import cache_folder


def lean_home() -> Path | None:
    """A folder that links to the parts of the installed Spark that its launcher needs.

    None where Spark has to be taken as it is: somebody chose a SPARK_HOME, workers would not find the installed
    PySpark by themselves, there is no cache folder, or no links (Windows).
    """
    installed = Path(pyspark.__file__).parent
    found_by_workers = str(installed.parent) in site.getsitepackages()
    folder = cache_folder("spark")
    if "SPARK_HOME" in os.environ or not found_by_workers or folder is None or os.name == "nt":
        return None
    home = folder / sha256(str(installed).encode()).hexdigest()[:12]
    home.mkdir(mode=0o700, exist_ok=True)
    for part in ("bin", "jars"):
        with contextlib.suppress(FileExistsError):
            (home / part).symlink_to(installed / part, target_is_directory=True)
    return home
