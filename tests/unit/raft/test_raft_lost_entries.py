"""Entries that were lost on the way are sent again, under any other events; entries that a disk lost are not."""

from __future__ import annotations

import logging
from itertools import pairwise

import pytest

from cortado.errors import DataLoss
from support.raft_hand import Hand, Letter

STEP_MS = 20.0


def damaged(letter: Letter) -> Letter:
    """Return the same message, with a byte of its first entry turned."""
    message = letter.message
    if letter.kind == "append" and message.append.records:
        record = bytearray(message.append.records[0])
        record[-1] ^= 1
        message.append.records[0] = bytes(record)
    return Letter(letter.sender, letter.to, message.SerializeToString())


def times_sent(group: Hand, duration_ms: float) -> list[float]:
    """Return when entries were sent to n3, each damaged on its way."""
    seen = []
    for _ in range(int(duration_ms / STEP_MS)):
        group.pass_ms(STEP_MS)
        group.send_all()
        letters = group.keep(to="n3", kind="append")
        if letters:
            seen.append(group.now_ms)
        for letter in letters:
            group.step(damaged(letter))
        group.settle(drops=lambda letter: letter.to == "n3" and letter.kind == "append")
    return seen


def test_lost_entries_are_sent_again_where_reads_begin_rounds_all_the_time() -> None:
    group = Hand(3)
    group.elect("n1")
    group.append("n1", b"a")
    group.settle()
    entry = group.append("n1", b"b")
    group.send_all()
    group.mail = [letter for letter in group.mail if letter.to != "n3"]
    for _ in range(100):
        group.logs["n1"].read_round()
        group.pass_ms(10)
        group.settle()
        if group.logs["n3"].last[0] >= entry.index:
            return
    raise AssertionError("n3 was never sent what it lost")


def test_what_a_member_cannot_take_is_sent_again_later_each_time_and_said_less_and_less(
    caplog: pytest.LogCaptureFixture,
) -> None:
    group = Hand(3)
    group.elect("n1")
    group.append("n1", b"a")
    group.settle()
    entry = group.append("n1", b"b")
    with caplog.at_level(logging.WARNING):
        sent_ms = times_sent(group, 20_000)
    waits_ms = [later - earlier for earlier, later in pairwise(sent_ms)]
    first_ms = group.settings.retransmit_ms
    longest_ms = 8 * first_ms
    assert waits_ms == sorted(waits_ms)
    assert first_ms <= waits_ms[0] < 2 * first_ms
    assert longest_ms <= waits_ms[-1] <= longest_ms + group.settings.heartbeat_ms
    warned = [record for record in caplog.records if "was damaged" in record.getMessage()]
    assert 1 < len(warned) <= len(sent_ms).bit_length()
    assert "n1 may hold it so" in warned[-1].getMessage()
    group.run(2 * longest_ms)
    assert group.logs["n3"].last[0] == entry.index


def test_a_member_whose_disk_lost_what_it_acknowledged_ends_when_its_leader_speaks_of_it() -> None:
    group = Hand(3)
    group.elect("n1")
    entry = group.append("n1", b"a")
    group.send_all()
    group.deliver(to="n2")
    group.sync("n2")
    group.send_all()
    group.settle()
    assert group.logs["n1"].durable_commit_index == entry.index
    del group.disks["n2"].entries[entry.index]
    group.applied["n2"] = [each for each in group.applied["n2"] if each.index < entry.index]
    group.start("n2")
    with pytest.raises(DataLoss, match=f"ends at entry {entry.index - 1}, but entry {entry.index} was acknowledged"):
        group.run(1_000)
