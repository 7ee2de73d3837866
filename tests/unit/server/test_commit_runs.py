"""Plain commits of transactions that are answered together: conflicts among them, and the ends of those refused."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from cortado.errors import OutcomeUnknown, PermissionDenied, ResourceExhausted, TimestampInFuture, WriteConflict
from cortado.proto.v1 import calls_pb2, kv_pb2, transactions_pb2
from cortado.store.auth import changes
from cortado.store.auth.stored import Kind
from cortado.store.auth.tokens import Token, header_of, make_token
from cortado.store.clock.timestamp import Timestamp
from cortado.store.engine.interface import Space
from cortado.store.host.host import Host
from cortado.store.keys.keyspace import kv_key, kv_range, namespace_key
from cortado.store.server.audit import Audit
from cortado.store.server.authority import Authority
from cortado.store.server.convert import timestamp_message
from cortado.store.server.transactions_service import TransactionsService
from cortado.store.transactions.footprint import Footprint
from support.nodes import NOW_MS, until
from support.plain_calls import delete, error, etag, get, given, put, request_id, value
from support.run_twins import METHOD, Served, serving, sizes_of_runs


@pytest.fixture
def sizes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return the sizes of the runs of writes that are submitted."""
    return sizes_of_runs(monkeypatch)


def commit(
    number: int,
    *keys: bytes,
    start: Timestamp | None = None,
    deletes: Sequence[bytes] = (),
    reads: Sequence[bytes] = (),
    read_in: str = "n",
) -> calls_pb2.Call:
    """A commit that puts ``keys``; with ``reads`` it is serializable."""
    request = transactions_pb2.CommitRequest(request_id=request_id(put(number)))
    for key in keys:
        operation = request.operations.add().put_pair
        operation.namespace, operation.key, operation.value = "n", key, b"%d" % number
    for key in deletes:
        removed = request.operations.add().delete_pair
        removed.namespace, removed.key = "n", key
    if start is not None:
        request.start.CopyFrom(timestamp_message(start))
    if reads:
        request.isolation = transactions_pb2.ISOLATION_SERIALIZABLE
        read = Footprint([namespace_key(read_in), *(kv_key(read_in, key) for key in reads)])
        request.footprints.append(read.encode())
    return calls_pb2.Call(id=number, method="cortado.v1.Transactions/Commit", request=request.SerializeToString())


def conflict(reply: calls_pb2.CallReply) -> tuple[str, str]:
    """Return what the transaction had to do with the key, and when that was written."""
    found = error(reply)
    assert isinstance(found, WriteConflict), found
    return found.kind, found.conflict_ts


def now(served: Served) -> Timestamp:
    """Return a time at which a transaction may have begun."""
    return served.node.meta.read_ts()


def test_commits_of_a_message_are_one_run_and_each_has_a_timestamp_of_its_own(sizes: list[int]) -> None:
    async def scenario(served: Served) -> None:
        await served.call([put(1, b"gone"), put(2, b"other")])
        start = now(served)
        calls = [commit(number, b"%d" % number, b"more-%d" % number, start=start) for number in range(11, 16)]
        calls += [commit(16, b"16", start=start, deletes=[b"gone", b"none"]), commit(17, b"17")]
        replies = await served.call(calls)
        times = [etag(replies[number]) for number in range(11, 18)]
        assert times == [Timestamp(0, times[0].wall_ms, times[0].logical + place) for place in range(7)]
        assert sizes == [2, 7]
        found = await served.call([get(21, b"11"), get(22, b"more-15"), get(23, b"gone"), get(24, b"17")])
        assert [value(found[number]) for number in range(21, 25)] == [b"11", b"15", None, b"17"]

    serving(scenario)


