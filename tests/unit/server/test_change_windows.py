"""``Watch.Window``: the end of the next changes, in whole commits, and parts of a range with equally many of them."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from cortado.errors import CortadoError, InvalidArgument, NotFound, SnapshotTooOld, TimestampInFuture
from cortado.proto.v1 import common_pb2, documents_pb2, kv_pb2, schemas_pb2, tables_pb2, transactions_pb2, watch_pb2
from cortado.store.clock.timestamp import ZERO, Timestamp
from cortado.store.host.host import Host
from cortado.store.keys.types import KeyPart, KeyType
from cortado.store.mvcc.safepoints import Safepoints
from cortado.store.process.limits import NodeLimits
from cortado.store.replica.feed import counted
from cortado.store.server.convert import key_values, timestamp_message, timestamp_value
from cortado.store.server.documents_service import DocumentsService
from cortado.store.server.kv_service import KeyValueService
from cortado.store.server.schemas_service import SchemasService
from cortado.store.server.tables_service import TablesService
from cortado.store.server.transactions_service import TransactionsService
from cortado.store.server.watch_service import WatchService
from support.large_transactions import Scene, committed_at, nothing_put_in_place
from support.node_world import World

SCHEMA = '{"type": "record", "name": "R", "fields": [{"name": "id", "type": "string"}]}'
TABLE = documents_pb2.TableName(database="d", table="t")
PAIRS = watch_pb2.WindowOfPairs(namespace="a")


def scene(scenario: Callable[[World, Host], Awaitable[None]], **settings: Any) -> None:
    world = World(**settings)

    async def run() -> None:
        (node,) = await world.grow("n1")
        await scenario(world, node)

    world.run(run)


async def commit(node: Host, names: str, size: int = 1) -> Timestamp:
    """Make one commit that puts these keys."""
    puts = [
        common_pb2.Operation(put_pair=common_pb2.KvPut(namespace="a", key=name.encode(), value=b"v" * size))
        for name in names
    ]
    reply = await TransactionsService(node).commit(transactions_pb2.CommitRequest(operations=puts))
    return timestamp_value(transactions_pb2.CommitResponse.FromString(reply).header.timestamp)


def at(ts: Timestamp) -> common_pb2.ReadAt:
    return common_pb2.ReadAt(timestamp=timestamp_message(ts))


async def window(node: Host, after: Timestamp = ZERO, **options: Any) -> watch_pb2.WindowResponse:
    options = {"pairs": PAIRS, **options}
    reply = await WatchService(node).window(watch_pb2.WindowRequest(after=at(after), **options))
    assert isinstance(reply, watch_pb2.WindowResponse)
    return reply


def bounds(reply: watch_pb2.WindowResponse) -> list[tuple[bytes, bytes, int]]:
    return [
        (each.start, each.end, count) for each, count in zip(reply.pair_ranges, reply.changes_of_ranges, strict=True)
    ]


def test_it_ends_with_the_commit_that_fits() -> None:
    async def scenario(_world: World, node: Host) -> None:
        first, second, third = [await commit(node, names) for names in ("abc", "bd", "e")]
        everything = await window(node)
        assert (everything.changes, timestamp_value(everything.until)) == (6, node.meta.read_ts())
        for changes_max, (changes, above, below) in {
            1: (3, first, second),
            4: (3, first, second),
            5: (5, second, third),
        }.items():
            reply = await window(node, changes_max=changes_max)
            assert reply.changes == changes
            assert above <= timestamp_value(reply.until) < below
        assert (await window(node, first, until=at(second))).changes == 2
        nothing = await window(node, third)
        assert (nothing.changes, bounds(nothing)) == (0, [(b"", b"", 0)])
        # Bytes are of the stored keys and values.
        assert (await window(node, bytes_max=1)).changes == 3
        assert (await window(node, bytes_max=200)).changes == 5
        assert (await window(node, bytes_max=1_000)).changes == 6

    scene(scenario)


@pytest.mark.parametrize("seed", range(8))
def test_asked_for_again_it_is_the_same_and_together_they_are_everything(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    draw = random.Random(seed)
    monkeypatch.setattr(counted, "_READ_BYTES", 100)
    monkeypatch.setattr(counted, "_SORTED_MAX", draw.choice((3, 1_000)))

    async def scenario(_world: World, node: Host) -> None:
        commits = {}
        for _ in range(20):
            names = "".join(draw.sample("abcdefghijkl", draw.choice((1, 3, 9))))
            commits[await commit(node, names, draw.choice((1, 100)))] = sorted(names)
        last = max(commits)
        within = watch_pb2.WindowOfPairs(namespace="a", range=kv_pb2.KvRange(start=b"b", end=b"k"))
        after = ZERO
        while after < last:
            options = {
                "changes_max": draw.choice((0, 1, 5, 12)),
                "bytes_max": draw.choice((0, 1, 400)),
                "parts": draw.choice((0, 1, 4, 20)),
                "pairs": within,
            }
            found = await window(node, after, until=at(last), **options)
            until = timestamp_value(found.until)
            again = await window(node, after, until=at(until), **options)
            assert bounds(again) == bounds(found)
            assert (again.changes, again.until) == (found.changes, found.until)
            written = [
                name.encode() for ts in commits for name in commits[ts] if after < ts <= until and "b" <= name < "k"
            ]
            assert found.changes == len(written) == sum(found.changes_of_ranges)
            starts, ends = [each[0] for each in bounds(found)], [each[1] for each in bounds(found)]
            assert (starts[0], ends[-1], starts[1:]) == (b"b", b"k", ends[:-1])
            assert starts == sorted(set(starts))
            assert len(starts) <= max(options["parts"], 1)
            if counted._SORTED_MAX > 100:
                assert found.changes_of_ranges == [
                    sum(start <= name < end for name in written) for start, end in zip(starts, ends, strict=True)
                ]
            after = until

    scene(scenario)


def test_no_more_is_counted_than_the_node_takes() -> None:
    async def scenario(_world: World, node: Host) -> None:
        for name in "abcde":
            await commit(node, name)
        assert (await window(node)).changes == 2
        assert (await window(node, changes_max=1_000)).changes == 2

    scene(scenario, limits=NodeLimits(watch_pass_events_max=2))


def test_a_tables_window_has_ranges_of_its_primary_key() -> None:
    async def scenario(_world: World, node: Host) -> None:
        await TablesService(node).create_database(tables_pb2.CreateDatabaseRequest(database="d"))
        await SchemasService(node).register(schemas_pb2.RegisterSchemaRequest(subject="s", schema=SCHEMA))
        key = [tables_pb2.KeyPart(path="id")]
        await TablesService(node).create_table(
            tables_pb2.CreateTableRequest(database="d", name="t", subject="s", key=key)
        )
        began = node.meta.read_ts()
        for name in "abcd":
            document = common_pb2.Document(json=f'{{"id": "{name}"}}')
            await DocumentsService(node).put(documents_pb2.PutDocumentRequest(table=TABLE, document=document))
        found = await window(node, began, pairs=None, table=watch_pb2.WindowOfTable(table=TABLE), parts=2)
        parts = [KeyPart("id", KeyType.STRING)]
        inner = [key_values(each.start, parts) for each in found.ranges if each.HasField("start")]
        assert (found.changes, list(found.changes_of_ranges), inner) == (4, [2, 2], [("c",)])
        assert not found.ranges[-1].HasField("end")
        nobody = documents_pb2.TableName(database="d", table="x")
        with pytest.raises(NotFound):
            await window(node, began, pairs=None, table=watch_pb2.WindowOfTable(table=nobody))

    scene(scenario)


def test_it_ends_before_what_is_not_in_place_yet() -> None:
    async def scenario(_world: World, node: Host) -> None:
        scene = await Scene.make(node)
        began = node.meta.read_ts()
        await scene.load([(1, 10, 0)])
        await scene.begin()
        await scene.stage([(2, 20, 0), (3, 30, 0)])
        of = {"pairs": None, "table": watch_pb2.WindowOfTable(table=documents_pb2.TableName(database="d", table="t"))}
        with nothing_put_in_place() as release:
            committed = committed_at(await scene.commit())
            held = await window(node, began, until=at(committed), **of)
            assert (held.changes, timestamp_value(held.until)) == (1, committed.previous())
            nothing = await window(node, committed.previous(), until=at(committed), parts=3, **of)
            assert (nothing.changes, timestamp_value(nothing.until)) == (0, committed.previous())
            assert len(nothing.ranges) == 1
            release.set()
        await scene.resolved()
        found = await window(node, began, until=at(committed), **of)
        assert (found.changes, timestamp_value(found.until)) == (3, committed)

    scene(scenario)


REFUSED: dict[str, tuple[dict[str, Any], type[CortadoError], str]] = {
    "no range": ({"pairs": None}, InvalidArgument, "of"),
    "a prefix": (
        {"pairs": watch_pb2.WindowOfPairs(namespace="a", range=kv_pb2.KvRange(prefix=b"k"))},
        InvalidArgument,
        "pairs.range.prefix",
    ),
    "too many parts": ({"parts": 5_000}, InvalidArgument, "parts"),
    "a stale end": ({"until": common_pb2.ReadAt(stale_ms=5)}, InvalidArgument, "until.stale_ms"),
    "a stale beginning": ({"after": common_pb2.ReadAt(stale_ms=5)}, InvalidArgument, "after"),
    "no beginning": ({"after": None}, InvalidArgument, "after"),
    "a far future": ({"after": common_pb2.ReadAt(wall_ms=1 << 45)}, TimestampInFuture, "after"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_is_asked_wrongly_is_refused(what: str) -> None:
    changed, error, field = REFUSED[what]

    async def scenario(_world: World, node: Host) -> None:
        await commit(node, "a")
        asked = {"pairs": PAIRS, "after": at(ZERO), **changed}
        with pytest.raises(error) as refused:
            await WatchService(node).window(watch_pb2.WindowRequest(**asked))
        assert refused.value.field == field  # type: ignore[attr-defined]

    scene(scenario)


def test_what_was_collected_is_refused_with_the_earliest_timestamp() -> None:
    async def scenario(_world: World, node: Host) -> None:
        first, second = await commit(node, "a"), await commit(node, "a")
        node.meta.store.safepoints = Safepoints(second)
        with pytest.raises(SnapshotTooOld) as refused:
            await window(node, first)
        assert refused.value.safepoint == str(second)

    scene(scenario)


def test_it_ends_below_the_drop_of_what_it_is_of() -> None:
    async def scenario(_world: World, node: Host) -> None:
        service = KeyValueService(node)
        await commit(node, "ab")
        reply = await service.drop_namespace(kv_pb2.DropNamespaceRequest(namespace="a"))
        dropped_ts = timestamp_value(kv_pb2.DropNamespaceResponse.FromString(reply).dropped.dropped)
        # Its successor is of another generation; a window from before would never tell it.
        written_ts = await commit(node, "c")
        last = await window(node, until=at(written_ts))
        assert (last.changes, timestamp_value(last.until)) == (2, dropped_ts.previous())
        with pytest.raises(NotFound, match="was dropped at"):
            await window(node, dropped_ts.previous())
        assert (await window(node, dropped_ts)).changes == 1

    scene(scenario)
