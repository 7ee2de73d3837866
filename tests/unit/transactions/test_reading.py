"""Footprints of single reads, by name: their required and their forbidden parts."""

from __future__ import annotations

import pytest

from cortado.store.clock.timestamp import Timestamp
from cortado.store.mvcc.transacting import Origin
from cortado.store.tables.scan import Scan, plan_scan, scan_step
from cortado.store.transactions.commit import Staged, evaluate_commit
from cortado.store.transactions.footprint import Footprint
from cortado.store.transactions.operations import Commit
from cortado.store.transactions.reading import TransactionReads
from support.table_world import DATABASE, EngineStore, TableWorld, budget
from support.transaction_twin import TABLE, Asked, key_of, new_world, to_operation

A, B, C = ("a", 0), ("b", 0), ("c", 0)


@pytest.fixture
def world() -> TableWorld:
    return new_world(EngineStore())


def put(key: tuple[str, int], **fields: object) -> Asked:
    document = {"owner": key[0], "number": key[1], "code": None, "serial": None, "count": 0, "place": None, **fields}
    return "put", document, None


def commit(world: TableWorld, *asked: Asked) -> Timestamp:
    operations = [to_operation(world, each) for each in asked]
    return world.store.write(lambda reader, ts: evaluate_commit(reader, ts, world.catalog(reader), Commit(operations)))[
        0
    ]


def scanned(world: TableWorld, *own: Asked, **options: object) -> tuple[list[tuple[str, int]], Footprint]:
    """Return the keys of the rows that a scan finds, and its footprint."""
    now = world.store.now
    staged = Staged(Origin(world.store.snapshot()), world.catalog())
    staged.run([to_operation(world, each) for each in own])
    reads = TransactionReads(world.store, staged.mutations(), staged.added)
    plan = plan_scan(world.catalog(), Scan(DATABASE, TABLE, **options), now)  # type: ignore[arg-type]
    page = scan_step(reads, plan, None, budget())
    assert page.next is None
    return list(map(key_of, world.documents(plan, page))), reads.take_footprint()


def is_changed(world: TableWorld, footprint: Footprint, since: Timestamp) -> bool:
    return world.store.snapshot().changed_since(footprint.keys, footprint.ranges, since) is not None


def test_t6_a_limited_scan_rests_on_nothing_behind_its_last_row(world: TableWorld) -> None:
    began = commit(world, put(A), put(C))
    found, footprint = scanned(world, limit=1)
    assert found == [A]
    commit(world, put(B))
    assert not is_changed(world, footprint, began)
    commit(world, put(("Z", 0)))
    assert is_changed(world, footprint, began)


def test_t6_a_limited_scan_that_goes_down_rests_on_nothing_below_its_last_row(world: TableWorld) -> None:
    began = commit(world, put(A), put(C))
    found, footprint = scanned(world, limit=1, reverse=True)
    assert found == [C]
    commit(world, put(B))
    assert not is_changed(world, footprint, began)
    commit(world, put(("d", 0)))
    assert is_changed(world, footprint, began)


def test_a_scan_that_its_own_writes_end_rests_on_nothing_behind_them(world: TableWorld) -> None:
    began = commit(world, put(A), put(C))
    found, footprint = scanned(world, put(B), limit=2)
    assert found == [A, B]
    # Numbers descend in the key, so this one comes right behind.
    commit(world, put(("b", -1)), put(C, count=7))
    assert not is_changed(world, footprint, began)
    commit(world, put(("b", 1)))
    assert is_changed(world, footprint, began)


def test_t13_a_scan_by_index_rests_on_each_row_that_it_looked_at_also_where_the_filter_left_it_out(
    world: TableWorld,
) -> None:
    began = commit(world, put(A, count=1), put(B, count=1), put(C, count=2))
    found, footprint = scanned(world, index="count", prefix=[1], filter="code = 'p'")
    assert found == []
    commit(world, put(C, count=2, code="q"))
    assert not is_changed(world, footprint, began)
    # Its entry in the index stays as it is.
    commit(world, put(B, count=1, code="p"))
    assert is_changed(world, footprint, began)


def test_t13_a_scan_by_index_rests_on_the_entries_between_which_it_looked_and_on_no_others(world: TableWorld) -> None:
    began = commit(world, put(A, count=1), put(C, count=2))
    found, footprint = scanned(world, index="count", prefix=[1])
    assert found == [A]
    commit(world, put(("d", 0), count=2))
    assert not is_changed(world, footprint, began)
    commit(world, put(B, count=1))
    assert is_changed(world, footprint, began)


def test_a_scan_by_index_rests_on_the_rows_that_its_own_adds_move_in_there(world: TableWorld) -> None:
    began = commit(world, put(A, count=1), put(B, count=7))
    add = "add", A, "count", 1, None, None
    found, footprint = scanned(world, add, index="count", prefix=[3])
    assert found == []
    commit(world, put(B, count=8))
    assert not is_changed(world, footprint, began)
    # The add comes to three now.
    commit(world, ("update", A, {"count": 2}, None))
    assert scanned(world, add, index="count", prefix=[3])[0] == [A]
    assert is_changed(world, footprint, began)


def test_a_scan_by_another_index_does_not_rest_on_what_is_added_to(world: TableWorld) -> None:
    began = commit(world, put(A, count=1))
    _, footprint = scanned(world, ("add", A, "count", 1, None, None), index="code", prefix=["p"])
    commit(world, ("update", A, {"count": 2}, None))
    assert not is_changed(world, footprint, began)
