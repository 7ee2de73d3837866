"""Calls by gRPC's own client, over both fronts: deadlines, ends, metadata, errors and many streams mean the same."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from dataclasses import replace
from typing import Any

import grpc
import pytest

from cortado.proto.v1 import kv_pb2
from cortado.store.server import front_connection
from cortado.store.server.call_context import Context
from support.front_calls import GET, WAIT_S, Kv, until
from support.fronts import FRONTS, served_by

ECHO, SEEN, REFUSE, WAIT, COUNT = (f"/test.Calls/{name}" for name in ("Echo", "Seen", "Refuse", "Wait", "Count"))
STREAMS, MORE_THAN_A_CONNECTION_HAS = 50, 200
ALL_LETTERS = "é\n%\r\0 ひらがな 🎉 \x7f" * 10


class Calls:
    """Methods as gRPC's server has them, without any of ours around them."""

    def __init__(self) -> None:
        self.begun = self.ended = 0
        self.may_answer = asyncio.Event()

    async def echo(self, requests: AsyncIterator[bytes], _context: Context) -> AsyncIterator[bytes]:
        async for each in requests:
            yield each
        yield b"the end"

    async def seen(self, _request: bytes, context: Context) -> bytes:
        return "; ".join(f"{name}={value}" for name, value in context.invocation_metadata()).encode()

    async def refuse(self, request: bytes, context: Context) -> bytes:
        details = (("details-bin", bytes(range(256))), ("words", "in ASCII"))
        await context.abort(grpc.StatusCode.FAILED_PRECONDITION, request.decode(), details)

    async def wait(self, request: bytes, _context: Context) -> AsyncIterator[bytes]:
        self.begun += 1
        try:
            yield request
            await self.may_answer.wait()
            yield request
        finally:
            self.ended += 1

    async def count(self, requests: AsyncIterator[bytes], _context: Context) -> bytes:
        first = await anext(aiter(requests), b"")
        return b"after " + first

    def handler(self) -> grpc.GenericRpcHandler:
        return grpc.method_handlers_generic_handler(
            "test.Calls",
            {
                "Echo": grpc.stream_stream_rpc_method_handler(self.echo),
                "Seen": grpc.unary_unary_rpc_method_handler(self.seen),
                "Refuse": grpc.unary_unary_rpc_method_handler(self.refuse),
                "Wait": grpc.unary_stream_rpc_method_handler(self.wait),
                "Count": grpc.stream_unary_rpc_method_handler(self.count),
            },
        )


Scenario = Callable[[Calls, grpc.aio.Channel], Coroutine[Any, Any, None]]
Run = Callable[[Scenario], None]


