"""CSV: its cells, its null, and the name of each mistake."""

from __future__ import annotations

import gzip
import io
import json
import tracemalloc
from datetime import UTC, date, datetime
from typing import Any, BinaryIO, cast

import pytest

from cortado.errors import InvalidArgument, InvalidDocument
from cortado.schema.documents import decode_document
from cortado.schema.parse import parse_document_schema
from cortado.schema.text_format import from_texts
from cortado.store.transfer import csv_source
from cortado.store.transfer.csv_source import csv_chunks
from cortado.store.transfer.csv_text import cells_of, line_of
from cortado.store.transfer.formats import Format, encoding_to_write, format_to_read, null_text_of
from cortado.store.transfer.pairs import pair_target
from cortado.store.transfer.rows import BadRow, Target

SCHEMA = parse_document_schema(
    json.dumps(
        {
            "type": "record",
            "name": "Airline",
            "fields": [
                {"name": "carrier", "type": "string"},
                {"name": "name", "type": ["null", "string"], "default": None},
                {"name": "fleet", "type": "int", "default": 0},
                {"name": "hubs", "type": {"type": "array", "items": "string"}, "default": []},
            ],
        }
    )
)
TARGET = Target("flights.airlines", 3, SCHEMA, {})


def read(text: str | bytes, *, null_text: str = "", skipped: int = 0) -> tuple[list[dict[str, Any]], list[BadRow]]:
    """Return the rows of a file, and those that are bad."""
    file = cast(BinaryIO, io.BytesIO(text if isinstance(text, bytes) else text.encode()))
    chunks = list(csv_chunks(file, "a.csv", TARGET, skipped, null_text=null_text))
    rows = [decode_document(SCHEMA, body) for chunk in chunks for body in chunk.bodies()]
    return rows, [bad for chunk in chunks for bad in chunk.refused]


def names(text: str, **options: Any) -> list[str | None]:
    rows, bad = read(text, **options)
    assert bad == []
    return [row["name"] for row in rows]


# --- contents of a file --------------------------------------------------------------------------------------------


def test_fields_are_found_by_the_header_and_those_that_lack_take_their_defaults() -> None:
    rows, bad = read('fleet,carrier\n900,AA\n7,"B,6"\n')
    assert bad == []
    assert rows == [
        {"carrier": "AA", "name": None, "fleet": 900, "hubs": []},
        {"carrier": "B,6", "name": None, "fleet": 7, "hubs": []},
    ]


def test_an_empty_cell_is_null_and_an_empty_text_is_not() -> None:
    assert names('carrier,name\nA,\nB,""\nC,NULL\n') == [None, "", "NULL"]
    assert names('carrier,name\nA,\nB,NULL\nC,"NULL"\n', null_text="NULL") == ["", None, "NULL"]


def test_where_a_field_cannot_be_null_the_null_text_is_a_text() -> None:
    rows, bad = read("carrier,fleet\n,1\nA,\n")
    assert [row["carrier"] for row in rows] == [""]
    assert [(each.place, each.error.message()) for each in bad] == [
        (3, "fleet: must fit the type int, such as 12 (got '')")
    ]
    assert read("carrier\nNULL\n", null_text="NULL")[0][0]["carrier"] == "NULL"


def test_a_record_may_have_several_lines_and_its_place_is_its_first() -> None:
    rows, bad = read('carrier,name,fleet\nA,"one\n\ntwo",1\r\n\n \nB,"x\ny",z\nC,c,2\n')
    assert [(row["carrier"], row["name"]) for row in rows] == [("A", "one\n\ntwo"), ("C", "c")]
    assert [each.place for each in bad] == [7]


def test_nested_fields_are_json() -> None:
    assert read('carrier,hubs\nA,"[""DFW"", ""ORD""]"\nB,[]\n')[0][0]["hubs"] == ["DFW", "ORD"]


def test_a_mark_before_utf_8_a_last_line_without_an_end_and_gzip_are_read() -> None:
    assert read(b"\xef\xbb\xbfcarrier\nA")[0][0]["carrier"] == "A"
    assert read(gzip.compress(b"carrier\nA\n"))[0][0]["carrier"] == "A"


def test_of_a_single_column_that_may_be_null_an_empty_line_is_a_row() -> None:
    schema = _schema(["null", "string"])
    target = Target("a.b", 1, schema, {})
    chunks = list(csv_chunks(cast(BinaryIO, io.BytesIO(b'a\n\nA\n""\n')), "a.csv", target))
    assert [decode_document(schema, body)["a"] for chunk in chunks for body in chunk.bodies()] == [None, "A", ""]


