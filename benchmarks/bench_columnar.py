"""Many documents of ten fields at once: bodies to columns and back, to Arrow and back, to another schema.

The limit beside it is fastavro, one document at a time without checks. If pyruhvro or DataFusion are installed, they
are measured on the same bodies (they are not among our dependencies; docs/adr/0005-avro-to-arrow.md says why). Rates
are of CPU time, so that a busy machine does not count as a slow codec.

    python -m benchmarks.bench_columnar
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from importlib.util import find_spec
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import fastavro
import numpy as np
import pyarrow as pa
from rich.console import Console

from benchmarks.report import Measurement, show
from cortado.schema.columnar.arrow import from_record_batch, to_record_batch
from cortado.schema.columnar.decode import decode_rows
from cortado.schema.columnar.encode import encode_rows
from cortado.schema.columnar.resolve import resolve_columns
from cortado.schema.parse import parse_document_schema

TITLE: Final = "Documents in columns"
ROWS: Final = 40_000
CHUNKS: Final = (1_000, 2_000, 10_000)
ROUNDS: Final = 7
AIM_CHUNK: Final = 2_000
AIM_DECODE: Final = 4_000_000
AIM_ENCODE: Final = 2_000_000
SYNC: Final = b"0123456789abcdef"

FIELDS: Final[list[dict[str, Any]]] = [
    {"name": "id", "type": "long"},
    {"name": "carrier", "type": "string"},
    {"name": "tailnum", "type": ["null", "string"]},
    {"name": "delay", "type": ["null", "double"]},
    {"name": "flight", "type": "int"},
    {"name": "cancelled", "type": "boolean"},
    {"name": "time_hour", "type": {"type": "long", "logicalType": "timestamp-millis"}},
    {"name": "gate", "type": ["null", "long"]},
    {"name": "note", "type": "string"},
    {"name": "distance", "type": "double"},
]
DECLARATION: Final = {"type": "record", "name": "Flight", "fields": FIELDS}
LATER: Final = {**DECLARATION, "fields": [*FIELDS, {"name": "stand", "type": ["null", "string"], "default": None}]}


def document(row: int) -> dict[str, Any]:
    return {
        "id": row,
        "carrier": f"carrier{row % 17}",
        "tailnum": None if row % 7 == 0 else f"N{row}",
        "delay": None if row % 9 == 0 else row * 0.5,
        "flight": row % 1000,
        "cancelled": row % 2 == 0,
        "time_hour": 1_700_000_000_000 + row * 1000,
        "gate": None if row % 3 else row,
        "note": f"some text here {row}",
        "distance": row / 3,
    }


def run() -> list[Measurement]:
    """Return our rates beside fastavro's, and those of other installed libraries."""
    parsed = fastavro.parse_schema(json.loads(json.dumps(DECLARATION)))
    documents = [document(row) for row in range(ROWS)]
    bodies = [_written(parsed, each) for each in documents]
    sample = bodies[:4000]
    writing = _rate(lambda: [_written(parsed, each) for each in documents[: len(sample)]], len(sample))
    reading = _rate(lambda: [fastavro.schemaless_reader(BytesIO(body), parsed) for body in sample], len(sample))
    below: dict[str, tuple[str, float]] = {
        "decode": ("fastavro, unchecked", reading),
        "encode": ("fastavro, unchecked", writing),
    }
    found = []
    for chunk in CHUNKS:
        for name, rate, direction, aim in _ours(bodies, chunk):
            # The aims are for chunks of 2,000: smaller ones pay the fixed cost of a call more often.
            wanted = aim if chunk >= AIM_CHUNK else 0
            found.append(Measurement(f"{name}, chunks of {chunk:,}", rate, "rows", *below[direction], wanted))
    found += [Measurement(name, rate, "rows", *below["decode"]) for name, rate in _others(bodies)]
    return found


def settings() -> str:
    return (
        f"{ROWS:,} documents of {len(FIELDS)} fields, 3 of them nullable, CPU time, best of {ROUNDS} rounds, one core"
    )


def _written(parsed: Any, value: dict[str, Any]) -> bytes:
    out = BytesIO()
    fastavro.schemaless_writer(out, parsed, value)
    return out.getvalue()


