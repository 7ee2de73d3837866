"""Aggregates through the client, against a node: values, bounds, times, transactions, old schemas, refusals."""

from __future__ import annotations

import math
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import grpc
import pytest

from cortado.errors import InvalidArgument, InvalidFilter, InvalidPageToken, NotFound, TooLarge
from cortado.proto.v1 import documents_pb2, documents_pb2_grpc
from cortado.store.aggregate import partial
from cortado.store.client import Client
from cortado.store.client.aggregates import Groups
from cortado.store.server import scan_steps
from cortado.store.tables import aggregate_slices, aggregating
from support.faces import FACES, open_client
from support.grpc_errors import from_rpc_error
from support.memory_engine import MemoryEngine
from support.served_node import Served, served_node

MONEY = {"type": "bytes", "logicalType": "decimal", "precision": 38, "scale": 2}
SALE: dict[str, Any] = {
    "type": "record",
    "name": "Sale",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "shop", "type": ["null", "string"]},
        {"name": "items", "type": "int"},
        {"name": "units", "type": ["null", "long"]},
        {"name": "price", "type": ["null", "double"]},
        {"name": "cost", "type": ["null", MONEY]},
        {"name": "place", "type": {"type": "record", "name": "Place", "fields": [{"name": "city", "type": "string"}]}},
        {"name": "tags", "type": {"type": "array", "items": "string"}, "default": []},
    ],
}
MOST = 2**63 - 1
WIDE = Decimal("9" * 36 + ".99")
SALE_2 = {**SALE, "fields": [*SALE["fields"], {"name": "till", "type": "int", "default": 7}]}


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    with served_node(MemoryEngine()) as node:
        with Client(node.endpoint) as client:
            client.create_database("shop")
            client.schemas.register("shop.sales", SALE)
            client.create_table("shop.sales", ["id"])
            client.table("shop.sales").put_many([sale(i) for i in range(50)])
            client.schemas.register("shop.sales", SALE_2)
            client.table("shop.sales").put_many([sale(i, till=i % 2) for i in range(50, 100)])
            client.schemas.register("shop.large", SALE)
            client.create_table("shop.large", ["id"])
            rows = [sale(1, units=MOST, cost=WIDE), sale(2, units=1, cost=WIDE), sale(4, cost=None, price=math.nan)]
            client.table("shop.large").put_many([*rows, sale(3, units=-1, cost=WIDE.copy_negate())])
        yield node


@pytest.fixture(params=FACES)
def client(served: Served, request: pytest.FixtureRequest) -> Iterator[Client]:
    with open_client(request.param, served.endpoint, timeout_s=10) as opened:
        yield opened


def sale(number: int, **more: Any) -> dict[str, Any]:
    return {
        "id": number,
        "shop": ["north", "south", None][number % 3],
        "items": number % 5,
        "units": None if number % 7 == 0 else number,
        "price": number / 4,
        "cost": Decimal(number) / 100,
        "place": {"city": "Oslo" if number % 2 else "Rome"},
        "tags": [],
    } | more


def test_groups_come_with_their_aggregates_in_the_order_of_the_groups(client: Client) -> None:
    rows = client.table("shop.sales").aggregate(
        "count(*) as n, sum(items) as i, avg(units) as u, min(price), max(place.city) as c", group_by="shop"
    )
    assert [row["shop"] for row in rows] == [None, "north", "south"]
    north = [number for number in range(100) if number % 3 == 0]
    assert rows[1] == {
        "shop": "north",
        "n": len(north),
        "i": sum(number % 5 for number in north),
        "u": sum(n for n in north if n % 7) / len([n for n in north if n % 7]),
        "min(price)": 0.0,
        "c": "Rome",
    }


def test_without_fields_to_group_by_there_is_one_row(client: Client) -> None:
    table = client.table("shop.sales")
    [row] = table.aggregate("count(*), count(units), sum(cost) as cost, avg(cost) as mean")
    assert row == {
        "count(*)": 100,
        "count(units)": 85,
        "cost": Decimal("49.50"),
        "mean": Decimal("0.495000"),
    }
    [nothing] = table.aggregate("count(*) as n, sum(cost), avg(price), min(shop)", filter="id < 0")
    assert nothing == {"n": 0, "sum(cost)": None, "avg(price)": None, "min(shop)": None}
    assert table.aggregate("count(*)", group_by="shop", filter="id < 0") == []


