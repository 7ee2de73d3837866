"""Bulk loads whose client dies in the middle, and that are begun again: every row is there once, indexes and all."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cortado.errors import ConditionFailed
from cortado.store.client import Client, Index
from support.server_process import ServerProcess, running_server, wait_until

pytestmark = pytest.mark.process

ROWS = 3_000
CHUNK_ROWS = 100
ROW = {
    "type": "record",
    "name": "Row",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "name", "type": "string"},
        {"name": "run", "type": "long"},
    ],
}
LOADER = """
import sys
from cortado.store.client import Client

endpoint, rows, chunk_rows, run = sys.argv[1], *map(int, sys.argv[2:])
with Client(endpoint, timeout_s=30) as client:
    documents = ({"id": n, "name": f"n{n}", "run": run} for n in range(rows))
    result = client.table("d.rows").put_many(
        documents, mode="insert", chunk_rows=chunk_rows, progress=lambda done: print(done, flush=True)
    )
"""


def documents(run: int) -> Iterator[dict[str, Any]]:
    return ({"id": number, "name": f"n{number}", "run": run} for number in range(ROWS))


def cut_load(server: ServerProcess, run: int, after_rows: int) -> int:
    """Start a load in another process, and kill that once so many rows are acknowledged; how many were."""
    command = [sys.executable, "-c", LOADER, server.endpoint, str(ROWS), str(CHUNK_ROWS), str(run)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as loader:
        assert loader.stdout is not None
        acknowledged = 0
        for line in loader.stdout:
            acknowledged = int(line)
            if acknowledged >= after_rows:
                break
        os.kill(loader.pid, signal.SIGKILL)
        for line in loader.stdout:
            acknowledged = int(line)
    return acknowledged


def test_a_load_whose_client_was_killed_is_finished_by_another(tmp_path: Path) -> None:
    with running_server(tmp_path / "data") as server, Client(server.endpoint, timeout_s=30) as client:
        client.create_database("d")
        client.schemas.register("d.rows", ROW)
        indexes = [Index("by_name", ["name"], unique=True), Index("by_run", ["run"])]
        client.create_table("d.rows", ["id"], indexes=indexes)
        table = client.table("d.rows")

        acknowledged = cut_load(server, run=1, after_rows=1_000)
        # The server has finished the rest of it when nothing is in flight any more.
        wait_until(
            lambda: all(queue.count == 0 for queue in client.status().queues if queue.name != "calls"), "it ended"
        )
        there = [found.value for found in table.scan()]
        assert len(there) >= acknowledged
        # Whole chunks, in their order: the sent rows are a prefix of all.
        assert [row["id"] for row in there] == list(range(len(there)))
        assert len(there) % CHUNK_ROWS == 0
        assert client.verify_indexes("d.rows").problems == ()

        server.kill()
        server.start()
        result = table.put_many(documents(run=2), mode="insert", chunk_rows=CHUNK_ROWS)
        assert (result.written, result.refused) == (ROWS - len(there), len(there))
        assert {type(error.error) for error in result.errors} <= {ConditionFailed}
        rows = [found.value for found in table.scan()]
        assert rows == [*there, *list(documents(run=2))[len(there) :]]
        assert len(list(table.scan(index="by_run", prefix=(1,)))) == len(there)
        report = client.verify_indexes("d.rows")
        assert (report.rows_checked, report.problems) == (ROWS, ())
        # And again, as an upsert: nothing changes but the run.
        assert table.put_many(documents(run=3), chunk_rows=CHUNK_ROWS).written == ROWS
        assert [found.value for found in table.scan()] == list(documents(run=3))
        assert client.verify_indexes("d.rows").problems == ()
