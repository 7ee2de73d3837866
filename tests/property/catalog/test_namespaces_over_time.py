"""Namespaces that are written, dropped, brought back and cleared, against dictionaries. At the end every readable state
is read again at its time, with the answers for a transaction that began then."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cortado.errors import AlreadyExists, CortadoError, NotFound, WriteConflict
from cortado.store.catalog.catalog import Catalog
from cortado.store.catalog.dropped import begin_clearing, collectible, forget
from cortado.store.catalog.namespaces import Looked, drop_namespace, undrop_namespace
from cortado.store.catalog.stored import generation_of
from cortado.store.clock.timestamp import Timestamp
from cortado.store.keys.keyspace import namespaces_range
from cortado.store.kv.namespaces import list_namespaces
from cortado.store.kv.operations import (
    KvAdd,
    KvDelete,
    KvPut,
    evaluate_delete,
    evaluate_delete_range,
    evaluate_put,
    get,
    get_many,
)
from cortado.store.kv.ranges import KvRange
from cortado.store.kv.scan import KvScanRequest, begin_scan, read_slice
from cortado.store.kv.stage import PairStage
from cortado.store.mvcc.evaluation import Evaluate, Evaluation
from cortado.store.mvcc.mutations import Mutations
from cortado.store.mvcc.reader import Reader
from cortado.store.mvcc.transacting import Origin
from support.dict_reader import DictStore

# The one is the beginning of the other.
NAMES = ["n", "na", "x"]
KEYS = [b"a", b"b\0", b"\xff"]

Pairs = dict[bytes, bytes]
State = dict[str, Pairs]


@dataclass(eq=False)
class Gone:
    name: str
    pairs: Pairs
    dropped_ts: Timestamp
    number: int


@dataclass(eq=False)
class World:
    store: DictStore = field(default_factory=DictStore)
    twin: State = field(default_factory=dict)
    gone: list[Gone] = field(default_factory=list)
    states: list[tuple[Timestamp, State]] = field(default_factory=list)
    changes: dict[str, Timestamp] = field(default_factory=dict)
    drops: int = 0

    def do(self, evaluate: Evaluate) -> tuple[Timestamp, Evaluation]:
        done = self.store.write(evaluate)
        self.note()
        return done

    def note(self) -> None:
        self.states.append((self.store.now, {name: dict(pairs) for name, pairs in self.twin.items() if pairs}))

    def pairs(self, name: str) -> Pairs:
        return self.twin.setdefault(name, {})

    # --- actions -------------------------------------------------------------------------------------------------

    def put(self, name: str, key: bytes, number: int) -> None:
        value = b"%d" % number
        self.pairs(name)[key] = value
        self.do(lambda reader, ts: evaluate_put(reader, ts, name, KvPut(key, value)))

    def delete(self, name: str, key: bytes, _number: int) -> None:
        self.pairs(name).pop(key, None)
        self.do(lambda reader, _: evaluate_delete(reader, name, KvDelete(key)))

    def delete_all(self, name: str, _key: bytes, _number: int) -> None:
        self.pairs(name).clear()
        self.do(lambda reader, _: evaluate_delete_range(reader, name, KvRange()))

    def stage(self, name: str, key: bytes, number: int) -> None:
        """Commit several operations: a counter that is made and added to, and a pair that is put and deleted."""
        for each in KEYS:
            self.pairs(name).pop(each, None)
        self.pairs(name)[key] = (2 * number).to_bytes(8, signed=True)

        def evaluate(reader: Reader, _ts: Timestamp) -> Evaluation:
            stage = PairStage(Origin(reader), Catalog(reader))
            for each in KEYS:
                stage.delete(name, KvDelete(each))
            stage.add(name, KvAdd(key, number))
            stage.add(name, KvAdd(key, number))
            return Evaluation(stage.mutations(), None)

        self.do(evaluate)

    def drop(self, name: str, _key: bytes, _number: int) -> None:
        looked = self.looked(name)
        evaluate = lambda reader, ts: drop_namespace(Catalog(reader), name, looked, commit_ts=ts)  # noqa: E731
        if not self.pairs(name):
            with pytest.raises(NotFound):
                self.store.write(evaluate)
            return
        self.drops += 1
        self.gone.append(Gone(name, self.twin.pop(name), self.store.now.next(), self.drops))
        _, evaluation = self.do(evaluate)
        assert evaluation.reply.dropped.number == self.drops
        self.changes[name] = self.store.now

    def undrop(self, name: str, _key: bytes, number: int) -> None:
        looked = self.looked(name)
        number = min(number, self.drops)
        found = [each for each in self.gone if each.name == name and number in (0, each.number)]
        evaluate = lambda reader, _: undrop_namespace(Catalog(reader), name, looked, number=number)  # noqa: E731
        expected = None if found and not self.pairs(name) else AlreadyExists if found else NotFound
        if expected is not None:
            with pytest.raises(expected):
                self.store.write(evaluate)
            return
        self.gone.remove(found[-1])
        self.twin[name] = found[-1].pairs
        self.do(evaluate)
        self.changes[name] = self.store.now

    def clear(self, _name: str, _key: bytes, _number: int) -> None:
        """Clear the oldest drop, as the collector does: its grace is over."""
        if not self.gone:
            return
        gone = self.gone.pop(0)
        [record] = [each for each in collectible(self.catalog()) if each.number == gone.number]
        self.apply(begin_clearing(self.catalog(), gone.number))
        with pytest.raises(CortadoError):
            looked = self.looked(gone.name)
            self.store.write(lambda r, _: undrop_namespace(Catalog(r), gone.name, looked, number=gone.number))
        for start, end in record.what.ranges:
            for key in [each for each in self.store.keys if start <= each < end]:
                del self.store.versions[key]
                self.store.keys.remove(key)
        self.apply(forget(self.catalog(), gone.number))
        self.states = [each for each in self.states if each[0] >= gone.dropped_ts]

    def catalog(self) -> Catalog:
        return Catalog(self.store.snapshot())

    def apply(self, mutations: Mutations) -> None:
        self.store.apply(mutations, self.store.tick())

    def looked(self, name: str) -> Looked:
        return Looked.through(self.store.snapshot(), name)

    # --- checks --------------------------------------------------------------------------------------------------

    def check(self) -> None:
        self.note()
        assert self.catalog().counters.dropped == len(self.catalog().dropped()) == len(self.gone)
        for ts, state in self.states:
            reader = self.store.snapshot(ts)
            listed = list_namespaces(self.store, ts, namespaces_range()[0], 100, lambda: False)
            assert listed == (sorted(state), None)
            for name in NAMES:
                pairs = state.get(name, {})
                found = [get(reader, name, key) for key in KEYS]
                assert found == list(get_many(reader, name, KEYS))
                assert {each.key: each.value for each in found if each is not None} == pairs
                scan = begin_scan(KvScanRequest(name), ts, generation_of(reader, name))
                assert {each.key: each.value for each in read_slice(self.store, scan).pairs} == pairs
                self.check_conflict(ts, name)

    def check_conflict(self, start: Timestamp, name: str) -> None:
        reader = self.store.snapshot()
        stage = PairStage(Origin(reader, start), Catalog(reader).unchanged_since(start))
        put = partial(stage.put, name, KvPut(b"k", b"v"))
        if self.changes.get(name, start) <= start:
            put()
            return
        with pytest.raises(WriteConflict) as refused:
            put()
        assert (refused.value.kind, refused.value.key) == ("namespace", name)


ACTIONS = ["put", "put", "put", "delete", "delete_all", "stage", "drop", "drop", "undrop", "undrop", "clear"]
STEPS = st.lists(
    st.tuples(st.sampled_from(ACTIONS), st.sampled_from(NAMES), st.sampled_from(KEYS), st.integers(0, 3)), max_size=40
)


@given(STEPS)
def test_every_state_is_read_at_its_time(steps: list[tuple[str, str, bytes, int]]) -> None:
    world = World()
    for action, *arguments in steps:
        method: Any = getattr(world, action)
        method(*arguments)
    world.check()
