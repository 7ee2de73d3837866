"""A scan takes memory only for data under way, at the node and at the client, however large the table is."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from cortado import Client
from support.memory import MIB, peak_of
from support.server_process import running_server

pytestmark = pytest.mark.process

ROWS = 40_000
ROW_BYTES = 4_000
FIELDS = [{"name": "id", "type": "long"}, {"name": "text", "type": "string"}]


def test_a_scan_of_a_large_table_holds_no_tenth_of_it(tmp_path: Path) -> None:
    with (
        running_server(tmp_path / "data", "--limit.in-flight-bytes-max", "256MiB") as server,
        Client(server.endpoint, timeout_s=60) as client,
    ):
        client.create_database("d")
        client.schemas.register("d.t", {"type": "record", "name": "R", "fields": FIELDS})
        client.create_table("d.t", ["id"])
        text = "x" * ROW_BYTES
        table = client.table("d.t")
        assert table.put_many({"id": n, "text": text} for n in range(ROWS)).written == ROWS
        then = client.now()

        def scanned(upper: int | None) -> int:
            # A client holds some batches at a time: of the usual size they would be much of this table.
            return sum(batch.num_rows for batch in table.scan_arrow(end=upper, batch_rows=500, at=then))

        # The memory that both keep after a first scan: threads, buffers, and the pools of their allocators.
        assert scanned(ROWS // 4) == ROWS // 4
        with peak_of(server.pid) as node, peak_of(os.getpid()) as own:
            assert scanned(None) == ROWS
    tenth_mib = ROWS * ROW_BYTES / 10 / MIB
    assert node.mib < tenth_mib, f"the node took {node.mib:.0f} MiB more"
    assert own.mib < tenth_mib, f"the client took {own.mib:.0f} MiB more"
