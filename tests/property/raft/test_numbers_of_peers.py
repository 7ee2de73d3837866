"""Each number of each message of a peer, at its extremes: no replica ends or raises, and the group goes on.

The messages are true ones of a group at work. One or two of their numbers are replaced, by values that no cluster
reaches and by some that are near the truth; all else of them is right, checksums included.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import pytest
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message
from hypothesis import given, settings
from hypothesis import strategies as st

from cortado.proto.internal import raft_pb2 as pb
from cortado.raft.records import CHECKSUM_BYTES, _checksum, _entry_place
from support.examples import examples
from support.raft_hand import GROUP, Hand, Letter

KINDS = (
    "append",
    "heartbeat",
    "acknowledgement",
    "vote_request",
    "vote_response",
    "timeout_now",
    "snapshot",
)
_FLOATS = (0.0, -1.0, 1.0, 1e18, 1e308, -1e308, math.inf, -math.inf, math.nan)
_WHOLE = (
    0,
    1,
    2,
    10**6,
    1 << 31,
    (1 << 32) - 1,
    1 << 32,
    1 << 62,
    (1 << 62) + 1,
    1 << 63,
    (1 << 64) - 2,
    (1 << 64) - 1,
)
_NEAR = (-2, -1, 1, 2, 3)
_FLOAT_TYPES = (FieldDescriptor.TYPE_DOUBLE, FieldDescriptor.TYPE_FLOAT)
_WHOLE_TYPES = {
    FieldDescriptor.TYPE_UINT64: 64,
    FieldDescriptor.TYPE_UINT32: 32,
    FieldDescriptor.TYPE_FIXED32: 32,
    FieldDescriptor.TYPE_FIXED64: 64,
}

Number = tuple[Message, FieldDescriptor]


def numbers(message: Message) -> Iterator[Number]:
    """Yield each number of a message and of the messages in it: those that are set, and those that could be."""
    for field in message.DESCRIPTOR.fields:
        if field.type in _FLOAT_TYPES or field.type in _WHOLE_TYPES:
            yield message, field
        elif field.type == FieldDescriptor.TYPE_MESSAGE and not field.is_repeated and message.HasField(field.name):
            yield from numbers(getattr(message, field.name))


def group_at_work() -> tuple[Hand, list[Letter]]:
    """Return a group that has done everything once, and the letters that it wrote: n1 leads."""
    group = Hand(
        3,
    )
    written: list[Letter] = []

    def noted(letter: Letter) -> bool:
        written.append(letter)
        return False

    group.elect("n2")
    group.append("n2", b"a")
    group.settle(drops=noted)
    group.logs["n2"].transfer.begin("n1")
    group.settle(drops=noted)
    for _ in range(20):
        group.now_ms += 100
        group.settle(drops=noted)
    for number in range(4):
        group.append("n1", b"%d" % number)
        group.settle(drops=noted)
    leader = group.logs["n1"]
    index, term = leader.last
    roster = leader.window.roster_at(index).to_message()
    notice = pb.SnapshotNotice(snapshot_id="s", index=index, term=term, roster=roster, size_bytes=100)
    written.append(Letter("n1", "n3", pb.RaftMessage(term=leader.term, snapshot=notice).SerializeToString()))
    return group, written


def mutated(letter: Letter, draw: st.DataObject) -> Letter:
    message = pb.RaftMessage.FromString(letter.body)
    if letter.kind == "append" and message.append.records and draw.draw(st.booleans(), label="in a record"):
        place = draw.draw(st.integers(0, len(message.append.records) - 1))
        stored = pb.StoredEntry.FromString(message.append.records[place][CHECKSUM_BYTES:])
        replace_number(stored, draw)
        body = stored.SerializeToString()
        checksum = _checksum(_entry_place(GROUP, message.append.prev_index + 1 + place), body)
        message.append.records[place] = checksum + body
    else:
        for _ in range(draw.draw(st.integers(1, 2), label="numbers")):
            replace_number(message, draw)
    return Letter(letter.sender, letter.to, message.SerializeToString())


def replace_number(message: Message, draw: st.DataObject) -> None:
    owner, field = draw.draw(st.sampled_from(list(numbers(message))), label="number")
    value: Any
    if field.type in _FLOAT_TYPES:
        value = draw.draw(st.sampled_from(_FLOATS))
    else:
        now, bits = getattr(owner, field.name), _WHOLE_TYPES[field.type]
        near = [now + each for each in _NEAR if 0 <= now + each < 1 << bits]
        value = draw.draw(st.sampled_from([*near, *(each for each in _WHOLE if each < 1 << bits)]))
    setattr(owner, field.name, value)


def test_the_letters_of_a_group_at_work_are_of_all_kinds() -> None:
    _, letters = group_at_work()
    assert {each.kind for each in letters} == set(KINDS)


@pytest.mark.parametrize("kind", KINDS)
@given(st.data())
@settings(max_examples=examples(20), deadline=None)
def test_no_number_of_a_peer_ends_a_replica(kind: str, draw: st.DataObject) -> None:
    group, letters = group_at_work()
    letter = mutated(draw.draw(st.sampled_from([each for each in letters if each.kind == kind])), draw)
    for to in draw.draw(st.permutations(["n1", "n2", "n3"])):
        if to != letter.sender:
            group.step(Letter(letter.sender, to, letter.body))
            group.store(to)
            group.send(to)
    # The liar harms itself at most: the two others go on with each other.
    others = tuple(each for each in group.logs if each != letter.sender)
    group.mail.clear()
    group.run(5_000, without=(letter.sender,), step_ms=100)
    leaders = [each for each in others if group.logs[each].is_leader]
    assert len(leaders) == 1, "the two others elect one of them"
    entry = group.append(leaders[0], b"goes on")
    group.run(500, without=(letter.sender,), step_ms=100)
    assert all(group.logs[each].durable_commit_index >= entry.index for each in others)


@pytest.mark.parametrize("ahead", [1, 2, 10**6, (1 << 64) - 100])
@pytest.mark.parametrize("term_ahead", [0, 1])
def test_a_member_that_calls_more_committed_than_there_is_ends_nobody(ahead: int, term_ahead: int) -> None:
    group = Hand(3)
    group.elect("n1")
    group.append("n1", b"a")
    group.settle()
    sender = "n3" if term_ahead else "n1"
    for to in ("n1", "n2", "n3"):
        if to == sender:
            continue
        log = group.logs[to]
        before = log.durable_commit_index
        heartbeat = pb.Heartbeat(commit_index=log.last[0] + ahead, round=1)
        group.forge(sender, to, term=log.term + term_ahead, heartbeat=heartbeat)
        assert log.durable_commit_index == before
    group.run(3_000)
    leader = next(log for log in group.logs.values() if log.is_leader)
    assert leader.durable_commit_index == leader.last[0]
