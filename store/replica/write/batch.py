"""The batch that carries writes: it becomes one entry of the log, and holds the answers that wait for it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from operator import itemgetter
from typing import Final

from cortado.invariants import invariant
from cortado.store.clock.timestamp import ZERO, Timestamp
from cortado.store.mvcc.drafts import Draft, Drafted
from cortado.store.mvcc.evaluation import AcceptLoss, BumpEpoch, Cleared, Control, Evaluation, RaiseCeiling, Removal
from cortado.store.mvcc.many_versions import encode_many
from cortado.store.mvcc.mutations import Changes
from cortado.store.mvcc.packed_rows import PackedWrite, joined
from cortado.store.mvcc.row_maker import RowMaker
from cortado.store.mvcc.safepoints import Safepoints
from cortado.store.mvcc.seen import NO_READS, Seen
from cortado.store.mvcc.staged import moves_staged
from cortado.store.mvcc.versions import Item, encode_in_turn, encode_version
from cortado.store.observe.measures import EntryTimes
from cortado.store.replica.features.feature import Effect, Feature, Touched
from cortado.store.replica.write.log_entry import NO_REMOVAL, READS_BYTES_MAX, LogEntry
from cortado.store.replica.write.overlay import Layer
from cortado.store.replica.write.proposals import Outcome
from cortado.store.replica.write.request_table.records import Remembered, encode_each, encode_remembered
from cortado.store.replica.write.run import Proposed, Run, RunEffects

_engine_key: Final[Callable[[Item], bytes]] = itemgetter(0)


@dataclass(frozen=True, slots=True)
class Answer:
    """A proposal's outcome. If it ``rests``, it changes nothing (a refusal, a write without an effect), but depends on
    writes in flight, and may be given only once those are committed."""

    proposal: Proposed
    outcome: Outcome
    rests: bool


@dataclass(frozen=True, slots=True)
class Forgotten:
    """The records that an entry forgets: all below ``floor`` (empty: none), which is so many records and bytes."""

    floor: bytes = b""
    requests: int = 0
    bytes: int = 0


NOTHING_FORGOTTEN: Final = Forgotten()


@dataclass(slots=True, eq=False)
class Batch:
    """The effects of commands that become one entry of the log, and the answers that wait for it.

    Once it begins an ``epoch``, or its ``effect`` closes it, no command is evaluated until it is applied. ``index`` and
    ``term`` are its place in the log, once it is appended. It ``has_ended`` when it is applied, taken back, or given up
    with leadership.
    """

    segment: bytes
    """The prefix of its group's remembered requests."""
    layer: Layer = field(default_factory=Layer)
    answers: list[Answer] = field(default_factory=list)
    commands: int = 0
    callers: int = 0
    """The callers of all ``answers``."""
    size_bytes: int = 0
    items: list[Item] = field(default_factory=list)
    results: list[Item] = field(default_factory=list)
    result_bytes: int = 0
    first_ts: Timestamp = ZERO
    last_ts: Timestamp = ZERO
    epoch: int = 0
    ceiling: Timestamp | None = None
    effect: Effect = Effect.NONE
    """The strongest effect of its commands on features."""
    touched: list[tuple[Feature, Changes]] = field(default_factory=list)
    """Its commands' changes of the state that features keep in memory."""
    losses: dict[bytes, bool] = field(default_factory=dict)
    removed: set[bytes] = field(default_factory=set)
    cleared: list[Cleared] = field(default_factory=list)
    safepoints: Safepoints | None = None
    is_dense: bool = False
    lost_below: bytes = b""
    """All requests with smaller ids are to be forgotten, since one of them is lost; empty: no request is lost."""
    forgotten: Forgotten = NOTHING_FORGOTTEN
    index: int = 0
    term: int = 0
    has_ended: bool = False
    evaluating_ms: float = 0.0
    times: EntryTimes = field(default_factory=EntryTimes)
    seen: Seen | None = None
    """The reads of its commands, if followers are to examine them."""
    drafted: Drafted | None = None
    """Its items, if it has one command that was drafted. It takes no other, so that its items need no joining again."""
    packed: list[Drafted] = field(default_factory=list)
    """The items of its commands with rows that are packed, which are not in ``items``; ``maker`` joins them."""
    maker: RowMaker | None = None

    @property
    def is_complete(self) -> bool:
        """True if it takes no more commands: an epoch begins behind it, or it is one large command's."""
        return self.holds_next or self.drafted is not None

    @property
    def holds_next(self) -> bool:
        """True if no command may be evaluated before it is applied."""
        return self.epoch > 0 or self.effect >= Effect.CLOSES

    @property
    def is_answered_applied(self) -> bool:
        """True if its callers are answered once it is applied, not when it is committed."""
        return self.effect >= Effect.ANSWERED_APPLIED

    def has_room_for(self, proposal: Proposed, bytes_max: int, commands_max: int) -> bool:
        """Return whether it may take a proposal of this size. It takes the first one, however large."""
        if not self.commands:
            return len(self.answers) < commands_max
        fits = self.size_bytes + proposal.size_bytes <= bytes_max
        return fits and self.commands + proposal.callers <= commands_max

    def add(self, ts: Timestamp, evaluation: Evaluation, size_bytes: int) -> Sequence[Item]:
        """Take a command's effects. Returns the engine items of its mutations, in the order of its keys."""
        if not self.commands:
            self.first_ts = ts
        self.last_ts = ts
        self.commands += 1
        self.size_bytes += size_bytes
        mutations = evaluation.mutations
        keys, items = mutations.keys, self._encode(ts, mutations)
        is_alone = self.drafted is None or (self.commands == 1 and not evaluation.restored)
        invariant(is_alone, "a command that was drafted has its batch to itself", self.commands)
        self.items += evaluation.restored
        self.layer.add(keys, items)
        if evaluation.removal is not None:
            self._remove(evaluation.removal)
        match evaluation.control:
            case BumpEpoch(epoch):
                self.epoch = epoch
            case RaiseCeiling(ceiling):
                self.ceiling = ceiling if self.ceiling is None else max(self.ceiling, ceiling)
            case AcceptLoss(engine_key, is_key_right, request_floor):
                self.losses[engine_key] = is_key_right
                self.lost_below = max(self.lost_below, request_floor)
        return items

    def _encode(self, ts: Timestamp, mutations: Changes) -> Sequence[Item]:
        """Take a command's items, and return them."""
        if isinstance(mutations, Draft):
            self.drafted = mutations.at(ts)
            return self.drafted.items
        if isinstance(mutations, PackedWrite):
            self.maker = mutations.maker
            pieces, items = mutations.at(ts)
            self.packed += pieces
            return items
        keys, payloads, expiries = mutations.keys, mutations.payloads, mutations.expiries
        if len(keys) == 1:
            items = [encode_version(keys[0], payloads[0], ts, expiries.get(keys[0], 0))]
        else:
            items = encode_many(keys, payloads, ts, expiries)
        self.items += items
        return items

    def touch(self, touched: Sequence[Touched], changes: Changes) -> None:
        """Note the features that its last command touches."""
        self.touched += [(each, changes) for each, _ in touched]
        self.effect = max(self.effect, *[effect for _, effect in touched])

    def add_run(self, run: Run, first: Timestamp, effects: RunEffects, size_bytes: int) -> Sequence[Item]:
        """Take a run's effects and results, one command for each write that is not refused, one at least: at ``first``,
        and the timestamps behind it."""
        accepted = effects.accepted
        if not self.commands:
            self.first_ts = Timestamp(first.epoch, first.wall_ms, first.logical + accepted[0])
        self.last_ts = Timestamp(first.epoch, first.wall_ms, first.logical + accepted[-1])
        self.commands += len(accepted)
        self.size_bytes += size_bytes
        items = encode_in_turn(effects.keys, effects.payloads, first, effects.places, effects.expiries)
        self.items += items
        self.layer.add(effects.keys, items)
        records = encode_each(self.segment, run.request_ids, run.hashes, first, effects.replies)
        if effects.refused:
            records = [records[place] for place in accepted]
        self.results += records
        self.result_bytes += sum([len(record) for _, record in records])
        run.entry = self.times
        self.answer(run, effects.result(first), rests=False)
        return items

    def answer(self, proposal: Proposed, outcome: Outcome, *, rests: bool) -> None:
        """Keep the proposal's outcome, to be given once the writes that it rests on are committed."""
        self.answers.append(Answer(proposal, outcome, rests))
        self.callers += proposal.callers

    def take_resting(self) -> list[Answer]:
        """Take the answers, if no command changes anything."""
        if self.commands or not self.answers:
            return []
        resting, self.answers, self.callers = self.answers, [], 0
        return resting

    def _remove(self, removal: Removal) -> None:
        self.removed.update(removal.keys)
        self.is_dense |= removal.is_dense
        self.cleared += removal.cleared
        if removal.safepoints is not None:
            self.safepoints = removal.safepoints
            self.layer.safepoints = removal.safepoints

    def remember(self, request_id: bytes, remembered: Remembered) -> None:
        """Take the record from which its request is answered from now on."""
        record = encode_remembered(self.segment + request_id, remembered)
        self.results.append((request_id, record))
        self.result_bytes += len(record)

    def _controls(self) -> list[Control]:
        controls: list[Control] = []
        if self.epoch:
            controls.append(BumpEpoch(self.epoch))
        if self.ceiling is not None:
            controls.append(RaiseCeiling(self.ceiling))
        return controls + [AcceptLoss(key, is_right) for key, is_right in sorted(self.losses.items())]

    def _removal(self) -> Removal:
        if not (self.removed or self.cleared or self.safepoints):
            return NO_REMOVAL
        # F1: an entry says one thing of each engine key. Removed versions are older than its commands' puts.
        if self.removed:
            self.removed.difference_update([key for key, _ in self.items])
        return Removal(sorted(self.removed), self.cleared, self.safepoints, self.is_dense)

    def _join_packed(self) -> Drafted | None:
        """Return the items of packed rows, if the batch has no others, and removes none; else put them to the others,
        and return None."""
        if self.maker is not None and not (self.items or self.removed):
            return joined(self.maker, self.packed)
        for each in self.packed:
            self.items += each.items
        self.packed.clear()
        return None

    def entry(self, after_index: int, after_term: int) -> LogEntry:
        """Return the entry, in key order."""
        drafted = self._join_packed() if self.packed else self.drafted
        removal = self._removal()
        # No engine key comes twice: a commit writes a key once, and each has its own timestamp. But several of its
        # commands may move the same staged value.
        if drafted is None:
            self.items.sort(key=_engine_key)
            if self.commands > 1 and moves_staged(removal):
                self.items = [next(same) for _, same in groupby(self.items, key=_engine_key)]
        self.results.sort()
        return LogEntry(
            after_index,
            after_term,
            self.first_ts,
            self.last_ts,
            self.items if drafted is None else drafted.items,
            self.results,
            self.forgotten.floor,
            self._controls(),
            NO_READS if self.seen is None else self.seen.reads(READS_BYTES_MAX),
            removal,
            self.size_bytes,
            drafted,
        )
