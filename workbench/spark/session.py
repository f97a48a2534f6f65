"""The Spark session our queries run in: the user's Spark if there is one, else a local one with good defaults.

Our queries get a session object of their own (``newSession``) on the shared context: its SQL settings are ours, the
user's are never touched, and nobody's context is ever stopped by us.
"""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import IO

from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkRuntimeError
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from workbench.errors import EngineError
from workbench.spark.archive import jvm_options
from workbench.spark.home import DAEMON, lean_home, lean_python
from workbench.spark.java import ensure_java

#: More shuffle partitions than this cost more per micro-batch than they save.
LOCAL_BUCKETS = 8

#: Our JVM plans and shuffles a few blobs; the work is done in Python. Its second compiler would take longer than it
#: ever wins back: docs/decisions/0002-a-light-jvm.md.
_JVM_OPTIONS = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")

_LOOPBACK = "127.0.0.1"
#: Whether Spark runs a micro-batch without rows to close windows of its own.
_NO_DATA = "spark.sql.streaming.noDataMicroBatches.enabled"

_lock = threading.RLock()
_ours: tuple[SparkContext, SparkSession] | None = None
#: Contexts that start Python as we want it for now: the interpreter that is theirs, and how many need ours.
_lent: dict[SparkContext, tuple[str, int]] = {}
_lending = threading.Lock()
#: What the JVM and its Python workers print, instead of into the notebook; an unnamed file, gone with its processes.
_log: IO[bytes] | None = None
#: A start of Spark that is under way.
_begun: Future[SparkContext] | None = None
#: The context of the process that this one is a fork of, as by a pool of `multiprocessing`.
_inherited: SparkContext | None = None


#: All cores, and another try for a task whose worker was killed; Spark's own default is to give up at once.
LOCAL = "local[*,3]"


def get_session(*, master: str = LOCAL, ui: bool = False) -> SparkSession:
    """The session for our queries; the same object until its Spark context ends.

    A running context is reused and its settings stay as they are; ``master`` and ``ui`` matter only where none runs.
    A context whose JVM has died is replaced. Raises EngineError without a fit Java, or under Spark Connect.
    """
    global _ours
    with _lock:
        context = _running_context() if _begun is None else None
        fresh = context is None
        if context is None:
            context = _started(master, ui)
        if _ours is None or _ours[0] is not context:
            session = SparkSession.builder.getOrCreate().newSession()
            for name, value in _sql_settings(context).items():
                session.conf.set(name, value)
            _ours = context, session
            if fresh:
                threading.Thread(target=_warm_up, args=(session,), name="winquery warm-up", daemon=True).start()
        return _ours[1]


def session_like(theirs: SparkSession) -> SparkSession:
    """A session for a stream of the user's: the settings of their session, and above them what our queries need."""
    session = theirs.newSession()
    for name, value in theirs.conf.getAll.items():
        if session.conf.isModifiable(name) and session.conf.get(name, None) != value:
            session.conf.set(name, value)
    for name, value in _sql_settings(theirs.sparkContext).items():
        # Operators of the user's may wait for a micro-batch without rows, in which Spark closes their windows.
        if name != _NO_DATA:
            session.conf.set(name, value)
    return session


def is_running() -> bool:
    """Whether :func:`get_session` would answer at once."""
    return _begun is None and _running_context() is not None


def bucket_count(context: SparkContext) -> int:
    """Shuffle partitions, and so buckets, of our queries: one per core, few locally."""
    return max(1, min(context.defaultParallelism, LOCAL_BUCKETS if is_local(context) else 4 * LOCAL_BUCKETS))


@contextlib.contextmanager
def this_python(context: SparkContext) -> Iterator[None]:
    """Functions that are handed to Spark inside run on this very interpreter.

    A context of the user's may name another one, often the `python3` on PATH, which lacks our packages. On a cluster
    the executors' interpreter is for whoever set the cluster up to choose. Several threads may be inside at a time:
    the last one out gives the context back as it was.
    """
    if not is_local(context):
        yield
        return
    with _lending:
        theirs, users = _lent.get(context, (context.pythonExec, 0))
        _lent[context] = theirs, users + 1
        context.pythonExec = _python_for(context)
    try:
        yield
    finally:
        with _lending:
            theirs, users = _lent.pop(context)
            if users > 1:
                _lent[context] = theirs, users - 1
            else:
                context.pythonExec = theirs


