"""Each rule of large transactions (ADR 40) switched off: the thing that it guards against happens, and its scenario
fails.

With all rules on, the same scenarios pass. Nodes run on virtual time, and their storage can be held.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import pytest

from cortado.errors import CortadoError
from cortado.store.auth.owners import Asker
from cortado.store.clock.timestamp import Timestamp
from cortado.store.engine.interface import Engine, Space
from cortado.store.keys.keyspace import STAGED_SPACE, is_of_index, key_of_staged, prefix_range
from cortado.store.keys.types import LogicalKey
from cortado.store.mvcc.evaluation import Evaluation
from cortado.store.mvcc.mutations import Mutations
from cortado.store.mvcc.reader import Reader, logical_of, suffix_from
from cortado.store.mvcc.staged import LargeTransaction, Staged
from cortado.store.mvcc.versions import Item, suffix_of
from cortado.store.replica.apply.applied_state import AppliedState
from cortado.store.replica.collection import collector
from cortado.store.replica.collection.slices import Place, Slice
from cortado.store.replica.duties import large_transactions as duty
from cortado.store.replica.duties.large_transactions import LargeTransactions
from cortado.store.replica.features.feature import Effect
from cortado.store.replica.features.large_transactions import LargeTransactionsInLog
from cortado.store.replica.feed.feed import ChangeFeed
from cortado.store.replica.feed.recent import RecentChanges
from cortado.store.replica.write.batch import Batch
from cortado.store.replica.write.pipeline import Pipeline
from cortado.store.server import large_transactions_service
from cortado.store.staging import records, stage
from cortado.store.staging.records import Record, applied_records, record_of, resolve
from cortado.store.staging.stage import Met
from cortado.store.tables import build
from support.large_transaction_rules import (
    RETENTION_MS,
    Scenario,
    above_served_reads,
    answered_when_applied,
    built_after_it,
    built_around_staged_rows,
    changed_rows_are_conflicts,
    commits_with_the_indexes_it_staged_for,
    entries_are_locked,
    evaluated_when_applied,
    forgotten_once_it_is_durable,
    its_start_is_held,
    known_before_it_is_read,
    looked_for_once_it_is_durable,
    makes_no_garbage,
    moved_by_writers,
    moved_in_one_entry,
    named_attempts,
    newest_changes_begin_anew,
    one_of_an_application,
    play,
    remembered_for_a_day,
    rows_are_locked,
    staged_while_open,
    watched_in_order,
)

Switch = Callable[[pytest.MonkeyPatch], None]

# --- the switches ----------------------------------------------------------------------------------------------


def answer_when_committed(patch: pytest.MonkeyPatch) -> None:
    def answer(self: Pipeline) -> int:
        callers, committed = self._answer_applied(), self._log.durable_commit_index
        while self._answered < len(self._appended) and self._appended[self._answered].index <= committed:
            batch = self._appended[self._answered]
            batch.effect = Effect.NONE
            callers += self._answer_batch(batch)
            self._answered += 1
        return callers

    patch.setattr(Pipeline, "answer_committed", answer)


def evaluate_at_once(patch: pytest.MonkeyPatch) -> None:
    answer_when_committed(patch)
    patch.setattr(Batch, "holds_next", property(lambda self: self.epoch > 0))


def commit_at_the_start(patch: pytest.MonkeyPatch) -> None:
    commit = records.commit

    def earlier(reader: Reader, _ts: Timestamp, catalog: Any, transaction_id: bytes, *more: Any) -> Evaluation:
        return commit(reader, record_of(reader, transaction_id).start, catalog, transaction_id, *more)

    patch.setattr(large_transactions_service, "commit", earlier)


def know_of_it_later(patch: pytest.MonkeyPatch) -> None:
    settle = LargeTransactionsInLog.settle

    def late(self: LargeTransactionsInLog) -> None:
        before = self.durable
        settle(self)
        known, self._store.unresolved = self._store.unresolved, before
        if known is not before:
            asyncio.get_running_loop().call_later(0.02, lambda: setattr(self._store, "unresolved", known))

    patch.setattr(LargeTransactionsInLog, "settle", late)


def forget_it_before_that_is_durable(patch: pytest.MonkeyPatch) -> None:
    def apply(self: LargeTransactionsInLog, items: Sequence[Item], state: AppliedState) -> AppliedState:
        self._applying = self._store.unresolved = applied_records(items, self._applying)
        return state

    patch.setattr(LargeTransactionsInLog, "apply", apply)


def look_for_it_before_that_is_durable(patch: pytest.MonkeyPatch) -> None:
    at_once = property(lambda self: self._store.unresolved, lambda _self, _durable: None)
    patch.setattr(LargeTransactionsInLog, "durable", at_once, raising=False)


def move_in_two_entries(patch: pytest.MonkeyPatch) -> None:
    put_in_place = LargeTransactions._put_in_place

    async def by_two(self: LargeTransactions, transaction: LargeTransaction) -> None:
        write = self._write

        async def each(evaluate: Any) -> object:
            restored: list[Item] = []

            def taken(reader: Reader, ts: Timestamp) -> Evaluation:
                evaluation: Evaluation = evaluate(reader, ts)
                restored[:] = evaluation.restored
                return replace(evaluation, restored=[])

            await write(taken)
            await asyncio.sleep(0.2)
            return await write(lambda _reader, _ts: Evaluation(Mutations(), None, restored=restored))

        self._write = each
        try:
            await put_in_place(self, transaction)
        finally:
            self._write = write

    patch.setattr(LargeTransactions, "_put_in_place", by_two)


def let_writers_leave_it(patch: pytest.MonkeyPatch) -> None:
    take = Met.take

    def only_check(self: Met, key: LogicalKey, there: Staged) -> None:
        other = self._unresolved.all.get(there.transaction_id)
        if other is not None and other.is_open:
            take(self, key, there)

    patch.setattr(Met, "take", only_check)


def let_every_attempt_count(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(LargeTransaction, "counts", lambda self, _attempt: True)


def stage_into_any(patch: pytest.MonkeyPatch) -> None:
    def whatever(reader: Reader, transaction_id: bytes, asker: Asker) -> Record:
        return record_of(reader, transaction_id, asker)

    patch.setattr(stage, "open_record", whatever)
    patch.setattr("cortado.store.server.bulk_stream.open_record", whatever)


def resolve_first(patch: pytest.MonkeyPatch) -> None:
    put_in_place = LargeTransactions._put_in_place

    async def after(self: LargeTransactions, transaction: LargeTransaction) -> None:
        await self._write(lambda reader, _ts: resolve(reader, transaction.transaction_id))
        await asyncio.sleep(0.05)
        await put_in_place(self, transaction)

    patch.setattr(LargeTransactions, "_put_in_place", after)


def tell_watches_at_once(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ChangeFeed, "complete_to", lambda self, _start, _end: self.position)


def keep_the_newest_changes(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(RecentChanges, "clear", lambda self, _position: None)


def lock_nothing_of(is_unlocked: Callable[[bytes], bool]) -> Switch:
    def switch_off(patch: pytest.MonkeyPatch) -> None:
        take = Met.take

        def unless(self: Met, key: LogicalKey, there: Staged) -> None:
            if not is_unlocked(key):
                take(self, key, there)

        patch.setattr(Met, "take", unless)

    return switch_off


def take_changed_rows(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(stage, "conflict_of", lambda *_arguments: None)


def hold_no_lease(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(records.leases, "acquire", lambda *_arguments: lambda _reader, _ts: Evaluation(Mutations(), None))
    patch.setattr(duty, "is_leased", lambda *_arguments: True)


def take_staged_values_for_versions(patch: pytest.MonkeyPatch) -> None:
    look = collector.look

    def look_at_both(engine: Engine, place: Place, end: bytes, safepoint: Timestamp, **more: Any) -> Slice:
        found = look(engine, place, end, safepoint, **more)
        with engine.read() as txn:
            staged = txn.page(Space.DATA, *prefix_range(STAGED_SPACE), max_items=1_000).keys
            stored = txn.page(Space.DATA, place.key, end, max_items=1_000).keys
        hidden = {key_of_staged(logical_of(key)) for key in staged}
        older = {key for key in stored if logical_of(key) in hidden and suffix_from(key) >= suffix_of(safepoint)}
        return replace(found, garbage=replace(found.garbage, keys=sorted({*found.garbage.keys, *older})))

    patch.setattr(collector, "look", look_at_both)


def have_short_days(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(duty, "KEPT_MS", 5_000)
    patch.setattr(duty, "_FORGET_EVERY_MS", 500)


def forget_records_at_once(patch: pytest.MonkeyPatch) -> None:
    have_short_days(patch)
    patch.setattr(duty, "KEPT_MS", 0)


def let_many_be_open(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(records, "_open_of", lambda *_arguments: [])


def build_at_once(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(build, "_is_staged_without", lambda *_arguments: False)


def build_over_staged_rows(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(build, "check_settled", lambda *_arguments: None)


def commit_with_any_index(patch: pytest.MonkeyPatch) -> None:
    build_at_once(patch)
    patch.setattr(records, "_has_its_tables", lambda *_arguments: True)


@dataclass(frozen=True)
class Rule:
    switch_off: Switch
    scenario: Scenario
    retention_ms: int | None = None
    given: Switch = lambda _patch: None
    """Changes that apply with the rule, too."""


RULES: Final = {
    "L1: nobody is answered before it is applied": Rule(answer_when_committed, answered_when_applied),
    "L1: nothing is evaluated before it is applied": Rule(evaluate_at_once, evaluated_when_applied),
    "L2: its timestamp is its own entry's": Rule(commit_at_the_start, above_served_reads),
    "L3: it is known before anybody reads there": Rule(know_of_it_later, known_before_it_is_read),
    "L3: it is forgotten once its moves are durable": Rule(
        forget_it_before_that_is_durable, forgotten_once_it_is_durable
    ),
    "L4: a leader looks for the rows of what is durable": Rule(
        look_for_it_before_that_is_durable, looked_for_once_it_is_durable
    ),
    "L4: a row moves in one entry": Rule(move_in_two_entries, moved_in_one_entry),
    "L5: who writes a key moves what is committed there": Rule(let_writers_leave_it, moved_by_writers),
    "L6: the attempts count that the commit names": Rule(let_every_attempt_count, named_attempts),
    "L7: rows are staged while it is open": Rule(stage_into_any, staged_while_open),
    "L8: the record says resolved last": Rule(resolve_first, moved_in_one_entry),
    "L9: watches wait until all is in place": Rule(tell_watches_at_once, watched_in_order),
    "L10: the newest changes begin anew": Rule(keep_the_newest_changes, newest_changes_begin_anew),
    "L11: rows are locked": Rule(lock_nothing_of(lambda key: not is_of_index(key)), rows_are_locked),
    "L11: entries are locked": Rule(lock_nothing_of(is_of_index), entries_are_locked),
    "L12: rows are unchanged since it began": Rule(take_changed_rows, changed_rows_are_conflicts),
    "L13: its start is leased": Rule(hold_no_lease, its_start_is_held, RETENTION_MS),
    "G6: what is staged makes nothing garbage": Rule(take_staged_values_for_versions, makes_no_garbage, RETENTION_MS),
    "L14: the record is kept for a day": Rule(forget_records_at_once, remembered_for_a_day, given=have_short_days),
    "L15: an application has one at a time": Rule(let_many_be_open, one_of_an_application),
    "X3: builds wait for what was staged before": Rule(build_at_once, built_after_it),
    "X3: builds wait for rows that are staged": Rule(build_over_staged_rows, built_around_staged_rows),
    "X3: a commit has the indexes that it staged for": Rule(
        commit_with_any_index, commits_with_the_indexes_it_staged_for, given=build_at_once
    ),
}


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
def test_with_all_rules_of_large_transactions_each_scenario_holds(rule: Rule, monkeypatch: pytest.MonkeyPatch) -> None:
    rule.given(monkeypatch)
    play(rule.scenario, retention_ms=rule.retention_ms)


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
def test_a_rule_of_large_transactions_that_is_switched_off_is_missed(
    rule: Rule, monkeypatch: pytest.MonkeyPatch
) -> None:
    rule.switch_off(monkeypatch)
    with pytest.raises((AssertionError, CortadoError, pytest.fail.Exception)):
        play(rule.scenario, retention_ms=rule.retention_ms)
