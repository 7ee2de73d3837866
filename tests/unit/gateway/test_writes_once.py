"""Batches are done as a whole or not at all; a write under an Idempotency-Key is done once, at whichever gateway."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from cortado.store.gateway.application import Application
from cortado.store.gateway.limits import GatewayLimits
from support.gateways import Gateway

BATCH = "/v1/db/shop:batch"
ITEMS = "/v1/db/shop/items"
BYTES = {"Content-Type": "application/octet-stream"}


def batch(served: Gateway, *operations: Any, **options: Any) -> httpx.Response:
    return served.request("POST", BATCH, json={"operations": operations}, **options)


def test_a_batch_does_everything_at_one_timestamp(served: Gateway) -> None:
    done = batch(
        served,
        {"put": {"table": "items", "document": {"id": "b1", "left": 5}, "if_absent": True}},
        {"add": {"table": "items", "key": ["b1"], "field": "left", "delta": -2, "min": 0}},
        {"update": {"table": "items", "key": ["b1"], "set": {"name": "n"}}},
        {"put": {"namespace": "log", "key": "b1", "value": "one", "if_absent": True}},
        {"require": {"table": "items", "key": ["none"], "if_absent": True}},
    )
    assert done.status_code == 200, done.text
    assert done.json()["sums"] == [3]
    found = served.request("GET", f"{ITEMS}/b1")
    assert found.json()["left"] == 3
    assert found.json()["name"] == "n"
    pair = served.request("GET", "/v1/kv/log/b1")
    assert found.headers["ETag"] == pair.headers["ETag"] == done.headers["ETag"] == f'"{done.json()["etag"]}"'


@pytest.mark.parametrize(
    ("last", "status", "field"),
    [
        ({"require": {"table": "items", "key": ["none"], "if_present": True}}, 412, None),
        ({"put": {"table": "items", "document": {"id": 7}}}, 400, "operations[1].id"),
        ({"put": {"table": "items", "document": {"id": "x"}, "colour": 1}}, 400, "operations[1].put.colour"),
        ({"put": {"table": "items"}}, 400, "operations[1].put.document"),
        ({"update": {"table": "items", "key": "x", "set": {}}}, 400, "operations[1].key"),
        ({"delete": {"table": "shop.items", "key": ["x"]}}, 400, "operations[1].table"),
        ({"delete": {"table": "nothing", "key": ["x"]}}, 404, None),
        ({"delete": {}}, 400, "operations[1].delete"),
        ({"drop": {"table": "items"}}, 400, "operations[1]"),
        ("put", 400, "operations[1]"),
    ],
)
def test_a_batch_of_which_one_part_is_refused_does_nothing(
    served: Gateway, last: Any, status: int, field: str | None
) -> None:
    refused = batch(served, {"put": {"table": "items", "document": {"id": "refused"}}}, last)
    assert refused.status_code == status, refused.text
    assert field is None or refused.json()["field"] == field
    assert served.request("GET", f"{ITEMS}/refused").status_code == 404


@pytest.mark.parametrize("body", [[], {}, {"operations": []}, {"operations": {}}, {"operations": [], "start": ""}])
def test_what_is_no_batch_is_refused(served: Gateway, body: Any) -> None:
    assert served.request("POST", BATCH, json=body).status_code == 400


def test_a_write_that_is_repeated_is_answered_as_it_was(served: Gateway) -> None:
    once = {"Idempotency-Key": "add-1"}
    added = {"add": {"namespace": "counters", "key": "once", "delta": 1}}
    answers = [batch(served, added, headers=once) for _ in range(3)]
    assert [each.json() for each in answers] == [answers[0].json()] * 3
    assert batch(served, added, headers={"Idempotency-Key": "add-2"}).json()["sums"] == [2]

    insert = {"If-None-Match": "*", "Idempotency-Key": "insert-1"}
    first, again = (served.request("PUT", f"{ITEMS}/once", json={"id": "once"}, headers=insert) for _ in range(2))
    assert (first.status_code, first.json()) == (201, again.json())
    served.request("PUT", f"{ITEMS}/once", json={"id": "once", "left": 7})
    patch = {"Idempotency-Key": "patch-1"}
    changed, repeated = (served.request("PATCH", f"{ITEMS}/once", json={"left": 8}, headers=patch) for _ in range(2))
    assert (changed.json(), changed.headers["ETag"]) == (repeated.json(), repeated.headers["ETag"])
    delete = {"Idempotency-Key": "delete-1"}
    gone = [served.request("DELETE", f"{ITEMS}/once", headers=delete).json() for _ in range(2)]
    assert gone == [{"existed": True}] * 2


def test_the_other_gateway_knows_the_key_too(served: Gateway) -> None:
    async def at_both() -> list[Any]:
        second = httpx.ASGITransport(app=Application(served.client, GatewayLimits()))
        async with httpx.AsyncClient(transport=second, base_url="http://localhost") as other:
            asked: Any = {"url": BATCH, "headers": {"Idempotency-Key": "both"}}
            body = {"operations": [{"add": {"namespace": "counters", "key": "both", "delta": 1}}]}
            return [(await client.post(json=body, **asked)).json() for client in (served.http, other, served.http)]

    answers = served.run(at_both())
    assert answers == [answers[0]] * 3
    assert answers[0]["sums"] == [1]


def test_another_write_under_the_same_key_is_refused(served: Gateway) -> None:
    once = {**BYTES, "Idempotency-Key": "same"}
    assert served.request("PUT", "/v1/kv/same/a", content=b"1", headers=once).status_code == 200
    for method, path, body in (
        ("PUT", "/v1/kv/same/a", b"2"),
        ("PUT", "/v1/kv/same/b", b"1"),
        ("DELETE", "/v1/kv/same/a", b""),
    ):
        refused = served.request(method, path, content=body, headers=once)
        assert (refused.status_code, refused.json()["reason"]) == (400, "INVALID_ARGUMENT")
    assert served.request("GET", "/v1/kv/same/a").content == b"1"
    assert served.request("GET", "/v1/kv/same/b").status_code == 404


@pytest.mark.parametrize("key", ["", "a b", "x" * 256, "ä"])
def test_what_is_no_key_is_refused(served: Gateway, key: str) -> None:
    refused = served.request("DELETE", "/v1/kv/same/z", headers={"Idempotency-Key": key.encode()})
    assert (refused.status_code, refused.json()["field"]) == (400, "Idempotency-Key")
