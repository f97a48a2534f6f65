"""Spark's stateful operator around the sans-IO bucket operator: state blobs in, one result blob out, per bucket.

The state of a bucket is one value ``meta`` and a map of blocks, both opaque bytes; what is written per micro-batch
is what the operator says has changed. Why the Row form: docs/decisions/0001-stateful-operator.md.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from pyspark.sql import Row
from pyspark.sql.streaming import StatefulProcessor
from pyspark.sql.types import BinaryType, LongType, StructField, StructType

from workbench.spark.replay import open_plan

if TYPE_CHECKING:
    from workbench.runtime import BucketOperator

#: The rows that the operator sends on: one per bucket and micro-batch.
OUTPUT = StructType([StructField("payload", BinaryType())])

_CONTENT = StructType([StructField("content", BinaryType())])
_BLOCK = StructType([StructField("block", LongType())])

#: Decoded operators of this worker by (run, key), newest last. A worker is free to serve any bucket of any query,
#: so an entry may be behind the stored state: it counts only while its token is the stored one.
_decoded: OrderedDict[tuple[str, int], BucketOperator] = OrderedDict()
_KEPT = 16


class BucketProcessor(StatefulProcessor):  # type: ignore[misc]
    """Runs the shared plan of one query for whatever buckets Spark hands over.

    ``plan`` is a pickled SharedPlan; ``run`` tells the operators of one query run from those of others in the
    worker's memory.
    """

    def __init__(self, plan: bytes, run: str) -> None:
        self._plan = plan
        self._run = run

    def init(self, handle: Any) -> None:
        """Called by Spark once per task."""
        self._meta = handle.getValueState("meta", _CONTENT)
        self._blocks = handle.getMapState("blocks", _BLOCK, _CONTENT)

    def handleInputRows(self, key: tuple[int], rows: Iterator[Any], timerValues: Any) -> Iterator[Row]:
        """All messages of one bucket and micro-batch; yields exactly one row."""
        name = (self._run, key[0])
        operator = self._operator(name)
        result = operator.apply([bytes(row.payload) for row in rows])
        changes = operator.changes()
        for block, content in changes.put.items():
            self._blocks.updateValue((block,), (content,))
        for block in changes.remove:
            self._blocks.removeKey((block,))
        self._meta.update((changes.meta,))
        _decoded[name] = operator
        while len(_decoded) > _KEPT:
            _decoded.popitem(last=False)
        yield Row(payload=result)

    def _operator(self, name: tuple[str, int]) -> BucketOperator:
        """The operator at the stored state. It leaves the cache until its changes are stored, in case they fail."""
        from workbench.runtime import BucketOperator  # here: Spark also makes a processor just to ask for its state

        stored = self._meta.get()
        meta = None if stored is None else bytes(stored[0])
        operator = _decoded.pop(name, None)
        if operator is not None and meta is not None and operator.token == BucketOperator.token_of(meta):
            return operator
        operator = BucketOperator(open_plan(self._plan))
        blocks = () if meta is None else [bytes(content[0]) for content in self._blocks.values()]
        operator.load(meta, blocks)
        return operator
