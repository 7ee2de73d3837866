"""Table check finds every way in which rows and entries can differ, and nothing in a sound table."""

from __future__ import annotations

import pytest

from cortado.store.keys.types import LogicalKey
from cortado.store.mvcc.evaluation import Evaluation
from cortado.store.mvcc.mutations import Mutations
from cortado.store.tables import indexes
from cortado.store.tables.check import CheckPass, check_step, plan_check
from cortado.store.tables.repair import evaluate_repair
from cortado.store.tables.rows import encode_payload, key_values
from support.orders import ORDER_V2, address, create_orders, order
from support.table_world import DATABASE, WORLDS, TableWorld


@pytest.fixture(params=WORLDS)
def world(request: pytest.FixtureRequest) -> TableWorld:
    world = TableWorld(request.param())
    create_orders(world)
    world.bulk("orders", [order("ann", n, code=f"c{n}", address=address("Rome")) for n in range(10)])
    world.register("orders", ORDER_V2)
    world.put("orders", {**order("ann", 3, code="c3"), "note": "new"})
    return world


def write(world: TableWorld, key: bytes, payload: bytes | None) -> None:
    """Write as no evaluation would."""
    world.store.write(lambda reader, ts: Evaluation(Mutations([LogicalKey(key)], [payload]), None))


def row_key(world: TableWorld, number: int) -> bytes:
    view = world.view("orders")
    return view.row_key(view.encode_key(("ann", number)))


def entry(world: TableWorld, number: int, name: str) -> indexes.IndexEntry:
    view = world.view("orders")
    document = world.get("orders", "ann", number)
    assert document is not None
    index = view.table.index(name)
    assert index is not None
    values = key_values(document, index.parts)
    return indexes.entry_of(view.table, index, values, view.encode_key(("ann", number)))


def found(world: TableWorld, rows: int = 1_000) -> list[tuple[str, str, str]]:
    return [(each.index, each.kind.value, each.key) for each in world.check("orders", rows)]


def test_a_sound_table_has_no_problems_and_all_is_counted(world: TableWorld) -> None:
    assert found(world) == []
    plan = plan_check(world.catalog(), DATABASE, "orders", world.store.now)
    page = check_step(world.store, plan, None, 3)
    rows, entries, steps = page.rows_checked, page.entries_checked, 1
    while page.next is not None:
        page = check_step(world.store, plan, page.next, 3)
        assert page.rows_checked + page.entries_checked <= 4
        rows, entries, steps = rows + page.rows_checked, entries + page.entries_checked, steps + 1
    assert (rows, entries) == (10, 30)
    assert steps >= 14


def test_entries_are_asked_for_their_rows_only_where_something_was_found(world: TableWorld) -> None:
    def passes() -> set[CheckPass]:
        plan = plan_check(world.catalog(), DATABASE, "orders", world.store.now)
        page, seen = check_step(world.store, plan, None, 3), {CheckPass.ROWS}
        while page.next is not None:
            seen.add(page.next.stage)
            page = check_step(world.store, plan, page.next, 3)
        return seen

    assert passes() == {CheckPass.ROWS, CheckPass.COUNT}
    write(world, row_key(world, 5), None)
    assert passes() == set(CheckPass)


def test_one_entry_too_few_and_one_too_many_do_not_make_up_for_each_other(world: TableWorld) -> None:
    wrong = entry(world, 5, "by_city").key
    write(world, wrong, None)
    write(world, entry(world, 5, "by_code").key[:-2] + b"x\x00\x01", world.view("orders").encode_key(("ann", 5)))
    assert sorted((name, kind) for name, kind, _ in found(world)) == [
        ("by_city", "MISSING_ENTRY"),
        ("by_code", "STRAY_ENTRY"),
    ]


@pytest.mark.parametrize("name", ["by_code", "by_city", "by_status_amount"])
def test_a_missing_entry_is_found(world: TableWorld, name: str) -> None:
    write(world, entry(world, 5, name).key, None)
    assert found(world) == found(world, 2) == [(name, "MISSING_ENTRY", "shop.orders('ann', 5)")]


def test_an_entry_of_a_deleted_row_is_found(world: TableWorld) -> None:
    write(world, row_key(world, 5), None)
    assert [(name, kind) for name, kind, _ in found(world)] == [
        ("by_code", "STRAY_ENTRY"),
        ("by_city", "STRAY_ENTRY"),
        ("by_status_amount", "STRAY_ENTRY"),
    ]


def test_an_entry_with_other_values_is_found(world: TableWorld) -> None:
    view = world.view("orders")
    document = world.avro("orders", {**order("ann", 5, code="other", address=address("Rome")), "note": "x"})
    write(world, row_key(world, 5), encode_payload(view.newest_id, document.body))
    (missing, stray) = world.check("orders")
    assert (missing.index, missing.kind, missing.key) == ("by_code", "MISSING_ENTRY", "shop.orders('ann', 5)")
    assert (stray.index, stray.kind) == ("by_code", "STRAY_ENTRY")
    assert "shop.orders('ann', 5) has other values" in stray.message


