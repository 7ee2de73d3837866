"""Random commits over a table with indexes and over pairs, against an interpreter of dictionaries.

After each of them rows, every index and ``table verify-indexes`` agree with it; refused commits changed nothing, for
the right reason. The rules are numbered as in docs/adr/0034-transactions.md.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cortado.errors import CortadoError, ResourceExhausted, UniqueViolation, WriteConflict
from cortado.store.clock.timestamp import Timestamp
from cortado.store.keys.keyspace import kv_key
from cortado.store.kv.operations import get as get_pair
from cortado.store.mvcc.evaluation import Evaluation
from cortado.store.mvcc.reader import VALIDATION
from cortado.store.mvcc.seen import Seen
from cortado.store.tables.read import get
from cortado.store.transactions.ahead import Ahead
from cortado.store.transactions.commit import evaluate_commit
from cortado.store.transactions.footprint import Footprint
from cortado.store.transactions.operations import Commit, Committed, Isolation
from support.examples import examples
from support.table_world import WORLDS, EngineStore, TableWorld
from support.transaction_twin import (
    INDEXES,
    NAMESPACE,
    TABLE,
    Asked,
    Conflicting,
    Interpreter,
    Refused,
    State,
    key_of,
    new_world,
    to_operation,
    with_etags,
)
from support.transactions_asked import FILLED, KEYS, PAIRS, commits

pytestmark = pytest.mark.slow


class Twins:
    """The product and the interpreter, side by side, with all states that there were."""

    def __init__(self, store: type) -> None:
        self.world: TableWorld = new_world(store())
        self.states: list[tuple[Timestamp, State]] = [(self.world.store.now, State())]

    @property
    def state(self) -> State:
        return self.states[-1][1]

    def commit(
        self, asked: list[Asked], start: Timestamp | None = None, keys: list[tuple[str, Any]] | None = None
    ) -> CortadoError | None:
        """Run it on both; they agree. ``keys`` are the keys that it has read."""
        world = self.world
        operations = [to_operation(world, each) for each in asked]
        keys = keys or []
        footprint = Footprint([self.logical(each) for each in keys])
        commit = Commit(operations, start, Isolation.SERIALIZABLE, footprint)
        twin = Interpreter(self.state, start)
        expected = Refused(WriteConflict) if twin.is_newer(*keys) else twin.run(asked)
        try:
            ts, done = world.store.write(lambda reader, ts: evaluate_commit(reader, ts, world.catalog(reader), commit))
        except CortadoError as error:
            assert expected is not None, f"{error!r} was not expected"
            self._check_refusal(error, expected)
            return error
        assert expected is None, f"{expected} was expected"
        assert done.reply == Committed(ts, tuple(twin.sums))
        self.states.append((ts, twin.commit(ts)))
        return None

    def logical(self, thing: tuple[str, Any]) -> Any:
        kind, key = thing
        if kind == "pair":
            return kv_key(NAMESPACE, key)
        view = self.world.view(TABLE)
        return view.row_key(view.encode_key(key))

    def _check_refusal(self, error: CortadoError, expected: Refused) -> None:
        if expected.error is Conflicting:
            assert isinstance(error, UniqueViolation | WriteConflict)
        else:
            assert type(error) is expected.error, f"{error!r}, and {expected} was expected"
        if expected.row is not None:
            assert error.row == expected.row  # type: ignore[attr-defined]

    def assert_same(self) -> None:
        world, state = self.world, self.state
        rows = [state.rows[key][0] for key in sorted(state.rows, key=lambda key: (key[0], -key[1]))]
        assert world.scan(TABLE) == rows
        assert world.check(TABLE, 3) == []
        for each in INDEXES:
            assert sorted(map(key_of, world.scan(TABLE, index=each.name))) == sorted(state.rows)
        reader = world.store.snapshot()
        for key in KEYS:
            found = get(reader, world.view(TABLE), key)
            assert (None if found is None else found.ts) == (state.rows[key][1] if key in state.rows else None)
        for key in PAIRS:
            pair = get_pair(reader, NAMESPACE, key)
            assert (None if pair is None else (pair.value, pair.etag)) == state.pairs.get(key)


@given(st.sampled_from(WORLDS), st.lists(commits(), min_size=3, max_size=10))
@settings(max_examples=examples(100))
def test_commits_are_what_the_interpreter_says(store: type, script: list[list[Asked]]) -> None:
    twins = Twins(store)
    for asked in script:
        twins.commit(with_etags(asked, twins.state))
        twins.assert_same()


@given(st.sampled_from(WORLDS), st.lists(commits(2), min_size=3, max_size=10), st.data())
@settings(max_examples=examples(200))
def test_t1_t4_and_t12_with_a_start_what_changed_since_is_a_conflict(
    store: type, script: list[list[Asked]], data: st.DataObject
) -> None:
    things = [("row", key) for key in KEYS] + [("pair", key) for key in PAIRS]
    twins = Twins(store)
    twins.commit(FILLED)
    for asked in script:
        start, seen = twins.states[-1 - data.draw(st.integers(0, min(2, len(twins.states) - 1)))]
        keys = data.draw(st.lists(st.sampled_from(things), max_size=2))
        twins.commit(with_etags(asked, seen), data.draw(st.sampled_from([None, start])) if not keys else start, keys)
        twins.assert_same()


@given(st.lists(commits(2), min_size=1, max_size=4), commits(3), st.data())
@settings(max_examples=examples(300))
def test_what_it_could_have_seen_is_final_and_what_it_could_not_is_a_conflict_for_ever(
    script: list[list[Asked]], asked: list[Asked], data: st.DataObject
) -> None:
    twins = Twins(WORLDS[0])
    twins.commit(FILLED)
    for each in script:
        twins.commit(with_etags(each, twins.state))
    start, seen = twins.states[-1 - data.draw(st.integers(0, len(twins.states) - 1))]
    world = twins.world
    operations = [to_operation(world, each) for each in with_etags(asked, seen)]
    refusal = twins.commit(with_etags(asked, seen), start)
    if refusal is None:
        return
    if isinstance(refusal, WriteConflict):
        for each in data.draw(st.lists(commits(), max_size=3)):
            twins.commit(with_etags(each, twins.state))
        again = twins.commit(with_etags(asked, seen), start)
        assert isinstance(again, WriteConflict)
    else:
        with pytest.raises(CortadoError):
            evaluate_commit(world.store.snapshot(start), world.store.now, world.catalog(), Commit(operations))


@given(st.lists(commits(2), max_size=3), commits(5), st.lists(commits(2), max_size=2), st.data())
@settings(max_examples=examples(300))
def test_t14_what_was_evaluated_ahead_of_its_turn_comes_to_what_it_would_come_to_in_its_turn(
    script: list[list[Asked]], asked: list[Asked], others: list[list[Asked]], data: st.DataObject
) -> None:
    twins = Twins(EngineStore)
    twins.commit(FILLED)
    for each in script:
        twins.commit(with_etags(each, twins.state))
    world = twins.world
    start, seen_state = twins.states[-1 - data.draw(st.integers(0, len(twins.states) - 1))]
    start = data.draw(st.sampled_from([None, start]))
    keys = data.draw(st.lists(st.sampled_from(KEYS), max_size=1)) if start is not None else []
    footprint = Footprint([twins.logical(("row", key)) for key in keys])
    operations = [to_operation(world, each) for each in with_etags(asked, seen_state)]
    assert isinstance(world.store, EngineStore)
    seen = Seen()
    reader = world.store.store.snapshot(world.store.now, seen)
    ahead = Ahead(reader, seen, world.catalog(reader), start, footprint)
    for operation in operations:
        if not ahead.take([operation]):
            break
    ahead.finish()
    before = twins.state
    for each in others:
        twins.commit(with_etags(each, twins.state))
    newest, ts = world.store.snapshot(), world.store.now.next()
    commit = Commit(operations, start, Isolation.SERIALIZABLE, footprint)
    in_turn = outcome(lambda: evaluate_commit(newest, ts, world.catalog(newest), commit))
    early = outcome(lambda: ahead.evaluate(newest, ts, None))
    if isinstance(early, ResourceExhausted):
        assert early.resource == VALIDATION
        assert twins.state is not before
    elif isinstance(early, CortadoError):
        assert isinstance(in_turn, CortadoError)
        # In its turn the reads are looked at first; but an error that is final because of the operations is final.
        if not (isinstance(in_turn, WriteConflict) and in_turn.kind == "read"):
            assert (type(early), early.fields()) == (type(in_turn), in_turn.fields())
    else:
        assert early == in_turn


def outcome(evaluate: Callable[[], Evaluation]) -> Evaluation | CortadoError:
    try:
        return evaluate()
    except CortadoError as refusal:
        return refusal
