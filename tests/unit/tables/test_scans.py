"""Scans by table and by index: ranges, order, pages, limits, filters, projection and schemas."""

from __future__ import annotations

import json
from typing import Any

import pytest

from cortado.errors import DataLoss, InvalidArgument, InvalidFilter, InvalidPageToken, NotFound
from cortado.store.keys.keyspace import index_key
from cortado.store.mvcc.evaluation import Evaluation
from cortado.store.mvcc.mutations import Mutations
from cortado.store.mvcc.paging import PageToken
from cortado.store.tables.scan import Budget, Scan, scan_step
from support.orders import ORDER_V2, address, create_orders, order
from support.table_world import DATABASE, WORLDS, TableWorld, budget

CITIES = ["Oslo", "Rome", "Lima"]


@pytest.fixture(params=WORLDS)
def world(request: pytest.FixtureRequest) -> TableWorld:
    world = TableWorld(request.param())
    create_orders(world)
    world.bulk("orders", DOCUMENTS)
    return world


# In the order of the primary key: customer, then number descending.
DOCUMENTS = [
    order(customer, number, code=f"{customer}{number}", amount=number / 2, address=address(CITIES[number % 3]))
    for customer in ("ann", "bob", "cid")
    for number in range(9, -1, -1)
]
BY_CITY = sorted(DOCUMENTS, key=lambda each: (each["address"]["city"], -each["number"], each["customer"]))


def keys(documents: list[dict[str, Any]]) -> list[tuple[str, int]]:
    return [(each["customer"], each["number"]) for each in documents]


def test_a_scan_returns_all_rows_in_key_order_both_ways(world: TableWorld) -> None:
    assert world.scan("orders") == DOCUMENTS
    assert world.scan("orders", reverse=True) == DOCUMENTS[::-1]


@pytest.mark.parametrize(
    ("bounds", "expected"),
    [
        ({"lower": ("bob",)}, DOCUMENTS[10:]),
        ({"upper": ("bob",)}, DOCUMENTS[:10]),
        ({"lower": ("ann", 3), "upper": ("bob", 7)}, DOCUMENTS[6:12]),
        ({"prefix": ("bob",)}, DOCUMENTS[10:20]),
        ({"prefix": ("bob", 7)}, DOCUMENTS[12:13]),
        ({"lower": ("bob",), "upper": ("bob",)}, []),
        ({"lower": (), "upper": None, "prefix": ()}, DOCUMENTS),
    ],
)
def test_bounds_are_prefixes_in_key_order(
    world: TableWorld, bounds: dict[str, Any], expected: list[dict[str, Any]]
) -> None:
    assert world.scan("orders", **bounds) == expected
    assert world.scan("orders", **bounds, reverse=True) == expected[::-1]


def test_a_range_that_runs_backwards_is_refused_and_not_empty(world: TableWorld) -> None:
    with pytest.raises(InvalidArgument, match=r"range\.end: must not come before start"):
        world.scan("orders", lower=("cid",), upper=("bob",))


def test_an_index_scan_returns_rows_in_the_order_of_the_index(world: TableWorld) -> None:
    assert keys(world.scan("orders", index="by_city")) == keys(BY_CITY)
    assert keys(world.scan("orders", index="by_city", reverse=True)) == keys(BY_CITY)[::-1]
    oslo = [each for each in BY_CITY if each["address"]["city"] == "Oslo"]
    assert world.scan("orders", index="by_city", prefix=("Oslo",)) == oslo
    assert world.scan("orders", index="by_city", lower=("Oslo", 6), upper=("Oslo", 0)) == oslo[3:9]
    assert keys(world.scan("orders", index="by_code", lower=("bob3",), upper=("bob5",))) == [("bob", 3), ("bob", 4)]


@pytest.mark.parametrize("page_rows", [1, 3, 7, 30])
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize(
    "options", [{}, {"index": "by_city"}, {"filter": "amount >= 2"}, {"index": "by_code", "filter": "number in (1, 8)"}]
)
def test_pages_put_together_are_the_whole_scan(
    world: TableWorld, page_rows: int, reverse: bool, options: dict[str, Any]
) -> None:
    whole = world.scan("orders", reverse=reverse, **options)
    plan = world.plan("orders", reverse=reverse, **options)
    pages = world.pages(plan, page_rows)
    assert [each for page in pages for each in world.documents(plan, page)] == whole
    assert all(page.rows <= page_rows for page in pages)
    assert pages[-1].next is None