def test_a_filter_bounds_and_a_time_choose_the_rows(client: Client) -> None:
    table = client.table("shop.sales")
    assert table.count() == 100
    assert table.count(filter="units is null and id > 7") == 13
    assert table.count(10, 20) == 10
    assert table.count(prefix=(5,)) == 1
    assert table.count(5, 5) == 0
    assert table.aggregate("max(id) as most", end=20, filter="shop = 'north'") == [{"most": 18}]


def test_rows_of_older_versions_are_read_by_their_own_schema(client: Client) -> None:
    rows = client.table("shop.sales").aggregate("count(*) as n", group_by="till")
    assert rows == [{"till": 0, "n": 25}, {"till": 1, "n": 25}, {"till": 7, "n": 50}]
    with pytest.raises(InvalidArgument, match="no field till"):
        client.table("shop.sales", schema_version=1).aggregate("sum(till)")


def test_group_fields_may_be_several_nested_and_named(client: Client) -> None:
    rows = client.table("shop.sales").aggregate("COUNT(*) AS n", group_by=["place.city as city", "shop"], end=6)
    assert rows == [
        {"city": "Oslo", "shop": None, "n": 1},
        {"city": "Oslo", "shop": "north", "n": 1},
        {"city": "Oslo", "shop": "south", "n": 1},
        {"city": "Rome", "shop": None, "n": 1},
        {"city": "Rome", "shop": "north", "n": 1},
        {"city": "Rome", "shop": "south", "n": 1},
    ]
    [quoted] = client.table("shop.sales").aggregate('sum("items") as "the sum", count(`place`.city)', end=2)
    assert quoted == {"the sum": 1, "count(place.city)": 2}


def test_a_transaction_counts_what_it_has_written(client: Client, served: Served) -> None:
    with Client(served.endpoint) as other:
        txn = other.transaction(isolation="serializable")
        table = txn.table("shop.sales")
        before = table.count(1000)
        table.put(sale(1000, till=1))
        assert (before, table.count(1000)) == (0, 1)
        assert table.aggregate("sum(till) as t", 1000) == [{"t": 1}]
        txn.rollback()
        assert other.table("shop.sales").count(1000) == 0


def test_a_snapshot_counts_as_of_its_time(client: Client, served: Served) -> None:
    with Client(served.endpoint) as other:
        snapshot = other.snapshot()
        assert snapshot.table("shop.sales").count(3000, 4000) == 0
        other.table("shop.sales").put(sale(3000, till=1))
        assert snapshot.table("shop.sales").count(3000, 4000) == 0
        assert other.table("shop.sales").count(3000, 4000) == 1
        other.table("shop.sales").delete(3000)


def test_groups_of_several_ranges_are_merged(client: Client) -> None:
    table = client.table("shop.sales")
    asked = {"aggregates": "count(*) as n, avg(units) as u, max(price) as p", "group_by": "shop"}
    whole = table.aggregate(**asked)
    low, high = table.aggregate_groups(end=33, **asked), table.aggregate_groups(start=33, **asked)
    low.merge(high)
    assert low.rows() == whole
    with pytest.raises(TooLarge, match="more than 2: group by fewer fields, or raise groups_max"):
        table.aggregate_groups(groups_max=2, **asked)


