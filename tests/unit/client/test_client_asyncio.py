"""The asyncio face's own behaviour: cancellation, messages by steps of the loop, one loop, and nothing left behind."""

from __future__ import annotations

import asyncio
import gc
import threading
import warnings
from collections.abc import Callable, Coroutine, Iterator
from contextlib import aclosing
from typing import Any

import grpc
import pytest

from cortado.errors import Cancelled, DeadlineExceeded, OutcomeUnknown, Unsupported
from cortado.proto.v1 import documents_pb2, kv_pb2
from cortado.store.client import AsyncClient, call_queue
from cortado.store.keys.packing import join
from support.fake_server import FakeServer, break_off, header
from support.server_process import wait_until


@pytest.fixture
def server() -> Iterator[FakeServer]:
    with FakeServer(threads=64).running() as running:
        running.handlers["KeyValue.Get"] = lambda request, context: kv_pb2.KvGetResponse(
            header=header(), pair=kv_pb2.KvPair(key=request.key)
        )
        running.handlers["KeyValue.Put"] = lambda request, context: kv_pb2.KvPutResponse(header=header(), etag="0.1.1")
        yield running


def with_client(server: FakeServer, work: Callable[[AsyncClient], Coroutine[Any, Any, Any]], **options: Any) -> Any:
    """Return the result of ``work``, with a client whose stream is open. No task may be left when the client is
    closed."""

    async def main() -> Any:
        async with AsyncClient(server.endpoint, timeout_s=5, **options) as client:
            await client.clock()
            result = await work(client)
        # gRPC's own may take another step.
        left = [each for each in asyncio.all_tasks() if "/store/client/" in repr(each)]
        assert not left, left
        return result

    return asyncio.run(main())


async def until(condition: Callable[[], bool], what: str) -> None:
    await asyncio.to_thread(wait_until, condition, what)


def hang(server: FakeServer, method: str) -> threading.Event:
    """Answer ``method`` from now on when the returned event is set."""
    release, answer = threading.Event(), server.handlers[method]
    server.handlers[method] = lambda request, context: release.wait(10) and answer(request, context)
    return release


def test_a_call_that_is_cancelled_is_taken_back_at_the_server(server: FakeServer) -> None:
    release = hang(server, "KeyValue.Get")

    async def work(client: AsyncClient) -> None:
        call = asyncio.create_task(client.kv("n").get(b"k"))
        await until(lambda: "KeyValue.Get" in server.merged, "it is asked")
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        await until(lambda: len(server.given_up) == 1, "it is taken back")
        assert (await client.kv("n").put(b"k", b"v")) == "0.1.1"

    with_client(server, work)
    release.set()


def test_a_call_of_its_own_that_is_cancelled_is_cancelled_at_the_server(server: FakeServer) -> None:
    release = hang(server, "KeyValue.Put")

    async def work(client: AsyncClient) -> None:
        call = asyncio.create_task(client.kv("n").put(b"k", b"v"))
        await until(lambda: bool(server.calls("KeyValue.Put")), "it is asked")
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        await until(lambda: "KeyValue.Put" in server.cancelled, "it is cancelled")

    with_client(server, work, coalesce=False)
    release.set()


def test_a_call_that_is_cancelled_before_it_left_never_leaves(
    server: FakeServer,
) -> None:
    async def work(client: AsyncClient) -> None:
        await client.clock()
        port = client._connection.leader_channel()._wire._port
        port.pause_writing()  # As if the server read nothing.
        calls = [asyncio.create_task(client.kv("n").get(b"%d" % number)) for number in range(3)]
        await asyncio.sleep(0)  # They are in line.
        calls[1].cancel()
        await asyncio.wait([calls[1]])
        port.resume_writing()
        found = await asyncio.gather(*calls, return_exceptions=True)
        assert isinstance(found[1], asyncio.CancelledError)

    with_client(server, work)
    assert [request.key for request in server.calls("KeyValue.Get")] == [b"0", b"2"]
    assert server.given_up == []