@pytest.mark.parametrize("limit", [0, 1, 10, 29, 30, 31])
def test_a_limit_ends_a_scan_over_all_its_pages(world: TableWorld, limit: int) -> None:
    for page_rows in (4, 100):
        assert world.scan("orders", limit=limit, page_rows=page_rows) == DOCUMENTS[:limit]
        few = [each for each in DOCUMENTS if each["number"] > 7][:limit]
        assert world.scan("orders", limit=limit, filter="number > 7", page_rows=page_rows) == few


def test_the_page_that_reaches_the_limit_is_the_last(world: TableWorld) -> None:
    assert [page.rows for page in world.pages(world.plan("orders", limit=8), 4)] == [4, 4]


def test_all_pages_show_the_state_of_the_first(world: TableWorld) -> None:
    plan = world.plan("orders")
    first = scan_step(world.store, plan, None, budget(5))
    world.delete("orders", ("cid", 0))
    world.put("orders", order("cid", 5, amount=99.0))
    later = world.plan("orders", at=world.store.now)
    rest = scan_step(world.store, later, first.next, budget())
    assert world.documents(plan, first) + world.documents(plan, rest) == DOCUMENTS


def test_a_step_ends_at_each_bound_of_its_budget(world: TableWorld) -> None:
    plan = world.plan("orders")
    by_bytes = scan_step(world.store, plan, None, Budget(rows=100, bytes=1, ms=1e9, clock_ms=lambda: 0.0))
    assert 0 < by_bytes.rows < 30
    assert by_bytes.next is not None
    times = iter([0.0, 100.0])
    filtered = world.plan("orders", filter="number < 0")
    by_time = scan_step(world.store, filtered, None, Budget(rows=100, bytes=1, ms=5.0, clock_ms=lambda: next(times)))
    assert by_time.rows == 0


def test_a_token_cannot_lead_out_of_the_range(world: TableWorld) -> None:
    plan = world.plan("orders", prefix=("bob",))
    for resume in (b"", b"m", world.plan("orders", prefix=("cid",)).range[1]):
        with pytest.raises(InvalidPageToken):
            scan_step(world.store, plan, PageToken(plan.read_ts, resume), budget())


def test_the_shape_of_a_scan_is_everything_but_its_pages() -> None:
    scan = Scan(DATABASE, "orders", lower=("ann",), filter="number > 1")
    others = [
        Scan(DATABASE, "orders", lower=("bob",), filter="number > 1"),
        Scan(DATABASE, "orders", upper=("ann",), filter="number > 1"),
        Scan(DATABASE, "orders", lower=("ann",), filter="number > 2"),
        Scan(DATABASE, "orders", lower=("ann",), filter="number > 1", reverse=True),
        Scan(DATABASE, "orders", lower=("ann",), filter="number > 1", columns=("a",)),
        Scan(DATABASE, "orders", lower=("ann",), filter="number > 1", limit=1),
        Scan(DATABASE, "other", lower=("ann",), filter="number > 1"),
    ]
    assert scan.shape() == Scan(DATABASE, "orders", lower=("ann",), filter="number > 1").shape()
    assert len({scan.shape(), *(each.shape() for each in others)}) == 8


def test_filters_see_nested_fields_and_nulls(world: TableWorld) -> None:
    world.put("orders", order("dan", 1))
    rome = world.scan("orders", filter="address.city = 'Rome' and amount > 1")
    assert rome == [each for each in DOCUMENTS if each["address"]["city"] == "Rome" and each["amount"] > 1]
    assert keys(world.scan("orders", filter="address.city is null")) == [("dan", 1)]
    assert world.scan("orders", filter="not (address.city = 'Rome')", prefix=("dan",)) == []


def test_filters_read_old_rows_as_the_newest_schema_does(world: TableWorld) -> None:
    world.register("orders", ORDER_V2)
    for number in (1, 4):
        world.put("orders", {**order("bob", number), "note": "new"})
    old = [each for each in DOCUMENTS if (each["customer"], each["number"]) not in (("bob", 1), ("bob", 4))]
    assert world.scan("orders", filter="note = 'none'") == old
    assert keys(world.scan("orders", filter="note <> 'none'")) == [("bob", 4), ("bob", 1)]


