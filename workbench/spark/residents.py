"""Where the decoded operator of a bucket lives: in one Python worker of a host, whichever of them Spark asks.

Spark gives the task of a bucket to any Python worker that is free. To bring the operator there would be to read and
decode the whole state, which costs more than a micro-batch. So the worker where it is already answers for it, and
the one that has the task writes what comes back::

    Spark -- task of bucket 0 --> worker B -- messages ----------> worker A, the home of bucket 0
    Spark <-- state, result ----- worker B <-- result, changes --- worker A

A home is a short cut, no authority: what counts is the stored state. Where a home is gone, or is not at the stored
version (a micro-batch whose changes were never written), the operator is loaded from the state, and its home is there
from then on. On Linux alone, whose abstract sockets leave no file behind; elsewhere each worker keeps its own.

The driver may ask a home too, where it is on the same machine: for the last results of a run whose state nobody will
ever want again (:class:`Homes`).
"""

from __future__ import annotations

import contextlib
import hashlib
import sys
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from multiprocessing.connection import Client, Connection, Listener
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from workbench.runtime import BucketOperator
    from workbench.runtime.state import StateChanges

#: A run, which nobody else can guess, and a bucket of it.
Name: TypeAlias = tuple[str, int]
#: A report, and what is to be written; nothing where the step was the last.
Answer: TypeAlias = "tuple[bytes, StateChanges | None]"

#: Operators that one process keeps, the latest used.
_KEPT = 16


@dataclass(frozen=True)
class Step:
    """A micro-batch of one bucket: the version of the state that it begins with, a plan if there is one, messages.

    ``last``: no other follows, so nothing is to be written, and the operator goes.
    """

    token: str
    plan: bytes | None
    payloads: list[bytes]
    last: bool = False

    def run(self, operator: BucketOperator) -> Answer:
        """The report, and what is to be written."""
        from workbench.runtime.wire import decode_plan
        from workbench.spark.fused import open_plan

        if self.plan is not None:
            version, pickled = decode_plan(self.plan)
            if version != operator.version:
                operator.change(open_plan(pickled), version)
        return operator.apply(self.payloads), None if self.last else operator.changes()


class Residents:
    """The operators of this process. For tasks, which come one at a time, and for other processes beside them."""

    def __init__(self) -> None:
        self._operators: OrderedDict[Name, BucketOperator] = OrderedDict()
        self._listening: set[Name] = set()
        self._lock = threading.Lock()

    def run(self, name: Name, step: Step, load: Callable[[], BucketOperator]) -> Answer:
        """Run a step where the operator is; ``load`` makes it from the stored state where it is nowhere.

        Raises what the step raises.
        """
        answer = self._run_here(name, step) or _ask(name, step)
        if answer is None:
            operator = load()
            answer = step.run(operator)
            self._settle(name, operator)
        return answer

    def _run_here(self, name: Name, step: Step) -> Answer | None:
        """None where this is not its home. An operator is away during a step, so that a failed one leaves none."""
        with self._lock:
            operator = self._operators.pop(name, None)
        if operator is None or operator.token != step.token:
            return None
        answer = step.run(operator)
        if not step.last:
            with self._lock:
                self._operators[name] = operator
        return answer

    def _settle(self, name: Name, operator: BucketOperator) -> None:
        with self._lock:
            self._operators[name] = operator
            old = list(self._operators)[:-_KEPT]
            for each in old:
                del self._operators[each]
            over = self._listening.intersection(old)
            listen = name not in self._listening and sys.platform == "linux"
        for each in over:
            _ask(each, None)
        if listen:
            self._listen(name)

    def _listen(self, name: Name) -> None:
        try:
            listener = Listener(_address(name), "AF_UNIX", authkey=_secret(name))
        except OSError:
            return  # another process has just become the home
        with self._lock:
            self._listening.add(name)
        threading.Thread(target=self._serve, args=(name, listener), name="winquery resident", daemon=True).start()

    def _serve(self, name: Name, listener: Listener) -> None:
        """Answer for one bucket until there is none to answer for."""
        while True:
            try:
                with listener.accept() as asking:
                    if not self._answer(name, listener, asking):
                        return
            except OSError as error:
                # Whoever asked may have been killed. Else nobody can be heard, as where no more files can be opened,
                # and those who wait would do so for ever: this is no home any more.
                if not isinstance(error, ConnectionError):
                    self._leave(name, listener)
                    return
            except Exception:
                continue

    def _answer(self, name: Name, listener: Listener, asking: Connection) -> bool:
        """Answer one question; whether this is still the home."""
        step, answer = asking.recv(), None
        with contextlib.suppress(Exception):
            answer = None if step is None else self._run_here(name, step)
        at_home = answer is not None and not step.last
        if not at_home:
            self._leave(name, listener)  # before the answer: the name is free when that is there
        asking.send(answer)
        return at_home

    def _leave(self, name: Name, listener: Listener) -> None:
        listener.close()
        with self._lock:
            self._listening.discard(name)


class Homes:
    """The driver's view of the operators of one run: at which version of its state each bucket is."""

    def __init__(self, run: str) -> None:
        self.run = run
        self._tokens: dict[int, str] = {}

    def note(self, tokens: Mapping[int, str]) -> None:
        """The versions by bucket that a micro-batch has led to."""
        self._tokens.update(tokens)

    def last_words(self, message: bytes) -> list[bytes] | None:
        """The reports of all buckets on one more message, without Spark; their operators go with that.

        None where not all of them are at home and at the right version: then some may be gone, and the stored state
        has to answer. Only while no query runs, and only where nobody will go on from the state.
        """

        def ask(bucket: tuple[int, str]) -> Answer | None:
            key, token = bucket
            return _ask((self.run, key), Step(token, None, [message], last=True))

        if not self._tokens:
            return None
        with ThreadPoolExecutor(len(self._tokens)) as pool:
            answers = list(pool.map(ask, self._tokens.items()))
        reports = [report for report, _ in filter(None, answers)]
        return reports if len(reports) == len(answers) else None


def _ask(name: Name, step: Step | None) -> Answer | None:
    """The answer of an operator's home, if there is one; a step of None ends it."""
    if sys.platform != "linux":
        return None
    try:
        with _connect(name) as home:
            home.send(step)
            answer: Answer | None = home.recv()
            return answer
    except (OSError, EOFError):
        return None


def _connect(name: Name) -> Connection:
    return Client(_address(name), "AF_UNIX", authkey=_secret(name))


def _address(name: Name) -> str:
    """A name among Linux's abstract sockets, which end with their process; who can see it cannot get in by it."""
    return "\0winquery-" + hashlib.sha256(repr(name).encode()).hexdigest()[:24]


def _secret(name: Name) -> bytes:
    return name[0].encode()
