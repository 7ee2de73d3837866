"""Drops of namespaces: facts found beside the loop, and changes until their turn."""

from __future__ import annotations

from typing import Any

import pytest

from cortado.errors import AlreadyExists, InvalidArgument, NotFound, ResourceExhausted, TooLarge
from cortado.store.catalog import dropped as module
from cortado.store.catalog.catalog import GENERATIONS_MAX, Catalog, CatalogCache
from cortado.store.catalog.descriptors import DropKind
from cortado.store.catalog.dropped import begin_clearing
from cortado.store.catalog.namespaces import Looked, drop_namespace, dropped_generation, undrop_namespace
from cortado.store.catalog.stored import generation_of
from cortado.store.keys.keyspace import kv_key, kv_range, namespaces_range, pair_of
from cortado.store.kv.namespaces import list_namespaces
from cortado.store.kv.operations import KvDelete, KvPut, evaluate_delete, evaluate_put, get
from cortado.store.mvcc.reader import VALIDATION
from support.catalog_store import CatalogStore


class Pairs(CatalogStore):
    def put(self, key: bytes, namespace: str = "n") -> None:
        self.store.write(lambda reader, ts: evaluate_put(reader, ts, namespace, KvPut(key, b"v")))

    def delete(self, key: bytes) -> None:
        self.store.write(lambda reader, _: evaluate_delete(reader, "n", KvDelete(key)))

    def has(self, key: bytes) -> bool:
        return get(self.store.snapshot(), "n", key) is not None

    def looked(self, namespace: str = "n") -> Looked:
        return Looked.through(self.store.snapshot(), namespace)

    def drop(self, looked: Looked | None = None) -> Any:
        return self.write_at(drop_namespace, "n", looked or self.looked()).dropped

    def undrop(self, looked: Looked | None = None, number: int = 0) -> None:
        self.write(undrop_namespace, "n", looked or self.looked(), number=number)

    def names(self) -> list[str]:
        return list_namespaces(self.store, self.store.now, namespaces_range()[0], 1_000, lambda: False)[0]


@pytest.fixture
def pairs() -> Pairs:
    pairs = Pairs()
    pairs.put(b"a")
    return pairs


def test_a_drop_leaves_a_record_of_the_pairs_that_there_were(pairs: Pairs) -> None:
    first = pairs.drop()
    assert (first.number, first.what.kind, first.what.name) == (1, DropKind.NAMESPACE, "n")
    assert first.what.ranges == (kv_range("n"),)
    pairs.put(b"b")
    second = pairs.drop()
    assert second.what.ranges == (kv_range("n", generation=1),)
    assert [dropped_generation(each) for each in pairs.catalog().dropped()] == [0, 1]
    assert generation_of(pairs.store.snapshot(), "n") == 2
    pairs.undrop(number=1)
    assert pairs.has(b"a") and not pairs.has(b"b")
    assert pairs.catalog().dropped() == [second]


def test_numbers_of_other_drops_are_no_generation_of_this_one(pairs: Pairs) -> None:
    pairs.put(b"a", "other")
    pairs.write_at(drop_namespace, "other", pairs.looked("other"))
    assert pairs.drop().number == generation_of(pairs.store.snapshot(), "n") == 2


def test_a_catalogue_keeps_generations_in_mind_for_as_long_as_they_last(pairs: Pairs) -> None:
    cache, seen = CatalogCache(), []
    for change in (lambda: None, pairs.drop, lambda: pairs.put(b"b"), lambda: pairs.delete(b"b"), pairs.undrop):
        change()
        reader = pairs.store.snapshot()
        seen.append((reader, generation_of(reader, "n")))
        for then, generation in seen:
            assert [Catalog(then, cache).generation_of("n") for _ in range(2)] == [generation] * 2
    assert [generation for _, generation in seen] == [0, 1, 1, 1, 0]


