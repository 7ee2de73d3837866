"""Large transactions against a dictionary that has all of one from its commit on, and nothing before.

Every key's versions are written down as they are to be read. Reads of all kinds, at every timestamp, must find the
same, however many committed rows are in their place by then, and whoever has moved them there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from unittest.mock import patch

import pytest

from cortado.errors import AlreadyExists, KeyLocked, WriteConflict
from cortado.store.clock.timestamp import Timestamp
from cortado.store.engine.interface import Space
from cortado.store.keys.keyspace import STAGED_SPACE, key_of_staged, prefix_range, row_key, row_range, table_id_of
from cortado.store.keys.types import KeyPart, KeyType, LogicalKey
from cortado.store.mvcc import changed as changed_module
from cortado.store.mvcc import store as store_module
from cortado.store.mvcc.changed import changed_since
from cortado.store.mvcc.evaluation import Evaluation
from cortado.store.mvcc.mutations import Mutations
from cortado.store.mvcc.reader import Version, logical_of
from cortado.store.mvcc.staged import Staged, Unresolved
from cortado.store.mvcc.store import VersionStore
from cortado.store.mvcc.versions import Item, decode_version, encode_versions
from cortado.store.staging.records import LargeState, Record, StagedTable, record_key
from cortado.store.staging.stage import Piece, attempt_of, past_staged, put_in_place, stage
from support.memory_engine import MemoryEngine

PARTS = [KeyPart("id", KeyType.INT64)]
TABLES = [table_id_of(1, 1), table_id_of(1, 2)]
KEYS = [row_key(table, PARTS, [number]) for table in TABLES for number in range(3)]
ALL = row_range(TABLES[0], PARTS)[0], row_range(TABLES[1], PARTS)[1]
IDS = [bytes([number]) * 16 for number in (1, 2)]

Payloads = dict[int, bytes | None]
"""The payloads written, by the places of keys."""
ENDS = [[(0, 0)], [(0, 0), (1, 0)], [(0, 1), (1, 0)], []]
SEEDS = 200


@dataclass
class World:
    """One replica without a log, and its expected versions."""

    store: VersionStore = field(default_factory=lambda: VersionStore(MemoryEngine()))
    now: int = 0
    records: dict[bytes, Record] = field(default_factory=dict)
    staged: dict[bytes, dict[int, Payloads]] = field(default_factory=dict)
    history: dict[LogicalKey, list[tuple[int, bytes | None]]] = field(default_factory=dict)

    # --- what happens ------------------------------------------------------------------------------------------

    def write(self, payloads: Payloads) -> None:
        reader = self.store.snapshot(at(self.now + 1))
        try:
            evaluation = past_staged(reader, self.store.unresolved, Evaluation(mutations_of(payloads), None))
        except KeyLocked:
            assert self._locks(payloads)
            return
        assert not self._locks(payloads)
        self._apply(evaluation)
        self._happened(payloads)

    def begin(self, place: int) -> None:
        transaction_id = IDS[place]
        known = self.records.get(transaction_id)
        if known is None or known.is_resolved:
            tables = tuple(StagedTable(each, "d", str(each), ()) for each in TABLES)
            self._record(Record(transaction_id, at(self.now + 1), tables))
            self.staged[transaction_id] = {}

    def stage(self, place: int, attempt: tuple[int, int], payloads: Payloads, is_unchanged: bool) -> None:
        record = self.records.get(IDS[place])
        if record is None or record.state is not LargeState.OPEN:
            return
        number = attempt_of(*attempt)
        written = Evaluation(mutations_of(payloads), None)
        reader = self.store.snapshot(at(self.now + 1))
        try:
            evaluation = stage(reader, self.store.unresolved, IDS[place], number, written, is_unchanged=is_unchanged)
        except KeyLocked:
            assert self._locks(payloads, but=IDS[place])
            return
        except WriteConflict:
            assert is_unchanged
            assert any(self._changed(KEYS[each], record.start) for each in payloads)
            return
        except AlreadyExists:
            return
        self._apply(evaluation)
        self.staged[IDS[place]].setdefault(number, {}).update(payloads)

    def end(self, place: int, attempts: Sequence[tuple[int, int]], is_commit: bool) -> None:
        record = self.records.get(IDS[place])
        if record is None or record.state is not LargeState.OPEN:
            return
        if not is_commit:
            self._record(replace(record, state=LargeState.ABORTED))
            return
        by_task = dict(attempts)
        numbers = tuple(sorted(attempt_of(task, attempt) for task, attempt in by_task.items()))
        committed = replace(record, state=LargeState.COMMITTED, commit_ts=at(self.now + 1), attempts=numbers)
        self._record(committed)
        for number in numbers:
            self._happened(self.staged[IDS[place]].get(number, {}))

    def put_in_place(self, place: int, count: int) -> None:
        """Put some of it in place; once nothing is left, end it."""
        record = self.records.get(IDS[place])
        if record is None or record.state is LargeState.OPEN or record.is_resolved:
            return
        transaction = record.unresolved()
        mine = [
            (key, staged)
            for key, value in self._stored(*prefix_range(STAGED_SPACE))
            if (staged := decoded(key, value)).transaction_id == record.transaction_id
        ]
        if not mine:
            self._record(replace(record, is_resolved=True, attempts=()))
            return
        items: dict[bytes, Item] = {}
        for key, staged in mine[:count]:
            item = transaction.item_of(key_of_staged(logical_of(key)), staged)
            if item is not None:
                items.setdefault(item[0], item)
        piece = Piece([key for key, _ in mine[:count]], list(items.values()))
        self._apply(put_in_place(piece.without_moved(self.store.snapshot(at(self.now + 1)))))

    # --- expected versions -------------------------------------------------------------------------------------

    def expected(self, ts: int) -> dict[LogicalKey, Version]:
        found = {}
        for key, versions in self.history.items():
            seen = [(each, payload) for each, payload in versions if each <= ts]
            if seen and seen[-1][1] is not None:
                found[key] = Version(at(seen[-1][0]), seen[-1][1])
        return found

    def check(self) -> None:
        for ts in range(self.now + 1):
            expected = self.expected(ts)
            reader = self.store.snapshot(at(ts))
            assert [reader.get(key) for key in KEYS] == [expected.get(key) for key in KEYS]
            assert reader.get_many(KEYS) == [expected.get(key) for key in KEYS]
            rows = sorted(expected.items())
            assert list(reader.scan(*ALL)) == rows
            assert list(reader.scan(*ALL, reverse=True)) == rows[::-1]
            assert list(reader.scan(KEYS[1], KEYS[5])) == [row for row in rows if KEYS[1] <= row[0] < KEYS[5]]
            for since in range(ts):
                changed = {key for key in KEYS if self._changed(key, at(since), at(ts))}
                for key in KEYS:
                    found = changed_since(self.store, [key], (), at(since), at(ts))
                    assert (found is not None) == (key in changed)
                in_range = changed_since(self.store, (), [ALL], at(since), at(ts))
                assert (in_range is not None) == bool(changed)

    def _changed(self, key: LogicalKey, since: Timestamp, to: Timestamp | None = None) -> bool:
        last = at(self.now) if to is None else to
        return any(since < at(ts) <= last for ts, _ in self.history.get(key, ()))

    def _locks(self, payloads: Payloads, but: bytes = b"") -> bool:
        return any(
            each in staged
            for transaction_id, attempts in self.staged.items()
            if transaction_id != but and self.records[transaction_id].state is LargeState.OPEN
            for staged in attempts.values()
            for each in payloads
        )

    # --- the replica -------------------------------------------------------------------------------------------

    def _happened(self, payloads: Payloads) -> None:
        for each, payload in payloads.items():
            self.history.setdefault(KEYS[each], []).append((self.now, payload))

    def _record(self, record: Record) -> None:
        mutations = Mutations()
        mutations.put(record_key(record.transaction_id), record.encode())
        self._apply(Evaluation(mutations, None))
        self.records[record.transaction_id] = record
        self.store.unresolved = Unresolved(each.unresolved() for each in self.records.values() if not each.is_resolved)

    def _apply(self, evaluation: Evaluation) -> None:
        self.now += 1
        mutations, removal = evaluation.mutations, evaluation.removal
        items = encode_versions(mutations.keys, mutations.payloads, at(self.now), mutations.expiries)
        with self.store.engine.write() as txn:
            if removal is not None:
                for key in removal.keys:
                    txn.delete(Space.DATA, key)
                for each in removal.cleared:
                    txn.delete_range(Space.DATA, each.start, each.end, max_items=each.items_max)
            txn.put_many(Space.DATA, sorted([*items, *evaluation.restored]))

    def _stored(self, start: bytes, end: bytes) -> Iterator[Item]:
        with self.store.engine.read() as txn:
            page = txn.page(Space.DATA, start, end, max_items=10_000, max_bytes=1 << 30)
        yield from zip(page.keys, page.values, strict=True)


def at(number: int) -> Timestamp:
    return Timestamp(0, 1_000, number)


def mutations_of(payloads: Payloads) -> Mutations:
    places = sorted(payloads)
    return Mutations([KEYS[each] for each in places], [payloads[each] for each in places])


def decoded(key: bytes, value: bytes) -> Staged:
    version = decode_version(key, value, key[-12:])
    assert version is not None
    return Staged.decode(logical_of(key), version.payload)


def drawn(random: Random) -> Payloads:
    places = random.sample(range(len(KEYS)), random.randint(1, 4))
    return {each: None if random.random() < 0.3 else random.randbytes(random.randint(1, 3)) for each in places}


def step(world: World, random: Random) -> None:
    place = random.randrange(2)
    match random.randrange(6):
        case 0:
            world.write(drawn(random))
        case 1:
            world.begin(place)
        case 2 | 3:
            attempt = random.choice([(0, 0), (0, 0), (0, 1), (1, 0)])
            world.stage(place, attempt, drawn(random), is_unchanged=random.random() < 0.3)
        case 4:
            world.end(place, random.choice(ENDS), is_commit=random.random() < 0.7)
        case _:
            world.put_in_place(place, random.randint(1, 3))


# Drawn evenly, and not by hypothesis: interesting cases need some steps that fit each other, and half of all seeds have
# them.
@pytest.mark.parametrize("first_seed", range(0, SEEDS, 50))
def test_all_of_a_large_transaction_is_read_from_its_commit_on_wherever_it_is(first_seed: int) -> None:
    for seed in range(first_seed, first_seed + 50):
        random, world = Random(seed), World()
        world.begin(0)
        # Slices of few rows end anywhere.
        with (
            patch.object(store_module, "_FIRST_ROWS", random.randint(1, 3)),
            patch.object(store_module, "ROWS_MAX", random.randint(1, 3)),
            patch.object(changed_module, "_SLICE_ITEMS", random.randint(1, 3)),
        ):
            for _ in range(random.randint(8, 20)):
                step(world, random)
                world.check()
        for place, transaction_id in enumerate(IDS):
            world.end(place, [(0, 0)], is_commit=True)
            while (record := world.records.get(transaction_id)) is not None and not record.is_resolved:
                world.put_in_place(place, 2)
        world.check()
        assert not list(world._stored(*prefix_range(STAGED_SPACE)))
