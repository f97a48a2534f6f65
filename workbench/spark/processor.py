"""Spark's stateful operator around the sans-IO bucket operator: state blobs in, one result blob out, per bucket.

The state of a bucket is two values, ``meta`` and ``plan``, and a map of blocks, all of them opaque bytes; what is
written per micro-batch is what the operator says has changed. The plan comes with the first micro-batch and with each
that changes it, and is kept beside the state that it has made: docs/decisions/0004-plan-changes.md. Why the Row form:
docs/decisions/0001-stateful-operator.md.

At the start of every query Spark imports this in a process of its own, only to ask for the state's schema: what is
needed for more than that is imported where it is needed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from pyspark.sql import Row
from pyspark.sql.streaming import StatefulProcessor
from pyspark.sql.types import BinaryType, IntegerType, LongType, StringType, StructField, StructType

from workbench.errors import EngineError
from workbench.spark.epochs import in_force
from workbench.spark.residents import Residents, Step
from workbench.spark.spool import Spool
from workbench.spark.worker import settle

if TYPE_CHECKING:
    from workbench.runtime import BucketOperator

#: The rows that the operator sends on: one per bucket and micro-batch, with the version of the state that it led to.
OUTPUT = StructType(
    [StructField("payload", BinaryType()), StructField("bucket", IntegerType()), StructField("token", StringType())]
)

#: Values of the state, and the keys of its map.
CONTENT = StructType([StructField("content", BinaryType())])
BLOCK = StructType([StructField("block", LongType())])

_residents = Residents()


class BucketProcessor(StatefulProcessor):  # type: ignore[misc]
    """Runs the shared plan of one query for whatever buckets Spark hands over; payloads go by way of ``spool``.

    ``run`` tells the operators of one query run from those of others in the worker's memory. ``given`` are the
    plans (:func:`~workbench.runtime.wire.encode_plan`) of a query whose source sends none, by the micro-batch from
    which on they hold.
    """

    def __init__(self, run: str, spool: Spool, given: Mapping[int, bytes] | None = None) -> None:
        self._run = run
        self._spool = spool
        self._given = given

    def init(self, handle: Any) -> None:
        """Called by Spark once per task."""
        self._meta = handle.getValueState("meta", CONTENT)
        self._plan = handle.getValueState("plan", CONTENT)
        self._blocks = handle.getMapState("blocks", BLOCK, CONTENT)

    def handleInputRows(self, key: tuple[int], rows: Iterator[Any], timerValues: Any) -> Iterator[Row]:
        """All messages of one bucket and micro-batch; yields exactly one row."""
        settle()  # here: Spark also makes a processor just to ask for its state
        from workbench.runtime import BucketOperator
        from workbench.runtime.wire import is_plan

        payloads = [self._spool.get(bytes(row.payload)) for row in rows]
        plans = [payload for payload in payloads if is_plan(payload)] or self._new()
        step = self._step(plans[0] if plans else None, [each for each in payloads if not is_plan(each)])
        result, changes = _residents.run((self._run, key[0]), step, lambda: self._load(step.plan))
        assert changes is not None
        if changes.afresh:
            self._blocks.clear()
        if step.plan is not None:
            self._plan.update((step.plan,))
        for block, content in changes.put.items():
            self._blocks.updateValue((block,), (content,))
        for block in changes.remove:
            self._blocks.removeKey((block,))
        self._meta.update((changes.meta,))
        yield Row(payload=self._spool.put(result), bucket=key[0], token=BucketOperator.token_of(changes.meta))

    def _step(self, plan: bytes | None, payloads: list[bytes]) -> Step:
        from workbench.runtime import BucketOperator

        stored = self._meta.get()
        return Step("" if stored is None else BucketOperator.token_of(bytes(stored[0])), plan, payloads)

    def _new(self) -> list[bytes]:
        """The given plan of this micro-batch, where the state is of an older one."""
        if self._given is None:
            return []
        from workbench.runtime import BucketOperator
        from workbench.runtime.wire import decode_plan

        given, stored = in_force(self._given), self._meta.get()
        known = 0 if stored is None else BucketOperator.version_of(bytes(stored[0]))
        return [given] if known < decode_plan(given)[0] else []

    def _load(self, plan: bytes | None) -> BucketOperator:
        """The operator at the stored state; where there is none, at the beginning of the plan that has come."""
        from workbench.runtime import BucketOperator
        from workbench.runtime.wire import decode_plan
        from workbench.spark.fused import open_plan

        stored = self._meta.get()
        if stored is None and plan is None:
            raise EngineError("the first micro-batch of a stream has no plan")
        version, pickled = decode_plan(plan or b"" if stored is None else bytes(self._plan.get()[0]))
        operator = BucketOperator(open_plan(pickled), version)
        if stored is not None:
            operator.load(bytes(stored[0]), [bytes(content[0]) for content in self._blocks.values()])
        return operator
