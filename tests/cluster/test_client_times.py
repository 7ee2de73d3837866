"""``times="truncate"``: a time that is finer than its field is truncated, wherever an application gives one."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, time, timedelta
from typing import Any

import pytest

from cortado.errors import InvalidArgument, InvalidDocument
from cortado.store.client import Client, Index, Table
from support.faces import FACES, open_client
from support.server_process import ServerProcess

pytestmark = pytest.mark.process

MILLIS = {"type": "long", "logicalType": "timestamp-millis"}
TIME_MILLIS = {"type": "int", "logicalType": "time-millis"}
AT: dict[str, Any] = {"name": "at", "type": MILLIS}
STOPS = {"type": "array", "items": {"type": "record", "name": "Stop", "fields": [AT]}}
FIELDS: list[dict[str, Any]] = [
    AT,
    {"name": "id", "type": "long"},
    {"name": "seen", "type": ["null", MILLIS], "default": None},
    {"name": "exact", "type": [TIME_MILLIS, {"type": "long", "logicalType": "time-micros"}], "default": 0},
    {"name": "opens", "type": TIME_MILLIS, "default": 0},
    {"name": "stops", "type": STOPS, "default": []},
]
FINE = datetime(2026, 11, 28, 12, 0, 0, 123_456, UTC)
KEPT = FINE.replace(microsecond=123_000)
OLD = datetime(1969, 12, 31, 23, 59, 59, 999_999, UTC)


@pytest.fixture(params=FACES)
def truncating(server: ServerProcess, request: pytest.FixtureRequest) -> Iterator[Client]:
    with open_client(request.param, server.endpoint, times="truncate") as opened:
        yield opened


@pytest.fixture
def events(client: Client, truncating: Client, database: str) -> Table:
    name = f"{database}.events"
    client.schemas.register(name, {"type": "record", "name": "Event", "fields": FIELDS})
    client.create_table(name, ["at", "id"], indexes=[Index("by_seen", ["seen"])])
    return truncating.table(name)


def test_a_time_that_is_too_fine_is_refused_unless_it_is_to_be_truncated(client: Client, events: Table) -> None:
    with pytest.raises(InvalidDocument, match="at: has microseconds, the type keeps milliseconds"):
        client.table(events.full_name).put({"at": FINE, "id": 1})
    events.put({"at": FINE, "id": 1, "seen": OLD, "opens": time(1, 2, 3, 999_999), "stops": [{"at": FINE}]})
    found = events.get((FINE, 1))
    assert found is not None
    assert found.value["at"] == KEPT
    assert found.value["seen"] == OLD.replace(microsecond=999_000)
    assert found.value["opens"] == time(1, 2, 3, 999_000)
    assert found.value["stops"] == [{"at": KEPT}]


def test_a_branch_that_keeps_a_time_as_it_is_takes_it(events: Table) -> None:
    events.put({"at": FINE, "id": 1, "exact": FINE.time()})
    found = events.get((FINE, 1))
    assert found is not None
    assert found.value["exact"] == FINE.time()


def test_keys_changes_and_bounds_are_truncated_alike(events: Table) -> None:
    for number in range(3):
        events.put({"at": FINE + timedelta(milliseconds=number), "id": number, "seen": FINE})
    events.update((FINE, 0), {"seen": FINE + timedelta(seconds=1), "stops": [{"at": FINE}]})
    assert [found.value["id"] for found in events.get_many([(FINE, 0)]) if found is not None] == [0]
    assert [found.value["id"] for found in events.scan(start=FINE, end=FINE + timedelta(milliseconds=2))] == [0, 1]
    assert [found.value["id"] for found in events.scan(prefix=FINE)] == [0]
    assert [found.value["id"] for found in events.scan(prefix=FINE, index="by_seen")] == [1, 2]
    assert events.count(end=FINE) == 0
    assert events.delete((FINE, 0))
    assert events.get((FINE, 0)) is None


def test_bulk_loads_are_truncated(events: Table) -> None:
    assert events.put_many([{"at": FINE, "id": number} for number in range(3)]).written == 3
    text = FINE.isoformat()
    assert events.put_json([{"at": text, "id": 3}]).written == 1
    assert events.update_many([{"at": FINE, "id": 0, "seen": FINE}], ["at", "id", "seen"]).written == 1
    assert events.delete_many([(FINE, 1)]).written == 1
    assert [(found.value["id"], found.value["seen"]) for found in events.scan(prefix=FINE)] == [
        (0, KEPT),
        (2, None),
        (3, None),
    ]


def test_arrow_batches_are_truncated(client: Client, events: Table) -> None:
    pa = pytest.importorskip("pyarrow")
    batch = pa.RecordBatch.from_pydict(
        {
            "at": pa.array([FINE, OLD], pa.timestamp("us", tz="UTC")),
            "id": pa.array([1, 2], pa.int64()),
            "stops": pa.array([[{"at": FINE}], []], pa.list_(pa.struct([("at", pa.timestamp("us", tz="UTC"))]))),
        }
    )
    with pytest.raises(InvalidDocument, match="is finer than"):
        client.table(events.full_name).put_arrow([batch])
    assert events.put_arrow([batch]).written == 2
    assert [found.value["at"] for found in events.scan()] == [OLD.replace(microsecond=999_000), KEPT]
    assert events.put_arrow([batch], mode="delete").written == 2


def test_writes_of_transactions_are_truncated(truncating: Client, events: Table) -> None:
    with truncating.transaction() as txn:
        table = txn.table(events.full_name)
        table.put({"at": FINE, "id": 1})
        assert table.get((FINE, 1)).value["at"] == KEPT
        table.update((FINE, 1), {"seen": FINE})
    found = events.get((FINE, 1))
    assert found is not None
    assert found.value["seen"] == KEPT


def test_a_watch_begins_and_ends_at_truncated_keys(truncating: Client, events: Table) -> None:
    before = truncating.now()
    events.put({"at": FINE, "id": 1})
    with events.watch(prefix=FINE, after=before) as watch:
        event = next(each for each in watch if hasattr(each, "key"))
    assert event.key == (KEPT, 1)


def test_another_word_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="times: must be exact or truncate"):
        Client("127.0.0.1:1", times="round")  # type: ignore[arg-type]