def test_of_two_commits_that_write_one_key_the_first_wins(sizes: list[int]) -> None:
    async def scenario(served: Served) -> None:
        await served.call([put(1), put(2)])
        start = now(served)
        replies = await served.call(
            [
                commit(11, b"a", start=start),
                commit(12, b"a", start=start),
                commit(13, b"b", start=start, reads=[b"x", b"a"]),
                commit(14, b"c", start=start, deletes=[b"a"]),
                commit(15, b"b", start=start, reads=[b"x", b"c"]),
            ]
        )
        first = str(etag(replies[11]))
        assert [conflict(replies[number]) for number in (12, 13, 14)] == [
            ("write", first),
            ("read", first),
            ("write", first),
        ]
        in_flight = served.node.meta.driver.pipeline.requests
        assert not any(request_id(put(number)) in in_flight for number in (12, 13, 14)), "nor known after its answer"
        # What was refused has written nothing that would be in the way of another.
        assert etag(replies[15]).logical == etag(replies[11]).logical + 4
        assert sizes == [2, 5]
        await served.applied()
        assert served.node.meta.applied.requests == 4, "a refusal is not remembered"
        assert not served.node.meta.driver.pipeline.requests
        found = await served.call([get(21, b"a"), get(22, b"b"), get(23, b"c")])
        assert [value(found[number]) for number in (21, 22, 23)] == [b"11", b"15", None]

    serving(scenario)


def test_a_commit_meets_what_was_written_before_the_run_and_since_it_began(sizes: list[int]) -> None:
    async def scenario(served: Served) -> None:
        await served.call([put(1, b"a"), put(2, b"b")])
        start = now(served)
        before = await served.call([put(3, b"a"), put(4, b"x"), delete(5, b"b"), delete(6, b"b")])
        asked = [commit(11, b"a", start=start), commit(12, b"b", start=start), commit(13, b"c", start=start)]
        replies = await served.call([*asked, commit(14, b"d", start=start, reads=[b"a"])])
        assert conflict(replies[11]) == ("write", str(etag(before[3])))
        assert conflict(replies[12])[0] == "write", "a delete is a write, too"
        assert conflict(replies[14]) == ("read", str(etag(before[3])))
        assert etag(replies[13]) and sizes == [2, 2, 2, 4]

    serving(scenario)


def test_a_commit_meets_a_namespace_that_was_dropped_since_it_began(sizes: list[int]) -> None:
    async def scenario(served: Served) -> None:
        await served.call([put(1, b"a"), put(2, b"b")])
        start = now(served)
        drop = kv_pb2.DropNamespaceRequest(namespace="n", request_id=request_id(put(3)))
        dropped = calls_pb2.Call(id=3, method=METHOD + "DropNamespace", request=drop.SerializeToString())
        assert not (await served.call([dropped]))[3].status
        asked = [commit(11, b"c", start=start), commit(12, b"d", deletes=[b"e"], start=start), commit(13, b"e")]
        replies = await served.call([*asked, commit(14, b"f", start=now(served))])
        assert [conflict(replies[number])[0] for number in (11, 12)] == ["namespace"] * 2
        assert etag(replies[13]) and etag(replies[14]) and sizes == [2, 4]

    serving(scenario)


def test_a_commit_that_has_read_a_range_goes_the_general_way(sizes: list[int]) -> None:
    async def scenario(served: Served) -> None:
        start = now(served)
        await served.call([put(1, b"b"), put(2, b"x")])
        calls = [commit(number, b"%d" % number, start=start) for number in range(11, 16)]
        ranged = transactions_pb2.CommitRequest.FromString(calls[2].request)
        ranged.footprints.append(Footprint((), [kv_range("n", b"a", b"c")]).encode())
        replies = await served.call([*calls[:2], given(calls[2], request=ranged.SerializeToString()), *calls[3:]])
        assert conflict(replies[13])[0] == "range" and sizes == [2, 2, 2]
        assert all(etag(replies[number]) for number in (11, 12, 14, 15))

    serving(scenario)


def test_a_commit_that_began_in_the_future_is_refused_alone(sizes: list[int]) -> None:
    async def scenario(served: Served) -> None:
        start = now(served)
        ahead = Timestamp(0, NOW_MS + 60_000, 0)
        replies = await served.call([commit(11, b"a", start=start), commit(12, b"b", start=ahead), commit(13, b"c")])
        assert isinstance(error(replies[12]), TimestampInFuture)
        assert etag(replies[11]) and etag(replies[13]) and sizes == [3]

    serving(scenario)


