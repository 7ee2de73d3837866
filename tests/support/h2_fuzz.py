"""Random bytes, frames and header blocks for a connection without I/O, and answers between them, for as long as wanted.

::

    python -m support.h2_fuzz --seconds 3600 --seed 1      make fuzz-frames

After each piece it holds: only the protocol's own errors were raised, ``advance`` gets on, the connection's memory is
within its limits, and the bytes that it sends on a stream are those it was given. Failing inputs are written to a file.
"""

from __future__ import annotations

import argparse
import random
import resource
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from cortado.store.h2 import frames
from cortado.store.h2.connection import Connection
from cortado.store.h2.events import Data
from cortado.store.h2.frames import FrameReader
from cortado.store.h2.grpc import OK_TRAILERS, RESPONSE_HEAD
from cortado.store.h2.header_blocks import block, integer
from cortado.store.h2.limits import ErrorCode, H2Limits, Rate
from support.h2 import HELLO, REQUEST, Clock, shown

LIMITS: Final = replace(
    H2Limits(),
    frame_bytes=400,
    header_list_bytes_max=600,
    header_block_bytes=300,
    streams=4,
    stream_window=600,
    connection_window=1_500,
    output_bytes=300_000,
    resets=Rate(20, 1),
    slice_cost=8,
)
IDS: Final = (0, 1, 1, 3, 5, 7, 2, 9, 101)
FLAGS: Final = (0, 0x1, 0x4, 0x5, 0x8, 0x20, 0x2D, 0xFF)
NAMES: Final = (b":path", b":method", b"a", b"te", b"content-length", b"A", b"", b"host", b"connection")
VALUES: Final = (b"", b"0", b"7", b"trailers", b"/x", b" b", b"\n", b"\xff", b"x" * 90)
DEEDS: Final = ("head", "data", "flood", "flood", "end", "reply", "reset", "consume", "expect", "take")
_ROUNDS_MAX: Final = 1_000
_SETTLED: Final = 20_000
"""Growth at first ends within this number of examples."""


