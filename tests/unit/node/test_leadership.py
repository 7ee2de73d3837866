"""Leadership as events from the log: each comes once, and in the order in which it is to be acted on."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import cast

from cortado.raft.group import RaftLog
from cortado.raft.registry import Member, Roster
from cortado.store.replica.leadership import Elected, Established, Leadership, Lost

MEMBERS = tuple(Member(f"n{number}", f"peer:{number}", f"s{number}", f"host:{number}") for number in (1, 2, 3))


@dataclass
class SaidByTheLog:
    leader: str = ""
    term: int = 1
    is_leader: bool = False
    may_lead: bool = True
    knows_time: bool = True
    roster: Roster = field(default_factory=lambda: Roster.of(MEMBERS, ()))


def leadership() -> tuple[Leadership, SaidByTheLog]:
    said = SaidByTheLog()
    return Leadership("n1", cast(RaftLog, said), lambda: said.knows_time), said


def test_a_leader_is_elected_and_then_established_with_its_first_own_entry() -> None:
    seen, log = leadership()
    assert seen.observe() == []
    log.leader, log.term = "n1", 2
    assert seen.observe() == [Elected(2)]
    assert (seen.is_elected, seen.is_ready, seen.term) == (True, False, 2)
    assert seen.observe() == []
    log.is_leader = True
    assert seen.observe() == [Established()]
    assert seen.is_ready
    assert seen.is_up_to_date
    assert seen.observe() == []


def test_a_leader_is_established_once_it_knows_the_time() -> None:
    seen, log = leadership()
    log.leader, log.term, log.is_leader, log.knows_time = "n1", 2, True, False
    assert seen.observe() == [Elected(2)]
    assert not seen.is_ready
    assert not seen.is_up_to_date
    log.knows_time = True
    assert seen.observe() == [Established()]
    log.knows_time = False
    assert seen.observe() == []
    assert seen.is_ready, "what it knew bounds its time for as long as it can lead"


def test_a_term_is_lost_before_the_next_one_is_gained() -> None:
    seen, log = leadership()
    log.leader, log.term, log.is_leader = "n1", 2, True
    assert seen.observe() == [Elected(2), Established()]
    log.term = 4
    assert not seen.is_current
    assert not seen.is_up_to_date
    assert seen.observe() == [Lost(2), Elected(4), Established()]
    log.leader, log.is_leader = "n2", False
    assert seen.observe() == [Lost(4)]
    assert (seen.term, seen.changes) == (None, 2)
    assert seen.is_up_to_date


def test_while_nobody_leads_nothing_is_up_to_date() -> None:
    seen, log = leadership()
    log.leader = "n2"
    seen.observe()
    assert seen.is_up_to_date
    log.leader = ""
    assert not seen.is_up_to_date
    assert seen.observe() == []
    log.leader = "n2"
    assert seen.changes == 1, "it is the leader that was seen last"


def test_callers_are_sent_to_the_leader_or_to_whom_leadership_is_on_its_way() -> None:
    seen, log = leadership()
    assert seen.not_leader().leader == ""
    log.leader, log.is_leader = "n1", True
    seen.observe()
    seen.transferring("n3")
    assert seen.not_leader().leader == "host:3"
    log.leader, log.is_leader = "", False
    seen.observe()
    assert seen.not_leader().leader == "host:3"
    log.leader = "n2"
    seen.observe()
    assert seen.not_leader().leader == "host:2"
    log.leader = ""
    assert seen.not_leader().leader == "", "that transfer is over"


def test_a_node_may_lead_while_no_veto_stands() -> None:
    seen, log = leadership()
    assert seen.veto("clock", True)
    assert not seen.veto("clock", True)
    assert seen.veto("disk", True)
    assert not log.may_lead
    assert seen.vetoes == {"clock", "disk"}
    seen.veto("clock", False)
    assert not log.may_lead
    seen.veto("disk", False)
    assert log.may_lead
