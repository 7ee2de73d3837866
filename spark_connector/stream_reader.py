"""A stream of the changes of a table, perhaps behind the rows that there are.

::

    initialOffset ── startingAt: a timestamp; or the state now, from its first key on
    latestOffset ─── how far everything is known by now; with a limit, where so many changes, or rows of the state, end
    partitions ───── key ranges with about equally many changes, or rows, between two offsets
    commit ───────── the lease moves on: what the stream has not had yet is kept while it runs

The changes between two offsets (:mod:`pyspark_cortado.offsets`) never change, so a batch that is repeated has the same
rows, and a checkpoint resumes without a gap. A commit is never in two batches.

A consumer's lease is the query's, which its offsets name. So it is moved once a checkpoint has one of them, and never
by a query that has not got one: such a query may be begun anew by Spark, as another one.

If versions that a stream needs were collected, it ends with SnapshotTooOld; or, with ``failOnDataLoss=false``, begins
anew: a row that says so, then the current state. Also if Spark repeats a batch that was planned before: that has the
row and the state at its end, so that the later batches are right.

Spark asks for the latest offset every few milliseconds while nothing happens. So one watch, which brings no changes,
tells the process of the reader how far it may go.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from cortado.errors import InvalidArgument, SnapshotTooOld
from cortado.store.client import Client, KeyRange, Table
from cortado.store.clock.timestamp import Timestamp
from pyspark_cortado.changes import Changes, ChangesPartition, ResetPartition, start_of, worth_a_task
from pyspark_cortado.clients import new_client
from pyspark_cortado.keys import bounds_of_key, split
from pyspark_cortado.offsets import Identity, Offset, Progressed
from pyspark_cortado.options import PARTITIONS_MAX, ChangesOptions
from pyspark_cortado.progress import Progress

if TYPE_CHECKING:
    import pyarrow as pa

_LEASE_MOVES_S: Final = 10.0
_IDLE_MS: Final = 600_000
"""A stream without changes moves on so often."""


class ChangesStreamReader(Changes, DataSourceStreamReader, SupportsTriggerAvailableNow):
    """On the driver, in a process of its own that lives as long as the query; tasks read with another instance."""

    def __init__(self, options: ChangesOptions, schema: StructType, version: int) -> None:
        super().__init__(options, schema, version)
        if options.ending_at is not None:
            raise InvalidArgument("option endingAt", "is of a batch: a stream has no end", options.ending_at)
        self._client: Client | None = None
        self._progress: Progress | None = None
        self._target: Timestamp | None = None
        self._identity: Identity | None = None
        # The owner of the consumer's lease.
        self._query = ""
        # The range without changes behind an offset: none up to there.
        self._quiet: tuple[Timestamp, Timestamp] | None = None
        # The pieces of the rest of the state behind an offset, so that its rows are counted once.
        self._cuts: tuple[Offset, list[KeyRange]] | None = None
        self._lease = ExitStack()
        self._lease_moved_s = 0.0

    # --- offsets ---------------------------------------------------------------------------------------------------

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802
        """Return the beginning of a query without a checkpoint."""
        start = start_of(self._connected(), self._options, self._known().table)
        if not isinstance(start, Timestamp):
            # A wall time means the last timestamp of that time; its value is fixed now.
            start = self._table().window(after=start, until=start).until
        self._hold(start)
        first = Offset(start, b"" if self._options.starting_at == "state" else None)
        return self._known().written(Progressed.begun(first))

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802
        """Return the offset up to which changes are known, or the limit allows; ``start`` without changes."""
        begin = self._known().read(start)
        rows = limit.max_rows if isinstance(limit, ReadMaxRows) else None
        if begin.first is None:
            self._query = begin.query
        try:
            end = self._after(begin.offset, rows)
        except SnapshotTooOld:
            if self._options.fail_on_data_loss:
                raise
            end = self._anew()
        return start if end == begin.offset else self._known().written(begin.to(end))

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        return ReadAllAvailable() if self._options.max_rows is None else ReadMaxRows(self._options.max_rows)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """The query ends where the table is now."""
        self._target = self._connected().now()

    def reportLatestOffset(self) -> dict[str, Any] | None:  # noqa: N802
        known = self._target if self._progress is None else self._progress.known
        return None if known is None else self._known().written(Progressed(Offset(known), self._query))

    def _after(self, place: Offset, rows: int | None) -> Offset:
        """Return the end of a batch that begins at ``place``. Raises SnapshotTooOld."""
        if not self._lease_moved_s:
            self._hold(place.ts)
        if place.from_key is not None:
            return Offset(place.ts) if rows is None else self._cut(place, rows)
        after = place.ts
        newest = self._target or self._watched(after).newest()
        quiet = self._quiet[1] if self._quiet is not None and self._quiet[0] == after else after
        while quiet < newest:
            window = self._table().window(*self._known().bounds, after=quiet, until=newest, changes_max=rows)
            if window.changes:
                return Offset(newest if rows is None else window.until)
            quiet = window.until
            self._quiet = after, quiet
        # While no changes come, the history behind an old place is not kept for ever: a batch without rows moves it.
        is_old = quiet.epoch != after.epoch or quiet.wall_ms - after.wall_ms > _IDLE_MS
        return Offset(quiet) if is_old and self._target is None else place

    def _cut(self, place: Offset, rows: int) -> Offset:
        """Return the place after about ``rows`` more rows of the state."""
        known = self._known()
        if self._cuts is None or self._cuts[0] != place:
            self._cuts = place, self._split(PARTITIONS_MAX, place.ts, known.lower(place), known.bounds[1])
        ranges = self._cuts[1]
        while ranges[0].rows > rows:
            finer = self._split(PARTITIONS_MAX, place.ts, ranges[0].start, ranges[0].end)
            if len(finer) == 1:
                break
            ranges = [*finer, *ranges[1:]]
        taken, counted = 1, ranges[0].rows
        while taken < len(ranges) and counted + ranges[taken].rows <= rows:
            counted += ranges[taken].rows
            taken += 1
        if taken == len(ranges):
            return Offset(place.ts)
        end = known.at_key(place.ts, ranges[taken - 1].end)
        self._cuts = end, ranges[taken:]
        return end

    def _split(self, parts: int | None, ts: Timestamp, lower: Any, upper: Any) -> list[KeyRange]:
        """Return the rows of a range at ``ts``; one range at least."""
        return split(self._table(), parts, lower, upper, at=ts) or [KeyRange(lower, upper, 0)]

    def _anew(self) -> Offset:
        """Begin anew with the current state: the changes before it are gone."""
        if self._progress is not None:
            self._progress.stop()
        self._progress = self._quiet = None
        now = self._connected().now()
        self._hold(now)
        return Offset(now, b"")

    # --- batches ---------------------------------------------------------------------------------------------------

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """Return key ranges with about equally many changes, or rows; empty without any."""
        ends = self._known().read(end)
        begin, until = ends.batch_from(self._known().read(start).offset), ends.offset
        if until.begins_state and until != begin:
            return [ResetPartition(str(until.ts))]
        try:
            if self._query != ends.query:
                self._query = ends.query
                self._hold(begin.ts)
            return self._parts(begin, until)
        except SnapshotTooOld:
            if self._options.fail_on_data_loss:
                raise
        try:
            return [] if until.from_key is not None else self._reset_to(until.ts)
        except SnapshotTooOld:
            return []  # The next changes are gone, too, and latestOffset begins anew.

    def _parts(self, begin: Offset, until: Offset) -> Sequence[InputPartition]:
        if begin.from_key is None:
            return self.ranges(self._connected(), self._known().bounds, str(begin.ts), str(until.ts))
        known = self._known()
        upper = known.bounds[1] if until.from_key is None else known.lower(until)
        return self._state(begin.ts, known.lower(begin), upper)

    def _state(self, ts: Timestamp, lower: Any, upper: Any) -> Sequence[InputPartition]:
        partitions = self._options.partitions
        ranges = self._split(partitions, ts, lower, upper)
        if partitions is None:
            # Parts by size are worth a task, however few rows they have.
            parts = [(each.start, each.end) for each in ranges]
        else:
            parts = worth_a_task([(each.start, each.end, each.rows) for each in ranges])
        return [ChangesPartition(*bounds, str(ts), str(ts), is_state=True) for bounds in parts]

    def _reset_to(self, ts: Timestamp) -> Sequence[InputPartition]:
        return [ResetPartition(str(ts)), *self._state(ts, *self._known().bounds)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return Changes.read(self, partition)

    def commit(self, end: dict[str, Any]) -> None:
        """Nothing up to there is asked for again: it need not be kept for this stream."""
        if time.monotonic() - self._lease_moved_s > _LEASE_MOVES_S:
            self._identity = None
            ended = self._known().read(end)
            self._query = ended.query
            self._hold(ended.offset.ts)

    def stop(self) -> None:
        if self._progress is not None:
            self._progress.stop()
        if self._client is not None:
            self._lease.close()
            self._client.close()

    # --- resources
    # -------------------------------------------------------------------------------------------------------

    def _connected(self) -> Client:
        if self._client is None:
            self._client = new_client(self._options.connection)
        return self._client

    def _table(self) -> Table[Any]:
        return self._connected().table(self._options.connection.table)

    def _known(self) -> Identity:
        """Asked for once, and now and then: Spark asks for offsets every few milliseconds."""
        if self._identity is None:
            client, options = self._connected(), self._options
            table = client.describe(options.connection.table)
            bounds = bounds_of_key(table, options.key_start, options.key_end)
            self._identity = Identity(client.status().cluster_id, table, bounds)
        return self._identity

    def _watched(self, after: Timestamp) -> Progress:
        if self._progress is None:
            self._progress = Progress(self._options.connection, self._known().bounds, after)
        return self._progress

    def _hold(self, at: Timestamp) -> None:
        """Keep the versions above ``at``, in the place of those kept before; for a consumer also when the query
        ends."""
        options, client, next_lease = self._options, self._connected(), ExitStack()
        label = f"Spark stream of {options.connection.table}"
        if options.consumer is not None and self._query:
            self._move(options.consumer, at, label)
        elif options.hold:
            next_lease.enter_context(client.hold(at, label=label))
        self._lease.close()
        self._lease, self._lease_moved_s = next_lease, time.monotonic()

    def _move(self, consumer: str, at: Timestamp, label: str) -> None:
        owner, ttl_s = f"stream {self._query}", self._options.consumer_ttl_s
        try:
            self._connected().admin.gc.advance_consumer(consumer, at, label=label, ttl_s=ttl_s, owner=owner)
        except InvalidArgument as refused:
            if refused.field != "consumer":
                raise
            raise InvalidArgument("option consumerId", refused.problem, refused.value) from refused
