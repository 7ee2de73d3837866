"""An error in a call is refused by a problem that names the place, and has no effect."""

from __future__ import annotations

import json
import threading
from typing import Any

import pytest

from cortado.store.gateway import calls, documents
from cortado.store.gateway.limits import GatewayLimits
from support.gateways import Gateway, gateway

JSON = {"Content-Type": "application/json"}
ITEM = "/v1/db/shop/items/bad"


@pytest.mark.parametrize(
    ("method", "path", "options", "status", "field"),
    [
        ("GET", "/v1/kv/ns/a/%2", {}, 400, "key"),
        ("GET", "/v1/kv/ns/a|b", {}, 400, "key"),
        ("GET", "/v1/kv/ns%2Fx/a", {}, 400, "namespace"),
        ("GET", "/v1/kv/%FF/a", {}, 400, "namespace"),
        ("GET", "/v1/db/shop/items/%C3%28", {}, 400, "key"),
        ("GET", "/v1/db/shop/items/a/b", {}, 400, "key"),
        ("GET", "/v1/db/shop/events/x/2013-01-01T00:00:00Z", {}, 400, "key.device"),
        ("GET", "/v1/db/sh%2Eop/items/a", {}, 400, "database"),
        ("GET", "/v1/kv/ns/a?at=yesterday", {}, 400, "at"),
        ("GET", "/v1/kv/ns/a?at=0.1.1&at=0.1.2", {}, 400, "'at'"),
        ("GET", "/v1/kv/ns/a?ta=0.1.1", {}, 400, "'ta'"),
        ("GET", "/v1/kv/ns/a?at", {}, 400, "query"),
        ("GET", "/v1/kv/ns/a?at=%zz", {}, 400, "query"),
        ("GET", "/v1/kv/ns/a?at=%FF", {}, 400, "query"),
        ("GET", "/v1/kv/ns/a?" + "&".join(f"a{i}=" for i in range(70)), {}, 400, "query"),
        ("PUT", f"{ITEM}?ttl=soon", {"json": {"id": "bad"}}, 400, "ttl"),
        ("PUT", f"{ITEM}?ttl=all", {"json": {"id": "bad"}}, 400, "ttl"),
        ("GET", f"{ITEM}?schemaVersion=0", {}, 400, "schemaVersion"),
        ("PUT", ITEM, {"content": b'{"id": "bad"}'}, 415, "Content-Type"),
        ("PUT", ITEM, {"content": b'{"id": "bad"}', "headers": {"Content-Type": "text/plain"}}, 415, "Content-Type"),
        ("PUT", ITEM, {"json": {}, "headers": {"Content-Type": "application/json; charset=latin-1"}}, 415,
         "Content-Type"),
        ("PUT", ITEM, {"json": {}, "headers": {"Content-Encoding": "gzip"}}, 415, "Content-Encoding"),
        ("PUT", ITEM, {"content": b'{"id": "b\xff"}', "headers": JSON}, 400, "body"),
        ("PUT", ITEM, {"content": b'{"id": "bad", "id": "bad"}', "headers": JSON}, 400, "body"),
        ("PUT", ITEM, {"content": b'{"id": NaN}', "headers": JSON}, 400, "body"),
        ("PUT", ITEM, {"content": b"[" * 100_000, "headers": JSON}, 413, "body"),
        ("PUT", ITEM, {"content": b"", "headers": JSON}, 400, "body"),
        ("PUT", ITEM, {"json": {"id": "bad", "color": "red"}}, 400, "color"),
        ("PUT", ITEM, {"json": ["bad"]}, 400, ""),
        ("PATCH", ITEM, {"json": ["bad"]}, 400, "body"),
        ("PUT", ITEM, {"json": {"id": "bad"}, "headers": {"If-Match": "0.1.1"}}, 400, "If-Match"),
        ("PUT", ITEM, {"json": {"id": "bad"}, "headers": {"If-Match": 'W/"0.1.1"'}}, 400, "If-Match"),
        ("PUT", ITEM, {"json": {"id": "bad"}, "headers": {"If-Match": '"0.1.1", "0.1.2"'}}, 400, "If-Match"),
        ("PUT", ITEM, {"json": {"id": "bad"}, "headers": {"If-None-Match": '"0.1.1"'}}, 400, "If-None-Match"),
        ("DELETE", ITEM, {"headers": {"If-None-Match": "*"}}, 400, "If-None-Match"),
        ("DELETE", ITEM, {"headers": {"If-Match": '"0.1"'}}, 400, "If-Match"),
        ("GET", ITEM, {"headers": {"If-Match": '"0.1.1"'}}, 400, "If-Match"),
        ("PUT", ITEM, {"json": {"id": "bad"}, "headers": {"If-Unmodified-Since": "Sat, 29 Oct 1994 19:43:31 GMT"}}, 400,
         "If-Unmodified-Since"),
        ("PUT", ITEM, {"json": {"id": "bad"}, "headers": [("Idempotency-Key", "a"), ("Idempotency-Key", "b")]}, 400,
         "Idempotency-Key"),
        ("PUT", ITEM, {"content": b'{"id": "bad"}', "headers": [("Content-Type", "application/json"),
                                                               ("Content-Type", "text/plain")]}, 400, "Content-Type"),
        ("PUT", ITEM, {"json": {"id": "bad"}, "headers": [("Content-Encoding", "identity"),
                                                         ("Content-Encoding", "gzip")]}, 400, "Content-Encoding"),
        ("GET", f"{ITEM}?columns=id,id", {}, 400, "columns"),
        ("GET", "/v1/db/shop/items?page=AAAA", {}, 400, "page"),
        ("GET", "/v1/db/shop/items?filter=left", {}, 400, "filter"),
        ("GET", "/v1/db/shop/items?start=z&end=a", {}, 400, "end"),
        ("GET", "/v1/kv/ns:watch?after=9.99999999999999.0", {}, 400, "after"),
        ("GET", "/v1/db/shop/items", {"headers": {"Accept": "avro/binary"}}, 406, "Accept"),
        ("GET", "/v1/db/shop/items", {"headers": {"Accept": "*/*;q=0"}}, 406, "Accept"),
        ("GET", "/v1/kv/ns:watch", {"headers": {"Accept": "text/event-stream;q=0.0, */*"}}, 406, "Accept"),
        ("GET", ITEM, {"headers": {"If-None-Match": "0.1.1"}}, 404, None),
        ("GET", ITEM, {"headers": {"Accept": "text/html"}}, 404, None),
        ("GET", "/v1/kv/ns/a", {"headers": {"Host": "evil.example"}}, 421, "Host"),
        ("GET", "/v1/kv/ns/a", {"headers": {"Host": "127.0.0.1.evil.example:7629"}}, 421, "Host"),
        ("GET", "/v1/kv/ns/a", {"headers": {"Host": "localhost:80@evil.example"}}, 421, "Host"),
        ("PUT", ITEM, {"json": {"id": "bad"}, "headers": {"Origin": "http://evil.example"}}, 403, "Origin"),
        ("PUT", ITEM, {"json": {"id": "bad"}, "headers": {"Origin": "null"}}, 403, "Origin"),
        ("POST", ITEM, {"json": {}}, 405, None),
        ("BREW", ITEM, {}, 405, None),
        ("GET", "/v1", {}, 404, None),
        ("GET", "//v1/kv/ns/a", {}, 404, None),
        ("GET", "/v1/kv/ns%2Fa", {}, 400, "namespace"),
        ("GET", "/V1/KV/ns/a", {}, 404, None),
    ],
)  # fmt: skip
def test_a_wrong_call_is_refused_by_name(
    served: Gateway, method: str, path: str, options: dict[str, Any], status: int, field: str | None
) -> None:
    refused = served.request(method, path, **options)
    assert refused.status_code == status, refused.text
    assert refused.headers["Content-Type"] == "application/problem+json"
    told = refused.json()
    assert told["status"] == status
    assert told["reason"]
    assert told["detail"]
    assert field is None or told["field"] == field
    assert served.request("GET", ITEM).status_code == 404


