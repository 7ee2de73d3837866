"""The log's bytes, on the disk and between nodes: ``raft.txt`` pins them, decoded and raw side by side.

A change there is a change of format: raise ``FORMAT`` in ``raft/records.py`` and say so in ``docs/formats/raft.md``.
Then ``python tests/golden/raft/test_raft_bytes.py > tests/golden/raft/raft.txt`` writes the file anew.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import google_crc32c
import pytest
from google.protobuf.message import Message

from cortado.errors import DataLoss
from cortado.proto.internal import raft_pb2 as pb
from cortado.raft.bootstrap import bootstrap_writes
from cortado.raft.configuration import Configuration, Member
from cortado.raft.log import Encoded, Nothing
from cortado.raft.records import (
    CHECKSUM_BYTES,
    FORMAT,
    KIND_CONFIGURATION,
    KIND_DATA,
    KIND_NOTHING,
    HardState,
    Record,
    decode_stored,
    entry_key,
    group_range,
)

GOLDEN = Path(__file__).with_name("raft.txt")
GROUP = 1
FOUNDER = Member("n1", "127.0.0.1:7721", "s-1", "127.0.0.1:7621")
GROWN = Configuration(
    (FOUNDER, Member("n2", "127.0.0.1:7722", "s-2", "127.0.0.1:7622")), (Member("n3", "127.0.0.1:7723"),)
)


def _stored() -> Iterator[tuple[str, bytes]]:
    start, end = group_range(GROUP)
    yield "group 1 begins", start
    yield "group 1 ends", end
    for kind, payload, name in (
        (KIND_NOTHING, Nothing(), "nothing"),
        (KIND_DATA, Encoded(b"payload"), "data"),
        (KIND_CONFIGURATION, GROWN, "configuration"),
    ):
        yield f"key of entry {3 + kind}", entry_key(GROUP, 3 + kind)
        yield f"entry {3 + kind} of term 2: {name}", Record(kind, payload, 3 + kind, 2).stored(GROUP)
    ((key, value),) = bootstrap_writes(GROUP, FOUNDER)
    yield "key of the hard state", key
    assert value is not None
    yield "hard state of a group that begins", value
    yield "hard state of a group of several", HardState(7, "n2", 40, 6, GROWN).write(GROUP)[1]


def _messages() -> Iterator[tuple[str, bytes]]:
    entry = Record(KIND_DATA, Encoded(b"payload"), 4, 2).stored(GROUP)
    append = pb.AppendEntries(prev_index=3, prev_term=2, commit_index=3, round=9, records=[entry])
    notice = pb.SnapshotNotice(
        snapshot_id="spool", index=40, term=6, configuration=GROWN.to_message(), size_bytes=1 << 30
    )
    request = pb.VoteRequest(term=8, last_index=41, last_term=7, is_transfer=True)
    for name, kind in (
        ("append", {"append": append}),
        ("heartbeat", {"heartbeat": pb.Heartbeat(commit_index=3, round=9)}),
        ("acknowledgement: matched", {"acknowledgement": pb.Acknowledgement(matched_index=4, round=9)}),
        (
            "acknowledgement: wanted",
            {"acknowledgement": pb.Acknowledgement(wanted_index=3, rejected_prev_index=9, round=9)},
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
    lines = ["# On the disk"]
    lines += [f"{name}\n    {raw.hex()}" for name, raw in _stored()]
    lines += ["# Between nodes"]
    lines += [f"{name}\n    {raw.hex()}" for name, raw in _messages()]
    return "\n".join(lines) + "\n"


def test_the_logs_bytes_are_the_golden_ones() -> None:
    assert render() == GOLDEN.read_text()


def _checked(key: bytes, message: Message) -> bytes:
    body = message.SerializeToString()
    checksum: int = google_crc32c.value(key + body)
    return checksum.to_bytes(CHECKSUM_BYTES, "little") + body


def test_a_newer_log_is_refused_by_its_format_before_its_entries_are_read() -> None:
    key, value = HardState(7, "n2", 40, 6, GROWN).write(GROUP)
    state = pb.HardState.FromString(value[CHECKSUM_BYTES:])
    state.format = FORMAT + 1
    stored = _checked(key, state)
    entry = entry_key(GROUP, 41)
    unknown = _checked(entry, pb.LogRecord(term=7, kind=9))
    with pytest.raises(DataLoss, match=f"format {FORMAT + 1}, this version knows {FORMAT}"):
        decode_stored(GROUP, [(entry, unknown), (key, stored)])


if __name__ == "__main__":
    sys.stdout.write(render())