def test_rows_come_back_as_they_were_written_in_runs_of_one_schema(world: TableWorld) -> None:
    old_id = world.view("orders").newest_id
    new_id = world.register("orders", ORDER_V2)
    world.put("orders", {**order("ann", 8), "note": "new"})
    world.put("orders", {**order("ann", 7), "note": "new"})
    (page,) = world.pages(world.plan("orders", with_versions=True))
    assert [(run.schema_id, len(run)) for run in page.runs] == [(old_id, 1), (new_id, 2), (old_id, 27)]
    assert [len(run.versions) for run in page.runs] == [12, 24, 27 * 12]
    versions = [ts for run in page.runs for ts in run.timestamps()]
    assert sorted(versions)[-2:] == [versions[1], versions[2]]
    by_index = world.pages(world.plan("orders", with_versions=True, index="by_code"))[0]
    assert sorted(by_index.etags()) == sorted(map(str, versions))


def test_rows_are_read_through_the_schema_asked_for(world: TableWorld) -> None:
    old_id = world.view("orders").newest_id
    new_id = world.register("orders", ORDER_V2)
    world.put("orders", {**order("ann", 8), "note": "new"})
    (page,) = world.pages(world.plan("orders", schema_id=new_id, prefix=("ann",)))
    assert [(run.schema_id, len(run)) for run in page.runs] == [(new_id, 10)]
    notes = [each["note"] for each in world.scan("orders", schema_id=new_id, prefix=("ann",))]
    assert notes == ["none", "new", *["none"] * 8]
    back = world.scan("orders", schema_id=old_id, prefix=("ann",))
    assert back == [DOCUMENTS[0], order("ann", 8), *DOCUMENTS[2:10]]
    with pytest.raises(InvalidFilter):
        world.scan("orders", schema_id=old_id, filter="note = 'new'")


def test_a_projection_keeps_the_chosen_fields_in_their_order(world: TableWorld) -> None:
    found = world.scan("orders", columns=["amount", "customer"], limit=2)
    assert [list(each.items()) for each in found] == [
        [("amount", 4.5), ("customer", "ann")],
        [("amount", 4.0), ("customer", "ann")],
    ]


def test_a_projection_reaches_into_records(world: TableWorld) -> None:
    world.put("orders", order("dan", 1, tags=["a", "b"], status="paid"))
    columns = ["address.city", "tags", "status", "address.zip"]
    found = world.scan("orders", columns=columns, lower=("cid", 0))
    assert found == [
        {"address": {"city": "Oslo", "zip": None}, "tags": [], "status": "open"},
        {"address": None, "tags": ["a", "b"], "status": "paid"},
    ]
    one = world.scan("orders", columns=["address.zip"], prefix=("cid", 0))
    assert one == [{"address": {"zip": None}}]
    whole = world.scan("orders", columns=["address", "address.zip"], prefix=("cid", 0))
    assert whole == [{"address": {"city": "Oslo", "zip": None}}]


def test_a_projected_schema_is_told(world: TableWorld) -> None:
    plan = world.plan("orders", columns=["address.city", "status"])
    declared = json.loads(plan.projected_schema)
    assert [field["name"] for field in declared["fields"]] == ["address", "status"]
    assert declared["fields"][0]["type"][1]["fields"] == [{"name": "city", "type": "string"}]
    assert {run.schema_id for page in world.pages(plan) for run in page.runs} == {0}
    assert world.plan("orders").projected_schema == ""


def test_projection_filter_and_index_work_together_on_old_and_new_rows(world: TableWorld) -> None:
    world.register("orders", ORDER_V2)
    world.put("orders", {**order("bob", 4, code="bob4", address=address("Rome")), "note": "new"})
    found = world.scan("orders", index="by_code", columns=["code", "note"], filter="number = 4", page_rows=2)
    assert found == [
        {"code": "ann4", "note": "none"},
        {"code": "bob4", "note": "new"},
        {"code": "cid4", "note": "none"},
    ]


