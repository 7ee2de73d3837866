"""The journal against a list and a dictionary; what a majority holds against counting; bytes against themselves."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cortado.errors import DataLoss
from cortado.proto.internal import raft_pb2 as pb
from cortado.raft.configuration import Configuration, Member
from cortado.raft.journal import Journal
from cortado.raft.log import Encoded
from cortado.raft.reads import reached_by
from cortado.raft.records import (
    KIND_CONFIGURATION,
    KIND_DATA,
    HardState,
    Record,
    decode_record,
    decode_stored,
    hard_key,
)
from support.raft_hand import GROUP, Hand, members

CONFIGURATIONS = [Configuration(members(count)) for count in (1, 2, 3)]
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["add", "add", "configure", "truncate", "store", "drop", "term", "restart"]), st.integers(0, 99)
    ),
    max_size=60,
)


@given(STEPS)
@settings(max_examples=300, deadline=None)
def test_a_journal_is_a_list_whose_stored_part_is_what_was_taken(steps: list[tuple[str, int]]) -> None:
    start = HardState(1, "", 2, 1, CONFIGURATIONS[2])
    disk = dict([start.write(GROUP)])
    journal = Journal(GROUP, decode_stored(GROUP, sorted(disk.items())), (2, 1))
    twin: list[tuple[int, int, bytes]] = []
    stored: list[tuple[int, int, bytes]] = []
    base, hard, term, stored_term = (2, 1), None, 1, 1
    for step, number in steps:
        if step in ("add", "configure"):
            index = journal.last_index + 1
            payload = CONFIGURATIONS[number % 3] if step == "configure" else Encoded(b"%d" % number)
            kind = KIND_CONFIGURATION if step == "configure" else KIND_DATA
            journal.add(Record(kind, payload, index, term), index, term)
            twin.append((index, term, payload.encode()))
        elif step == "truncate" and twin:
            at = twin[number % len(twin)][0]
            journal.truncate(at)
            twin = [each for each in twin if each[0] < at]
            stored_to_keep = [each for each in stored if each[0] < at]
            assert journal.durable_index <= max([base[0], *(each[0] for each in stored_to_keep)])
        elif step == "term":
            term += 1
            journal.setCurrentTerm(term, f"n{number}")
            hard = f"n{number}"
        elif step == "store":
            for key, value in journal.take_writes(True):
                if value is None:
                    disk.pop(key, None)
                else:
                    disk[key] = value
            journal.synced()
            stored, stored_term = list(twin), term
            assert journal.durable_index == journal.last_index
        elif step == "drop":
            durable = [each for each in twin if each[0] <= journal.durable_index]
            if durable:
                base = durable[number % len(durable)][:2]
                journal.drop_to(base[0])
                twin = [each for each in twin if each[0] > base[0]]
        elif step == "restart":
            on_disk = decode_stored(GROUP, sorted(disk.items()))
            assert on_disk.hard_state.term == stored_term
            base = (on_disk.hard_state.base_index, on_disk.hard_state.base_term)
            journal = Journal(GROUP, on_disk, base)
            twin, term = [each for each in stored if each[0] > base[0]], stored_term
        _agree(journal, twin, base)
    del hard


def _agree(journal: Journal, twin: list[tuple[int, int, bytes]], base: tuple[int, int]) -> None:
    held = [(entry[1], entry[2], decode_record(GROUP, entry[1], entry[0].stored(GROUP))) for entry in journal[1:]]
    assert [(index, term, record.entry.payload.encode()) for index, term, record in held] == twin
    assert journal.base == base
    assert journal.last == (twin[-1][:2] if twin else base)
    assert len(journal) == len(twin) + 1
    for index, term, _ in twin:
        assert journal.term_at(index) == term
    newest = [record.configuration for _, _, record in held if record.kind == KIND_CONFIGURATION]
    if newest:
        assert journal.configuration == newest[-1]


@given(st.integers(1, 3), st.lists(st.tuples(st.integers(2, 5), st.integers(0, 12)), max_size=30))
@settings(max_examples=60, deadline=None)
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
        assert not group.logs["n1"].ready()


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
def test_a_configuration_comes_back(everyone: list[Member], voters: int) -> None:
    ordered = sorted(everyone, key=lambda each: each.node_id)
    configuration = Configuration(tuple(ordered[:voters]), tuple(ordered[voters:]))
    assert Configuration.decode(configuration.encode()) == configuration


def test_a_hard_state_comes_back_or_says_that_it_is_damaged() -> None:
    state = HardState(7, "n2", 40, 6, CONFIGURATIONS[2], keeps_entries=True)
    key, value = state.write(GROUP)
    assert decode_stored(GROUP, [(key, value)]).hard_state == state
    assert replace(state, keeps_entries=False) != state
    for place in range(len(value) * 8):
        damaged = bytearray(value)
        damaged[place // 8] ^= 1 << place % 8
        with pytest.raises(DataLoss):
            decode_stored(GROUP, [(hard_key(GROUP), bytes(damaged))])
