"""Documents through the client, against a real server."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest

from cortado.errors import (
    AlreadyExists,
    ConditionFailed,
    IncompatibleSchema,
    InvalidArgument,
    InvalidDocument,
    InvalidFilter,
    InvalidSchema,
    KeyTooLong,
    NotFound,
    TimestampInFuture,
    TooLarge,
    UniqueViolation,
)
from cortado.store.client import Client, Index, Table
from cortado.store.clock.timestamp import Timestamp
from support.faces import open_client
from support.server_process import ServerProcess

pytestmark = pytest.mark.process


@pytest.fixture(params=[("sync", False), ("sync", True), ("async", True)], ids=["alone", "merged", "async"])
def client(server: ServerProcess, request: pytest.FixtureRequest) -> Iterator[Client]:
    """Once with calls of their own, once with calls on the coalescing stream, once over asyncio: the same rules hold
    for all."""
    face, coalesce = request.param
    with open_client(face, server.endpoint, timeout_s=10, coalesce=coalesce) as opened:
        yield opened


FLIGHT: dict[str, Any] = {
    "type": "record",
    "name": "Flight",
    "fields": [
        {"name": "time_hour", "type": {"type": "long", "logicalType": "timestamp-micros"}},
        {"name": "carrier", "type": "string"},
        {"name": "flight", "type": "int"},
        {"name": "tailnum", "type": ["null", "string"], "default": None},
        {"name": "arr_delay", "type": ["null", "double"], "default": None},
        {
            "name": "route",
            "type": {
                "type": "record",
                "name": "Route",
                "fields": [{"name": "origin", "type": "string"}, {"name": "dest", "type": ["null", "string"]}],
            },
        },
        {
            "name": "fare",
            "type": {"type": "bytes", "logicalType": "decimal", "precision": 8, "scale": 2},
            "default": "\u0000",
        },
    ],
}
NEW_FIELD: dict[str, Any] = {"name": "gate", "type": "string", "default": "?"}
FLIGHT_2: dict[str, Any] = {**FLIGHT, "fields": [*FLIGHT["fields"], NEW_FIELD]}


def flight(
    number: int, *, hour: int = 10, carrier: str = "UA", tail: str | None = "N14228", **more: Any
) -> dict[str, Any]:
    document = {
        "time_hour": datetime(2013, 1, 1, hour, tzinfo=UTC),
        "carrier": carrier,
        "flight": number,
        "tailnum": tail,
        "arr_delay": float(number % 7) - 2,
        "route": {"origin": "EWR", "dest": None},
        "fare": Decimal("120.50"),
    }
    return document | more


def key(number: int, *, hour: int = 10, carrier: str = "UA") -> tuple[Any, ...]:
    return datetime(2013, 1, 1, hour, tzinfo=UTC), carrier, number


@pytest.fixture
def flights(client: Client, database: str) -> Table:
    name = f"{database}.flights"
    client.schemas.register(name, FLIGHT)
    client.create_table(
        name,
        ["time_hour", "carrier", "flight"],
        indexes=[Index("by_tailnum", ["tailnum"]), Index("by_origin", ["route.origin", "flight desc"])],
    )
    return client.table(name)


# --- by key ----------------------------------------------------------------------------------------------------


def test_a_document_comes_back_as_it_went(flights: Table) -> None:
    etag = flights.put(flight(1545))
    found = flights.get(key(1545))
    assert found is not None
    assert found.value == flight(1545)
    assert found.etag == etag == str(found.ts)
    assert flights.get(key(1)) is None


def test_many_keys_are_answered_in_their_order(flights: Table) -> None:
    flights.put(flight(1))
    flights.put(flight(2))
    found = flights.get_many([key(2), key(9), key(1)])
    assert [document and document.value["flight"] for document in found] == [2, None, 1]


def test_modes_and_etags_are_conditions(flights: Table) -> None:
    with pytest.raises(ConditionFailed):
        flights.put(flight(1), if_present=True)
    first = flights.put(flight(1), if_absent=True)
    with pytest.raises(ConditionFailed):
        flights.put(flight(1), if_absent=True)
    second = flights.put(flight(1, tail=None), if_etag=first)
    with pytest.raises(ConditionFailed) as raised:
        flights.put(flight(1), if_etag=first)
    assert raised.value.actual == second
    with pytest.raises(ConditionFailed):
        flights.delete(key(1), if_etag=first)
    assert flights.delete(key(1), if_etag=second)
    assert not flights.delete(key(1))


def test_an_update_changes_what_it_names_and_nothing_else(flights: Table) -> None:
    flights.put(flight(1))
    changed = flights.update(key(1), {"arr_delay": None, "route.dest": "IAH", "fare": Decimal("99.99")})
    expected = flight(1, arr_delay=None, fare=Decimal("99.99")) | {"route": {"origin": "EWR", "dest": "IAH"}}
    assert changed.value == expected
    found = flights.get(key(1))
    assert found is not None
    assert (found.value, found.etag) == (expected, changed.etag)


def test_the_past_stays_readable(client: Client, flights: Table) -> None:
    flights.put(flight(1, arr_delay=5.0))
    before = client.now()
    flights.update(key(1), {"arr_delay": 9.0})
    flights.delete(key(1))
    assert flights.get(key(1)) is None
    for at in (before, str(before)):
        old = flights.get(key(1), at=at)
        assert old is not None
        assert old.value["arr_delay"] == 5.0
    assert [each.value["arr_delay"] for each in flights.scan(at=before)] == [5.0]


def test_sixty_four_updates_of_one_document_are_all_kept(client: Client, flights: Table) -> None:
    flights.put(flight(1, arr_delay=0.0))

    def add_one(_: int) -> None:
        while True:
            found = flights.get(key(1))
            assert found is not None
            try:
                flights.update(key(1), {"arr_delay": found.value["arr_delay"] + 1}, if_etag=found.etag)
                return
            except ConditionFailed:
                continue

    with ThreadPoolExecutor(16) as pool:
        list(pool.map(add_one, range(64)))
    found = flights.get(key(1))
    assert found is not None
    assert found.value["arr_delay"] == 64.0
    assert client.verify_indexes(flights.full_name).problems == ()


# --- ranges ----------------------------------------------------------------------------------------------------


@pytest.fixture
def year(flights: Table) -> Table:
    rows = [flight(n, hour=hour, carrier=c, tail=f"N{n}") for hour in range(4) for c in ("AA", "UA") for n in range(50)]
    assert flights.put_many(rows).written == 400
    return flights


def numbers(documents: Iterator[Any]) -> list[int]:
    return [document.value["flight"] for document in documents]


def test_a_scan_is_in_the_order_of_the_key_both_ways(year: Table) -> None:
    keys = [(d.value["time_hour"], d.value["carrier"], d.value["flight"]) for d in year.scan()]
    assert len(keys) == 400
    assert keys == sorted(keys)
    assert [(d.value["time_hour"], d.value["carrier"], d.value["flight"]) for d in year.scan(reverse=True)] == keys[
        ::-1
    ]


def test_a_range_and_a_prefix_hold_what_they_say(year: Table) -> None:
    def hour(number: int) -> datetime:
        return datetime(2013, 1, 1, number, tzinfo=UTC)

    assert len(numbers(year.scan((hour(1),), (hour(3),)))) == 200
    assert len(numbers(year.scan(prefix=hour(2)))) == 100
    assert numbers(year.scan(prefix=(hour(2), "UA"))) == list(range(50))
    assert numbers(year.scan((hour(2), "UA", 7), (hour(2), "UA", 10))) == [7, 8, 9]
    assert numbers(year.scan(prefix=(hour(2), "UA"), limit=3, reverse=True)) == [49, 48, 47]


def test_an_index_finds_documents_by_value_in_its_order(year: Table) -> None:
    assert {d.value["tailnum"] for d in year.scan(prefix="N7", index="by_tailnum")} == {"N7"}
    assert len(numbers(year.scan(prefix="N7", index="by_tailnum"))) == 8
    assert numbers(year.scan(prefix=("EWR",), index="by_origin", limit=9)) == [49] * 8 + [48]
    assert numbers(year.scan(("EWR", 1), ("EWR", -1), index="by_origin")) == [1] * 8 + [0] * 8


def test_filter_and_columns_shape_what_comes(year: Table) -> None:
    found = list(year.scan(filter="flight = 3 and carrier = 'UA'", columns=["flight", "route.origin"]))
    assert [document.value for document in found] == [{"flight": 3, "route": {"origin": "EWR"}}] * 4
    assert all(document.etag for document in found)


def test_closing_a_scan_early_is_harmless(year: Table) -> None:
    for _ in range(20):
        found = year.scan()
        next(found)
        found.close()  # type: ignore[attr-defined]
    assert len(list(year.scan())) == 400


def test_a_split_covers_the_table_once(year: Table) -> None:
    ts, ranges = year.split(4)
    assert len(ranges) == 4
    assert sum(each.rows for each in ranges) == 400
    assert ranges[0].start is None
    assert ranges[-1].end is None
    year.put(flight(9999))
    found = [d.value["flight"] for each in ranges for d in year.scan(each.start, each.end, at=ts)]
    assert len(found) == 400


def test_raw_batches_hold_the_same_rows(year: Table) -> None:
    batches = list(year.scan_batches(with_versions=True))
    assert sum(map(len, batches)) == 400
    assert [etag for batch in batches for etag in batch.etags()] == [d.etag for d in year.scan()]


# --- many at once ----------------------------------------------------------------------------------------------


def test_a_bulk_load_refuses_bad_rows_by_themselves(flights: Table) -> None:
    rows = [
        flight(0),
        flight(1) | {"flight": "one"},
        flight(2),
        flight(3) | {"gat": "A1"},
        flight(0, tail="x" * 2_000_000),
    ]
    done: list[int] = []
    result = flights.put_many(rows, chunk_rows=1, progress=done.append)
    assert (result.written, result.refused) == (2, 3)
    assert [(each.row, type(each.error)) for each in result.errors] == [
        (1, InvalidDocument),
        (3, InvalidDocument),
        (4, TooLarge),
    ]
    assert "flight" in str(result.errors[0].error)
    assert numbers(flights.scan()) == [0, 2]
    assert done[-1] >= 2


def test_writes_of_a_transaction_are_all_or_nothing(client: Client, flights: Table) -> None:
    with client.transaction() as txn:
        own = txn.table(flights.full_name)
        own.put(flight(1))
        own.put(flight(2), if_absent=True)
    assert txn.etag
    with pytest.raises(ConditionFailed), client.transaction() as txn:
        own = txn.table(flights.full_name)
        own.delete(key(1))
        own.update(key(2), {"arr_delay": 1.0})
        own.put(flight(2, hour=11), if_present=True)
    assert numbers(flights.scan()) == [1, 2]
    with pytest.raises(KeyError), client.transaction() as txn:
        txn.table(flights.full_name).delete(key(1))
        raise KeyError
    assert numbers(flights.scan()) == [1, 2]


def test_a_unique_value_has_one_winner(client: Client, database: str) -> None:
    name = f"{database}.planes"
    fields = [{"name": "id", "type": "long"}, {"name": "tail", "type": ["null", "string"], "default": None}]
    client.schemas.register(name, {"type": "record", "name": "Plane", "fields": fields})
    client.create_table(name, ["id"], indexes=[Index("by_tail", ["tail"], unique=True)])
    planes = client.table(name)
    gate = threading.Barrier(16)

    def race(number: int) -> bool:
        gate.wait()
        try:
            planes.put({"id": number, "tail": "N1"})
        except UniqueViolation:
            return False
        return True

    with ThreadPoolExecutor(16) as pool:
        assert sum(pool.map(race, range(16))) == 1
    planes.put({"id": 100})
    planes.put({"id": 101, "tail": None})
    assert client.verify_indexes(name).problems == ()


# --- schemas that evolve ---------------------------------------------------------------------------------------


def test_old_and_new_rows_are_read_alike(client: Client, flights: Table) -> None:
    flights.put(flight(1))
    assert client.schemas.register(flights.full_name, FLIGHT_2).version == 2
    flights.put(flight(2, gate="C7"))
    assert [document.value["gate"] for document in flights.scan()] == ["?", "C7"]
    old = client.table(flights.full_name, schema_version=1)
    assert [set(document.value) for document in old.scan()] == [set(flight(1))] * 2


def test_a_version_that_someone_else_registered_is_noticed(server: Any, client: Client, flights: Table) -> None:
    flights.put(flight(1))
    with Client(server.endpoint) as other:
        other.schemas.register(flights.full_name, FLIGHT_2)
        # By a document that only the new version holds ...
        flights.put(flight(2, gate="C7"))
        # ... and by a row that it wrote.
        third = {**FLIGHT_2, "fields": [*FLIGHT_2["fields"], {"name": "late", "type": "boolean", "default": False}]}
        other.schemas.register(flights.full_name, third)
        other.table(flights.full_name).put(flight(3, late=True))
    found = flights.get(key(3))
    assert found is not None
    assert found.value["late"] is True


def test_an_incompatible_schema_is_refused_with_every_reason(client: Client, flights: Table) -> None:
    broken = {**FLIGHT, "fields": [{**FLIGHT["fields"][1], "type": "int"}, *FLIGHT["fields"][2:]]}
    checked = client.schemas.test_compatibility(flights.full_name, broken)
    assert not checked.compatible
    assert {"Flight.carrier", "Flight.time_hour"} <= {each.path for each in checked.incompatibilities}
    with pytest.raises(IncompatibleSchema) as raised:
        client.schemas.register(flights.full_name, broken)
    assert len(raised.value.incompatibilities) == len(checked.incompatibilities)
    assert len(client.schemas.versions(flights.full_name)) == 1


def test_the_registry_answers(client: Client, flights: Table) -> None:
    found = client.schemas.get(flights.full_name)
    assert (found.subject, found.version) == (flights.full_name, 1)
    assert client.schemas.get_by_id(found.schema_id) is client.schemas.get_by_id(found.schema_id)
    assert not client.schemas.register(flights.full_name, FLIGHT).created
    summary = next(each for each in client.schemas.subjects() if each.subject == flights.full_name)
    assert (summary.versions, summary.tables) == (1, (flights.full_name,))
    assert client.schemas.compatibility(flights.full_name) == "BACKWARD_TRANSITIVE"
    assert client.schemas.set_compatibility(flights.full_name, "none") == "NONE"
    assert client.schemas.compatibility(flights.full_name) == "NONE"
    assert client.schemas.set_compatibility(flights.full_name, None) == "BACKWARD_TRANSITIVE"
    assert client.schemas.default_compatibility() == "BACKWARD_TRANSITIVE"


def test_a_newer_version_with_a_lower_id_is_met_as_newer(client: Client, server: ServerProcess, database: str) -> None:
    """The second subject gets, as its newer version, a text with a lower id than its older one has."""
    # No other test registers this text: it would have an id already.
    old = {"type": "record", "name": "LowerIds", "fields": [{"name": "id", "type": "long"}]}
    new = {**old, "fields": [*old["fields"], {"name": "note", "type": "string", "default": ""}]}
    first, second = (f"{database}.{name}" for name in ("ids_first", "ids_second"))
    ids = {}
    for name, texts in ((first, [new]), (second, [old])):
        ids[name] = [client.schemas.register(name, text).schema_id for text in texts]
        client.create_table(name, key=["id"])
    table = client.table(second)
    table.put({"id": 1})
    with Client(server.endpoint) as other:
        found = other.schemas.register(second, new)
        assert (found.schema_id, found.version) == (ids[first][0], 2)
        assert found.schema_id < ids[second][0]
        other.table(second).put({"id": 2, "note": "new"})
    assert table.get(2).value == {"id": 2, "note": "new"}, "the reader knew the version before"
    assert [each.value["note"] for each in table.scan()] == ["", "new"]


def test_tables_are_described(client: Client, database: str, flights: Table) -> None:
    found = client.describe(flights.full_name)
    assert [str(part.type) for part in found.key] == ["timestamp", "string", "int64"]
    index = found.index("by_origin")
    assert index is not None
    assert [(part.path, part.descending) for part in index.parts] == [("route.origin", False), ("flight", True)]
    assert client.tables(database) == [found]
    assert database in client.databases()


# --- bad input -------------------------------------------------------------------------------------------------


BAD_CALLS: list[tuple[Any, type[Exception], str]] = [
    (lambda c, t: c.table("nowhere.flights").get(1), NotFound, "nowhere"),
    (lambda c, t: c.table(t.full_name + "x").get(1), NotFound, "flightsx"),
    (lambda c, t: list(t.scan(index="by_gate")), NotFound, "by_gate"),
    (lambda c, t: list(t.scan(columns=["gate"])), NotFound, "gate"),
    (lambda c, t: c.schemas.get_by_id(1_000_000), NotFound, "1000000"),
    (lambda c, t: c.table("flights"), InvalidArgument, "database.table"),
    (lambda c, t: t.get(("2013", "UA", 1)), InvalidArgument, "key.time_hour"),
    (lambda c, t: t.get(key(1)[:2]), InvalidArgument, "3 parts"),
    (lambda c, t: t.get((*key(1)[:1], "x" * 600, 1)), KeyTooLong, "499"),
    (lambda c, t: t.put(flight(1) | {"carrier": None}), InvalidDocument, "carrier"),
    (lambda c, t: t.put({"carrier": "UA"}), InvalidDocument, "time_hour"),
    (lambda c, t: t.put(flight(1, tail="x" * 2_000_000)), TooLarge, "1048576"),
    (lambda c, t: t.put(flight(1) | {"route": {"origin": 5}}), InvalidDocument, "route.origin"),
    (lambda c, t: t.put(flight(1) | {"fare": Decimal("1.234")}), InvalidDocument, "fare"),
    (lambda c, t: t.put(flight(1) | {"time_hour": date(2013, 1, 1)}), InvalidDocument, "time_hour"),
    (lambda c, t: t.update(key(1), {"gate": "A"}), InvalidDocument, "gate"),
    (lambda c, t: t.update(key(1), {"route.origin": 5}), InvalidDocument, "route.origin"),
    (lambda c, t: t.update(key(1), {"arr_delay": 1.0}), NotFound, "flights"),
    (lambda c, t: t.put(flight(1), if_etag="yesterday"), InvalidArgument, "yesterday"),
    (lambda c, t: list(t.scan(filter="flight >")), InvalidFilter, "character 8"),
    (lambda c, t: list(t.scan(filter="gate = 1")), InvalidFilter, "gate"),
    (lambda c, t: t.get(key(1), at=Timestamp(0, 4_000_000_000_000, 0)), TimestampInFuture, "4000000000000"),
    (lambda c, t: t.get(key(1), at="tomorrow"), InvalidArgument, "at"),
    (lambda c, t: c.schemas.register("s", "{"), InvalidSchema, "JSON"),
    (lambda c, t: c.schemas.register("s", {"type": "record"}), InvalidSchema, "name"),
    (lambda c, t: c.create_table("nowhere.t", ["id"]), NotFound, "nowhere"),
    (lambda c, t: c.create_table(t.full_name, ["flight"]), AlreadyExists, "flights"),
    (lambda c, t: c.create_table(t.full_name + "2", ["gate"], subject=t.full_name), InvalidArgument, "gate"),
    (lambda c, t: c.create_table(t.full_name + "2", ["flight downwards"]), InvalidArgument, "desc"),
    (lambda c, t: t.split(0), InvalidArgument, "parts"),
]


@pytest.mark.parametrize(("call", "error", "named"), BAD_CALLS, ids=range(len(BAD_CALLS)))
def test_bad_input_is_one_precise_error_that_changes_nothing(
    client: Client, flights: Table, call: Any, error: type[Exception], named: str
) -> None:
    with pytest.raises(error) as raised:
        call(client, flights)
    assert type(raised.value) is error
    assert named in str(raised.value)
    assert list(flights.scan()) == []
    assert client.status().state == "serving"