def test_a_file_goes_on_behind_a_line() -> None:
    text = 'carrier,name\nA,a\nB,"b\nb"\nC,c\n'
    assert [row["carrier"] for row in read(text, skipped=2)[0]] == ["B", "C"]
    assert [row["carrier"] for row in read(text, skipped=3)[0]] == ["C"]


@pytest.mark.parametrize(
    ("declared", "text", "value"),
    [
        ("boolean", "TRUE", True),
        ("long", "-9223372036854775808", -(2**63)),
        ("double", "1e3", 1000.0),
        ("double", ".5", 0.5),
        ("double", "-inf", float("-inf")),
        ("string", " 5 ", " 5 "),
        ("bytes", "AP8=", b"\x00\xff"),
        ({"type": "int", "logicalType": "date"}, "2013-01-31", date(2013, 1, 31)),
        (
            {"type": "long", "logicalType": "timestamp-micros"},
            "2013-01-31 12:00:00.5+01:00",
            datetime(2013, 1, 31, 11, 0, 0, 500_000, UTC),
        ),
        ({"type": "long", "logicalType": "local-timestamp-micros"}, "2013-01-31 12:00", datetime(2013, 1, 31, 12)),
        ({"type": "map", "values": "int"}, '{"a": 1}', {"a": 1}),
    ],
)
def test_a_text_is_read_by_the_type_of_its_field(declared: Any, text: str, value: Any) -> None:
    for type_ in (declared, ["null", declared]):
        assert from_texts(_schema(type_), {"a": text}) == {"a": value}


# --- errors --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("declared", "text", "message"),
    [
        ("boolean", "yes", "a: must fit the type boolean, such as true (got 'yes')"),
        ("int", "1.0", "a: must fit the type int, such as 12 (got '1.0')"),
        ("int", " 1", "a: must fit the type int, such as 12 (got ' 1')"),
        ("long", "1_000", "a: must fit the type long"),
        ("double", "1,5", "a: must fit the type double, such as 12.5 (got '1,5')"),
        ("double", "1e400", "a: must fit the type double"),
        ("bytes", "abc", "a: must fit the type bytes, such as AP8=, which is base64"),
        (
            {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2},
            "1e3",
            "a: must fit the type bytes (decimal 4,2), such as 12.50 (got '1e3')",
        ),
        ({"type": "int", "logicalType": "date"}, "31.1.2013", "a: must fit the type int (date), such as 2013-01-31"),
        (
            {"type": "long", "logicalType": "timestamp-millis"},
            "2018-02-14T00:28:07+01:60",
            "timestamp-millis), such as",
        ),
        ({"type": "long", "logicalType": "timestamp-millis"}, "2018-02-14T00:28:07", "timestamp-millis), such as"),
        (
            {"type": "int", "logicalType": "date"},
            "2021-02-29",
            "such as 2013-01-31: day is out of range for month (got '2021-02-29')",
        ),
        (
            {"type": "long", "logicalType": "timestamp-micros"},
            "2016-12-31T23:59:60Z",
            "such as 2013-01-31T23:59:59.5Z: hours must be 00 to 23, minutes and seconds 00 to 59",
        ),
        ({"type": "array", "items": "int"}, "1;2", "a: must fit the type array of int, as JSON: must be JSON"),
        ({"type": "array", "items": "int"}, '[1, "2"]', 'a[1]: must be an integer (got "2")'),
    ],
)
def test_a_text_that_does_not_fit_is_named_with_field_type_and_value(declared: Any, text: str, message: str) -> None:
    with pytest.raises(InvalidDocument) as refused:
        from_texts(_schema(declared), {"a": text})
    assert message in str(refused.value)


def test_a_field_behind_a_byte_order_mark_is_refused_by_the_encoding_that_takes_it_off() -> None:
    with pytest.raises(InvalidDocument, match="a byte order mark: open the file with the encoding utf-8-sig"):
        from_texts(SCHEMA, {"\ufeffcarrier": "KL"})


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ("A,a", "line: must have 3 cells, as the header has (got 2 cells)"),
        ("A,a,1,2", "line: must have 3 cells, as the header has (got 4 cells)"),
        ('A,"a",1,"2\n2",x', "line: must have 3 cells, as the header has (got 5 cells)"),
        ('A,a"b,1', "line: must be CSV: '\"' at column 4 does not belong there"),
        ('A,"a"b,1', "line: must be CSV: 'b' at column 6 does not belong there"),
        ("A,a\rb,1", "line: must be CSV: '\\r' at column 4 does not belong there"),
        ("A,a,x", "fleet: must fit the type int, such as 12 (got 'x')"),
        ("A,a,3000000000", "fleet: "),
    ],
)
def test_a_bad_record_is_named_by_its_line_and_the_others_are_read(record: str, message: str) -> None:
    rows, bad = read(f"carrier,name,fleet\nB,b,1\n{record}\nC,c,2\n")
    assert [row["carrier"] for row in rows] == ["B", "C"]
    assert [each.place for each in bad] == [3]
    assert bad[0].error.message().startswith(message)


