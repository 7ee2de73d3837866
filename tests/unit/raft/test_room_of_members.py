"""The members' reports of their room, and how much a leader may append before too few of them can store it."""

from __future__ import annotations

import math

from cortado.raft.log import STORED_TIMES, Room
from support.raft_hand import Hand, Letter

SCARCE = Room(10_000, 50_000)
PLENTY = Room(1 << 30, 1 << 30)


def led(voters: int, *, learners: int = 0) -> Hand:
    """Return a group led by n1."""
    group = Hand(voters, learners=learners)
    group.elect("n1")
    group.run(3 * group.settings.heartbeat_ms)
    return group


def told(group: Hand, **rooms: Room) -> None:
    """Apply all. Then each measures its room, and the leader hears of it with a heartbeat."""
    group.run(3 * group.settings.heartbeat_ms)
    for node_id, room in rooms.items():
        group.logs[node_id].room.measured(room)
    group.run(2 * group.settings.heartbeat_ms)


def left(group: Hand, *, frees: bool = False) -> float:
    return group.logs["n1"].room.of_majority(frees=frees)[0]


def heartbeat_answer(group: Hand) -> tuple[int, int]:
    """Return n2's report of its room, asked now."""
    group.mail.clear()
    group.pass_ms(group.settings.heartbeat_ms, "n1")
    group.send("n1")
    group.deliver(to="n2", kind="heartbeat")
    return rooms_said(group.send("n2"))[-1]


def rooms_said(letters: list[Letter]) -> list[tuple[int, int]]:
    answers = [each.message.acknowledgement for each in letters if each.kind == "acknowledgement"]
    return [(each.room.bytes, each.room.freeing_bytes) for each in answers if each.HasField("room")]


def test_every_answer_tells_the_room_that_was_measured_without_what_came_since() -> None:
    group = led(2)
    group.logs["n2"].room.measured(SCARCE)
    assert heartbeat_answer(group) == (10_000, 50_000)
    group.append("n1", b"v" * 1_000)
    group.send_all()
    group.deliver(to="n2", kind="append")
    group.sync("n2")
    (any_bytes, freeing_bytes) = rooms_said(group.send("n2"))[-1]
    cost_bytes = 10_000 - any_bytes
    assert 1_000 * STORED_TIMES < cost_bytes < 1_100 * STORED_TIMES
    assert freeing_bytes == 50_000 - cost_bytes
    # Measured again, while it is in the log alone: its data is still to come.
    group.logs["n2"].room.measured(SCARCE)
    assert heartbeat_answer(group) == (10_000 - cost_bytes, 50_000 - cost_bytes)


def test_a_member_that_measured_nothing_says_nothing_and_counts_as_having_room() -> None:
    group = led(3)
    assert left(group) == math.inf
    told(group, n2=SCARCE)
    assert left(group) == math.inf


def test_what_a_majority_has_room_for_is_what_may_be_appended() -> None:
    group = led(3)
    told(group, n2=SCARCE, n3=PLENTY)
    assert left(group) == 1 << 30, "one of three may be full"
    told(group, n3=Room(20_000, 60_000))
    assert (left(group), left(group, frees=True)) == (20_000, 60_000)
    names = [
        each.node_id for each in group.logs["n1"].room.of_majority(frees=False)[1] if each.bytes(frees=False) < 1e9
    ]
    assert names == ["n2", "n3"]
    told(group, n2=PLENTY)
    assert left(group) == 1 << 30


def test_three_of_five_must_have_room() -> None:
    group = led(5)
    told(group, n2=SCARCE, n3=SCARCE, n4=PLENTY, n5=PLENTY)
    assert left(group) == 1 << 30
    told(group, n4=Room(300, 300))
    assert left(group) == 10_000


def test_what_is_on_its_way_to_a_member_is_taken_from_its_room() -> None:
    group = led(3)
    told(group, n2=SCARCE, n3=SCARCE)
    before_bytes = group.logs["n1"].window.size[1]
    group.append("n1", b"v" * 1_000)
    group.sync("n1")
    appended_bytes = group.logs["n1"].window.size[1] - before_bytes
    assert appended_bytes > 1_000
    assert left(group) == 10_000 - STORED_TIMES * appended_bytes
    # Nor is there less than nothing, however much a member lacks.
    group.append("n1", b"v" * 100_000)
    assert (left(group), left(group, frees=True)) == (0, 0)


def test_a_silent_voter_is_none_of_the_majority_that_stores() -> None:
    group = led(3)
    told(group, n2=PLENTY, n3=SCARCE)
    assert left(group) == 1 << 30
    group.run(group.settings.election_ms_min + 200, without=("n2",))
    assert left(group) == 10_000, "n1 and n3 are the majority now"
    group.run(2 * group.settings.heartbeat_ms)
    assert left(group) == 1 << 30


def test_where_no_majority_answers_room_is_not_what_is_missing() -> None:
    group = led(3)
    told(group, n2=SCARCE, n3=SCARCE)
    assert left(group) == 10_000
    group.run(group.settings.election_ms_min + 200, without=("n2", "n3"))
    assert left(group) == math.inf


def test_a_new_leader_has_heard_nothing_and_then_hears_it_with_its_first_entry() -> None:
    group = led(3)
    told(group, n1=SCARCE, n2=SCARCE, n3=SCARCE)
    log = group.elect("n2")
    assert log.room.of_majority(frees=False)[0] < math.inf, "their answers to its first entry say so"
    assert left(group) == math.inf, "n1 leads no more"


def test_learners_do_not_count_and_a_change_of_voters_changes_the_majority() -> None:
    group = led(3, learners=1)
    told(group, n2=SCARCE, n3=SCARCE, n4=PLENTY)
    assert left(group) == 10_000
    group.logs["n1"].members.promote("n4")
    group.settle()
    told(group, n2=SCARCE, n3=SCARCE, n4=PLENTY)
    assert left(group) == 10_000, "three of four: n1, n4 and one more"
    group.logs["n1"].members.remove("n3")
    told(group, n4=PLENTY)
    assert left(group) == 1 << 30, "two of three: n1 and n4"


def test_a_leader_that_alone_votes_asks_nobody() -> None:
    group = led(1, learners=1)
    told(group, n2=SCARCE)
    assert left(group) == math.inf