def test_json_rows_are_whole_documents_in_one_schema(world: TableWorld) -> None:
    world.register("orders", ORDER_V2)
    world.put("orders", {**order("ann", 8), "note": "new"})
    (page,) = world.pages(world.plan("orders", json=True, with_versions=True, limit=2))
    first, second = map(json.loads, page.json_rows)
    assert first == {**DOCUMENTS[0], "note": "none"}
    assert second == {**order("ann", 8), "note": "new"}
    assert len(page.etags()) == 2
    (projected,) = world.pages(world.plan("orders", json=True, columns=["address.city"], limit=1))
    assert projected.json_rows == ['{"address": {"city": "Oslo"}}']


def test_named_types_are_declared_once_in_a_projected_schema() -> None:
    world = TableWorld()
    money = {"type": "fixed", "name": "Money", "size": 4}
    side = {
        "type": "record",
        "name": "Side",
        "namespace": "other",
        "fields": [{"name": "fee", "type": money}, {"name": "vat", "type": "Money"}, {"name": "x", "type": "int"}],
    }
    fields = [
        {"name": "id", "type": "long"},
        {"name": "buy", "type": side},
        {"name": "sell", "type": ["null", "other.Side"], "default": None},
        {"name": "pair", "type": {"type": "array", "items": "other.Side"}},
    ]
    world.create("deals", {"type": "record", "name": "Deal", "fields": fields}, ["id"])
    full = {"fee": b"1234", "vat": b"5678", "x": 1}
    world.put("deals", {"id": 1, "buy": full, "sell": full, "pair": [full]})
    assert world.scan("deals", columns=["sell.vat", "buy.fee", "buy.vat", "pair"]) == [
        {"sell": {"vat": b"5678"}, "buy": {"fee": b"1234", "vat": b"5678"}, "pair": [full]}
    ]
    assert world.scan("deals", columns=["pair", "sell", "buy.x"]) == [{"pair": [full], "sell": full, "buy": {"x": 1}}]


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"index": "by_none"}, NotFound, r"no index by_none of table shop\.orders"),
        ({"columns": ["nothing"]}, NotFound, r"no field nothing of table shop\.orders"),
        ({"columns": ["address.street"]}, NotFound, r"no field address\.street"),
        ({"columns": ["amount", "amount"]}, InvalidArgument, "columns: names a field twice"),
        ({"columns": ["amount", ""]}, InvalidArgument, "columns: must be paths of fields"),
        ({"columns": ["tags.x"]}, InvalidArgument, r"columns: tags of table shop\.orders is no record"),
        ({"filter": "amount >"}, InvalidFilter, "filter"),
        ({"filter": "nothing = 1"}, InvalidFilter, "nothing"),
        ({"filter": "amount = 'x'"}, InvalidFilter, "amount"),
        ({"lower": ("a", 1, 2)}, InvalidArgument, "start: must have at most 2 parts"),
        ({"prefix": ("a", 1, 2)}, InvalidArgument, r"range\.prefix: must have at most 2 parts"),
        ({"prefix": ("a",), "lower": ("a",)}, InvalidArgument, r"range\.prefix: excludes start and end"),
        ({"upper": (1,)}, InvalidArgument, "customer: must be a string"),
        ({"limit": -1}, InvalidArgument, "limit: must not be negative"),
        ({"schema_id": 99}, NotFound, "schema with id 99"),
    ],
)
def test_a_bad_scan_is_one_precise_error(options: dict[str, Any], error: type[Exception], message: str) -> None:
    world = TableWorld()
    create_orders(world)
    with pytest.raises(error, match=message):
        world.plan("orders", **options)


def test_an_entry_without_its_row_is_data_loss(world: TableWorld) -> None:
    table = world.view("orders").table
    by_code = table.indexes[0]
    primary_key = world.view("orders").encode_key(("zoe", 1))
    key = index_key(table.table_id, by_code.index_id, by_code.parts, ("zzz",), primary_key, unique=True)
    world.store.write(lambda reader, ts: Evaluation(Mutations([key], [primary_key]), None))
    with pytest.raises(DataLoss, match=r"shop\.orders\('zoe', 1\), which does not exist"):
        world.scan("orders", index="by_code")
