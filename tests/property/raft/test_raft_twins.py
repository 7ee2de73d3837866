"""The journal against a list and a dictionary; the majority's position against counting; bytes against themselves."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import takewhile

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from cortado.errors import DataLoss
from cortado.proto.internal import raft_pb2 as pb
from cortado.raft.configuration import Configuration
from cortado.raft.journal import Journal
from cortado.raft.log import Encoded, Payload, RecordKind
from cortado.raft.reads import reached_by
from cortado.raft.records import (
    KIND_CONFIGURATION,
    KIND_DATA,
    KIND_REGISTRY,
    HardState,
    Record,
    Writes,
    decode_record,
    decode_stored,
    reset_to,
)
from cortado.raft.registry import Member, Registry, Roster
from support.examples import examples
from support.raft_disks import LogDisk
from support.raft_hand import GROUP, Hand, members

ROSTERS = [Roster.of(members(count)) for count in (1, 2, 3)]
_KINDS = {Configuration: KIND_CONFIGURATION, Registry: KIND_REGISTRY}
STEPS = st.lists(
    st.tuples(
        st.sampled_from(
            (
                *("add", "add", "add", "configure", "register", "truncate", "truncate", "take", "sync", "sync"),
                *("withdraw", "find no room", "drop", "term", "vote", "crash", "crash after the sync", "reset"),
                "take a snapshot",
            )
        ),
        st.integers(0, 99),
    ),
    min_size=20,
    max_size=60,
)
Held = tuple[int, int, int]
"""An entry's index, its term, and a number that no other entry has."""


@dataclass(frozen=True)
class State:
    """The whole log, as a dumb twin keeps it: all of it."""

    hard: HardState
    entries: tuple[Held, ...] = ()

    @property
    def base(self) -> tuple[int, int]:
        return self.hard.base_index, self.hard.base_term

    @property
    def last(self) -> tuple[int, int]:
        return self.entries[-1][:2] if self.entries else self.base

    def term_at(self, index: int) -> int | None:
        return dict([self.base, *(each[:2] for each in self.entries)]).get(index)

    def behind(self, index: int, term: int, roster: Roster) -> State:
        hard = replace(self.hard, base_index=index, base_term=term, base_roster=roster)
        return State(hard, tuple(each for each in self.entries if each[0] > index))

    def shared_with(self, other: State) -> tuple[Held, ...]:
        """Return the entries that both hold, from where the later of both begins."""
        first = max(self.base[0], other.base[0])
        mine, theirs = ([each for each in of.entries if each[0] > first] for of in (self, other))
        return tuple(one for one, _ in takewhile(lambda pair: pair[0] == pair[1], zip(mine, theirs, strict=False)))


