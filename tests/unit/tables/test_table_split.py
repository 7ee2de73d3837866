"""A table's key range in parts: adjacent, in order, all of it."""

from __future__ import annotations

import pytest

from cortado.errors import InvalidArgument
from cortado.store.tables.scan import scan_range
from cortado.store.tables.split import check_parts, table_parts
from support.orders import create_orders, order
from support.table_world import EngineStore, TableWorld


@pytest.mark.parametrize("wanted", [1, 2, 3, 7])
@pytest.mark.parametrize("lower", [None, ("b",), ("c", 5)])
def test_parts_together_are_the_range(wanted: int, lower: tuple[object, ...] | None) -> None:
    store = EngineStore()
    world = TableWorld(store)
    create_orders(world)
    world.bulk("orders", [order(customer, n) for customer in "abcd" for n in range(25)])
    view = world.view("orders")
    start, end = scan_range(view.table, None, lower)  # type: ignore[arg-type]
    split = store.store.split(start, end, wanted, store.now)
    while not split.step(10):
        pass
    parts = table_parts(view, split.parts(), lower)  # type: ignore[arg-type]
    assert len(parts) == wanted
    assert (parts[0].lower, parts[-1].upper) == (lower, None)
    scans = [world.scan("orders", lower=part.lower, upper=part.upper) for part in parts]
    assert [each for rows in scans for each in rows] == world.scan("orders", lower=lower)
    assert [len(rows) for rows in scans] == [part.rows for part in parts]
    assert max(map(len, scans)) - min(map(len, scans)) <= 2


@pytest.mark.parametrize("parts", [0, -1, 4097])
def test_the_number_of_parts_is_bounded(parts: int) -> None:
    with pytest.raises(InvalidArgument, match="parts: must be between 1 and 4096"):
        check_parts(parts)
