"""Single documents of ten fields: a dict to its body and back, one at a time, on one core, nothing stored.

The limit beside it is fastavro, which checks neither its output nor its input; our codec checks both.

    python -m benchmarks.bench_documents
"""

from __future__ import annotations

import json
import timeit
from collections.abc import Callable
from datetime import UTC, datetime
from io import BytesIO
from typing import Any, Final

import fastavro
from rich.console import Console

from benchmarks.report import Measurement, show
from cortado.schema.documents import decode_document, encode_document, validate_body
from cortado.schema.parse import parse_document_schema

TITLE: Final = "Single documents"
CALLS: Final = 20_000
AIM: Final = 100_000

_FIELDS: Final[list[tuple[str, Any]]] = [
    ("time_hour", {"type": "long", "logicalType": "timestamp-micros"}),
    ("carrier", "string"),
    ("flight", "int"),
    ("origin", "string"),
    ("dest", "string"),
    ("tailnum", ["null", "string"]),
    ("dep_delay", ["null", "double"]),
    ("arr_delay", ["null", "double"]),
    ("air_time", ["null", "int"]),
    ("distance", "long"),
]
DECLARATION: Final = {
    "type": "record",
    "name": "Flight",
    "fields": [{"name": name, "type": avro_type} for name, avro_type in _FIELDS],
}
DOCUMENT: Final[dict[str, Any]] = {
    "time_hour": datetime(2013, 1, 1, 10, tzinfo=UTC),
    "carrier": "UA",
    "flight": 1545,
    "origin": "EWR",
    "dest": "IAH",
    "tailnum": "N14228",
    "dep_delay": 2.0,
    "arr_delay": None,
    "air_time": 227,
    "distance": 1400,
}


def run() -> list[Measurement]:
    """Return rates of encoding, decoding and resolving, beside fastavro's."""
    schema = parse_document_schema(json.dumps(DECLARATION))
    added = {"name": "gate", "type": ["null", "string"], "default": None}
    later = parse_document_schema(json.dumps({**DECLARATION, "fields": [*DECLARATION["fields"], added]}))
    theirs, theirs_later = fastavro.parse_schema(json.loads(schema.text)), fastavro.parse_schema(json.loads(later.text))
    body = encode_document(schema, DOCUMENT)

    def write() -> bytes:
        out = BytesIO()
        fastavro.schemaless_writer(out, theirs, DOCUMENT)
        return out.getvalue()

    assert write() == body
    decoding = _rate(lambda: fastavro.schemaless_reader(BytesIO(body), theirs))
    resolving = _rate(lambda: fastavro.schemaless_reader(BytesIO(body), theirs, theirs_later))
    ours = [
        ("encode, checked", lambda: encode_document(schema, DOCUMENT), _rate(write)),
        ("decode, validated", lambda: decode_document(schema, body), decoding),
        ("validate", lambda: validate_body(schema, body), decoding),
        ("decode with a later schema, validated", lambda: decode_document(schema, body, later), resolving),
    ]
    return [
        Measurement(name, _rate(call), "documents", "fastavro, unchecked", below, AIM) for name, call, below in ours
    ]


def settings() -> str:
    return f"one document of {len(DECLARATION['fields'])} fields, {CALLS:,} calls, best of five rounds, one core"


def _rate(call: Callable[[], object]) -> float:
    """Return calls a second, of the best of five rounds: a disturbance only slows a round."""
    return CALLS / min(timeit.repeat(call, number=CALLS, repeat=5))


if __name__ == "__main__":
    show(TITLE, settings(), run(), Console())
