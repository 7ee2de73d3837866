"""The cost of an index's build to the writes beside it, and the build's duration.

A table with many rows gets an index while 64 callers of one client overwrite rows of it. In turns: some seconds without
an index, some beside a build, and some beside a paused build, which shows the upkeep by itself: from the build's first
moment on each write must read the old row. In the end an index is built without writers.

    python -m benchmarks.bench_indexes
"""

from __future__ import annotations

import tempfile
import threading
import time
from pathlib import Path
from statistics import median
from typing import Any, Final

from rich.console import Console

from benchmarks.bench_collection import serving
from benchmarks.report import Measurement, show
from cortado.store.client import Client, Index

TITLE: Final = "Indexes built beside writes"
ROWS: Final = 1_000_000
CALLERS: Final = 64
TURN_S: Final = 8.0
TURNS: Final = 3
TABLE: Final = "bench.readings"
SCHEMA: Final[dict[str, Any]] = {
    "type": "record",
    "name": "Reading",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "sensor", "type": "string"},
        {"name": "value", "type": "double"},
        {"name": "note", "type": ["null", "string"], "default": None},
    ],
}


def settings() -> str:
    """Return one line for the table's head: data and method."""
    return (
        f"a table of {ROWS:,} rows, {CALLERS} callers that overwrite rows of it, synced; medians of {TURNS} turns of "
        f"{TURN_S:g} s each"
    )


def run() -> list[Measurement]:
    """Measure everything; takes about four minutes on two cores."""
    alone: list[float] = []
    beside: list[float] = []
    kept: list[float] = []
    built: list[float] = []
    with (
        tempfile.TemporaryDirectory() as directory,
        serving(Path(directory) / "node", "1h") as address,
        Client(address) as client,
    ):
        client.create_database("bench")
        client.schemas.register(TABLE, SCHEMA)
        client.create_table(TABLE, ["id"])
        client.table(TABLE).put_many(_row(i, 0.0) for i in range(ROWS))
        for turn in range(TURNS):
            alone.append(_overwrite(client))
            client.create_index(TABLE, Index(f"by_sensor_{turn}", ["sensor"]), wait=False)
            before = _done(client)
            began_s = time.perf_counter()
            beside.append(_overwrite(client))
            built.append((_done(client) - before) / (time.perf_counter() - began_s))
            [job] = [each for each in client.admin.jobs.list() if each.state == "running"]
            client.admin.jobs.pause(job.job_id)
            kept.append(_overwrite(client))
            client.drop_index(TABLE, f"by_sensor_{turn}")
        began_s = time.perf_counter()
        client.create_index(TABLE, Index("by_sensor", ["sensor"]))
        took_s = time.perf_counter() - began_s
    return [
        Measurement("overwrites beside a build", median(beside), "puts", "without an index", median(alone), 0.8),
        Measurement("the same, its build paused", median(kept), "puts", "without an index", median(alone)),
        Measurement("build beside them", median(built), "rows"),
        Measurement("build with nobody beside it", ROWS / took_s, "rows"),
    ]


def _row(i: int, value: float) -> dict[str, Any]:
    return {"id": i, "sensor": f"sensor-{i % 977}", "value": value, "note": None}


def _done(client: Client) -> int:
    """Return the rows that the running builds have done."""
    return sum(job.done for job in client.admin.jobs.list() if job.state == "running")


def _overwrite(client: Client) -> float:
    """Return puts a second, of many threads of one client."""
    done = [0] * CALLERS
    table = client.table(TABLE)
    until_s = time.perf_counter() + TURN_S

    def put(caller: int) -> None:
        i = caller
        while time.perf_counter() < until_s:
            table.put(_row(i * 7_919 % ROWS, float(i)))
            i += CALLERS
            done[caller] += 1

    threads = [threading.Thread(target=put, args=(caller,)) for caller in range(CALLERS)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    return sum(done) / TURN_S


if __name__ == "__main__":
    show(TITLE, settings(), run(), Console())