class JournalAndTwin:
    """``memory`` is the expected journal, ``kept`` the expected log files, ``taken`` the taken writes with their
    state."""

    def __init__(self) -> None:
        start = HardState(1, "", 2, 1, ROSTERS[2])
        self.files = LogDisk(start.log_record(GROUP))
        self.memory = self.kept = State(start)
        self.taken: tuple[Writes, State] | None = None
        self.payloads: dict[int, Payload] = {}
        self.open()

    def open(self) -> None:
        self.journal = Journal(GROUP, self.files.stored(), self.files.base)
        self.memory, self.taken = self.kept, None

    # --- steps --------------------------------------------------------------------------------------------------------

    def add(self, number: int, *, payload: Payload | None = None) -> None:
        name = len(self.payloads)
        payload = self.payloads[name] = payload or Encoded(b"%d %d" % (name, number))
        kind = _KINDS.get(type(payload), KIND_DATA)
        index, term = self.memory.last[0] + 1, self.memory.hard.term
        self.journal.add(Record(kind, payload, index, term), index, term)
        self.memory = replace(self.memory, entries=(*self.memory.entries, (index, term, name)))

    def truncate(self, number: int) -> None:
        if self.memory.entries:
            place = number % len(self.memory.entries)
            self.journal.truncate(self.memory.entries[place][0])
            self.memory = replace(self.memory, entries=self.memory.entries[:place])

    def take(self) -> None:
        if self.taken is None and self.journal.is_dirty:
            self.taken = self.journal.take_writes(), self.memory

    def sync(self) -> None:
        self.take()
        if self.taken is not None:
            (writes, self.kept), self.taken = self.taken, None
            self.files.write(writes)
            self.journal.synced()

    def withdraw(self) -> None:
        if self.taken is not None:
            self.taken = None
            self.journal.withdrawn()
            self.memory = replace(self.memory, entries=self.memory.shared_with(self.kept))

    def drop(self, number: int) -> None:
        durable = self.memory.shared_with(self.kept)
        if durable:
            index, term, _ = durable[number % len(durable)]
            self.memory = self.memory.behind(index, term, self.roster_at(index))
            self.journal.drop_to(index)

    def roster_at(self, index: int) -> Roster:
        found = self.memory.hard.base_roster
        for each in (self.payloads[name] for at, _, name in self.memory.entries if at <= index):
            if isinstance(each, Configuration):
                found = replace(found, configuration=each)
            if isinstance(each, Registry):
                found = replace(found, registry=each)
        return found

    def enter_term(self, term: int, voted_for: str) -> None:
        self.journal.setCurrentTerm(term, voted_for)
        self.memory = replace(self.memory, hard=replace(self.memory.hard, term=term, voted_for=voted_for))

    def vote(self, number: int) -> None:
        if not self.memory.hard.voted_for:
            self.enter_term(self.memory.hard.term, f"n{number}")

    def crash(self, *, is_synced: bool) -> None:
        if is_synced and self.taken is not None:
            writes, self.kept = self.taken
            self.files.write(writes)
        self.check_files()
        self.open()

    def reset(self, number: int, *, is_stranger: bool) -> None:
        """Reset to a snapshot of an entry that is held, or of another that may be behind or within the log. Meanwhile
        the log goes on."""
        if self.taken is not None:
            return
        journal, before, roster = self.journal, self.memory, ROSTERS[number % 3]
        if is_stranger or not before.entries:
            index, term = before.base[0] + 1 + number % 9, before.hard.term + number % 2
        else:
            index, term, _ = before.entries[number % len(before.entries)]
        is_held = before.term_at(index) == term
        writes, was_kept = journal.reset_writes(index, term, roster)
        assert was_kept == is_held
        shared = before.shared_with(self.kept) if is_held else ()
        self.kept = replace(before, entries=shared).behind(index, term, roster)
        if term > before.hard.term:
            self.kept = replace(self.kept, hard=replace(self.kept.hard, term=term, voted_for=""))
        self.files.write(writes)
        self.check_files()
        if number % 5 == 0:
            self.truncate(number // 5)
        if number % 4 == 0:
            self.add(number)
        if term > self.memory.hard.term:
            self.enter_term(term, "")
        if self.memory.term_at(index) != term:
            self.memory = replace(self.memory, entries=())
        self.memory = self.memory.behind(index, term, roster)
        journal.reset(index, term, roster, was_kept=was_kept)

    # --- checks -------------------------------------------------------------------------------------------------------

    def check(self) -> None:
        journal, memory = self.journal, self.memory
        held = [(entry[1], entry[2], decode_record(GROUP, entry[1], entry[0].stored(GROUP))) for entry in journal[1:]]
        expected = [(index, term, self.payloads[name].encode()) for index, term, name in memory.entries]
        assert [(index, term, record.held_entry.payload.encode()) for index, term, record in held] == expected
        assert (journal.base, journal.last, len(journal)) == (memory.base, memory.last, len(expected) + 1)
        assert (journal.term, journal.voted_for) == (memory.hard.term, memory.hard.voted_for)
        assert journal.roster == self.roster_at(memory.last[0])
        assert all(journal.term_at(index) == term for index, term, _ in memory.entries)
        durable = memory.shared_with(self.kept)
        assert journal.durable_index == (durable[-1][0] if durable else memory.base[0])
        if not journal.is_dirty and self.taken is None:
            assert (self.kept.entries, self.kept.hard) == (memory.entries, memory.hard)

    def check_files(self) -> None:
        """Check that the records add up to the durable state, and nothing else."""
        files, kept = self.files.stored(), self.kept
        assert files.hard_state == kept.hard
        assert [(each.index, each.term, each.held_entry.payload.encode()) for each in files.records] == [
            (index, term, self.payloads[name].encode()) for index, term, name in kept.entries
        ]


@given(STEPS)
@example([("add", 1), ("add", 2), ("sync", 0), ("truncate", 1), ("find no room", 0), ("sync", 0)])
@example([("add", 1), ("sync", 0), ("truncate", 0), ("add", 2), ("take", 0), ("truncate", 0), ("sync", 0)])
@example([("add", 1), ("add", 2), ("sync", 0), ("term", 0), ("truncate", 0), ("add", 3), ("reset", 0), ("sync", 0)])
@settings(max_examples=examples(500), deadline=None)
def test_what_the_records_of_any_history_come_to_is_what_a_journal_calls_durable(steps: list[tuple[str, int]]) -> None:
    pair = JournalAndTwin()
    actions: dict[str, Callable[[int], object]] = {
        "add": pair.add,
        "configure": lambda number: pair.add(number, payload=ROSTERS[number % 3].configuration),
        "register": lambda number: pair.add(number, payload=ROSTERS[number % 3].registry),
        "truncate": pair.truncate,
        "take": lambda _: pair.take(),
        "sync": lambda _: pair.sync(),
        "withdraw": lambda _: pair.withdraw(),
        "find no room": lambda _: (pair.take(), pair.withdraw()),
        "drop": pair.drop,
        "term": lambda number: pair.enter_term(pair.memory.hard.term + 1, f"n{number}" if number % 2 else ""),
        "vote": pair.vote,
        "crash": lambda _: pair.crash(is_synced=False),
        "crash after the sync": lambda _: pair.crash(is_synced=True),
        "reset": lambda number: pair.reset(number, is_stranger=False),
        "take a snapshot": lambda number: pair.reset(number, is_stranger=True),
    }
    for step, number in steps:
        actions[step](number)
        pair.check()
        pair.check_files()
    pair.sync()
    pair.check()
    pair.crash(is_synced=True)
    pair.check()


@given(STEPS, st.integers(0, 99))
@settings(max_examples=examples(200), deadline=None)
def test_a_log_that_is_reset_at_a_start_is_what_its_writes_make_of_the_files(
    steps: list[tuple[str, int]], number: int
) -> None:
    pair = JournalAndTwin()
    for step, each in steps:
        if step == "truncate":
            pair.truncate(each)
        elif step == "term":
            pair.enter_term(pair.memory.hard.term + 1, "")
        else:
            pair.add(each)
    pair.sync()
    stored = pair.files.stored()
    index = stored.hard_state.base_index + 1 + number % 9
    held = pair.memory.term_at(index)
    term = held if held is not None and number % 2 else stored.hard_state.term
    state = HardState(stored.hard_state.term, "", index, term, ROSTERS[0])
    again, writes = reset_to(GROUP, stored, state)
    pair.files.write(writes)
    files = pair.files.stored()
    assert files.hard_state == again.hard_state == state
    assert [each.stored(GROUP) for each in files.records] == [each.stored(GROUP) for each in again.records]
    assert bool(files.records) == (held == term and pair.memory.last[0] > index)


@given(st.integers(1, 3), st.lists(st.tuples(st.integers(2, 5), st.integers(0, 12)), max_size=30))
@settings(max_examples=examples(60), deadline=None)
def test_what_is_decided_is_what_a_majority_holds(faulty: int, answers: list[tuple[int, int]]) -> None:
    group = Hand(5)
    log = group.elect("n1")
    for place in range(8):
        group.append("n1", b"%d" % place)
    group.store("n1")
    held = {"n1": 11, **{f"n{number}": 3 for number in range(2, 6)}}
    for number, index in answers:
        member = f"n{number}"
        answer = pb.Acknowledgement(matched_index=index)
        message = pb.RaftMessage(term=log.term, echo_ms=group.now_ms, acknowledgement=answer)
        log.step(member, message.SerializeToString())
        log.tick(group.now_ms)
        if index <= 11:
            held[member] = max(held[member], index)
        by_counting = max(each for each in range(3, 12) if sum(at >= each for at in held.values()) >= 3)
        assert log.durable_commit_index == by_counting


@given(st.lists(st.integers(0, 9), min_size=1, max_size=7))
def test_what_a_majority_has_reached(values: list[int]) -> None:
    majority = len(values) // 2 + 1
    reached = reached_by(majority, values)
    assert sum(each >= reached for each in values) >= majority
    assert sum(each > reached for each in values) < majority


@given(st.binary(max_size=200))
def test_bytes_of_strangers_change_nothing(body: bytes) -> None:
    group = Hand(3)
    before = group.logs["n1"].last, group.logs["n1"].durable_commit_index
    message = pb.RaftMessage()
    try:
        message.ParseFromString(body)
    except Exception:
        group.logs["n1"].step("n2", body)
        assert (group.logs["n1"].last, group.logs["n1"].durable_commit_index) == before
        assert not group.logs["n1"].storing.ready()


@given(st.integers(3, 1 << 40), st.integers(1, 1 << 40), st.binary(max_size=300), st.data())
def test_a_stored_entry_comes_back_or_says_that_it_is_damaged(
    index: int, term: int, body: bytes, data: st.DataObject
) -> None:
    stored = Record(KIND_DATA, Encoded(body), index, term).stored(GROUP)
    again = decode_record(GROUP, index, stored)
    assert (again.index, again.term, again.entry.payload) == (index, term, Encoded(body))
    assert again.stored(GROUP) == stored
    place = data.draw(st.integers(0, len(stored) * 8 - 1))
    damaged = bytearray(stored)
    damaged[place // 8] ^= 1 << place % 8
    with pytest.raises(DataLoss):
        decode_record(GROUP, index, bytes(damaged))
    with pytest.raises(DataLoss):
        decode_record(GROUP, index + 1, stored)


MEMBERS = st.builds(Member, st.text(min_size=1, max_size=5), st.text(max_size=9), st.text(max_size=9))


@given(st.lists(MEMBERS, max_size=5, unique_by=lambda each: each.node_id), st.integers(0, 5))
def test_a_roster_comes_back(everyone: list[Member], voters: int) -> None:
    ordered = sorted(everyone, key=lambda each: each.node_id)
    roster = Roster.of(ordered[:voters], ordered[voters:])
    assert Roster.decode(roster.encode()) == roster


def test_a_hard_state_comes_back_or_says_that_it_is_damaged() -> None:
    state = HardState(7, "n2", 40, 6, ROSTERS[2])
    record = state.log_record(GROUP)
    assert (record.kind, record.index, record.term) == (RecordKind.HARD_STATE, 40, 6)
    assert decode_stored(GROUP, record, ()).hard_state == state
    for place in range(len(record.payload) * 8):
        damaged = bytearray(record.payload)
        damaged[place // 8] ^= 1 << place % 8
        with pytest.raises(DataLoss):
            decode_stored(GROUP, replace(record, payload=bytes(damaged)), ())
