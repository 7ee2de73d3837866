"""A scrub names each key on which replicas differ, and the key's owner; its pace is bounded."""

from __future__ import annotations

import pytest

from cortado.errors import Unavailable
from cortado.proto.v1 import inspect_pb2 as pb
from cortado.store.client.scrub import Pace, Progress, Report, Scrub
from cortado.store.client.scrub_findings import Finding, differences
from cortado.store.engine.interface import Space
from cortado.store.keys.decoded import NO_NAMES
from support.inspected import PAIRS, Replica, damage_log, flipped, make_engine, replace

KEYS = PAIRS


def scrub(*replicas: Replica, tables: tuple[str, ...] = ("shop.rows",)) -> Report:
    up_to = min(each.last_applied() for each in replicas)
    return Scrub(replicas, up_to=up_to, tables=tables).run()


def stored_keys(replica: Replica, space: Space = Space.DATA) -> list[bytes]:
    with replica.engine.read() as txn:
        return txn.page(space, b"\0", b"\xff" * 20, max_items=1_000).keys


def said(report: Report) -> list[tuple[str, str]]:
    return [(each.replica, each.kind) for each in report.findings]


def test_sound_replicas_have_no_findings_and_one_of_them_checks_the_tables() -> None:
    replicas = [Replica(name) for name in ("n1", "n2", "n3")]
    report = scrub(*replicas)
    assert (report.findings, report.skipped, report.tables_checked) == ([], {}, 1)
    assert [each.checked for each in replicas] == [["shop.rows"], [], []]


def test_what_was_written_later_on_one_replica_is_no_difference() -> None:
    assert scrub(Replica("n1"), Replica("n2", make_engine(PAIRS + 9))).findings == []
    assert scrub(Replica("n1", make_engine(PAIRS + 9)), Replica("n2")).findings == []


@pytest.mark.parametrize("victim", ["n1", "n2", "n3"])
def test_a_bit_in_a_key_is_blamed_on_its_replica_whoever_makes_the_pieces(victim: str) -> None:
    replicas = [Replica(name) for name in ("n1", "n2", "n3")]
    damaged = next(each for each in replicas if each.name == victim)
    key = stored_keys(damaged)[7]
    replace(damaged.engine, Space.DATA, key, flipped(key, -15))
    report = scrub(*replicas)
    assert said(report) == [(victim, "CHECKSUM"), (victim, "MISSING")]
    assert report.findings[1].key == key
    assert "hold it" in report.findings[1].message
    assert next(each for each in replicas if each.checked).name != victim


def test_a_key_that_vanished_is_missing_and_one_too_many_is_extra() -> None:
    replicas = [Replica(name) for name in ("n1", "n2", "n3")]
    keys = stored_keys(replicas[0])
    with replicas[1].engine.write() as txn:
        txn.delete(Space.DATA, keys[3])
    for each in replicas[:2]:
        with each.engine.write() as txn:
            txn.delete(Space.DATA, keys[9])
    report = scrub(*replicas)
    assert [(each.replica, each.kind, each.key) for each in report.findings] == [
        ("n2", "MISSING", keys[3]),
        ("n3", "EXTRA", keys[9]),
    ]


def test_of_two_the_one_with_a_wrong_checksum_is_blamed_and_else_both() -> None:
    one, other = Replica("n1"), Replica("n2")
    keys = stored_keys(one)
    replace(other.engine, Space.DATA, keys[5], flipped(keys[5], -15))
    assert said(scrub(one, other)) == [("n2", "CHECKSUM"), ("n2", "MISSING")]
    one, other = Replica("n1"), Replica("n2")
    with other.engine.write() as txn:
        txn.delete(Space.DATA, keys[5])
    assert said(scrub(one, other)) == [("n1,n2", "DIFFERENT")]


def test_a_damaged_log_or_request_table_is_named_with_its_space() -> None:
    replica = Replica("n1")
    [key] = stored_keys(replica, Space.REQUESTS)
    with replica.engine.read() as txn:
        value = txn.get(Space.REQUESTS, key)
    assert value is not None
    replace(replica.engine, Space.REQUESTS, key, key, flipped(value, 0))
    damage_log(replica.log, 1, b"n2:7621")
    in_log, in_requests = scrub(replica).findings
    assert (in_log.space, in_log.kind, in_requests.space, in_requests.kind) == (
        "log",
        "CHECKSUM",
        "requests",
        "CHECKSUM",
    )
    assert in_log.text.startswith("log file 0000000000000001 byte ")


