"""Bodies of documents and fingerprints of schemas are on disk: ``documents.txt`` and ``fingerprints.txt`` pin them.

Bodies are Avro's, so a change there is a defect. A change of a fingerprint makes a registered schema another one: raise
the data directory's version and say so in ``docs/formats/avro.md``. Then
``python tests/golden/schema/test_avro_bytes.py`` writes both files anew.
"""

from __future__ import annotations

import json
import math
import textwrap
from datetime import UTC, date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

from cortado.schema.canonical import crc64_fingerprint, parsing_canonical_form
from cortado.schema.documents import decode_document, encode_document
from cortado.schema.json_format import to_json_value
from cortado.schema.parse import parse_schema
from cortado.schema.values import Branch, Duration

DOCUMENTS = Path(__file__).with_name("documents.txt")
FINGERPRINTS = Path(__file__).with_name("fingerprints.txt")


def logical(base: Any, kind: str, **more: Any) -> dict[str, Any]:
    return {"type": base, "logicalType": kind, **more}


def fixed(size: int, **more: Any) -> dict[str, Any]:
    return {"type": "fixed", "name": "F", "size": size, **more}


LEG = {"type": "record", "name": "Leg", "fields": [{"name": "x", "type": "int"}, {"name": "y", "type": "string"}]}
ENUM = {"type": "enum", "name": "E", "symbols": ["RED", "GREEN", "BLUE"]}
MOMENT = datetime(2013, 1, 31, 12, 30, 15, 123000, tzinfo=UTC)

VALUES: list[tuple[Any, list[Any]]] = [
    ("null", [None]),
    ("boolean", [False, True]),
    ("int", [0, -1, 1, -64, 63, 64, -(2**31), 2**31 - 1]),
    ("long", [0, -65, -(2**63), 2**63 - 1]),
    ("float", [0.0, -0.0, 1.5, math.inf]),
    ("double", [0.0, -1.5, 1e308, -math.inf]),
    ("bytes", [b"", b"\x00\xff"]),
    ("string", ["", "héllo", "x" * 64]),
    (fixed(3), [b"abc"]),
    (ENUM, ["RED", "BLUE"]),
    ({"type": "array", "items": "int"}, [[], [1, 2, 3]]),
    ({"type": "map", "values": "int"}, [{}, {"a": 1, "b": -1}]),
    (LEG, [{"x": 1, "y": "z"}]),
    (["null", "int"], [None, 5]),
    (["string", "null"], [None, "a"]),
    (["null", "int", "string", LEG], [None, 5, "a", {"x": 1, "y": ""}]),
    (["string", ENUM], [Branch("string", "RED"), Branch("E", "RED")]),
    (logical("bytes", "decimal", precision=6, scale=2), [Decimal(each) for each in ("0.00", "1.27", "1.28", "-1.28")]),
    (fixed(4, logicalType="decimal", precision=6, scale=2), [Decimal("-0.01"), Decimal("1234.56")]),
    (logical("string", "uuid"), [UUID(int=255)]),
    (fixed(16, logicalType="uuid"), [UUID(int=255)]),
    (logical("int", "date"), [date(1970, 1, 1), date(1, 1, 1), date(9999, 12, 31)]),
    (logical("int", "time-millis"), [time(), time(23, 59, 59, 999000)]),
    (logical("long", "time-micros"), [time(0, 0, 0, 1), time(23, 59, 59, 999999)]),
    (logical("long", "timestamp-millis"), [MOMENT]),
    (logical("long", "timestamp-micros"), [MOMENT, datetime(1, 1, 1, tzinfo=UTC)]),
    (logical("long", "timestamp-nanos"), [1_359_635_415_123_456_789]),
    (logical("long", "local-timestamp-millis"), [MOMENT.replace(tzinfo=None)]),
    (logical("long", "local-timestamp-micros"), [MOMENT.replace(tzinfo=None)]),
    (logical("long", "local-timestamp-nanos"), [-1]),
    (fixed(12, logicalType="duration"), [Duration(1, 2, 3)]),
]

SCHEMAS: list[Any] = [
    *(avro_type for avro_type, _ in VALUES),
    {**LEG, "namespace": "org.air", "aliases": ["Hop", "com.Hop"], "doc": "left out"},
    {
        "type": "record",
        "name": "Node",
        "fields": [
            {"name": "value", "type": "double", "default": 1, "aliases": ["v", "u"], "doc": "left out"},
            {"name": "next", "type": ["null", "Node"], "default": None},
            {"name": "bytes", "type": "bytes", "default": "\u00ff"},
            {"name": "leg", "type": LEG, "default": {"y": "é", "x": 1}},
            {"name": "cause", "type": {**ENUM, "default": "RED"}, "default": "BLUE"},
        ],
    },
]


def documents_text() -> str:
    lines = []
    for avro_type, values in VALUES:
        lines.append(json.dumps(avro_type))
        for value in values:
            body, shown = _body_and_json(avro_type, value)
            lines.append(f"  {json.dumps(shown, ensure_ascii=False):<39} {body.hex()}".rstrip())
        lines.append("")
    return "\n".join(lines)


def _body_and_json(avro_type: Any, value: Any) -> tuple[bytes, Any]:
    schema = parse_schema(json.dumps({"type": "record", "name": "D", "fields": [{"name": "a", "type": avro_type}]}))
    body = encode_document(schema, {"a": value})
    again = encode_document(schema, decode_document(schema, body))
    assert again == body
    return body, to_json_value(schema, {"a": value})["a"]


def fingerprints_text() -> str:
    paragraphs = []
    for declaration in SCHEMAS:
        schema = parse_schema(json.dumps(declaration))
        paragraphs.append(
            textwrap.dedent(
                f"""\
                declared     {json.dumps(declaration, ensure_ascii=False)}
                canonical    {schema.canonical}
                fingerprint  {schema.fingerprint.hex()}
                parsing form {parsing_canonical_form(schema)}
                CRC-64-AVRO  {crc64_fingerprint(schema):016x}
                """
            )
        )
    return "\n".join(paragraphs)


def test_the_bodies_of_documents_are_as_they_always_were() -> None:
    assert documents_text() == DOCUMENTS.read_text()


def test_fingerprints_are_as_they_always_were() -> None:
    assert fingerprints_text() == FINGERPRINTS.read_text()


if __name__ == "__main__":
    DOCUMENTS.write_text(documents_text())
    FINGERPRINTS.write_text(fingerprints_text())
