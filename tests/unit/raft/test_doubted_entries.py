"""Followers doubt entries, and a leader gives up the doubted ones: never those that an earlier leader may have
committed."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from cortado.raft.log import Doubt, Encoded, Entry
from support.raft_hand import Hand

LOST: bytes = b"what the leader lost"


def doubts_all(_before: Sequence[Entry], entry: Entry) -> Doubt | None:
    return Doubt(entry.index, LOST)


def append_examined(group: Hand, node_id: str, body: bytes) -> Entry:
    return group.logs[node_id].append(Encoded(body), is_examined=True)


def disown_what_is_doubted(group: Hand, node_id: str) -> list[bool]:
    return [group.logs[node_id].disown(doubt.index) for doubt in group.logs[node_id].take_doubts()]


def bodies(group: Hand, node_id: str) -> list[bytes]:
    payloads = [entry.payload for entry in group.applied[node_id]]
    return [each.encode() for each in payloads if isinstance(each, Encoded)]


def test_what_an_earlier_leader_decided_is_neither_doubted_nor_given_up() -> None:
    """n1 decides an entry with n2's word, and is gone. n2, the next leader, does not know that it was committed."""
    group = Hand(3)
    group.elect("n1")
    group.logs["n3"].examine = doubts_all
    entry = append_examined(group, "n1", b"acknowledged")
    group.settle(without=("n3",))
    assert group.logs["n1"].durable_commit_index >= entry.index
    leader = group.start("n2")
    assert leader.durable_commit_index < entry.index
    for _ in range(200):
        group.run(100, without=("n1",))
        disown_what_is_doubted(group, "n2")
    assert leader.is_leader, "nothing keeps n2 and n3 from going on"
    assert bodies(group, "n2") == bodies(group, "n3") == [b"acknowledged"]


def test_a_leader_gives_up_nothing_that_it_acknowledged_to_an_earlier_one() -> None:
    group = Hand(3)
    group.elect("n1")
    entry = append_examined(group, "n1", b"acknowledged")
    group.settle(without=("n3",))
    leader = group.start("n2")
    for _ in range(200):
        group.pass_ms(50)
        group.settle(without=("n1",), drops=lambda letter: letter.kind == "append")
    assert leader.leader == "n2"
    assert leader.durable_commit_index < entry.index
    assert not leader.disown(entry.index)
    assert leader.window.term_at(entry.index) == entry.term


def test_what_a_leader_alone_has_counted_is_given_up_with_all_behind_it() -> None:
    group = Hand(3)
    group.elect("n1")
    for follower in ("n2", "n3"):
        group.logs[follower].examine = doubts_all
    kept = group.append("n1", b"kept")
    doubted = append_examined(group, "n1", b"doubted")
    group.append("n1", b"behind")
    group.settle()
    assert disown_what_is_doubted(group, "n1") == [True, False]
    assert group.logs["n1"].last == (kept.index, kept.term)
    assert doubted.index == kept.index + 1
    group.elect("n1")
    group.append("n1", b"after")
    group.run(500)
    assert [bodies(group, node_id) for node_id in group.logs] == 3 * [[b"kept", b"after"]]


@pytest.mark.parametrize("is_stored", [False, True])
def test_a_crash_while_an_entry_is_given_up_is_a_crash_before_or_after(is_stored: bool) -> None:
    """The entry goes from the disk with the term that is left, in one transaction."""
    group = Hand(3)
    group.elect("n1")
    for follower in ("n2", "n3"):
        group.logs[follower].examine = doubts_all
    doubted = append_examined(group, "n1", b"doubted")
    group.settle()
    term = group.logs["n1"].term
    assert disown_what_is_doubted(group, "n1") == [True, False]
    assert [each.kind for each in group.send("n1")] == [], "nobody hears of the next term before the disk has it"
    group.take("n1")
    if is_stored:
        group.store("n1")
    again = group.start("n1")
    assert (again.term, again.last[0]) == ((term + 1, doubted.index - 1) if is_stored else (term, doubted.index))
    for follower in ("n2", "n3"):
        group.logs[follower].examine = None
    group.elect("n2" if is_stored else "n1")
    group.run(500)
    assert bodies(group, "n1") == bodies(group, "n2") == bodies(group, "n3") == ([] if is_stored else [b"doubted"])


def test_what_was_decided_meanwhile_is_sent_to_who_doubted_it_and_kept() -> None:
    group = Hand(3)
    group.elect("n1")
    group.logs["n3"].examine = doubts_all
    append_examined(group, "n1", b"committed")
    group.settle()
    assert disown_what_is_doubted(group, "n1") == [False]
    group.run(4_000)
    assert bodies(group, "n3") == [b"committed"]
    assert group.logs["n1"].is_leader