class Peer:
    """The other side: the bytes that it gave, took and received. Bytes of a stream have to come in their order, each of
    them once."""

    def __init__(self, made: Connection) -> None:
        self._made = made
        self._reader = FrameReader(1 << 24)
        self._given: dict[int, bytes] = {}
        self._sent: dict[int, bytes] = {}
        self.held: dict[int, int] = {}

    def do(self, deed: str, stream_id: int) -> None:
        """Send an answer, or a part of one."""
        made = self._made
        match deed:
            case "head":
                made.send_head(stream_id, RESPONSE_HEAD)
            case "data":
                made.send_data(stream_id, self._next(stream_id, 200))
            case "flood":
                made.send_data(stream_id, self._next(stream_id, 30_000))
            case "end":
                made.send_end(stream_id, OK_TRAILERS)
            case "reply":
                made.send_reply(stream_id, RESPONSE_HEAD, self._next(stream_id, 40), OK_TRAILERS)
            case "reset":
                made.reset(stream_id, ErrorCode.CANCEL)
            case "consume":
                made.consumed(stream_id, self.held.pop(stream_id, 0))
            case "expect":
                made.expect(stream_id, 100)
            case "take":
                self.take()

    def _next(self, stream_id: int, size: int) -> bytes:
        """Return bytes that are unlike all others of the stream."""
        if stream_id not in self._made._streams:
            return bytes(size)
        before = self._given.get(stream_id, b"")
        data = b"".join(n.to_bytes(4, "big") for n in range(len(before) // 4, (len(before) + size) // 4))
        self._given[stream_id] = before + data
        return data

    def take(self) -> None:
        """Read and check the connection's output."""
        self._reader.feed(self._made.taken())
        while (frame := self._reader.next()) is not None:
            if frame.kind == frames.DATA:
                sent = self._sent[frame.stream_id] = self._sent.get(frame.stream_id, b"") + frame.payload
                assert self._given[frame.stream_id].startswith(sent), "bytes come once, and in their order"
        assert not self._reader.held


def _told(made: Connection, told: list[str], peer: Peer) -> None:
    """Record all that the connection tells now."""
    for _ in range(_ROUNDS_MAX):
        for each in made.advance():
            assert not (told and told[-1].startswith("ended")), "nothing comes behind the end"
            told.append(shown(each))
            if isinstance(each, Data):
                peer.held[each.stream_id] = peer.held.get(each.stream_id, 0) + len(each.data)
        if not made.has_more:
            return
    raise AssertionError("advance does not get on")


def _check(made: Connection, piece: int) -> None:
    assert len(made._streams) <= LIMITS.streams
    assert sum(map(len, made._out)) <= LIMITS.output_bytes + 40_000
    assert made._reader.held <= max(piece, LIMITS.frame_bytes + frames.HEAD_BYTES)
    assert sum(map(len, made._block)) <= LIMITS.header_block_bytes or made.is_over
    assert made._recv_window >= 0 or made.is_over


def drive(sent: bytes, deeds: Sequence[tuple[str, int]], piece: int) -> list[str]:
    """Send in pieces, and do a deed between two of them. Returns the events of the connection."""
    made, told = Connection(LIMITS, Clock()), list[str]()
    peer = Peer(made)
    ended_by_us: set[int] = set()
    for place, at in enumerate(range(0, len(sent), piece)):
        made.feed(sent[at : at + piece])
        _told(made, told, peer)
        if place < len(deeds):
            deed, stream_id = deeds[place]
            # An answer ends once.
            if stream_id not in ended_by_us:
                peer.do(deed, stream_id)
            if deed in ("end", "reply", "reset"):
                ended_by_us.add(stream_id)
        _check(made, piece)
    assert made.is_over == bool(told and told[-1].startswith("ended"))
    peer.take()
    return told


def _bytes(of: random.Random, most: int) -> bytes:
    return of.randbytes(of.randrange(most))


def _block(of: random.Random) -> bytes:
    fields = [(of.choice(NAMES), of.choice(VALUES)) for _ in range(of.randrange(4))]
    kept = b"".join(b"\x40" + integer(len(n), 7) + n + integer(len(v), 7) + v for n, v in fields)
    turned = bytearray(block((*REQUEST, *fields)))
    for _ in range(of.randrange(1, 4)):
        turned[of.randrange(len(turned))] = of.randrange(256)
    likely = [block((*REQUEST, *fields))] * 4
    indexed = block(REQUEST) + bytes(of.randrange(0x80, 0xD0) for _ in range(of.randrange(6)))
    made = [*likely, block(fields), block(REQUEST) + _bytes(of, 12), block(REQUEST) + kept, indexed, bytes(turned)]
    return of.choice([*made, _bytes(of, 300)])[: LIMITS.frame_bytes]


def _frame(of: random.Random) -> bytes:
    stream_id = of.choice(IDS) if of.random() < 0.7 else of.randrange(1, 60)
    flags = of.choice(FLAGS)
    kind = of.choices(range(8), (30, 6, 24, 10, 8, 8, 11, 3))[0]
    match kind:
        case 0:
            return frames.frame(frames.HEADERS, of.choice((flags, 4, 5)), stream_id, _block(of))
        case 1:
            return frames.frame(frames.CONTINUATION, flags, stream_id, _block(of))
        case 2:
            return frames.frame(frames.DATA, of.choice((flags, 0, 1)), stream_id, _bytes(of, 300))
        case 3:
            return frames.window_update(stream_id, of.choice((0, 1, 1_000, (1 << 31) - 1)))
        case 4:
            value = of.choice((0, 1, 100, 16_384, 65_535, of.randrange(1 << 32)))
            return frames.settings([(of.randrange(9), value)])
        case 5:
            return frames.rst_stream(stream_id, of.choice(list(ErrorCode)))
        case 6:
            return frames.frame(of.randrange(13), flags, stream_id, _bytes(of, 20))
        case _:
            return _bytes(of, 30)


def _sent(of: random.Random) -> bytes:
    """Return a client's bytes: at random, or by the rules, which gets further."""
    if of.random() < 0.5:
        return (HELLO if of.random() < 0.95 else b"") + b"".join(_frame(of) for _ in range(of.randrange(40)))
    begun = b"".join(frames.frame(frames.HEADERS, of.choice((4, 5)), each, block(REQUEST)) for each in (1, 3, 5, 7))
    windows = (0, 1, 100, 20_000, 65_535, 100_000)
    later = [
        frames.settings([(frames.INITIAL_WINDOW_SIZE, of.choice(windows))])
        if of.random() < 0.5
        else frames.window_update(of.choice((0, 0, 1, 3, 5, 7)), of.choice((1, 1_000, 30_000)))
        for _ in range(of.randrange(20))
    ]
    return HELLO + begun + b"".join(later)


def _memory_kib() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32))
    given = parser.parse_args()
    sys.stderr.write(f"seed {given.seed}\n")
    of, until_s = random.Random(given.seed), time.monotonic() + given.seconds
    examples, settled_kib = 0, 0
    while time.monotonic() < until_s:
        sent = _sent(of)
        deeds = [(of.choice(DEEDS), of.choice((1, 3, 5, 7))) for _ in range(of.randrange(30))]
        piece = of.randrange(10, 300)
        try:
            drive(sent, deeds, piece)
        except BaseException:
            failed = Path(f"h2-fuzz-{given.seed}-{examples}.bin")
            failed.write_bytes(sent)
            sys.stderr.write(f"drive({failed}, {deeds}, {piece})\n")
            raise
        examples += 1
        if examples == _SETTLED:
            settled_kib = _memory_kib()
    grown = f", {_memory_kib() - settled_kib} KiB more than after {_SETTLED}" if settled_kib else ""
    sys.stdout.write(f"{examples} examples{grown}\n")


if __name__ == "__main__":
    main()
