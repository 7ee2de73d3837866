"""A caller of the gateway calls the cluster: with its own token, and never with the gateway's rights."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from cortado.store.client import AsyncClient
from cortado.store.gateway.application import Application
from cortado.store.gateway.limits import GatewayLimits
from support.gateways import Gateway, gateway

BYTES = {"Content-Type": "application/octet-stream"}
SCHEMA = '{"type": "record", "name": "O", "fields": [{"name": "id", "type": "long"}]}'


@dataclass
class World:
    gateway: Gateway
    headers: dict[str, dict[str, str]]


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    with gateway() as made:
        client = made.client
        made.run(client.kv("carts").put(b"a", b"1"))
        made.run(client.create_database("shop"))
        made.run(client.schemas.register("shop.orders", SCHEMA))
        made.run(client.create_table("shop.orders", key=["id"]))
        made.run(client.table("shop.orders").put({"id": 1}))
        headers = {"nobody": {}, "wrong": _bearer("ctd_0000000000000000_" + "A" * 43)}
        for name, role, resource in (
            ("reader", "reader", "namespace:carts"),
            ("shopper", "writer", "database:shop"),
            ("stranger", "reader", "namespace:others"),
        ):
            issued = made.run(client.admin.auth.create(name))
            assert issued.token is not None
            made.run(client.admin.auth.grant(name, role, resource))
            headers[name] = _bearer(issued.token.text)
        root = made.run(client.admin.auth.enable("root")).token
        assert root is not None
        # The gateway itself may do everything; its callers get no right by that.
        own = AsyncClient(client.endpoint, token=root.text)
        assert made.run(own.kv("carts").get(b"a")) is not None
        yield World(Gateway(made.loop, own, Application(own, GatewayLimits())), {**headers, "root": _bearer(root.text)})
        made.run(own.close())


def _bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def _status(world: World, who: str, method: str, path: str, **more: object) -> int:
    return world.gateway.request(method, path, headers=world.headers[who], **more).status_code


def test_each_caller_may_what_it_was_granted(world: World) -> None:
    pair, document = "/v1/kv/carts/a", "/v1/db/shop/orders/1"
    assert _status(world, "root", "GET", pair) == 200
    assert _status(world, "reader", "GET", pair) == 200
    changed = {**world.headers["reader"], "Content-Type": "application/octet-stream"}
    assert world.gateway.request("PUT", pair, headers=changed, content=b"2").status_code == 403
    assert _status(world, "reader", "GET", document) == 403
    assert _status(world, "shopper", "GET", document) == 200
    assert _status(world, "shopper", "PUT", document, json={"id": 1}) in (200, 204)
    for who in ("nobody", "wrong"):
        refused = world.gateway.request("GET", pair, headers=world.headers[who])
        assert refused.status_code == 401
        assert refused.headers["WWW-Authenticate"].startswith("Bearer, Basic realm=")
        assert refused.json()["reason"] == "UNAUTHENTICATED"


def test_what_one_caller_was_told_no_other_one_is(world: World) -> None:
    for path in ("/v1/db/shop/orders/1", "/subjects/shop.orders/versions/1", "/subjects/shop.orders/versions"):
        assert _status(world, "shopper", "GET", path) == 200
        assert _status(world, "stranger", "GET", path) == 403
        assert _status(world, "nobody", "GET", path) == 401
    assert _status(world, "shopper", "GET", "/schemas/ids/1") == 200
    assert _status(world, "stranger", "GET", "/schemas/ids/1") == 200
    assert _status(world, "nobody", "GET", "/schemas/ids/1") == 401


def test_lists_are_cut_to_what_their_caller_sees(world: World) -> None:
    for path, cut in (("/subjects", []), ("/schemas/ids/1/subjects", []), ("/schemas/ids/1/versions", [])):
        assert "shop.orders" in str(world.gateway.request("GET", path, headers=world.headers["root"]).json())
        assert "shop.orders" in str(world.gateway.request("GET", path, headers=world.headers["shopper"]).json())
        assert world.gateway.request("GET", path, headers=world.headers["stranger"]).json() == cut, path
        assert _status(world, "nobody", "GET", path) == 401


def test_a_denial_is_the_same_for_what_is_not_there(world: World) -> None:
    texts = [
        world.gateway.request("GET", f"/v1/db/shop/{table}/1", headers=world.headers["stranger"]).json()
        for table in ("orders", "nothing")
    ]
    assert texts[0]["detail"].replace("orders", "nothing") == texts[1]["detail"]
    assert {each["status"] for each in texts} == {403}


def test_a_password_is_a_token(world: World) -> None:
    """The user name before it does not count."""
    token = world.headers["shopper"]["Authorization"].removeprefix("Bearer ")
    expected = {f"x:{token}": 200, token: 401, f"x:{token[:-1]}": 401, "x:": 401, "": 401}
    for text, status in expected.items():
        header = {"Authorization": f"Basic {b64encode(text.encode()).decode()}"}
        assert world.gateway.request("GET", "/subjects/shop.orders/versions", headers=header).status_code == status
    for malformed in ("Basic", "Basic ", "Basic *", "Basic w6k=", "Digest x"):
        header = {"Authorization": malformed}
        assert world.gateway.request("GET", "/subjects/shop.orders/versions", headers=header).status_code == 401


@pytest.mark.parametrize(
    ("method", "path", "kind"),
    [
        ("POST", "/v1/db/shop:batch", "application/json"),
        ("PUT", "/v1/db/shop/orders/1", "application/json"),
        ("PUT", "/v1/db/shop/orders/1", "avro/binary"),
        ("PATCH", "/v1/db/shop/orders/1", "application/json"),
        ("PUT", "/v1/kv/carts/a", "application/octet-stream"),
        ("POST", "/cortado.v1.KeyValue/Put", "application/json"),
        ("POST", "/subjects/shop.orders/versions", "application/json"),
        ("PUT", "/config", "application/json"),
        ("POST", "/ui/schemas/shop.orders", "application/x-www-form-urlencoded"),
        ("POST", "/ui/acts/create-database", "application/x-www-form-urlencoded"),
    ],
)
@pytest.mark.parametrize("who", ["nobody", "wrong"])
def test_the_body_of_a_caller_who_is_not_known_is_not_asked_for(
    world: World, who: str, method: str, path: str, kind: str
) -> None:
    sent = []

    async def body() -> AsyncIterator[bytes]:
        sent.append(True)
        yield b"{}"

    headers = {**world.headers[who], "Content-Type": kind, "Origin": "http://localhost:7629"}
    refused = world.gateway.run(world.gateway.http.request(method, path, headers=headers, content=body()))
    assert refused.status_code == 401
    assert not sent


def test_the_idempotency_keys_of_two_principals_are_two(world: World) -> None:
    """Neither needs a right on a namespace of keys, and neither hears of the other's call."""
    put = {"Content-Type": "application/octet-stream", "Idempotency-Key": "same"}
    world.gateway.run(world.gateway.client.admin.auth.grant("shopper", "writer", "namespace:carts"))
    first, other = (
        world.gateway.request("PUT", "/v1/kv/carts/key", headers={**world.headers[who], **put}, content=b"1")
        for who in ("shopper", "root")
    )
    assert (first.status_code, other.status_code) == (200, 200), (first.text, other.text)
    assert first.json() != other.json()
    for who, answer in (("shopper", first), ("root", other)):
        again = world.gateway.request("PUT", "/v1/kv/carts/key", headers={**world.headers[who], **put}, content=b"1")
        assert again.json() == answer.json()


