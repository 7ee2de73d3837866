"""The catalogue's bytes on disk. A change here is a change of format: see docs/formats/catalog.md."""

from __future__ import annotations

import re
from pathlib import Path

from cortado.schema.compatibility import CompatibilityMode
from cortado.store.catalog import declare, dropped, registry, stored
from cortado.store.catalog.descriptors import (
    DatabaseDescriptor,
    Drop,
    DropKind,
    Dropped,
    IndexDescriptor,
    RegisteredSchema,
    SubjectState,
    SubjectVersion,
    TableDescriptor,
)
from cortado.store.catalog.stored import Counters
from cortado.store.clock.retentions import KEEP_ALL
from cortado.store.clock.timestamp import Timestamp
from cortado.store.keys.keyspace import NUMBER_MAX
from cortado.store.keys.types import KeyPart, KeyType, LogicalKey

TABLE = TableDescriptor(
    table_id=0x10007,
    database="air",
    name="flights",
    subject="air.flights",
    key=(KeyPart("time_hour", KeyType.TIMESTAMP), KeyPart("flight", KeyType.INT64, descending=True)),
    indexes=(IndexDescriptor(1, "by_tail", (KeyPart("tailnum", KeyType.STRING),), unique=True),),
    version=3,
    next_index_id=2,
    retention_ms=KEEP_ALL,
    named_ts=Timestamp(1, 2, 3),
)
DROPPED = Dropped(
    7,
    Drop(DropKind.INDEX, "air.flights.by_tail", 0x10007, 5_000, ((LogicalKey(b"a"), LogicalKey(b"b")),), b"x"),
    Timestamp(1, 2, 3),
    dropped_with=6,
    is_clearing=True,
)
VERSIONS = (SubjectVersion(1, 1, deleted=True), SubjectVersion(3, 300))
SUBJECT = SubjectState("air.flights", CompatibilityMode.BACKWARD_TRANSITIVE, VERSIONS, next_version=4)
SCHEMA = RegisteredSchema(300, '"x"', bytes(range(4)))
DATABASE = DatabaseDescriptor("air", 1, next_table_number=8)


def test_keys() -> None:
    assert stored.COUNTERS_KEY == b"m" + b"\x30catalog\x00\x01" + b"\x01"
    assert stored.database_key("air") == b"m" + b"\x30database\x00\x01" + b"\x30air\x00\x01" + b"\x01"
    assert (
        stored.table_key("air", "flights")
        == b"m" + b"\x30table\x00\x01" + b"\x30air\x00\x01" + b"\x30flights\x00\x01" + b"\x01"
    )
    assert stored.schema_key(300) == b"m" + b"\x30schema\x00\x01" + b"\x14\x80\x00\x00\x00\x00\x00\x01\x2c" + b"\x01"
    assert stored.COMPATIBILITY_KEY == b"m" + b"\x30compatibility\x00\x01" + b"\x01"
    assert stored.schema_id_key(bytes(range(4))) == b"m" + b"\x30schema-id\x00\x01" + b"\x3000010203\x00\x01" + b"\x01"
    assert stored.deleted_subject_key("a") == b"m" + b"\x30deleted-subject\x00\x01" + b"\x30a\x00\x01" + b"\x01"
    assert stored.dropped_key(7) == b"m" + b"\x30dropped\x00\x01" + b"\x14\x80\x00\x00\x00\x00\x00\x00\x07" + b"\x01"
    assert stored.subject_key("air.flights") == b"m" + b"\x30subject\x00\x01" + b"\x30air.flights\x00\x01" + b"\x01"


