"""Quotas over HTTP: 429 at once, with when to come again, in each of the gateway's forms."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from support.gateways import Gateway, gateway


@pytest.fixture(scope="module")
def served() -> Iterator[Gateway]:
    with gateway() as made:
        client = made.client
        made.run(client.kv("carts").put(b"a", bytes(3_000)))
        made.run(client.create_database("shop"))
        schema = '{"type": "record", "name": "O", "fields": [{"name": "id", "type": "long"}]}'
        made.run(client.schemas.register("shop.orders", schema))
        made.run(client.create_table("shop.orders", key=["id"]))
        yield made


def _refused(served: Gateway, method: str, path: str, **more: object) -> object:
    """Return the problem that is told once the quota holds."""
    until_s = time.monotonic() + 60
    while time.monotonic() < until_s:
        response = served.request(method, path, **more)
        if response.status_code == 429:
            assert int(response.headers["Retry-After"]) >= 1
            return response.json()
    raise AssertionError(f"{method} {path} was never refused")


def test_a_quota_is_429_at_once_and_says_when(served: Gateway) -> None:
    served.run(served.client.admin.quotas.set("namespace:carts", bytes_per_second=100))
    told = _refused(served, "GET", "/v1/kv/carts/a")
    assert isinstance(told, dict)
    assert (told["reason"], told["quota"]) == ("QUOTA_EXCEEDED", "namespace:carts")
    assert (told["resource"], told["limit"]) == ("bytes_per_second", 100)
    assert told["retry_delay_ms"] > 10_000
    body = {"namespace": "carts", "key": "YQ==", "value": "YQ=="}
    told = _refused(served, "POST", "/cortado.v1.KeyValue/Put", json=body)
    assert isinstance(told, dict)
    assert told["reason"] == "QUOTA_EXCEEDED"
    # Raised over the same way, though it is used up.
    path = "/cortado.v1.Quotas/"
    assert served.request("POST", f"{path}Remove", json={"target": "namespace:carts"}).status_code == 200
    assert served.request("POST", f"{path}List", json={}).json().get("quotas", []) == []


def test_the_registry_is_of_schemas_and_no_quota_refuses_it(served: Gateway) -> None:
    served.run(served.client.admin.quotas.set("database:shop", bytes_per_second=1))
    told = _refused(served, "GET", "/v1/db/shop/orders")
    assert isinstance(told, dict)
    assert told["quota"] == "database:shop"
    for path in ("/subjects/shop.orders/versions", "/subjects/shop.orders/versions/latest", "/config/shop.orders"):
        assert served.request("GET", f"{path}{'?defaultToGlobal=true' * path.startswith('/config')}").status_code == 200


@pytest.mark.parametrize("limit", [-1, 1.5, "x", True, 1 << 64, None, 0])
def test_what_is_no_limit_is_400(served: Gateway, limit: object) -> None:
    body = {"target": "database:other", "callsPerSecond": limit}
    assert served.request("POST", "/cortado.v1.Quotas/Set", json=body).status_code == 400
