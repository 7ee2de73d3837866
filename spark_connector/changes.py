"""The changes of a table, with ``startingAt``: their columns, their partitions, and one batch of them, for backfills.

::

    driver    partitions ── key ranges with about equally many changes in (after, until]
    executor  read ──────── the changes of one range, in the order of the commits, as record batches

The changes between two timestamps never change, so a repeated read finds the same rows. A commit may be in several
partitions, since those are of keys. :mod:`pyspark_cortado.stream_reader` makes a stream of such batches.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from cortado.errors import InvalidArgument
from cortado.extras import needing
from cortado.store.client import Client
from cortado.store.client.values import parse_at
from cortado.store.clock.text import wall_ms_of
from cortado.store.clock.timestamp import Timestamp
from pyspark_cortado.clients import open_client
from pyspark_cortado.keys import KeyBounds, KeyRangePartition, bounds_of_key
from pyspark_cortado.leases import held, protect
from pyspark_cortado.options import ChangesOptions
from pyspark_cortado.types import field_names, loosened_schema

if TYPE_CHECKING:
    import pyarrow as pa

    from cortado.store.catalog.descriptors import TableDescriptor

RESET: Final = "reset"
_TASK_ROWS: Final = 5_000
_PARTITIONS: Final = 4
"""Ranges of changes, unless the option says another number."""


@dataclass(frozen=True, slots=True)
class ChosenChanges:
    """The choice of a DataFrame of changes: the version of the subject and, for a batch, the times."""

    version: int
    after: str
    until: str


@dataclass
class ChangesPartition(KeyRangePartition):
    """The changes of ``[lower, upper)`` above ``after`` and at or below ``until``; if it ``is_state``, the rows at
    ``after``, which is ``until``, too."""

    after: str
    until: str
    is_state: bool = False


@dataclass
class ResetPartition(InputPartition):
    """One row, which says that the stream begins anew, with the state at ``ts``."""

    ts: str


def changes_schema(options: ChangesOptions) -> tuple[StructType, ChosenChanges]:
    """Return the columns of changes as Spark types, and the choice made with them. Raises InvalidArgument, NotFound,
    SnapshotTooOld."""
    with open_client(options.connection) as client:
        found = client.describe(options.connection.table)
        version = client.schemas.get(found.subject, options.schema_version).version
        until = options.ending_at or str(client.now())
        after = start_of(client, options, found)
        _check_order(after, options.ending_at)
        chosen = ChosenChanges(version, str(after), until)
        return _schema(client, options, found, version), chosen


def _schema(client: Client, options: ChangesOptions, table: TableDescriptor, version: int) -> StructType:
    with needing("spark", "Spark"):
        import pyarrow as pa
        from pyspark.sql.pandas.types import from_arrow_schema

        from cortado.store.client.changes_arrow import schema_of_changes

    schema = client.schemas.get_by_id(client.schemas.get(table.subject, version).schema_id)
    whole = schema_of_changes(schema, table.key, has_previous=options.with_previous)
    if not options.fail_on_data_loss:
        # A row that says "reset" has no key.
        whole = pa.schema([each.with_nullable(True) for each in whole])
    bounds_of_key(table, options.key_start, options.key_end)
    if options.columns is None:
        return loosened_schema(from_arrow_schema(whole))
    named = field_names(options.columns, schema, table.full_name)
    own = [each.name for each in schema.record.fields]
    kept = [whole.field(name) for name in (*named, *(name for name in whole.names if name not in own))]
    return loosened_schema(from_arrow_schema(pa.schema(kept)))


def start_of(client: Client, options: ChangesOptions, table: TableDescriptor) -> Any:
    """After which time the changes begin: a timestamp, or a text."""
    if options.starting_at in ("latest", "state"):
        return client.now()
    if options.starting_at == "earliest":
        status = client.admin.gc.status()
        safepoint = status.tables.get(table.full_name, status.safepoint)
        return max(safepoint, table.named_ts)
    return options.starting_at


def _check_order(after: Any, ending_at: str | None) -> None:
    """A batch does not end before it begins. Raises InvalidArgument."""
    if ending_at is None:
        return
    began, ends = (each if isinstance(each, Timestamp) else parse_at(each) for each in (after, ending_at))
    if isinstance(began, Timestamp) and isinstance(ends, Timestamp):
        is_before = ends < began
    else:
        is_before = _wall_ms(ends) < _wall_ms(began)
    if is_before:
        raise InvalidArgument("option endingAt", f"must not be before startingAt, {after}", ending_at)


def _wall_ms(time: Timestamp | datetime) -> int:
    return time.wall_ms if isinstance(time, Timestamp) else wall_ms_of(time)


class Changes:
    """Reads the changes of partitions, as record batches of ``schema``."""

    def __init__(self, options: ChangesOptions, schema: StructType, version: int) -> None:
        self._options = options
        self._schema = schema
        self._version = version

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the changes of one range, in the order of the commits; for a state, in the order of the keys."""
        from pyspark.sql.pandas.types import to_arrow_schema

        target = to_arrow_schema(self._schema, timezone="UTC")
        if isinstance(partition, ResetPartition):
            yield _reset(Timestamp.parse(partition.ts), target)
            return
        assert isinstance(partition, ChangesPartition)
        with open_client(self._options.connection) as client:
            table = client.table(self._options.connection.table, schema_version=self._version)
            for batch in table.changes_arrow(
                partition.lower,
                partition.upper,
                after=partition.after,
                until=partition.until,
                initial_state=partition.is_state,
                with_previous=self._options.with_previous,
            ):
                places = [_place(batch.schema.names, name) for name in target.names]
                yield batch.select(places).rename_columns(target.names).cast(target)

    def ranges(self, client: Client, bounds: KeyBounds, after: str, until: str) -> list[InputPartition]:
        """Return the range ``bounds``, cut into parts with about equally many changes; empty if there are no
        changes."""
        table = client.table(self._options.connection.table)
        window = table.window(*bounds, after=after, until=until, parts=self._options.partitions or _PARTITIONS)
        counted = [(each.start, each.end, each.changes) for each in window.ranges] if window.changes else []
        return [ChangesPartition(*part, after, until) for part in worth_a_task(counted)]


