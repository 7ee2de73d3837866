"""A scrub finds no difference if replicas have collected different old versions, and finds each one in visible
versions."""

from __future__ import annotations

from unittest.mock import patch

from hypothesis import given
from hypothesis import strategies as st

from cortado.store.client.scrub import Scrub
from cortado.store.client.scrub_findings import Finding
from cortado.store.clock.timestamp import Timestamp
from cortado.store.engine.interface import Space
from cortado.store.keys.keyspace import kv_key
from cortado.store.mvcc.versions import Item, encode_versions
from cortado.store.server.inspection import verify
from support.inspected import Replica
from support.memory_engine import MemoryEngine

UP_TO = Timestamp(0, 1_000, 6)
VERSIONS = st.dictionaries(
    st.tuples(st.integers(0, 4), st.integers(0, 9)), st.none() | st.sampled_from([b"", b"a", b"b"]), max_size=40
)
"""Payloads, None for a delete, by key and time."""


def _items(versions: dict[tuple[int, int], bytes | None]) -> dict[tuple[int, int], Item]:
    return {
        (key, at): encode_versions([kv_key("n", b"k%d" % key)], [payload], Timestamp(0, 1_000, at))[0]
        for (key, at), payload in versions.items()
    }


def _found_by_reads(versions: dict[tuple[int, int], bytes | None]) -> set[tuple[int, int]]:
    """Return, as the dumb twin, each key's newest version up to the time, but for deletes."""
    newest = {key: at for key, at in sorted(versions) if at <= UP_TO.logical}
    return {(key, at) for key, at in newest.items() if versions[key, at] is not None}


def _replica(name: str, items: list[Item]) -> Replica:
    engine = MemoryEngine()
    with engine.write() as txn:
        txn.put_many(Space.DATA, sorted(items))
    return Replica(name, engine, Replica("any").log)


def _scrubbed(piece_items: int, *replicas: Replica) -> list[Finding]:
    with patch.object(verify, "ITEMS_DEFAULT", piece_items):
        return Scrub(replicas, up_to=UP_TO).run().findings


@given(VERSIONS, st.data(), st.integers(1, 6))
def test_what_reads_do_not_find_may_be_collected_anywhere(
    versions: dict[tuple[int, int], bytes | None], data: st.DataObject, piece_items: int
) -> None:
    items, found = _items(versions), _found_by_reads(versions)
    # Any part of the versions older than the found one, and of deletes, may be gone: but a hidden version goes before
    # the delete that hides it.
    replicas = []
    for name in ("n1", "n2", "n3"):
        kept = dict(items)
        for key in {key for key, _ in items}:
            old = sorted(at for k, at in items if k == key and at <= UP_TO.logical and (k, at) not in found)
            for at in old[: data.draw(st.integers(0, len(old)))]:
                del kept[key, at]
        replicas.append(_replica(name, list(kept.values())))
    assert _scrubbed(piece_items, *replicas) == []


@given(VERSIONS.filter(_found_by_reads), st.data(), st.integers(1, 6))
def test_what_reads_find_is_named_where_it_is_missing_or_another(
    versions: dict[tuple[int, int], bytes | None], data: st.DataObject, piece_items: int
) -> None:
    items = _items(versions)
    key, at = data.draw(st.sampled_from(sorted(_found_by_reads(versions))))
    wrong = dict(items)
    if data.draw(st.booleans()):
        del wrong[key, at]
        kind = "MISSING"
    else:
        wrong[key, at] = _items({(key, at): b"another"})[key, at]
        kind = "DIFFERENT"
    replicas = [_replica("n1", [*items.values()]), _replica("n2", [*wrong.values()]), _replica("n3", [*items.values()])]
    findings = _scrubbed(piece_items, *replicas)
    assert ("n2", kind, items[key, at][0]) in [(each.replica, each.kind, each.key) for each in findings]
    assert {each.replica for each in findings} == {"n2"}


@given(VERSIONS, st.integers(1, 6))
def test_a_lost_delete_shows_where_it_hid_something(
    versions: dict[tuple[int, int], bytes | None], piece_items: int
) -> None:
    items, found = _items(versions), _found_by_reads(versions)
    without = {place: item for place, item in items.items() if versions[place] is not None}
    shown = _found_by_reads({place: versions[place] for place in without})
    replicas = [
        _replica("n1", [*items.values()]),
        _replica("n2", [*without.values()]),
        _replica("n3", [*items.values()]),
    ]
    findings = _scrubbed(piece_items, *replicas)
    assert {each.key for each in findings} == {items[place][0] for place in found ^ shown}
