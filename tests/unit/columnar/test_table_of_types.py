"""Each row of ``docs/formats/avro-arrow.md`` is true, both ways."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema

from cortado.errors import Unsupported
from cortado.schema.columnar.arrow import arrow_schema, from_record_batch, to_record_batch
from cortado.schema.columnar.decode import decode_rows
from cortado.schema.columnar.encode import encode_rows
from cortado.schema.model import NULL, Fixed, Kind, LogicalKind, Primitive, Schema, Union
from cortado.schema.parse import parse_schema

PAGE = Path(__file__).parents[3] / "docs" / "formats" / "avro-arrow.md"
ROW = re.compile(r"^\| `(?P<avro>[^`]+)` \| `(?P<arrow>[^`]+)` \| `(?P<spark>[^`]+)` \|$", re.MULTILINE)
ROWS = [(match["avro"], match["arrow"], match["spark"]) for match in ROW.finditer(PAGE.read_text())]
# Some of them are values of any type here: zeros, a decimal of one byte, the text of a UUID.
BODIES = [bytes(length) for length in range(20)] + [b"\x02\x05", b"\x48" + b"0" * 8 + b"-0000" * 3 + b"-" + b"0" * 12]

LINKED = '{"type": "record", "name": "N", "fields": [{"name": "next", "type": ["null", "N"]}]}'


def document(declaration: str) -> Schema:
    field = {"name": "f", "type": json.loads(declaration)}
    return parse_schema(json.dumps({"type": "record", "name": "R", "fields": [field]}))


def test_the_page_has_every_type() -> None:
    seen: set[object] = set()
    for avro, _, _ in ROWS:
        type_ = document(avro).record.fields[0].type
        seen.add(type(type_))
        if isinstance(type_, Primitive | Fixed):
            seen.add(type_.logical.kind if type_.logical else "plain")
            seen |= {type_.kind} if isinstance(type_, Primitive) else set()
    assert set(Kind) | set(LogicalKind) <= seen
    assert len([one for one in seen if isinstance(one, type)]) == 7


@pytest.mark.parametrize(("avro", "arrow", "spark"), ROWS, ids=[row[0] for row in ROWS])
def test_a_type_is_what_the_page_says(avro: str, arrow: str, spark: str) -> None:
    schema = document(avro)
    field = arrow_schema(schema).field("f")
    assert str(field.type) == arrow
    in_spark = from_arrow_schema(arrow_schema(schema))
    assert in_spark["f"].dataType.simpleString() == spark
    type_ = schema.record.fields[0].type
    assert (
        field.nullable
        == in_spark["f"].nullable
        == (type_ == NULL or (isinstance(type_, Union) and NULL in type_.branches))
    )
    assert to_arrow_schema(in_spark, timezone="UTC").equals(arrow_schema(schema), check_metadata=True)


@pytest.mark.parametrize("avro", [row[0] for row in ROWS])
def test_a_type_goes_to_arrow_and_back(avro: str) -> None:
    schema = document(avro)
    good = [body for body in BODIES if not decode_rows(schema, body, [len(body)]).errors]
    assert good
    bodies = good * 3
    decoded = decode_rows(schema, b"".join(bodies), [len(each) for each in bodies])
    batch = to_record_batch(decoded.columns, schema)
    batch.validate(full=True)
    written, sizes = encode_rows(schema, from_record_batch(batch, schema), len(bodies))
    assert written == b"".join(bodies)
    assert sizes.tolist() == [len(each) for each in bodies]


@pytest.mark.parametrize(
    ("avro", "path"),
    [
        ('["null", "R"]', "f"),
        ('{"type": "array", "items": ' + LINKED + "}", "f[].next"),
        ('{"type": "map", "values": {"type": "bytes", "logicalType": "decimal", "precision": 39, "scale": 3}}', "f{}"),
    ],
)
def test_what_arrow_cannot_say_is_refused_by_its_path(avro: str, path: str) -> None:
    with pytest.raises(Unsupported, match=f"field {re.escape(path)} in Arrow and Spark"):
        arrow_schema(document(avro))
