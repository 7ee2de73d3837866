"""The changes of a table, with ``startingAt``: as a stream, and as one batch, for backfills.

::

    stream    latestOffset ── how far everything is known by now; with a limit, where so many changes end
              partitions ──── key ranges with about equally many changes in (start, end]
    executor  read ────────── the changes of one range, in the order of the commits, as record batches
    stream    commit ──────── the lease moves on: what the stream has not had yet is kept while it runs

An offset is a timestamp, with the ids of the cluster and of the table that it is of. What was changed between two of
them never changes, so a batch that is repeated has the same rows, and a checkpoint resumes without a gap. A commit is
never in two batches. It may be in several partitions, since those are of keys.

Spark asks for the latest offset every few milliseconds while nothing happens. So one watch, which brings no changes,
tells the process of the reader how far it may go.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from cortado.errors import CortadoError, InvalidArgument, WriteConflict
from cortado.store.client import Client, Table
from cortado.store.clock.timestamp import Timestamp
from pyspark_cortado.leases import held, protect
from pyspark_cortado.options import ChangesOptions, Connection
from pyspark_cortado.reader import KeyRangePartition, bounds_of_key, open_client
from pyspark_cortado.types import field_names, loosened_schema

if TYPE_CHECKING:
    import pyarrow as pa

    from cortado.store.catalog.descriptors import TableDescriptor

_OFFSET_VERSION: Final = 1
_RESOLVED_MS: Final = 100
_LEASE_MOVES_S: Final = 10.0


@dataclass(frozen=True, slots=True)
class ChosenChanges:
    """What a DataFrame of changes shows: with which version of the subject, and, of a batch, between which times and
    under which lease."""

    version: int
    after: str
    until: str
    lease: str | None


@dataclass
class ChangesPartition(KeyRangePartition):
    """The changes of ``[lower, upper)`` above ``after`` and at or below ``until``."""

    after: str
    until: str


def changes_schema(options: ChangesOptions) -> tuple[StructType, ChosenChanges]:
    """The columns of changes as Spark types, and what is chosen with them. Raises InvalidArgument, NotFound,
    SnapshotTooOld."""
    with open_client(options.connection) as client:
        found = client.describe(options.connection.table)
        version = client.schemas.get(found.subject, options.schema_version).version
        until = options.ending_at or str(client.now())
        after = str(_start(client, options, found))
        # Also where this is for a stream, which nothing tells: that has one of its own from when it starts.
        lease = protect(client, found.full_name, after) if options.lease else None
        chosen = ChosenChanges(version, after, until, lease)
        return _schema(client, options, found, version), chosen


def _schema(client: Client, options: ChangesOptions, table: TableDescriptor, version: int) -> StructType:
    from pyspark.sql.pandas.types import from_arrow_schema

    from cortado.store.client.changes_arrow import schema_of_changes

    schema = client.schemas.by_id(client.schemas.get(table.subject, version).schema_id)
    whole = schema_of_changes(schema, table.key, has_previous=options.with_previous)
    bounds_of_key(table, options.key_lower, options.key_upper)
    if options.columns is None:
        return loosened_schema(from_arrow_schema(whole))
    named = field_names(options.columns, schema, table.full_name)
    own = [each.name for each in schema.record.fields]
    kept = [whole.field(name) for name in (*named, *(name for name in whole.names if name not in own))]
    import pyarrow as pa

    return loosened_schema(from_arrow_schema(pa.schema(kept)))


def _start(client: Client, options: ChangesOptions, table: TableDescriptor) -> Any:
    """After which time the changes begin: a timestamp, or a text."""
    if options.starting_at == "latest":
        return client.now()
    if options.starting_at == "earliest":
        status = client.collection.status()
        safepoint = status.tables.get(table.full_name, status.safepoint)
        return max(safepoint, table.named_ts)
    return options.starting_at


class Changes:
    """Reads the changes of partitions, as record batches of ``schema``."""

    def __init__(self, options: ChangesOptions, schema: StructType, version: int) -> None:
        self._options = options
        self._schema = schema
        self._version = version

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Those of one range, in the order of the commits."""
        from pyspark.sql.pandas.types import to_arrow_schema

        assert isinstance(partition, ChangesPartition)
        target = to_arrow_schema(self._schema, timezone="UTC")
        with open_client(self._options.connection) as client:
            table = client.table(self._options.connection.table, schema_version=self._version)
            for batch in table.changes_arrow(
                partition.lower,
                partition.upper,
                after=partition.after,
                until=partition.until,
                with_previous=self._options.with_previous,
            ):
                places = [_place(batch.schema.names, name) for name in target.names]
                yield batch.select(places).rename_columns(target.names).cast(target)

    def ranges(self, client: Client, after: str, until: str) -> list[InputPartition]:
        """The range that is read, cut into parts with about equally many changes."""
        options = self._options
        lower, upper = bounds_of_key(client.describe(options.connection.table), options.key_lower, options.key_upper)
        table = client.table(options.connection.table)
        window = table.window(lower, upper, after=after, until=until, parts=options.partitions)
        if not window.changes:
            return []
        return [ChangesPartition(each.lower, each.upper, after, until) for each in window.ranges]


