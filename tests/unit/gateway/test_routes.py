"""A path is the resource that its earliest row says, as it was sent."""

from __future__ import annotations

from starlette.routing import Route, Router

from cortado.store.gateway.application import all_operations
from cortado.store.gateway.routes import Routes

SENT = (
    *("/", "/subjects", "/subjects/a", "/subjects/a/versions/1", "/subjects/a/versions/", "/subjects//versions"),
    *("/v1/db/shop:batch", "/v1/db/shop/orders", "/v1/db/shop/orders:watch", "/v1/db/shop/orders/a:watch"),
    *("/v1/db/shop/orders/a%2Fb/c", "/v1/db/shop/orders/", "/v1/db/shop", "/v1/kv/n", "/v1/kv/n:watch", "/v1/kv/n/a/b"),
    *("/v1/metadata/id", "/v1", "/v1/", "", "/ui", "/ui/data/shop/orders/a/b", "/ui/", "/healthz", "/healthz/"),
    *("/cortado.v1.KeyValue/Get", "/cortado.v1.KeyValue/None", "/nothing/here", "/{subject}", "//v1/kv/n"),
)


def test_paths_lead_where_a_router_that_tries_every_row_leads() -> None:
    paths = list(dict.fromkeys(each.path for each in all_operations()))
    routes = Routes({path: path for path in paths})
    router = Router([Route(path, object()) for path in paths])  # type: ignore[arg-type]
    for sent in SENT:
        scope = {"type": "http", "path": sent, "method": "GET"}
        tried = ((each.path, each.matches(scope)[1].get("path_params")) for each in router.routes)  # type: ignore[attr-defined]
        expected = next(((path, parts) for path, parts in tried if parts is not None), None)
        assert routes.find(sent) == expected, sent


def test_the_earlier_of_two_is_it() -> None:
    routes = Routes({"/a/{rest:path}:x": 1, "/a/{rest:path}": 2, "/{any}": 3})
    assert routes.find("/a/b/c:x") == (1, {"rest": "b/c"})
    assert routes.find("/a/b/c") == (2, {"rest": "b/c"})
    assert routes.find("/b") is None
