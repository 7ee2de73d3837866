"""Pairs over HTTP: bytes as they are, under keys of any bytes, with conditions."""

from __future__ import annotations

import pytest

from cortado.store.clock.timestamp import Timestamp
from support.gateways import Gateway

BYTES = {"Content-Type": "application/octet-stream"}


@pytest.mark.parametrize(
    ("path", "key"),
    [
        ("plain", b"plain"),
        ("user/1", b"user/1"),
        ("user%2F1%2F", b"user/1/"),
        ("%252F", b"%2F"),
        ("%FF%00", b"\xff\x00"),
        ("%2E%2E/a", b"../a"),
        ("a//b", b"a//b"),
        ("a+b", b"a+b"),
        ("x:watch", b"x:watch"),
    ],
)
def test_a_path_names_one_key_and_is_decoded_once(served: Gateway, path: str, key: bytes) -> None:
    assert served.request("PUT", f"/v1/kv/paths/{path}", content=key, headers=BYTES).status_code == 200
    assert served.run(served.client.kv("paths").get(key)).value == key
    assert served.request("GET", f"/v1/kv/paths/{path}").content == key


def test_a_value_comes_back_as_it_was_with_its_etag(served: Gateway) -> None:
    value = bytes(range(256))
    stored = served.request("PUT", "/v1/kv/values/k", content=value, headers=BYTES)
    found = served.request("GET", "/v1/kv/values/k")
    assert found.content == value
    assert found.headers["ETag"] == stored.headers["ETag"] == f'"{stored.json()["etag"]}"'
    assert found.headers["Content-Type"] == "application/octet-stream"
    assert found.headers["X-Content-Type-Options"] == "nosniff"


def test_who_has_the_newest_version_is_sent_nothing(served: Gateway) -> None:
    etag = served.request("PUT", "/v1/kv/read/k", content=b"1", headers=BYTES).headers["ETag"]
    for given in (etag, f'"other", W/{etag}', "*"):
        unchanged = served.request("GET", "/v1/kv/read/k", headers={"If-None-Match": given})
        assert (unchanged.status_code, unchanged.content, unchanged.headers["ETag"]) == (304, b"", etag)
    assert served.request("GET", "/v1/kv/read/k", headers={"If-None-Match": '"other"'}).status_code == 200


def test_a_stale_etag_is_refused_with_the_newest_one(served: Gateway) -> None:
    first = served.request("PUT", "/v1/kv/cas/k", content=b"1", headers=BYTES).headers["ETag"]
    second = served.request("PUT", "/v1/kv/cas/k", content=b"2", headers={**BYTES, "If-Match": first}).headers["ETag"]
    for method in ("PUT", "DELETE"):
        refused = served.request(method, "/v1/kv/cas/k", content=b"", headers={**BYTES, "If-Match": first})
        assert (refused.status_code, refused.headers["ETag"]) == (412, second)
        assert refused.headers["Content-Type"] == "application/problem+json"
        told = refused.json()
        assert (told["reason"], told["status"], told["expected"]) == ("CONDITION_FAILED", 412, first.strip('"'))
        assert Timestamp.parse(told["actual"]) == Timestamp.parse(second.strip('"'))
    assert served.request("DELETE", "/v1/kv/cas/k", headers={"If-Match": second}).json() == {"existed": True}


def test_an_insert_wants_nothing_there_and_a_replacement_something(served: Gateway) -> None:
    path, insert, replace = "/v1/kv/ins/k", {**BYTES, "If-None-Match": "*"}, {**BYTES, "If-Match": "*"}
    assert served.request("PUT", path, content=b"1", headers=replace).status_code == 412
    assert served.request("PUT", path, content=b"1", headers=insert).status_code == 201
    assert served.request("PUT", path, content=b"2", headers=insert).status_code == 412
    assert served.request("PUT", path, content=b"3", headers=replace).status_code == 200
    assert served.request("GET", path).content == b"3"


def test_the_past_is_read_and_what_expires_says_when(served: Gateway) -> None:
    path = "/v1/kv/past/k"
    old = served.request("PUT", path, content=b"1", headers=BYTES).json()["etag"]
    served.request("PUT", f"{path}?ttl=7d", content=b"2", headers=BYTES)
    assert served.request("GET", path, params={"at": old}).content == b"1"
    newest = served.request("GET", path)
    assert int(newest.headers["Cortado-Expires-Ms"]) > Timestamp.parse(newest.headers["ETag"].strip('"')).wall_ms


def test_a_key_that_is_not_there_is_not_found(served: Gateway) -> None:
    missing = served.request("GET", "/v1/kv/none/a%00b")
    assert (missing.status_code, missing.json()["kind"], missing.json()["name"]) == (
        404,
        "key",
        r"a\x00b in namespace none",
    )
    assert served.request("DELETE", "/v1/kv/none/k").json() == {"existed": False}
