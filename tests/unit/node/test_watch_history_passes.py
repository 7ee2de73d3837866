"""Finding changes among the versions of a range: whole, in order, and in a bounded memory."""

from __future__ import annotations

import random

import pytest

from cortado.errors import DataLoss, SnapshotTooOld, Unavailable
from cortado.raft.log import Entry
from cortado.store.clock.timestamp import ZERO, Timestamp
from cortado.store.engine.interface import Space
from cortado.store.keys.keyspace import LOGICAL_KEY_BYTES_MAX, kv_range
from cortado.store.keys.types import LogicalKey
from cortado.store.mvcc.damage import Damage
from cortado.store.mvcc.evaluation import Removal
from cortado.store.mvcc.mutations import Mutations
from cortado.store.mvcc.safepoints import Safepoints
from cortado.store.mvcc.store import VersionStore
from cortado.store.mvcc.versions import PAYLOAD, Item, encode_version, suffix_of
from cortado.store.replica.apply.state_machine import StateMachine
from cortado.store.replica.feed import history, index, indexed
from cortado.store.replica.feed.history import HistoryPass, next_key, read_changes, read_previous
from cortado.store.replica.feed.index import IndexWriter, first_above
from cortado.store.replica.feed.oldest import OldestChanges, Window
from cortado.store.replica.feed.order import place_of
from cortado.store.replica.group_range import META_GROUP
from cortado.store.replica.write.log_entry import NO_REMOVAL, LogEntry
from support.memory_engine import MemoryEngine
from support.nodes import key

ALL = kv_range("test")


def at(number: int) -> Timestamp:
    return Timestamp(0, number, 0)


class Versions:
    """An engine with versions in it, and the list of them."""

    def __init__(self) -> None:
        self.engine = MemoryEngine()
        self.store = VersionStore(self.engine)
        self.items: list[Item] = []

    def commit(self, number: int, **values: bytes | None) -> None:
        mutations = Mutations()
        for name, value in values.items():
            if value is None:
                mutations.delete(key(name))
            else:
                mutations.put(key(name), value)
            self.items.append(encode_version(key(name), value, at(number)))
        with self.engine.write() as txn:
            self.store.apply(txn, mutations, at(number))

    def search(self, after: Timestamp, until: Timestamp, events_max: int = 1_000) -> HistoryPass:
        return HistoryPass(self.engine, self.store, *ALL, after, until, events_max=events_max, group_id=1)

    def keys(self, after: Timestamp, until: Timestamp) -> list[bytes]:
        """Return the keys that a pass should find, in order."""
        places = {place_of(engine_key): engine_key for engine_key, _ in self.items}
        return [places[each] for each in sorted(places) if bytes(after) < each[:12] <= bytes(until)]


def done(search: HistoryPass) -> None:
    while not search.step():
        pass


def windows(versions: Versions, after: Timestamp, until: Timestamp, events_max: int) -> list[Window]:
    found = []
    while after < until:
        search = versions.search(after, until, events_max)
        while not search.step():
            assert len(search._versions._found.found) <= 2 * events_max + history.KEYS_PER_STEP
        found.append(search.window())
        assert after < found[-1].until <= until
        after = found[-1].until
    return found


@pytest.mark.parametrize("seed", range(12))
def test_windows_hold_every_change_once_and_in_order(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "KEYS_PER_STEP", 5)
    chosen = random.Random(seed)
    versions = Versions()
    for number in range(1, 40):
        names = chosen.sample("abcdefgh", chosen.choice([1, 2, 6]))
        versions.commit(number, **{name: None if chosen.random() < 0.3 else b"v" for name in names})
    after, until = sorted((at(chosen.randrange(41)), at(chosen.randrange(41))))
    found = windows(versions, after, until, events_max=4)
    assert [each for window in found for each in window.keys] == versions.keys(after, until)
    # A window ends between commits, and is no larger than it may be unless one commit is.
    assert all(len(window.keys) <= 4 or len({each[-12:] for each in window.keys}) == 1 for window in found)


def test_a_commit_that_is_larger_than_a_window_is_put_in_order_a_few_times(monkeypatch: pytest.MonkeyPatch) -> None:
    sorted_times = 0
    keep_oldest = OldestChanges._keep_oldest

    def counting(self: OldestChanges) -> None:
        nonlocal sorted_times
        sorted_times += 1
        keep_oldest(self)

    monkeypatch.setattr(OldestChanges, "_keep_oldest", counting)
    found = OldestChanges(ZERO, at(9), 4)
    suffix = suffix_of(at(5))
    for number in range(1_000):
        found.add([b"%04d" % number + suffix])
    found.add([b"later" + suffix_of(at(6))])
    assert found.window() == Window([b"%04d" % number + suffix for number in range(1_000)], at(5))
    assert sorted_times < 12