def _python_for(context: SparkContext) -> str:
    """How Python processes of our queries are started: in one process with a JVM of the user's by way of a script.

    A JVM of ours starts them well by itself; executors may have another version of this package than the driver.
    """
    theirs = context.getConf().get("spark.python.daemon.module") != DAEMON
    script = lean_python() if theirs and context.master.partition("[")[0] == "local" else None
    return str(script or sys.executable)


def log_tail(lines: int = 20) -> str:
    """The last lines that a JVM of ours and its workers printed; empty where the JVM is the user's."""
    if _log is None:
        return ""
    size = os.fstat(_log.fileno()).st_size
    text = os.pread(_log.fileno(), 64_000, max(0, size - 64_000)).decode(errors="replace")
    return "\n".join(text.splitlines()[-lines:])


def is_local(context: SparkContext) -> bool:
    """Whether all of Spark is on this machine."""
    return _is_master_local(context.master)


def _is_master_local(master: str) -> bool:
    """Whether all of Spark is on this machine: ``local[...]``, or ``local-cluster[...]``, a cluster of processes."""
    return master.startswith("local")


def _running_context() -> SparkContext | None:
    """The live context of this process. A dead one is forgotten, so that a new one can start."""
    if "SPARK_CONNECT_MODE_ENABLED" in os.environ:
        raise EngineError(
            "this process uses Spark Connect, whose callbacks cannot reach the notebook",
            hint="use a classic session: `SparkSession.builder.master('local[*]').getOrCreate()` in a fresh kernel",
        )
    context = SparkContext._active_spark_context
    if context is not None and context is _inherited:
        # Both would talk to the JVM by the same sockets, and each would take answers that are for the other.
        raise EngineError(
            "this process is a fork of the one that started Spark, and cannot use it",
            hint="run the query in the notebook, or start the process by `multiprocessing.get_context('spawn')`",
        )
    if context is not None and not is_alive(context):
        _forget(context)
        return None
    return context


def _forked() -> None:
    """Nothing of the parent's is used in a fork; no lock is held that another thread held there."""
    global _inherited, _lock, _begun
    _inherited, _lock, _begun = SparkContext._active_spark_context, threading.RLock(), None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)


def is_alive(context: SparkContext) -> bool:
    """Whether a Spark context has been stopped neither by us nor by anyone else, and its JVM answers."""
    if context._jsc is None:
        return False
    try:
        return not context._jsc.sc().isStopped()
    except Exception:  # py4j raises whatever the broken socket gave: all of it means that the JVM is gone
        return False


def _forget(context: SparkContext) -> None:
    """Drop PySpark's process-wide references to a JVM that has died; ``SparkContext.stop`` would need that JVM."""
    gateway = SparkContext._gateway
    with contextlib.suppress(Exception):
        context._accumulatorServer.shutdown()
    with contextlib.suppress(Exception):
        context._accumulatorServer.server_close()
    with contextlib.suppress(Exception):
        gateway.shutdown()
    process = getattr(gateway, "proc", None)
    if process is not None:
        process.stdin.close()
        process.wait(timeout=5)
    context._jsc = None
    SparkContext._active_spark_context = None
    SparkContext._gateway = SparkContext._jvm = None
    SparkSession._instantiatedSession = None


def _started(master: str, ui: bool) -> SparkContext:
    """A new context. It is made on a thread of its own, which a Ctrl-C does not reach.

    So whoever waits can be interrupted without leaving half a Spark behind, with which no other could ever start; who
    comes next waits for the same one. And PySpark, whose own handler of Ctrl-C cancels all jobs, and with them live
    queries, sets it on the main thread alone.
    """
    global _begun
    if _begun is None:
        _begun = Future()
        work = threading.Thread(target=_settle, args=(_begun, master, ui), name="winquery start", daemon=True)
        work.start()
    try:
        return _begun.result()
    finally:
        if _begun.done():
            _begun = None


def _settle(begun: Future[SparkContext], master: str, ui: bool) -> None:
    try:
        begun.set_result(_start(master, ui))
    except BaseException as error:
        begun.set_exception(error)


