"""The native front over real connections: what a call is answered, how it ends, and how its connection does."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection, reflection_pb2, reflection_pb2_grpc

from cortado.errors import NotFound
from cortado.proto.v1 import kv_pb2
from cortado.store.rpc_errors import from_rpc_error, was_answered
from cortado.store.server import front as front_module
from cortado.store.server import front_connection
from cortado.store.server.config import MESSAGE_BYTES_MAX
from cortado.store.server.foreign_services import foreign_handler
from cortado.store.server.front import Front
from cortado.store.server.front_connection import FrontConnection
from cortado.store.server.rpc import rpc_handler
from support.fronts import served_by
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
    Connection,
    Frame,
    field,
    frame,
)

WAIT_S = 20.0
MIB = 1 << 20
GET, PUT, SCAN = (f"/cortado.v1.KeyValue/{name}" for name in ("Get", "Put", "Scan"))
SEEN: contextvars.ContextVar[str] = contextvars.ContextVar("seen", default="")


class Kv:
    """Gets answer with what they were asked, at once; puts once the test says so; scans send what they are told."""

    def __init__(self) -> None:
        self.puts: list[asyncio.Future[bytes]] = []
        self.ended: list[str] = []
        self.replies: list[bytes] = []
        self.seen: list[str] = []

    async def get(self, request: kv_pb2.KvGetRequest) -> bytes:
        if request.namespace == "missing":
            raise NotFound("namespace", "50% of é\n")
        if request.namespace == "defect":
            raise RuntimeError("a secret")
        self.seen.append(SEEN.get())
        SEEN.set(request.namespace)
        return request.SerializeToString()

    async def put(self, _request: kv_pb2.KvPutRequest) -> bytes:
        answer = asyncio.get_running_loop().create_future()
        self.puts.append(answer)
        try:
            reply: bytes = await answer
        except asyncio.CancelledError:
            self.ended.append("cancelled")
            raise
        return reply

    async def scan(self, _request: kv_pb2.KvScanRequest) -> AsyncGenerator[bytes, None]:
        try:
            for reply in self.replies:
                yield reply
            if not self.replies:
                await asyncio.Event().wait()
        finally:
            self.ended.append("scan")

    def __getattr__(self, name: str) -> Any:
        return self.get


@asynccontextmanager
async def served() -> AsyncIterator[tuple[Kv, str]]:
    kv, healthy = Kv(), health.aio.HealthServicer()
    reflected = reflection.aio.ReflectionServicer(["cortado.v1.KeyValue"])
    beside = (
        foreign_handler(health_pb2, "Health", healthy),
        foreign_handler(reflection_pb2, "ServerReflection", reflected),
    )
    service = kv_pb2.DESCRIPTOR.services_by_name["KeyValue"]
    async with served_by("native", service, kv, beside=beside) as endpoint:
        yield kv, endpoint


async def until(condition: Callable[[], Any]) -> None:
    async with asyncio.timeout(WAIT_S):
        while not condition():
            await asyncio.sleep(0.005)


def run(scenario: Callable[[Kv, str], Any]) -> None:
    async def main() -> None:
        async with served() as (kv, endpoint):
            await scenario(kv, endpoint)

    asyncio.run(main())


async def refused(call: Any) -> grpc.aio.AioRpcError:
    with pytest.raises(grpc.aio.AioRpcError) as ended:
        await call
    return ended.value


def get(namespace: str = "n", value: bytes = b"") -> bytes:
    return kv_pb2.KvGetRequest(namespace=namespace, key=value).SerializeToString()


# --- what a call is answered ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [0, 100, 70_000, 5 * MIB])
def test_a_call_of_any_size_is_answered(size: int) -> None:
    async def scenario(_kv: Kv, endpoint: str) -> None:
        options = [("grpc.max_receive_message_length", -1)]
        async with grpc.aio.insecure_channel(endpoint, options=options) as channel:
            asked = [get(value=bytes([n]) * size) for n in range(4)]
            assert await asyncio.gather(*(channel.unary_unary(GET)(each, timeout=WAIT_S) for each in asked)) == asked

    run(scenario)


def test_a_call_sees_nothing_of_the_one_before_it_on_its_connection() -> None:
    async def scenario(kv: Kv, endpoint: str) -> None:
        async with grpc.aio.insecure_channel(endpoint) as channel:
            for namespace in ("a", "b"):
                await channel.unary_unary(GET)(get(namespace), timeout=WAIT_S)
        assert kv.seen == ["", ""]

    run(scenario)


def test_an_error_comes_with_its_details_and_a_message_in_any_letters() -> None:
    async def scenario(_kv: Kv, endpoint: str) -> None:
        async with grpc.aio.insecure_channel(endpoint) as channel:
            error = await refused(channel.unary_unary(GET)(get("missing"), timeout=WAIT_S))
        assert error.code() is grpc.StatusCode.NOT_FOUND
        assert "50% of é\n" in str(error.details())
        rebuilt: Any = from_rpc_error(error)
        assert isinstance(rebuilt, NotFound)

    run(scenario)


def test_a_defect_is_told_without_its_details() -> None:
    async def scenario(_kv: Kv, endpoint: str) -> None:
        async with grpc.aio.insecure_channel(endpoint) as channel:
            error = await refused(channel.unary_unary(GET)(get("defect"), timeout=WAIT_S))
        assert error.code() is grpc.StatusCode.INTERNAL
        assert "secret" not in str(error.details())

    run(scenario)


def test_health_and_reflection_are_served() -> None:
    async def scenario(_kv: Kv, endpoint: str) -> None:
        async with grpc.aio.insecure_channel(endpoint) as channel:
            stub: Any = health_pb2_grpc.HealthStub(channel)
            assert (await stub.Check(health_pb2.HealthCheckRequest(), timeout=WAIT_S)).status == 1
            missing = await refused(stub.Check(health_pb2.HealthCheckRequest(service="x"), timeout=WAIT_S))
            assert missing.code() is grpc.StatusCode.NOT_FOUND
            unserved = await refused(stub.List(health_pb2.HealthListRequest(), timeout=WAIT_S))
            assert unserved.code() is grpc.StatusCode.UNIMPLEMENTED
            watch = stub.Watch(health_pb2.HealthCheckRequest(), timeout=WAIT_S)
            assert (await watch.read()).status == 1
            watch.cancel()
            reflecting: Any = reflection_pb2_grpc.ServerReflectionStub(channel)
            asked = reflection_pb2.ServerReflectionRequest(list_services="")
            replies = [each async for each in reflecting.ServerReflectionInfo(iter([asked, asked]), timeout=WAIT_S)]
            assert len(replies) == 2

    run(scenario)


def test_a_call_without_a_message_is_refused_and_is_no_defect(caplog: pytest.LogCaptureFixture) -> None:
    def asked(endpoint: str) -> bytes:
        with Connection(endpoint) as connection:
            connection.send(frame(HEADERS, END_HEADERS | END_STREAM, 1, fields("/grpc.health.v1.Health/Check")))
            return next(each.payload for each in connection.frames() if each.stream == 1)

    async def scenario(_kv: Kv, endpoint: str) -> None:
        assert b"request: is missing" in await asyncio.to_thread(asked, endpoint)
        assert not caplog.records

    run(scenario)


def test_a_stream_of_replies_that_its_caller_takes_slowly_comes_whole() -> None:
    async def scenario(kv: Kv, endpoint: str) -> None:
        kv.replies = [bytes([n]) * 200_000 for n in range(20)]
        async with grpc.aio.insecure_channel(endpoint) as channel:
            scan: Any = channel.unary_stream(SCAN)(b"", timeout=WAIT_S)
            found = []
            while (reply := await scan.read()) is not grpc.aio.EOF:
                found.append(reply)
                await asyncio.sleep(0)
        assert found == kv.replies

    run(scenario)


# --- what is no call -----------------------------------------------------------------------------------------------


def response(endpoint: str, headers: bytes, body: bytes = bytes(5)) -> bytes:
    with Connection(endpoint) as connection:
        connection.send(frame(HEADERS, END_HEADERS, 1, headers) + frame(DATA, END_STREAM, 1, body))
        return next(each.payload for each in connection.frames() if each.stream == 1 and each.kind == HEADERS)


def fields(path: str = GET, method: bytes = b"POST", kind: bytes = b"application/grpc", *more: bytes) -> bytes:
    pseudo = ((b":method", method), (b":scheme", b"http"), (b":path", path.encode()), (b":authority", b"x"))
    return b"".join(field(*each) for each in (*pseudo, (b"content-type", kind))) + b"".join(more)


NO_CALLS = {
    "another verb": (fields(method=b"GET"), bytes(5), [b":status", b"405"]),
    "another content": (fields(kind=b"application/json"), bytes(5), [b":status", b"415"]),
    "a kind of gRPC for browsers": (fields(kind=b"application/grpc-web"), bytes(5), [b":status", b"415"]),
    "a method that is not there": (fields("/cortado.v1.KeyValue/Nothing"), bytes(5), [b"grpc-status", b"12"]),
    "a deadline that is none": (
        fields(GET, b"POST", b"application/grpc", field(b"grpc-timeout", b"soon")),
        bytes(5),
        [b"3"],
    ),
    "a compressed message": (fields(), b"\x01\0\0\0\1x", [b"grpc-status", b"12", b"compressed"]),
    "half a message": (fields(), b"\x00\0\0\0\2x", [b"grpc-status", b"3", b"within a message"]),
    "no message": (fields(), b"", [b"grpc-status", b"3", b"is missing"]),
    "a message that is too large": (
        fields(),
        b"\x00\xff\0\0\0",
        [b"grpc-status", b"3", str(MESSAGE_BYTES_MAX).encode()],
    ),
    "much metadata": (
        fields(GET, b"POST", b"application/grpc", field(b"a", b"x" * 100, is_indexed=True) + b"\xbe" * 130),
        bytes(5),
        [b"grpc-status", b"3", b"16384"],
    ),
}


@pytest.mark.parametrize(("headers", "body", "expected"), NO_CALLS.values(), ids=NO_CALLS)
def test_what_is_no_call_is_refused(headers: bytes, body: bytes, expected: list[bytes]) -> None:
    async def scenario(_kv: Kv, endpoint: str) -> None:
        found = await asyncio.to_thread(response, endpoint, headers, body)
        assert [each for each in expected if each not in found] == [], found

    run(scenario)


@pytest.mark.parametrize("kind", [b"application/grpc", b"application/grpc+proto", b"application/grpc;x=y"])
def test_a_content_type_of_grpc_is_taken(kind: bytes) -> None:
    async def scenario(_kv: Kv, endpoint: str) -> None:
        assert (await asyncio.to_thread(response, endpoint, fields(kind=kind)))[:1] == b"\x88"

    run(scenario)


# --- how a call ends -----------------------------------------------------------------------------------------------


def test_a_call_whose_time_is_over_is_told_so_and_ends() -> None:
    async def scenario(kv: Kv, endpoint: str) -> None:
        def asked() -> bytes:
            return response(endpoint, fields(PUT, b"POST", b"application/grpc", field(b"grpc-timeout", b"50m")))

        assert b"grpc-status\x014" in await asyncio.to_thread(asked)
        await until(lambda: kv.ended == ["cancelled"])

    run(scenario)


@pytest.mark.parametrize("path", [PUT, SCAN])
def test_a_call_that_is_taken_back_ends(path: str) -> None:
    async def scenario(kv: Kv, endpoint: str) -> None:
        async with grpc.aio.insecure_channel(endpoint) as channel:
            call: Any = channel.stream_stream(path)(iter([b""]))
            asking = asyncio.ensure_future(call.read())
            await until(lambda: kv.puts or path == SCAN)
            call.cancel()
            with suppress(asyncio.CancelledError):
                await asking
            await until(lambda: kv.ended or path == SCAN)

    run(scenario)


def test_the_calls_of_a_connection_that_breaks_end() -> None:
    async def scenario(kv: Kv, endpoint: str) -> None:
        def ask() -> Connection:
            connection = Connection(endpoint)
            for stream in (1, 3):
                connection.send(frame(HEADERS, END_HEADERS, stream, fields(PUT)))
                connection.send(frame(DATA, END_STREAM, stream, bytes(5)))
            return connection

        connection = await asyncio.to_thread(ask)
        await until(lambda: len(kv.puts) == 2)
        connection.close()
        await until(lambda: kv.ended == ["cancelled"] * 2)

    run(scenario)


def test_a_write_that_is_answered_behind_its_deadline_is_answered_once() -> None:
    async def scenario(kv: Kv, endpoint: str) -> None:
        async with grpc.aio.insecure_channel(endpoint) as channel:
            call = channel.unary_unary(PUT)(b"", timeout=0.2)
            await until(lambda: kv.puts)
            error = await refused(call)
            assert error.code() is grpc.StatusCode.DEADLINE_EXCEEDED
            assert not was_answered(error), "so that a write's end counts as unknown"
            await until(lambda: kv.ended == ["cancelled"])
            assert await channel.unary_unary(GET)(get(), timeout=WAIT_S) == get()

    run(scenario)


# --- how a connection ends -----------------------------------------------------------------------------------------


def ends(frames: list[Frame]) -> list[int]:
    """The last stream of each GOAWAY."""
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


class Transport:
    """One that a test looks at."""

    def __init__(self) -> None:
        self.written: list[bytes] = []
        self.is_closed = self.is_aborted = self.is_reading = False

    def get_extra_info(self, name: str) -> Any:
        return ("127.0.0.1", 5) if name == "peername" else None

    def write(self, data: bytes) -> None:
        self.written.append(data)

    def close(self) -> None:
        self.is_closed = True

    def abort(self) -> None:
        self.is_aborted = True

    def pause_reading(self) -> None:
        self.is_reading = False

    def resume_reading(self) -> None:
        self.is_reading = True


class Clock:
    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


HELLO = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(SETTINGS, 0, 0)


def connected(front: Front, clock: Clock) -> tuple[FrontConnection, Transport]:
    connection, transport = FrontConnection(front, clock), Transport()
    connection.connection_made(transport)
    return connection, transport


def is_refused(endpoint: str) -> bool:
    """Whether a connection is closed before anything is said on it."""
    try:
        with Connection(endpoint, acknowledges=False) as connection:
            return next(connection.frames(), None) is None
    except ConnectionError:
        return True


def new_front(connections_max: int = 100) -> Front:
    return Front("127.0.0.1", 0, None, of_clients=False, connections_max=connections_max)


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


def test_a_stream_that_its_client_resets_is_told_to_nobody_else() -> None:
    async def scenario(kv: Kv, endpoint: str) -> None:
        def ask() -> None:
            with Connection(endpoint) as connection:
                connection.send(frame(HEADERS, END_HEADERS, 1, fields(PUT)) + frame(DATA, END_STREAM, 1, bytes(5)))
                connection.send(frame(RST_STREAM, 0, 1, (8).to_bytes(4, "big")))
                connection.send(frame(HEADERS, END_HEADERS, 3, fields(GET)) + frame(DATA, END_STREAM, 3, bytes(5)))
                assert next(each for each in connection.frames() if each.kind == HEADERS).stream == 3

        await asyncio.to_thread(ask)
        await until(lambda: len(kv.ended) == len(kv.puts))

    run(scenario)