def test_a_window_that_holds_everything_reaches_the_end() -> None:
    versions = Versions()
    versions.commit(3, a=b"1")
    assert windows(versions, at(1), at(9), 10) == [Window(versions.keys(at(1), at(9)), at(9))]


def test_a_small_window_of_a_large_range_is_read_from_the_index_alone() -> None:
    engine = MemoryEngine()
    store = VersionStore(engine)
    machine = StateMachine(engine, store, META_GROUP)
    state = machine.state
    for number in range(1, 60):
        items = [encode_version(key(f"{number} {name}"), b"v", at(number)) for name in "abc"]
        entry = LogEntry(state.index, state.term, at(number), at(number), items)
        state = machine.apply(state, [Entry(number, 1, entry)])
    search = HistoryPass(engine, store, *ALL, at(40), at(42), events_max=100, group_id=1)
    assert search.step()
    assert search.is_by_index
    assert search._versions._position == ALL[0]
    assert [each[-12:] for each in search.window().keys] == [suffix_of(at(ms)) for ms in (41, 41, 41, 42, 42, 42)]


def test_a_small_range_is_looked_through_where_much_was_changed_beside_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(indexed, "_ITEMS_PER_STEP", 2)
    engine = MemoryEngine()
    store = VersionStore(engine)
    machine = StateMachine(engine, store, META_GROUP)
    state = machine.state
    for number in range(1, 60):
        entry = LogEntry(state.index, state.term, at(number), at(number), [encode_version(key("b"), b"v", at(number))])
        state = machine.apply(state, [Entry(number, 1, entry)])
    search = HistoryPass(engine, store, key("c"), key("d"), ZERO, at(59), events_max=100, group_id=1)
    assert [search.step(), search.step()] == [False, True]
    assert not search.is_by_index
    assert search.window() == Window([], at(59))


def test_the_index_is_cut_below_the_safepoint_and_no_further(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index, "_CUT_ITEMS_RISEN", 15)
    monkeypatch.setattr(index, "_CUT_ITEMS", 2)
    engine = MemoryEngine()
    machine = StateMachine(engine, VersionStore(engine), META_GROUP)
    state = machine.state

    def apply(number: int, items: list[Item], removal: Removal = NO_REMOVAL) -> list[int]:
        nonlocal state
        entry = LogEntry(state.index, state.term, at(number), at(number), items, removal=removal)
        state = machine.apply(state, [Entry(number, 1, entry)])
        with engine.read() as txn:
            keys, _ = txn.keys(Space.CHANGES, b"", b"\xff", max_items=1_000)
        return [Timestamp.from_bytes(each[4:16]).wall_ms for each in keys]

    def put(number: int) -> list[Item]:
        return [encode_version(key("a"), b"v", at(number))]

    for number in range(1, 51):
        assert apply(number, put(number)) == list(range(1, number + 1))
    raised = Removal(safepoints=Safepoints(at(30)))
    assert apply(51, put(51), raised) == list(range(18, 52))
    # The next transactions cut the items that one transaction leaves.
    assert apply(52, put(52)) == list(range(22, 53))
    assert apply(53, []) == list(range(24, 53))
    for number in range(54, 60):
        left = apply(number, [])
    assert left == list(range(31, 53))


def test_a_stray_that_stands_first_does_not_keep_the_index_from_being_cut() -> None:
    engine = MemoryEngine()
    with engine.write() as txn:
        writer = IndexWriter(txn, 1, ZERO)
        for number in range(1, 5):
            writer.add(at(number), [encode_version(key("a"), b"v", at(number))], [], is_one=True)
        writer.finish(ZERO, has_risen=False)
        first, last = first_above(1, ZERO)[:4], first_above(1, at(9))
        (stray, *_), _ = txn.keys(Space.CHANGES, first, last, max_items=1)
        value = txn.get(Space.CHANGES, stray)
        assert value is not None
        txn.delete_range(Space.CHANGES, first, last)
        # As a turned bit leaves it in the place where it was: before all others.
        txn.put(Space.CHANGES, stray[:4] + b"\x7f" + stray[5:], value)
    with engine.write() as txn:
        IndexWriter(txn, 1, at(4)).finish(at(4), has_risen=True)
        assert txn.keys(Space.CHANGES, b"", b"\xff", max_items=9) == ([], True)


def test_history_that_was_collected_is_refused_by_name() -> None:
    versions = Versions()
    versions.commit(3, a=b"1")
    versions.store.safepoints = Safepoints(at(5))
    with pytest.raises(SnapshotTooOld) as refused:
        done(versions.search(at(4), at(9)))
    assert refused.value.safepoint == str(at(5))
    done(versions.search(at(5), at(9)))
    with pytest.raises(SnapshotTooOld):
        done(versions.search(ZERO, at(9)))


