"""The bytes of a node's own records: a change here is a new format of the data directory."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import google_crc32c
import pytest

from cortado.errors import DataLoss
from cortado.store.clock.timestamp import Timestamp
from cortado.store.replica.apply.applied_state import AppliedState
from cortado.store.replica.group_range import META_GROUP
from cortado.store.replica.write.request_table.records import Remembered, decode_remembered, encode_remembered

STATE_GOLDEN = Path(__file__).with_name("applied_state.hex")
REQUEST_GOLDEN = Path(__file__).with_name("remembered_request.hex")

STATE = AppliedState(
    index=42,
    term=3,
    last_ts=Timestamp(1, 1_763_643_600_000, 2),
    ceiling=Timestamp(1, 1_763_643_600_250, 0),
    epoch_began=Timestamp(1, 1_763_643_500_000, 0),
    request_floor=bytes(Timestamp(0, 1_763_643_400_000, 1)) + bytes(range(8)),
    requests=7,
    request_bytes=700,
    expires_to_ms=1_763_643_660_000,
    changed_ts=Timestamp(1, 1_763_643_600_000, 1),
    roles_on=True,
)
REQUEST_ID = bytes(range(20))
REMEMBERED = Remembered(b"\xaa" * 16, Timestamp(0, 1_763_643_600_000, 2), b"reply")


def test_the_applied_state_has_these_bytes() -> None:
    assert STATE.encode().hex(" ", 16).split() == STATE_GOLDEN.read_text().split()
    assert AppliedState.decode(bytes.fromhex(STATE_GOLDEN.read_text())) == STATE


def test_a_remembered_request_has_these_bytes() -> None:
    key = META_GROUP.segment + REQUEST_ID
    assert encode_remembered(key, REMEMBERED).hex(" ", 16).split() == REQUEST_GOLDEN.read_text().split()
    assert decode_remembered(key, bytes.fromhex(REQUEST_GOLDEN.read_text())) == REMEMBERED


@pytest.mark.parametrize("place", [0, 1, 40, 80])
def test_a_flipped_byte_of_the_state_is_data_loss(place: int) -> None:
    record = bytearray(STATE.encode())
    record[place] ^= 1
    with pytest.raises(DataLoss, match="the node's state"):
        AppliedState.decode(bytes(record))


def test_a_cut_state_is_data_loss() -> None:
    with pytest.raises(DataLoss):
        AppliedState.decode(STATE.encode()[:-1])
    with pytest.raises(DataLoss):
        AppliedState.decode(b"")


def test_another_format_of_the_state_is_refused_by_its_number() -> None:
    older = _sealed(bytes([5]) + STATE.encode()[1:-29])
    with pytest.raises(DataLoss, match="format 5 is unknown, this version reads 6"):
        AppliedState.decode(older)


@pytest.mark.parametrize("place", [110, 121, 122, 133])
def test_what_is_reserved_in_the_state_is_refused_where_it_is_used(place: int) -> None:
    record = bytearray(STATE.encode()[:-4])
    record[place] = 1
    with pytest.raises(DataLoss, match="a newer version wrote a safepoint or a resolved timestamp"):
        AppliedState.decode(_sealed(bytes(record)))


def _sealed(record: bytes) -> bytes:
    return record + google_crc32c.value(record).to_bytes(4, "little")


def test_states_differ_in_their_bytes() -> None:
    assert replace(STATE, requests=8).encode() != STATE.encode()
