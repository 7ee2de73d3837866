"""Schemas both ways, and the messages about types that do not map. No JVM here."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pyspark.sql import types as t
from pyspark.sql.types import StructType

from cortado.errors import InvalidArgument, InvalidSchema
from cortado.schema.parse import parse_document_schema
from pyspark_cortado import avro_schema_of, spark_schema_of
from pyspark_cortado.schemas import Finding
from pyspark_cortado.types import check_frame, spark_schema

COLUMNS = (
    StructType()
    .add("id", t.LongType(), False)
    .add("flag", t.BooleanType())
    .add("small", t.ShortType())
    .add("f", t.FloatType())
    .add("d", t.DoubleType())
    .add("raw", t.BinaryType())
    .add("day", t.DateType())
    .add("moment", t.TimestampType())
    .add("local", t.TimestampNTZType())
    .add("price", t.DecimalType(12, 2), False)
    .add("tags", t.ArrayType(t.StringType(), False))
    .add("counts", t.MapType(t.StringType(), t.IntegerType()))
    .add("place", StructType().add("city", t.StringType(), False).add("at", StructType().add("lat", t.DoubleType())))
    .add("nothing", t.NullType())
)


def test_every_column_becomes_a_field_and_comes_back_as_it_was() -> None:
    schema, findings = avro_schema_of(COLUMNS)
    assert findings == [Finding("small", "smallint", "int", "comes back as int")]
    back, changes = spark_schema_of(schema)
    assert changes == []
    assert [each.name for each in back] == [each.name for each in COLUMNS]
    for was, now in zip(COLUMNS.fields, back.fields, strict=True):
        if was.name != "small":
            assert now.dataType.simpleString() == was.dataType.simpleString()
        assert now.nullable == was.nullable
    assert back["tags"].dataType == t.ArrayType(t.StringType(), False)


def test_rows_of_the_columns_are_taken_by_a_table_of_the_schema() -> None:
    schema, _ = avro_schema_of(COLUMNS)
    parsed = parse_document_schema(json.dumps(schema))
    assert len(check_frame(COLUMNS, parsed, ["id"], "d.t")) == len(COLUMNS)


def test_what_has_no_type_in_avro_is_left_out_and_said() -> None:
    columns = (
        StructType()
        .add("id", t.LongType(), False)
        .add("net price", t.DoubleType())
        .add("wait", t.DayTimeIntervalType())
        .add("id", t.StringType())
        .add("by_day", t.MapType(t.DateType(), t.LongType()))
        .add("many", t.ArrayType(StructType().add("gap", t.YearMonthIntervalType()).add("n", t.LongType())))
        .add("gaps", t.ArrayType(t.CalendarIntervalType()))
        .add("short", t.VarcharType(5))
    )
    schema, findings = avro_schema_of(columns, "Trip")
    assert [each["name"] for each in schema["fields"]] == ["id", "many", "short"]
    assert [(each.path, each.becomes) for each in findings] == [
        ("net price", None),
        ("wait", None),
        ("id", None),
        ("by_day", None),
        ("many[].gap", None),
        ("gaps[]", None),
        ("short", "string"),
    ]
    assert {each.path: each.why for each in findings}["by_day"] == "keys of Avro's maps are strings"
    parse_document_schema(json.dumps(schema))


def record(*fields: tuple[str, Any]) -> dict[str, Any]:
    return {"type": "record", "name": "R", "fields": [{"name": name, "type": kind} for name, kind in fields]}


def test_what_spark_has_no_type_for_is_left_out_and_said() -> None:
    tree = {"type": "record", "name": "Tree", "fields": [{"name": "below", "type": {"type": "array", "items": "Tree"}}]}
    wide = {"type": "bytes", "logicalType": "decimal", "precision": 40}
    columns, findings = spark_schema_of(record(("id", "long"), ("tree", tree), ("wide", ["null", wide])))
    assert columns.names == ["id"]
    assert [(each.path, each.found, each.becomes) for each in findings] == [
        ("tree", "record Tree", None),
        ("wide", "union of null, bytes (decimal)", None),
    ]
    assert "holds itself" in findings[0].why
    assert "40 digits" in findings[1].why


@pytest.mark.parametrize(
    ("avro", "path", "found", "becomes"),
    [
        ({"type": "enum", "name": "E", "symbols": ["A"]}, "x", "enum", "string"),
        (["null", {"type": "string", "logicalType": "uuid"}], "x", "string (uuid)", "string"),
        ({"type": "fixed", "name": "F", "size": 4}, "x", "fixed", "binary"),
        (
            {"type": "array", "items": {"type": "long", "logicalType": "time-micros"}},
            "x[]",
            "long (time-micros)",
            "bigint",
        ),
        ({"type": "map", "values": ["null", "long", "string"]}, "x{}", "union of null, long, string", None),
        (record(("y", {"type": "long", "logicalType": "timestamp-millis"})), "x.y", "long (timestamp-millis)", None),
        ({"type": "fixed", "name": "D", "size": 12, "logicalType": "duration"}, "x", "fixed (duration)", None),
    ],
    ids=lambda each: str(each)[:40],
)
def test_what_spark_says_less_of_is_told(avro: Any, path: str, found: str, becomes: str | None) -> None:
    schema = record(("x", avro))
    if isinstance(avro, dict) and avro["type"] == "record":
        avro["name"] = "Inner"
    columns, [finding] = spark_schema_of(json.dumps(schema))
    assert columns == spark_schema(parse_document_schema(json.dumps(schema)), None, "t")
    assert (finding.path, finding.found) == (path, found)
    assert finding.becomes is not None
    assert becomes is None or finding.becomes == becomes


def test_what_is_no_schema_is_refused() -> None:
    with pytest.raises(InvalidSchema):
        spark_schema_of({"type": "long"})
    with pytest.raises(InvalidArgument, match="option endpoint: is for a subject, and the schema itself is given"):
        spark_schema_of(record(("id", "long")), endpoint="127.0.0.1:1")
    with pytest.raises(InvalidArgument, match=r"option partitions: is not an option of spark_schema_of\(\)"):
        spark_schema_of("a.b", partitions=3)
