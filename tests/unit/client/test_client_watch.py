"""Watches of the client against a server with streams that break anywhere."""

from __future__ import annotations

import asyncio
import random
import threading
from collections.abc import Iterator
from itertools import islice
from typing import Any

import pytest

from cortado.errors import InvalidArgument, NotFound, SnapshotTooOld, Unavailable, Unsupported
from cortado.proto.v1 import watch_pb2
from cortado.store.client import AsyncClient, Changed, Client, Deleted, Resolved, Stale
from cortado.store.client.runtime import Environment
from cortado.store.client.values import timestamp_of, timestamp_to_proto
from cortado.store.clock.timestamp import ZERO, Timestamp
from cortado.store.keys.packing import join
from cortado.store.mvcc.paging import PageToken, encode_token
from support.fake_server import FakeServer, break_off, header, refuse

PATIENT = Environment(sleep_s=lambda _: None)


def at(number: int) -> Timestamp:
    return Timestamp(0, number, 0)


def reply(
    changes: list[tuple[int, bytes, bytes | None]], resolved: int | None = None, **more: Any
) -> watch_pb2.WatchKeyValueResponse:
    """Return a packed reply of changes (timestamp, key, value)."""
    packed = watch_pb2.KvPackedChanges(
        versions=b"".join(bytes(at(number)) for number, _, _ in changes),
        deletes=[place for place, (_, _, value) in enumerate(changes) if value is None],
    )
    packed.keys, packed.key_lengths = join([key for _, key, _ in changes])
    packed.values, packed.value_lengths = join([value or b"" for _, _, value in changes])
    return watch_pb2.WatchKeyValueResponse(
        header=more.pop("header", header(1_000)),
        packed=packed,
        resolved=None if resolved is None else timestamp_to_proto(at(resolved)),
        **more,
    )


def history(chosen: random.Random, commits: int) -> list[tuple[int, bytes, bytes | None]]:
    """Draw commits of one to four keys each, in order."""
    return [
        (number, key, None if chosen.random() < 0.2 else b"%d" % number)
        for number in range(1, commits + 1)
        for key in sorted(chosen.sample([b"a", b"b", b"c", b"d"], chosen.randint(1, 4)))
    ]


class BreakingServer:
    """Streams a history from where it is asked to, cut and marked at random; most streams break."""

    def __init__(self, seed: int, commits: int = 30) -> None:
        self.random = random.Random(seed)
        self.history = history(self.random, commits)
        self.streams = 0

    def __call__(self, request: watch_pb2.WatchKeyValueRequest, context: Any) -> Iterator[Any]:
        self.streams += 1
        after = timestamp_of(request.options.after.timestamp).wall_ms
        yield reply([], after)
        left = iter([each for each in self.history if each[0] > after])
        last = self.history[-1][0]
        while batch := list(islice(left, self.random.randint(1, 5))):
            if self.random.random() < 0.3:
                break_off(context)
            # Most often, a mark if the batch ends with a commit.
            ends = batch[-1] == [each for each in self.history if each[0] == batch[-1][0]][-1]
            yield reply(batch, batch[-1][0] if ends and self.random.random() < 0.7 else None)
        yield reply([], last)
        break_off(context)


def as_change(event: Any) -> tuple[int, bytes, bytes | None]:
    return event.ts.wall_ms, event.key, event.value if isinstance(event, Changed) else None


@pytest.mark.parametrize("seed", range(8))
def test_every_change_is_given_out_once_and_in_order_wherever_streams_break(seed: int) -> None:
    server, scripted = FakeServer(), BreakingServer(seed)
    server.handlers["Watch.KeyValue"] = scripted
    seen: list[Any] = []
    with (
        server.running(),
        Client(server.endpoint, environment=PATIENT) as client,
        client.kv("n").watch(after=ZERO) as watch,
    ):
        for event in watch:
            if isinstance(event, Resolved):
                assert watch.resolved == event.ts
                # Everything up to the mark, and nothing above it.
                assert seen == [each for each in scripted.history if each[0] <= event.ts.wall_ms]
                if event.ts == at(30):
                    break
            else:
                seen.append(as_change(event))
    assert seen == scripted.history
    assert scripted.streams > 1


