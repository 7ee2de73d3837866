"""The leader is killed in the middle of a bulk load: every row is there once, and the loader need not know."""

from __future__ import annotations

import pytest

from cortado.store.client import Client, Index
from support.cluster import Cluster

pytestmark = pytest.mark.process

ROWS = 20_000
CHUNK_ROWS = 200
ROW = {
    "type": "record",
    "name": "Row",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "name", "type": "string"},
        {"name": "text", "type": "string"},
    ],
}


@pytest.mark.parametrize("mode", ["upsert", "insert"])
def test_a_bulk_load_over_a_killed_leader_loses_and_doubles_nothing(three_nodes: Cluster, mode: str) -> None:
    name = f"bulk-{mode}"
    killed: list[str] = []

    def kill_in_the_middle(rows: int) -> None:
        if rows >= ROWS // 4 and not killed:
            killed.append(three_nodes.leader())
            three_nodes.kill(*killed)

    with Client(three_nodes.endpoints, timeout_s=60) as client:
        client.create_database(name)
        client.schemas.register(f"{name}.rows", ROW)
        indexes = [Index("by_name", ["name"], unique=True)]
        client.create_table(f"{name}.rows", ["id"], indexes=indexes)
        table = client.table(f"{name}.rows")
        rows = ({"id": number, "name": f"n{number}", "text": "t" * 100} for number in range(ROWS))
        result = table.put_many(rows, mode=mode, chunk_rows=CHUNK_ROWS, progress=kill_in_the_middle)  # type: ignore[arg-type]
        assert len(killed) == 1
        assert (result.written, list(result.errors)) == (ROWS, [])
        assert [found.value["id"] for found in table.scan()] == list(range(ROWS))
        report = client.verify_indexes(f"{name}.rows")
        assert (report.rows_checked, report.entries_checked, report.problems) == (ROWS, ROWS, ())
    three_nodes.mend()
