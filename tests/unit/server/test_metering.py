"""One node's knowledge of quotas: those that are applied, and how much is stored, by pages of the tree or by items."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cortado.store.client import Client
from cortado.store.engine.interface import Engine, Space
from cortado.store.keys.keyspace import database_range, namespace_range, staged_range
from cortado.store.mvcc.evaluation import Evaluation
from cortado.store.mvcc.mutations import Mutations
from cortado.store.quotas.quota import Target
from cortado.store.quotas.stored import QUOTAS_KEY
from support.engines import open_lmdb
from support.memory_engine import MemoryEngine
from support.served_node import Served, served_node

SCHEMA = '{"type": "record", "name": "R", "fields": [{"name": "id", "type": "long"}, {"name": "t", "type": "string"}]}'
SHOP, CARTS = Target("database:shop"), Target("namespace:carts")


@pytest.fixture(params=["pages", "items"])
def served(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Served]:
    engine: Engine = open_lmdb(tmp_path / "data") if request.param == "pages" else MemoryEngine()
    with served_node(engine) as made:
        yield made


def _used(served: Served, target: Target) -> int | None:
    """Measure now, and return the used bytes."""

    async def measure() -> None:
        replica = served.node.meta
        await replica.reads.applied_to(replica.read_ts())
        served.metering.look()
        await served.metering.measure_all()

    served.call(measure())
    return served.metering.meters.by_target[target].used_bytes


def _stored(served: Served, *ranges: tuple[bytes, bytes]) -> int:
    """Return the bytes stored in these ranges, counted."""
    with served.node.process.engine.read() as transaction:
        pages = [transaction.page(Space.DATA, *each, max_items=10_000, max_bytes=1 << 30) for each in ranges]
    return sum(sum(map(len, page.keys)) + sum(map(len, page.values)) for page in pages)


def test_what_is_measured_is_what_is_stored(served: Served) -> None:
    with Client(served.endpoint) as client:
        for name in ("shop", "other"):
            client.create_database(name)
            client.schemas.register(f"{name}.rows", SCHEMA)
            client.create_table(f"{name}.rows", key=["id"])
            client.table(f"{name}.rows").put_many({"id": number, "t": "x" * 100} for number in range(300))
        for number in range(50):
            client.kv("carts").put(b"k%d" % (number % 10), bytes(1_000))
        client.kv("carts-too").put(b"k", bytes(1_000))
        client.admin.quotas.set(SHOP, stored_bytes=1 << 20)
        client.admin.quotas.set(CARTS, stored_bytes=1 << 20)
        rows = database_range(1)
        assert _used(served, SHOP) == _stored(served, rows, staged_range(*rows)) > 300 * 100
        # All of its versions, and no others.
        assert _used(served, CARTS) == _stored(served, namespace_range("carts")) > 50 * 1_000
        before = _used(served, SHOP)
        assert before is not None
        for number in range(300):
            client.table("shop.rows").delete(number)
        after = _used(served, SHOP)
        assert after is not None
        # A delete is a version, too.
        assert after > before
        client.drop_database("shop", cascade=True)
        assert _used(served, SHOP) == 0
        client.create_database("shop")
        assert _used(served, SHOP) == 0


def test_quotas_that_cannot_be_read_stay_as_they_were(served: Served) -> None:
    def damaged() -> Callable[..., Evaluation]:
        mutations = Mutations()
        mutations.put(QUOTAS_KEY, b"\xff\xff")
        return lambda _reader, _ts: Evaluation(mutations, None)

    with Client(served.endpoint) as client:
        client.admin.quotas.set(CARTS, stored_bytes=10)
        assert _used(served, CARTS) == 0
        served.call(served.node.meta.write(damaged()))
        client.kv("carts").put(b"k", bytes(1_000))
        assert _used(served, CARTS) == _stored(served, namespace_range("carts"))
        assert served.metering.meters.any_full