def test_both_faces_give_out_the_same() -> None:
    async def taken(endpoint: str) -> list[Any]:
        async with AsyncClient(endpoint) as client, client.kv("n").watch(after=ZERO, until=at(20)) as watch:
            return [event async for event in watch if not isinstance(event, Resolved)]

    server = FakeServer()
    server.handlers["Watch.KeyValue"] = BreakingServer(3)
    with server.running():
        with Client(server.endpoint) as client, client.kv("n").watch(after=ZERO, until=at(20)) as watch:
            blocking = [event for event in watch if not isinstance(event, Resolved)]
        assert asyncio.run(taken(server.endpoint)) == blocking
    assert blocking[-1].ts == at(20)


def test_until_ends_with_a_mark_and_gives_out_nothing_above_it() -> None:
    server = FakeServer()
    server.handlers["Watch.KeyValue"] = lambda request, context: iter(
        [reply([], 0), reply([(3, b"a", b"1"), (7, b"a", b"2")], 7)]
    )
    with server.running(), Client(server.endpoint) as client:
        events = list(client.kv("n").watch(after=ZERO, until=at(5)))
    assert events == [Resolved(at(0)), Changed(b"a", b"1", at(3)), Resolved(at(5))]


def test_a_state_goes_on_from_its_token_and_the_changes_from_its_timestamp() -> None:
    server = FakeServer()
    token = encode_token(PageToken(at(9), b"resume"), bytes(16))

    def serve(request: watch_pb2.WatchKeyValueRequest, context: Any) -> Iterator[Any]:
        options = request.options
        if not options.initial_state:
            assert timestamp_of(options.after.timestamp) == at(9)
            yield reply([], 9)
            yield reply([(11, b"a", None)], 11)
        elif not options.page_token:
            yield reply([(2, b"a", b"1")], next_page_token=token)
            break_off(context)
        else:
            assert options.page_token == token
            yield reply([(4, b"b", b"2")], next_page_token=token)
            yield reply([], 9)
        break_off(context)

    server.handlers["Watch.KeyValue"] = serve
    with (
        server.running(),
        Client(server.endpoint, environment=PATIENT) as client,
        client.kv("n").watch(initial_state=True) as watch,
    ):
        assert watch.resolved is None
        events = list(islice(watch, 5))
    changes = [each for each in events if not isinstance(each, Resolved)]
    assert changes == [Changed(b"a", b"1", at(2)), Changed(b"b", b"2", at(4)), Deleted(b"a", at(11))]
    assert events[2] == Resolved(at(9))


def test_a_state_that_is_newer_than_until_is_whole_and_ends_the_watch() -> None:
    server, token = FakeServer(), encode_token(PageToken(at(9), b"resume"), bytes(16))
    server.handlers["Watch.KeyValue"] = lambda request, context: iter(
        [
            reply([(2, b"a", b"1"), (7, b"b", b"2")], next_page_token=token),
            reply([(8, b"c", b"3")], next_page_token=token),
            reply([], 9),
            reply([(11, b"a", None)], 11),
        ]
    )
    with server.running(), Client(server.endpoint) as client:
        events = list(client.kv("n").watch(initial_state=True, until=at(5)))
    changes = [Changed(b"a", b"1", at(2)), Changed(b"b", b"2", at(7)), Changed(b"c", b"3", at(8))]
    assert events == [*changes, Resolved(at(9))]


def test_what_ends_a_watch_for_good_is_raised_with_what_to_do() -> None:
    for error in (SnapshotTooOld("0.1.0", "0.5.0"), NotFound("table", "d.t")):
        server = FakeServer()
        server.handlers["Watch.KeyValue"] = lambda request, context, error=error: refuse(context, error)
        with server.running(), Client(server.endpoint) as client, pytest.raises(type(error)) as raised:
            next(client.kv("n").watch(after="0.1.0"))
        assert raised.value.fields() == error.fields()


