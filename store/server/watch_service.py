"""``cortado.v1.Watch``: streams of the changes of a range.

Any replica serves it, from its applied state. A stream lives until its caller goes away, or the node can't go on. While
the caller is slow, gRPC takes no more replies; :mod:`cortado.store.replica.feed` describes the watch's queue.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing, suppress
from typing import Final

from google.protobuf.message import Message

from cortado.errors import InvalidArgument, NotFound, NotLeader
from cortado.proto.v1 import documents_pb2, watch_pb2
from cortado.store.auth.caller import CALLER, check_renamed, denial
from cortado.store.auth.roles import Demand, Permission, Resource
from cortado.store.catalog.catalog import Catalog
from cortado.store.catalog.descriptors import TableDescriptor
from cortado.store.clock.timestamp import ZERO, Timestamp
from cortado.store.keys.keyspace import KeyRange
from cortado.store.keys.types import LogicalKey
from cortado.store.kv.ranges import KvRange, logical_range
from cortado.store.mvcc.paging import PageToken, decode_token, encode_token, read_ts_of, request_shape
from cortado.store.mvcc.versions import Item
from cortado.store.replica.feed.watch import Batch, Watch
from cortado.store.replica.read.read_timestamps import Stale
from cortado.store.replica.replica import Replica
from cortado.store.server.convert import read_at, read_at_text, timestamp_message
from cortado.store.server.document_messages import check_form, range_bounds
from cortado.store.server.service import Service, resolved_interval_ms
from cortado.store.server.watch_messages import Changes, KeyValueReplies, Replies, TableReplies
from cortado.store.server.watched import Watched, WatchedNamespace, WatchedTable
from cortado.store.server.windows import DividedPairs, DividedTable
from cortado.store.tables.scan import scan_range
from cortado.store.tables.split import check_parts
from cortado.store.tables.view import TableView

STATE_ROWS_MAX: Final = 1_000

REPLY_BYTES: Final = 512 << 10
"""The bound of replaced values in one reply."""
REPLY_BYTES_MAX: Final = 4 << 20
"""A larger reply is sent in parts, unless it holds one change."""

# More changes than this are made into a message on the scan thread: the loop has others to serve.
_ON_LOOP_MAX: Final = 64


class WatchService(Service):
    """Changes of key-value ranges and of tables."""

    async def key_value(self, request: watch_pb2.WatchKeyValueRequest) -> AsyncGenerator[bytes, None]:
        await self.host.meta.reads.caught_up()
        generation = self._generation(request.namespace, self._names_at(request.options))
        within = KvRange(request.range.start, request.range.end, request.range.prefix)
        bounds = logical_range(request.namespace, within, generation)
        replies = KeyValueReplies(request.namespace, packed=request.packed)
        watched = WatchedNamespace(self._newest_catalog, request.namespace, generation)
        async with aclosing(self._replies(request.options, bounds, replies, watched)) as stream:
            async for reply in stream:
                yield reply

    async def table(self, request: watch_pb2.WatchTableRequest) -> AsyncGenerator[bytes, None]:
        await self.host.meta.reads.caught_up()
        table = self._table(request.table, self._names_at(request.options))
        view = self._view(table, self._newest_catalog())
        check_form(view, request.format, request.schema_id)
        bounds = scan_range(view.table, None, *range_bounds(request.range, view.table.key))
        replies = TableReplies(
            lambda: self._view(table, self.applied_catalog(self.host.meta)),
            document_format=request.format,
            schema_id=request.schema_id,
            packed=request.packed,
        )
        watched = WatchedTable(self._newest_catalog, table, self._renaming())
        async with aclosing(self._replies(request.options, bounds, replies, watched)) as stream:
            async for reply in stream:
                yield reply

    async def window(self, request: watch_pb2.WindowRequest) -> Message:
        await self.host.meta.reads.caught_up()
        after, until = await self._window_times(request)
        divided: DividedTable | DividedPairs
        watched: Watched
        if request.WhichOneof("of") == "table":
            table = self._table(request.table.table, after)
            divided = DividedTable(self._view(table, self._newest_catalog()), request.table.range)
            watched = WatchedTable(self._newest_catalog, table, self._renaming())
        else:
            name, generation = request.pairs.namespace, self._generation(request.pairs.namespace, after)
            divided = DividedPairs(request.pairs, generation)
            watched = WatchedNamespace(self._newest_catalog, name, generation)
        over = watched.ended_by(until)
        if over is not None:
            if over.resolved is None or over.resolved <= after:
                raise over.error
            until = over.resolved
        parts = check_parts(request.parts or 1)
        replica = self.host.replica_of(divided.bounds[0])
        if replica is not self.host.meta:
            # The catalog told the range; its changes and its newest time are those of another log.
            if over is None and not request.HasField("until"):
                until = await _now(replica)
            until = await replica.reads.applied_to(await replica.reads.resolve(until))
        with self.host.process.scans.place():
            found = await replica.watches.window(
                *divided.bounds,
                after,
                until,
                changes_max=request.changes_max,
                bytes_max=request.bytes_max,
                parts=parts,
            )
        replica.store.check_readable(after, *divided.bounds)
        return watch_pb2.WindowResponse(
            header=self.header(self.host.meta.read_ts()),
            until=timestamp_message(found.until),
            changes=found.changes,
            changes_of_ranges=found.counts,
            **divided.ranges(found.bounds),
        )

    async def _window_times(self, request: watch_pb2.WindowRequest) -> tuple[Timestamp, Timestamp]:
        """Return the bounds of the window, once all acknowledged writes up to its end are applied here. Raises
        InvalidArgument, TimestampInFuture, NotLeader, Unavailable."""
        self.host.meta.reads.check_open()
        if request.WhichOneof("of") is None:
            raise InvalidArgument("of", "must be a table or pairs")
        after, until = (
            read_at(each, self.host.process.clock.epoch, name)
            for each, name in ((request.after, "after"), (request.until, "until"))
        )
        if not isinstance(after, Timestamp):
            raise InvalidArgument("after", "must be a timestamp")
        self.check_not_ahead(self.host.meta, after, "after")
        if isinstance(until, Stale):
            raise InvalidArgument("until.stale_ms", "cannot be read up to: give a timestamp, or none")
        ts = await _now(self.host.meta) if until is None else await self.host.meta.reads.resolve(until)
        return after, await self.host.meta.reads.applied_to(ts)

    def _newest_catalog(self) -> Catalog:
        return self.catalog(self.host.meta)

    def _generation(self, namespace: str, then: Timestamp | None) -> int:
        """Return the namespace's generation at the start of the watch."""
        newest = self.host.meta.read_ts()
        read_ts = newest if then is None else min(then, newest)
        return self.catalog(self.host.meta, read_ts).generation_of(namespace)

    def _table(self, named: documents_pb2.TableName, then: Timestamp | None) -> TableDescriptor:
        """Return the table that had the name at the start of the watch; if there was none, the one that has it now.
        Raises NotFound."""
        database, name = named.database, named.table
        if then is not None and then <= self.host.meta.read_ts():
            with suppress(NotFound):
                return self.catalog(self.host.meta, then).table(database, name)
        return self._newest_catalog().table(database, name)

    def _renaming(self) -> Callable[[Resource, Resource], None]:
        """Return a function that checks the caller of this watch if its table has another name by now: from then on it
        needs its role on that name. It raises PermissionDenied; at other nodes than the leader NotLeader."""
        caller, host = CALLER.get(), self.host

        def renamed(then: Resource, now: Resource) -> None:
            if caller is None:
                return
            caller.demands = (Demand(Permission.READ, now),)
            roles, leadership = host.meta.roles.committed, host.meta.driver.leadership
            refusal = denial(
                roles, caller, lambda: host.process.clock.reading().wall_ms, lambda: host.meta.reader(ZERO)
            )
            if refusal is not None:
                if not leadership.is_ready:
                    raise leadership.not_leader()
                check_renamed(caller, then, now)
                raise refusal

        return renamed

    def _names_at(self, options: watch_pb2.WatchOptions) -> Timestamp | None:
        if options.page_token:
            return read_ts_of(options.page_token)
        after = read_at(options.after, self.host.process.clock.epoch, "options.after")
        return after if isinstance(after, Timestamp) else None

    def _view(self, table: TableDescriptor, catalog: Catalog) -> TableView:
        return TableView(catalog, table.database, table.name, table)

    # --- the stream --------------------------------------------------------------------------------------------

    async def _replies(
        self,
        options: watch_pb2.WatchOptions,
        bounds: KeyRange,
        replies: Replies,
        watched: Watched,
    ) -> AsyncGenerator[bytes, None]:
        start, end = bounds
        interval_ms = resolved_interval_ms(options.resolved_interval_ms, "options.resolved_interval_ms")
        shape = request_shape("watch", start, end, read_at_text(options.after))
        if options.progress_only and (options.initial_state or options.with_previous):
            given = "initial_state" if options.initial_state else "with_previous"
            raise InvalidArgument(f"options.{given}", "is not for a watch with progress_only, which sends no changes")
        replica = self.host.replica_of(start)
        after, state_at = await self._begins(replica, options, shape, bounds)
        watched.look()
        with replica.watches.watch(
            start,
            end,
            after,
            resolved_interval_ms=interval_ms,
            progress_only=options.progress_only,
            is_read_at=options.initial_state,
        ) as watch:
            while state_at is not None and state_at < end:
                of_state, state_at = await self._state(replica, watch, state_at, end, shape, replies)
                watched.look()
                for reply in of_state:
                    yield reply
            async with aclosing(watch.batches()) as batches:
                async for batch in batches:
                    watched.look()
                    over = None if batch.resolved is None else watched.ended_by(batch.resolved)
                    told = batch if over is None else Batch(batch.items, over.resolved)
                    parts = self._replies_of(replica, told, replies, with_previous=options.with_previous)
                    async with aclosing(parts) as made:
                        async for reply in made:
                            yield reply
                    if over is not None:
                        raise over.error

    async def _replies_of(
        self, replica: Replica, batch: Batch, replies: Replies, *, with_previous: bool
    ) -> AsyncGenerator[bytes, None]:
        """Yield a batch as one reply, or as several if it would be too large for one."""
        rest = batch.items
        while True:
            items, previous = rest, []
            if with_previous and items:
                previous = await replica.watches.previous(items, bytes_max=REPLY_BYTES)
                items = items[: len(previous)]
            rest = rest[len(items) :]
            for reply in await self._made(replica, items, previous, None if rest else batch.resolved, replies):
                yield reply
            if not rest:
                return

    async def _made(
        self,
        replica: Replica,
        items: list[Item],
        previous: list[Item | None],
        resolved: Timestamp | None,
        replies: Replies,
    ) -> list[bytes]:
        header = self.header(replica.read_ts())

        def encoded(begin: int, end: int) -> bytes:
            changes = Changes.of_items(items[begin:end], previous[begin:end])
            last = resolved if end == len(items) else None
            return replies.reply(changes, header, last, b"").SerializeToString()

        if len(items) <= _ON_LOOP_MAX:
            return _in_parts(encoded, 0, len(items))
        return await self.host.process.scan(lambda: _in_parts(encoded, 0, len(items)))

    async def _state(
        self, replica: Replica, watch: Watch, start: LogicalKey, end: LogicalKey, shape: bytes, replies: Replies
    ) -> tuple[list[bytes], LogicalKey | None]:
        """Return a slice of the state that the watch begins with, as one reply or several, and the start of the next
        slice."""
        watch.check()
        read_ts = watch.sent
        header = self.header(read_ts)

        def make() -> tuple[list[bytes], LogicalKey | None]:
            chunk = replica.store.scan_chunk(
                start, end, read_ts, max_rows=STATE_ROWS_MAX, max_bytes=replies.state_bytes_max
            )
            changes = Changes.of_state(chunk)
            # Each reply says where to go on, the last one, too: at the end, if no more of the state is left.
            following = [*chunk.keys, end if chunk.resume is None else chunk.resume]

            def encoded(first: int, last: int) -> bytes:
                token = encode_token(PageToken(read_ts, following[last]), shape)
                return replies.reply(changes.part(first, last), header, None, token).SerializeToString()

            return _in_parts(encoded, 0, len(chunk.keys)), chunk.resume

        return await self.host.process.scan(make)

    # --- where it begins ---------------------------------------------------------------------------------------

    async def _begins(
        self, replica: Replica, options: watch_pb2.WatchOptions, shape: bytes, bounds: KeyRange
    ) -> tuple[Timestamp, LogicalKey | None]:
        """Return the timestamp to watch after, and the key from which its state is wanted, if it is. All acknowledged
        writes up to it are applied: state and history are read from the engine alone.

        Raises InvalidArgument, InvalidPageToken, TimestampInFuture, SnapshotTooOld, NotLeader, Restoring, Unavailable.
        """
        replica.reads.check_open()
        if options.page_token:
            if not options.initial_state:
                raise InvalidArgument("options.page_token", "is for a watch with initial_state")
            token = decode_token(options.page_token, shape)
            read_ts = await replica.reads.applied_to(await replica.reads.resolve(token.read_ts))
            return read_ts, LogicalKey(token.resume_within(*bounds))
        after = read_at(options.after, self.host.process.clock.epoch, "options.after")
        if isinstance(after, Stale):
            raise InvalidArgument("options.after.stale_ms", "cannot be watched from: give a timestamp, or none")
        if after is None:
            after = await _now(replica)
        elif options.initial_state:
            after = await replica.reads.resolve(after)
        else:
            self.check_not_ahead(replica, after, "options.after")
        replica.store.check_readable(after, *bounds)
        return await replica.reads.applied_to(after), bounds[0] if options.initial_state else None


async def _now(replica: Replica) -> Timestamp:
    """Return a timestamp that at the leader is at or above all acknowledged writes; at other nodes, the applied one."""
    try:
        return await replica.reads.linearize()
    except NotLeader:
        return replica.read_ts()


def _in_parts(encoded: Callable[[int, int], bytes], begin: int, end: int) -> list[bytes]:
    """Return replies with the changes ``[begin, end)``, halved until none is too large. As JSON, for example, a change
    may have many times its size."""
    whole = encoded(begin, end)
    if len(whole) <= REPLY_BYTES_MAX or end - begin <= 1:
        return [whole]
    middle = (begin + end) // 2
    return _in_parts(encoded, begin, middle) + _in_parts(encoded, middle, end)
