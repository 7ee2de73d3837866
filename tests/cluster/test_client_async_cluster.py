"""The asyncio client on three real nodes, while one is killed: no write is lost, applied twice, or claimed in error."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
import uvloop

from cortado.store.client import AsyncClient
from support.cluster import Cluster

pytestmark = pytest.mark.process

ROW = {"type": "record", "name": "Row", "fields": [{"name": "id", "type": "long"}, {"name": "text", "type": "string"}]}
TASKS = 16


def row(number: int) -> dict[str, Any]:
    return {"id": number, "text": "x" * 200}


LOOPS = [asyncio.run, uvloop.run]


@pytest.mark.parametrize("run", LOOPS, ids=["asyncio", "uvloop"])
def test_tasks_go_on_at_the_next_leader_and_every_acknowledged_write_is_there(three_nodes: Cluster, run: Any) -> None:
    async def main() -> None:
        async with AsyncClient(three_nodes.endpoints, timeout_s=30) as client:
            kv = client.kv("async-tasks")
            written = [0] * TASKS

            async def write(number: int, enough: asyncio.Event) -> None:
                while not enough.is_set():
                    await kv.put(b"%d" % number, b"%d" % (written[number] + 1))
                    written[number] += 1

            enough = asyncio.Event()
            async with asyncio.timeout(60), asyncio.TaskGroup() as group:
                for number in range(TASKS):
                    group.create_task(write(number, enough))
                while min(written) < 5:
                    await asyncio.sleep(0.01)
                await asyncio.to_thread(three_nodes.kill, three_nodes.leader())
                before = list(written)
                while any(now < then + 5 for now, then in zip(written, before, strict=True)):
                    await asyncio.sleep(0.01)
                enough.set()
            held = {pair.key: int(pair.value) async for pair in kv.scan()}
            assert held == {b"%d" % number: count for number, count in enumerate(written)}

    run(main())


@pytest.mark.parametrize("run", LOOPS, ids=["asyncio", "uvloop"])
def test_a_bulk_load_and_a_scan_outlive_the_leader(three_nodes: Cluster, run: Any) -> None:
    rows, database = 6_000, f"bulk_on_{run.__module__.partition('.')[0]}"

    async def source() -> AsyncIterator[dict[str, Any]]:
        for number in range(rows):
            if number == rows // 2:
                await asyncio.to_thread(three_nodes.kill, three_nodes.leader())
            yield row(number)

    async def main() -> None:
        async with AsyncClient(three_nodes.endpoints, timeout_s=30) as client:
            await client.create_database(database)
            await client.schemas.register(f"{database}.rows", ROW)
            await client.create_table(f"{database}.rows", ["id"])
            table = client.table(f"{database}.rows")
            result = await table.put_many(source(), mode="insert", chunk_rows=250)
            assert (result.written, result.refused) == (rows, 0)
            await asyncio.to_thread(three_nodes.mend)
            seen: list[int] = []
            async for document in table.scan():
                seen.append(document.value["id"])
                if len(seen) == 10:
                    await table.update(rows - 1, {"text": "changed"})
                    await asyncio.to_thread(three_nodes.kill, three_nodes.leader())
            assert seen == list(range(rows))
            assert document.value["text"] == row(0)["text"]

    run(main())
