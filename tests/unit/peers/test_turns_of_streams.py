"""One peer's messages do not keep the loop from everything else, are told in their order, and the end comes last."""

from __future__ import annotations

import asyncio

import pytest

from cortado.errors import CortadoError, PeerRefused, Unavailable
from cortado.store.peers.connection import TURN_BYTES, TURN_FRAMES, BatchStream, Connection
from cortado.store.peers.frames import PREAMBLE, Kind, encode_frame
from support.nodes import run, until


class CountingPipe(asyncio.Transport):
    """A transport that is read from, or not."""

    def __init__(self) -> None:
        super().__init__()
        self.is_paused = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        pass

    def pause_reading(self) -> None:
        self.is_paused = True

    def resume_reading(self) -> None:
        self.is_paused = False


class Told:
    """A receiver that records its messages; the message ``bad`` is not to its taste."""

    def __init__(self, bad: bytes = b"") -> None:
        self.messages: list[bytes] = []
        self.ends: list[Exception] = []
        self._bad = bad

    def arrived(self, message: bytes) -> None:
        assert not self.ends
        if self._bad and message == self._bad:
            raise PeerRefused("a bad message")
        self.messages.append(message)

    def writable(self) -> None:
        pass

    def ended(self, reason: Exception) -> None:
        self.ends.append(reason)


def streaming(told: Told) -> tuple[Connection, CountingPipe]:
    connection, pipe = Connection("it"), CountingPipe()
    connection.connection_made(pipe)
    connection.data_received(PREAMBLE)
    BatchStream(connection, "n2", 8 << 20).start(told)
    return connection, pipe


def frames(*messages: bytes) -> bytes:
    return b"".join(encode_frame(Kind.BATCH, each) for each in messages)


@pytest.mark.parametrize(
    ("messages", "in_a_turn"),
    [
        pytest.param([b"%d" % number for number in range(10_000)], TURN_FRAMES, id="many small ones"),
        pytest.param([bytes(TURN_BYTES // 2 - 1)] * 50, 3, id="large ones"),
    ],
)
def test_a_flood_in_one_read_is_taken_in_turns(messages: list[bytes], in_a_turn: int) -> None:
    async def scenario() -> None:
        told = Told()
        connection, pipe = streaming(told)
        connection.data_received(frames(*messages))
        assert len(told.messages) == in_a_turn
        assert pipe.is_paused
        await asyncio.sleep(0)
        assert len(told.messages) <= 2 * in_a_turn
        # Messages that arrive meanwhile, as TLS may bring them, have to wait for their turn, too.
        connection.data_received(frames(b"last"))
        assert len(told.messages) <= 2 * in_a_turn
        await until(lambda: len(told.messages) == len(messages) + 1, "all of it is told")
        assert told.messages == [*messages, b"last"]
        await until(lambda: not pipe.is_paused, "more is read")
        assert told.ends == []

    run(scenario)


def test_the_end_of_a_stream_comes_behind_all_that_was_sent_and_once() -> None:
    async def scenario() -> None:
        told = Told()
        connection, _ = streaming(told)
        connection.data_received(frames(*[b"x"] * 1_000))
        connection.eof_received()
        connection.connection_lost(None)
        assert told.ends == []
        await until(lambda: told.ends != [], "the end is told")
        assert len(told.messages) == 1_000
        await asyncio.sleep(0)
        assert [type(each) for each in told.ends] == [Unavailable]

    run(scenario)


def test_nothing_is_told_behind_a_message_that_was_refused() -> None:
    async def scenario() -> None:
        told = Told(bad=b"bad")
        connection, pipe = streaming(told)
        connection.data_received(frames(*[b"x"] * 100, b"bad", *[b"y"] * 100))
        await until(lambda: told.ends != [], "the end is told")
        assert told.messages == [b"x"] * 100
        assert [type(each) for each in told.ends] == [PeerRefused]
        # The other side is to read why: so it is read from until it closes.
        assert not pipe.is_paused
        connection.data_received(frames(b"z"))
        connection.connection_lost(None)
        assert len(told.ends) == 1
        assert isinstance(told.ends[0], CortadoError)

    run(scenario)
