"""A listener outlives a time in which nothing can be accepted."""

from __future__ import annotations

import asyncio
import socket

from cortado.store.ports.accepting import accept


def test_a_connection_is_accepted_once_what_hindered_it_is_gone() -> None:
    with socket.socket() as listening, socket.socket() as caller:
        listening.bind(("127.0.0.1", 0))
        listening.setblocking(False)
        told: list[str] = []

        def mend(why: str) -> None:
            told.append(why)
            listening.listen()
            caller.connect(listening.getsockname())

        accepted, address = asyncio.run(accept(listening, mend))
        with accepted:
            assert address == caller.getsockname()
        assert told == ["no connection can be accepted: Invalid argument"]
