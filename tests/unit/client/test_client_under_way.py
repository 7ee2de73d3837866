"""Closing waits for gRPC's thread: frozen in a call at the end of the process, it would keep that from ending."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from cortado import Client
from cortado.store.client.blocking.call_stream import SendingThread
from cortado.store.client.blocking.runtime import UnderWay
from support.fake_server import FakeServer


class Call:
    """A call that ends when it is told to."""

    def __init__(self) -> None:
        self.over: list[Callable[[Any], None]] = []

    def add_done_callback(self, tell: Callable[[Any], None]) -> None:
        self.over.append(tell)


def test_a_call_is_under_way_until_what_follows_it_is_done() -> None:
    call, under_way, done = Call(), UnderWay(), []
    under_way.add(call, lambda: done.append("followed"))
    waiting = threading.Thread(target=lambda: (under_way.wait(), done.append("waited")))
    waiting.start()
    waiting.join(0.05)
    assert waiting.is_alive()
    call.over[0](call)
    waiting.join(10)
    assert done == ["followed", "waited"]


def test_a_thread_that_takes_messages_is_waited_for() -> None:
    sending, goes_on, taken = SendingThread(), threading.Event(), []

    def take() -> None:
        for message in sending.takes(iter([b"a", b"b"])):
            goes_on.wait(10)
            taken.append(message)

    threading.Thread(target=take, daemon=True).start()
    goes_on.set()
    sending.join()
    assert taken == [b"a", b"b"]


def test_no_thread_of_grpc_has_to_do_with_a_client_that_was_closed() -> None:
    with FakeServer().running() as server:
        for _ in range(20):
            with Client(server.endpoint) as client:
                client.clock()
                client.clock()
            left = [each.name for each in threading.enumerate() if "consume_request" in each.name]
            assert not left