def test_tables_are_not_checked_where_no_replica_is_sound() -> None:
    replica = Replica("n1")
    key = stored_keys(replica)[0]
    replace(replica.engine, Space.DATA, key, flipped(key, -15))
    report = scrub(replica)
    assert (replica.checked, report.tables_checked) == ([], 0)
    assert report.skipped == {"table shop.rows": "no replica without damage to check it on"}


class _Leaves(Replica):
    """Stops answering after some calls."""

    calls = 5

    def verify_range(self, request: pb.VerifyRangeRequest) -> pb.VerifyRangeResponse:
        self.calls -= 1
        if self.calls < 0:
            raise Unavailable("it is gone")
        return super().verify_range(request)


def test_a_replica_that_leaves_is_said_to_have_left_and_the_others_go_on() -> None:
    for replicas in ([_Leaves("n1"), Replica("n2")], [Replica("n1"), _Leaves("n2")]):
        replicas[0 if isinstance(replicas[0], _Leaves) else 1].calls = 3  # type: ignore[attr-defined]
        report = scrub(*replicas)
        assert list(report.skipped.values()) == ["it is gone"]
        assert (report.findings, report.tables_checked) == ([], 1)
        assert report.progress.items > PAIRS


def test_findings_are_bounded_and_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cortado.store.client.scrub.FINDINGS_MAX", 3)
    replica = Replica("n1")
    for key in stored_keys(replica)[:8]:
        replace(replica.engine, Space.DATA, key, key, b"P" + bytes(4))
    report = scrub(replica)
    assert (len(report.findings), report.left_out) == (3, 5)


def test_the_pace_keeps_the_average_below_the_rate() -> None:
    now = [0.0]
    slept: list[float] = []

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        now[0] += seconds

    pace = Pace(1_000, lambda: now[0], sleep)
    now[0] = 0.25
    pace.spend(1_000)
    assert (slept, now[0]) == ([0.75], 1.0)
    now[0] = 5.0
    pace.spend(1_000)
    assert now[0] == 5.0, "slower than the rate: nothing to wait for"
    pace.spend(1_000)
    assert now[0] == 6.0, "and idle time is no credit"
    now[0] = 6.5
    pace.rest()
    assert now[0] == 7.0
    unbounded = Pace(None, lambda: now[0], sleep)
    unbounded.spend(1 << 40)
    unbounded.rest()
    assert now[0] == 7.0


def test_progress_is_told_stage_by_stage() -> None:
    stages: list[str] = []

    def note(progress: Progress) -> None:
        stages.append(progress.stage)

    replica = Replica("n1")
    Scrub([replica], up_to=replica.last_applied(), tables=["shop.rows"], on_progress=note).run()
    assert list(dict.fromkeys(stages)) == ["meta", "log", "requests", "data", "table shop.rows"]


def _item(value: bytes, *, intact: bool = True) -> pb.StoredItem:
    return pb.StoredItem(digest=value, is_intact=intact)


def test_a_majority_is_right_and_a_wrong_checksum_is_not_named_twice() -> None:
    held = {"n1": {b"x": _item(b"1")}, "n2": {b"x": _item(b"2")}, "n3": {b"x": _item(b"1")}}
    [found] = differences(held, set(), NO_NAMES)
    assert (found.replica, found.kind) == ("n2", "DIFFERENT")
    held["n2"] = {b"x": _item(b"2", intact=False)}
    assert differences(held, {"n2"}, NO_NAMES) == []


def test_three_that_all_differ_are_all_named() -> None:
    held = {name: {b"x": _item(name.encode())} for name in ("n1", "n2", "n3")}
    found: list[Finding] = differences(held, set(), NO_NAMES)
    assert [(each.replica, each.kind) for each in found] == [("n1,n2,n3", "DIFFERENT")]
