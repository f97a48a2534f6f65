"""The one line that matters in a failure of Spark, dug out of pages of Java and Python traces."""

from __future__ import annotations

import re

_TRACE = "Traceback (most recent call last):"
#: The first line of an exception after its frames: a dotted name, a colon, a message.
_RAISED = re.compile(r"^(?P<kind>[A-Za-z_][\w.]*)(?:: (?P<text>.*))?$", re.MULTILINE)
_CAUSED = re.compile(r"^Caused by: (?P<kind>[\w.$]+)(?:: (?P<text>.*))?$", re.MULTILINE)
#: The first bytes of ZeroMQ, of a Jupyter client that looks for a kernel that is gone, read as a length.
_STRANGER = "NegativeArraySizeException: -16777216"
#: Spark waits ten seconds for a Python process of its own to come up, whatever is set.
_SLOW = "Timed out while waiting for the Python worker to connect back"
#: Of trying to stop an idle Python process that is dead, as is the one that started it.
KILLED_IDLE = "PythonWorkerFactory.stopWorker"
#: How lines begin that Spark puts behind the message of an error.
_BEHIND = ("\tat ", "Driver stacktrace", "JVM stacktrace", " SQLSTATE: ", "=== Streaming Query ===")
_CRASH = re.compile(r"Fatal Python error: (?P<what>.*)")
#: The innermost frame of the thread that crashed, which is told after the threads that only waited.
_CRASHED_IN = re.compile(
    r"^Current thread .*\n"
    r'\s*File "(?P<file>[^"]+)", line (?P<line>\d+) in (?P<function>\S+)',
    re.MULTILINE,
)


def root_cause(text: str) -> str:
    """One readable message from the full text of a Spark exception.

    An error of ours keeps its own words; another error of a Python worker is named with its kind; a crashed worker
    with the place it crashed in; else the innermost Java cause.
    """
    crash = _CRASH.search(text)
    if crash is not None:
        frame = _CRASHED_IN.search(text, crash.end())
        place = f" in `{frame['function']}` ({frame['file']}, line {frame['line']})" if frame else ""
        return f"a Python worker crashed: {crash['what'].strip()}{place}"
    if _TRACE in text:
        return _python(text[text.rindex(_TRACE) + len(_TRACE) :])
    if "Python worker exited unexpectedly" in text:
        return "a Python worker ended unexpectedly; the machine may be short of memory"
    if _STRANGER in text:
        return "another program spoke to a port on which Spark awaited its Python worker; start the query again"
    if _SLOW in text:
        return "a Python process of Spark did not start within 10 s, so the machine is overloaded; start again later"
    if KILLED_IDLE in text:
        return "a Python process of Spark was killed while it was idle; start the query again"
    return _java(text)


def worker_trace(text: str) -> str | None:
    """The Python traceback in the full text of a Spark exception, or the report of a crash; None where there is none.

    Of several tracebacks it is the last one: where the work was done, not where it was waited for.
    """
    crash = _CRASH.search(text)
    if crash is None and _TRACE not in text:
        return None
    begin = text.rindex(_TRACE) if crash is None else crash.start()
    lines = []
    for line in text[begin:].splitlines():
        if line.startswith((*_BEHIND, "Caused by: ")):
            break
        lines.append(line)
    return "\n".join(lines).rstrip()


def _python(trace: str) -> str:
    """The raised error below the frames of a Python traceback, with the further lines of its message."""
    raised = _RAISED.search(trace)
    if raised is None:
        return trace.strip().splitlines()[-1]
    if raised["kind"].endswith("Py4JJavaError"):
        return _java(trace[raised.end() :])
    words = [raised["text"] or ""]
    for line in trace[raised.end() :].splitlines()[1:]:
        if not line.strip() or line.startswith((*_BEHIND, "  File ")):
            break
        words.append(line)
    message = "\n".join(words).strip()
    if raised["kind"].startswith("workbench."):
        return message
    return f"{raised['kind'].rsplit('.', 1)[-1]}: {message}".rstrip(": ")


def _java(text: str) -> str:
    """The innermost cause of a Java exception, else its first line."""
    causes = list(_CAUSED.finditer(text))
    if causes:
        return f"{causes[-1]['kind'].rsplit('.', 1)[-1]}: {causes[-1]['text'] or ''}".rstrip(": ")
    return next((line.strip() for line in text.splitlines() if line.strip()), "unknown failure of Spark")