@pytest.mark.parametrize("name", ["If-Match", "If-None-Match", "Idempotency-Key"])
def test_what_a_batch_cannot_promise_is_refused_and_nothing_of_it_is_done(served: Gateway, name: str) -> None:
    put = {"put": {"table": "items", "document": {"id": "bad"}}}
    body = {"operations": [put, {"require": {"table": "items", "key": ["bad"], "if_absent": True}}]}
    refused = served.request("POST", "/v1/db/shop:batch", json=body, headers={name: "*"})
    # A batch can be named, and then its problem is.
    assert refused.status_code == (412 if name == "Idempotency-Key" else 400), refused.text
    assert name == "Idempotency-Key" or refused.json()["field"] == name
    assert served.request("GET", ITEM).status_code == 404


@pytest.mark.parametrize(
    ("accept", "kind"),
    [
        ("application/json;q=0.1, application/x-ndjson", "application/x-ndjson"),
        ("application/x-ndjson;q=0.9, application/json", "application/json"),
        ("application/x-ndjson, application/json", "application/x-ndjson"),
        ("application/json;q=0, */*", "application/x-ndjson"),
        ("text/html, image/gif, *; q=.2, */*; q=.2", "application/json"),
        ("application/*, application/x-ndjson;q=0.5", "application/json"),
        ("application/json;q=soon", "application/json"),
    ],
)
def test_the_weights_of_media_types_decide(served: Gateway, accept: str, kind: str) -> None:
    answer = served.request("GET", "/v1/db/shop/events", headers={"Accept": accept})
    assert (answer.status_code, answer.headers["Content-Type"]) == (200, kind)


