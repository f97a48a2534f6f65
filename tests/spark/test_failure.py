"""One readable line out of the texts that Spark really prints."""

from __future__ import annotations

from workbench.spark.failure import root_cause, worker_trace

WORKER = """org.apache.spark.sql.streaming.StreamingQueryException: [STREAM_FAILED] Query terminated: Job aborted
Caused by: org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 in stage 1.0 failed 1 times
Driver stacktrace:
\tat org.apache.spark.scheduler.DAGScheduler.runJob(DAGScheduler.scala:1549)
Caused by: org.apache.spark.api.python.PythonException: Traceback (most recent call last):
  File "/x/workbench/spark/fused.py", line 12, in read
    raise error
{raised}

\tat org.apache.spark.api.python.BasePythonRunner$ReaderIterator.handlePythonException(PythonRunner.scala:600)
"""


def test_our_own_error_keeps_its_words() -> None:
    text = WORKER.format(raised="workbench.errors.DataError: `total` overflows\nhint: use `try_sum`")
    assert root_cause(text) == "`total` overflows\nhint: use `try_sum`"


def test_another_error_of_a_worker_is_named() -> None:
    for raised in ("ZeroDivisionError: division by zero", "KeyError"):
        assert root_cause(WORKER.format(raised=raised)) == raised


def test_the_last_of_several_tracebacks_counts() -> None:
    raised = (
        "KeyError: 'a'\n\nDuring handling of the above exception, another exception occurred:\n\n"
        'Traceback (most recent call last):\n  File "/x.py", line 3, in f\n    g()\n    ^^^\npkg.Wrong: b'
    )
    assert root_cause(WORKER.format(raised=raised)) == "Wrong: b"


def test_a_crashed_worker_is_placed() -> None:
    text = (
        "org.apache.spark.SparkException: Python worker exited unexpectedly (crashed): Fatal Python error: "
        "Segmentation fault\n\nCurrent thread 0x00007 (most recent call first):\n"
        '  File "/x/kernels/fold.py", line 7 in fold\n  File "/x/y.py", line 1 in main\n'
    )
    assert root_cause(text) == "a Python worker crashed: Segmentation fault in `fold` (/x/kernels/fold.py, line 7)"


def test_the_place_of_a_crash_is_in_the_thread_that_crashed() -> None:
    """Workers that hold state have threads that wait to be asked for it, and faulthandler tells of those first."""
    waiting = (
        "Python worker exited unexpectedly (crashed): Fatal Python error: Segmentation fault\n\n"
        "Thread 0x00007 (most recent call first):\n"
        '  File "/py/socket.py", line 294 in accept\n  File "/py/threading.py", line 982 in run\n\n'
    )
    crashed = 'Current thread 0x00008 (most recent call first):\n  File "/x/y.py", line 7 in crash\n'
    assert root_cause(waiting + crashed) == "a Python worker crashed: Segmentation fault in `crash` (/x/y.py, line 7)"
    outside = "Current thread 0x00008 (most recent call first):\n  <no Python frame>\n"
    for text in (waiting, waiting + outside):
        assert root_cause(text) == "a Python worker crashed: Segmentation fault"


def test_an_idle_process_that_was_killed_is_named() -> None:
    text = (
        "org.apache.spark.sql.streaming.StreamingQueryException: Stream closed\n"
        "Caused by: java.io.IOException: Stream closed\n"
        "\tat java.base/java.lang.ProcessBuilder$NullOutputStream.write(ProcessBuilder.java:445)\n"
        "\tat org.apache.spark.api.python.PythonWorkerFactory.stopWorker(PythonWorkerFactory.scala:523)\n"
    )
    assert root_cause(text) == "a Python process of Spark was killed while it was idle; start the query again"


def test_without_python_the_innermost_java_cause_counts() -> None:
    text = (
        "org.apache.spark.sql.streaming.StreamingQueryException: [STREAM_FAILED] ...\n\tat a.b.C(C.scala:1)\n"
        "Caused by: org.apache.spark.SparkException: cannot commit\n\tat a.b.C(C.scala:1)\n"
        "Caused by: java.io.IOException: No space left on device\n\tat a.b.C(C.scala:1)\n"
    )
    assert root_cause(text) == "IOException: No space left on device"


def test_a_java_error_that_came_through_the_callback() -> None:
    text = (
        "StreamingQueryException: An exception was raised by the Python Proxy. Return Message: "
        'Traceback (most recent call last):\n  File "/x/runner.py", line 1, in _apply\n    results.collect()\n'
        "py4j.protocol.Py4JJavaError: An error occurred while calling o92.collectToPython.\n"
        ": org.apache.spark.SparkException: cannot commit\n\tat a.b.C(C.scala:1)\n"
        "Caused by: java.io.IOException: No space left on device\n\tat a.b.C(C.scala:1)\n"
    )
    assert root_cause(text) == "IOException: No space left on device"


def test_a_stranger_on_a_port_of_spark_is_named() -> None:
    text = "StreamingQueryException: [STREAM_FAILED]\nCaused by: java.lang.NegativeArraySizeException: -16777216\n"
    assert "another program" in root_cause(text)


def test_a_machine_too_slow_for_spark_is_named() -> None:
    said = "SocketTimeoutException: Timed out while waiting for the Python worker to connect back"
    text = f"StreamingQueryException: [STREAM_FAILED]\nCaused by: java.net.{said}\n\tat a.b.C(C.scala:1)\n"
    assert "overloaded" in root_cause(text)


def test_the_trace_of_the_worker_without_that_of_java() -> None:
    trace = worker_trace(WORKER.format(raised="workbench.errors.DataError: `total` overflows\nhint: use `try_sum`"))
    assert trace is not None
    assert trace.splitlines()[0] == "Traceback (most recent call last):"
    assert trace.splitlines()[-2:] == ["workbench.errors.DataError: `total` overflows", "hint: use `try_sum`"]
    assert "PythonRunner" not in trace


def test_the_trace_of_a_crash() -> None:
    text = "SparkException: exited (crashed): Fatal Python error: Aborted\n\nCurrent thread:\n  File x\n\tat a.b.C\n"
    assert worker_trace(text) == "Fatal Python error: Aborted\n\nCurrent thread:\n  File x"
    assert worker_trace("java.io.IOException: No space left on device") is None


def test_what_spark_puts_behind_a_message_is_no_part_of_it() -> None:
    raised = "workbench.errors.SourceError: no column `key`\nhint: did you mean `kex`?"
    assert root_cause(
        f"{WORKER.format(raised=raised)}\n SQLSTATE: 38000\n=== Streaming Query ===\nIdentifier: x"
    ) == ("no column `key`\nhint: did you mean `kex`?")
