"""The Watch service: the messages of its streams, in every form, and its refusals."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from typing import Any

import pytest

from cortado.errors import InvalidArgument, InvalidPageToken, NotFound, SnapshotTooOld, TimestampInFuture, Unavailable
from cortado.proto.v1 import common_pb2, documents_pb2, kv_pb2, schemas_pb2, tables_pb2, watch_pb2
from cortado.store.clock.timestamp import Timestamp
from cortado.store.host.host import Host
from cortado.store.keys.packing import cut, cut_equal
from cortado.store.keys.types import KeyPart, KeyType
from cortado.store.mvcc.safepoints import Safepoints
from cortado.store.server import watch_service
from cortado.store.server.convert import key_values, timestamp_message, timestamp_value
from cortado.store.server.documents_service import DocumentsService
from cortado.store.server.kv_service import KeyValueService
from cortado.store.server.schemas_service import SchemasService
from cortado.store.server.tables_service import TablesService
from cortado.store.server.watch_service import WatchService
from support.node_world import World

SCHEMA = (
    """{"type": "record", "name": "R", "fields": [{"name": "id", "type": "string"}, {"name": "n", "type": "int"}]}"""
)
TABLE = documents_pb2.TableName(database="d", table="t")
PARTS = [KeyPart("id", KeyType.STRING)]
AFTER_NOTHING = common_pb2.ReadAt(timestamp=common_pb2.Timestamp())


def scene(scenario: Callable[[World, Host], Awaitable[None]], **settings: Any) -> None:
    """Run a scenario on one node."""
    world = World(**settings)

    async def run() -> None:
        (node,) = await world.grow("n1")
        await scenario(world, node)

    world.run(run)


async def put(node: Host, key: bytes, value: bytes) -> Timestamp:
    reply = await KeyValueService(node).put(kv_pb2.KvPutRequest(namespace="a", key=key, value=value))
    return timestamp_value(kv_pb2.KvPutResponse.FromString(reply).header.timestamp)


async def delete(node: Host, key: bytes) -> Timestamp:
    reply = await KeyValueService(node).delete(kv_pb2.KvDeleteRequest(namespace="a", key=key))
    return timestamp_value(kv_pb2.KvDeleteResponse.FromString(reply).header.timestamp)


async def make_table(node: Host) -> None:
    await TablesService(node).create_database(tables_pb2.CreateDatabaseRequest(database="d"))
    await SchemasService(node).register(schemas_pb2.RegisterSchemaRequest(subject="s", schema=SCHEMA))
    await TablesService(node).create_table(
        tables_pb2.CreateTableRequest(database="d", name="t", subject="s", key=[tables_pb2.KeyPart(path="id")])
    )


async def put_document(node: Host, name: str, number: int) -> None:
    document = common_pb2.Document(json=f'{{"id": "{name}", "n": {number}}}')
    await DocumentsService(node).put(documents_pb2.PutDocumentRequest(table=TABLE, document=document))


async def delete_document(node: Host, name: str) -> None:
    key = common_pb2.Key(parts=[common_pb2.Value(string=name)])
    await DocumentsService(node).delete(documents_pb2.DeleteDocumentRequest(table=TABLE, key=key))


async def until_resolved(stream: AsyncGenerator[bytes, None], message: Any, ts: Timestamp) -> list[Any]:
    """Return the replies up to the first that resolves ``ts``."""
    replies = []
    async with aclosing(stream):
        async for encoded in stream:
            replies.append(message.FromString(encoded))
            resolved = timestamp_value(replies[-1].resolved) if replies[-1].HasField("resolved") else None
            if resolved is not None and resolved >= ts:
                return replies
    raise AssertionError("the stream ended")


def watch_kv(node: Host, *, packed: bool = False, **options: Any) -> AsyncGenerator[bytes, None]:
    request = watch_pb2.WatchKeyValueRequest(namespace="a", options=watch_pb2.WatchOptions(**options), packed=packed)
    return WatchService(node).key_value(request)


def changes_of(replies: list[Any]) -> list[Any]:
    return [change for reply in replies for change in reply.changes]


def test_a_stream_says_first_where_it_begins_and_then_what_changed() -> None:
    async def scenario(world: World, node: Host) -> None:
        await put(node, b"before", b"")
        async with aclosing(watch_kv(node)) as stream:
            first = watch_pb2.WatchKeyValueResponse.FromString(await anext(stream))
            assert timestamp_value(first.resolved) == node.meta.read_ts()
            assert (first.header.node_id, len(first.changes)) == ("n1", 0)
            ts = await put(node, b"k", b"v")
            reply = watch_pb2.WatchKeyValueResponse.FromString(await anext(stream))
            assert timestamp_value(reply.resolved) >= ts
            (change,) = reply.changes
            assert (change.kind, change.key, change.value) == (watch_pb2.CHANGE_KIND_PUT, b"k", b"v")
            assert (change.etag, timestamp_value(change.timestamp)) == (str(ts), ts)

    scene(scenario)


def test_a_delete_carries_its_key_and_what_it_replaced_where_asked_for() -> None:
    async def scenario(world: World, node: Host) -> None:
        written = await put(node, b"k", b"old")
        ts = await delete(node, b"k")
        stream = watch_kv(node, after=AFTER_NOTHING, with_previous=True)
        first, second = changes_of(await until_resolved(stream, watch_pb2.WatchKeyValueResponse, ts))
        assert not first.HasField("previous")
        assert (second.kind, second.key, second.etag) == (watch_pb2.CHANGE_KIND_DELETE, b"k", "")
        assert (second.previous.value, second.previous.etag) == (b"old", str(written))

    scene(scenario)


def test_packed_changes_say_the_same() -> None:
    async def scenario(world: World, node: Host) -> None:
        await put(node, b"a", b"1")
        await put(node, b"b\0", b"")
        await delete(node, b"a")
        ts = await put(node, b"b\0", b"2")
        options: dict[str, Any] = {"after": AFTER_NOTHING, "with_previous": True}
        plain = changes_of(await until_resolved(watch_kv(node, **options), watch_pb2.WatchKeyValueResponse, ts))
        replies = await until_resolved(watch_kv(node, packed=True, **options), watch_pb2.WatchKeyValueResponse, ts)
        (packed,) = [reply.packed for reply in replies if reply.HasField("packed")]
        keys, values = cut(packed.keys, packed.key_lengths), cut(packed.values, packed.value_lengths)
        assert list(keys) == [each.key for each in plain] == [b"a", b"b\0", b"a", b"b\0"]
        assert list(values) == [each.value for each in plain]
        assert list(packed.deletes) == [2]
        stamps = [timestamp_message(Timestamp.from_bytes(each)) for each in cut_equal(packed.versions, 12)]
        assert stamps == [each.timestamp for each in plain]
        assert list(packed.replacing) == [2, 3]
        replaced = packed.replaced
        assert cut(replaced.keys, replaced.key_lengths) == (b"a", b"b\0")
        assert cut(replaced.values, replaced.value_lengths) == (b"1", b"")
        etags = [str(Timestamp.from_bytes(each)) for each in cut_equal(replaced.versions, 12)]
        assert etags == [plain[2].previous.etag, plain[3].previous.etag]

    scene(scenario)


def test_the_state_at_the_start_comes_first_in_key_order_and_can_be_gone_on_with(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(watch_service, "STATE_ROWS_MAX", 2)

    async def scenario(world: World, node: Host) -> None:
        for key in (b"c", b"a", b"b", b"d", b"e"):
            await put(node, key, b"old")
        start = await delete(node, b"d")
        async with aclosing(watch_kv(node, initial_state=True)) as stream:
            first = watch_pb2.WatchKeyValueResponse.FromString(await anext(stream))
        assert [each.key for each in first.changes] == [b"a", b"b"]
        assert not first.HasField("resolved")
        assert timestamp_value(first.header.timestamp) == start
        ts = await put(node, b"a", b"new")
        # The stream broke: the rest of the state, as it was, and then the changes since.
        rest = watch_kv(node, initial_state=True, page_token=first.next_page_token)
        replies = await until_resolved(rest, watch_pb2.WatchKeyValueResponse, ts)
        assert [(each.key, each.value) for each in changes_of(replies)] == [
            (b"c", b"old"), (b"e", b"old"), (b"a", b"new"),
        ]  # fmt: skip
        resolved = [timestamp_value(each.resolved) for each in replies if each.HasField("resolved")]
        assert resolved[0] == start

    scene(scenario)


def test_a_state_token_of_another_watch_is_refused() -> None:
    async def scenario(world: World, node: Host) -> None:
        await put(node, b"a", b"")
        async with aclosing(watch_kv(node, initial_state=True)) as stream:
            token = watch_pb2.WatchKeyValueResponse.FromString(await anext(stream)).next_page_token
        request = watch_pb2.WatchKeyValueRequest(
            namespace="b", options=watch_pb2.WatchOptions(initial_state=True, page_token=token)
        )
        with pytest.raises(InvalidPageToken):
            await anext(WatchService(node).key_value(request))
        with pytest.raises(InvalidArgument) as refused:
            await anext(watch_kv(node, page_token=token))
        assert refused.value.field == "options.page_token"

    scene(scenario)


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"resolved_interval_ms": 60_001}, "options.resolved_interval_ms"),
        ({"after": common_pb2.ReadAt(stale_ms=5)}, "options.after.stale_ms"),
        ({"after": common_pb2.ReadAt(wall_ms=1 << 62)}, "options.after.wall_ms"),
        ({"page_token": b"x", "initial_state": True}, "page_token"),
    ],
)
def test_options_out_of_bounds_are_refused_by_name(options: dict[str, Any], field: str) -> None:
    async def scenario(world: World, node: Host) -> None:
        with pytest.raises(InvalidArgument) as refused:
            await anext(watch_kv(node, **options))
        assert refused.value.field == field

    scene(scenario)


def test_a_start_in_the_future_is_refused() -> None:
    async def scenario(world: World, node: Host) -> None:
        ahead = Timestamp(0, node.process.clock.physical_ms + 3_600_000, 0)
        for initial_state in (False, True):
            after = common_pb2.ReadAt(timestamp=timestamp_message(ahead))
            with pytest.raises(TimestampInFuture):
                await anext(watch_kv(node, after=after, initial_state=initial_state))

    scene(scenario)


def test_a_follower_that_may_be_behind_sends_elsewhere_instead() -> None:
    world = World()

    async def scenario() -> None:
        _, follower, _ = await world.grow("n1", "n2", "n3")
        later = Timestamp(1, follower.process.clock.physical_ms, 0)
        with pytest.raises(Unavailable):
            await anext(watch_kv(follower, after=common_pb2.ReadAt(timestamp=timestamp_message(later))))
        async with aclosing(watch_kv(follower)) as stream:
            first = watch_pb2.WatchKeyValueResponse.FromString(await anext(stream))
        assert timestamp_value(first.resolved) == follower.meta.read_ts()

    world.run(scenario)


def test_history_that_was_collected_is_refused_with_the_earliest_timestamp() -> None:
    async def scenario(world: World, node: Host) -> None:
        first = await put(node, b"a", b"1")
        node.meta.store.safepoints = Safepoints(await put(node, b"a", b"2"))
        with pytest.raises(SnapshotTooOld) as refused:
            await anext(watch_kv(node, after=common_pb2.ReadAt(timestamp=timestamp_message(first))))
        assert refused.value.safepoint == str(node.meta.store.safepoints.cluster)

    scene(scenario)


@pytest.mark.parametrize("packed", [False, True])
def test_documents_come_with_the_schema_that_wrote_them_and_deletes_with_their_key(packed: bool) -> None:
    async def scenario(world: World, node: Host) -> None:
        await make_table(node)
        await put_document(node, "x", 1)
        await put_document(node, "x", 2)
        await delete_document(node, "x")
        options = watch_pb2.WatchOptions(after=AFTER_NOTHING, with_previous=True)
        request = watch_pb2.WatchTableRequest(table=TABLE, options=options, packed=packed)
        replies = await until_resolved(
            WatchService(node).table(request), watch_pb2.WatchTableResponse, node.meta.read_ts()
        )
        bodies = [b"\x02x\x02", b"\x02x\x04"]
        if packed:
            (made,) = [reply.packed for reply in replies if reply.HasField("packed")]
            (rows,) = made.rows
            assert (rows.bodies, len(rows.lengths)) == (b"".join(bodies), 8)
            assert len(made.versions) == 36
            assert list(made.deletes) == [2]
            assert [key_values(each, PARTS) for each in made.deleted] == [("x",)]
            assert list(made.replacing) == [1, 2]
            assert [each.bodies for each in made.replaced] == [b"".join(bodies)]
        else:
            first, second, third = changes_of(replies)
            assert [first.document.avro, second.document.avro] == bodies
            assert not first.HasField("previous")
            assert (second.previous.document.avro, second.previous.etag) == (bodies[0], first.etag)
            assert (third.kind, third.HasField("document")) == (watch_pb2.CHANGE_KIND_DELETE, False)
            assert key_values(third.key, PARTS) == ("x",)
            assert third.previous.etag == second.etag

    scene(scenario)


def test_documents_come_as_json_within_a_range_of_the_primary_key() -> None:
    async def scenario(world: World, node: Host) -> None:
        await make_table(node)
        for name in ("a", "b", "c"):
            await put_document(node, name, 7)
        lower, upper = (common_pb2.Key(parts=[common_pb2.Value(string=each)]) for each in "bc")
        request = watch_pb2.WatchTableRequest(
            table=TABLE,
            range=common_pb2.KeyRange(start=lower, end=upper),
            options=watch_pb2.WatchOptions(initial_state=True),
            format=common_pb2.DOCUMENT_FORMAT_JSON,
        )
        replies = await until_resolved(
            WatchService(node).table(request), watch_pb2.WatchTableResponse, node.meta.read_ts()
        )
        assert [each.document.json for each in changes_of(replies)] == ['{"id": "b", "n": 7}']

    scene(scenario)


def test_a_table_that_is_not_there_is_named() -> None:
    async def scenario(world: World, node: Host) -> None:
        with pytest.raises(NotFound):
            await anext(WatchService(node).table(watch_pb2.WatchTableRequest(table=TABLE)))

    scene(scenario)


def test_what_was_replaced_counts_for_the_size_of_a_message() -> None:
    async def scenario(world: World, node: Host) -> None:
        for number in range(12):
            start = await put(node, b"k%d" % number, bytes(200_000))
        reply = await KeyValueService(node).delete_range(
            kv_pb2.KvDeleteRangeRequest(namespace="a", range=kv_pb2.KvRange(prefix=b"k"))
        )
        ts = timestamp_value(kv_pb2.KvDeleteRangeResponse.FromString(reply).header.timestamp)
        after = common_pb2.ReadAt(timestamp=timestamp_message(start))
        stream = watch_kv(node, after=after, with_previous=True)
        replies = await until_resolved(stream, watch_pb2.WatchKeyValueResponse, ts)
        assert [len(each.previous.value) for each in changes_of(replies)] == [200_000] * 12
        assert max(each.ByteSize() for each in replies) < 1 << 20
        # Parts of one commit: only the last one resolves it.
        assert [each.HasField("resolved") for each in replies if each.changes] == [False] * 3 + [True]

    scene(scenario)


def test_documents_that_grow_as_json_are_sent_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch_service, "REPLY_BYTES_MAX", 300)

    async def scenario(world: World, node: Host) -> None:
        await make_table(node)
        for number in range(9):
            await put_document(node, f"x{number}", number)
        request = watch_pb2.WatchTableRequest(
            table=TABLE,
            options=watch_pb2.WatchOptions(after=AFTER_NOTHING),
            format=common_pb2.DOCUMENT_FORMAT_JSON,
        )
        replies = await until_resolved(
            WatchService(node).table(request), watch_pb2.WatchTableResponse, node.meta.read_ts()
        )
        assert len(changes_of(replies)) == 9
        assert max(each.ByteSize() for each in replies) <= 300

    scene(scenario)


def test_large_values_are_sent_in_bounded_messages() -> None:
    async def scenario(world: World, node: Host) -> None:
        for number in range(12):
            ts = await put(node, b"k%d" % number, bytes(200_000))
        stream = watch_kv(node, after=AFTER_NOTHING)
        replies = await until_resolved(stream, watch_pb2.WatchKeyValueResponse, ts)
        assert len(changes_of(replies)) == 12
        assert max(reply.ByteSize() for reply in replies) < 1 << 20

    scene(scenario)


def test_a_watch_of_the_progress_alone_says_when_something_has_changed_and_nothing_else() -> None:
    async def scenario(world: World, node: Host) -> None:
        first = await put(node, b"k", b"before")
        within = kv_pb2.KvRange(prefix=b"k")
        options = watch_pb2.WatchOptions(after=AFTER_NOTHING, progress_only=True, resolved_interval_ms=5_000)
        request = watch_pb2.WatchKeyValueRequest(namespace="a", range=within, options=options)
        async with aclosing(WatchService(node).key_value(request)) as stream:

            async def following() -> tuple[float, Timestamp]:
                reply = watch_pb2.WatchKeyValueResponse.FromString(await anext(stream))
                assert not reply.changes
                return world.now_ms, timestamp_value(reply.resolved)

            assert (await following())[1] == Timestamp(0, 0, 0)
            began_ms = world.now_ms
            assert first <= (await following())[1]
            assert world.now_ms == began_ms
            assert (await following())[0] >= began_ms + 5_000
            began_ms = world.now_ms
            other = await put(node, b"other", b"")
            changed = await put(node, b"k", b"after")
            when_ms, resolved = await following()
            assert when_ms - began_ms < 1_000
            assert other < changed <= resolved
            assert node.meta.watches.statistics().queued_events == 0
            assert node.meta.watches.statistics().passes == 0

    scene(scenario)


@pytest.mark.parametrize("also", ["initial_state", "with_previous"])
def test_a_watch_of_the_progress_alone_has_no_values(also: str) -> None:
    async def scenario(_world: World, node: Host) -> None:
        with pytest.raises(InvalidArgument) as refused:
            await anext(watch_kv(node, progress_only=True, **{also: True}))
        assert refused.value.field == f"options.{also}"

    scene(scenario)


@pytest.mark.parametrize("kind", ["table", "namespace"])
def test_nothing_is_resolved_from_the_drop_on_of_what_is_watched(kind: str) -> None:
    async def scenario(world: World, node: Host) -> None:
        message: Any
        if kind == "table":
            await make_table(node)
            began = common_pb2.ReadAt(timestamp=timestamp_message(node.meta.read_ts()))
            await put_document(node, "k", 1)
            options = watch_pb2.WatchOptions(after=began)
            stream = WatchService(node).table(watch_pb2.WatchTableRequest(table=TABLE, options=options))
            message = watch_pb2.WatchTableResponse
            drop = tables_pb2.DropTableRequest(database="d", name="t")
            dropped = tables_pb2.DropTableResponse.FromString(await TablesService(node).drop_table(drop)).dropped
        else:
            await put(node, b"k", b"v")
            stream, message = watch_kv(node, after=AFTER_NOTHING), watch_pb2.WatchKeyValueResponse
            service, drop_it = KeyValueService(node), kv_pb2.DropNamespaceRequest(namespace="a")
            dropped = kv_pb2.DropNamespaceResponse.FromString(await service.drop_namespace(drop_it)).dropped
        dropped_ts = timestamp_value(dropped.dropped)
        replies: list[Any] = []
        with pytest.raises(NotFound, match="was dropped at"):
            async with aclosing(stream):
                while True:
                    replies.append(message.FromString(await anext(stream)))
        marks = [timestamp_value(each.resolved) for each in replies if each.HasField("resolved")]
        assert len(changes_of(replies)) == 1
        assert marks[-1] == dropped_ts.previous() == max(marks)

    scene(scenario)
