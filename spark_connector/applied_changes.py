"""Changes as rows to write (``operation=changes``): each is a put or a delete, and the last one of each key is applied.

::

    a task's batches ──► a file, in memory up to 64 MiB ──► puts of last changes ──► upsert
         │                                              └──► deletes of last changes ──► delete
         └─ keys and times, in memory: which change of each key is the last one

So what ``readStream`` brings of one table can be written to another one as it is. A key that has changes in two tasks
is refused as one that comes twice: a source of changes has all of a key in one partition, and so has a shuffle by key.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from tempfile import SpooledTemporaryFile
from typing import TYPE_CHECKING, Any, Final, Self

from pyspark.sql.types import IntegralType, StringType, StructType

from cortado.errors import InvalidArgument

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

_OP: Final = "_op"
_TS: Final = "_ts"
_PUT: Final = "put"
_DELETE: Final = "delete"
_TS_FIELDS: Final = ("epoch", "wall_ms", "logical")
COLUMNS_OF_CHANGES: Final = frozenset({_OP, _TS, "_commit_time", "_previous"})
"""The columns of a change beside the table's."""
_IN_MEMORY_BYTES: Final = 64 << 20


@dataclass(frozen=True, slots=True)
class ToldBy:
    """The columns that describe changes: the operation, the time, and the key. Each part of that is in a column, or in
    a field of it, to which names lead."""

    op: int
    ts: int
    key: Sequence[tuple[int, Sequence[str]]]


def check_changes(frame: StructType, fields: Mapping[int, str], key: Sequence[str]) -> ToldBy:
    """``fields`` are those that columns are, by the columns' places, and ``key`` the paths of the key's parts. Raises
    InvalidArgument."""
    op, ts = _place(frame, _OP), _place(frame, _TS)
    if not isinstance(frame[op].dataType, StringType):
        raise InvalidArgument(f"column {_OP}", "must be string", frame[op].dataType.simpleString())
    kind = frame[ts].dataType
    if not (
        isinstance(kind, StructType)
        and kind.names == [*_TS_FIELDS]
        and all(isinstance(each.dataType, IntegralType) for each in kind)
    ):
        problem = "must be a struct of epoch, wall_ms and logical, as changes have it"
        raise InvalidArgument(f"column {_TS}", problem, kind.simpleString())
    places = {name: place for place, name in fields.items()}
    paths = [path.split(".") for path in key]
    return ToldBy(op, ts, [(places[column], inner) for column, *inner in paths])


def _place(frame: StructType, name: str) -> int:
    for place, each in enumerate(frame.names):
        if each.lower() == name:
            return place
    raise InvalidArgument(f"column {name}", 'is required: the option operation is "changes"', "no column")


class LastChanges:
    """The last change of each key, of one task. A context manager: its file ends with it."""

    def __init__(self, batches: Iterable[pa.RecordBatch], told_by: ToldBy) -> None:
        """Raises InvalidArgument for a change that is neither a put nor a delete, or has no time."""
        self._told_by = told_by
        self._file = SpooledTemporaryFile(max_size=_IN_MEMORY_BYTES)  # noqa: SIM115 - closed by __exit__
        self._keep: np.ndarray[Any, Any]
        self._is_put: np.ndarray[Any, Any]
        try:
            self._take(batches)
        except BaseException:
            self._file.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._file.close()

    @property
    def deletes(self) -> int:
        """How many of them are deletes."""
        return int((self._keep & ~self._is_put).sum())

    def puts(self) -> Iterator[pa.RecordBatch]:
        """Return those that are puts, as they came."""
        return self._chosen(self._keep & self._is_put)

    def deleted(self) -> Iterator[pa.RecordBatch]:
        """Return those that are deletes, as they came."""
        return self._chosen(self._keep & ~self._is_put)

    def _take(self, batches: Iterable[pa.RecordBatch]) -> None:
        """Keep the batches in the file, and find out which changes are the last ones."""
        import numpy as np
        import pyarrow as pa

        told: list[pa.RecordBatch] = []
        writer: pa.RecordBatchStreamWriter | None = None
        for batch in batches:
            told.append(self._told(batch))
            writer = writer or pa.ipc.new_stream(self._file, batch.schema)
            writer.write_batch(batch)
        if writer is None:
            self._keep = self._is_put = np.zeros(0, bool)
            return
        writer.close()
        changes = pa.Table.from_batches(told)
        self._is_put = changes[_OP].to_numpy()
        # By time, and of one time, as they came.
        order = changes.append_column("place", pa.array(np.arange(len(changes))))
        order = order.sort_by([(each, "ascending") for each in (*_TS_FIELDS, "place")])
        order = order.append_column("turn", pa.array(np.arange(len(changes))))
        last = order.group_by(_key_columns(self._told_by)).aggregate([("turn", "max")])["turn_max"]
        self._keep = np.zeros(len(changes), bool)
        self._keep[order["place"].take(last).to_numpy()] = True

    def _told(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the description of each change: whether it is a put, its time, and its key."""
        import pyarrow as pa
        import pyarrow.compute as pc

        told_by = self._told_by
        op, ts = batch.column(told_by.op), batch.column(told_by.ts)
        for other in pc.unique(op).to_pylist():
            if other not in (_PUT, _DELETE):
                raise InvalidArgument(f"column {_OP}", f'must be "{_PUT}" or "{_DELETE}"', str(other))
        times = [pc.struct_field(ts, name) for name in _TS_FIELDS]
        if any(each.null_count for each in times):
            raise InvalidArgument(f"column {_TS}", "must not be null")
        columns = [(batch.column(place), inner) for place, inner in told_by.key]
        keys = [pc.struct_field(column, inner) if inner else column for column, inner in columns]
        names = [_OP, *_TS_FIELDS, *_key_columns(told_by)]
        return pa.RecordBatch.from_arrays([pc.equal(op, _PUT), *times, *keys], names=names)

    def _chosen(self, which: np.ndarray[Any, Any]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        if not which.any():
            return
        self._file.seek(0)
        begin = 0
        for batch in pa.ipc.open_stream(self._file):
            chosen = batch.filter(pa.array(which[begin : begin + batch.num_rows]))
            begin += batch.num_rows
            if chosen.num_rows:
                yield chosen


def _key_columns(told_by: ToldBy) -> list[str]:
    return [f"key {number}" for number in range(len(told_by.key))]
