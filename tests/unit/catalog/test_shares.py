"""No principal fills a bound on the contents of the catalogue: each may have as many as it leaves free."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from cortado.errors import ResourceExhausted, TooLarge
from cortado.schema.compatibility import CompatibilityMode
from cortado.store.auth.owners import ANYBODY, Asker
from cortado.store.catalog import declare, dropped, registry
from cortado.store.catalog.declare import PartDeclaration, TableTimes, alter_table, create_database
from cortado.store.catalog.drop import drop_table, truncate_table, undrop_table
from cortado.store.catalog.drop_database import drop_database, undrop_database
from cortado.store.catalog.dropped import forget
from cortado.store.catalog.registry import register_schema, set_compatibility
from cortado.store.catalog.shares import count_dropped_by, count_tables_of
from support.catalog_store import FLIGHT, CatalogStore

LIMIT = 16
MALLORY, ALICE, BOB = (Asker(name, is_open=False, operates=False) for name in ("mallory", "alice", "bob"))


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> CatalogStore:
    for module, name in (
        (declare, "TABLES_MAX"),
        (declare, "DATABASES_MAX"),
        (declare, "RETENTIONS_MAX"),
        (dropped, "DROPPED_MAX"),
        (registry, "SUBJECTS_MAX"),
    ):
        monkeypatch.setattr(module, name, LIMIT)
    store = CatalogStore()
    store.write(create_database, "air")
    store.register("flights", FLIGHT)
    return store


def table(store: CatalogStore, name: str, **more: Any) -> None:
    store.create_table("air", name, key=[PartDeclaration("carrier")], subject="flights", **more)


def drop_anew(store: CatalogStore, name: str) -> None:
    table(store, name)
    store.write_at(drop_table, "air", name)


MADE: dict[str, tuple[str, Callable[[CatalogStore, str], object]]] = {
    "databases": ("databases", lambda store, name: store.write(create_database, name)),
    "tables": ("tables", table),
    "retentions": (
        "tables with a retention of their own (dropped ones too)",
        lambda store, name: table(store, name, times=TableTimes(5_000)),
    ),
    "subjects with a version": ("subjects", lambda store, name: store.write(register_schema, name, FLIGHT)),
    "subjects with a mode": (
        "subjects",
        lambda store, name: store.write(set_compatibility, name, CompatibilityMode.FULL),
    ),
    "dropped": ("dropped things", drop_anew),
}


@pytest.mark.parametrize("what", MADE)
def test_a_principal_has_at_most_half_and_each_other_one_finds_a_place(
    store: CatalogStore, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    called, make = MADE[what]
    if what == "retentions":
        monkeypatch.setattr(declare, "TABLES_MAX", 10 * LIMIT)
    found = {}
    for asker in (MALLORY, ALICE, BOB):
        store.asker = asker
        found[asker.principal] = 0
        refused = rf"principal {asker.principal} has \d of \d+ {re.escape(called)}: the \d+ left are for others"
        with pytest.raises(ResourceExhausted, match=refused) as full:
            for number in range(LIMIT + 1):
                make(store, f"{asker.principal}{number}")
                found[asker.principal] += 1
        assert full.value.limit == LIMIT
    assert found == {"mallory": 8, "alice": 4, "bob": 2}
    # While roles are off no caller has a share, and the bound is the only one.
    store.asker = ANYBODY
    with pytest.raises(TooLarge):
        for number in range(LIMIT + 1):
            make(store, f"anybody{number}")


def test_what_goes_gives_its_place_back(store: CatalogStore) -> None:
    store.asker = MALLORY
    for number in range(LIMIT // 2):
        table(store, f"t{number}")
        store.write_at(truncate_table, "air", f"t{number}")
    with pytest.raises(ResourceExhausted, match="principal mallory has 8 of 8 tables"):
        table(store, "more")
    with pytest.raises(ResourceExhausted, match="principal mallory has 8 of 8 dropped things: the 8 left"):
        store.write_at(drop_table, "air", "t0")
    assert count_dropped_by(store.catalog(), "mallory") == 8
    store.asker = ANYBODY  # The collector, once the grace is over.
    for record in store.catalog().dropped()[:3]:
        store.apply(lambda catalog, number=record.number: forget(catalog, number))  # type: ignore[misc]
    assert count_dropped_by(store.catalog(), "mallory") == 5
    store.asker = MALLORY
    store.write_at(drop_table, "air", "t0")
    table(store, "more")


def test_what_comes_back_counts_for_the_principal_that_made_it(store: CatalogStore) -> None:
    store.asker = MALLORY
    for number in range(3):
        drop_anew(store, f"gone{number}")
    for number in range(LIMIT // 2):
        table(store, f"t{number}")
    store.asker = ALICE
    with pytest.raises(ResourceExhausted, match="principal mallory has 8 of 8 tables"):
        store.write_at(undrop_table, "air", "gone0")
    table(store, "hers")
    with pytest.raises(
        ResourceExhausted, match="principal alice has 0 of 3 dropped things: 10 more would take the share of others"
    ):
        store.write_at(drop_database, "air", cascade=True)
    store.asker = BOB
    table(store, "his")
    store.write_at(drop_table, "air", "his")
    assert (count_dropped_by(store.catalog(), "alice"), count_dropped_by(store.catalog(), "bob")) == (0, 1)


def test_a_database_comes_back_with_tables_of_several_principals(store: CatalogStore) -> None:
    for asker in (MALLORY, ALICE):
        store.asker = asker
        for number in range(2):
            table(store, f"{asker.principal}{number}")
    store.asker = ANYBODY
    store.write_at(drop_database, "air", cascade=True)
    store.asker = BOB
    store.write_at(undrop_database, "air")
    assert count_tables_of(store.catalog(), "mallory") == count_tables_of(store.catalog(), "alice") == 2


def test_a_retention_counts_for_the_tables_principal_whoever_sets_it(store: CatalogStore) -> None:
    store.asker = MALLORY
    for number in range(LIMIT // 2):
        table(store, f"t{number}")
    store.asker = ALICE
    table(store, "hers")
    for number in range(LIMIT // 2):
        store.write(alter_table, "air", f"t{number}", retention_ms=5_000)
    store.write(alter_table, "air", "hers", retention_ms=5_000)
