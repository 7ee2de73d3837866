"""Connections of the native front: their ends, their bounds, and the connections that they make room for."""

from __future__ import annotations

import asyncio

import pytest
import uvloop
from grpc_health.v1 import health, health_pb2
from grpc_reflection.v1alpha import reflection, reflection_pb2

from cortado.proto.v1 import kv_pb2
from cortado.store.server import front as front_module
from cortado.store.server import front_connection
from cortado.store.server.foreign_services import foreign_handler
from cortado.store.server.front import Front
from cortado.store.server.front_connection import FrontConnection
from cortado.store.server.replying import STRANGERS_BYTES
from cortado.store.server.rpc import rpc_handler
from support.front_calls import GET, PUT, SCAN, WAIT_S, Kv, fields, until
from support.front_connected import HELLO, Clock, call, connected, new_front
from support.http2 import (
    ACK,
    DATA,
    END_HEADERS,
    END_STREAM,
    GOAWAY,
    HEADERS,
    PING,
    RST_STREAM,
    SETTINGS,
    WINDOW_UPDATE,
    Connection,
    Frame,
    field,
    frame,
)

WATCH = "/grpc.health.v1.Health/Watch"
REFLECT = "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"


def ends(frames: list[Frame]) -> list[int]:
    """Return the last stream of each GOAWAY."""
    return [int.from_bytes(each.payload[:4], "big") for each in frames if each.kind == GOAWAY]


def test_a_front_that_stops_answers_what_is_under_way_and_says_goodbye_twice() -> None:
    async def scenario() -> None:
        front, kv, seen = new_front(), Kv(), list[Frame]()
        front.add_handlers([rpc_handler(kv_pb2.DESCRIPTOR.services_by_name["KeyValue"], kv)])
        await front.start()
        connection = await asyncio.to_thread(Connection, front.address)
        connection.send(frame(HEADERS, END_HEADERS, 1, fields(PUT)) + frame(DATA, END_STREAM, 1, bytes(5)))
        await until(lambda: kv.puts)

        def talk() -> None:
            for each in connection.frames():
                seen.append(each)
                if each.kind == PING and not each.flags:
                    # A call that was under way to it.
                    connection.send(frame(HEADERS, END_HEADERS, 3, fields(PUT)))
                    connection.send(frame(DATA, END_STREAM, 3, bytes(5)) + frame(PING, ACK, 0, each.payload))

        async def answer() -> None:
            await until(lambda: len(kv.puts) == 2 and len(ends(seen)) == 2)
            for each in kv.puts:
                each.set_result(b"")

        await asyncio.gather(asyncio.to_thread(talk), answer(), front.stop(WAIT_S))
        assert ends(seen) == [(1 << 31) - 1, 3]
        answered = [each.stream for each in seen if each.kind == HEADERS and each.flags & END_STREAM]
        assert sorted(answered) == [1, 3]

    asyncio.run(scenario())


def window_of(size: int) -> bytes:
    """Return SETTINGS that give each stream a window of that size."""
    return frame(SETTINGS, 0, 0, b"\0\4" + size.to_bytes(4, "big"))


def is_refused(endpoint: str, source: str = "127.0.0.1") -> bool:
    """Return whether a connection is closed before any byte is sent on it."""
    try:
        with Connection(endpoint, acknowledges=False, source=source) as connection:
            return next(connection.frames(), None) is None
    except ConnectionError:
        return True


@pytest.mark.parametrize("said", [b"", HELLO[:20], HELLO])
def test_who_does_not_say_that_it_speaks_http2_is_hung_up_on(said: bytes) -> None:
    async def scenario() -> None:
        clock = Clock()
        connection, transport = connected(new_front(), clock)
        connection.data_received(said)
        clock.now_s = front_connection.HANDSHAKE_S
        connection.look()
        assert not transport.is_closed
        clock.now_s += 1
        connection.look()
        assert transport.is_closed
        assert frame(GOAWAY, 0, 0, bytes(4) + (4).to_bytes(4, "big"))[9:] in transport.written[-1]

    asyncio.run(scenario())


