"""The leader is killed in the middle of an import: every row is there once, and the importing caller need not know."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from cortado.store.client import Client, Index
from cortado.store.transfer.progress import Progress
from cortado.store.transfer.run_import import ImportRequest, run_import
from support.cluster import Cluster

pytestmark = pytest.mark.process

ROWS = 12_000
ROW = {
    "type": "record",
    "name": "Row",
    "fields": [{"name": "id", "type": "long"}, {"name": "name", "type": "string"}],
}


def test_an_import_over_a_killed_leader_loses_and_doubles_nothing(three_nodes: Cluster, tmp_path: Path) -> None:
    file = tmp_path / "rows.jsonl"
    file.write_text("".join(json.dumps({"id": n, "name": f"n{n}"}) + "\n" for n in range(ROWS)))
    killed: list[str] = []

    def kill_in_the_middle(step: Progress) -> None:
        if step.rows >= ROWS // 3 and not killed:
            killed.append(three_nodes.leader())
            three_nodes.kill(*killed)

    with Client(three_nodes.endpoints, timeout_s=60) as client:
        client.create_database("killed-import")
        name = "killed-import.rows"
        client.schemas.register(name, ROW)
        client.create_table(name, ["id"], indexes=[Index("by_name", ["name"], unique=True)])
        # Many segments, so that the leader goes in the middle of one, with others before and after.
        request = ImportRequest(name, (str(file),), mode="insert", bad_max=2_000, checkpoint=tmp_path / "checkpoint")
        loaded = run_import(client, request, stdin=io.BytesIO(), tell=lambda bad: None, report=kill_in_the_middle)
        assert len(killed) == 1
        assert (loaded.written, loaded.refused) == (ROWS, 0)
        report = client.verify_indexes(name)
        assert (report.rows_checked, report.entries_checked, report.problems) == (ROWS, ROWS, ())
    three_nodes.mend()