@pytest.mark.parametrize("form", ["bearer {}", "BEARER {}", "Bearer   {}", "bAsIc  {}"])
def test_a_scheme_is_taken_in_any_case(world: World, form: str) -> None:
    token = world.headers["reader"]["Authorization"].removeprefix("Bearer ")
    if form.lower().startswith("basic"):
        token = b64encode(f"x:{token}".encode()).decode()
    headers = {"Authorization": form.format(token)}
    assert world.gateway.request("GET", "/v1/kv/carts/a", headers=headers).status_code == 200


def test_a_header_that_is_refused_is_told_why(world: World) -> None:
    """Also while the refusal of another one is kept."""
    problems = {
        "Digest abc": "the scheme of the header authorization is not known",
        "Bearer-with-roles abc": "the scheme of the header authorization is not known",
        "Bearer a.web.token": "what stands behind Bearer is no token",
        world.headers["wrong"]["Authorization"]: "the token is not known",
        "Bearer": "there is neither a token",
    }
    for header, problem in [*problems.items(), *problems.items()]:
        answers = [
            world.gateway.request("GET", "/v1/kv/carts/a", headers={"Authorization": header}),
            world.gateway.request("PUT", "/v1/kv/carts/a", headers={"Authorization": header, **BYTES}, content=b"1"),
        ]
        for each in answers:
            assert (each.status_code, problem in each.json()["detail"]) == (401, True), each.text
            assert "abc" not in each.text and "web" not in each.text


