"""Documents read before their write is evaluated: the same outcome, and read anew if the table has changed since."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import pytest

from cortado.errors import InvalidDocument, NotFound
from cortado.store.tables import stage
from cortado.store.tables.operations import JsonDocument, Put
from cortado.store.tables.prepared import PreparedDocument
from cortado.store.tables.write import prepare_documents
from cortado.store.transactions.commit import evaluate_commit
from cortado.store.transactions.operations import Commit
from support.orders import ORDER_V2, create_orders, order
from support.table_world import DATABASE, TableWorld


@pytest.fixture
def world() -> TableWorld:
    world = TableWorld()
    create_orders(world)
    return world


def prepared(world: TableWorld, puts: list[Put]) -> dict[int, PreparedDocument | None]:
    documents = [(each.database, each.table, each.document) for each in puts]
    return dict(enumerate(prepare_documents(world.catalog(), documents)))


def batch(world: TableWorld, puts: list[Put], ready: dict[int, PreparedDocument | None]) -> Any:
    return world.store.write(lambda reader, ts: evaluate_commit(reader, ts, world.catalog(reader), Commit(puts), ready))


def test_prepared_documents_are_written_without_being_read_again(world: TableWorld) -> None:
    puts = [Put(DATABASE, "orders", world.avro("orders", order("ann", n))) for n in range(5)]
    ready = prepared(world, puts)
    with patch.object(stage, "read_input", side_effect=AssertionError("read again")):
        batch(world, puts, ready)
    assert [world.get("orders", "ann", n) for n in range(5)] == [order("ann", n) for n in range(5)]
    assert world.check("orders") == []


def test_a_refused_document_is_named_by_its_place_and_those_after_it_are_not_read(world: TableWorld) -> None:
    puts = [Put(DATABASE, "orders", JsonDocument(text)) for text in ('{"customer": "a", "number": 1}', "{}", "{}")]
    ready = prepared(world, puts)
    assert list(ready) == [0, 1]
    with pytest.raises(InvalidDocument) as refused:
        batch(world, puts, ready)
    assert refused.value.field == "operations[1].customer"
    assert world.get("orders", "a", 1) is None


def test_after_another_version_was_registered_a_document_is_read_anew(world: TableWorld) -> None:
    puts = [Put(DATABASE, "orders", JsonDocument('{"customer": "ann", "number": 1}'))]
    ready = prepared(world, puts)
    world.register("orders", ORDER_V2)
    batch(world, puts, ready)
    assert world.get("orders", "ann", 1) == {**order("ann", 1), "note": "none"}


def test_an_unknown_table_is_said_when_the_write_is_evaluated(world: TableWorld) -> None:
    puts = [Put(DATABASE, "nix", JsonDocument("{}"))]
    ready = prepared(world, puts)
    assert ready == {0: None}
    with pytest.raises(NotFound, match="no table"):
        batch(world, puts, ready)
