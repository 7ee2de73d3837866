"""Logs of a local cluster: cut when they grow long, merged by time, followed over a rotation."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

import pytest

from cortado.store.local_cluster.logs import Follower, follow, last_line, merged, rotate, tail


def test_a_long_log_is_copied_and_cut_and_a_writer_goes_on(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    with log.open("a") as written:
        for number in range(100):
            written.write(f"line {number}\n")
        written.flush()
        assert not rotate(log, 10_000)
        assert rotate(log, 500)
        written.write("after\n")
        written.flush()
    assert log.read_text() == "after\n"
    assert tail(log, 3) == ["line 98", "line 99", "after"], "what was before is found in the older file"
    assert rotate(log, 1)
    assert (tmp_path / "server.log.1").read_text() == "after\n", "one older file is kept"
    assert sorted(each.name for each in tmp_path.iterdir()) == ["server.log", "server.log.1"]
    assert not rotate(tmp_path / "none", 1)


def test_lines_of_several_nodes_are_in_the_order_of_their_times(tmp_path: Path) -> None:
    first, second = tmp_path / "a", tmp_path / "b"
    first.write_text("2026-11-20T10:00:01.000Z one\n  its second line\n2026-11-20T10:00:03.000Z three\n")
    second.write_text('{"time": "2026-11-20T10:00:02.000Z", "message": "two"}\n2026-11-20T10:00:04.000Z four\n')
    shown = [(node, line.split()[-1]) for node, line in merged({"n1": first, "n2": second}, 10)]
    assert shown == [("n1", "one"), ("n1", "line"), ("n2", '"two"}'), ("n1", "three"), ("n2", "four")]
    assert len(merged({"n1": first, "n2": second}, 1)) == 2
    assert merged({"n1": tmp_path / "none"}, 5) == []


def test_what_comes_is_followed_in_whole_lines_over_a_rotation(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    log.write_text("before\n")
    follower = Follower(log)
    with log.open("a") as written:
        written.write("one\nhalf")
        written.flush()
        assert follower.lines() == ["one"]
        written.write(" of two\n" + "x" * 50 + "\n")
        written.flush()
        assert follower.lines() == ["half of two", "x" * 50]
        rotate(log, 1)
        written.write("three\n")
        written.flush()
        assert follower.lines() == ["three"]


def test_nothing_that_comes_while_the_last_lines_are_read_is_left_out(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    log.write_text("before\n")
    coming = follow({"n1": log}, sleep=lambda _: pytest.fail("there is something to show"))
    with log.open("a") as written:
        written.write("meanwhile\n")
    assert list(islice(coming, 1)) == [("n1", "meanwhile")]


def test_why_a_node_ended_is_its_last_line(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    assert last_line(log) == f"see {log}"
    log.write_text("starting\nerror: --listen: must be host:port\n")
    assert last_line(log) == "--listen: must be host:port"