def test_a_commit_that_writes_a_key_twice_writes_it_once(sizes: list[int]) -> None:
    async def scenario(served: Served) -> None:
        start = now(served)
        calls = [commit(11, b"a", b"b", b"a", start=start), commit(12, b"c", start=start, deletes=[b"c", b"none"])]
        replies = await served.call(calls)
        assert etag(replies[11]) and etag(replies[12]) and sizes == [2]
        await served.applied()
        with served.node.process.engine.read() as txn:
            stored = txn.page(Space.DATA, b"k", b"l", max_items=100).keys
        assert [key for key in stored if b"a" in key or b"none" in key or b"c" in key] == [stored[0]]

    serving(scenario)


def test_a_run_of_which_all_are_refused_writes_nothing(sizes: list[int]) -> None:
    async def scenario(served: Served) -> None:
        await served.call([put(1), put(2)])
        start = now(served)
        await served.call([put(3, b"a"), put(4, b"b")])
        count = len(served.entries)
        replies = await served.call([commit(11, b"a", start=start), commit(12, b"b", start=start)])
        assert [conflict(replies[number])[0] for number in (11, 12)] == ["write", "write"]
        assert len(served.entries) == count and sizes == [2, 2, 2]
        pipeline = served.node.meta.driver.pipeline
        assert pipeline.measures.commits.conflicts["write"] == 2
        assert served.node.process.writes.use().count == 0 and request_id(put(11)) not in pipeline.requests

    serving(scenario)


def test_a_refusal_is_told_once_the_writes_that_it_rests_on_are_committed() -> None:
    async def scenario(served: Served) -> None:
        await served.call([put(1), put(2)])
        start = now(served)
        served.disk.hold()
        served.disk.failures.append(ResourceExhausted("no room", 1_000, "map"))
        served.send([put(3, b"a"), put(4, b"x")])
        await until(lambda: served.node.meta.driver.pipeline.has_uncommitted, "the entry is appended")
        served.send([commit(11, b"a", start=start), commit(12, b"b", start=start)])
        await until(lambda: served.node.process.writes.use().count == 4, "the commits are evaluated")
        served.disk.release()
        replies = await served.receive(4)
        assert [error(replies[number]).reason for number in (3, 4)] == ["RESOURCE_EXHAUSTED"] * 2
        assert etag(replies[11]) and etag(replies[12]), "what they met has not happened"

    serving(scenario)


def test_a_retry_of_a_refused_commit_waits_for_its_refusal() -> None:
    async def scenario(served: Served) -> None:
        await served.call([put(1), put(2)])
        start = now(served)
        served.disk.hold()
        calls = [commit(number, b"a", start=start) for number in (11, 12)]
        served.send([*calls, commit(13, b"b", start=start)])
        await until(lambda: served.node.meta.driver.pipeline.has_uncommitted, "the entry is appended")
        served.send([given(calls[1], id=22)])
        await until(lambda: served.service.use() == (1, 4), "the retry waits")
        served.disk.release()
        replies = await served.receive(4)
        assert conflict(replies[22]) == conflict(replies[12]) == ("write", str(etag(replies[11])))
        again = await served.call([given(calls[1], id=31)])
        assert conflict(again[31]) == conflict(replies[12])

    serving(scenario)


def test_a_refused_commit_is_settled_as_one_that_has_not_happened() -> None:
    async def scenario(served: Served) -> None:
        await served.call([put(1), put(2)])
        start = now(served)
        served.disk.hold()
        served.send([commit(11, b"a", start=start), commit(12, b"a", start=start), commit(13, b"b", start=start)])
        await until(lambda: served.node.meta.driver.pipeline.has_uncommitted, "the entry is appended")
        service = TransactionsService(served.node)
        asked = [transactions_pb2.SettleRequest(request_id=request_id(put(number))) for number in (11, 12)]
        settling = asyncio.gather(*(service.settle(request) for request in asked))
        await asyncio.sleep(0)
        served.disk.release()
        await served.receive(3)
        async with asyncio.timeout(10):
            settled = await settling
        assert [transactions_pb2.SettleResponse.FromString(each.SerializeToString()).happened for each in settled] == [
            True,
            False,
        ]

    serving(scenario)


