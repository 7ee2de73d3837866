"""The log's invariants, each with the state that it guards broken by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cortado.errors import Internal
from cortado.proto.internal import raft_pb2 as pb
from cortado.raft.configuration import Configuration
from cortado.raft.group import RaftLog
from cortado.raft.journal import Journal
from cortado.raft.log import Encoded, Entry, SnapshotMeta
from cortado.raft.records import KIND_DATA, HardState, Record, decode_stored
from cortado.raft.registry import Roster
from support.raft_hand import GROUP, Hand, members


def broken(what: str) -> pytest.RaisesExc[Internal]:
    return pytest.raises(Internal, match=f"it does not hold that {what}")


def a_journal(term: int = 5) -> Journal:
    """Return a journal after entry 2 of term 1, with entries 3 and 4 of term 5."""
    start = HardState(term, "", 2, 1, Roster.of(members(3)))
    journal = Journal(GROUP, decode_stored(GROUP, start.log_record(GROUP), ()), (2, 1))
    for index in (3, 4):
        journal.add(a_record(index, term), index, term)
    return journal


def a_record(index: int, term: int) -> Record:
    return Record(KIND_DATA, Encoded(b"x"), index, term)


def committed_by(group: Hand) -> RaftLog:
    """Return a leader with an entry that is committed and not handed over."""
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
    with broken("writes become durable once"):
        journal.synced()
    journal.take_writes()
    with broken("writes are outstanding once at a time"):
        journal.take_writes()


def test_a_stored_term_is_not_below_the_entries() -> None:
    journal = a_journal()
    journal.term, journal.is_hard_state_dirty = 4, True
    with broken("the stored term is the last entry's, or later"):
        journal.take_writes()


def test_what_is_durable_lies_within_the_log() -> None:
    journal = a_journal()
    journal.take_writes()
    journal.durable_index = 9
    with broken("what is durable lies within the log"):
        journal.synced()


def test_the_writes_that_become_durable_are_those_that_were_taken() -> None:
    log = committed_by(Hand(1))
    log.append(Encoded(b"b"))
    log.tick(1.0)
    writes = log.storing.ready()
    log.synced(writes)
    for again in (writes, list(writes)):
        with broken("the writes that became durable are the outstanding ones"):
            log.synced(again)
        with broken("the writes that are withdrawn are the outstanding ones"):
            log.withdraw(again)


def to_apply() -> tuple[RaftLog, Entry]:
    """Return an entry that is committed and durable, and not handed over."""
    group = Hand(1)
    log = committed_by(group)
    entry = group.append("n1", b"b")
    log.tick(1.0)
    group.sync("n1")
    return log, entry


def test_what_is_applied_advances_by_the_entries_that_were_taken() -> None:
    log, _ = to_apply()
    entries = log.applying.take()
    assert entries
    log._core.applied = log._core.applied[0] - 1, log._core.applied[1]
    with broken("what is applied advances by the entries that were taken"):
        log.applying.applied(entries)


def test_what_was_applied_once_is_not_applied_again() -> None:
    log, _ = to_apply()
    entries = log.applying.take()
    log.applying.applied(entries)
    with broken("what is applied advances by the entries that were taken"):
        log.applying.applied(entries)


def test_what_was_taken_is_applied_from_the_first_on_and_nothing_is_given_out_before_the_rest_is() -> None:
    group = Hand(1)
    log = committed_by(group)
    for body in (b"b", b"c"):
        group.append("n1", body)
    log.tick(1.0)
    group.sync("n1")
    taken = log.applying.take()
    with broken("what is applied advances by the entries that were taken"):
        log.applying.applied(taken[1:])
    log.applying.applied(taken[:1])
    assert log.applied[0] == taken[0].index
    assert log.applying.take() == ()
    log.applying.applied(taken[1:])
    assert log.applied[0] == taken[-1].index


def test_what_is_applied_is_durable() -> None:
    log, _ = to_apply()
    entries = log.applying.take()
    log._core.journal.durable_index -= 1
    with broken("what is applied is durable, and above the log's base"):
        log.applying.applied(entries)


def test_entries_are_handed_over_one_after_the_other() -> None:
    log, entry = to_apply()
    record = log._core.journal.record_at(entry.index)
    record._stored = None
    record.entry = replace(entry, index=entry.index + 1)
    with broken("entries are handed over one after the other"):
        log.applying.take()


def test_a_snapshot_is_installed_where_nothing_is_outstanding_and_it_is_ahead() -> None:
    log, entry = to_apply()
    meta = SnapshotMeta("s", entry.index + 5, entry.term, log.roster, 1)
    with broken("a snapshot that is installed is ahead of what is applied"):
        log.window.install(replace(meta, index=log.applied[0]))
    entries = log.applying.take()
    with broken("nothing is applied where a snapshot is installed"):
        log.window.install(meta)
    log.applying.applied(entries)
    log.append(Encoded(b"c"))
    writes = log.storing.ready()
    with broken("nothing is stored where a snapshot is installed"):
        log.window.install(meta)
    log.synced(writes)
    log.window.install(meta)


def test_voters_change_one_at_a_time_and_never_all_go() -> None:
    log = committed_by(Hand(3))
    with broken("a new configuration has voters"):
        log.members._configure(Configuration((), ("n1", "n2", "n3")))
    with broken("voters change one at a time"):
        log.members._configure(Configuration(("n1",)))
    assert log.roster == Roster.of(members(3))


def test_a_vote_that_is_sent_is_the_one_that_is_stored() -> None:
    log = committed_by(Hand(3))
    with broken("a vote that is sent is the one that is stored"):
        log._elections.send_vote("n2", {"type": "response_vote", "term": log.term})


def test_a_message_waits_for_the_next_ready_at_most() -> None:
    log = committed_by(Hand(3))
    with broken("a message waits for the next writes at most"):
        log._core.send("n2", pb.RaftMessage(), log._core.journal.open_sequence + 1)