def worth_a_task(
    ranges: Sequence[tuple[tuple[Any, ...] | None, tuple[Any, ...] | None, int]],
) -> list[KeyBounds]:
    """Adjacent ranges, with how many rows each has, as one if they have few: a task costs Spark more than to read some
    thousand."""
    joined: list[tuple[tuple[Any, ...] | None, tuple[Any, ...] | None, int]] = []
    for lower, upper, rows in ranges:
        if joined and joined[-1][2] + rows <= _TASK_ROWS:
            joined[-1] = (joined[-1][0], upper, joined[-1][2] + rows)
        else:
            joined.append((lower, upper, rows))
    return [(lower, upper) for lower, upper, _ in joined]


def _reset(ts: Timestamp, target: pa.Schema) -> pa.RecordBatch:
    import pyarrow as pa

    times = {"epoch": ts.epoch, "wall_ms": ts.wall_ms, "logical": ts.logical}
    row = {"_op": RESET, "_ts": times, "_commit_time": ts.wall_ms * 1_000}
    return pa.RecordBatch.from_pylist([row], schema=target)


class ChangesReader(Changes, DataSourceReader):
    """One batch of changes."""

    def __init__(self, options: ChangesOptions, schema: StructType, chosen: ChosenChanges) -> None:
        super().__init__(options, schema, chosen.version)
        if options.max_rows is not None:
            raise InvalidArgument("option maxRowsPerTrigger", "is of a stream: a batch has all", str(options.max_rows))
        if options.starting_at == "state":
            raise InvalidArgument("option startingAt", "is of a stream: rows are read without it", "state")
        self._chosen = chosen
        self._lease: str | None = None
        if options.hold:
            # Not by load(), which cannot tell a batch from a stream.
            with open_client(options.connection) as client:
                self._lease = protect(client, options.connection.table, chosen.after)

    def partitions(self) -> Sequence[InputPartition]:
        """Key ranges with about equally many changes; one at least."""
        after, until = self._chosen.after, self._chosen.until
        with open_client(self._options.connection) as client:
            table = client.describe(self._options.connection.table)
            bounds = bounds_of_key(table, self._options.key_start, self._options.key_end)
            return self.ranges(client, bounds, after, until) or [ChangesPartition(*bounds, after, until)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        connection = self._options.connection
        with open_client(connection) as client, held(client, connection.table, self._lease):
            yield from Changes.read(self, partition)


def _place(names: Sequence[str], name: str) -> int:
    """Return the place of a column, in any case of its letters."""
    if name in names:
        return names.index(name)
    return [each.lower() for each in names].index(name.lower())
