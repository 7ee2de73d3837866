"""Entries that were lost on the way are sent again, whatever else goes on."""

from __future__ import annotations

from support.raft_hand import Hand


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
