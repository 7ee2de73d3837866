"""The table of types: each Avro type is read as its Spark type, and written back as the same document.

One table has a column for every row of the table of types; it is read once and copied once, in a session whose time
zone is not UTC, and each test looks at its column.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as sql

from cortado import Client
from cortado.schema.values import Duration
from support.spark_tables import SparkTables

pytestmark = pytest.mark.spark


@dataclass(frozen=True)
class Kind:
    """An Avro type, its Spark type, and values: as in documents, and as in Arrow where those differ."""

    avro: Any
    spark: str
    documents: tuple[Any, ...]
    arrow: tuple[Any, ...] | None = None


def _logical(base: str, name: str, **more: int) -> dict[str, Any]:
    return {"type": base, "logicalType": name, **more}


def _fixed(name: str, size: int, **more: Any) -> dict[str, Any]:
    return {"type": "fixed", "name": name, "size": size, **more}


INNER = {
    "type": "record",
    "name": "Inner",
    "fields": [{"name": "x", "type": "int"}, {"name": "note", "type": ["null", "string"]}],
}
UNCHECKED = UUID("12345678-9abc-def0-1234-56789abcdef0")
BCE = datetime(1, 1, 1, 12, 30, tzinfo=UTC)
LAST = datetime(9999, 12, 31, 23, 59, 59, 999_000, tzinfo=UTC)
SUMMER = datetime(2024, 7, 1, 4, 30, 1, 500_000, tzinfo=UTC)

KINDS = {
    "null": Kind("null", "void", (None,)),
    "boolean": Kind("boolean", "boolean", (True, False)),
    "int": Kind("int", "int", (0, -(2**31), 2**31 - 1)),
    "long": Kind("long", "bigint", (0, -(2**63), 2**63 - 1)),
    "float": Kind("float", "float", (0.0, 1.5, -math.inf)),
    "double": Kind("double", "double", (0.1, -1e300, math.inf)),
    "bytes": Kind("bytes", "binary", (b"", b"\x00\xff", b"abc" * 20)),
    "string": Kind("string", "string", ("", "Zoë \N{ROCKET}", "a\x00b")),
    "fixed": Kind(_fixed("Four", 4), "binary", (b"abcd", b"\x00\x01\x02\xff")),
    "enum": Kind({"type": "enum", "name": "Suit", "symbols": ["HEARTS", "SPADES"]}, "string", ("SPADES", "HEARTS")),
    "nullable": Kind(["null", "long"], "bigint", (5, None, -5)),
    "nullable, null second": Kind(["string", "null"], "string", ("a", None, "")),
    "array": Kind({"type": "array", "items": "int"}, "array<int>", ([], [1], [3, 2, 1])),
    "array of nullables": Kind(
        {"type": "array", "items": ["null", "string"]}, "array<string>", ([None, "a"], [], ["b"])
    ),
    "array of arrays": Kind(
        {"type": "array", "items": {"type": "array", "items": "double"}}, "array<array<double>>", ([[0.5], []], [])
    ),
    "map": Kind(
        {"type": "map", "values": "long"}, "map<string,bigint>", ({"a": 1, "b": 2}, {}), ([("a", 1), ("b", 2)], [])
    ),
    "map of nullables": Kind(
        {"type": "map", "values": ["null", "int"]}, "map<string,int>", ({"a": None},), ([("a", None)],)
    ),
    "record": Kind(INNER, "struct<x:int,note:string>", ({"x": 1, "note": None}, {"x": 2, "note": "n"})),
    "nullable record": Kind(["null", "Inner"], "struct<x:int,note:string>", (None, {"x": 2, "note": "n"})),
    "array of records": Kind(
        {"type": "array", "items": "Inner"}, "array<struct<x:int,note:string>>", ([{"x": 1, "note": None}], [])
    ),
    "union": Kind(
        ["long", "string", "null"],
        "struct<member0:bigint,member1:string>",
        (1, "a", None),
        ({"member0": 1, "member1": None}, {"member0": None, "member1": "a"}, None),
    ),
    "union without null": Kind(
        ["boolean", {"type": "array", "items": "int"}],
        "struct<member0:boolean,member1:array<int>>",
        (True, [1, 2]),
        ({"member0": True, "member1": None}, {"member0": None, "member1": [1, 2]}),
    ),
    "decimal in bytes": Kind(
        _logical("bytes", "decimal", precision=9, scale=2), "decimal(9,2)", (Decimal("1234567.89"), Decimal("-0.01"))
    ),
    "decimal of 38 digits": Kind(
        _logical("bytes", "decimal", precision=38, scale=10),
        "decimal(38,10)",
        (Decimal("-9999999999999999999999999999.9999999999"), Decimal("0E-10")),
    ),
    "decimal in fixed": Kind(
        _fixed("Money", 8, logicalType="decimal", precision=18, scale=4),
        "decimal(18,4)",
        (Decimal("99999999999999.9999"), Decimal("-1.0000")),
    ),
    "uuid": Kind(_logical("string", "uuid"), "string", (UNCHECKED,), (str(UNCHECKED),)),
    "uuid in fixed": Kind(_fixed("Id", 16, logicalType="uuid"), "string", (UNCHECKED,), (str(UNCHECKED),)),
    "date": Kind(_logical("int", "date"), "date", (date(1, 1, 1), date(1969, 12, 31), date(9999, 12, 31))),
    "time-millis": Kind(
        _logical("int", "time-millis"), "bigint", (time(0), time(23, 59, 59, 999_000)), (0, 86_399_999_000)
    ),
    "time-micros": Kind(
        _logical("long", "time-micros"), "bigint", (time(0), time(23, 59, 59, 999_999)), (0, 86_399_999_999)
    ),
    "timestamp-millis": Kind(_logical("long", "timestamp-millis"), "timestamp", (SUMMER, LAST, BCE)),
    "timestamp-micros": Kind(
        _logical("long", "timestamp-micros"), "timestamp", (SUMMER.replace(microsecond=1), BCE, LAST)
    ),
    "local-timestamp-millis": Kind(
        _logical("long", "local-timestamp-millis"), "timestamp_ntz", (datetime(2024, 3, 10, 2, 30), datetime(1, 1, 1))
    ),
    "local-timestamp-micros": Kind(
        _logical("long", "local-timestamp-micros"), "timestamp_ntz", (datetime(9999, 12, 31, 23, 59, 59, 999_999),)
    ),
    "timestamp-nanos": Kind(_logical("long", "timestamp-nanos"), "bigint", (1, -(2**63) + 1)),
    "local-timestamp-nanos": Kind(_logical("long", "local-timestamp-nanos"), "bigint", (1, 2**63 - 1)),
    "duration": Kind(
        _fixed("Span", 12, logicalType="duration"),
        "struct<months:bigint,days:bigint,milliseconds:bigint>",
        (Duration(1, 2, 3), Duration(0, 0, 2**32 - 1)),
        ({"months": 1, "days": 2, "milliseconds": 3}, {"months": 0, "days": 0, "milliseconds": 2**32 - 1}),
    ),
    "nullable timestamp": Kind(["null", _logical("long", "timestamp-millis")], "timestamp", (None, SUMMER)),
    "array of decimals": Kind(
        {"type": "array", "items": _logical("bytes", "decimal", precision=5, scale=1)},
        "array<decimal(5,1)>",
        ([Decimal("1.5"), Decimal("-9999.9")],),
    ),
}
ROWS = 3


def _column(name: str) -> str:
    return "c_" + "".join(letter if letter.isalnum() else "_" for letter in name)


def _cycled(values: tuple[Any, ...]) -> list[Any]:
    return [values[row % len(values)] for row in range(ROWS)]


@dataclass(frozen=True)
class Round:
    """Return the value after its way through Spark and back."""

    types: dict[str, str]
    arrow: list[dict[str, Any]]
    written: list[dict[str, Any]]
    copied: list[dict[str, Any]]


@pytest.fixture(scope="module")
def way(spark: SparkSession, node: str, client: Client) -> Round:
    tables = SparkTables(spark, client, node, "every_type")
    fields = {"id": "int"} | {_column(name): kind.avro for name, kind in KINDS.items()}
    one, other = tables.make(fields), tables.make(fields, suffix="_copy")
    cells = {_column(name): _cycled(kind.documents) for name, kind in KINDS.items()}
    result = one.put_many({"id": row, **{name: values[row] for name, values in cells.items()}} for row in range(ROWS))
    assert not result.errors, result.errors[0].error
    frame = tables.read(one, partitions=1)
    tables.append(frame, other)
    return Round(
        dict(frame.dtypes),
        frame.orderBy("id").toArrow().to_pylist(),
        [document.value for document in one.scan()],
        [document.value for document in other.scan()],
    )


@pytest.mark.parametrize("name", KINDS)
def test_an_avro_type_is_read_as_its_spark_type_and_written_back(way: Round, name: str) -> None:
    kind, column = KINDS[name], _column(name)
    assert way.types[column] == kind.spark
    assert [row[column] for row in way.arrow] == _cycled(kind.documents if kind.arrow is None else kind.arrow)
    assert [row[column] for row in way.written] == [row[column] for row in way.copied]


# --- at the edges --------------------------------------------------------------------------------------------------


def test_a_year_that_documents_do_not_have_is_refused(tables: SparkTables) -> None:
    """Spark's timestamps go to the year 294247."""
    table = tables.make({"id": "long", "at": _logical("long", "timestamp-micros")})
    frame = tables.spark.sql("SELECT 1L id, timestamp_micros(253402300800000000) at")
    with pytest.raises(Exception, match=r"InvalidDocument: at: is not in the range of .* to 253402300799999999 "):
        tables.append(frame, table)