def test_a_timeout_of_asyncio_ends_a_call_and_a_group_ends_its_others(server: FakeServer) -> None:
    release = hang(server, "KeyValue.Get")

    async def work(client: AsyncClient) -> None:
        kv = client.kv("n")
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.5):
                await kv.get(b"k")
        with pytest.raises(ExceptionGroup) as raised:
            async with asyncio.TaskGroup() as group:
                group.create_task(kv.get(b"k"))
                group.create_task(client.with_timeout(0.5).kv("n").get(b"k"))
        assert [type(each) for each in raised.value.exceptions] == [DeadlineExceeded]
        await until(lambda: len(server.given_up) == 3, "all of them are taken back")

    with_client(server, work)
    release.set()


def test_the_clients_own_deadline_makes_a_write_unknown_under_a_longer_one_of_asyncio(server: FakeServer) -> None:
    release = hang(server, "KeyValue.Put")

    async def work(client: AsyncClient) -> None:
        with pytest.raises(OutcomeUnknown):
            async with asyncio.timeout(5):
                await client.with_timeout(0.5).kv("n").put(b"k", b"v")

    with_client(server, work)
    release.set()


def test_what_is_submitted_in_one_step_of_the_loop_leaves_as_one_message(server: FakeServer) -> None:
    async def work(client: AsyncClient) -> None:
        kv = client.kv("n")
        assert await kv.get(b"first") is not None
        before = server.messages
        found = await asyncio.gather(*(kv.get(b"%d" % number) for number in range(100)))
        assert [pair and pair.key for pair in found] == [b"%d" % number for number in range(100)]
        assert server.messages == before + 1

    with_client(server, work)