def test_a_method_that_is_not_there_is_told_which_are(served: Gateway) -> None:
    assert served.request("POST", ITEM, json={}).headers["Allow"] == "DELETE, GET, HEAD, PATCH, PUT"


@pytest.mark.parametrize("path", [b"/v1/kv/ns/../a", b"/v1/kv/ns/.", b"/v1/kv/ns/a/..", b"/v1/db/../items/a"])
def test_dots_that_are_taken_away_on_the_way_are_refused(served: Gateway, path: bytes) -> None:
    """httpx would take them away, too."""

    async def refused() -> list[dict[str, Any]]:
        sent: list[dict[str, Any]] = []
        head: Any = {"type": "http", "method": "GET", "raw_path": path, "query_string": b"", "path": path.decode()}

        async def send(message: Any) -> None:
            sent.append(message)

        async def receive() -> Any:
            return {"type": "http.request", "body": b"", "more_body": False}

        await served.application({**head, "headers": [(b"host", b"localhost")]}, receive, send)
        return sent

    begin, body = served.run(refused())
    assert begin["status"] == 400
    assert "%2E" in json.loads(body["body"])["detail"]


def test_a_body_over_the_limit_is_refused_however_it_comes() -> None:
    with gateway(GatewayLimits(body_bytes_max=1_000)) as served:
        head = {"Content-Type": "application/octet-stream"}
        said = served.request("PUT", "/v1/kv/ns/a", content=b"x" * 1_001, headers=head)

        async def pieces() -> Any:
            for _ in range(11):
                yield b"x" * 100

        unsaid = served.request("PUT", "/v1/kv/ns/a", content=pieces(), headers=head)
        for refused in (said, unsaid):
            assert (refused.status_code, refused.json()["reason"], refused.json()["limit"]) == (413, "TOO_LARGE", 1_000)
        assert served.request("PUT", "/v1/kv/ns/a", content=b"x" * 1_000, headers=head).status_code == 200
        assert len(served.request("GET", "/v1/kv/ns/a").content) == 1_000


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/v1/db/shop:batch"),
        ("PUT", ITEM),
        ("PATCH", ITEM),
        ("POST", "/cortado.v1.Transactions/Commit"),
        ("POST", "/subjects/shop.items/versions"),
    ],
)
@pytest.mark.parametrize(
    "body",
    [b'{"operations":[' + b"{}," * 2_000_000 + b"{}]}", b'{"a":' * 300 + b"1" + b"}" * 300],
    ids=["items", "depth"],
)
def test_a_body_of_too_many_items_or_too_deep_is_refused(served: Gateway, method: str, path: str, body: bytes) -> None:
    refused = served.request(method, path, content=body, headers=JSON)
    assert refused.status_code in (413, 422), refused.text
    told = refused.json()
    assert "must hold at most" in told.get("detail", told.get("message"))