def test_a_timestamp_means_the_same_moment_whatever_the_zone(tables: SparkTables) -> None:
    table = tables.make({"id": "int", "at": _logical("long", "timestamp-millis")})
    frame = tables.spark.sql("SELECT 1 id, timestamp'2024-07-01 00:30:01.5' at")  # in the session's New York
    tables.append(frame, table)
    found = table.get(1)
    assert found is not None
    assert found.value["at"] == SUMMER
    shown = tables.read(table).select(sql.col("at").cast("string")).first()[0]
    assert shown == "2024-07-01 00:30:01.5"


@pytest.mark.parametrize(
    ("avro", "spark_sql", "expected"),
    [
        (_logical("long", "timestamp-millis"), "timestamp_micros(1)", "InvalidDocument: value: is finer than"),
        (_logical("int", "time-millis"), "1L", "InvalidDocument: value: is finer than"),
        (_logical("long", "time-micros"), "86400000000L", "InvalidDocument: value: is not in the range"),
        (_logical("bytes", "decimal", precision=4, scale=1), "cast(1 AS decimal(5,1))", "must be decimal(4,1) as in"),
        (KINDS["enum"].avro, "'CLUBS'", "InvalidDocument: value: is not one of the symbols of Suit (got 'CLUBS')"),
        (KINDS["fixed"].avro, "X'00'", "InvalidDocument: value: must have 4 bytes (got 1)"),
        (KINDS["uuid"].avro, "'x'", "InvalidDocument: value: is not a UUID"),
        (KINDS["union"].avro, "named_struct('member0', 1L, 'member1', 'a')", "value: must have one member set, has 2"),
        ({"type": "map", "values": "int"}, "map('a', cast(null AS int))", "InvalidDocument: value[0]: is null"),
    ],
)  # fmt: skip
def test_a_value_that_the_avro_type_does_not_admit_is_refused_by_path(
    tables: SparkTables, avro: Any, spark_sql: str, expected: str
) -> None:
    table = tables.make({"id": "int", "value": avro})
    frame = tables.spark.sql(f"SELECT 1 id, {spark_sql} value")
    with pytest.raises(Exception) as failed:
        tables.append(frame, table)
    assert expected in str(failed.value)
    assert list(table.scan()) == []


