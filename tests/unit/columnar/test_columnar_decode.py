"""Reading many bodies at once: refusals, that nothing else suffers, and that nothing takes for ever."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from cortado.errors import InvalidArgument
from cortado.schema.columnar.decode import decode_rows
from cortado.schema.columnar.resolve import resolve_columns
from cortado.schema.model import Record, Schema
from cortado.schema.parse import parse_schema
from cortado.schema.varint import append_long

MIB = 1 << 20


def document(*types: Any) -> Schema:
    fields = [{"name": f"f{number}", "type": type_} for number, type_ in enumerate(types)]
    return parse_schema(json.dumps({"type": "record", "name": "R", "fields": fields}))


def long(value: int) -> bytes:
    out = bytearray()
    append_long(out, value)
    return bytes(out)


ARRAY = {"type": "array", "items": "long"}
STRINGS = {"type": "array", "items": "string"}
NULLS = {"type": "array", "items": "null"}
TREE = {"type": "record", "name": "T", "fields": [{"name": "next", "type": ["null", "T"]}]}

# (type, a good body, bad bodies)
BAD: list[tuple[Any, bytes, list[bytes]]] = [
    ("boolean", b"\x01", [b"\x02", b"", b"\x01\x00"]),
    ("int", b"\x00", [b"\x80", b"\x80\x80\x80\x80\x10", b"\xff\xff\xff\xff\xff\x01", b"\x80" * 10 + b"\x01"]),
    ("long", b"\xff" * 9 + b"\x01", [b"\xff" * 9 + b"\x02", b"\xff" * 10 + b"\x01", b"\x80" * 9]),
    ("float", b"\x00" * 4, [b"\x00" * 3, b"\x00" * 5]),
    ("double", b"\x00" * 8, [b"\x00" * 7, b""]),
    ("string", b"\x02a", [b"\x04a", b"\x01", b"\x02\xff", b"\x02\xc3", b"\x06\xed\xa0\x80", long(2**62)]),
    ("bytes", b"\x02\xff", [b"\x04a", b"\x03aa", long(2**62), long(-(2**62))]),
    ({"type": "fixed", "name": "F", "size": 3}, b"abc", [b"ab", b"abcd"]),
    ({"type": "enum", "name": "E", "symbols": ["A", "B"]}, b"\x02", [b"\x04", b"\x01"]),
    (["null", "long"], b"\x02\x02", [b"\x04\x02", b"\x01\x02", b"\x02", b"\x00\x00"]),
    (["long", "string", "null"], b"\x02\x02a", [b"\x06", b"\x02\x04a", b"\x01"]),
    (
        ARRAY,
        b"\x04\x02\x04\x00",
        [b"\x04\x02\x00", b"\x04\x02\x04", long(2**62), b"\x03\x06\x02\x02\x00", b"\x01\x01\x02\x00"],
    ),
    (
        ARRAY,
        b"\x03\x04\x02\x02\x00",
        [long(-(2**63)) + b"\x02\x00", b"\x03\x02\x02\x02\x00", b"\x02" + b"\x80" * 10 + b"\x01\x00"],
    ),
    (STRINGS, b"\x02\x02a\x00", [b"\x02\x04a\x00", b"\x02\x02\xff\x00", long(2**40), b"\x03\x06\x02a\x02b\x00"]),
    (NULLS, b"\x04\x00", [long(2**62), long(1_000_001) + b"\x00", b"\x03\x02\x00\x00", long(10**6) + b"\x02\x00"]),
    ({"type": "map", "values": "int"}, b"\x02\x02k\x02\x00", [b"\x02\x02k\x00", b"\x02\x02\xff\x02\x00", long(2**62)]),
    ({"type": "int", "logicalType": "date"}, b"\x00", [long(2_932_897), long(-719_163)]),
    ({"type": "int", "logicalType": "time-millis"}, b"\x00", [long(86_400_000), b"\x01"]),
    ({"type": "long", "logicalType": "timestamp-micros"}, b"\x00", [long(2**60), long(-(2**60))]),
    (
        {"type": "string", "logicalType": "uuid"},
        b"\x48" + b"0" * 8 + b"-0000" * 3 + b"-" + b"aF" * 6,
        [b"\x00", b"\x48" + b"0" * 36],
    ),
    (
        {"type": "bytes", "logicalType": "decimal", "precision": 2},
        b"\x02\x63",
        [b"\x02\x64", b"\x02\x9c", b"\x00", b"\x04\x01\x00"],
    ),
    (
        {"type": "bytes", "logicalType": "decimal", "precision": 20},
        b"\x12\x05" + b"\x00" * 8,
        [b"\x12\x06" + b"\x00" * 8],
    ),
    ({"type": "array", "items": TREE}, b"\x02" + b"\x02" * 61 + b"\x00\x00", [b"\x02" + b"\x02" * 62 + b"\x00\x00"]),
    (TREE, b"\x02\x02\x00", [b"\x02\x02", b"\x02" * 64 + b"\x00", b"\x04", b"\x02" * 100_000 + b"\x00"]),
]
CASES = [(type_, good, bad) for type_, good, each in BAD for bad in each]


@pytest.mark.parametrize(("type_", "good", "bad"), CASES, ids=[f"{case[0]}-{case[2][:12].hex()}" for case in CASES])
@pytest.mark.parametrize("rows", [3, 100])
def test_a_malformed_row_is_named_and_the_others_are_read(type_: Any, good: bytes, bad: bytes, rows: int) -> None:
    schema = document("int", type_)
    bodies = [b"\x0e" + good] * rows
    alone = decode_rows(schema, bodies[0], [len(bodies[0])])
    assert alone.errors == {}
    for place in (0, rows // 2, rows - 1):
        broken = [*bodies[:place], b"\x0e" + bad, *bodies[place + 1 :]]
        decoded = decode_rows(schema, b"".join(broken), list(map(len, broken)))
        assert list(decoded.errors) == [place]
        assert decoded.errors[place].row == place
        for name, column in decoded.columns.items():
            values = column.to_pylist()
            assert values.pop(place) is None
            assert values == alone.columns[name].to_pylist() * (rows - 1)


def test_an_error_says_where_and_what() -> None:
    inner = {"type": "record", "name": "I", "fields": [{"name": "tags", "type": STRINGS}]}
    schema = document("int", {"type": "array", "items": inner})
    body = b"\x00\x04" + b"\x02\x02a\x00" + b"\x04\x02b\x02\xff\x00" + b"\x00"
    error = decode_rows(schema, body, [len(body)]).errors[0]
    assert error.field == "f1[1].tags[1]"
    assert "UTF-8" in error.problem


def test_rows_without_bytes_are_refused_beside_rows_that_have_some() -> None:
    decoded = decode_rows(document("long"), b"\x02\x04", [0, 1, 0, 0, 1, 0])
    assert sorted(decoded.errors) == [0, 2, 3, 5]
    assert decoded.columns["f0"].to_pylist() == [None, 1, None, None, 2, None]


def test_documents_of_nothing_have_no_bytes() -> None:
    schema = document("null", {"type": "record", "name": "E", "fields": []})
    decoded = decode_rows(schema, b"\x00", [0, 1, 0])
    assert list(decoded.errors) == [1]
    assert decoded.columns["f1"].to_pylist() == [{}, None, {}]


def test_a_document_over_the_limit_is_refused() -> None:
    body = long(8 * MIB) + bytes(8 * MIB)
    decoded = decode_rows(document("bytes"), body + b"\x00", [len(body), 1])
    assert str(len(body)) in str(decoded.errors[0])
    assert decoded.columns["f0"].to_pylist() == [None, b""]


def test_no_rows_are_no_rows() -> None:
    decoded = decode_rows(document("long", ARRAY, ["null", "string"]), b"", [])
    assert [column.to_pylist() for column in decoded.columns.values()] == [[], [], []]


@pytest.mark.parametrize("lengths", [[1], [1, 2], [2, 3, -1], []])
def test_lengths_must_add_up(lengths: list[int]) -> None:
    with pytest.raises(InvalidArgument, match="lengths"):
        decode_rows(document("long"), b"\x02\x02\x02\x02", lengths)


def test_a_path_leads_through_records_that_may_be_null() -> None:
    city = {
        "type": "record",
        "name": "C",
        "fields": [{"name": "zip", "type": ["null", "int"]}, {"name": "n", "type": "string"}],
    }
    home = {"type": "record", "name": "H", "fields": [{"name": "city", "type": ["null", city]}]}
    schema = document("int", ["null", home])
    bodies = [b"\x00\x02\x02\x02\x0e\x02a", b"\x00\x00", b"\x00\x02\x00", b"\x00\x02\x02\x00\x02b"]
    decoded = decode_rows(schema, b"".join(bodies), list(map(len, bodies)), columns=["f1.city.zip", "f1.city.n", "f1"])
    assert decoded.columns["f1.city.zip"].to_pylist() == [7, None, None, None]
    assert decoded.columns["f1.city.n"].to_pylist() == ["a", None, None, "b"]
    assert decoded.columns["f1"].to_pylist()[1:3] == [None, {"city": None}]


@pytest.mark.parametrize("path", ["f9", "f0.x", "f1.x", "f1.city.x", ""])
def test_a_path_that_is_not_in_the_schema_is_refused(path: str) -> None:
    city = {"type": "record", "name": "C", "fields": [{"name": "zip", "type": "int"}]}
    with pytest.raises(InvalidArgument):
        decode_rows(
            document("int", {"type": "record", "name": "H", "fields": [{"name": "city", "type": city}]}),
            b"",
            [],
            columns=[path],
        )


def test_nulls_by_the_billion_take_no_memory() -> None:
    body = long(10_000) + b"\x00"
    decoded = decode_rows(document(NULLS), body * 300_000, [len(body)] * 300_000)
    assert decoded.errors == {}
    assert int(decoded.columns["f0"].offsets[-1]) == 3_000_000_000  # type: ignore[attr-defined]


def test_values_without_bytes_count_together_in_a_document() -> None:
    spare = {"type": "record", "name": "S", "fields": [{"name": name, "type": "null"} for name in "abc"]}
    padded = {"type": "record", "name": "P", "fields": [{"name": "n", "type": "null"}, {"name": "i", "type": "int"}]}
    some = long(6_000) + b"\x00"
    for type_, array in [("null", some), (spare, long(2_000) + b"\x00"), (padded, long(6_000) + bytes(6_001))]:
        for rows in (1, 40) if len(array) < 10 else (1,):
            array_type = {"type": "array", "items": type_}
            schema = document(array_type, NULLS)
            decoded = decode_rows(
                schema, (array + some + array + b"\x00") * rows, [len(array + some), len(array) + 1] * rows
            )
            assert sorted(decoded.errors) == list(range(0, 2 * rows, 2))
            assert "10000" in str(decoded.errors[0])


@pytest.mark.timeout(60)
def test_a_malformed_row_full_of_nulls_is_refused_at_once() -> None:
    body = long(10_000) + b"\x00\x02"
    decoded = decode_rows(document(NULLS, "boolean"), (body + b"\x01") * 5_000, [len(body), 1] * 5_000)
    assert len(decoded.errors) == 10_000


ITEM = MIB - 16
LARGE: list[tuple[str, Any, bytes]] = [
    ("numbers", ARRAY, long(ITEM) + b"\x02" * ITEM + b"\x00"),
    ("texts", STRINGS, long(ITEM // 2) + b"\x02a" * (ITEM // 2) + b"\x00"),
    ("nullables", {"type": "array", "items": ["null", "int"]}, long(ITEM) + bytes(ITEM) + b"\x00"),
    ("blocks", ARRAY, b"\x02\x04" * (ITEM // 2) + b"\x00"),
    ("entries", {"type": "map", "values": "int"}, long(ITEM // 3) + b"\x02a\x02" * (ITEM // 3) + b"\x00"),
    ("recursive", {"type": "array", "items": TREE}, long(ITEM) + bytes(ITEM) + b"\x00"),
]


# About half a second each; a step of numpy calls for each item would take half a minute.
@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    ("type_", "body"),
    [pytest.param(*case, id=name, marks=[pytest.mark.slow] * (name == "recursive")) for name, *case in LARGE],
)
def test_a_million_items_in_one_document_end(type_: Any, body: bytes) -> None:
    assert decode_rows(document(type_), body, [len(body)]).errors == {}


def test_columns_are_as_arrow_lays_them_out() -> None:
    schema = document("string", ["null", "double"], ARRAY)
    bodies = [
        b"\x02a\x00\x02\x02\x00",
        b"\x00\x02" + np.float64(2.5).tobytes() + b"\x00",
        b"\x04bc\x00\x04\x04\x06\x00",
    ]
    columns: Any = decode_rows(schema, b"".join(bodies), list(map(len, bodies))).columns
    assert columns["f0"].validity is None
    assert columns["f0"].offsets.tolist() == [0, 1, 1, 3]
    assert columns["f0"].offsets.dtype == np.int32
    assert columns["f0"].data.tobytes() == b"abc"
    assert columns["f1"].validity.tolist() == [False, True, False]
    assert columns["f1"].values.tolist() == [0, 2.5, 0]
    assert columns["f2"].offsets.tolist() == [0, 1, 1, 3]
    assert columns["f2"].items.values.tolist() == [1, 2, 3]


def test_columns_need_no_pyarrow() -> None:
    modules = "cortado.schema.columnar.decode, cortado.schema.columnar.encode, cortado.schema.columnar.resolve"
    program = f"import sys, {modules}; sys.exit('pyarrow' in sys.modules or 'fastavro' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_a_character_cut_in_two_is_not_mended_by_the_next_row() -> None:
    bodies = [b"\x02\xc3", b"\x02\xa9", b"\x04\xc3\xa9", b"\x00"]
    decoded = decode_rows(document("string"), b"".join(bodies), list(map(len, bodies)))
    assert sorted(decoded.errors) == [0, 1]
    assert decoded.columns["f0"].to_pylist() == [None, None, "é", ""]


def test_a_part_of_a_record_that_holds_itself_can_be_read() -> None:
    fields = [{"name": "id", "type": "int"}, {"name": "next", "type": ["null", "R"]}]
    whole = parse_schema(json.dumps({"type": "record", "name": "R", "fields": fields}))
    part = Schema(Record("R", fields=(whole.record.fields[1],)), "", "", b"")
    body = b"\x02\x02\x04\x00"
    columns = decode_rows(whole, body, [len(body)]).columns
    assert resolve_columns(columns, whole, part)["next"].to_pylist() == [{"id": 2, "next": None}]
    assert decode_rows(part, body[1:], [3]).columns["next"].to_pylist() == [{"id": 2, "next": None}]


def test_a_path_into_a_record_that_may_hold_itself_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="leads into T, which may hold itself: name f0 as a whole"):
        decode_rows(document(["null", TREE]), b"\x00", [1], columns=["f0.next"])
