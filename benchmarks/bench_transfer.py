"""Import and export: rows of ten fields out of files and into files, one node and one client process, durable.

The limit beside an import is the bulk stream with rows that were encoded beforehand; beside an export it is a scan that
drops its rows. The difference is a format's reading or writing. The better of two rounds counts.

    python -m benchmarks.bench_transfer
"""

from __future__ import annotations

import io
import struct
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from rich.console import Console

from benchmarks.bench_documents import DECLARATION, DOCUMENT
from benchmarks.bench_grpc import serving
from benchmarks.report import Measurement, show
from cortado.schema.documents import encode_document
from cortado.schema.parse import parse_document_schema
from cortado.store.client import Client
from cortado.store.client.schemas import schema_text
from cortado.store.transfer.export import Selection, export_table
from cortado.store.transfer.files import WholeFile
from cortado.store.transfer.formats import Format, encoding_to_write
from cortado.store.transfer.run_import import ImportRequest, run_import

TITLE: Final = "Import and export"
ROWS: Final = 200_000
ROUNDS: Final = 2
_CHUNK_ROWS: Final = 2_000
_FILES: Final = {"JSON lines": "rows.jsonl", "Avro": "rows.avro", "Parquet": "rows.parquet"}
_AIMS: Final = {"JSON lines": 50_000, "Avro": 100_000, "Parquet": 150_000}


def run() -> list[Measurement]:
    """Return rates of each format both ways; takes about a minute on two cores."""
    with tempfile.TemporaryDirectory() as directory, serving("cortado", directory) as address:
        folder = Path(directory)
        with Client(address, timeout_s=60) as client:
            client.create_database("bench")
            sent = _best(lambda number: _send(client, f"bench.sent{number}"))
            scanned = _best(lambda _: _scan(client, "bench.sent0"))
            out, back = [], []
            for name, file in _FILES.items():
                rate = _best(lambda _, path=folder / file: _export(client, "bench.sent0", path))
                out.append(Measurement(f"export, {name}", rate, "rows", "scan", scanned, _AIMS[name]))
            for place, (name, file) in enumerate(_FILES.items()):
                rate = _best(lambda number, place=place, file=file: _import(client, place, number, folder / file))
                back.append(Measurement(f"import, {name}", rate, "rows", "bulk stream", sent, _AIMS[name]))
            return [*out, *back]


def settings() -> str:
    return (
        f"{ROWS:,} rows of {len(DECLARATION['fields'])} fields, key (flight), no index; the better of {ROUNDS} rounds"
    )


def _best(once: Callable[[int], float]) -> float:
    """Return rows a second of the best round; each is told its number, from 0."""
    return ROWS / min(once(number) for number in range(ROUNDS))


def _make(client: Client, table: str) -> None:
    client.schemas.register(table, DECLARATION)
    client.create_table(table, ["flight"])


def _send(client: Client, table: str) -> float:
    _make(client, table)
    schema = parse_document_schema(schema_text(DECLARATION))
    schema_id = client.schemas.get(table).schema_id
    batches = []
    for start in range(0, ROWS, _CHUNK_ROWS):
        numbers = range(start, start + _CHUNK_ROWS)
        bodies = [encode_document(schema, {**DOCUMENT, "flight": n, "distance": n * 7}) for n in numbers]
        batches.append((schema_id, b"".join(bodies), struct.pack(f"<{len(bodies)}I", *map(len, bodies))))
    began = time.perf_counter()
    assert client.table(table).put_batches(batches).written == ROWS
    return time.perf_counter() - began


def _scan(client: Client, table: str) -> float:
    began = time.perf_counter()
    assert sum(map(len, client.table(table).scan_batches())) == ROWS
    return time.perf_counter() - began


def _export(client: Client, table: str, path: Path) -> float:
    encoding = encoding_to_write(None, None, path.name, Format.JSONL)
    began = time.perf_counter()
    with WholeFile(path) as file:
        assert export_table(client, table, file, encoding, Selection())[0] == ROWS
    return time.perf_counter() - began


def _import(client: Client, place: int, number: int, path: Path) -> float:
    table = f"bench.back{place}{number}"
    _make(client, table)
    request = ImportRequest(table, (str(path),), checkpoint=path.with_suffix(".checkpoint"))
    began = time.perf_counter()
    loaded = run_import(client, request, stdin=io.BytesIO(), tell=lambda _: None, report=lambda _: None)
    took_s = time.perf_counter() - began
    assert (loaded.written, loaded.refused) == (ROWS, 0)
    return took_s


if __name__ == "__main__":
    show(TITLE, settings(), run(), Console())