def test_bytes_that_are_no_text_are_one_bad_row() -> None:
    rows, bad = read(b"carrier\nA\n\xff\nB\n")
    assert len(rows) == 2
    assert [(each.place, "must be UTF-8" in each.error.message()) for each in bad] == [(3, True)]


def test_a_bad_row_is_kept_as_json_to_be_mended() -> None:
    _, bad = read('carrier,name,fleet,hubs\nA,,x,"[""DFW""]"\n')
    assert bad[0].text is not None
    assert json.loads(bad[0].text) == {"carrier": "A", "name": None, "fleet": "x", "hubs": ["DFW"]}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "has no header"),
        ("\n\n", "has no header"),
        ("carrier,nam\nA,a\n", "no field of flights.airlines in column 2; there are carrier, name, fleet, hubs"),
        ("carrier;name\nA;a\n", "commas stand between columns (found 'carrier;name')"),
        ("carrier,carrier\n", "has the field carrier twice"),
        ("name\n", "lacks the field carrier, which has no default"),
        ('carrier,"na"me\n', "its header cannot be read: line: must be CSV: 'm' at column 13"),
        ('carrier,name\nA,"a\nB,b\n', "has a quoted text without an end in the record that begins in line 2"),
    ],
)
def test_a_wrong_header_and_a_text_without_an_end_end_the_file(text: str, message: str) -> None:
    with pytest.raises(InvalidArgument) as refused:
        read(text)
    assert message in str(refused.value)


def test_a_record_has_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csv_source, "LINE_BYTES_MAX", 100)
    with pytest.raises(InvalidArgument, match="a quoted text without an end"):
        read('carrier,name\nA,"' + "a\n" * 100 + '"\n')


# --- around it -----------------------------------------------------------------------------------------------------


def test_pairs_are_columns_of_their_text() -> None:
    file = cast(BinaryIO, io.BytesIO(b'value,key\n"\\x00,",a\n,b\n'))
    (chunk,) = csv_chunks(file, "p.csv", pair_target("n"))
    assert chunk.refused == []
    assert list(chunk.bodies()) == [b"\x02a\x04\x00,", b"\x02b\x00"]


def test_a_file_is_csv_by_its_suffix_and_null_is_for_csv_alone() -> None:
    assert format_to_read(None, "a.csv.gz") is Format.CSV
    assert encoding_to_write(None, None, "a.csv", Format.JSONL, "NULL").null_text == "NULL"
    assert encoding_to_write(None, None, "a.csv.gz", Format.JSONL).suffix == ".csv.gz"
    with pytest.raises(InvalidArgument, match="--null: is for CSV alone"):
        encoding_to_write(None, None, "a.jsonl", Format.JSONL, "NULL")
    for text in (",", '"', "\n", "x" * 101):
        with pytest.raises(InvalidArgument, match="--null: must have at most 100 characters"):
            null_text_of(text, [Format.CSV])


def _schema(declared: Any) -> Any:
    fields = [{"name": "a", "type": declared}]
    return parse_document_schema(json.dumps({"type": "record", "name": "R", "fields": fields}))


@pytest.mark.parametrize("null_text", ["", "NULL"])
def test_blank_lines_are_no_rows_of_a_single_column_that_cannot_be_null(null_text: str) -> None:
    schema = _schema("string")
    written = "\n".join(line_of([text], null_text) for text in ("", " ", "x"))
    file = cast(BinaryIO, io.BytesIO(f"a\n\n{written}\n\r\n\n".encode()))
    chunks = list(csv_chunks(file, "a.csv", Target("a.b", 1, schema, {}), null_text=null_text))
    assert [decode_document(schema, body)["a"] for chunk in chunks for body in chunk.bodies()] == ["", " ", "x"]


def test_doubled_quotes_take_no_more_than_some_times_the_bytes_of_their_text() -> None:
    line = '"' + '""' * 100_000 + '",1\n'
    tracemalloc.start()
    try:
        assert cells_of(line, lambda: "", "", 2) == ['"' * 100_000, "1"]
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 5 * len(line)