def test_values() -> None:
    assert stored.encode_counters(Counters(8, 301, 9, 5)).hex() == "080810ad0218092005"
    assert stored.encode_database(DATABASE).hex() == "0a03" + b"air".hex() + "1001" + "1808"
    deleted, live = "1a06" + "0801" + "1001" + "1801", "1a05" + "0803" + "10ac02"
    assert stored.encode_subject(SUBJECT).hex() == (
        "0a0b" + b"air.flights".hex() + "1213" + b"BACKWARD_TRANSITIVE".hex() + deleted + live + "2004"
    )
    assert stored.encode_schema(SCHEMA).hex() == "08ac02" + "1203" + b'"x"'.hex() + "1a04" + "00010203"
    assert stored.encode_schema_id(300).hex() == "08ac02"
    assert stored.encode_compatibility(CompatibilityMode.FULL).hex() == "0a04" + b"FULL".hex()
    time_hour = "0a09" + b"time_hour".hex() + "1209" + b"timestamp".hex()
    flight = "0a06" + b"flight".hex() + "1205" + b"int64".hex() + "1801"
    tailnum = "0a07" + b"tailnum".hex() + "1206" + b"string".hex()
    by_tail = "0801" + "1207" + b"by_tail".hex() + "1a11" + tailnum + "2001"
    assert stored.encode_table(TABLE).hex() == (
        "08878004" + "1203" + b"air".hex() + "1a07" + b"flights".hex() + "220b" + b"air.flights".hex()
        + "2a16" + time_hour + "2a11" + flight + "3220" + by_tail + "3803" + "4002" + "48" + "ff" * 9 + "01"
        + "520c" + "0001000000000002" + "00000003"
    )  # fmt: skip
    assert stored.encode_dropped(DROPPED).hex() == (
        "0807" + "1205" + b"index".hex() + "1a13" + b"air.flights.by_tail".hex() + "220c" + "0001000000000002"
        + "00000003" + "288827" + "30878004" + "3a06" + "0a0161" + "120162" + "420178" + "4806" + "5001"
    )  # fmt: skip


def test_values_come_back_as_they_were() -> None:
    assert stored.decode_table(stored.encode_table(TABLE)) == TABLE
    assert stored.decode_subject(stored.encode_subject(SUBJECT)) == SUBJECT
    assert stored.decode_schema(stored.encode_schema(SCHEMA)) == SCHEMA
    assert stored.decode_subject(stored.encode_subject(SubjectState("a"))) == SubjectState("a")
    assert stored.decode_schema_id(stored.encode_schema_id(300)) == 300
    assert stored.decode_database(stored.encode_database(DATABASE)) == DATABASE
    for mode in CompatibilityMode:
        assert stored.decode_compatibility(stored.encode_compatibility(mode)) is mode
    assert stored.decode_counters(stored.encode_counters(Counters(8, 301, 9, 5))) == Counters(8, 301, 9, 5)
    assert stored.decode_dropped(stored.encode_dropped(DROPPED)) == DROPPED


def test_an_absent_counter_begins_at_one() -> None:
    assert Counters() == Counters(next_database_number=1, next_schema_id=1, next_dropped_number=1, dropped=0)
    assert DatabaseDescriptor("air", 1) == DatabaseDescriptor("air", 1, next_table_number=1)
    assert SubjectState("a") == SubjectState("a", next_version=1)


def test_the_format_s_page_states_the_limits_in_force() -> None:
    page = (Path(__file__).parents[3] / "docs" / "formats" / "catalog.md").read_text()
    limits = dict(re.findall(r"^\| ([a-z' ]+) \| ([0-9,]+) \|$", page, re.MULTILINE))
    assert {name: int(number.replace(",", "")) for name, number in limits.items()} == {
        "databases": declare.DATABASES_MAX,
        "tables": declare.TABLES_MAX,
        "databases ever": NUMBER_MAX,
        "tables of a database ever": NUMBER_MAX,
        "dropped things whose grace is not over": dropped.DROPPED_MAX,
        "tables with a retention of their own": declare.RETENTIONS_MAX,
        "parts of a key or an index": declare.PARTS_MAX,
        "indexes of a table": declare.INDEXES_MAX,
        "characters of a part's path": declare.PATH_LENGTH_MAX,
        "subjects": registry.SUBJECTS_MAX,
        "versions of a subject": registry.VERSIONS_MAX,
    }