def test_nothing_is_read_while_the_state_is_replaced() -> None:
    versions = Versions()
    versions.store.unreadable = "a snapshot is being installed"
    with pytest.raises(Unavailable):
        done(versions.search(ZERO, at(9)))


def test_values_are_read_in_pieces() -> None:
    versions = Versions()
    versions.commit(3, a=b"x" * 100, b=b"y" * 100, c=b"z" * 100)
    keys = versions.keys(ZERO, at(9))
    assert read_changes(versions.engine, versions.store, keys, bytes_max=1) == versions.items[:1]
    assert read_changes(versions.engine, versions.store, keys, bytes_max=150) == versions.items[:2]
    assert read_changes(versions.engine, versions.store, keys, bytes_max=10_000) == versions.items


def test_a_change_that_is_gone_is_never_skipped() -> None:
    versions = Versions()
    versions.commit(3, a=b"1", b=b"2")
    keys = versions.keys(ZERO, at(9))
    with versions.engine.write() as txn:
        txn.delete(Space.DATA, keys[0])
    with pytest.raises(Unavailable):
        read_changes(versions.engine, versions.store, keys, bytes_max=10_000)


def test_damage_is_found_and_reported() -> None:
    versions = Versions()
    versions.commit(3, a=b"1")
    reported: list[Damage] = []
    versions.store.on_damage = reported.append
    (engine_key,) = versions.keys(ZERO, at(9))
    with versions.engine.write() as txn:
        txn.put(Space.DATA, engine_key, b"Pbad....")
    with pytest.raises(DataLoss):
        read_changes(versions.engine, versions.store, [engine_key], bytes_max=10_000)
    assert reported == [Damage.at(Space.DATA, engine_key)]


def doubted(versions: Versions, start: bytes, end: bytes) -> None:
    """Change a version between the two so that its key or timestamp is unknown."""
    versions.store.distrust(Damage(Space.DATA, start, end, "a turned key"))


def test_a_range_in_which_a_change_may_hide_is_data_loss_and_never_a_gap() -> None:
    versions = Versions()
    versions.commit(3, a=b"1", c=b"1", e=b"1")
    # As a search sees it if a bit of b@3's timestamp turned: nothing of it lies between 1 and 9.
    doubted(versions, key("b"), key("c"))
    with pytest.raises(DataLoss):
        done(versions.search(at(1), at(9)))
    beside = HistoryPass(versions.engine, versions.store, key("c"), ALL[1], at(1), at(9), events_max=10, group_id=1)
    done(beside)
    assert len(beside.window().keys) == 2


def test_a_change_that_a_search_misses_beside_a_stray_is_data_loss_and_not_asked_for_again() -> None:
    versions = Versions()
    versions.commit(3, a=b"1")
    keys = versions.keys(ZERO, at(9))
    with versions.engine.write() as txn:
        txn.delete(Space.DATA, keys[0])
    doubted(versions, b"", key("b"))
    with pytest.raises(DataLoss):
        read_changes(versions.engine, versions.store, keys, bytes_max=10_000)


def test_a_previous_value_that_may_hide_is_data_loss() -> None:
    versions = Versions()
    versions.commit(1, a=b"1")
    versions.commit(3, a=b"3", b=b"3")
    a1, a3, b3 = (item[0] for item in sorted(versions.items, key=lambda item: place_of(item[0])))
    items = {item[0]: item for item in versions.items}
    doubted(versions, next_key(a3), a1)
    with pytest.raises(DataLoss):
        read_previous(versions.engine, versions.store, [items[a3]], bytes_max=10_000)
    assert read_previous(versions.engine, versions.store, [items[b3]], bytes_max=10_000) == [None]


def test_the_previous_value_is_the_one_that_a_change_replaced() -> None:
    versions = Versions()
    versions.commit(1, a=b"1", b=b"1")
    versions.commit(2, a=None)
    versions.commit(3, a=b"3", b=b"3")
    by_place = sorted(versions.items, key=lambda item: place_of(item[0]))
    found = read_previous(versions.engine, versions.store, by_place, bytes_max=1_000)
    values = [None if each is None else each[1][PAYLOAD] for each in found]
    #                 a@1   b@1   a@2 (deleted)  a@3   b@3
    assert values == [None, None, b"1", None, b"1"]
    # No more than fits, but one that replaced something.
    assert read_previous(versions.engine, versions.store, by_place, bytes_max=1) == found[:3]


def test_the_key_after_the_longest_one_is_no_longer() -> None:
    longest, _ = encode_version(LogicalKey(b"k" + b"\xff" * (LOGICAL_KEY_BYTES_MAX - 1)), b"", ZERO)
    assert len(longest) == len(next_key(longest)) == LOGICAL_KEY_BYTES_MAX + 12
    assert next_key(b"ka\xff") == b"kb\x00"