def test_a_watch_that_found_no_node_in_time_goes_on_when_it_is_asked_again() -> None:
    server = FakeServer()
    is_down = [False]

    def serve(request: watch_pb2.WatchKeyValueRequest, context: Any) -> Iterator[Any]:
        if is_down[0]:
            refuse(context, Unavailable("the node is stopping"))
        after = timestamp_of(request.options.after.timestamp).wall_ms
        yield reply([(after + 1, b"a", b"v")], after + 1)
        is_down[0] = True
        break_off(context)

    server.handlers["Watch.KeyValue"] = serve
    with server.running(), Client(server.endpoint, timeout_s=0.5) as client:
        watch = client.kv("n").watch(after=ZERO)
        assert [next(watch), next(watch)] == [Changed(b"a", b"v", at(1)), Resolved(at(1))]
        with pytest.raises(Unavailable):
            next(watch)
        is_down[0] = False
        assert [next(watch), next(watch)] == [Changed(b"a", b"v", at(2)), Resolved(at(2))]
        watch.close()


def test_another_cluster_behind_the_address_is_not_gone_on_with() -> None:
    server = FakeServer()
    clusters = iter(["one", "other"])

    def serve(request: watch_pb2.WatchKeyValueRequest, context: Any) -> Iterator[Any]:
        yield reply([], 5, header=header(cluster_id=next(clusters)))
        break_off(context)

    server.handlers["Watch.KeyValue"] = serve
    with server.running(), Client(server.endpoint, environment=PATIENT) as client:
        watch = client.kv("n").watch(after=at(5))
        next(watch)
        with pytest.raises(Unsupported):
            next(watch)


def test_a_slow_consumer_is_told_how_far_he_is_behind() -> None:
    server = FakeServer()
    server.handlers["Watch.KeyValue"] = lambda request, context: iter([reply([], 400, header=header(1_000))])
    with server.running(), Client(server.endpoint) as client, client.kv("n").watch(after=at(400)) as watch:
        next(watch)
        assert watch.lag_ms == 600


def test_a_watch_from_the_beginning_is_behind_since_it_began() -> None:
    """And not since 1970, the beginning of time."""
    server = FakeServer()
    replies = [reply([], 0, header=header(1_763_643_600_000)), reply([], 0, header=header(1_763_643_600_070))]
    server.handlers["Watch.KeyValue"] = lambda request, context: iter(replies)
    with server.running(), Client(server.endpoint) as client, client.kv("n").watch(after=at(0)) as watch:
        next(watch)
        assert watch.lag_ms == 0
        next(watch)
        assert watch.lag_ms == 70


def test_a_watch_that_is_closed_ends_for_who_waits_in_it() -> None:
    server = FakeServer()
    gone = threading.Event()

    def serve(request: watch_pb2.WatchKeyValueRequest, context: Any) -> Iterator[Any]:
        context.add_callback(gone.set)
        yield reply([], 1)
        assert gone.wait(20)

    server.handlers["Watch.KeyValue"] = serve
    with server.running(), Client(server.endpoint) as client:
        watch = client.kv("n").watch()
        next(watch)
        closing = threading.Timer(0.05, watch.close)
        closing.start()
        assert list(watch) == []
        assert gone.wait(20)


def test_a_task_that_is_cancelled_while_it_waits_loses_nothing() -> None:
    server = FakeServer()

    def serve(request: watch_pb2.WatchKeyValueRequest, context: Any) -> Iterator[Any]:
        after = timestamp_of(request.options.after.timestamp).wall_ms
        yield reply([], after)
        if len(server.calls("Watch.KeyValue")) > 1:
            yield reply([(after + 1, b"a", b"v")], after + 1)
        threading.Event().wait(1)

    server.handlers["Watch.KeyValue"] = serve

    async def scenario() -> None:
        async with AsyncClient(server.endpoint) as client, client.kv("n").watch(after=at(3)) as watch:
            assert await anext(watch) == Resolved(at(3))
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(anext(watch), 0.05)
            assert await anext(watch) == Resolved(at(3))
            assert await anext(watch) == Changed(b"a", b"v", at(4))

    with server.running():
        asyncio.run(scenario())


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ({"resolved_ms": 0}, "resolved_ms"),
        ({"resolved_ms": 60_001}, "resolved_ms"),
        ({"after": Stale(5)}, "after"),
        ({"until": Stale(5)}, "until"),
        ({"after": at(5), "until": at(4)}, "until"),
        ({"prefix": b"a", "start": b"b"}, "prefix"),
    ],
)
def test_arguments_are_checked_before_anything_is_asked(arguments: dict[str, Any], field: str) -> None:
    with Client("127.0.0.1:1") as client, pytest.raises(InvalidArgument) as refused:
        client.kv("n").watch(**arguments)
    assert refused.value.field == field