def test_a_connection_without_a_call_is_ended_after_a_while() -> None:
    async def scenario() -> None:
        clock = Clock()
        connection, transport = connected(new_front(), clock)
        connection.data_received(HELLO + frame(SETTINGS, ACK, 0))
        clock.now_s = front_connection.IDLE_S
        connection.look()
        await asyncio.sleep(0)
        assert not transport.is_closed
        clock.now_s += 1
        connection.look()
        await asyncio.sleep(0)
        assert transport.is_closed

    asyncio.run(scenario())


def test_who_does_not_read_is_ended_after_a_while_and_costs_no_writes_meanwhile() -> None:
    async def scenario() -> None:
        clock = Clock()
        connection, transport = connected(new_front(), clock)
        connection.data_received(HELLO + frame(SETTINGS, ACK, 0))
        connection.pause_writing()
        written = len(transport.written)
        connection.data_received(frame(PING, 0, 0, bytes(8)))
        assert len(transport.written) == written
        clock.now_s = front_connection.STALLED_S + 1
        connection.look()
        assert transport.is_aborted
        connection.resume_writing()
        assert len(transport.written) == written + 1

    asyncio.run(scenario())


def test_many_frames_of_one_read_are_looked_at_in_slices_and_nothing_is_read_meanwhile() -> None:
    async def scenario() -> None:
        connection, transport = connected(new_front(), Clock())
        connection.data_received(HELLO)
        transport.is_reading = True
        connection.data_received(frame(PING, 0, 0, bytes(8)) * 1_000)
        assert not transport.is_reading
        await until(lambda: transport.is_reading)
        assert b"".join(transport.written).count(frame(PING, ACK, 0, bytes(8))) == 1_000

    asyncio.run(scenario())


def test_a_connection_too_many_takes_the_place_of_the_one_that_is_idle_longest() -> None:
    async def scenario() -> None:
        front, kv = new_front(connections_max=2), Kv()
        front.add_handlers([rpc_handler(kv_pb2.DESCRIPTOR.services_by_name["KeyValue"], kv)])
        await front.start()

        def busy() -> Connection:
            connection = Connection(front.address)
            connection.send(frame(HEADERS, END_HEADERS, 1, fields(PUT)) + frame(DATA, END_STREAM, 1, bytes(5)))
            return connection

        first = await asyncio.to_thread(busy)
        await until(lambda: kv.puts)
        idle = await asyncio.to_thread(Connection, front.address)
        second = await asyncio.to_thread(busy)
        await until(lambda: len(kv.puts) == 2)
        frames = await asyncio.to_thread(lambda: list(idle.frames()))
        assert [each.kind for each in frames][-1] == GOAWAY
        # Both have a call now: a third is refused.
        assert await asyncio.to_thread(is_refused, front.address)
        first.close()
        second.close()
        await front.stop(0)

    asyncio.run(scenario())


def test_a_connection_that_is_made_at_the_moment_at_which_the_front_stops_is_ended_with_it() -> None:
    """uvloop closes a connection that is cancelled as it is made, and tells its protocol neither beginning nor end."""

    class Stopping(Front):
        stopped: asyncio.Future[None] | None = None

        def joined(self, connection: FrontConnection) -> None:
            super().joined(connection)
            self.stopped = asyncio.ensure_future(self.stop(0))

    async def scenario() -> None:
        front = Stopping("127.0.0.1", 0, None, of_clients=False, connections_max=100)
        await front.start()
        _, writer = await asyncio.open_connection(*front.address.split(":"))
        await until(lambda: front.stopped)
        assert front.stopped is not None
        await asyncio.wait_for(front.stopped, WAIT_S)
        writer.close()

    uvloop.run(scenario())


