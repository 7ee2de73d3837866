"""The log of a group of one: places, order, durability, and taking back what could not be stored."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from cortado.raft.log import Message, ReplicatedLog
from cortado.raft.single import SingleLog


@dataclass(frozen=True)
class Text:
    value: str

    def encode(self) -> bytes:
        return self.value.encode()


def new_log() -> SingleLog:
    return SingleLog("n1", term=3, last_index=7, last_term=2)


def test_entries_follow_the_last_applied_place_in_the_term_of_this_life() -> None:
    log: ReplicatedLog = new_log()
    assert log.last == (7, 2)
    first, second = log.append(Text("a")), log.append(Text("b"))
    assert (first.index, first.term, second.index, second.term) == (8, 3, 9, 3)
    assert log.last == (9, 3)
    assert log.is_leader and log.leader == "n1"


def test_each_entry_is_handed_over_once_and_in_order() -> None:
    log = new_log()
    first, second = log.append(Text("a")), log.append(Text("b"))
    assert log.ready().committed == (first, second)
    assert not log.ready()
    third = log.append(Text("c"))
    assert log.ready().committed == (third,)


def test_entries_become_durable_in_order_only() -> None:
    log = new_log()
    log.append(Text("a"))
    early = log.ready()
    log.append(Text("b"))
    late = log.ready()
    with pytest.raises(ValueError, match="entry 9 was not the next"):
        log.synced(late)
    log.synced(early)
    log.synced(late)


def test_what_could_not_be_stored_is_taken_back_with_all_after_it() -> None:
    log = new_log()
    log.append(Text("durable"))
    log.synced(log.ready())
    log.append(Text("no room"))
    failed = log.ready()
    log.append(Text("later"))
    assert log.withdraw(failed)
    assert log.last == (8, 3)
    assert not log.ready()
    again = log.append(Text("again"))
    assert again.index == 9
    log.synced(log.ready())


def test_only_the_oldest_entries_in_flight_can_be_taken_back() -> None:
    log = new_log()
    log.append(Text("a"))
    log.ready()
    log.append(Text("b"))
    with pytest.raises(ValueError, match="not the oldest"):
        log.withdraw(log.ready())


def test_a_term_below_the_last_entrys_is_refused() -> None:
    with pytest.raises(ValueError, match="term 1 is below"):
        SingleLog("n1", term=1, last_index=7, last_term=2)


def test_a_message_from_a_peer_is_refused() -> None:
    with pytest.raises(ValueError, match="no peers"):
        new_log().step(Message("n2", b""))
