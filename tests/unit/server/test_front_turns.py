"""Calls of a connection of the native front begin in turns with the other work of the loop."""

from __future__ import annotations

import asyncio

from cortado.proto.v1 import kv_pb2
from cortado.store.server import front_connection
from cortado.store.server.rpc import rpc_handler
from support.front_calls import GET, Kv
from support.front_connected import HELLO, Clock, call, connected, new_front
from support.http2 import RST_STREAM, frame


def test_many_calls_of_one_read_begin_in_slices_and_in_their_order() -> None:
    async def scenario() -> None:
        clock, front, kv = Clock(), new_front(), Kv()
        others, begun = 0, list[tuple[str, int]]()

        async def get(request: kv_pb2.KvGetRequest) -> bytes:
            begun.append((request.namespace, others))
            clock.now_s += 2 * front_connection.SLICE_S
            return b""

        kv.get = get  # type: ignore[method-assign]
        front.add_handlers([rpc_handler(kv_pb2.DESCRIPTOR.services_by_name["KeyValue"], kv)])
        connection, transport = connected(front, clock)
        names = [f"n{number}" for number in range(20)]
        gets = [
            call(2 * place + 1, GET, kv_pb2.KvGetRequest(namespace=name).SerializeToString())
            for place, name in enumerate(names)
        ]
        transport.is_reading = True
        connection.data_received(HELLO + b"".join(gets[:-1]))
        assert len(begun) == 1
        assert not transport.is_reading
        # More may come: TLS hands on bytes that were received before the pause.
        connection.data_received(gets[-1])
        while not transport.is_reading:
            others += 1
            await asyncio.sleep(0)
        assert [name for name, _ in begun] == names
        assert len({at for _, at in begun}) == len(begun), "other work of the loop goes on between any two of them"
        answered = [each for each in transport.written if b"grpc-status" in each]
        assert len(answered) == len(names)

    asyncio.run(scenario())


def test_a_call_that_is_taken_back_before_its_turn_never_begins() -> None:
    async def scenario() -> None:
        front, kv = new_front(), Kv()
        front.add_handlers([rpc_handler(kv_pb2.DESCRIPTOR.services_by_name["KeyValue"], kv)])
        connection, _ = connected(front, Clock())
        connection.data_received(HELLO + call(1, GET, b"") + frame(RST_STREAM, 0, 1, bytes(4)) + call(3, GET, b""))
        assert len(kv.seen) == 1
        connection.connection_lost(None)

    asyncio.run(scenario())
