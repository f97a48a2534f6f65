"""The package for executors that do not have it: a zip beside the job, as ``spark-submit --py-files`` takes one.

What it stands on (numpy, numba, pyarrow, pandas, datasketches, and what PySpark itself wants) holds compiled code,
which Python cannot load from a zip: executors must have that. See docs/operations.md.
"""

from __future__ import annotations

import os
import zipfile
from pathlib import Path

from pyspark import SparkContext

#: Says of a context that its executors get the package: set on the context, so it ends with it.
_MARK = "_winquery_shipped"


def ship(context: SparkContext) -> None:
    """Send the package to all executors, those that come later included; once a context.

    It goes before whatever version they have, so that both ends of a stream are of one version. Cost: some hundred
    kilobytes, once an executor.
    """
    if getattr(context, _MARK, False):
        return
    # The context's own folder: executors fetch the file when they come, and it goes when the context ends.
    context.addPyFile(str(package_zip(Path(context._temp_dir) / "winquery.zip")))
    setattr(context, _MARK, True)


def package_zip(path: Path) -> Path:
    """Write the package as a zip to ``path``, and return that."""
    top = Path(__file__).parents[1]
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        # Kernels and widgets are links in a clone of the repository, folders in an installed package.
        for folder, _, names in os.walk(top, followlinks=True):
            for name in sorted(names):
                if name.endswith((".py", ".js", ".css")):
                    file = Path(folder, name)
                    archive.write(file, Path("workbench", file.relative_to(top)))
    return path