def test_an_entry_that_names_another_row_is_found(world: TableWorld) -> None:
    other = world.view("orders").encode_key(("ann", 6))
    write(world, entry(world, 5, "by_code").key, other)
    assert [(name, kind) for name, kind, _ in found(world)] == [("by_code", "WRONG_ENTRY"), ("by_code", "STRAY_ENTRY")]


def test_a_malformed_entry_is_found(world: TableWorld) -> None:
    write(world, entry(world, 5, "by_code").key, b"\x05")
    kinds = [(name, kind) for name, kind, _ in found(world)]
    assert kinds == [("by_code", "WRONG_ENTRY"), ("by_code", "STRAY_ENTRY")]


def test_an_entry_of_an_unknown_index_is_found(world: TableWorld) -> None:
    key = entry(world, 5, "by_code").key
    write(world, key[:6] + (77).to_bytes(4) + key[10:], b"")
    assert [(name, kind) for name, kind, _ in found(world)] == [("", "STRAY_ENTRY")]


@pytest.mark.parametrize("damage", [b"", b"\0\0", b"\0\0\0\x63body", b"\0\0\0\x01\xff\xff"])
def test_a_damaged_row_is_found_and_does_not_hide_others(world: TableWorld, damage: bytes) -> None:
    write(world, row_key(world, 5), damage)
    write(world, entry(world, 2, "by_city").key, None)
    assert found(world) == [
        ("", "DAMAGED_ROW", "shop.orders('ann', 5)"),
        ("by_city", "MISSING_ENTRY", "shop.orders('ann', 2)"),
    ]


def test_a_row_under_another_key_is_found(world: TableWorld) -> None:
    view = world.view("orders")
    document = world.avro("orders", {**order("ann", 99, code="c5", address=address("Rome")), "note": "x"})
    write(world, row_key(world, 5), encode_payload(view.newest_id, document.body))
    problems = world.check("orders")
    (wrong,) = [each for each in problems if each.kind == "WRONG_KEY"]
    assert wrong.key == "shop.orders('ann', 5)"
    assert wrong.message == "its document has the key shop.orders('ann', 99)"


# --- repair --------------------------------------------------------------------------------------------------------


def test_what_is_missing_is_put_and_what_is_stray_is_deleted(world: TableWorld) -> None:
    other = world.view("orders").encode_key(("ann", 6))
    write(world, entry(world, 2, "by_city").key, None)
    write(world, entry(world, 5, "by_code").key, other)
    unknown = entry(world, 5, "by_code").key
    write(world, unknown[:6] + (77).to_bytes(4) + unknown[10:], b"")
    write(world, entry(world, 7, "by_code").key[:-2] + b"x\x00\x01", world.view("orders").encode_key(("ann", 7)))
    write(world, entry(world, 8, "by_code").key, b"\x05")
    write(world, row_key(world, 9), None)
    rows = world.scan("orders")
    done = world.repair("orders")
    assert (done.put, done.deleted, done.left) == (3, 5, 0)
    assert world.check("orders") == []
    assert world.scan("orders") == rows
    assert world.repair("orders").put == 0


def test_two_rows_with_one_unique_value_are_left_to_somebody_who_decides(world: TableWorld) -> None:
    view = world.view("orders")
    document = world.avro("orders", {**order("ann", 5, code="c6", address=address("Rome")), "note": "x"})
    write(world, row_key(world, 5), encode_payload(view.newest_id, document.body))
    done = world.repair("orders")
    # Row 5 has lost the entry of its old code, and row 6 keeps its own.
    assert (done.put, done.deleted, done.left) == (0, 1, 1)
    assert found(world) == [("by_code", "WRONG_ENTRY", "shop.orders('ann', 5)")]


def test_what_was_written_since_the_check_is_looked_at_as_it_is_now(world: TableWorld) -> None:
    write(world, entry(world, 2, "by_city").key, None)
    write(world, entry(world, 3, "by_city").key, None)
    suspects = [each.suspect for each in world.check("orders") if each.suspect is not None]
    world.delete("orders", ("ann", 2))
    world.update("orders", ("ann", 3), {"code": "c333"})
    world.store.write(lambda reader, ts: evaluate_repair(reader, world.catalog(reader), DATABASE, "orders", suspects))
    assert world.check("orders") == []


def test_a_row_that_cannot_be_read_is_left_and_its_entries_stay(world: TableWorld) -> None:
    write(world, row_key(world, 5), b"\0\0\0\x01\xff\xff")
    write(world, entry(world, 2, "by_city").key, None)
    done = world.repair("orders")
    assert (done.put, done.deleted) == (1, 0)
    assert found(world) == [("", "DAMAGED_ROW", "shop.orders('ann', 5)")]