def _start(master: str, ui: bool) -> SparkContext:
    global _log
    conf = SparkConf(loadDefaults=False).setAppName("winquery").setMaster(master)
    for name, value in {**_core_settings(ui), **(_local_settings() if _is_master_local(master) else {})}.items():
        conf.set(name, value)
    # Workers take this very interpreter: PySpark reads the environment once, when a context starts.
    python = os.environ.get("PYSPARK_PYTHON", sys.executable)
    address = os.environ.get("SPARK_LOCAL_IP", _LOOPBACK) if _is_master_local(master) else None
    with (
        _environment("PYSPARK_PYTHON", python),
        _environment("SPARK_HOME", lean_home()),
        _environment("SPARK_LOCAL_IP", address),
    ):
        if SparkContext._gateway is None:
            options = " ".join([*_JVM_OPTIONS, *jvm_options(ensure_java())])
            conf.set("spark.driver.extraJavaOptions", options)
            if master.startswith("local-cluster"):
                conf.set("spark.executor.extraJavaOptions", options)
            _log = tempfile.TemporaryFile()  # noqa: SIM115 - it lives as long as the JVM
            try:
                gateway = launch_gateway(conf, {"stdout": _log, "stderr": _log})
            except PySparkRuntimeError as error:
                raise EngineError(
                    f"Java did not start Spark:\n{log_tail(5)}", hint="`python -m workbench doctor` checks the set-up"
                ) from error
            return SparkContext(conf=conf, gateway=gateway)
        return SparkContext(conf=conf)


def _warm_up(session: SparkSession) -> None:
    """Start the daemon of Python workers while the user still thinks; the first query would wait for it."""
    with contextlib.suppress(Exception):  # whatever is wrong will be told by the first query
        session.range(1).mapInArrow(lambda batches: batches, "id long").collect()


def _core_settings(ui: bool) -> dict[str, str]:
    return {
        "spark.ui.enabled": str(ui).lower(),
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "WARN",
        "spark.python.worker.faulthandler.enabled": "true",
        # One task per core and all data in blobs: waiting for a "better" core only delays a batch.
        "spark.locality.wait": "0s",
    }


def _local_settings() -> dict[str, str]:
    """Where all of Spark is on this machine. On a cluster, addresses, folders and Pythons are of its own choice."""
    scratch = tempfile.gettempdir()
    return {
        # Loopback only: nothing of a notebook's Spark should listen on the network.
        "spark.driver.bindAddress": _LOOPBACK,
        "spark.driver.host": _LOOPBACK,
        # Files, not ports: clients of Jupyter kernels that are gone try their ports for ever, and a worker's new
        # port may be one of them. What they send then is read as a length, and the query fails.
        "spark.python.unix.domain.socket.enabled": str(os.name == "posix").lower(),
        "spark.local.dir": scratch,
        # Made only when somebody saves a table; the default would litter the folder of the notebook.
        "spark.sql.warehouse.dir": os.path.join(scratch, f"winquery-warehouse-{os.getpid()}"),
        "spark.pyspark.python": sys.executable,
        "spark.python.daemon.module": DAEMON,
    }


def _sql_settings(context: SparkContext) -> dict[str, str]:
    """Settings of our session alone. Every one either is needed for right results or was measured to help."""
    streaming = "org.apache.spark.sql.execution.streaming"
    settings = {
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": str(bucket_count(context)),
        # A backfill has few messages for each bucket, and each bucket shall have a core: to count them and plan once
        # more in between, as adaptive execution does, costs 0.1 s for nothing.
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.streaming.stateStore.providerClass": f"{streaming}.state.RocksDBStateStoreProvider",
        # Write what changed in a micro-batch, not whole RocksDB files.
        "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
        # Our end of stream is an offset, so a batch without data never has to close a window.
        _NO_DATA: "false",
        "spark.sql.streaming.pollingDelay": "50ms",
        "spark.sql.streaming.minBatchesToRetain": "10",
        "spark.sql.execution.pyspark.python": _python_for(context),
        # Else workers of level 1 and of operators have unequal environments, and Spark keeps a daemon and workers for
        # each kind: of one, all take the setting of the session, of the other, some take that of the context.
        "spark.sql.execution.pyspark.udf.simplifiedTraceback.enabled": "false",
        "spark.sql.execution.pyspark.udf.faulthandler.enabled": context.getConf().get(
            "spark.python.worker.faulthandler.enabled", "false"
        ),
        "spark.sql.execution.arrow.pyspark.enabled": "true",
    }
    if is_local(context):
        # The usual manager runs some 40 programs (`chmod`, `readlink`) per micro-batch on a local disk, this one 8.
        manager = f"{streaming}.checkpointing.FileSystemBasedCheckpointFileManager"
        settings["spark.sql.streaming.checkpointFileManagerClass"] = manager
    return settings


@contextlib.contextmanager
def _environment(name: str, value: str | Path | None) -> Iterator[None]:
    """Set a variable for a while, unless ``value`` is None."""
    before = os.environ.get(name)
    if value is not None:
        os.environ[name] = str(value)
    try:
        yield
    finally:
        if before is not None:
            os.environ[name] = before
        elif value is not None:
            del os.environ[name]
