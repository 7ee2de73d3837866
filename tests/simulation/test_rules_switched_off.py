"""Each rule of the node is there because without it an answer is false or an acknowledged write is gone. Switched off
here, one by one, it must be missed: seeds with the right kinds of fault must find a violation, and none without.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import pytest

from cortado.errors import OutcomeUnknown
from cortado.raft.core import Core
from cortado.raft.group import RaftLog
from cortado.raft.outbox import AT_ONCE, Outbox
from cortado.raft.room import MembersRoom
from cortado.store.clock.timestamp import TIMESTAMP_BYTES, Timestamp
from cortado.store.collection import safepoints
from cortado.store.engine.interface import Space
from cortado.store.keys.types import LogicalKey
from cortado.store.log_files import frames
from cortado.store.mvcc import garbage, versions
from cortado.store.mvcc.evaluation import Evaluation, Removal
from cortado.store.mvcc.garbage import Garbage
from cortado.store.mvcc.reader import Changed
from cortado.store.mvcc.safepoints import Safepoints
from cortado.store.mvcc.staged import LargeTransaction, Staged
from cortado.store.mvcc.store import Snapshot
from cortado.store.mvcc.versions import timestamp_of
from cortado.store.replica.collection import slices
from cortado.store.replica.collection.collector import Collector
from cortado.store.replica.driver import Driver
from cortado.store.replica.feed.feed import ChangeFeed
from cortado.store.replica.feed.recent import RecentChanges
from cortado.store.replica.read.read_index import ReadIndex
from cortado.store.replica.replica import Replica
from cortado.store.replica.snapshots.installation import Installation
from cortado.store.replica.write.overlay import OverlayReader
from cortado.store.replica.write.pipeline import Pipeline
from cortado.store.replica.write.proposals import Proposal, WriteResult
from cortado.store.replica.write.request_table import table
from cortado.store.replica.write.request_table.records import answer_of
from cortado.store.replica.write.request_table.table import RequestTable
from cortado.store.replica.write.run import RunPlace
from cortado.store.staging.stage import Met
from cortado.store.transactions import commit
from cortado.store.transactions.ahead import Ahead
from cortado.store.transactions.operations import Committed
from support.dict_reader import DictStore
from support.simulation.cluster import Cluster
from support.simulation.faults import Nemesis
from support.simulation.process import Host
from support.simulation.run import Plan, simulate

pytestmark = [pytest.mark.long, pytest.mark.slow]

SEEDS_MAX: Final = 60
SHOWS: Final = (
    "G-single",
    "G2",
    "a transaction began at",
    "aborted, and yet",
    "accounts",
    " read on ",
    "a stale read at",
    "a start did not notice",
    "came after one at",
    "appended",
    "dirty read",
    "lost: ",
    "the counter is",
    "a read at a lease that is held",
    "and the safepoint is",
    "and the delete that hid it is gone",
    "are committed at",
    "happened",
    "is not there as it was staged",
    "is not what the rows say",
    "no row was to have changed",
    "of it; it named",
    "rows what they are not",
    "a watcher of rows",
    "leader completeness",
    "no order explains",
    "rests on a state before",
    "staler than",
    "states differ",
    "two leaders",
    "were filled to the last byte",
)
Switch = Callable[[pytest.MonkeyPatch], None]


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@dataclass(frozen=True)
class Rule:
    """``faults`` show that it is off, to ``clients``, one every ``every_ms``: enough for a cluster to recover if it
    must.

    ``seed`` is one that is known to show it. The search begins there and goes on through all, so a change of the
    simulation makes it longer, and no less true.
    """

    switch_off: Switch
    faults: tuple[str, ...]
    every_ms: float = 150.0
    election_ms_max: float = 1_300.0
    seed: int = 0
    clients: int = 6
    sync_ms: tuple[float, float] = (1.0, 20.0)
    transactors: int = 0
    collects: bool = False
    expires: bool = False
    large: bool = False
    ahead_from: int = 100
    recent_entries_max: int | None = None
    """How many changes are kept in memory; None: as many as the seed says."""


def run_with(rule: Rule, seed: int) -> list[str]:
    """Return the findings of a seed with only the rule's faults, and with room for the failure that the rule guards
    against."""

    def prepare(cluster: Cluster, nemesis: Nemesis) -> None:
        nemesis.enabled = list(rule.faults)
        nemesis.mean_ms = rule.every_ms
        if rule.recent_entries_max is not None:
            limits = replace(cluster.options.limits, watch_recent_entries_max=rule.recent_entries_max)
            cluster.options.limits = limits
        cluster.options.raft = replace(cluster.options.raft, election_ms_max=rule.election_ms_max, lease=False)
        watch_host = cluster.on_host

        def arrange(host: Host) -> None:
            watch_host(host)
            # Disks slow enough to be caught syncing; clocks as far apart as they may be.
            host.disk.sync_ms = rule.sync_ms
            host.clock.set_right(110 if host.is_first else -110)

        cluster.on_host = arrange

    plan = Plan(
        nodes=3,
        clients=rule.clients,
        transactors=rule.transactors,
        collects=rule.collects,
        expires=rule.expires,
        large=rule.large,
        ahead_from=rule.ahead_from,
        faults_ms=max(10_000.0, 6 * rule.every_ms),
    )
    return simulate(seed, plan=plan, prepare=prepare).violations


def first_failing(rule: Rule) -> tuple[int, str] | None:
    """Return the first seed that shows it, and its findings. A process that stopped, say, shows nothing."""
    for seed in (*range(rule.seed, SEEDS_MAX), *range(rule.seed)):
        for violation in run_with(rule, seed):
            if any(words in violation for words in SHOWS):
                return seed, violation
    return None


# --- the switches ----------------------------------------------------------------------------------------------


def send_before_the_sync(patch: pytest.MonkeyPatch) -> None:
    put = Outbox.put

    def at_once(self: Outbox, to: str, message: Any, sent_ms: float, needs: int = AT_ONCE) -> None:
        put(self, to, message, sent_ms, AT_ONCE)

    patch.setattr(Outbox, "put", at_once)


def answer_when_appended(patch: pytest.MonkeyPatch) -> None:
    def answer_appended(self: Pipeline) -> int:
        while self._answered < len(self._appended):
            batch = self._appended[self._answered]
            self._answered += 1
            for answer in batch.answers:
                self.answer(answer)
        return 0

    patch.setattr(Pipeline, "answer_committed", answer_appended)


def read_without_a_round(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(RaftLog, "read_round", lambda self: self.confirmed_round)
    patch.setattr(RaftLog, "has_round_under_way", False)


def refuse_without_a_round(patch: pytest.MonkeyPatch) -> None:
    def at_once(self: ReadIndex, answers: Sequence[Any]) -> None:
        for answer in answers:
            self.leave(answer)

    patch.setattr(ReadIndex, "rest", at_once)


def read_what_is_applied_alone(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Pipeline, "reader", lambda self, read_ts: self._machine.snapshot(read_ts))


def begin_below_the_ceiling(patch: pytest.MonkeyPatch) -> None:
    def without(self: Driver) -> None:
        self._group.process.clock.observe_log(self.applied.last_ts)
        self._on_leading()

    patch.setattr(Driver, "_lead", without)


def evaluate_before_the_own_entry(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Core, "may_append", property(lambda self: self.is_leading and not self.transferee))


def forget_what_was_answered(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(RequestTable, "find", lambda self, request_id: None)


def execute_below_the_floor(patch: pytest.MonkeyPatch) -> None:
    def executed(*arguments: Any) -> Any:
        try:
            return answer_of(*arguments)
        except OutcomeUnknown:
            return None

    patch.setattr(table, "answer_of", executed)


def install_without_a_marker(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Installation, "mark", lambda self: None)


def be_fresh_always(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(RaftLog, "fresh_as_of_ms", property(lambda self: self._core.now_ms + 1e9))


def collect_the_newest_too(patch: pytest.MonkeyPatch) -> None:
    find = slices.find_garbage

    def find_more(keys: list[bytes], values: list[bytes], safepoint: Timestamp, **more: Any) -> Garbage:
        found = find(keys, values, safepoint, **more)
        visible = [key for key in keys if timestamp_of(key[-TIMESTAMP_BYTES:]) <= safepoint]
        return replace(found, keys=sorted({*found.keys, *visible}))

    patch.setattr(slices, "find_garbage", find_more)


def collect_a_delete_before_what_it_hides(patch: pytest.MonkeyPatch) -> None:
    find = slices.find_garbage

    def find_deletes_alone(keys: list[bytes], values: list[bytes], safepoint: Timestamp, **more: Any) -> Garbage:
        found = find(keys, values, safepoint, **more)
        return replace(found, keys=[], deleted=[replace(each, items_max=1) for each in found.deleted])

    patch.setattr(slices, "find_garbage", find_deletes_alone)


def collect_what_has_not_expired_yet(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(garbage, "expiry_ts", lambda key, _value: timestamp_of(key[-TIMESTAMP_BYTES:]))


def never_expire(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(versions, "has_expired", lambda _key, _value, _as_of: False)


def pass_leases(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(safepoints, "oldest_lease", lambda _reader: None)


def serve_what_is_collected(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Safepoints, "check", lambda self, ts, start, end: None)


def collect_here_alone(patch: pytest.MonkeyPatch) -> None:
    async def in_place(self: Collector, removal: Removal) -> None:
        with self._process.engine.write() as txn:
            for key in removal.keys:
                txn.delete(Space.DATA, key)

    patch.setattr(Collector, "_remove", in_place)


def find_no_conflict(kind: str) -> Switch:
    def switch_off(patch: pytest.MonkeyPatch) -> None:
        find = commit.conflict_of

        def without(changed: Changed | None, start: Timestamp, of: str, *more: Any) -> None:
            if of != kind:
                find(changed, start, of, *more)

        patch.setattr(commit, "conflict_of", without)

    return switch_off


def take_deletes_for_unchanged(patch: pytest.MonkeyPatch) -> None:
    for reader in (OverlayReader, Snapshot):
        find = reader.changed_since

        def live_alone(self: Any, *arguments: Any, find: Any = find) -> Changed | None:
            changed: Changed | None = find(self, *arguments)
            return changed if changed is not None and self.get(changed.key) is not None else None

        patch.setattr(reader, "changed_since", live_alone)


def look_for_changes_in_what_is_applied(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(OverlayReader, "changed_since", lambda self, *arguments: self._base.changed_since(*arguments))


def look_for_changes_in_what_is_in_flight(patch: pytest.MonkeyPatch) -> None:
    changed_since = OverlayReader.changed_since

    def of_layers(self: OverlayReader, *arguments: Any) -> Changed | None:
        nothing = DictStore().snapshot()
        return changed_since(OverlayReader(nothing, self._layers, newest=self._newest), *arguments)

    patch.setattr(OverlayReader, "changed_since", of_layers)


def take_what_was_worked_out_ahead(patch: pytest.MonkeyPatch) -> None:
    def evaluate(self: Ahead, _reader: Any, commit_ts: Timestamp, _unchanged_to: Timestamp | None) -> Evaluation:
        if self._refusal is not None:
            raise self._refusal
        return Evaluation(self._mutations, Committed(commit_ts, tuple(self._staged.sums)))

    patch.setattr(Ahead, "evaluate", evaluate)


def forget_what_was_settled(patch: pytest.MonkeyPatch) -> None:
    async def only_look(self: Replica, request_id: bytes, _admit: Any = None) -> WriteResult | None:
        first = self.known_requests.first(request_id, b"")
        while isinstance(first, Proposal | RunPlace):
            await self.driver.until(lambda first=first: first.outcome is not None)
            first = self.known_requests.first(request_id, b"")
        return None if first is None else WriteResult(first.ts, first.reply, repeated=True)

    patch.setattr(Replica, "settle", only_look)


def forget_how_far_the_newest_changes_reach(patch: pytest.MonkeyPatch) -> None:
    all_since = RecentChanges.all_since
    patch.setattr(RecentChanges, "all_since", lambda self, after: all_since(self, max(after, self.floor)))


def read_without_checksums(patch: pytest.MonkeyPatch) -> None:
    """Take the bytes at the place that a frame's head names as the frame of the log files."""

    class Whatever:
        def __eq__(self, _other: object) -> bool:
            return True

    # Frames are compared with the expected ones; writers call another name.
    patch.setattr(frames, "encode_frame", lambda segment, offset, body: Whatever())


