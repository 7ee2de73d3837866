"""The remains of a client that is closed, or never was; and the rights of a forked process."""

from __future__ import annotations

import asyncio
import gc
import multiprocessing
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from cortado.errors import Unsupported
from cortado.proto.v1 import kv_pb2
from cortado.store.client import AsyncClient, Client
from cortado.store.client.blocking.calls import ReplyStream
from cortado.store.client.blocking.drive import run
from cortado.store.client.blocking.io_thread import IoThread
from cortado.store.client.blocking.line import Line
from cortado.store.client.channel import stays
from support.fake_server import FakeServer, header
from support.remains import own_threads, sockets_to
from support.server_process import wait_until


def two_pages(request: Any, context: Any) -> Iterator[kv_pb2.KvScanResponse]:
    for number, token in enumerate([b"t", b""]):
        pair = kv_pb2.KvPair(key=b"%d" % number)
        yield kv_pb2.KvScanResponse(header=header(), pairs=[pair], next_page_token=token)


@pytest.fixture
def server() -> Iterator[FakeServer]:
    with FakeServer().running() as running:
        running.handlers["KeyValue.Get"] = lambda request, context: kv_pb2.KvGetResponse(header=header())
        running.handlers["KeyValue.Scan"] = two_pages
        yield running


def test_a_closed_client_leaves_neither_threads_nor_sockets(server: FakeServer) -> None:
    before = own_threads()
    with Client(server.endpoint) as client:
        client.kv("n").get(b"k")
        client.kv("n").get(b"k")
        found = client.kv("n").scan()
        next(found)
        assert len(own_threads()) > len(before)
        assert sockets_to(server.endpoint) == 1
    assert own_threads() == before
    wait_until(lambda: sockets_to(server.endpoint) == 0, "gRPC has closed its socket")


def test_a_client_that_was_never_closed_is_warned_of_and_ends_by_itself(server: FakeServer) -> None:
    client = Client(server.endpoint)
    client.kv("n").get(b"k")
    client.kv("n").get(b"k")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        del client
        gc.collect()
    assert f"unclosed client of {server.endpoint}" in [str(each.message) for each in caught]
    wait_until(lambda: sockets_to(server.endpoint) == 0, "the connection is closed")


def test_a_client_that_was_not_used_or_was_closed_is_not_warned_of(server: FakeServer) -> None:
    unused, view = Client(server.endpoint), Client(server.endpoint)
    view.with_timeout(1).kv("n").get(b"k")
    view.at("0.1.1").kv("n").get(b"k")
    view.close()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        del unused, view
        gc.collect()
    assert f"unclosed client of {server.endpoint}" not in [str(each.message) for each in caught]


def test_a_view_keeps_the_connection_that_it_shares(server: FakeServer) -> None:
    view = Client(server.endpoint).with_timeout(3)
    gc.collect()
    assert view.kv("n").get(b"k") is None
    view.close()


# --- forks -----------------------------------------------------------------------------------------------------


def in_fork(work: Callable[[], Any]) -> Any:
    """Return the result of ``work`` in a forked process, or the error's type and text; a child that hangs is killed and
    fails."""
    context = multiprocessing.get_context("fork")
    reading, writing = context.Pipe(duplex=False)

    def child() -> None:
        try:
            writing.send(work())
        except BaseException as error:
            writing.send((type(error).__name__, str(error)))

    process = context.Process(target=child)
    process.start()
    process.join(20)
    hangs = process.is_alive()
    if hangs:
        process.kill()
    assert not hangs, "the child hangs"
    assert process.exitcode == 0
    return reading.recv()


def test_a_child_of_a_process_that_had_connected_is_told_so_at_once(server: FakeServer) -> None:
    with Client(server.endpoint) as client, Client(server.endpoint) as unused:
        kv = client.kv("n")
        kv.get(b"k")
        kv.get(b"k")
        found = kv.scan()
        next(found)

        def fresh() -> Any:
            with Client(server.endpoint) as another:
                return another.kv("n").get(b"k")

        def over_asyncio() -> Any:
            return asyncio.run(AsyncClient(server.endpoint).kv("n").get(b"k"))

        for work in (lambda: kv.get(b"k"), lambda: unused.clock(), fresh, over_asyncio, lambda: list(kv.scan())):
            name, text = in_fork(work)
            assert name == Unsupported.__name__
            assert "forked from one in which a client had connected" in text
        assert in_fork(lambda: (client.close(), found.close(), gc.collect(), "closed")[-1]) == "closed"  # type: ignore[attr-defined]
        # The parent's goes on, streams and all.
        assert kv.get(b"k") is None
        assert len(list(found)) == 1


SCRIPT = """
import multiprocessing, sys
from cortado import Client

client = Client(sys.argv[1], timeout_s=5)

def child():
    with client:
        client.clock()

processes = [multiprocessing.get_context("fork").Process(target=child) for _ in range(2)]
for each in processes:
    each.start()
for each in processes:
    each.join(20)
client.clock()
client.close()
print([each.exitcode for each in processes])
"""


def test_a_client_that_was_not_used_before_the_fork_works_on_both_sides(server: FakeServer) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", SCRIPT, server.endpoint], capture_output=True, text=True, timeout=60, check=False
    )
    assert (ended.stdout, ended.returncode) == ("[0, 0]\n", 0), ended.stderr


def test_a_coroutine_that_suspends_is_no_part_of_the_synchronous_face() -> None:
    class Once:
        def __await__(self) -> Iterator[None]:
            yield

    async def waits() -> None:
        await Once()

    with pytest.raises(AssertionError, match="must not suspend"):
        run(waits())


def test_a_stream_that_is_collected_in_the_midst_of_its_connections_work_waits_for_no_lock() -> None:
    """Garbage is collected in any thread, also in one that has these locks: the generator of a scan ends there."""
    io = IoThread(time.monotonic)
    line = Line("127.0.0.1:1", None, io)
    try:
        for lock in (line._lock, io._lock):
            stream = ReplyStream(line, "Nothing/At", b"", None, None, 5.0, stays)
            line.begin(stream)

            def collect(lock: Any = lock, stream: ReplyStream = stream) -> None:
                with lock:
                    stream.close()

            thread = threading.Thread(target=collect, daemon=True)
            thread.start()
            thread.join(30)
            assert not thread.is_alive(), "it waits for itself"
    finally:
        io.close()
