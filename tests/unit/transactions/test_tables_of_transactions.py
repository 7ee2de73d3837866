"""T15: the meaning of a table's name is part of a transaction's reads, and of its writes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from cortado.errors import InvalidArgument, NotFound, TooLarge, WriteConflict
from cortado.store.catalog.catalog import Catalog
from cortado.store.catalog.declare import alter_table, create_table
from cortado.store.catalog.drop import drop_table, rename_table, truncate_table, undrop_table
from cortado.store.clock.timestamp import Timestamp
from cortado.store.kv.operations import KvPut
from cortado.store.mvcc.evaluation import Evaluation
from cortado.store.mvcc.mutations import Mutations
from cortado.store.mvcc.seen import Seen
from cortado.store.tables.operations import JsonDocument, Put
from cortado.store.transactions import footprint as footprints
from cortado.store.transactions.ahead import Ahead
from cortado.store.transactions.commit import evaluate_commit
from cortado.store.transactions.footprint import Footprint, TableRead, join_footprints
from cortado.store.transactions.operations import Commit, OnPairs, Operation
from cortado.store.transactions.reading import TransactionReads
from support.table_world import DATABASE, EngineStore, TableWorld, part

Change = Callable[[Catalog, Timestamp], Evaluation]

SCHEMA = {"type": "record", "name": "Item", "fields": [{"name": "id", "type": "long"}]}
ELSEWHERE: list[Operation] = [OnPairs("log", KvPut(b"k", b"v"))]
HERE: list[Operation] = [Put(DATABASE, "items", JsonDocument('{"id": 1}'))]


def made(catalog: Catalog, ts: Timestamp) -> Evaluation:
    return create_table(catalog, DATABASE, "items", key=[part("id")], commit_ts=ts)


def dropped(catalog: Catalog, ts: Timestamp) -> Evaluation:
    return drop_table(catalog, DATABASE, "items", commit_ts=ts)


def undropped(catalog: Catalog, ts: Timestamp) -> Evaluation:
    return undrop_table(catalog, DATABASE, "items", commit_ts=ts)


def truncated(catalog: Catalog, ts: Timestamp) -> Evaluation:
    return truncate_table(catalog, DATABASE, "items", commit_ts=ts)


def renamed(catalog: Catalog, ts: Timestamp) -> Evaluation:
    return rename_table(catalog, DATABASE, "items", "other", commit_ts=ts)


def altered(catalog: Catalog, _ts: Timestamp) -> Evaluation:
    return alter_table(catalog, DATABASE, "items", retention_ms=1_000)


@pytest.fixture
def world() -> TableWorld:
    world = TableWorld(EngineStore())
    world.create("items", SCHEMA, ["id"])
    return world


def change(world: TableWorld, *changes: Change) -> Timestamp:
    for each in changes:
        ts, _ = world.store.write(lambda reader, ts, each=each: each(world.catalog(reader), ts))
    return ts


def commit(
    world: TableWorld, operations: Sequence[Operation], start: Timestamp | None, footprint: Footprint | None = None
) -> None:
    """Commit at once, and evaluated ahead of its turn: both say the same."""
    asked = Commit(list(operations), start, footprint=footprint or Footprint())
    refusal = None
    try:
        evaluate_commit(world.store.snapshot(), world.store.now.next(), world.catalog(), asked)
    except (WriteConflict, NotFound) as refused:
        refusal = refused
    seen = Seen()
    assert isinstance(world.store, EngineStore)
    reader = world.store.store.snapshot(world.store.now, seen)
    ahead = Ahead(reader, seen, world.catalog(reader), start, footprint or Footprint())
    _ = ahead.take(operations)
    ahead.finish()
    if refusal is None:
        ahead.evaluate(reader, world.store.now.next(), None)
        return
    with pytest.raises(type(refusal)) as again:
        ahead.evaluate(reader, world.store.now.next(), None)
    assert str(again.value) == str(refusal)
    raise refusal


def read(world: TableWorld) -> Footprint:
    """Return the footprint of a read of the table, as it comes back from a client."""
    reads = TransactionReads(world.store, Mutations())  # type: ignore[arg-type]
    reads.rest_on(world.catalog().table(DATABASE, "items"))
    return join_footprints([reads.take_footprint().encode()])


CONFLICTS: dict[str, list[Change]] = {
    "dropped": [dropped],
    "truncated": [truncated],
    "renamed": [renamed],
    "another one of its name": [dropped, made],
    "another one in place of a renamed one": [renamed, made],
}


@pytest.mark.parametrize("changes", CONFLICTS.values(), ids=CONFLICTS)
@pytest.mark.parametrize("how", ["reads", "writes"])
def test_a_name_that_means_another_table_or_none_is_a_conflict(
    world: TableWorld, changes: list[Change], how: str
) -> None:
    start, footprint = world.store.now, read(world)
    changed_ts = change(world, *changes)
    with pytest.raises(WriteConflict) as refused:
        commit(world, *(ELSEWHERE, start, footprint) if how == "reads" else (HERE, start, None))
    found = refused.value
    assert (found.key, found.kind, found.start_ts) == (f"{DATABASE}.items", "table", str(start))
    assert found.conflict_ts == str(changed_ts)
    assert str(found) == f"table {DATABASE}.items was dropped, made or named at {changed_ts}, after {start}"


def test_what_is_the_same_table_still_is_no_conflict(world: TableWorld) -> None:
    start, footprint = world.store.now, read(world)
    change(world, dropped, undropped)
    commit(world, ELSEWHERE, start, footprint)
    start = world.store.now
    change(world, altered)
    commit(world, ELSEWHERE, start, footprint)
    commit(world, HERE, start, footprint)


def test_a_table_that_came_after_the_start_is_a_conflict_to_write_and_none_for_who_began_later(
    world: TableWorld,
) -> None:
    change(world, dropped)
    start = world.store.now
    change(world, made)
    with pytest.raises(WriteConflict, match="was dropped, made or named"):
        commit(world, HERE, start)
    commit(world, HERE, world.store.now)
    commit(world, HERE, None)


def test_a_table_that_was_not_there_at_the_start_either_is_not_found(world: TableWorld) -> None:
    change(world, dropped)
    start = world.store.now
    change(world, truncated_other(world))
    for since in (start, None):
        with pytest.raises(NotFound, match=rf"no table {DATABASE}\.items"):
            commit(world, HERE, since)
    missing: list[Operation] = [Put("nowhere", "items", JsonDocument('{"id": 1}'))]
    with pytest.raises(NotFound, match="no database nowhere"):
        commit(world, missing, start)


def truncated_other(world: TableWorld) -> Change:
    world.create("elsewhere", SCHEMA, ["id"])
    return lambda catalog, ts: truncate_table(catalog, DATABASE, "elsewhere", commit_ts=ts)


def test_without_a_start_the_newest_table_is_meant(world: TableWorld) -> None:
    change(world, truncated)
    commit(world, HERE, None)


def test_a_footprint_carries_each_table_once() -> None:
    table = TableRead("shop", "items", 0x10002)
    encoded = Footprint(tables=[table, TableRead("shop", "orders", 7)]).encode()
    joined = join_footprints([encoded, encoded, Footprint().encode()])
    assert joined == Footprint([], [], [table, TableRead("shop", "orders", 7)])
    assert bool(Footprint(tables=[table]))


@pytest.mark.parametrize("name", ["", "shop", "shop.", "a b.c", "shop.a.b", "s" * 65 + ".t"])
def test_a_footprint_with_a_name_that_no_table_has_is_refused(name: str) -> None:
    database, _, table = name.partition(".")
    encoded = Footprint(tables=[TableRead(database, table, 1)]).encode()
    with pytest.raises(InvalidArgument, match="is no footprint that a read returned"):
        join_footprints([encoded])


def test_a_footprint_of_too_many_tables_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    encoded = [Footprint(tables=[TableRead("shop", f"t{i}", i)]).encode() for i in range(3)]
    monkeypatch.setattr(footprints, "TABLES_MAX", 2)
    with pytest.raises(TooLarge, match="a transaction may rest on 2 tables"):
        join_footprints(encoded)


def test_a_slice_of_a_read_names_the_table_once(world: TableWorld) -> None:
    reads: Any = TransactionReads(world.store, Mutations())  # type: ignore[arg-type]
    reads.rest_on(world.catalog().table(DATABASE, "items"))
    assert len(reads.take_footprint().tables) == 1
    assert reads.take_footprint().tables == []