def test_an_unknown_outcome_names_each_commit() -> None:
    async def scenario(served: Served) -> None:
        start = now(served)
        served.disk.hold()
        calls = [commit(number, b"%d" % (number % 2), start=start) for number in (11, 12, 13)]
        served.send(calls)
        driver = served.node.meta.driver
        await until(lambda: driver.pipeline.has_uncommitted, "the entry is appended")
        driver._lose(driver.log.term)
        found = {number: error(reply) for number, reply in (await served.receive(3)).items()}
        named = {number: each.request_id for number, each in found.items() if isinstance(each, OutcomeUnknown)}
        assert named == {number: request_id(put(number)).hex() for number in (11, 12, 13)}
        assert not driver.pipeline.requests

    serving(scenario)


def test_a_run_has_as_many_commits_as_look_up_a_thousand_keys(sizes: list[int]) -> None:
    async def scenario(served: Served) -> None:
        start = now(served)
        replies = await served.call([commit(number, b"%d" % number, start=start) for number in range(1, 101)])
        assert all(etag(reply) for reply in replies.values()) and sizes == [64, 36]
        many, start = [b"many-%d" % number for number in range(33)], now(served)
        larger = [commit(201, b"a", start=start, reads=many), commit(202, b"b", start=start, reads=many)]
        replies = await served.call([*larger, commit(203, *many[:17]), commit(204, *many[:17])])
        assert all(etag(reply) for reply in replies.values()) and sizes == [64, 36]

    serving(scenario)


# --- rights and room -------------------------------------------------------------------------------------------


def with_roles(directory: Path) -> Callable[[Host], Authority]:
    return lambda node: Authority(node, Audit(directory, "node-1", lambda: NOW_MS))


async def granted(node: Host) -> Token:
    """Return the token of an app that may write in "n"."""
    root, app = [make_token(lambda count, n=n: bytes([n]) * count) for n in range(2)]  # type: ignore[misc]
    await node.meta.write(changes.enable("root", Kind.TOKEN, changes.NewToken(root.token_id, root.digest)))
    await node.meta.write(changes.create("app", Kind.TOKEN, changes.NewToken(app.token_id, app.digest)))
    await node.meta.write(changes.grant("app", "writer", "namespace:n"))
    return app


def test_a_footprint_of_what_the_caller_may_not_read_is_denied_alone(tmp_path: Path) -> None:
    async def scenario(served: Served) -> None:
        app, start = await granted(served.node), now(served)
        calls = [commit(11, b"a", start=start, reads=[b"a"]), commit(12, b"b", start=start, reads=[b"a"], read_in="m")]
        calls.append(commit(13, b"c", start=start))
        replies = await served.call([given(call, authorization=header_of(app.text)) for call in calls])
        assert isinstance(error(replies[12]), PermissionDenied)
        assert etag(replies[11]) and etag(replies[13])

    serving(scenario, authority=with_roles(tmp_path))


def test_commits_that_only_delete_may_use_the_reserve_and_are_runs_of_their_own(
    tmp_path: Path, sizes: list[int]
) -> None:
    async def scenario(served: Served) -> None:
        admit = served.node.process.engine.admit

        def admitted(size_bytes: int, *, behind_bytes: int, frees: bool) -> None:
            frees_room.append(frees)
            admit(size_bytes, behind_bytes=behind_bytes, frees=frees)

        served.node.process.engine.admit = admitted  # type: ignore[method-assign]
        deletes = [commit(number, deletes=[b"%d" % number]) for number in (1, 2)]
        await served.call([*deletes, commit(3, b"a"), commit(4, b"b", deletes=[b"c"])])
        assert sizes == [2, 2] and frees_room == [True, False]

    frees_room: list[bool] = []
    serving(scenario, authority=with_roles(tmp_path))
