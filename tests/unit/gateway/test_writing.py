"""All writes of one step of the loop go out as one, in order, and none is lost."""

from __future__ import annotations

import asyncio
from typing import cast

from cortado.store.gateway.writing import HELD_BYTES_MAX, Together


class FakeTransport:
    def __init__(self) -> None:
        self.did: list[object] = []
        self.closing = False

    def write(self, data: bytes) -> None:
        self.did.append(data)

    def close(self) -> None:
        self.did.append("close")
        self.closing = True

    def abort(self) -> None:
        self.did.append("abort")
        self.closing = True

    def is_closing(self) -> bool:
        return self.closing


def written(*steps: tuple[str | bytes, ...]) -> list[object]:
    """Return the calls of the transport after these writes, one tuple for each step of the loop."""

    async def run() -> list[object]:
        transport = FakeTransport()
        together = Together(cast(asyncio.Transport, transport), asyncio.get_running_loop())
        for step in steps:
            for each in step:
                together.write(each) if isinstance(each, bytes) else getattr(together, each)()
            await asyncio.sleep(0)
        return transport.did

    return asyncio.run(run())


def test_head_and_body_of_a_step_are_one_write() -> None:
    assert written((b"head", b"body"), (b"head2", b"body2")) == [b"headbody", b"head2body2"]


def test_a_head_does_not_wait_for_a_body_of_a_later_step() -> None:
    assert written((b"head",), (b"piece",), (b"piece",)) == [b"head", b"piece", b"piece"]


def test_a_close_sends_what_was_written_first_and_nothing_behind_it() -> None:
    assert written((b"head", b"body", "close", b"late"), (b"later",)) == [b"headbody", "close"]


def test_an_abort_sends_nothing_more() -> None:
    assert written((b"head", "abort"), ()) == ["abort"]


def test_what_is_large_goes_at_once() -> None:
    large = bytes(HELD_BYTES_MAX)
    assert written((b"head", large, b"rest", "close")) == [b"head" + large, b"rest", "close"]