class ChangesReader(Changes, DataSourceReader):
    """One batch of changes."""

    def __init__(self, options: ChangesOptions, schema: StructType, chosen: ChosenChanges) -> None:
        super().__init__(options, schema, chosen.version)
        if options.max_rows is not None:
            raise InvalidArgument("option maxRowsPerTrigger", "is of a stream: a batch has all", str(options.max_rows))
        self._chosen = chosen

    def partitions(self) -> Sequence[InputPartition]:
        """Key ranges with about equally many changes; one at least."""
        after, until, name = self._chosen.after, self._chosen.until, self._options.connection.table
        with open_client(self._options.connection) as client, held(client, name, self._chosen.lease):
            found = self.ranges(client, after, until)
            if found:
                return found
            table = client.describe(self._options.connection.table)
            lower, upper = bounds_of_key(table, self._options.key_lower, self._options.key_upper)
        return [ChangesPartition(lower, upper, after, until)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        connection = self._options.connection
        with open_client(connection) as client, held(client, connection.table, self._chosen.lease):
            yield from Changes.read(self, partition)


@dataclass(frozen=True, slots=True)
class Identity:
    """What a stream reads: the cluster, the table that has the name, and the range of it."""

    cluster_id: str
    table: TableDescriptor
    bounds: tuple[Any, Any]


class ChangesStreamReader(Changes, DataSourceStreamReader, SupportsTriggerAvailableNow):
    """A stream of changes. On the driver, in a process of its own that lives as long as the query; tasks read with
    another instance."""

    def __init__(self, options: ChangesOptions, schema: StructType, version: int) -> None:
        super().__init__(options, schema, version)
        if options.ending_at is not None:
            raise InvalidArgument("option endingAt", "is of a batch: a stream has no end", options.ending_at)
        self._client: Client | None = None
        self._progress: Progress | None = None
        self._target: Timestamp | None = None
        self._identity: Identity | None = None
        # What is known of the changes behind an offset: none up to there.
        self._quiet: tuple[Timestamp, Timestamp] | None = None
        self._lease = ExitStack()
        self._lease_moved_s = 0.0

    # --- offsets ---------------------------------------------------------------------------------------------------

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802
        """Where a query without a checkpoint begins."""
        start = _start(self._connected(), self._options, self._known().table)
        if not isinstance(start, Timestamp):
            # A wall time means the last timestamp of that time; what it is now, it stays.
            start = self._table().window(after=start, until=start).until
        self._hold(start)
        return self._offset(start)

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802
        """As far as changes are known, or as the limit allows; ``start`` where there are none."""
        after = self._timestamp(start)
        if not self._lease_moved_s:
            self._hold(after)
        newest = self._target or self._watched(after).newest()
        quiet = self._quiet[1] if self._quiet is not None and self._quiet[0] == after else after
        rows = limit.max_rows if isinstance(limit, ReadMaxRows) else None
        lower, upper = self._known().bounds
        while quiet < newest:
            window = self._table().window(lower, upper, after=quiet, until=newest, changes_max=rows)
            if window.changes:
                return self._offset(newest if rows is None else window.until)
            quiet = window.until
            self._quiet = after, quiet
        return start

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        return ReadAllAvailable() if self._options.max_rows is None else ReadMaxRows(self._options.max_rows)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """The query ends where the table is now."""
        self._target = self._connected().now()

    def reportLatestOffset(self) -> dict[str, Any] | None:  # noqa: N802
        known = self._target if self._progress is None else self._progress.known
        return None if known is None else self._offset(known)

    # --- batches ---------------------------------------------------------------------------------------------------

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """Key ranges with about equally many changes; none where nothing was changed."""
        return self.ranges(self._connected(), str(self._timestamp(start)), str(self._timestamp(end)))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return Changes.read(self, partition)

    def commit(self, end: dict[str, Any]) -> None:
        """Nothing up to there is asked for again: it need not be kept for this stream."""
        if time.monotonic() - self._lease_moved_s > _LEASE_MOVES_S:
            self._identity = None
            self._hold(self._timestamp(end))

    def stop(self) -> None:
        if self._progress is not None:
            self._progress.stop()
        if self._client is not None:
            self._lease.close()
            self._client.close()

    # --- what it holds ---------------------------------------------------------------------------------------------

    def _connected(self) -> Client:
        if self._client is None:
            self._client = open_client(self._options.connection)
        return self._client

    def _table(self) -> Table[Any]:
        return self._connected().table(self._options.connection.table)

    def _known(self) -> Identity:
        """Asked for once, and now and then: Spark asks for offsets every few milliseconds."""
        if self._identity is None:
            client, options = self._connected(), self._options
            table = client.describe(options.connection.table)
            bounds = bounds_of_key(table, options.key_lower, options.key_upper)
            self._identity = Identity(client.status().cluster_id, table, bounds)
        return self._identity

    def _watched(self, after: Timestamp) -> Progress:
        if self._progress is None:
            self._progress = Progress(self._options.connection, self._known().bounds, after)
        return self._progress

    def _hold(self, at: Timestamp) -> None:
        """Keep what is above ``at``, in the place of what was kept before."""
        before, self._lease = self._lease, ExitStack()
        label = f"Spark stream of {self._options.connection.table}"
        self._lease.enter_context(self._connected().lease(at, label=label))
        self._lease_moved_s = time.monotonic()
        before.close()

    def _offset(self, ts: Timestamp) -> dict[str, Any]:
        known = self._known()
        return {"v": _OFFSET_VERSION, "cluster": known.cluster_id, "table": known.table.table_id, "ts": str(ts)}

    def _timestamp(self, offset: dict[str, Any]) -> Timestamp:
        """Raises InvalidArgument for an offset of another cluster or format, WriteConflict where the name has come to
        mean another table since."""
        if offset.get("v") != _OFFSET_VERSION:
            problem = f"has offsets of version {offset.get('v')}; this build reads version {_OFFSET_VERSION}"
            raise InvalidArgument("checkpoint", problem)
        known = self._known()
        if offset.get("cluster") != known.cluster_id:
            problem = f"is of the cluster {offset.get('cluster')}, and this is {known.cluster_id}"
            raise InvalidArgument("checkpoint", problem)
        if offset.get("table") != known.table.table_id:
            raise WriteConflict(known.table.full_name, str(offset["ts"]), str(known.table.named_ts), kind="table")
        return Timestamp.parse(str(offset["ts"]))


class Progress:
    """How far all changes of a range are known, by a watch of its own, in a thread."""

    def __init__(self, connection: Connection, bounds: tuple[Any, Any], after: Timestamp) -> None:
        self.known = after
        self._connection = connection
        self._bounds = bounds
        self._error: Exception | None = None
        self._is_over = threading.Event()
        threading.Thread(target=self._run, name="cortado-progress", daemon=True).start()

    def newest(self) -> Timestamp:
        """Raises what ended the watch."""
        if self._error is not None:
            raise self._error
        return self.known

    def stop(self) -> None:
        self._is_over.set()

    def _run(self) -> None:
        lower, upper = self._bounds
        try:
            with open_client(self._connection) as client:
                table = client.table(self._connection.table)
                with table.progress(lower, upper, after=self.known, resolved_ms=_RESOLVED_MS) as events:
                    for event in events:
                        if self._is_over.is_set():
                            return
                        self.known = max(self.known, event.ts)
        except CortadoError as error:
            self._error = error


def _place(names: Sequence[str], name: str) -> int:
    """Where a column stands, whatever the case of its letters."""
    if name in names:
        return names.index(name)
    return [each.lower() for each in names].index(name.lower())
