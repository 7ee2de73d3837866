"""The log's invariants, each with the state that it guards broken by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cortado.errors import Internal
from cortado.proto.internal import raft_pb2 as pb
from cortado.raft.configuration import Configuration
from cortado.raft.group import RaftLog
from cortado.raft.journal import Journal
from cortado.raft.log import Encoded
from cortado.raft.records import KIND_DATA, HardState, Record, decode_stored
from support.raft_hand import GROUP, Hand, members


def broken(what: str) -> pytest.RaisesExc[Internal]:
    return pytest.raises(Internal, match=f"it does not hold that {what}")


def a_journal(term: int = 5) -> Journal:
    """After entry 2 of term 1, with entries 3 and 4 of term 5."""
    start = HardState(term, "", 2, 1, Configuration(members(3)))
    journal = Journal(GROUP, decode_stored(GROUP, [start.write(GROUP)]), (2, 1))
    for index in (3, 4):
        journal.add(a_record(index, term), index, term)
    return journal


def a_record(index: int, term: int) -> Record:
    return Record(KIND_DATA, Encoded(b"x"), index, term)


def committed_by(group: Hand) -> RaftLog:
    """A leader with an entry that is committed and not handed over."""
    log = group.elect("n1")
    group.append("n1", b"a")
    group.settle()
    return log


def test_an_entry_follows_the_last_one() -> None:
    for index in (4, 6):
        with broken("an entry follows the last one of the log"):
            a_journal().add(a_record(index, 5), index, 5)


def test_terms_do_not_fall_along_the_log_nor_run_ahead_of_the_term() -> None:
    for term in (4, 6):
        with broken("terms do not fall along the log"):
            a_journal().add(a_record(5, term), 5, term)


def test_an_entry_is_appended_where_it_says() -> None:
    with broken("an entry is appended where it says"):
        a_journal().add(a_record(6, 5), 5, 5)


def test_a_term_does_not_fall_and_has_one_vote() -> None:
    journal = a_journal()
    journal.setCurrentTerm(6, None)
    journal.setCurrentTerm(6, "n2")
    journal.setCurrentTerm(6, "n2")
    for term, voted_for in ((5, None), (6, "n3"), (6, None)):
        with broken("a term does not fall, and has one vote"):
            journal.setCurrentTerm(term, voted_for)
    assert (journal.term, journal.voted_for) == (6, "n2")


def test_what_the_log_begins_after_is_not_truncated() -> None:
    with broken("what is truncated lies above the log's base"):
        a_journal().truncate(2)


def test_writes_become_durable_once_and_one_at_a_time() -> None:
    journal = a_journal()
    with broken("a Ready's writes become durable once"):
        journal.synced()
    journal.take_writes(keeps_entries=True)
    with broken("one Ready's writes are outstanding at a time"):
        journal.take_writes(keeps_entries=True)


def test_an_entry_is_stored_where_it_was_appended() -> None:
    journal = a_journal()
    journal.record_at(4).index = 3
    with broken("an entry is stored where it was appended"):
        journal.take_writes(keeps_entries=True)


def test_a_stored_term_is_not_below_the_entries() -> None:
    journal = a_journal()
    journal.term, journal.is_hard_state_dirty = 4, True
    with broken("the stored term is the last entry's, or later"):
        journal.take_writes(keeps_entries=True)


def test_what_is_durable_lies_within_the_log() -> None:
    journal = a_journal()
    journal.take_writes(keeps_entries=True)
    journal.durable_index = 9
    with broken("what is durable lies within the log"):
        journal.synced()


def test_a_ready_becomes_durable_once() -> None:
    log = committed_by(Hand(1))
    log.append(Encoded(b"b"))
    log.tick(1.0)
    ready = log.ready()
    log.synced(ready)
    for again in (ready, replace(ready)):
        with broken("the Ready that became durable is the outstanding one"):
            log.synced(again)
        with broken("the Ready that is withdrawn is the outstanding one"):
            log.withdraw(again)


def test_what_is_applied_advances_by_the_entries_of_the_ready() -> None:
    log = committed_by(Hand(1))
    log.append(Encoded(b"b"))
    log.tick(1.0)
    ready = log.ready()
    assert ready.committed
    log._core.applied = log._core.applied[0] - 1, log._core.applied[1]
    with broken("what is applied advances by the entries of the Ready"):
        log.synced(ready)


def test_entries_are_handed_over_one_after_the_other() -> None:
    log = committed_by(Hand(1))
    entry = log.append(Encoded(b"b"))
    log.tick(1.0)
    record = log._core.journal.record_at(entry.index)
    assert record.entry is not None
    record.entry = replace(record.entry, index=entry.index + 1)
    with broken("entries are handed over one after the other"):
        log.ready()


def test_what_is_decided_is_in_the_log() -> None:
    log = committed_by(Hand(1))
    log._core.engine.set_applied(log.applied[0], commit_index=log.last[0] + 1)
    with broken("what is handed over is committed, and that is in the log"):
        log.ready()


def test_voters_change_one_at_a_time_and_never_all_go() -> None:
    log = committed_by(Hand(3))
    with broken("a new configuration has voters"):
        log._configure(Configuration((), members(3)))
    with broken("voters change one at a time"):
        log._configure(Configuration(members(1)))
    assert log.configuration == Configuration(members(3))


def test_a_vote_that_is_sent_is_the_one_that_is_stored() -> None:
    log = committed_by(Hand(3))
    with broken("a vote that is sent is the one that is stored"):
        log._elections.send_vote("n2", {"type": "response_vote", "term": log.term})


def test_a_message_waits_for_the_next_ready_at_most() -> None:
    log = committed_by(Hand(3))
    with broken("a message waits for the next Ready at most"):
        log._core.send("n2", pb.RaftMessage(), log._core.journal.open_sequence + 1)
