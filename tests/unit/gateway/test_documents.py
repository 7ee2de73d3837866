"""Documents by key over HTTP: JSON or Avro, by typed segments, with conditions."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote

import pytest
from unit.gateway.conftest import ITEM

from cortado.schema.documents import decode_document
from cortado.schema.parse import parse_schema
from support.gateways import Gateway

ITEMS = "/v1/db/shop/items"


def put(served: Gateway, id: str, **fields: Any) -> str:
    stored = served.request("PUT", f"{ITEMS}/{quote(id, safe='')}", json={"id": id, **fields})
    assert stored.status_code == 200, stored.text
    etag: str = stored.headers["ETag"]
    return etag


@pytest.mark.parametrize("id", ["tea", "a/b", "../x", "ä%20", "", "x:watch", "two words"])
def test_a_document_is_found_under_its_key(served: Gateway, id: str) -> None:
    etag = put(served, id, name="n", left=7, price="12.50")
    found = served.request("GET", f"{ITEMS}/{quote(id, safe='').replace('..', '%2E%2E')}")
    assert found.json() == {"id": id, "name": "n", "left": 7, "price": "12.50", "maker": None}
    assert found.headers["ETag"] == etag
    assert served.request("GET", f"{ITEMS}/{quote(id, safe='')}", headers={"If-None-Match": etag}).status_code == 304


@pytest.mark.parametrize("at", ["2013-01-01T10:00:00Z", "2013-01-01T05%3A00%3A00-05:00", "1357034400000000"])
def test_each_part_of_a_key_is_read_by_its_type(served: Gateway, at: str) -> None:
    body = {"at": "2013-01-01T10:00:00Z", "device": 7, "value": 1.5}
    assert served.request("PUT", f"/v1/db/shop/events/7/{at}", json=body).status_code == 200
    assert served.request("GET", f"/v1/db/shop/events/7/{at}").json() == body


def test_the_key_of_the_path_and_of_the_document_are_one(served: Gateway) -> None:
    refused = served.request("PUT", f"{ITEMS}/tea", json={"id": "coffee"})
    assert (refused.status_code, refused.json()["field"]) == (400, "key.id")
    moment = {"at": "2013-01-01T10:00:01Z", "device": 7}
    refused = served.request("PUT", "/v1/db/shop/events/7/2013-01-01T10:00:00Z", json=moment)
    assert (refused.status_code, refused.json()["field"]) == (400, "key.at")


def test_a_patch_sets_what_it_names_and_nothing_else(served: Gateway) -> None:
    etag = put(served, "patched", name="n", left=7, maker={"name": "m"})
    changed = served.request("PATCH", f"{ITEMS}/patched", json={"left": 6, "maker.name": "k"})
    assert changed.json() == {"id": "patched", "name": "n", "left": 6, "price": None, "maker": {"name": "k"}}
    assert changed.headers["ETag"] != etag
    stale = served.request("PATCH", f"{ITEMS}/patched", json={"left": 5}, headers={"If-Match": etag})
    assert (stale.status_code, stale.headers["ETag"]) == (412, changed.headers["ETag"])
    assert served.request("PATCH", f"{ITEMS}/missing", json={"left": 5}).status_code == 404
    refused = served.request("PATCH", f"{ITEMS}/patched", json={"left": "many"})
    assert (refused.status_code, refused.json()["reason"], refused.json()["field"]) == (400, "INVALID_DOCUMENT", "left")


def test_conditions_decide_what_is_put_and_deleted(served: Gateway) -> None:
    path, body = f"{ITEMS}/cond", {"id": "cond"}
    assert served.request("PUT", path, json=body, headers={"If-Match": "*"}).status_code == 412
    assert served.request("PUT", path, json=body, headers={"If-None-Match": "*"}).status_code == 201
    assert served.request("PUT", path, json=body, headers={"If-None-Match": "*"}).status_code == 412
    assert served.request("DELETE", path, headers={"If-Match": '"0.1.1"'}).status_code == 412
    assert served.request("DELETE", path).json() == {"existed": True}
    assert served.request("DELETE", path).json() == {"existed": False}
    assert served.request("DELETE", path, headers={"If-Match": "*"}).status_code == 412


def test_fields_are_chosen_and_the_past_is_read(served: Gateway) -> None:
    old = put(served, "chosen", name="old", left=1).strip('"')
    put(served, "chosen", name="new", left=2)
    assert served.request("GET", f"{ITEMS}/chosen?columns=left,name").json() == {"left": 2, "name": "new"}
    assert served.request("GET", f"{ITEMS}/chosen", params={"at": old}).json()["name"] == "old"
    both = served.request("GET", f"{ITEMS}/chosen", params={"at": old, "columns": "name"})
    assert (both.json(), both.headers["ETag"]) == ({"name": "old"}, f'"{old}"')
    refused = served.request("GET", f"{ITEMS}/chosen?columns=nothing")
    assert (refused.status_code, refused.json()["reason"]) == (404, "NOT_FOUND")


def test_avro_goes_in_and_comes_out(served: Gateway) -> None:
    put(served, "avro", name="n", left=3)
    avro = {"Accept": "avro/binary"}
    found = served.request("GET", f"{ITEMS}/avro", headers=avro)
    assert found.headers["Content-Type"] == "avro/binary"
    assert decode_document(parse_schema(json.dumps(ITEM)), found.content)["left"] == 3
    assert int(found.headers["Cortado-Schema-Id"]) >= 1
    served.request("DELETE", f"{ITEMS}/avro")
    again = served.request("PUT", f"{ITEMS}/avro", content=found.content, headers={"Content-Type": "avro/binary"})
    assert again.status_code == 200
    assert served.request("GET", f"{ITEMS}/avro").json()["left"] == 3
    cut = served.request("PUT", f"{ITEMS}/avro", content=found.content[:-1], headers={"Content-Type": "avro/binary"})
    assert (cut.status_code, cut.json()["reason"]) == (400, "INVALID_DOCUMENT")


def test_the_text_that_is_null_in_an_index_is_a_key_like_others(served: Gateway) -> None:
    text, path = "\\N", f"{ITEMS}/%5CN"
    stored = served.request("PUT", path, json={"id": text, "name": text})
    assert stored.status_code == 200, stored.text
    assert served.request("GET", path).json()["id"] == text
    assert served.request("PATCH", path, json={"left": 3}).json()["left"] == 3
    by_name = {given: served.request("GET", f"{ITEMS}/{given}?index=by_name").json() for given in ("%5C%5CN", "%5CN")}
    assert [each["value"]["id"] for each in by_name["%5C%5CN"]["elements"]] == [text]
    assert by_name["%5CN"]["elements"] == []
    within = {"start": text, "end": f"{text}0"}
    assert [each["value"]["id"] for each in served.request("GET", ITEMS, params=within).json()["elements"]] == [text]
    seen = served.request("GET", f"{ITEMS}/%5CN:watch", params={"initialState": "true", "until": stored.json()["etag"]})
    assert '"key": ["\\\\N"]' in seen.text
    assert served.request("DELETE", path).json() == {"existed": True}
    assert served.request("GET", path).status_code == 404
