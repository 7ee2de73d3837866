"""Many documents and pairs over HTTP: pages that go on where they ended, as of one time, and lines."""

from __future__ import annotations

import json
from io import BytesIO
from typing import Any

import fastavro
import pytest
from unit.gateway.conftest import make_tables

from cortado.store.gateway.limits import GatewayLimits
from support.gateways import Gateway, gateway

LINES = {"Accept": "application/x-ndjson"}
EVENTS = "/v1/db/shop/events"
DAY = "2013-01-{:02}T00:00:00Z"


@pytest.fixture(scope="module")
def listed(served: Gateway) -> Gateway:
    """Return a gateway before three devices with ten events each, and 250 pairs."""

    async def fill() -> None:
        events = served.client.table("shop.events")
        rows = [
            {"device": device, "at": DAY.format(day), "value": float(day)}
            for device in (101, 102, 103)
            for day in range(1, 11)
        ]
        await events.put_json(rows)
        items = [{"id": f"list{i:03}", "name": f"name{i % 3}", "left": (1 << 60) + i} for i in range(30)]
        await served.client.table("shop.items").put_json(items)
        for i in range(25):
            await served.client.kv("listed").put(b"k\xff%03d" % i, b"%d" % i)

    served.run(fill())
    return served


def elements(served: Gateway, path: str, **parameters: Any) -> list[Any]:
    """Return the elements of all pages, one after the other."""
    found: list[Any] = []
    page: str | None = ""
    while page is not None:
        given = {**parameters, **({"page": page} if page else {})}
        answered = served.request("GET", path, params=given)
        assert answered.status_code == 200, answered.text
        told = answered.json()
        assert told.keys() == {"elements", "next"}
        assert len(told["elements"]) <= parameters.get("limit", 100)
        found += told["elements"]
        page = told["next"]
    return found


@pytest.mark.parametrize("path", [f"{EVENTS}/999", "/v1/kv/empty"])
def test_of_nothing_there_are_no_lines(listed: Gateway, path: str) -> None:
    found = listed.request("GET", path, headers=LINES)
    assert (found.status_code, found.text) == (200, "")


@pytest.mark.parametrize(
    ("path", "count"), [(f"{EVENTS}/102", 10), (f"{EVENTS}/999", 0), (f"{EVENTS}/101?filter=value>9", 1)]
)
def test_an_avro_file_holds_all_documents_in_one_schema(listed: Gateway, path: str, count: int) -> None:
    answered = listed.request("GET", path, headers={"Accept": "application/avro"})
    assert (answered.status_code, answered.headers["Content-Type"]) == (200, "application/avro"), answered.text
    found = fastavro.reader(BytesIO(answered.content))
    assert found.writer_schema["name"] == "Event"
    rows = list(found)
    assert len(rows) == count
    listed_rows = elements(listed, path.partition("?")[0], **({"filter": "value>9"} if "?" in path else {}))
    assert [row["value"] for row in rows] == [each["value"]["value"] for each in listed_rows]


@pytest.mark.parametrize("query", ["columns=value", "limit=1", "page=AAAA"])
def test_an_avro_file_has_neither_fields_nor_pages(listed: Gateway, query: str) -> None:
    refused = listed.request("GET", f"{EVENTS}?{query}", headers={"Accept": "application/avro"})
    assert (refused.status_code, refused.json()["field"]) == (400, query.partition("=")[0])


@pytest.mark.parametrize("count", [1, 3, 10, 1000])
def test_pages_hold_each_document_of_a_prefix_once(listed: Gateway, count: int) -> None:
    found = elements(listed, f"{EVENTS}/102", limit=count)
    assert [each["value"]["at"] for each in found] == [DAY.format(day) for day in range(1, 11)]
    assert {each["value"]["device"] for each in found} == {102}
    assert all(each["etag"] for each in found)


def test_a_page_goes_on_as_of_the_time_of_the_first_one(listed: Gateway) -> None:
    first = listed.request("GET", f"{EVENTS}/103?limit=4").json()
    added = {"device": 103, "at": "2013-01-05T12:00:00Z", "value": 0.0}
    listed.request("PUT", f"{EVENTS}/103/2013-01-05T12:00:00Z", json=added)
    rest = listed.request("GET", f"{EVENTS}/103", params={"limit": 100, "page": first["next"]}).json()
    listed.request("DELETE", f"{EVENTS}/103/2013-01-05T12:00:00Z")
    assert [each["value"]["at"] for each in rest["elements"]] == [DAY.format(day) for day in range(5, 11)]


def test_bounds_filters_indexes_fields_and_directions_choose(listed: Gateway) -> None:
    def days(**parameters: Any) -> list[float]:
        return [each["value"]["value"] for each in elements(listed, EVENTS, **parameters)]

    between = {"start": f'[102, "{DAY.format(3)}"]', "end": f'[102, "{DAY.format(6)}"]'}
    assert days(**between) == [3.0, 4.0, 5.0]
    assert days(**between, reverse="true", limit=2) == [5.0, 4.0, 3.0]
    assert days(start="102", end="103", filter="value > 8.5") == [9.0, 10.0]
    by_name = elements(listed, "/v1/db/shop/items/name1", index="by_name", columns="id", limit=4)
    assert by_name[:2] == [{"etag": by_name[0]["etag"], "value": {"id": "list001"}},
                           {"etag": by_name[1]["etag"], "value": {"id": "list004"}}]  # fmt: skip
    assert len(by_name) == 10


