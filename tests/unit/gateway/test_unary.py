"""Each unary call of the API is served as JSON, with errors that name the problem."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from cortado.store.gateway import unary
from support.gateways import Gateway


def call(served: Gateway, method: str, body: Any, **headers: str) -> Any:
    sent = {"Content-Type": "application/json", **headers}
    return served.request("POST", f"/cortado.v1.{method}", content=json.dumps(body), headers=sent)


def encoded(value: bytes) -> str:
    return base64.b64encode(value).decode()


def test_every_unary_call_of_the_api_has_a_path() -> None:
    paths = {each.path for each in unary.operations()}
    assert {"/cortado.v1.KeyValue/Put", "/cortado.v1.Tables/CreateTable", "/cortado.v1.Cluster/Status"} <= paths
    assert not {"/cortado.v1.Documents/Scan", "/cortado.v1.Watch/Pairs", "/cortado.v1.Calls/Exchange"} & paths


def test_a_write_and_a_read_go_through(served: Gateway) -> None:
    pair = {"namespace": "unary", "key": encoded(b"a"), "value": encoded(b"1")}
    stored = call(served, "KeyValue/Put", pair)
    assert stored.status_code == 200, stored.text
    found = call(served, "KeyValue/Get", {"namespace": "unary", "key": encoded(b"a")}).json()
    assert found["pair"] == {"key": encoded(b"a"), "value": encoded(b"1"), "etag": stored.json()["etag"]}
    assert call(served, "Cluster/Status", {}, **{"Connect-Protocol-Version": "1"}).status_code == 200


def test_a_write_under_an_id_of_its_callers_has_one_effect(served: Gateway) -> None:
    id = encoded(served.run(served.client.new_request_id()))
    add = {"addPair": {"namespace": "unary", "key": encoded(b"n"), "delta": "1"}}
    first, again = (call(served, "Transactions/Commit", {"operations": [add], "requestId": id}) for _ in range(2))
    assert (first.json()["etag"], first.json()["sums"]) == (again.json()["etag"], ["1"])


@pytest.mark.parametrize(
    ("method", "body", "headers", "status", "code"),
    [
        ("KeyValue/Get", {"namespace": "unary", "keys": ""}, {}, 400, "invalid_argument"),
        ("KeyValue/Get", [], {}, 400, "invalid_argument"),
        ("Cluster/Status", [], {}, 400, "invalid_argument"),
        ("Cluster/Status", {"\ud800": 1}, {}, 400, "invalid_argument"),
        ("Documents/Delete", {"condition": "\ud800"}, {}, 400, "invalid_argument"),
        ("KeyValue/Put", {"namespace": "unary", "key": "hello world!", "value": ""}, {}, 400, "invalid_argument"),
        ("Transactions/Commit", {"operations": [{"putPair": {"key": "!"}}]}, {}, 400, "invalid_argument"),
        ("KeyValue/Get", {"namespace": 7}, {}, 400, "invalid_argument"),
        ("KeyValue/Get", {"namespace": "a b", "key": ""}, {}, 400, "invalid_argument"),
        ("KeyValue/Get", {}, {"Connect-Protocol-Version": "2"}, 400, "invalid_argument"),
        ("KeyValue/Get", {}, {"Connect-Timeout-Ms": "soon"}, 400, "invalid_argument"),
        ("KeyValue/Get", {}, {"Connect-Timeout-Ms": "0"}, 400, "invalid_argument"),
        ("KeyValue/Get", {}, {"Content-Type": "application/proto"}, 415, "invalid_argument"),
    ],
)
def test_what_is_refused_says_so_in_connects_words(
    served: Gateway, method: str, body: Any, headers: dict[str, str], status: int, code: str
) -> None:
    refused = call(served, method, body, **headers)
    assert refused.status_code == status, refused.text
    assert refused.headers["Content-Type"] == "application/json"
    told = refused.json()
    assert told["message"] == told["detail"]
    assert told["code"] == code


@pytest.mark.parametrize(
    ("headers", "name"), [({"If-Match": '"0.1.1"'}, "If-Match"), ({"Idempotency-Key": "a"}, "Idempotency-Key")]
)
def test_what_the_call_cannot_promise_is_refused(served: Gateway, headers: dict[str, str], name: str) -> None:
    pair = {"namespace": "unary", "key": encoded(b"promised"), "value": ""}
    refused = call(served, "KeyValue/Put", pair, **headers)
    assert (refused.status_code, refused.json()["field"]) == (400, name)
    assert call(served, "KeyValue/Get", pair | {"value": ""}).status_code == 400


def test_a_condition_that_fails_is_told_with_its_fields(served: Gateway) -> None:
    pair = {"namespace": "unary", "key": encoded(b"c"), "value": "", "condition": {"present": True}}
    refused = call(served, "KeyValue/Put", pair)
    assert refused.status_code == 412
    assert (refused.json()["code"], refused.json()["reason"]) == ("aborted", "CONDITION_FAILED")


def test_a_stream_or_a_service_that_is_none_is_not_found(served: Gateway) -> None:
    for method in ("Documents/Scan", "KeyValue/Nothing", "Nothing/Put"):
        assert call(served, method, {}).status_code == 404
    assert served.request("GET", "/cortado.v1.KeyValue/Get").status_code == 405
