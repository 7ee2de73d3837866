"""The log's bytes, on the disk and between nodes: ``raft.txt`` pins them, decoded and raw side by side.

A change there is a change of format: raise ``FORMAT`` in ``raft/records.py`` and say so in ``docs/formats/raft.md``.
Then ``python tests/golden/raft/test_raft_bytes.py > tests/golden/raft/raft.txt`` writes the file anew.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import google_crc32c
import pytest
from google.protobuf.message import Message

from cortado.errors import DataLoss
from cortado.proto.internal import raft_pb2 as pb
from cortado.raft.bootstrap import bootstrap_writes
from cortado.raft.log import Encoded, LogRecord, Nothing, RecordKind
from cortado.raft.records import (
    CHECKSUM_BYTES,
    FORMAT,
    KIND_CONFIGURATION,
    KIND_DATA,
    KIND_NOTHING,
    KIND_REGISTRY,
    HardState,
    Record,
    decode_stored,
)
from cortado.raft.registry import Member, Roster

GOLDEN = Path(__file__).with_name("raft.txt")
GROUP = 1
FOUNDER = Member("n1", "127.0.0.1:7721", "s-1", "127.0.0.1:7621")
GROWN = Roster.of((FOUNDER, Member("n2", "127.0.0.1:7722", "s-2", "127.0.0.1:7622")), (Member("n3", "127.0.0.1:7723"),))
SHRUNK = GROWN.registry.without(["n2"])


def _stored() -> Iterator[tuple[str, bytes]]:
    for kind, payload, name in (
        (KIND_NOTHING, Nothing(), "nothing"),
        (KIND_DATA, Encoded(b"payload"), "data"),
        (KIND_CONFIGURATION, GROWN.configuration, "configuration"),
        (KIND_REGISTRY, SHRUNK, "registry"),
    ):
        yield f"entry {3 + kind} of term 2: {name}", Record(kind, payload, 3 + kind, 2).stored(GROUP)
    (begins,) = bootstrap_writes(GROUP, FOUNDER)
    yield "hard state of a group that begins", begins.payload
    yield "hard state of a group of several", HardState(7, "n2", 40, 6, GROWN).log_record(GROUP).payload


def _messages() -> Iterator[tuple[str, bytes]]:
    entry = Record(KIND_DATA, Encoded(b"payload"), 4, 2).stored(GROUP)
    append = pb.AppendEntries(prev_index=3, prev_term=2, commit_index=3, round=9, records=[entry])
    notice = pb.SnapshotNotice(snapshot_id="spool", index=40, term=6, roster=GROWN.to_message(), size_bytes=1 << 30)
    request = pb.VoteRequest(term=8, last_index=41, last_term=7, is_transfer=True)
    for name, kind in (
        ("append", {"append": append}),
        ("heartbeat", {"heartbeat": pb.Heartbeat(commit_index=3, round=9)}),
        ("acknowledgement: matched", {"acknowledgement": pb.Acknowledgement(matched_index=4, round=9)}),
        (
            "acknowledgement: wanted",
            {"acknowledgement": pb.Acknowledgement(wanted_index=3, rejected_prev_index=9, round=9)},
        ),
        (
            "acknowledgement: matched, with what there is room for",
            {
                "acknowledgement": pb.Acknowledgement(
                    matched_index=4, round=9, room=pb.Room(bytes=1 << 20, freeing_bytes=49 << 20)
                )
            },
        ),
        ("acknowledgement: heard", {"acknowledgement": pb.Acknowledgement(heard=True, round=9)}),
        ("vote request", {"vote_request": request}),
        ("pre-vote request", {"vote_request": pb.VoteRequest(term=8, is_pre_vote=True, last_index=41, last_term=7)}),
        ("vote response", {"vote_response": pb.VoteResponse(term=8, is_granted=True)}),
        ("timeout now", {"timeout_now": pb.TimeoutNow()}),
        ("snapshot", {"snapshot": notice}),
    ):
        message = pb.RaftMessage(term=7, sent_ms=1500.0, echo_ms=1400.0, fresh_index=3, **kind)
        yield name, message.SerializeToString(deterministic=True)


def render() -> str:
    lines = ["# In the log files"]
    lines += [f"{name}\n    {raw.hex()}" for name, raw in _stored()]
    lines += ["# Between nodes"]
    lines += [f"{name}\n    {raw.hex()}" for name, raw in _messages()]
    return "\n".join(lines) + "\n"


def test_the_logs_bytes_are_the_golden_ones() -> None:
    assert render() == GOLDEN.read_text()


def _checked(place: bytes, message: Message) -> bytes:
    body = message.SerializeToString()
    checksum: int = google_crc32c.value(place + body)
    return checksum.to_bytes(CHECKSUM_BYTES, "little") + body


def test_a_checksum_covers_the_place_that_the_page_says() -> None:
    """Group id, then e and the index, or h."""
    group = GROUP.to_bytes(4, "big")
    entry = pb.StoredEntry(term=2, kind=KIND_DATA, body=b"payload")
    stored = Record(KIND_DATA, Encoded(b"payload"), 4, 2).stored(GROUP)
    assert stored == _checked(group + b"e" + (4).to_bytes(8, "big"), entry)
    (begins,) = bootstrap_writes(GROUP, FOUNDER)
    assert begins.payload == _checked(group + b"h", pb.HardState.FromString(begins.payload[CHECKSUM_BYTES:]))


def test_a_newer_log_is_refused_by_its_format_before_its_entries_are_read() -> None:
    record = HardState(7, "n2", 40, 6, GROWN).log_record(GROUP)
    state = pb.HardState.FromString(record.payload[CHECKSUM_BYTES:])
    state.format = FORMAT + 1
    newer = replace(record, payload=_checked(GROUP.to_bytes(4, "big") + b"h", state))
    unknown = LogRecord(RecordKind.ENTRY, GROUP, 41, 7, _checked(b"anything", pb.StoredEntry(term=7, kind=9)))
    with pytest.raises(DataLoss, match=f"format {FORMAT + 1}, this version knows {FORMAT}"):
        decode_stored(GROUP, newer, [unknown])


if __name__ == "__main__":
    sys.stdout.write(render())