def test_groups_beyond_the_bound_leave_early_and_count_once(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    table = client.table("shop.sales")
    whole = table.aggregate("count(*) as n, sum(cost) as c, min(shop)", group_by="items, place.city")
    monkeypatch.setattr(partial, "GROUPS_MAX", 3)
    monkeypatch.setattr(aggregate_slices, "FILTER_SLICE_ROWS_MAX", 7)
    assert table.aggregate("count(*) as n, sum(cost) as c, min(shop)", group_by="items, place.city") == whole


def test_a_slice_whose_groups_are_large_is_cut(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    table = client.table("shop.sales")
    whole = table.aggregate("min(shop) as s", group_by="id")
    monkeypatch.setattr(aggregate_slices, "PIECE_BYTES_MAX", 100)
    monkeypatch.setattr(partial, "GROUPS_BYTES_MAX", 300)
    assert table.aggregate("min(shop) as s", group_by="id") == whole


def test_the_result_as_an_arrow_table(client: Client) -> None:
    pa = pytest.importorskip("pyarrow")
    table = client.table("shop.sales").aggregate_arrow("count(*) as n, sum(cost) as c, count(*) as m", group_by="shop")
    assert table.schema.names == ["shop", "n", "c", "m"]
    assert table.schema.field("c").type == pa.decimal128(38, 2)
    assert table.column("n").to_pylist() == table.column("m").to_pylist() == [33, 34, 33]


BAD = [
    ({"aggregates": "sum(shop)"}, r"field shop is string: sum takes an int, long, float, double or decimal"),
    ({"aggregates": "avg(place)"}, r"field place is not comparable: avg takes an int"),
    ({"aggregates": "min(tags)"}, r"field tags is not comparable: min takes a type whose values have an order"),
    ({"aggregates": "sum(prise)"}, r"no field prise in table shop\.sales"),
    ({"aggregates": "count(*)", "group_by": "tags"}, r"group_by: field tags is of a type whose values do not make"),
    ({"aggregates": "count(*)", "group_by": "place.town"}, r"group_by: no field place\.town in table shop\.sales"),
    ({"aggregates": "count(*)", "group_by": "shop, shop as s"}, r"group_by: names shop twice"),
    ({"aggregates": ""}, r"expected count, sum, min, max, avg, found the end, at character 0"),
    ({"aggregates": "median(id)"}, r"expected count, sum, min, max, avg, found median, at character 0"),
    ({"aggregates": "sum(*)"}, r"expected a field, found \*, at character 4"),
    ({"aggregates": "count(*) n"}, r"expected ',', as or the end, found n, at character 9"),
    ({"aggregates": "sum(id"}, r"expected '\)', found the end, at character 6"),
    ({"aggregates": "sum(id) as 7"}, r"unexpected character '7', at character 11"),
    ({"aggregates": "sum(id) as n, count(*) as n"}, r"two columns of the result have one name"),
    ({"aggregates": "count(*)", "group_by": "shop,"}, r"group_by: expected a field, found the end, at character 5"),
    ({"aggregates": "count(*)", "group_by": ["shop", "a b"]}, r"group_by\[1\]: expected ',', '\.', as or the end"),
    ({"aggregates": "count(*)", "group_by": 7}, r"group_by: must be a list of texts"),
    ({"aggregates": 7}, r"aggregates: must be a str"),
    ({"aggregates": "count(*)", "index": 7}, r"index: must be a str"),
    ({"aggregates": ", ".join(f"count(f{i})" for i in range(101))}, r"aggregates: must be at most 100"),
]


@pytest.mark.parametrize(("asked", "problem"), BAD, ids=[str(asked)[:60] for asked, _ in BAD])
def test_what_is_wrong_is_said_precisely(client: Client, asked: dict[str, Any], problem: str) -> None:
    with pytest.raises(InvalidArgument, match=problem):
        client.table("shop.sales").aggregate(**asked)


def test_names_of_what_is_not_there_are_refused(client: Client) -> None:
    with pytest.raises(NotFound, match=r"nothing"):
        client.table("shop.nothing").count()
    with pytest.raises(NotFound, match=r"by_nothing of table shop\.sales"):
        client.table("shop.sales").count(index="by_nothing")
    with pytest.raises(InvalidFilter, match="no field prise"):
        client.table("shop.sales").count(filter="prise > 1")


def test_a_sum_that_overflows_is_told_when_all_is_merged(client: Client) -> None:
    table = client.table("shop.large")
    with pytest.raises(InvalidArgument, match=rf"sum\(units\) of field units is more than fits a long.*{MOST + 1}"):
        table.aggregate("sum(units)", end=3)
    with pytest.raises(InvalidArgument, match=r"sum\(cost\) of field cost is more than fits a decimal of 38 digits"):
        table.aggregate("sum(cost)", end=3)
    assert table.aggregate("sum(units) as u, sum(cost) as c", end=4) == [{"u": MOST, "c": WIDE}]
    assert table.aggregate("avg(units) as u", end=3) == [{"u": 2.0**62}]
    [row] = table.aggregate("max(price) as most, min(price) as least")
    assert math.isnan(row["most"]) and row["least"] == 0.25


def test_what_there_is_leaves_after_a_second_and_counts_once(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    replies = []
    add = Groups._add

    def counted(groups: Groups, reply: Any) -> None:
        replies.append(bool(reply.next_page_token))
        add(groups, reply)

    monkeypatch.setattr(Groups, "_add", counted)
    monkeypatch.setattr(aggregating, "REPLY_MS", 0.0)
    monkeypatch.setattr(aggregate_slices, "FILTER_SLICE_ROWS_MAX", 30)
    monkeypatch.setattr(scan_steps, "SLICE_MS_MAX", 0.0)
    monkeypatch.setattr(scan_steps, "kept_columns", lambda _store, _plan: None)
    assert client.table("shop.sales").aggregate("count(*) as n, sum(id) as ids") == [{"n": 100, "ids": 4950}]
    # The last one of 100 rows in slices of 30 has no token, and no other.
    assert replies[:3] == [True] * 3
    assert (replies[-1], len(replies)) in {(False, 4), (False, 5)}


def test_a_token_is_good_for_the_same_aggregate_alone(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(aggregating, "REPLY_MS", 0.0)
    monkeypatch.setattr(aggregate_slices, "FILTER_SLICE_ROWS_MAX", 30)
    monkeypatch.setattr(scan_steps, "SLICE_MS_MAX", 0.0)
    monkeypatch.setattr(scan_steps, "kept_columns", lambda _store, _plan: None)
    table = documents_pb2.TableName(database="shop", table="sales")
    total = documents_pb2.Aggregate(kind=documents_pb2.AGGREGATE_KIND_SUM, field="id")
    asked = documents_pb2.AggregateRequest(table=table, aggregates=[total])
    with grpc.insecure_channel(served.endpoint) as channel:
        call = documents_pb2_grpc.DocumentsStub(channel).Aggregate
        first = next(iter(call(asked)))
        same: dict[str, Any] = {"table": table, "aggregates": [total]}
        rest = list(call(documents_pb2.AggregateRequest(page_token=first.next_page_token, **same)))
        assert rest[-1].next_page_token == b""
        for other in ({"group_by": ["shop"]}, {"filter": "id > 1"}, {"schema_id": 1}):
            with pytest.raises(grpc.RpcError) as refused:
                list(call(documents_pb2.AggregateRequest(**other, page_token=first.next_page_token, **same)))
            assert isinstance(from_rpc_error(refused.value), InvalidPageToken)


@pytest.mark.parametrize(
    ("asked", "problem"),
    [
        ([], "aggregates: must be at least one"),
        ([(0, "id")], "aggregates.kind: is not an aggregate that this server knows"),
        ([(99, "id")], "aggregates.kind: is not an aggregate that this server knows"),
        ([(2, "")], "aggregates: sum takes a field"),
        ([(2, "id"), (2, "id")], r"aggregates: names sum\(id\) twice"),
    ],
)
def test_requests_of_others_are_checked_as_well(served: Served, asked: list[tuple[int, str]], problem: str) -> None:
    request = documents_pb2.AggregateRequest(
        table=documents_pb2.TableName(database="shop", table="sales"),
        aggregates=[documents_pb2.Aggregate(kind=kind, field=field) for kind, field in asked],
    )
    with grpc.insecure_channel(served.endpoint) as channel, pytest.raises(grpc.RpcError) as refused:
        list(documents_pb2_grpc.DocumentsStub(channel).Aggregate(request))
    with pytest.raises(InvalidArgument, match=problem):
        raise from_rpc_error(refused.value)