def let_writers_leave_what_is_committed(patch: pytest.MonkeyPatch) -> None:
    take = Met.take

    def only_check(self: Met, key: LogicalKey, there: Staged) -> None:
        other = self._unresolved.all.get(there.transaction_id)
        if other is not None and other.is_open:
            take(self, key, there)

    patch.setattr(Met, "take", only_check)


def let_every_attempt_count(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(LargeTransaction, "counts", lambda self, _attempt: True)


def tell_watches_at_once(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ChangeFeed, "complete_to", lambda self, _start, _end: self.position)


def keep_the_newest_changes(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(RecentChanges, "clear", lambda self, _position: None)


def lock_nothing(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Met, "take", lambda self, _key, _there: None)


CUTS: Final = ("leader cut off", "partition", "pause")
CRASHES: Final = ("crash", "crash of all", "crash of the leader")

# Two leaders beside each other, for seconds: an old one that was cut off notices late.
OLD_LEADERS: Final = ("leader cut off", "partition")


def of_transactions(
    switch_off: Switch, *faults: str, recent_entries_max: int | None = None, ahead_from: int = 100, seed: int = 0
) -> Rule:
    """Return a rule for runs in which clients do little else."""
    return Rule(
        switch_off,
        faults or ("crash of the leader",),
        1_000.0,
        seed=seed,
        clients=1,
        transactors=8,
        recent_entries_max=recent_entries_max,
        ahead_from=ahead_from,
    )


def of_large(switch_off: Switch, *faults: str, seed: int = 0) -> Rule:
    """Return a rule for runs in which clients do little else."""
    return Rule(switch_off, faults or ("crash of the leader",), 2_000.0, seed=seed, clients=1, large=True)


def fill_the_members_disks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make a leader look at its own disk alone."""
    monkeypatch.setattr(MembersRoom, "of_majority", lambda _room, *, frees: (math.inf, []))


RULES: Final = {
    "messages wait for the sync of what they say": Rule(
        send_before_the_sync, (*CRASHES, "hanging sync"), 400.0, seed=16, sync_ms=(20.0, 150.0)
    ),
    "a write is answered once it is committed": Rule(answer_when_appended, (*CRASHES, *CUTS)),
    "a read waits for a round": Rule(read_without_a_round, OLD_LEADERS, 2_500.0, 4_000.0, seed=41),
    "a refusal waits for a round": Rule(refuse_without_a_round, OLD_LEADERS, 2_500.0, 4_000.0, seed=3),
    "a read looks through what is committed and not applied": Rule(read_what_is_applied_alone, CUTS),
    "a leader begins above the ceiling": Rule(
        begin_below_the_ceiling, ("leader transfer",), 300.0, seed=19, clients=12
    ),
    "a leader evaluates once its own entry is applied": Rule(
        evaluate_before_the_own_entry, (*CUTS, *CRASHES, "bad weather"), seed=17
    ),
    "a request is executed once": Rule(forget_what_was_answered, ("clients cut off", "pause", "crash of the leader")),
    "a request below the floor is not executed": Rule(
        execute_below_the_floor, ("clients cut off", "pause", "crash of the leader")
    ),
    "a marker stands while a state is replaced": Rule(
        install_without_a_marker, ("member added", "member removed", "crash while installing"), seed=28
    ),
    "a replica knows how stale it is": Rule(be_fresh_always, CUTS),
    "G1: the newest version at the safepoint stays": Rule(collect_the_newest_too, CUTS, collects=True),
    "G2: reads below the safepoint are refused": Rule(serve_what_is_collected, CUTS, seed=27, collects=True),
    "G3: no safepoint passes a lease": Rule(pass_leases, CUTS, collects=True),
    "G4: a delete goes with what it hides": Rule(collect_a_delete_before_what_it_hides, CUTS, collects=True),
    "G7: what is collected has expired at the safepoint": Rule(
        collect_what_has_not_expired_yet, CUTS, collects=True, expires=True
    ),
    "what has expired by the time of a read is absent": Rule(never_expire, CUTS, expires=True),
    "G8: replicas collect at one place in the log": Rule(collect_here_alone, CUTS, collects=True),
    "T1: what a transaction writes, nobody else has written": of_transactions(find_no_conflict("write")),
    "T2: deletes are changes": of_transactions(take_deletes_for_unchanged),
    "T3: changes are looked for in what is applied": of_transactions(look_for_changes_in_what_is_in_flight),
    "T3: changes are looked for in what is in flight": of_transactions(look_for_changes_in_what_is_applied),
    "T4: keys that were read have not changed": of_transactions(find_no_conflict("read")),
    "T5: ranges that were read have not changed": of_transactions(find_no_conflict("range")),
    "T9: the newest changes reach back to the start": of_transactions(
        forget_how_far_the_newest_changes_reach, recent_entries_max=1, seed=6
    ),
    "T11: what is settled never happens": of_transactions(forget_what_was_settled, "clients cut off", "pause", seed=1),
    "T14: what was worked out ahead is what it would come to": of_transactions(
        take_what_was_worked_out_ahead, ahead_from=0
    ),
    "L5: who writes a key moves what is committed there": of_large(let_writers_leave_what_is_committed),
    "L6: the attempts count that the commit names": of_large(let_every_attempt_count),
    "L9: watches wait until all is in place": of_large(tell_watches_at_once),
    "L10: the newest changes begin anew": of_large(keep_the_newest_changes, seed=1),
    "L11: what is staged is locked": of_large(lock_nothing),
    "what is appended leaves the reserves of a majority": Rule(
        fill_the_members_disks, ("scarce disks of followers",), 400.0
    ),
    "a log that does not check is not read": Rule(read_without_checksums, ("damaged log",)),
}


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
def test_a_rule_that_is_switched_off_is_missed(rule: Rule, monkeypatch: pytest.MonkeyPatch) -> None:
    rule.switch_off(monkeypatch)
    assert first_failing(rule) is not None


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
def test_with_all_rules_the_same_faults_do_no_harm(rule: Rule) -> None:
    for seed in range(2):
        assert run_with(rule, seed) == []