@pytest.fixture(params=FRONTS)
def run(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Run:
    async def main(scenario: Scenario) -> None:
        calls = Calls()
        service = kv_pb2.DESCRIPTOR.services_by_name["KeyValue"]
        # Of the native front; gRPC's takes all of them at once.
        monkeypatch.setattr(front_connection, "LIMITS", replace(front_connection.LIMITS, streams=STREAMS))
        async with (
            served_by(request.param, service, Kv(), beside=(calls.handler(),)) as endpoint,
            grpc.aio.insecure_channel(endpoint, [("grpc.use_local_subchannel_pool", 1)]) as channel,
        ):
            await asyncio.wait_for(scenario(calls, channel), WAIT_S * 3)

    return lambda scenario: asyncio.run(main(scenario))


async def ending(call: Any) -> grpc.aio.AioRpcError:
    """Return the error that a call ends with; a stream is read to its end."""
    with pytest.raises(grpc.aio.AioRpcError) as ended:
        if hasattr(call, "read"):
            while await call.read() is not grpc.aio.EOF:
                pass
        else:
            await call
    return ended.value


# --- half of a stream is closed ------------------------------------------------------------------------------------


def test_replies_come_while_the_caller_sends_and_after_it_has_ended(run: Run) -> None:
    async def scenario(_calls: Calls, channel: grpc.aio.Channel) -> None:
        call: Any = channel.stream_stream(ECHO)(timeout=WAIT_S)
        for each in (b"a", b"", b"b" * 100_000):
            await call.write(each)
            assert await call.read() == each
        await call.done_writing()
        assert await call.read() == b"the end"
        assert await call.read() is grpc.aio.EOF
        assert await call.code() is grpc.StatusCode.OK

    run(scenario)


def test_a_caller_that_sends_nothing_is_answered(run: Run) -> None:
    async def scenario(_calls: Calls, channel: grpc.aio.Channel) -> None:
        assert [each async for each in channel.stream_stream(ECHO)(iter([]), timeout=WAIT_S)] == [b"the end"]

    run(scenario)


def test_a_call_that_is_answered_before_its_caller_has_sent_everything_is_answered(run: Run) -> None:
    async def scenario(_calls: Calls, channel: grpc.aio.Channel) -> None:
        message = b"x" * 50_000
        assert await channel.stream_unary(COUNT)(iter([message] * 100), timeout=WAIT_S) == b"after " + message

    run(scenario)


# --- metadata ------------------------------------------------------------------------------------------------------


def test_metadata_come_to_the_method_and_blanks_at_their_ends_hinder_no_call(run: Run) -> None:
    async def scenario(_calls: Calls, channel: grpc.aio.Channel) -> None:
        sent = (("a", "1"), ("authorization", "Bearer "), ("a", "2"), ("empty", ""), ("inner", "a b"))
        found = (await channel.unary_unary(SEEN)(b"", metadata=sent, timeout=WAIT_S)).decode()
        pairs = [each.strip() for each in found.split(";")]
        told = [pair for pair in pairs if pair.partition("=")[0] in dict(sent)]
        assert sorted(told) == ["a=1", "a=2", "authorization=Bearer", "empty=", "inner=a b"]

    run(scenario)


def test_metadata_of_bytes_hinder_no_call(run: Run) -> None:
    async def scenario(_calls: Calls, channel: grpc.aio.Channel) -> None:
        sent = (("x-bin", bytes(range(256))), ("x-bin", b""), ("grpc-trace-bin", b"\0" * 29))
        request = kv_pb2.KvGetRequest(namespace="n").SerializeToString()
        assert await channel.unary_unary(GET)(request, metadata=sent, timeout=WAIT_S) == request

    run(scenario)


@pytest.mark.parametrize("words", ["", "plain", ALL_LETTERS, "%41 %zz %"])
def test_an_error_has_its_words_in_any_letters_and_its_metadata_of_any_bytes(run: Run, words: str) -> None:
    async def scenario(_calls: Calls, channel: grpc.aio.Channel) -> None:
        error = await ending(channel.unary_unary(REFUSE)(words.encode(), timeout=WAIT_S))
        assert error.code() is grpc.StatusCode.FAILED_PRECONDITION
        assert error.details() == words
        assert dict(error.trailing_metadata()) == {"details-bin": bytes(range(256)), "words": "in ASCII"}

    run(scenario)


# --- deadlines and cancellation ------------------------------------------------------------------------------------


def test_a_stream_ends_at_its_deadline_on_both_sides(run: Run) -> None:
    async def scenario(calls: Calls, channel: grpc.aio.Channel) -> None:
        error = await ending(channel.unary_stream(WAIT)(b"x", timeout=0.3))
        assert error.code() is grpc.StatusCode.DEADLINE_EXCEEDED
        await until(lambda: calls.ended == calls.begun)

    run(scenario)


def test_a_deadline_in_the_far_future_is_taken(run: Run) -> None:
    async def scenario(_calls: Calls, channel: grpc.aio.Channel) -> None:
        request = kv_pb2.KvGetRequest(namespace="n").SerializeToString()
        assert await channel.unary_unary(GET)(request, timeout=10 * 365 * 86_400) == request

    run(scenario)


def test_a_stream_that_its_caller_cancels_ends_and_no_other_does(run: Run) -> None:
    async def scenario(calls: Calls, channel: grpc.aio.Channel) -> None:
        first, other = (channel.unary_stream(WAIT)(each, timeout=WAIT_S) for each in (b"1", b"2"))
        assert [await first.read(), await other.read()] == [b"1", b"2"]
        first.cancel()
        await until(lambda: calls.ended == 1)
        calls.may_answer.set()
        assert await other.read() == b"2"
        assert await other.read() is grpc.aio.EOF

    run(scenario)


# --- many ----------------------------------------------------------------------------------------------------------


def test_streams_beyond_those_of_a_connection_wait_for_their_turn(run: Run) -> None:
    async def scenario(calls: Calls, channel: grpc.aio.Channel) -> None:
        async def ask(number: int) -> list[bytes]:
            return [each async for each in channel.unary_stream(WAIT)(b"%d" % number, timeout=3 * WAIT_S)]

        asking = [asyncio.ensure_future(ask(number)) for number in range(MORE_THAN_A_CONNECTION_HAS)]
        await until(lambda: calls.begun >= STREAMS)
        calls.may_answer.set()
        found = await asyncio.gather(*asking)
        assert found == [[b"%d" % number] * 2 for number in range(MORE_THAN_A_CONNECTION_HAS)]

    run(scenario)
