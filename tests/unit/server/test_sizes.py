"""How much tables, indexes and databases have stored, against a look at every item."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from cortado.errors import NotFound
from cortado.store.client import Client, Index, Size
from cortado.store.engine.interface import Engine, Space
from cortado.store.keys.keyspace import database_range, index_prefix, prefix_range, row_prefix
from cortado.store.observe.stored_sizes import StoredSizes
from cortado.store.server import size_sampling, sizes_service
from support.engines import open_lmdb
from support.memory_engine import MemoryEngine
from support.served_node import Served, served_node

FIELDS = [{"name": "id", "type": "long"}, {"name": "code", "type": "long"}, {"name": "t", "type": "string"}]
SCHEMA = json.dumps({"type": "record", "name": "R", "fields": FIELDS})


@pytest.fixture(params=["pages", "items"])
def served(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Served]:
    engine: Engine = open_lmdb(tmp_path / "data") if request.param == "pages" else MemoryEngine()
    with served_node(engine) as served:
        yield served


@pytest.fixture
def client(served: Served) -> Iterator[Client]:
    with Client(served.endpoint) as client:
        client.create_database("shop")
        for name in ("shop.a", "shop.b"):
            client.schemas.register(name, SCHEMA)
            client.create_table(name, ["id"], indexes=[Index("by_code", ["code"])])
        yield client


def row(number: int, size: int = 50) -> dict[str, object]:
    return {"id": number, "code": number, "t": "x" * size}


def stored_bytes(served: Served, start: bytes, end: bytes) -> int:
    async def caught_up() -> None:
        await served.node.meta.reads.caught_up()

    served.call(caught_up())
    with served.node.process.engine.read() as transaction:
        page = transaction.page(Space.DATA, start, end, max_items=10**7, max_bytes=10**10)
    return sum(map(len, page.keys)) + sum(map(len, page.values))


def test_of_few_rows_numbers_are_exact(served: Served, client: Client) -> None:
    table = client.table("shop.a")
    table.put_many(row(number, size) for number, size in enumerate(random.Random(3).choices((0, 40, 6_000), k=300)))
    table.put_many(row(number) for number in range(50))  # Versions, and no rows.
    for number in range(20):
        table.delete(number)
    a, b = client.admin.sizes.tables("shop")
    table_id = client.describe("shop.a").table_id
    rows = Size(280, False, stored_bytes(served, *prefix_range(row_prefix(table_id))))
    entries = Size(280, False, stored_bytes(served, *prefix_range(index_prefix(table_id, 1))))
    assert (a.full_name, a.rows, a.indexes) == ("shop.a", rows, {"by_code": entries})
    assert a.bytes == rows.bytes + entries.bytes
    assert b.rows == Size(0, False, 0)
    assert client.admin.sizes.table("shop.a") == a
    client.table("shop.b").put(row(1))
    (shop,) = client.admin.sizes.databases()
    assert (shop.name, shop.tables) == ("shop", 2)
    assert shop.rows == Size(281, False, stored_bytes(served, *database_range(table_id >> 16)))


def test_what_expires_is_counted_about(client: Client) -> None:
    client.table("shop.a").put(row(1), expires=timedelta(minutes=1))
    size = client.admin.sizes.table("shop.a").rows
    assert (size.count, size.is_estimated) == (1, True)
    assert not client.admin.sizes.table("shop.b").rows.is_estimated


def test_of_many_rows_some_pages_tell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sizes_service, "LEAVES_MAX", 40)
    with served_node(open_lmdb(tmp_path / "data")) as served, Client(served.endpoint) as client:
        client.create_database("shop")
        client.schemas.register("shop.a", SCHEMA)
        client.create_table("shop.a", ["id"], indexes=[Index("by_code", ["code"])])
        table = client.table("shop.a")
        table.put_many(row(number) for number in range(20_000))
        table.put_many(row(number) for number in range(0, 20_000, 2))
        size = client.admin.sizes.table("shop.a")
        assert size.rows.is_estimated
        assert size.rows.count == pytest.approx(20_000, rel=0.25)
        actual = stored_bytes(served, *prefix_range(row_prefix(client.describe("shop.a").table_id)))
        assert size.rows.bytes == pytest.approx(actual, rel=0.25)
        (shop,) = client.admin.sizes.databases()
        assert shop.rows.is_estimated
        assert shop.rows.count == pytest.approx(20_000, rel=0.4)


def test_lists_come_in_pages_and_a_table_that_is_not_there_is_not_found(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sizes_service, "PAGE_ITEMS_MAX", 1)
    client.create_database("other")
    assert [each.full_name for each in client.admin.sizes.tables()] == ["shop.a", "shop.b"]
    assert [(each.name, each.tables) for each in client.admin.sizes.databases()] == [("other", 0), ("shop", 2)]
    with pytest.raises(NotFound):
        client.admin.sizes.table("shop.c")
    with pytest.raises(NotFound):
        client.admin.sizes.tables("none")


def test_the_sampler_knows_the_largest_tables_and_looks_again_where_something_was_applied(
    served: Served, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(size_sampling, "TABLES_MAX", 1)
    client.table("shop.a").put_many(row(number) for number in range(30))
    client.table("shop.b").put(row(1))
    sampler = size_sampling.SizeSampler(served.node)

    def measured() -> StoredSizes:
        async def measure() -> None:
            await served.node.meta.reads.caught_up()
            await sampler.measure_all()

        served.call(measure())
        return sampler.sizes

    found = measured()
    if isinstance(served.node.process.engine, MemoryEngine):
        assert found == StoredSizes(), "every item would be read"
        return
    a, b = client.admin.sizes.tables("shop")
    assert found.tables == {"shop.a": (30, a.bytes)}
    assert found.databases == {"shop": (31, a.bytes + b.bytes)}
    before = found.tables
    assert measured().tables is before
    client.table("shop.a").put(row(30))
    assert measured().tables["shop.a"][0] == 31
