"""The bytes of a log entry: replicated and stored, so a change is a new format."""

from __future__ import annotations

from pathlib import Path

import pytest

from cortado.errors import DataLoss
from cortado.proto.internal import log_pb2
from cortado.store.clock.timestamp import Timestamp
from cortado.store.keys.types import LogicalKey
from cortado.store.mvcc.drafts import Draft
from cortado.store.mvcc.evaluation import AcceptLoss, BumpEpoch, Cleared, Evaluation, RaiseCeiling, Removal
from cortado.store.mvcc.mutations import Mutations
from cortado.store.mvcc.safepoints import Safepoints
from cortado.store.mvcc.seen import NOTHING, Reads
from cortado.store.mvcc.versions import encode_versions, suffix_of
from cortado.store.replica.group_range import META_GROUP
from cortado.store.replica.write.batch import Batch
from cortado.store.replica.write.log_entry import FORMAT, LogEntry
from cortado.store.replica.write.request_table.records import Remembered, encode_remembered

GOLDEN = Path(__file__).with_name("log_entry.hex")

TS = Timestamp(1, 1_763_643_600_000, 2)
REQUEST_ID = bytes(range(20))
ENTRY = LogEntry(
    after_index=41,
    after_term=3,
    first_ts=TS,
    last_ts=Timestamp(2, 5, 0),
    items=encode_versions(
        [LogicalKey(b"ka"), LogicalKey(b"kbb"), LogicalKey(b"kc")],
        [b"one", None, b"two"],
        TS,
        {LogicalKey(b"kc"): 1_763_643_660_000},
    ),
    results=[(REQUEST_ID, encode_remembered(META_GROUP.segment + REQUEST_ID, Remembered(b"\xaa" * 16, TS, b"reply")))],
    request_floor=bytes(19) + b"\x07",
    controls=[
        BumpEpoch(2),
        RaiseCeiling(Timestamp(1, 255, 0)),
        AcceptLoss(b"kc" + bytes(12), True),
        AcceptLoss(b"kd" + bytes(12), False),
    ],
    reads=Reads((b"ka", b"kc"), (suffix_of(Timestamp(1, 7, 0)), NOTHING), [(b"ka", b"kd")], Timestamp(1, 6, 0)),
    removal=Removal(
        (b"ka" + bytes(12), b"kb" + bytes(12)),
        [Cleared(b"t\x01", b"t\x02", 4_000)],
        Safepoints(Timestamp(1, 6, 0), {0x10002: Timestamp(1, 5, 0), 0x10003: Timestamp(0, 0, 0)}),
    ),
)


def test_a_log_entry_has_these_bytes() -> None:
    assert ENTRY.encode().hex(" ", 16).split() == GOLDEN.read_text().split()
    assert LogEntry.decode(bytes.fromhex(GOLDEN.read_text())) == ENTRY


def test_an_entry_without_anything_optional_comes_back() -> None:
    entry = LogEntry(2, 1, TS, TS)
    assert LogEntry.decode(entry.encode()) == LogEntry(2, 1, TS, TS)


def test_safepoints_have_these_bytes() -> None:
    safepoints = Safepoints(Timestamp(1, 2, 3), {7: Timestamp(0, 1, 0), 2: Timestamp(0, 0, 0)})
    encoded = safepoints.encode()
    assert encoded.hex() == ("0001000000000002000000030000000200000000000000000000000000000007000000000000000100000000")
    assert Safepoints.decode(encoded) == safepoints
    assert Safepoints.decode(bytes(12)) == Safepoints()
    for wrong in (b"", encoded[:-1], encoded + b"\0"):
        with pytest.raises(DataLoss, match="the safepoints"):
            Safepoints.decode(wrong)


def test_an_entry_of_one_command_that_was_drafted_has_the_bytes_that_it_has_else() -> None:
    mutations = Mutations([LogicalKey(b"kbb"), LogicalKey(b"ka")], [None, b"one"])
    of_items, of_draft = Batch(META_GROUP.segment), Batch(META_GROUP.segment)
    of_items.add(TS, Evaluation(mutations, None), 10)
    of_draft.add(TS, Evaluation(Draft(mutations), None), 10)
    assert of_draft.entry(41, 3).drafted is not None
    assert of_draft.entry(41, 3).encode() == of_items.entry(41, 3).encode()
    assert of_draft.entry(41, 3) == of_items.entry(41, 3)


def test_an_unknown_format_is_refused() -> None:
    message = log_pb2.LogEntry.FromString(ENTRY.encode())
    message.format = FORMAT + 1
    with pytest.raises(DataLoss, match=f"format {FORMAT + 1} is unknown"):
        LogEntry.decode(message.SerializeToString())


def test_bytes_that_are_no_entry_are_data_loss() -> None:
    with pytest.raises(DataLoss):
        LogEntry.decode(b"\xff\xff\xff")


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("keys", b"short"),
        ("key_lengths", b"\x00\x00\x00"),
        ("values", b""),
        ("value_lengths", b"\x00\x00\x00\x00"),
        ("request_ids", bytes(19)),
        ("results", b""),
        ("request_ids", b""),
        ("first_timestamp", bytes(11)),
        ("last_timestamp", b""),
        ("request_floor", bytes(12)),
        ("read_keys", b"short"),
        ("read_versions", bytes(23)),
        ("read_versions", b""),
        ("read_ranges", b"x"),
    ],
)
def test_a_field_that_does_not_fit_the_others_is_data_loss(field: str, value: bytes) -> None:
    message = log_pb2.LogEntry.FromString(ENTRY.encode())
    setattr(message, field, value)
    with pytest.raises(DataLoss, match="a log entry"):
        LogEntry.decode(message.SerializeToString())


@pytest.mark.parametrize(
    "control", [log_pb2.Control(), log_pb2.Control(raise_ceiling=log_pb2.RaiseCeiling(timestamp=bytes(13)))]
)
def test_a_control_that_is_none_is_data_loss(control: log_pb2.Control) -> None:
    message = log_pb2.LogEntry.FromString(ENTRY.encode())
    message.controls.append(control)
    with pytest.raises(DataLoss, match="a log entry"):
        LogEntry.decode(message.SerializeToString())
