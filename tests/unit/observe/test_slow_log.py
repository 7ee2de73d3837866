"""A slow call is logged with the places of its time and the names of its targets, at a bounded rate."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from cortado.proto.v1 import documents_pb2, kv_pb2
from cortado.store.observe.call import Call
from cortado.store.observe.measures import EntryTimes
from cortado.store.observe.requests import Ended, Requests
from cortado.store.observe.slow import BURST, KEPT, PER_S, SlowLog, names_in, split_ms
from support.observed import Written


class Clock:
    def __init__(self) -> None:
        self.now_s = 50.0

    def __call__(self) -> float:
        return self.now_s


def put(seconds: float = 1.5, write: Written | None = None) -> Ended:
    call = Call("cortado.v1.KeyValue/Put", 0.0)
    call.write = write
    return Ended(
        call, "OK", kv_pb2.KvPutRequest(namespace="cards", key=b"SECRETKEY", value=b"SECRETVALUE"), 30, seconds
    )


def test_the_line_says_where_the_time_went_and_nothing_that_was_written(caplog: pytest.LogCaptureFixture) -> None:
    write = Written(entry=EntryTimes(appended_ms=108.0, stored_ms=130.0, committed_ms=1_500.0))
    SlowLog(Clock(), lambda: 2_000.0, lambda: 7.0).ended(put(write=write))
    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    assert "KeyValue/Put: 1500 ms, OK" in record.getMessage()
    assert "queued 3 ms, batching 5 ms, commit 1392 ms, fsync 22 ms" in record.getMessage()
    assert "namespace cards" in record.getMessage()
    assert "01" * 20 in record.getMessage()
    assert "SECRET" not in record.getMessage() + repr(vars(record))


@pytest.mark.parametrize(
    ("write", "split"),
    [
        (None, {}),
        (Written(evaluated_ms=0.0), {"queued": 1_900.0}),
        (Written(), {"queued": 3.0}),
        (Written(entry=EntryTimes()), {"queued": 3.0, "batching": 1_897.0}),
        (
            Written(entry=EntryTimes(appended_ms=110.0)),
            {"queued": 3.0, "batching": 7.0, "commit": 1_890.0, "fsync": 1_890.0},
        ),
        (
            Written(entry=EntryTimes(appended_ms=110.0, committed_ms=150.0)),
            {"queued": 3.0, "batching": 7.0, "commit": 40.0},
        ),
    ],
)
def test_what_has_not_ended_lasts_until_now(write: Written | None, split: dict[str, float]) -> None:
    assert dict(split_ms(put(write=write).call, 2_000.0)) == split


def test_a_read_waits_for_its_round() -> None:
    ended = put()
    ended.call.read_wait_ms = 17.25
    assert dict(split_ms(ended.call, 0.0)) == {"read_round": 17.2}


def test_a_flood_is_cut_and_the_next_line_says_by_how_much(caplog: pytest.LogCaptureFixture) -> None:
    clock = Clock()
    log = SlowLog(clock, lambda: 0.0, lambda: 7.0)
    for _ in range(BURST + 5):
        log.ended(put())
    assert len(caplog.records) == BURST
    clock.now_s += 1 / PER_S
    log.ended(put())
    assert "5 more were left out" in caplog.records[-1].getMessage()


@pytest.mark.parametrize(
    ("request_", "names"),
    [
        (kv_pb2.KvGetRequest(namespace="n", key=b"k"), {"namespace": "n"}),
        (
            documents_pb2.GetDocumentRequest(table=documents_pb2.TableName(database="shop", table="orders")),
            {"database": "shop", "table": "orders"},
        ),
        (kv_pb2.KvGetRequest(namespace="n" * 500), {"namespace": "n" * 100}),
    ],
)
def test_things_are_named_and_keys_are_not(request_: Any, names: dict[str, str]) -> None:
    assert dict(names_in(request_)) == names


def test_only_what_took_long_is_counted_and_shown() -> None:
    clock, shown = Clock(), []

    class Shown:
        def ended(self, ended: Ended) -> None:
            shown.append(ended.seconds)

    requests = Requests(clock)
    requests.slow, requests.slow_s = Shown(), 1.0
    method = requests.method("m")
    for seconds in (0.5, 1.0, 2.0):
        call = method.begin()
        clock.now_s += seconds
        method.end(call, "OK", kv_pb2.KvGetRequest())
    assert (shown, requests.slow_calls, method.durations.count) == ([1.0, 2.0], 2, 3)


def test_a_call_that_is_over_keeps_nothing_of_what_was_written() -> None:
    requests = Requests(Clock())
    call = requests.method("m").begin()
    call.write = Written()
    requests.method("m").end(call, "OK", kv_pb2.KvGetRequest())
    assert call.write is None
    assert call.is_over


def test_the_last_ones_are_kept_also_those_that_were_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    log = SlowLog(Clock(), lambda: 2_000.0, lambda: 7.0)
    for number in range(KEPT + 50):
        log.ended(put(seconds=number))
    assert len(caplog.records) == BURST
    assert [each.duration_ms for each in log.last] == [1_000.0 * number for number in range(50, KEPT + 50)]
    last = log.last[-1]
    assert (last.ended_ms, last.about, last.request_bytes) == (7_000, (("namespace", "cards"),), 31)
    assert "SECRET" not in repr(log.last)