@pytest.mark.parametrize(
    ("avro", "expected"),
    [
        (_logical("bytes", "decimal", precision=39, scale=0), "a decimal of 39 digits, they have at most 38"),
        (
            {"type": "record", "name": "Tree", "fields": [{"name": "next", "type": ["null", "Tree"]}]},
            "Tree holds itself",
        ),
    ],
    ids=["decimal", "recursive"],
)  # fmt: skip
def test_what_spark_has_no_type_for_is_refused_by_path_and_the_rest_can_be_read(
    tables: SparkTables, avro: Any, expected: str
) -> None:
    inner = {"type": "record", "name": "Inner", "fields": [{"name": "wide", "type": avro}]}
    table = tables.make({"id": "int", "inner": (["null", inner], None), "name": "string"})
    table.put({"id": 1, "name": "a"})
    with pytest.raises(Exception) as failed:
        tables.read(table)
    assert "cortado.errors.Unsupported: field inner.wide" in str(failed.value)
    assert expected in str(failed.value)
    assert tables.read(table, columns="name,id").collect()[0][:] == ("a", 1)
    tables.append(tables.spark.sql("SELECT 2 id, 'b' name"), table)
    assert [document.value for document in table.scan()] == [
        {"id": 1, "inner": None, "name": "a"},
        {"id": 2, "inner": None, "name": "b"},
    ]
