"""The index of changes agrees with the versions, or says that it does not know: over random logs, with large
transactions, collection, drops, restores, restarts, snapshots and damage. Each of its rules is there for a reason:
without it, the same logs must find something.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Final

import pytest

from cortado.errors import SnapshotTooOld
from cortado.raft.log import Entry
from cortado.store.clock.timestamp import ZERO, Timestamp
from cortado.store.engine.interface import ABOVE_KEYS, Space, WriteTransaction
from cortado.store.keys.keyspace import KV_SPACE, META_SPACE, STAGED_SPACE, kv_key, staged_key, table_range
from cortado.store.keys.types import LogicalKey
from cortado.store.mvcc.evaluation import Cleared, Removal
from cortado.store.mvcc.safepoints import SAFEPOINTS_KEY, Safepoints
from cortado.store.mvcc.store import VersionStore
from cortado.store.mvcc.versions import Item, encode_version, suffix_of, timestamp_of
from cortado.store.replica.apply.state_machine import StateMachine
from cortado.store.replica.features.restoring import RESTORE_KEY, RestoreState
from cortado.store.replica.feed import index, indexed
from cortado.store.replica.feed.history import HistoryPass
from cortado.store.replica.feed.index import IndexWriter, decode_item
from cortado.store.replica.feed.indexed import IndexPass
from cortado.store.replica.group_range import META_GROUP
from cortado.store.replica.write.log_entry import NO_REMOVAL, LogEntry
from cortado.store.staging.records import UNRESOLVED_KEY, LargeState, Record, StagedTable, record_key
from support.memory_engine import MemoryEngine
from support.simulation.changes import by_index, by_versions

TABLE: Final = 1 << 16 | 1
DROPPED: Final = 1 << 16 | 2
RANGES: Final = (
    (KV_SPACE, META_SPACE),
    (kv_key("n", b"c"), kv_key("n", b"f")),
    (META_SPACE, STAGED_SPACE),
    table_range(TABLE),
    table_range(DROPPED),
    (b"t", ABOVE_KEYS),
)
RECORD: Final = Record(b"\x07" * 16, ZERO, (StagedTable(TABLE, "d", "t", ()),))
STEPS: Final = 40


def row(table_id: int, number: int) -> LogicalKey:
    return LogicalKey(table_range(table_id)[0] + b"r" + bytes([0x14, number]) + bytes(number % 3) + b"\x01")


class Scene:
    """A replica, and the log that it applies, drawn from a seed."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.engine = MemoryEngine()
        self.start()
        self.wall_ms = 10
        self.reaches_to = ZERO
        """The timestamp back to which the index must know all."""
        self.is_damaged = False
        self.record: Record | None = None
        self.staged: dict[LogicalKey, LogicalKey] = {}

    def start(self) -> None:
        self.store = VersionStore(self.engine)
        self.machine = StateMachine(self.engine, self.store, META_GROUP)
        self.pending: list[Entry] = []
        self.state = self.machine.state

    def run(self) -> list[str]:
        problems: list[str] = []
        self.write()
        self.apply()
        steps: list[Callable[[], None]] = [self.write] * 8 + [self.large] * 8
        steps += [self.raise_safepoints, self.restore, self.start_anew, self.drop, self.damage, self.install]
        for _ in range(STEPS):
            self.random.choice(steps)()
            if self.random.random() < 0.6:
                self.apply()
                problems += self.compare()
        return problems

    # --- the log -----------------------------------------------------------------------------------------------

    def next_ts(self) -> Timestamp:
        self.wall_ms += self.random.choice((1, 1, 7))
        return Timestamp(0, self.wall_ms, 0)

    def append(self, items: list[Item], first_ts: Timestamp, removal: Removal = NO_REMOVAL) -> None:
        last = self.pending[-1] if self.pending else None
        after = (last.index, last.term) if last else (self.state.index, self.state.term)
        last_ts = Timestamp(0, self.wall_ms, 0)
        self.pending.append(Entry(after[0] + 1, 1, LogEntry(*after, first_ts, last_ts, sorted(items), removal=removal)))

    def apply(self) -> None:
        if self.pending:
            self.state = self.machine.apply(self.state, self.pending)
            self.machine.settle(self.state)
            self.pending = []

    def versions(self, count: int) -> list[Item]:
        draw, ts = self.random, self.next_ts()
        keys = [kv_key("n", name.encode()) for name in "abcdefg"] + [row(TABLE, number) for number in range(12)]
        keys += [row(DROPPED, number) for number in range(4)]
        chosen = set(draw.sample(keys, count)) - self.staged.keys()
        return [encode_version(key, draw.choice((None, b"v")), ts, draw.choice((0, 9_000))) for key in chosen]

    def write(self) -> None:
        first_ts = Timestamp(0, self.wall_ms + 1, 0)
        items = [
            item for _ in range(self.random.choice((0, 1, 1, 3))) for item in self.versions(self.random.choice((1, 9)))
        ]
        self.next_ts()
        self.append(items, first_ts)

    def large(self) -> None:
        """Take the next step of a large transaction."""
        if self.record is None:
            self.record = replace(RECORD, start=self.next_ts())
            self.staged = {}
        elif self.record.commit_ts is None and (len(self.staged) < 6 or self.random.random() < 0.4):
            return self.stage()
        elif self.record.commit_ts is None:
            self.record = replace(self.record, state=LargeState.COMMITTED, commit_ts=self.next_ts(), attempts=(0,))
        elif self.staged:
            return self.move()
        else:
            self.record = replace(self.record, is_resolved=True)
            self.next_ts()
        ts = Timestamp(0, self.wall_ms, 0)
        ids = None if self.record.is_resolved else self.record.transaction_id
        items = [encode_version(record_key(RECORD.transaction_id), self.record.encode(), ts)]
        self.append([*items, encode_version(UNRESOLVED_KEY, ids, ts)], ts)
        if self.record.is_resolved:
            self.record = None
        return None

    def stage(self) -> None:
        ts = self.next_ts()
        keys = [row(TABLE, number) for number in self.random.sample(range(12), 3)]
        new = [key for key in keys if key not in self.staged]
        self.staged |= {key: LogicalKey(staged_key(key) + suffix_of(ts)) for key in new}
        self.append([encode_version(staged_key(key), b"staged", ts) for key in new], ts)

    def move(self) -> None:
        assert self.record is not None
        assert self.record.commit_ts is not None
        draw, commit_ts = self.random, self.record.commit_ts
        ts = self.next_ts()
        moved = draw.sample(sorted(self.staged), min(len(self.staged), draw.choice((1, 2, 4))))
        items = [encode_version(key, b"moved", commit_ts) for key in moved]
        # A writer of such a key moves it, too.
        items += [encode_version(key, b"written", ts) for key in moved if draw.random() < 0.3]
        removal = Removal(sorted(self.staged[key] for key in moved))
        self.append(items, ts, removal)
        if draw.random() < 0.2:
            # So does a writer that did not know of that yet.
            self.append([encode_version(key, b"moved", commit_ts) for key in moved[:1]], self.next_ts(), removal)
        for key in moved:
            del self.staged[key]

    # --- removals ----------------------------------------------------------------------------------------------

    def data(self) -> dict[bytes, bytes]:
        return dict(self.engine._spaces[Space.DATA].values)

    def raise_safepoints(self, *, all_of_it: bool = False) -> None:
        """Raise the safepoint to some time, and remove the versions that only reads below it need."""
        self.apply()
        position = self.state.last_ts
        bound = position if all_of_it else Timestamp(0, self.random.randrange(position.wall_ms + 1), 0)
        if self.record is not None:
            bound = min(bound, (self.record.commit_ts or self.record.start).previous())
        before = self.store.safepoints
        cluster = max(bound, before.cluster)
        # A table that keeps its versions for longer.
        safepoints = Safepoints(cluster, {TABLE: before.of_table(TABLE)} if self.random.random() < 0.5 else {})
        if not before.is_below(safepoints):
            return
        gone = [key for key in self.data() if self._is_garbage(key, safepoints) and key[:1] not in (b"m", b"s")]
        ts = self.next_ts()
        self.append(
            [encode_version(SAFEPOINTS_KEY, safepoints.encode(), ts)], ts, Removal(sorted(gone), safepoints=safepoints)
        )
        self.apply()

    def _is_garbage(self, key: bytes, safepoints: Safepoints) -> bool:
        newer = [each for each in self.data() if each[:-12] == key[:-12] and each < key]
        return any(timestamp_of(each[-12:]) <= safepoints.of(key) for each in newer)

    def drop(self) -> None:
        """Drop all of a table, once it cannot be read."""
        self.raise_safepoints(all_of_it=True)
        start, end = table_range(DROPPED)
        written = [timestamp_of(key[-12:]) for key in self.data() if start <= key < end]
        if max(written, default=ZERO) <= self.store.safepoints.of_table(DROPPED):
            ts = self.next_ts()
            self.append([], ts, Removal(cleared=[Cleared(start, end, 1_000)]))

    def restore(self) -> None:
        """Restore versions of any time, within a restore."""
        if self.record is not None or self.random.random() < 0.5:
            return
        ts = self.next_ts()
        self.append([encode_version(RESTORE_KEY, RestoreState("r").encode(), ts)], ts)
        self.apply()
        old = Timestamp(0, self.random.randrange(1, self.wall_ms), 1)
        keys = [kv_key("n", b"%d" % number) for number in range(3)]
        self.append([encode_version(key, b"restored", old) for key in keys], self.next_ts())
        ts = self.next_ts()
        self.append([encode_version(RESTORE_KEY, None, ts)], ts)
        self.apply()
        self.reaches_to = self.state.last_ts

    # --- the process and its disk ------------------------------------------------------------------------------

    def start_anew(self) -> None:
        self.apply()
        self.start()

    def install(self) -> None:
        """Put another replica's state in the place of this one."""
        self.apply()
        if self.random.random() < 0.7:
            return
        with self.engine.write() as txn:
            txn.delete_range(Space.CHANGES, b"", ABOVE_KEYS)
        self.start()
        self.reaches_to, self.is_damaged = self.state.last_ts, False

    def damage(self) -> None:
        """Damage an item of the index, or a change that it names."""
        self.apply()
        if self.random.random() < 0.6:
            return
        space = self.random.choice((Space.CHANGES, Space.CHANGES, Space.DATA))
        items = self.engine._spaces[space]
        keys = [key for key in items.keys if space is Space.CHANGES or key[:1] in (b"k", b"t")]
        if not keys:
            return
        self.is_damaged = True
        key = self.random.choice(keys)
        value = items.values[key]
        with self.engine.write() as txn:
            if space is Space.DATA:
                txn.delete(space, key)
                return
            self._turn(txn, key, value)

    def _turn(self, txn: WriteTransaction, key: bytes, value: bytes) -> None:
        draw = self.random
        what = draw.choice(("lost", "value", "key"))
        if what != "value":
            txn.delete(Space.CHANGES, key)
        if what == "value":
            txn.put(Space.CHANGES, key, turned(value, draw.randrange(len(value)), draw.randrange(8)))
        elif what == "key":
            txn.put(Space.CHANGES, turned(key, draw.randrange(4, len(key)), draw.randrange(8)), value)

    # --- answers -----------------------------------------------------------------------------------------------

    def compare(self) -> Iterator[str]:
        draw = self.random
        position = self.state.last_ts
        if self.record is not None and self.record.commit_ts is not None:
            # No caller asks for more before all is in place.
            position = self.record.commit_ts.previous()
        for _ in range(6):
            times = [Timestamp(0, draw.randrange(position.wall_ms + 2), draw.choice((0, 1))) for _ in range(2)]
            after, until = sorted((times[0], min(times[1], position)))
            start, end = draw.choice(RANGES)
            bounds = (start, end, after, until, draw.choice((1, 3, 50)))
            if after >= until:
                continue
            try:
                wanted = by_versions(self.store, *bounds)
            except SnapshotTooOld:
                with pytest.raises(SnapshotTooOld):
                    self._by_either(*bounds)
                continue
            found = by_index(self.store, META_GROUP.group_id, *bounds)
            if found not in (None, wanted):
                yield f"{bounds}: the index says {found}, the versions say {wanted}"
            if self._by_either(*bounds) != wanted:
                yield f"{bounds}: a pass says otherwise than {wanted}"
            is_known = after >= max(self.reaches_to, self.store.safepoints.cluster) and not self.is_damaged
            if is_known and found is None:
                yield f"{bounds}: the index does not know"

    def _by_either(self, start: bytes, end: bytes, after: Timestamp, until: Timestamp, events_max: int) -> object:
        search = HistoryPass(self.engine, self.store, start, end, after, until, events_max=events_max, group_id=1)
        while not search.step():
            pass
        return search.window()


