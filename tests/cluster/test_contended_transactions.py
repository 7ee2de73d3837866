"""Many callers whose transactions all want one row, or one pair: each of them commits."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor

import pytest

from cortado.store.client import AsyncClient, AsyncTransaction, Client, Transaction
from support.server_process import PATIENCE_S, ServerProcess

pytestmark = pytest.mark.process

ROW = {"type": "record", "name": "Row", "fields": [{"name": "id", "type": "int"}, {"name": "count", "type": "long"}]}


def test_tasks_on_one_row_all_commit(server: ServerProcess, client: Client, database: str) -> None:
    client.schemas.register(f"{database}.rows", ROW)
    client.create_table(f"{database}.rows", ["id"])
    rows = client.table(f"{database}.rows")
    rows.put({"id": 1, "count": 0})

    async def count_one(txn: AsyncTransaction) -> None:
        own = txn.table(f"{database}.rows")
        found = await own.get(1)
        assert found is not None
        await own.update(1, {"count": found.value["count"] + 1})

    async def main() -> None:
        async with AsyncClient(server.endpoint, timeout_s=PATIENCE_S) as many:

            async def count() -> None:
                for _ in range(5):
                    await many.run(count_one)

            await asyncio.gather(*(count() for _ in range(64)))

    asyncio.run(main())
    found = rows.get(1)
    assert found is not None
    assert found.value["count"] == 64 * 5


@pytest.mark.parametrize("clients", [1, 8])
def test_threads_on_one_pair_all_commit(server: ServerProcess, client: Client, database: str, clients: int) -> None:
    client.kv(database).put(b"k", b"0")

    def count_one(txn: Transaction) -> None:
        kv = txn.kv(database)
        found = kv.get(b"k")
        assert found is not None
        kv.put(b"k", b"%d" % (int(found.value) + 1))

    opened = [Client(server.endpoint, timeout_s=PATIENCE_S) for _ in range(clients)]

    def count(number: int) -> None:
        for _ in range(25):
            opened[number % clients].run(count_one)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(count, range(8)))
    for each in opened:
        each.close()
    found = client.kv(database).get(b"k")
    assert found is not None
    assert found.value == b"200"