def test_a_catalogue_keeps_so_many_generations_in_mind_and_no_more(pairs: Pairs) -> None:
    cache = CatalogCache()
    catalog = Catalog(pairs.store.snapshot(), cache)
    for number in range(2 * GENERATIONS_MAX + 1):
        assert catalog.generation_of(f"n{number}") == 0
        assert len(cache.state_at(catalog.changed_ts).generations) <= GENERATIONS_MAX


@pytest.mark.parametrize("namespace", ["", "-n", "a b", "n" * 65])
def test_what_is_no_name_is_refused(pairs: Pairs, namespace: str) -> None:
    looked = pairs.looked()
    for command in (
        lambda: pairs.write_at(drop_namespace, namespace, looked),
        lambda: pairs.write(undrop_namespace, namespace, looked),
    ):
        with pytest.raises(InvalidArgument, match="namespace"):
            command()


def test_there_may_be_so_many_records_and_no_more(pairs: Pairs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "DROPPED_MAX", 1)
    pairs.drop()
    pairs.put(b"b")
    with pytest.raises(TooLarge):
        pairs.drop()
    assert pairs.has(b"b")


def test_what_is_being_cleared_stays_away(pairs: Pairs) -> None:
    pairs.drop()
    pairs.apply(lambda catalog: begin_clearing(catalog, 1))
    with pytest.raises(InvalidArgument, match="its grace is over, and its pairs are being cleared"):
        pairs.undrop()


# --- between a look and the turn -------------------------------------------------------------------------------------


def test_a_pair_that_was_seen_and_is_there_is_enough(pairs: Pairs) -> None:
    looked = pairs.looked()
    pairs.put(b"b")
    pairs.drop(looked)


def test_a_pair_that_came_since_counts(pairs: Pairs) -> None:
    pairs.delete(b"a")
    looked = pairs.looked()
    assert looked.first is None
    with pytest.raises(NotFound):
        pairs.drop(looked)
    pairs.put(b"b")
    pairs.drop(looked)
    looked = pairs.looked()
    pairs.put(b"c")
    with pytest.raises(AlreadyExists):
        pairs.undrop(looked)


def test_where_nothing_is_sure_it_is_looked_again(pairs: Pairs) -> None:
    looked = pairs.looked()
    pairs.delete(b"a")
    for command in (lambda: pairs.drop(looked), lambda: pairs.drop(Looked(looked.at, 7, None))):
        with pytest.raises(ResourceExhausted) as again:
            command()
        assert again.value.resource == VALIDATION
    with pytest.raises(NotFound):
        pairs.drop()


def test_a_look_at_another_generation_tells_nothing(pairs: Pairs) -> None:
    looked = pairs.looked()
    pairs.drop()
    with pytest.raises(ResourceExhausted):
        pairs.undrop(looked)
    with pytest.raises(ResourceExhausted):
        pairs.drop(looked)
    pairs.undrop()


# --- which there are -------------------------------------------------------------------------------------------------


def test_a_list_goes_on_where_it_was_cut(pairs: Pairs) -> None:
    for number in range(5):
        pairs.put(b"k", f"name-{number}")
    names, place = list[str](), namespaces_range()[0]
    while True:
        some, rest = list_namespaces(pairs.store, pairs.store.now, place, 2, lambda: False)
        names += some
        if rest is None:
            break
        assert len(some) == 2
        place = rest
    assert names == pairs.names() == ["n", *(f"name-{number}" for number in range(5))]
    assert list_namespaces(pairs.store, pairs.store.now, place, 2, lambda: True) == ([], place)


def test_a_namespace_is_there_while_its_generation_has_a_pair(pairs: Pairs) -> None:
    pairs.drop()
    assert pairs.names() == []
    pairs.put(b"b")
    assert pairs.names() == ["n"]
    pairs.delete(b"b")
    assert pairs.names() == []
    pairs.undrop()
    assert pairs.names() == ["n"]


def test_the_pair_of_a_key() -> None:
    assert pair_of(kv_key("n", b"\0u", 7)) == ("n", 7, b"\0u")