def turned(text: bytes, place: int, bit: int) -> bytes:
    return text[:place] + bytes([text[place] ^ 1 << bit]) + text[place + 1 :]


@pytest.fixture(autouse=True)
def _small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index, "PIECE_BYTES", 60)
    monkeypatch.setattr(index, "_CUT_ITEMS", 1)
    monkeypatch.setattr(index, "_CUT_ITEMS_RISEN", 4)
    monkeypatch.setattr(indexed, "_ITEMS_PER_STEP", 2)


@pytest.mark.parametrize("seed", range(60))
def test_the_index_says_what_the_versions_say(seed: int) -> None:
    assert Scene(seed).run() == []


# --- its rules, switched off -----------------------------------------------------------------------------------


def follow_no_chain(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(IndexPass, "_check_follows", lambda _self, _changed_ts: None)


def count_no_pieces(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(IndexPass, "_check_complete", lambda _self: None)


def look_at_no_checksum(patch: pytest.MonkeyPatch) -> None:
    def decode_anyway(key: bytes, value: bytes) -> object:
        with pytest.MonkeyPatch.context() as inner:
            inner.setattr(index, "checksum", lambda _covered: int.from_bytes(value[-4:], "little"))
            return decode_item(key, value)

    patch.setattr(indexed, "decode_item", decode_anyway)


def go_on_behind_a_restore(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(IndexWriter, "restart", lambda _self, _last_ts, _items: None)


def cut_above_the_safepoint(patch: pytest.MonkeyPatch) -> None:
    finish = IndexWriter.finish

    def higher(self: IndexWriter, safepoint: Timestamp, *, has_risen: bool) -> Timestamp:
        return finish(self, self.changed_ts if safepoint > ZERO else ZERO, has_risen=has_risen)

    patch.setattr(IndexWriter, "finish", higher)


def take_what_is_not_stored(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(IndexPass, "_add", lambda self, _txn, keys: self._found.add(keys))


@pytest.mark.parametrize(
    "switch_off",
    [
        follow_no_chain,
        count_no_pieces,
        look_at_no_checksum,
        go_on_behind_a_restore,
        cut_above_the_safepoint,
        take_what_is_not_stored,
    ],
)
def test_without_a_rule_something_is_found(
    switch_off: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    switch_off(monkeypatch)
    assert any(Scene(seed).run() for seed in range(300))
