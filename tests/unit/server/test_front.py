"""The native front over real connections: a call's answer, and its end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection, reflection_pb2, reflection_pb2_grpc

from cortado.errors import NotFound
from cortado.proto.v1 import kv_pb2
from cortado.store.server.config import MESSAGE_BYTES_MAX
from cortado.store.server.foreign_services import foreign_handler
from support.front_calls import GET, PUT, SCAN, WAIT_S, Kv, fields, until
from support.fronts import served_by
from support.grpc_errors import from_rpc_error, was_answered
from support.http2 import (
    DATA,
    END_HEADERS,
    END_STREAM,
    HEADERS,
    RST_STREAM,
    Connection,
    field,
    frame,
)

MIB = 1 << 20


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


# --- answers of calls ----------------------------------------------------------------------------------------------


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


# --- requests that are no calls ------------------------------------------------------------------------------------


def response(endpoint: str, headers: bytes, body: bytes = bytes(5)) -> bytes:
    with Connection(endpoint) as connection:
        connection.send(frame(HEADERS, END_HEADERS, 1, headers) + frame(DATA, END_STREAM, 1, body))
        return next(each.payload for each in connection.frames() if each.stream == 1 and each.kind == HEADERS)


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
    "a compressed message": (
        fields(),
        b"\x01\0\0\0\1x",
        [b"grpc-status", b"12", b"compressed", b"grpc-accept-encoding\x08identity"],
    ),
    "a deadline that is over": (
        fields(GET, b"POST", b"application/grpc", field(b"grpc-timeout", b"0n")),
        bytes(5),
        [b"grpc-status\x014"],
    ),
    "half a message": (fields(), b"\x00\0\0\0\2x", [b"grpc-status", b"3", b"within a message"]),
    "no message": (fields(), b"", [b"grpc-status", b"3", b"is missing"]),
    "a message that is too large": (
        fields(),
        b"\x00\xff\0\0\0",
        [b"grpc-status\x018", f"has {0xFF << 24} bytes, a message may have {MESSAGE_BYTES_MAX}".encode()],
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
