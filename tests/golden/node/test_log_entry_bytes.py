"""The bytes of a log entry are a format: a change here is a new format number."""

from __future__ import annotations

from pathlib import Path

import pytest

from cortado.errors import DataLoss
from cortado.proto.internal import log_pb2
from cortado.store.clock.timestamp import Timestamp
from cortado.store.keys.types import LogicalKey
from cortado.store.mvcc.evaluation import BumpEpoch, RaiseCeiling
from cortado.store.mvcc.mutations import Mutations
from cortado.store.node.commands import Command, LogEntry

GOLDEN = Path(__file__).with_name("log_entry.hex")


def entry() -> LogEntry:
    return LogEntry(
        after_index=41,
        after_term=3,
        commands=(
            Command(
                ts=Timestamp(0, 1_763_643_600_000, 2),
                mutations=Mutations([LogicalKey(b"ka"), LogicalKey(b"kbb"), LogicalKey(b"kc")], [b"one", None, b""]),
                request_id=bytes(range(20)),
                request_hash=b"\xaa" * 16,
                reply=b"reply",
            ),
            Command(ts=Timestamp(1, 5, 0), mutations=Mutations(), control=BumpEpoch(1)),
            Command(ts=Timestamp(1, 5, 1), mutations=Mutations(), control=RaiseCeiling(Timestamp(1, 255, 0))),
        ),
    )


def test_a_log_entry_has_these_bytes() -> None:
    assert entry().encode().hex(" ", 16).split() == GOLDEN.read_text().split()


def test_a_log_entry_reads_back() -> None:
    assert LogEntry.decode(bytes.fromhex(GOLDEN.read_text())) == entry()


def test_an_unknown_format_is_neither_skipped_nor_applied() -> None:
    newer = log_pb2.LogEntry(format=2)
    with pytest.raises(DataLoss, match="format 2 is unknown"):
        LogEntry.decode(newer.SerializeToString())


@pytest.mark.parametrize(
    ("damage", "problem"),
    [
        ({"keys": b"ka"}, "keys have 2 bytes, their lengths say 7"),
        ({"payloads": b"onex"}, "payloads have 4 bytes, their lengths say 3"),
        ({"key_lengths": b"\x02\0\0"}, "not a multiple of 4"),
        ({"timestamp": b"short"}, "a timestamp of 5 bytes"),
        ({"payload_lengths": b"\x03\0\0\0"}, "3 keys and 1 payloads"),
    ],
)
def test_a_damaged_entry_is_refused(damage: dict[str, bytes], problem: str) -> None:
    message = log_pb2.LogEntry.FromString(entry().encode())
    for name, value in damage.items():
        setattr(message.commands[0], name, value)
    with pytest.raises(DataLoss, match=problem):
        LogEntry.decode(message.SerializeToString())


def test_bytes_that_are_no_entry_are_refused() -> None:
    with pytest.raises(DataLoss, match="not a LogEntry"):
        LogEntry.decode(b"\xff\xff\xff")
