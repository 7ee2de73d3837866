"""Aggregates of a served node with the scan kernel: read on several threads, right beside writes, and given up."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest

from cortado.proto.v1 import documents_pb2, documents_pb2_grpc
from cortado.store.client import Client
from cortado.store.mvcc import dividing
from cortado.store.process.scan_threads import Lent, ScanThreads
from cortado.store.server import scan_steps
from cortado.store.tables import aggregate_slices, aggregating
from support.engines import open_lmdb
from support.kernels import row_kernel
from support.served_node import Served, served_node

pytestmark = pytest.mark.slow

ROWS = 20_000
THREADS = 3
WAIT_S = 60.0
FIELDS = [{"name": "id", "type": "long"}, {"name": "kind", "type": "long"}, {"name": "units", "type": "long"}]
SCHEMA = json.dumps({"type": "record", "name": "R", "fields": FIELDS})
ASKED = "count(*) as n, sum(units) as units"


def row(number: int, units: int = 1) -> dict[str, object]:
    return {"id": number, "kind": number % 3, "units": units}


@pytest.fixture
def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    """A node with ROWS rows, which are many pages and slices here."""
    monkeypatch.setattr(dividing, "PAGES_PER_PART", 1)
    monkeypatch.setattr(aggregate_slices, "FILTER_SLICE_ROWS_MAX", 200)
    monkeypatch.setattr(scan_steps, "SLICE_MS_MAX", 3.0)
    with served_node(open_lmdb(tmp_path / "data")) as made, Client(made.endpoint) as client:
        client.create_database("shop")
        client.schemas.register("shop.rows", SCHEMA)
        client.create_table("shop.rows", ["id"])
        client.table("shop.rows").put_many(map(row, range(ROWS)))
        made.node.use_scan_kernel(row_kernel(), THREADS)
        yield made


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """The threads that read slices of aggregates."""
    found: set[str] = set()
    read = aggregating.read_slice

    def noted(*args: Any) -> Any:
        found.add(threading.current_thread().name)
        return read(*args)

    monkeypatch.setattr(aggregating, "read_slice", noted)
    return found


def until(is_so: Callable[[], bool]) -> None:
    deadline_s = time.monotonic() + WAIT_S
    while not is_so():
        assert time.monotonic() < deadline_s


def test_each_row_counts_once_whatever_the_threads_do_and_written_rows_count_at_once(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    helped = 0
    help_ = aggregating._Reading.help

    def noted(reading: Any, may_go_on: Callable[[], bool]) -> None:
        nonlocal helped
        before = [part.position for part in reading._state.parts]
        help_(reading, may_go_on)
        helped += before != [part.position for part in reading._state.parts]

    monkeypatch.setattr(aggregating._Reading, "help", noted)
    with Client(served.endpoint) as client:
        table, rounds = client.table("shop.rows"), 0

        def is_right_and_helped() -> bool:
            nonlocal rounds
            rounds += 1
            # Acknowledged, and not applied yet.
            table.put(row(rounds * 997 % ROWS, units=2))
            found = {each["kind"]: each for each in table.aggregate(ASKED, group_by="kind")}
            changed = {number * 997 % ROWS for number in range(1, rounds + 1)}
            for kind in range(3):
                count = len(range(kind, ROWS, 3))
                assert found[kind]["n"] == count
                assert found[kind]["units"] == count + sum(number % 3 == kind for number in changed)
            assert table.count() == ROWS
            assert table.count(100, ROWS - 100, filter="kind = 1") == len(
                [number for number in range(100, ROWS - 100) if number % 3 == 1]
            )
            return helped > 20

        until(is_right_and_helped)


def test_a_transactions_aggregates_are_read_by_one_thread(
    served: Served, names: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []
    monkeypatch.setattr(ScanThreads, "lend", lambda _threads, most, _work: asked.append(most) or Lent([]))
    with Client(served.endpoint) as client:
        with client.transaction() as transaction:
            table = transaction.table("shop.rows")
            table.put(row(ROWS, units=5))
            [found] = table.aggregate(ASKED)
        assert (found["n"], found["units"]) == (ROWS + 1, ROWS + 5)
        assert asked == []
        [found] = client.table("shop.rows").aggregate(ASKED)
        assert (found["n"], found["units"]) == (ROWS + 1, ROWS + 5)
        assert asked, "others are"


def test_an_aggregate_that_is_given_up_leaves_all_threads_free(
    served: Served, names: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(aggregate_slices, "FILTER_SLICE_ROWS_MAX", 20)
    streams = served.node.process.scan_threads._streams
    request = documents_pb2.AggregateRequest(
        table=documents_pb2.TableName(database="shop", table="rows"),
        aggregates=[documents_pb2.Aggregate(kind=documents_pb2.AGGREGATE_KIND_COUNT)],
    )
    with grpc.insecure_channel(served.endpoint) as channel:
        for _ in range(5):
            names.clear()
            call = documents_pb2_grpc.DocumentsStub(channel).Aggregate(request)
            until(lambda: len(names) > 0)
            call.cancel()
            until(lambda: streams.steps == streams._lent == 0)
    assert streams.spare() == THREADS - 1


def test_a_repeated_aggregate_reads_kept_columns_and_one_over_a_transactions_own_writes_reads_rows(
    served: Served,
) -> None:
    kept = served.node.meta.store.kept
    with Client(served.endpoint) as client:
        table = client.table("shop.rows")
        found = [table.aggregate(ASKED) for _ in range(4)]
        assert found == [[{"n": ROWS, "units": ROWS}]] * 4
        assert kept.hits >= ROWS / 200
        assert kept.bytes > 8 * ROWS
        before = kept.hits, kept.misses
        with client.transaction() as transaction:
            own = transaction.table("shop.rows")
            own.put(row(ROWS, units=5))
            assert own.aggregate(ASKED) == [{"n": ROWS + 1, "units": ROWS + 5}]
        assert (kept.hits, kept.misses) == before
        assert table.aggregate(ASKED) == [{"n": ROWS + 1, "units": ROWS + 5}]
        assert kept.bytes == 0