def test_a_step_that_submits_more_than_may_be_in_flight_is_told_and_tried_again(
    server: FakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(call_queue, "CALLS_MAX", 8)

    async def work(client: AsyncClient) -> None:
        found = await asyncio.gather(*(client.kv("n").get(b"k") for _ in range(20)))
        assert len(found) == 20

    with_client(server, work)


def test_an_idle_stream_ends_and_the_next_call_opens_another(
    server: FakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(call_queue, "IDLE_S", 0.05)

    async def work(client: AsyncClient) -> None:
        kv = client.kv("n")
        await kv.get(b"k")
        channel = client._connection.leader_channel()
        first = channel._merged
        assert first is not None
        while channel._merged is first:
            await asyncio.sleep(0.01)
        assert await kv.get(b"k") is not None

    with_client(server, work)
    assert len(server.merged) == 2


def test_an_iterator_that_is_left_by_a_task_that_is_cancelled_stops_the_servers_work(server: FakeServer) -> None:
    def endless(request: Any, context: grpc.ServicerContext) -> Iterator[kv_pb2.KvScanResponse]:
        number = 0
        while context.is_active():
            keys, lengths = join([b"%d" % number])
            packed = kv_pb2.KvPackedPairs(keys=keys, key_lengths=lengths, value_lengths=bytes(4), versions=bytes(12))
            yield kv_pb2.KvScanResponse(header=header(), packed=packed, next_page_token=b"t")
            number += 1

    server.handlers["KeyValue.Scan"] = endless

    async def read(client: AsyncClient) -> None:
        async with aclosing(client.kv("n").scan()) as pairs:  # type: ignore[type-var]
            async for pair in pairs:
                assert pair.key
                await asyncio.sleep(0)

    async def work(client: AsyncClient) -> None:
        reading = asyncio.create_task(read(client))
        await until(lambda: bool(server.calls("KeyValue.Scan")), "it is read")
        reading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reading
        await until(lambda: "KeyValue.Scan" in server.cancelled, "the scan is cancelled")

    with_client(server, work)


def test_a_bulk_load_takes_rows_of_either_kind_of_iterator_and_gives_way(server: FakeServer) -> None:
    def bulk(requests: Iterator[Any], context: grpc.ServicerContext) -> Iterator[documents_pb2.BulkResponse]:
        for request in requests:
            if request.HasField("chunk"):
                written = len(request.chunk.rows.lengths) // 4
                yield documents_pb2.BulkResponse(header=header(), sequence=request.chunk.sequence, written=written)

    server.handlers["Documents.Bulk"] = bulk
    runs = [(1, b"a", (1).to_bytes(4, "little"))] * 30

    async def later() -> Any:
        for run in runs:
            await asyncio.sleep(0)
            yield run

    async def work(client: AsyncClient) -> None:
        steps = 0

        async def count() -> None:
            nonlocal steps
            while True:
                steps += 1
                await asyncio.sleep(0)

        counting = asyncio.create_task(count())
        table = client.table("d.t")
        assert (await table.put_batches(later())).written == 30
        before = steps
        assert (await table.put_batches(runs)).written == 30
        assert steps - before >= 16
        counting.cancel()

    with_client(server, work)


# --- ends ------------------------------------------------------------------------------------------------------


def test_a_call_that_runs_when_the_client_closes_is_cancelled_and_a_later_one_is_told(server: FakeServer) -> None:
    release = hang(server, "KeyValue.Get")

    async def work(client: AsyncClient) -> None:
        call = asyncio.create_task(client.kv("n").get(b"k"))
        await until(lambda: "KeyValue.Get" in server.merged, "it is asked")
        await client.close()
        with pytest.raises(Cancelled, match="closed"):
            await call
        with pytest.raises(Cancelled, match="closed"):
            await client.kv("n").get(b"k")
        await client.close()

    with_client(server, work)
    release.set()


def test_a_client_belongs_to_the_loop_of_its_first_use(server: FakeServer) -> None:
    client = AsyncClient(server.endpoint)  # No loop runs here.

    async def use() -> None:
        await client.kv("n").get(b"k")

    async def close() -> None:
        await client.close()

    def in_another_loop(work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        with pytest.raises(Unsupported, match="two event loops"):
            asyncio.run(work())

    async def main() -> None:
        await use()
        await asyncio.to_thread(in_another_loop, use)
        await asyncio.to_thread(in_another_loop, close)
        await use()  # Nothing was harmed.

    asyncio.run(main())
    for work in (use, close):
        with pytest.raises(Unsupported, match="after its event loop has ended"):
            asyncio.run(work())


def test_a_client_that_was_never_used_is_closed_anywhere() -> None:
    client = AsyncClient("127.0.0.1:1")
    asyncio.run(client.close())
    asyncio.run(client.close())


def test_a_client_that_was_never_closed_is_warned_of_and_ends_by_itself(server: FakeServer) -> None:
    async def main() -> None:
        client = AsyncClient(server.endpoint)
        await client.clock()
        await client.clock()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            del client
            # A call of the stream that is just ending may hold it for some turns of the loop.
            async with asyncio.timeout(5):
                while f"unclosed client of {server.endpoint}" not in [str(each.message) for each in caught]:
                    gc.collect()
                    await asyncio.sleep(0.01)
        async with asyncio.timeout(5):
            while any("/store/client/" in repr(each) for each in asyncio.all_tasks()):
                await asyncio.sleep(0.01)

    asyncio.run(main())


def test_a_stream_that_breaks_is_set_up_again_for_all_who_waited(server: FakeServer) -> None:
    left, answer = [3], server.handlers["KeyValue.Get"]

    def get(request: Any, context: Any) -> Any:
        if left[0]:
            left[0] -= 1
            break_off(context)
        return answer(request, context)

    server.handlers["KeyValue.Get"] = get

    async def work(client: AsyncClient) -> None:
        found = await asyncio.gather(*(client.kv("n").get(b"%d" % number) for number in range(20)))
        assert [pair and pair.key for pair in found] == [b"%d" % number for number in range(20)]

    with_client(server, work)