@pytest.mark.parametrize("kind", ["application/json", "avro/binary"])
def test_a_large_document_is_made_beside_the_loop(served: Gateway, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    threads = []
    for name in ("from_json_value", "decode_document"):
        made = getattr(documents, name)

        def told(*given: Any, made: Any = made, **more: Any) -> Any:
            threads.append(threading.current_thread().name)
            return made(*given, **more)

        monkeypatch.setattr(documents, name, told)
    for size in (1, 32 << 10):
        value = {"id": "beside", "maker": {"name": "x" * size}}
        made_of = served.run(served.client.table("shop.items").codec.encode(value))[1]
        content = json.dumps(value).encode() if kind == "application/json" else made_of
        put = served.request("PUT", "/v1/db/shop/items/beside", content=content, headers={"Content-Type": kind})
        assert put.status_code == 200, put.text
        assert served.request("GET", "/v1/db/shop/items/beside").json()["maker"] == value["maker"]
    assert [name.startswith("cortado-gateway-beside") for name in threads] == [False, True]


def test_a_byte_order_mark_is_named(served: Gateway) -> None:
    for body, named in (
        (b'\xef\xbb\xbf{"id": "bad"}', "byte order mark"),
        ('{"id": "bad"}'.encode("utf-16"), "UTF-16"),
    ):
        refused = served.request("PUT", ITEM, content=body, headers=JSON)
        assert (refused.status_code, refused.json()["field"]) == (400, "body")
        assert named in refused.json()["problem"]


def test_a_large_body_is_read_beside_the_loop(served: Gateway, monkeypatch: pytest.MonkeyPatch) -> None:
    threads = []
    check = calls.check_json_bounds
    monkeypatch.setattr(
        calls, "check_json_bounds", lambda *given: (threads.append(threading.current_thread().name), check(*given))
    )
    for pad in ("", "x" * (16 << 10)):
        refused = served.request("POST", "/v1/db/shop:batch", json={"operations": [], "pad": pad})
        assert refused.status_code == 400
    assert not threads[0].startswith("cortado-gateway-beside")
    assert threads[1].startswith("cortado-gateway-beside")


def test_what_is_over_the_bounds_is_refused_with_a_delay() -> None:
    with gateway(GatewayLimits(bodies_bytes_max=100, calls_max=1)) as served:
        head = {"Content-Type": "application/octet-stream"}
        for _ in range(3):  # A refused call gives its room back.
            refused = served.request("PUT", "/v1/kv/ns/a", content=b"x" * 101, headers=head)
            assert (refused.status_code, refused.headers["Retry-After"]) == (429, "1")
            assert (refused.json()["reason"], refused.json()["resource"]) == ("RESOURCE_EXHAUSTED", "bytes of bodies")

        async def halves() -> Any:
            for _ in range(2):
                yield b"x" * 60

        for _ in range(3):
            assert served.request("PUT", "/v1/kv/ns/a", content=halves(), headers=head).status_code == 429
            assert served.request("PUT", "/v1/kv/ns/a", content=b"x" * 100, headers=head).status_code == 200


def test_an_answer_that_nobody_takes_is_refused_before_anything_is_done(served: Gateway) -> None:
    before = served.request("GET", "/config").json()
    other = {"compatibility": "NONE" if before["compatibilityLevel"] != "NONE" else "FULL"}
    refused = served.request("PUT", "/config", json=other, headers={"Accept": "text/html"})
    assert refused.status_code == 406
    assert served.request("GET", "/config").json() == before