def test_a_header_that_comes_twice_is_refused(world: World) -> None:
    twice = [("Authorization", world.headers["root"]["Authorization"])] * 2
    assert world.gateway.request("GET", "/v1/kv/carts/a", headers=twice).status_code == 400


def test_a_probe_needs_no_right(world: World) -> None:
    assert _status(world, "nobody", "GET", "/healthz") == 200


def test_a_key_has_one_effect_at_all_gateways_whatever_each_knows_of_a_switch_of_roles() -> None:
    """One gateway knows the state from before the switch, the other one asks behind it."""
    with gateway() as made:
        token = made.run(made.client.admin.auth.create("writer")).token
        made.run(made.client.admin.auth.grant("writer", "writer", "namespace:counters"))
        made.run(made.client.create_database("shop"))
        assert token is not None

        def add(at: Gateway, key: str) -> Any:
            body = {"operations": [{"add": {"namespace": "counters", "key": "n", "delta": 1}}]}
            headers = {**_bearer(token.text), "Idempotency-Key": key}
            answer = at.request("POST", "/v1/db/shop:batch", json=body, headers=headers)
            assert answer.status_code == 200, answer.text
            return answer.json()["sums"]

        def newer() -> Gateway:
            return Gateway(made.loop, made.client, Application(made.client, GatewayLimits()))

        assert add(made, "off-on") == [1]
        root = made.run(made.client.admin.auth.enable("root")).token
        assert root is not None
        assert add(newer(), "off-on") == add(made, "off-on") == [1]
        assert add(made, "on-off") == [2]
        with_roles = newer()
        assert add(with_roles, "on-off") == [2]
        admin = AsyncClient(made.client.endpoint, token=root.text)
        made.run(admin.admin.auth.disable())
        made.run(admin.close())
        for key, sums in (("on-off", [2]), ("off-on", [1])):
            assert add(newer(), key) == add(with_roles, key) == add(made, key) == sums


def test_a_key_under_the_token_of_no_principal_is_refused_also_while_roles_are_off() -> None:
    """Another gateway may know the token still, and so look for the key in its principal's namespace."""
    with gateway() as made:
        put = {"Content-Type": "application/octet-stream", "Idempotency-Key": "k"}
        stranger = _bearer("ctd_0000000000000000_" + "A" * 43)
        for headers, status in (({**stranger, **put}, 401), ({**_bearer("a.jwt"), **put}, 200), (put, 200)):
            answer = made.request("PUT", "/v1/kv/carts/a", headers=headers, content=b"1")
            assert answer.status_code == status, answer.text
        del put["Idempotency-Key"]
        assert made.request("PUT", "/v1/kv/carts/a", headers={**stranger, **put}, content=b"1").status_code == 200