def _ours(bodies: list[bytes], chunk: int) -> list[tuple[str, float, str, float]]:
    schema, later = (parse_document_schema(json.dumps(each)) for each in (DECLARATION, LATER))
    chunks = [
        (b"".join(bodies[at : at + chunk]), np.fromiter(map(len, bodies[at : at + chunk]), np.uint32))
        for at in range(0, len(bodies), chunk)
    ]
    columns = [decode_rows(schema, *each).columns for each in chunks]
    batches = [to_record_batch(each, schema) for each in columns]

    def decode_to_arrow() -> list[pa.RecordBatch]:
        return [to_record_batch(decode_rows(schema, *each).columns, schema) for each in chunks]

    def decode_to_later() -> object:
        return [resolve_columns(decode_rows(schema, *each).columns, schema, later) for each in chunks]

    def encode_from_arrow() -> list[bytes]:
        return [encode_rows(schema, from_record_batch(each, schema), each.num_rows)[0] for each in batches]

    assert encode_from_arrow() == [each for each, _ in chunks]
    n = len(bodies)
    return [
        ("validate", _rate(lambda: [decode_rows(schema, *each, columns=()) for each in chunks], n), "decode", 0),
        ("extract 2 columns", _rate(lambda: [_two(schema, each) for each in chunks], n), "decode", 0),
        ("decode", _rate(lambda: [decode_rows(schema, *each) for each in chunks], n), "decode", AIM_DECODE),
        ("decode to Arrow", _rate(decode_to_arrow, n), "decode", 0),
        ("decode with a later schema", _rate(decode_to_later, n), "decode", 0),
        ("encode", _rate(lambda: [encode_rows(schema, each, chunk) for each in columns], n), "encode", AIM_ENCODE),
        ("encode from Arrow", _rate(encode_from_arrow, n), "encode", 0),
    ]


def _two(schema: Any, chunk: tuple[bytes, Any]) -> object:
    return decode_rows(schema, *chunk, columns=("id", "carrier"))


def _others(bodies: list[bytes]) -> list[tuple[str, float]]:
    """Measure Avro to Arrow by other libraries, if installed."""
    found = []
    text = json.dumps(DECLARATION)
    if find_spec("pyruhvro") is not None:
        import pyruhvro

        for chunk in CHUNKS:
            parts = [bodies[at : at + chunk] for at in range(0, len(bodies), chunk)]
            rate = _rate(lambda parts=parts: [pyruhvro.deserialize_array(each, text) for each in parts], len(bodies))
            found.append((f"pyruhvro, decode to Arrow, chunks of {chunk:,}", rate))
    if find_spec("datafusion") is not None:
        found.append(("DataFusion, decode to Arrow, one file", _datafusion(bodies, text)))
    return found


def _datafusion(bodies: list[bytes], text: str) -> float:
    import datafusion

    def long(value: int) -> bytes:
        out, left = bytearray(), value << 1
        while left > 0x7F:
            out.append(left & 0x7F | 0x80)
            left >>= 7
        return bytes(out) + bytes([left])

    def sized(raw: bytes) -> bytes:
        return long(len(raw)) + raw

    joined = b"".join(bodies)
    head = b"Obj\x01" + long(2) + sized(b"avro.schema") + sized(text.encode()) + sized(b"avro.codec") + sized(b"null")
    with TemporaryDirectory() as folder:
        path = Path(folder) / "rows.avro"
        path.write_bytes(head + b"\x00" + SYNC + long(len(bodies)) + sized(joined) + SYNC)

        def read() -> object:
            config = datafusion.SessionConfig().with_target_partitions(1)
            return datafusion.SessionContext(config).read_avro(str(path)).collect()

        return _rate(read, len(bodies))


def _rate(call: Callable[[], object], rows: int) -> float:
    """Return rows a second of CPU time (all threads'), of the best of some rounds."""
    best = float("inf")
    for _ in range(ROUNDS):
        start = time.process_time()
        call()
        best = min(best, time.process_time() - start)
    return rows / best


if __name__ == "__main__":
    show(TITLE, settings(), run(), Console(width=140))
