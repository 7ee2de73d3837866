"""Values that the connector lets through to the columnar codec are stored without loss, and lossy ones are refused."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa
import pytest
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    ByteType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    ShortType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from cortado.errors import InvalidArgument, NotFound
from cortado.schema.documents import decode_document
from cortado.schema.model import Schema
from cortado.schema.parse import parse_document_schema
from cortado.store.client.arrow import encode_batch
from pyspark_cortado.types import check_frame, field_names, spark_schema, widens


def schema_of(**types: Any) -> Schema:
    fields = [{"name": name, "type": kind} for name, kind in types.items()]
    return parse_document_schema(json.dumps({"type": "record", "name": "R", "fields": fields}))


def decimal(precision: int, scale: int) -> dict[str, Any]:
    return {"type": "bytes", "logicalType": "decimal", "precision": precision, "scale": scale}


def struct(**types: DataType) -> StructType:
    return StructType([StructField(name, kind) for name, kind in types.items()])


OWN: Final[dict[str, Any]] = {
    "int": "int",
    "bigint": "long",
    "float": "float",
    "double": "double",
    "string": "string",
    "time": {"type": "int", "logicalType": "time-millis"},
    "nanos": {"type": "long", "logicalType": "timestamp-nanos"},
    "decimal(5,0)": decimal(5, 0),
    "decimal(9,2)": decimal(9, 2),
    "decimal(19,0)": decimal(19, 0),
    "decimal(38,19)": decimal(38, 19),
    "decimal(38,38)": decimal(38, 38),
    "array": {"type": "array", "items": ["null", "long"]},
    "map": {"type": "map", "values": "double"},
    "struct": {
        "type": "record",
        "name": "P",
        "fields": [{"name": "x", "type": "long"}, {"name": "y", "type": "double"}],
    },
    "union": ["null", "long", "string"],
    "nullable": ["null", "long"],
}
GIVEN: Final[dict[str, tuple[DataType, list[Any]]]] = {
    "tinyint": (ByteType(), [-(2**7), 2**7 - 1, 0]),
    "smallint": (ShortType(), [-(2**15), 2**15 - 1, 0]),
    "int": (IntegerType(), [-(2**31), 2**31 - 1, 0]),
    "bigint": (LongType(), [-(2**63), 2**63 - 1, 0]),
    "float": (FloatType(), [1.5, -(2.0**127), float("inf")]),
    "double": (DoubleType(), [0.1, -1e300, float("-inf")]),
    "string": (StringType(), ["a", "", "5"]),
    "boolean": (BooleanType(), [True, False]),
    "date": (DateType(), []),
    "timestamp": (TimestampType(), []),
    "decimal(3,0)": (DecimalType(3, 0), [Decimal(-999), Decimal(999)]),
    "decimal(5,1)": (DecimalType(5, 1), [Decimal("-9999.9"), Decimal("9999.9")]),
    "decimal(7,2)": (DecimalType(7, 2), [Decimal("-99999.99"), Decimal("0.01")]),
    "decimal(10,2)": (DecimalType(10, 2), [Decimal("99999999.99")]),
    "decimal(38,0)": (DecimalType(38, 0), [Decimal(10**38 - 1)]),
    "decimal(38,38)": (DecimalType(38, 38), [Decimal("0." + "9" * 38)]),
    "array of smallint": (ArrayType(ShortType()), [[-(2**15), None], []]),
    "array of string": (ArrayType(StringType()), [["a"]]),
    "map of int": (MapType(StringType(), IntegerType()), [{"a": 2**31 - 1}, {}]),
    "struct": (struct(x=IntegerType(), y=FloatType()), [{"x": -5, "y": 0.5}]),
    "struct in another order": (struct(y=FloatType(), x=IntegerType()), [{"x": -5, "y": 0.5}]),
    "part of a struct": (struct(x=IntegerType()), [{"x": 5}]),
    "members": (
        struct(member0=IntegerType(), member1=StringType()),
        [{"member0": 5, "member1": None}, {"member0": None, "member1": "a"}],
    ),
}
# Numbers that are checked one by one: a time of day in microseconds, and nanoseconds of the years that Python knows.
BY_VALUE: Final = {"time", "nanos"}


@pytest.mark.parametrize("given", GIVEN)
@pytest.mark.parametrize("own", OWN)
def test_what_widens_is_stored_to_the_last_digit(given: str, own: str) -> None:
    schema = schema_of(v=OWN[own])
    kind, values = GIVEN[given]
    frame = struct(v=kind)
    target = spark_schema(schema, None, "d.t").fields[0].dataType
    if not widens(kind, target):
        with pytest.raises(InvalidArgument, match=r"column v: must be "):
            check_frame(frame, schema, [], "d.t")
        return
    assert check_frame(frame, schema, [], "d.t") == {0: "v"}
    if own in BY_VALUE:
        return
    arrow = to_arrow_schema(frame, timezone="UTC")
    batch = pa.record_batch([pa.array(values, arrow.field(0).type)], schema=arrow)
    bodies, lengths = encode_batch(batch, schema, "d.t")
    found, start = [], 0
    for length in lengths.tolist():
        found.append(decode_document(schema, bodies[start : start + length])["v"])
        start += length
    expected = [_plain(value) for value in values]
    assert [_plain(value) for value in found] == expected


def _plain(value: Any) -> Any:
    if isinstance(value, dict) and set(value) == {"member0", "member1"}:
        return next(each for each in value.values() if each is not None)
    return getattr(value, "value", value)


def test_widening_is_what_the_page_says() -> None:
    own = ("int", "bigint", "float", "double")
    pairs = {(a, b) for a in GIVEN for b in own if widens(GIVEN[a][0], GIVEN[b][0])}
    pairs |= {(a, "decimal(9,2)") for a in GIVEN if widens(GIVEN[a][0], DecimalType(9, 2))}
    assert pairs == {
        *((a, "int") for a in ("tinyint", "smallint", "int")),
        *((a, "bigint") for a in ("tinyint", "smallint", "int", "bigint")),
        ("float", "float"),
        *((a, "double") for a in ("tinyint", "smallint", "int", "float", "double")),
        *((a, "decimal(9,2)") for a in ("tinyint", "smallint", "decimal(3,0)", "decimal(5,1)", "decimal(7,2)")),
    }


def test_columns_are_found_whatever_the_case_of_their_letters() -> None:
    schema = schema_of(id="long", Name="string")
    assert field_names(["ID", "name"], schema, "d.t") == ("id", "Name")
    assert check_frame(struct(NAME=StringType(), Id=IntegerType()), schema, ["id"], "d.t") == {0: "Name", 1: "id"}


def test_a_column_that_may_be_two_fields_or_two_that_are_one_are_refused() -> None:
    schema = schema_of(id="long", ID="long", x="long")
    assert field_names(["id", "ID"], schema, "d.t") == ("id", "ID")
    with pytest.raises(InvalidArgument, match=r"column Id: may be any of id, ID in d.t"):
        field_names(["Id"], schema, "d.t")
    with pytest.raises(InvalidArgument, match=r"column X: is another column for the field x of d.t"):
        field_names(["x", "X"], schema, "d.t")
    with pytest.raises(NotFound, match=r"no field y in d.t; there are id, ID, x"):
        field_names(["y"], schema, "d.t")
