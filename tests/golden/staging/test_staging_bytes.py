"""The bytes of large transactions on disk. A change here is a change of format: see docs/formats/staging.md."""

from __future__ import annotations

from dataclasses import replace

from cortado.store.clock.timestamp import Timestamp
from cortado.store.keys.keyspace import key_of_staged, row_key, staged_key
from cortado.store.keys.types import KeyPart, KeyType
from cortado.store.mvcc.staged import Staged
from cortado.store.staging.records import (
    UNRESOLVED_KEY,
    LargeState,
    Record,
    StagedTable,
    application_key,
    decode_record,
    record_key,
)
from cortado.store.staging.stage import attempt_of

ID = bytes(range(16))
NAME = b"000102030405060708090a0b0c0d0e0f"


def test_keys() -> None:
    assert record_key(ID) == b"m" + b"\x30txn\x00\x01" + b"\x30" + NAME + b"\x00\x01" + b"\x01"
    assert UNRESOLVED_KEY == b"m" + b"\x30txns\x00\x01" + b"\x01"
    row = row_key(0x10002, [KeyPart("id", KeyType.INT64)], [7])
    assert staged_key(row) == b"s" + row[1:] == b"s\x00\x01\x00\x02r\x14\x80\x00\x00\x00\x00\x00\x00\x07"
    assert key_of_staged(staged_key(row)) == row


def test_records() -> None:
    table = StagedTable(0x10002, "d", "t", (1, 2))
    start, committed = Timestamp(1, 2, 3), Timestamp(1, 4, 0)
    record = Record(
        ID, start, (table,), "a job", LargeState.COMMITTED, committed, (0, 4097), application="s", owner="q"
    )
    encoded = record.encode()
    expected = "0801" + "120c" + "0001000000000002" + "00000003" + "1a05" + b"a job".hex()
    expected += "220e" + "08828004" + "120164" + "1a0174" + "22020102"
    expected += "2a0c" + "0001000000000004" + "00000000" + "3203" + "00" + "8120"
    expected += "4a01" + b"s".hex() + "5201" + b"q".hex()
    assert encoded.hex() == expected
    assert decode_record(record_key(ID), encoded) == record
    owned = replace(record, principal="etl")
    assert owned.encode().hex() == expected + "5a03" + b"etl".hex()
    assert decode_record(record_key(ID), owned.encode()) == owned


def test_keys_of_applications() -> None:
    assert application_key("", "copy") == b"m" + b"\x30app\x00\x01" + b"\x30copy\x00\x01" + b"\x01"
    expected = b"m" + b"\x30app\x00\x01" + b"\x30etl\x00\x01" + b"\x30copy\x00\x01" + b"\x01"
    assert application_key("etl", "copy") == expected


def test_staged_values() -> None:
    value = Staged(ID, {attempt_of(1, 1): b"Pxy", attempt_of(2, 0): b"D"})
    expected = ID.hex() + "01100000" + "03000000" + b"Pxy".hex() + "00200000" + "01000000" + b"D".hex()
    assert value.encode().hex() == expected
    assert Staged.decode(staged_key(row_key(1, [KeyPart("id", KeyType.INT64)], [7])), value.encode()) == value