def test_the_connection_that_holds_most_is_ended_where_calls_do_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(front_module, "HELD_BYTES_MAX", 70_000)

    async def scenario() -> None:
        front = new_front()
        front.add_handlers([rpc_handler(kv_pb2.DESCRIPTOR.services_by_name["KeyValue"], Kv())])
        small, large = connected(front, Clock()), connected(front, Clock())
        begun = HELLO + frame(SETTINGS, ACK, 0) + frame(HEADERS, END_HEADERS, 1, fields(SCAN))
        # A scan reads one message, and no second one.
        for connection, frames in ((small[0], 1), (large[0], 3)):
            connection.data_received(begun + frame(DATA, 0, 1, bytes(5)))
            await until(lambda of=connection: of.h2.unread == 0)  # type: ignore[misc]
            connection.data_received(frame(DATA, 0, 1, bytes(16_000)) * frames)
        front.end_largest()
        assert not large[1].is_closed
        large[0].data_received(frame(DATA, 0, 1, bytes(10_000)))
        front.end_largest()
        assert large[1].is_closed
        assert not small[1].is_closed
        for connection, _ in (small, large):
            connection.connection_lost(None)

    asyncio.run(scenario())


def test_the_connection_is_ended_that_holds_most_of_messages_that_are_not_whole(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(front_module, "ARRIVING_BYTES_MAX", 70_000)

    async def scenario() -> None:
        front = new_front()
        front.add_handlers([rpc_handler(kv_pb2.DESCRIPTOR.services_by_name["KeyValue"], Kv())])
        small, large = connected(front, Clock()), connected(front, Clock())
        begun = b"\0" + (1 << 20).to_bytes(4)
        for connection, streams in ((small[0], 1), (large[0], 3)):
            connection.data_received(HELLO + frame(SETTINGS, ACK, 0))
            for n in range(streams):
                connection.data_received(frame(HEADERS, END_HEADERS, 2 * n + 1, fields(GET)))
                connection.data_received(frame(DATA, 0, 2 * n + 1, begun + bytes(16_000)))
            arrived = 16_000 * streams
            await until(lambda of=connection, arrived=arrived: of.h2.arriving >= arrived)  # type: ignore[misc]
        front.end_largest()
        assert not large[1].is_closed
        large[0].data_received(frame(DATA, 0, 1, bytes(10_000)))
        front.end_largest()
        assert large[1].is_closed
        assert not small[1].is_closed
        for connection, _ in (small, large):
            connection.connection_lost(None)

    asyncio.run(scenario())


def test_the_connection_is_ended_whose_caller_reads_the_least_of_its_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(front_module, "HELD_BYTES_MAX", 20_000)

    async def scenario() -> None:
        front = new_front()
        small, large = connected(front, Clock()), connected(front, Clock())
        for (connection, _), calls in ((small, 10), (large, 100)):
            connection.data_received(HELLO + frame(SETTINGS, ACK, 0))
            connection.pause_writing()
            for n in range(calls):
                connection.data_received(frame(HEADERS, END_HEADERS | END_STREAM, 2 * n + 1, fields("/none")))
        front.end_largest()
        assert large[1].is_aborted
        assert not small[1].is_aborted
        for connection, _ in (small, large):
            connection.connection_lost(None)

    asyncio.run(scenario())


@pytest.mark.parametrize("path", [GET, SCAN])
def test_a_call_ends_of_whose_replies_its_caller_takes_nothing_for_a_while(path: str) -> None:
    async def scenario() -> None:
        front, clock, kv = new_front(), Clock(), Kv()
        kv.replies = [bytes(5_000)] * 3
        front.add_handlers([rpc_handler(kv_pb2.DESCRIPTOR.services_by_name["KeyValue"], kv)])
        connection, transport = connected(front, clock)
        connection.data_received(HELLO + frame(SETTINGS, ACK, 0) + window_of(0))
        request = kv_pb2.KvGetRequest(namespace="n", key=bytes(5_000)).SerializeToString() if path == GET else b""
        connection.data_received(call(1, path, request))
        await until(lambda: connection.h2.queued(1) > 4_000)
        clock.now_s = front_connection.STALLED_S
        connection.data_received(frame(WINDOW_UPDATE, 0, 1, (1_000).to_bytes(4, "big")))
        clock.now_s += front_connection.STALLED_S
        connection.look()
        assert connection.h2.queued(1), "it took something in between"
        clock.now_s += 1
        connection.look()
        assert not connection.h2.queued(1)
        await until(lambda: frame(RST_STREAM, 0, 1, (8).to_bytes(4, "big")) in b"".join(transport.written))
        await until(lambda: path == GET or kv.ended == ["scan"])
        assert not transport.is_closed
        connection.connection_lost(None)

    asyncio.run(scenario())


def test_a_call_ends_whose_first_message_does_not_come_and_no_other() -> None:
    async def scenario() -> None:
        front, clock, kv = new_front(), Clock(), Kv()
        front.add_handlers([rpc_handler(kv_pb2.DESCRIPTOR.services_by_name["KeyValue"], kv)])
        connection, transport = connected(front, clock)
        connection.data_received(HELLO + frame(SETTINGS, ACK, 0))
        connection.data_received(call(1, PUT, b""))
        # The second sends nothing, the third a part of a message.
        connection.data_received(frame(HEADERS, END_HEADERS, 3, fields(PUT)))
        connection.data_received(frame(HEADERS, END_HEADERS, 5, fields(PUT)) + frame(DATA, 0, 5, b"\0\0\0\0\5ab"))
        # The fourth is a stream, and its first message has come.
        connection.data_received(frame(HEADERS, END_HEADERS, 7, fields(SCAN)) + frame(DATA, 0, 7, bytes(5)))
        await until(lambda: len(kv.puts) == 1 and not connection.h2.unread)
        clock.now_s = front_connection.MESSAGE_S
        connection.look()
        clock.now_s += 1
        refused = len(transport.written)
        connection.look()
        await until(lambda: len(transport.written) > refused)
        late = b"".join(transport.written[refused:])
        assert late.count(b"grpc-status\x018") == 2
        assert late.count(b"did not arrive within 60 s") == 2
        kv.puts[0].set_result(b"done")
        await until(lambda: b"done" in transport.written[-1])
        connection.connection_lost(None)

    asyncio.run(scenario())


def test_what_strangers_are_answered_and_do_not_take_has_a_small_bound() -> None:
    async def scenario() -> None:
        front = new_front()
        name = "cortado.v1.KeyValue"
        front.add_handlers(
            [foreign_handler(reflection_pb2, "ServerReflection", reflection.aio.ReflectionServicer([name]))]
        )
        asked = reflection_pb2.ServerReflectionRequest(file_containing_symbol=name).SerializeToString()
        taken, made = [], [connected(front, Clock()) for _ in range(3)]
        for connection, _ in made:
            connection.data_received(HELLO + frame(SETTINGS, ACK, 0) + window_of(0))
            ids = range(1, 1_000, 2)
            connection.data_received(b"".join(call(each, REFLECT, asked) for each in ids))
            await until(lambda of=connection.h2: all(map(of.queued, of._streams)))  # type: ignore[misc]
            taken.append(sum(connection.h2.queued(each) for each in ids))
        assert min(taken) > 100_000
        assert sum(taken) < 2 * STRANGERS_BYTES
        for connection, _ in made:
            connection.connection_lost(None)
        # A caller that takes its replies is answered again and again on one stream.
        connection, transport = connected(front, Clock())
        connection.data_received(HELLO + frame(SETTINGS, ACK, 0) + window_of((1 << 31) - 1))
        connection.data_received(frame(WINDOW_UPDATE, 0, 0, (1 << 30).to_bytes(4, "big")))
        connection.data_received(frame(HEADERS, END_HEADERS, 1, fields(REFLECT)))
        message = b"\0" + len(asked).to_bytes(4, "big") + asked
        connection.data_received(frame(DATA, 0, 1, message * 400) + frame(DATA, END_STREAM, 1, message * 400))
        await until(lambda: b"grpc-status" in transport.written[-1])
        assert b"grpc-status\x010" in transport.written[-1]
        assert sum(map(len, transport.written)) > 2 * STRANGERS_BYTES
        connection.connection_lost(None)

    asyncio.run(scenario())


def test_strangers_of_one_address_make_room_for_those_of_another_and_known_callers_for_nobody() -> None:
    async def scenario() -> None:
        front, kv = new_front(connections_max=4), Kv()
        front.add_handlers([rpc_handler(kv_pb2.DESCRIPTOR.services_by_name["KeyValue"], kv)])
        front.add_handlers([foreign_handler(health_pb2, "Health", health.aio.HealthServicer())])
        await front.start()

        def busy(source: str, path: str) -> Connection:
            connection = Connection(front.address, source=source)
            connection.send(call(1, path, b""))
            if path == WATCH:
                assert next(each for each in connection.frames() if each.kind == DATA)
            return connection

        async def made(source: str, path: str) -> Connection:
            before = len(kv.puts)
            connection = await asyncio.to_thread(busy, source, path)
            await until(lambda: path == WATCH or len(kv.puts) > before)
            return connection

        known = [await made("127.0.0.1", PUT)]
        strangers = [await made("127.0.0.2", WATCH) for _ in range(3)]
        # One of theirs makes room. With two left and one of the other address, none does.
        other = await made("127.0.0.3", WATCH)
        assert [each.kind for each in await asyncio.to_thread(lambda: list(strangers[0].frames()))][-1] == GOAWAY
        for source in ("127.0.0.2", "127.0.0.3"):
            assert await asyncio.to_thread(is_refused, front.address, source)
        kv.puts[0].set_result(b"")
        assert await asyncio.to_thread(lambda: any(each.kind == HEADERS for each in known[0].frames()))
        for each in (*known, *strangers, other):
            each.close()
        await front.stop(0)

    asyncio.run(scenario())


def test_what_is_answered_behind_the_end_of_a_connection_waits_while_its_caller_reads_slowly() -> None:
    async def scenario() -> None:
        front, kv = new_front(), Kv()
        front.add_handlers([rpc_handler(kv_pb2.DESCRIPTOR.services_by_name["KeyValue"], kv)])
        connection, transport = connected(front, Clock())
        connection.data_received(HELLO + frame(SETTINGS, ACK, 0) + call(1, PUT, b""))
        connection.end_idle()
        connection.pause_writing()
        await until(lambda: kv.puts)
        kv.puts[0].set_result(b"done")
        await until(lambda: 1 not in connection.h2._streams)
        await asyncio.sleep(0)
        assert not transport.is_closed
        connection.resume_writing()
        assert b"done" in transport.written[-1]
        assert transport.is_closed
        connection.connection_lost(None)

    asyncio.run(scenario())


def test_an_idle_connection_that_reads_nothing_makes_room_at_once() -> None:
    async def scenario() -> None:
        connection, transport = connected(new_front(), Clock())
        connection.data_received(HELLO + frame(SETTINGS, ACK, 0))
        connection.pause_writing()
        connection.end_idle()
        assert transport.is_aborted

    asyncio.run(scenario())


def test_a_connection_at_fault_that_reads_nothing_keeps_no_answers() -> None:
    async def scenario() -> None:
        connection, transport = connected(new_front(), Clock())
        connection.data_received(HELLO + frame(SETTINGS, ACK, 0))
        connection.pause_writing()
        connection.data_received(frame(PING, 0, 0, bytes(8)) * 500)
        await until(lambda: connection.h2.unsent >= 500 * 17)
        connection.data_received(frame(DATA, 0, 0))
        assert transport.is_aborted
        assert connection.h2.unsent == 0

    asyncio.run(scenario())


def test_an_answer_that_its_caller_does_not_take_is_dropped_at_the_deadline() -> None:
    async def scenario() -> None:
        front = new_front()
        front.add_handlers([rpc_handler(kv_pb2.DESCRIPTOR.services_by_name["KeyValue"], Kv())])
        connection, _ = connected(front, Clock())
        connection.data_received(HELLO + frame(SETTINGS, ACK, 0) + frame(SETTINGS, 0, 0, b"\0\4" + bytes(4)))
        timed = fields(GET) + field(b"grpc-timeout", b"50m")
        connection.data_received(frame(HEADERS, END_HEADERS, 1, timed) + frame(DATA, END_STREAM, 1, bytes(5)))
        assert connection.h2.queued(1)
        await until(lambda: not connection.h2.queued(1))
        connection.connection_lost(None)

    asyncio.run(scenario())
