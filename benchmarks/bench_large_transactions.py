"""The cost of making many rows visible at once: a large transaction beside a plain bulk load of the same rows.

In turns, each into a table of its own: all rows by a bulk load; and all rows staged and committed, read while they are
not in their place yet, and read again once they are.

    python -m benchmarks.bench_large_transactions
"""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any, Final

from rich.console import Console

from benchmarks.bench_collection import serving
from benchmarks.report import Measurement, show
from cortado.schema.documents import encode_document
from cortado.schema.parse import parse_schema
from cortado.store.client import Client, Index

TITLE: Final = "Large transactions"
ROWS: Final = 1_000_000
CHUNK_ROWS: Final = 2_000
TURNS: Final = 3
SCHEMA: Final[dict[str, Any]] = {
    "type": "record",
    "name": "Reading",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "sensor", "type": "string"},
        {"name": "value", "type": "double"},
        {"name": "note", "type": "string"},
    ],
}


def settings() -> str:
    """Return one line for the table's head: data and method."""
    return f"{ROWS:,} rows with one index, one client, synced; medians of {TURNS} turns"


def run() -> list[Measurement]:
    """Measure everything; takes about three minutes on two cores."""
    plain: list[float] = []
    visible: list[float] = []
    in_place: list[float] = []
    scanned_between: list[float] = []
    scanned_after: list[float] = []
    with (
        tempfile.TemporaryDirectory() as directory,
        serving(Path(directory) / "node", "1h") as address,
        Client(address, timeout_s=120) as client,
    ):
        client.create_database("bench")
        for turn in range(TURNS):
            loaded, staged = f"bench.loaded_{turn}", f"bench.staged_{turn}"
            batches = list(_batches(client, loaded))
            began_s = time.perf_counter()
            client.table(loaded).put_batches(batches)
            plain.append(ROWS / (time.perf_counter() - began_s))
            batches = list(_batches(client, staged))
            began_s = time.perf_counter()
            with client.large_transaction([staged]) as transaction:
                transaction.table(staged).put_batches(batches)
            visible.append(ROWS / (time.perf_counter() - began_s))
            scanned_between.append(_scan(client, staged))
            while not all(each.is_resolved for each in client.large_transactions.list()):
                time.sleep(0.05)
            in_place.append(ROWS / (time.perf_counter() - began_s))
            scanned_after.append(_scan(client, staged))
    return [
        Measurement("staged and committed", median(visible), "rows", "plain bulk load", median(plain), 0.5),
        Measurement("until all is in its place", median(in_place), "rows", "plain bulk load", median(plain)),
        Measurement("scan before that", median(scanned_between), "rows", "scan after", median(scanned_after)),
    ]


def _batches(client: Client, table: str) -> Iterator[tuple[int, bytes, bytes]]:
    """Make the table, and yield rows for it as they travel."""
    version = client.schemas.register(table, SCHEMA)
    client.create_table(table, ["id"], indexes=[Index("by_sensor", ["sensor"])])
    schema = parse_schema(json.dumps(SCHEMA))
    for first in range(0, ROWS, CHUNK_ROWS):
        bodies = [encode_document(schema, _row(i)) for i in range(first, min(first + CHUNK_ROWS, ROWS))]
        yield version.schema_id, b"".join(bodies), b"".join(len(each).to_bytes(4, "little") for each in bodies)


def _row(i: int) -> dict[str, Any]:
    return {"id": i, "sensor": f"sensor-{i % 977}", "value": float(i), "note": "n" * 40}


def _scan(client: Client, table: str) -> float:
    began_s = time.perf_counter()
    rows = sum(len(batch.lengths) // 4 for batch in client.table(table).scan_batches())
    assert rows == ROWS, f"{rows} rows of {ROWS}"
    return rows / (time.perf_counter() - began_s)


if __name__ == "__main__":
    show(TITLE, settings(), run(), Console())