def test_numbers_that_json_loses_are_text_where_that_is_asked_for(listed: Gateway) -> None:
    path = "/v1/db/shop/items/list007"
    assert listed.request("GET", path).json()["left"] == (1 << 60) + 7
    assert listed.request("GET", f"{path}?longs=string").json()["left"] == str((1 << 60) + 7)
    body = {"id": "list007", "name": "name1", "left": str((1 << 60) + 7)}
    assert listed.request("PUT", path, json=body).status_code == 400
    assert listed.request("PUT", f"{path}?longs=string", json=body).status_code == 200
    changed = listed.request("PATCH", f"{path}?longs=string", json={"left": str((1 << 62) + 7)})
    assert changed.json()["left"] == str((1 << 62) + 7)
    refused = listed.request("PATCH", f"{path}?longs=string", json={"left": "1.5"})
    assert (refused.status_code, refused.json()["reason"]) == (400, "INVALID_DOCUMENT")
    assert elements(listed, "/v1/db/shop/items", start="list007", end="list008", longs="string")[0]["value"][
        "left"
    ] == str((1 << 62) + 7)


def test_pairs_come_in_pages_by_prefix_and_without_values(listed: Gateway) -> None:
    found = elements(listed, "/v1/kv/listed", prefix=r"k\xff", limit=7)
    assert [each["key"] for each in found] == [rf"k\xff{i:03}" for i in range(25)]
    assert [each["value"] for each in found] == [str(i) for i in range(25)]
    keys = elements(listed, "/v1/kv/listed", start=r"k\xff020", keysOnly="true", reverse="true", limit=2)
    assert [each["key"] for each in keys] == [rf"k\xff{i:03}" for i in range(24, 19, -1)]
    assert all("value" not in each for each in keys)


@pytest.mark.parametrize("path", [EVENTS, "/v1/kv/listed"])
def test_lines_hold_what_pages_hold(listed: Gateway, path: str) -> None:
    streamed = listed.request("GET", path, headers=LINES)
    assert streamed.headers["Content-Type"] == "application/x-ndjson"
    assert [json.loads(line) for line in streamed.text.splitlines()] == elements(listed, path, limit=10)


@pytest.mark.parametrize(
    ("path", "options", "status", "field"),
    [
        (f"{EVENTS}?limit=0", {}, 400, "limit"),
        (f"{EVENTS}?limit=1001", {}, 400, "limit"),
        (f"{EVENTS}?limit=1", {"headers": LINES}, 400, "limit"),
        (f"{EVENTS}?page=!", {}, 400, "page"),
        (f"{EVENTS}?page=AAAA", {}, 400, None),
        (f"{EVENTS}?filter=value+>", {}, 400, None),
        (f"{EVENTS}?index=nothing", {}, 404, None),
        (f"{EVENTS}/101?start=1", {}, 400, "start"),
        (f"{EVENTS}/101/{DAY.format(1)}?limit=2", {}, 400, "limit"),
        (f"{EVENTS}?start=x", {}, 400, "key.device"),
        (f"{EVENTS}?columns=nothing", {}, 404, None),
        (f"{EVENTS}?longs=maybe", {}, 400, "longs"),
        (f"{EVENTS}?reverse=yes", {}, 400, "reverse"),
        ("/v1/db/shop/nothing", {}, 404, None),
        ("/v1/db/shop/nothing", {"headers": LINES}, 404, None),
        (EVENTS, {"headers": {"Accept": "text/csv"}}, 406, "Accept"),
        ("/v1/kv/listed?prefix=a&start=b", {}, 400, "prefix"),
    ],
)
def test_a_wrong_listing_is_refused_by_name(
    listed: Gateway, path: str, options: dict[str, Any], status: int, field: str | None
) -> None:
    refused = listed.request("GET", path, **options)
    assert refused.status_code == status, refused.text
    assert field is None or refused.json()["field"] == field


def test_a_page_of_another_call_is_refused(listed: Gateway) -> None:
    page = listed.request("GET", f"{EVENTS}/101?limit=2").json()["next"]
    refused = listed.request("GET", f"{EVENTS}/102", params={"limit": 2, "page": page})
    assert (refused.status_code, refused.json()["reason"]) == (400, "INVALID_PAGE_TOKEN")


def test_a_page_ends_at_its_bytes_and_streams_are_counted() -> None:
    with gateway(GatewayLimits(streams_max=1)) as served:
        served.run(make_tables(served))
        rows = [{"id": f"{i:02}", "maker": {"name": "x" * 500_000}} for i in range(20)]
        served.run(served.client.table("shop.items").put_json(rows))
        page = served.request("GET", "/v1/db/shop/items").json()
        assert 8 <= len(page["elements"]) < 20
        assert len(elements(served, "/v1/db/shop/items")) == 20
        for _ in range(3):  # Each gives its place back.
            assert len(served.request("GET", "/v1/db/shop/items", headers=LINES).text.splitlines()) == 20
