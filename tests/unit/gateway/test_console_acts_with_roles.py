"""The console's acts with roles: with its visitor's own rights, and by forms that belong to the visitor."""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

import httpx
import pytest

from cortado.store.client import AsyncClient
from cortado.store.client.auth import AsyncAuth
from cortado.store.gateway.application import Application
from cortado.store.gateway.limits import GatewayLimits
from support.console_forms import OWN, basic, form_of, get, path_of, send, text_of
from support.gateways import Gateway, gateway_before
from support.memory_engine import MemoryEngine
from support.served_node import served_node

ITEM: Final = {"type": "record", "name": "Item", "fields": [{"name": "id", "type": "string"}]}


@pytest.fixture(scope="module")
def guarded() -> Iterator[tuple[Gateway, dict[str, Any]]]:
    """Yield a gateway before a node with roles, and headers by their sender."""
    with served_node(MemoryEngine()) as node, gateway_before(node.endpoint) as made:

        async def prepare() -> dict[str, Any]:
            client = made.client
            await client.create_database("shop")
            await client.schemas.register("shop.items", ITEM)
            await client.create_table("shop.items", key=["id"])
            issued = {
                "nobody": await client.admin.auth.create("nobody"),
                "reader": await client.admin.auth.create("reader"),
            }
            issued["owner"] = await client.admin.auth.create("owner")
            issued["operator"] = await client.admin.auth.create("operator")
            await client.admin.auth.grant("reader", "reader", "cluster")
            await client.admin.auth.grant("owner", "owner", "database:shop")
            await client.admin.auth.grant("operator", "operator", "cluster")
            issued["root"] = await client.admin.auth.enable("root")
            return {name: basic(each.token.text) for name, each in issued.items() if each.token is not None}

        yield made, made.run(prepare())


def test_who_is_not_signed_in_sees_and_does_nothing(guarded: tuple[Gateway, dict[str, Any]]) -> None:
    made, _ = guarded
    for path in ("/ui", "/ui/roles", path_of("create-database")):
        answer = get(made, path)
        assert answer.status_code == 401
        assert "shop" not in answer.text
    answer = send(made, path_of("create-database"), {"form": "x", "database": "no"})
    assert answer.status_code == 401


def test_links_to_acts_are_for_those_who_may(guarded: tuple[Gateway, dict[str, Any]]) -> None:
    made, who = guarded
    seen = {name: get(made, "/ui/data/shop/items", **headers).text for name, headers in who.items()}
    assert {name for name, page in seen.items() if "/ui/acts/drop-table" in page} == {"owner", "root"}
    seen = {name: get(made, "/ui", **headers).text for name, headers in who.items()}
    assert {name for name, page in seen.items() if "/ui/acts/add-member" in page} == {"operator", "root"}
    seen = {name: get(made, "/ui/roles", **headers).text for name, headers in who.items()}
    assert {name for name, page in seen.items() if "/ui/acts/grant" in page} == {"root"}
    assert all(f"You are <strong>{name}</strong>" in page for name, page in seen.items())
    # Denied parts stand beside allowed ones.
    assert "Principals cannot be shown" in seen["reader"]


def test_who_has_a_role_on_one_database_sees_its_schemas(guarded: tuple[Gateway, dict[str, Any]]) -> None:
    made, who = guarded
    listed = get(made, "/ui/schemas", **who["owner"])
    assert (listed.status_code, "shop.items" in listed.text) == (200, True)
    # The level of a subject that is not there yet is that of all.
    begun = get(made, "/ui/schemas?subject=shop.new", **who["owner"])
    assert (begun.status_code, "BACKWARD_TRANSITIVE" in begun.text) == (200, True)
    assert "shop.items" not in get(made, "/ui/schemas", **who["nobody"]).text


def test_the_cluster_denies_whatever_a_page_offers(guarded: tuple[Gateway, dict[str, Any]]) -> None:
    made, who = guarded
    for name in ("nobody", "reader", "operator"):
        page = get(made, path_of("create-database"), **who[name])
        answer = send(made, path_of("create-database"), {"form": form_of(page), "database": "denied"}, **who[name])
        assert answer.status_code == 403
        assert "may not do this: owner of database:denied is needed" in text_of(answer)
    page = get(made, path_of("drop-table", table="shop.items"), **who["reader"])
    answer = send(
        made, path_of("drop-table", table="shop.items"), {"form": form_of(page), "typed": "shop.items"}, **who["reader"]
    )
    assert answer.status_code == 403
    # Whether it exists is not told.
    texts = {
        text_of(get(made, path_of("drop-table", table=each), **who["nobody"])).replace(each, "")
        for each in ("shop.items", "shop.none")
    }
    assert len(texts) == 1


def test_a_form_of_one_visitor_is_none_of_another_and_of_every_gateway(
    guarded: tuple[Gateway, dict[str, Any]],
) -> None:
    made, who = guarded
    path = path_of("create-principal")
    given = {"principal": "stolen", "kind": "token", "expires": ""}
    form = form_of(get(made, path, **who["operator"]))
    answer = send(made, path, {"form": form, **given}, **who["root"])
    assert answer.status_code == 403
    assert "was made for another visitor" in text_of(answer)
    with gateway_before(made.client.endpoint) as other:
        form = form_of(get(other, path, **who["root"]))
        given = {"principal": "shared", "kind": "certificate", "expires": ""}
        assert "Principal shared was created" in text_of(send(made, path, {"form": form, **given}, **who["root"]))


@pytest.mark.parametrize(
    ("name", "target", "given", "method"),
    [
        ("truncate-table", {"table": "shop.items"}, {"typed": "shop.items"}, (AsyncClient, "truncate_table")),
        ("create-database", {}, {"database": "both"}, (AsyncClient, "create_database")),
        ("rotate-token", {"principal": "nobody"}, {"overlap": "1h", "expires": ""}, (AsyncAuth, "rotate")),
    ],
)
def test_a_form_that_two_gateways_get_at_the_same_instant_is_done_once(
    guarded: tuple[Gateway, dict[str, Any]],
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    target: dict[str, str],
    given: dict[str, str],
    method: tuple[type, str],
) -> None:
    made, who = guarded
    arrived, call = threading.Barrier(2), getattr(*method)

    async def once_both_have_looked(self: Any, *args: Any, **given: Any) -> Any:
        await asyncio.to_thread(arrived.wait, 30)
        return await call(self, *args, **given)

    path = path_of(name, **target)
    fields = {"form": form_of(get(made, path, **who["root"])), **given}
    monkeypatch.setattr(*method, once_both_have_looked)
    with gateway_before(made.client.endpoint) as other, ThreadPoolExecutor() as pool:
        answers = list(pool.map(lambda each: send(each, path, fields, **who["root"]), (made, other)))
    told, other_told = sorted(answers, key=lambda each: each.status_code)
    assert told.status_code == 200
    if name == "rotate-token":
        # The visitor that drew the valid token has it; the other one has none.
        assert (other_told.status_code, "form: was sent before" in text_of(other_told)) == (409, True)
        assert [each.text.count("ctd_") > 0 for each in (told, other_told)] == [True, False]
    else:
        # With the same number of the drop, say.
        assert text_of(told) == text_of(other_told)


def test_a_principal_is_created_granted_rotated_and_deleted(guarded: tuple[Gateway, dict[str, Any]]) -> None:
    made, who = guarded

    def does(name: str, given: dict[str, str], **target: str) -> httpx.Response:
        path = path_of(name, **target)
        answer = send(made, path, {"form": form_of(get(made, path, **who["root"])), **given}, **who["root"])
        assert answer.status_code == 200, answer.text
        assert answer.headers["Cache-Control"] == "no-store"
        return answer

    answer = does("create-principal", {"principal": "reports", "kind": "token", "expires": "90d"})
    [token] = re.findall(r"ctd_[\w-]+", answer.text)
    assert "You are <strong>reports</strong>" in get(made, "/ui/roles", **basic(token)).text
    # Once: no other page has it.
    assert token not in get(made, "/ui/roles", **who["root"]).text
    does("grant", {"principal": "reports", "role": "reader", "resource": "table:shop.items"})
    assert get(made, "/ui/data/shop/items", **basic(token)).status_code == 200
    target = {"principal": "reports", "role": "reader", "resource": "table:shop.items"}
    does("revoke-grant", {}, **target)
    assert get(made, path_of("revoke-grant", **target), **who["root"]).status_code == 404
    [fresh] = re.findall(
        r"ctd_[\w-]+", does("rotate-token", {"overlap": "1h", "expires": ""}, principal="reports").text
    )
    assert fresh != token
    does("delete-principal", {"typed": "reports"}, principal="reports")
    assert get(made, "/ui/roles", **basic(fresh)).status_code == 401


def test_a_gateway_on_any_address_has_acts_of_its_own_origin(guarded: tuple[Gateway, dict[str, Any]]) -> None:
    made, who = guarded
    application = Application(made.client, GatewayLimits(), is_public=True)
    site = "https://gateway.example.com:7629"
    http = httpx.AsyncClient(transport=httpx.ASGITransport(app=application), base_url=site)
    path = path_of("create-database")
    assert made.run(http.get(path)).status_code == 401
    form = form_of(made.run(http.get(path, headers=who["root"])))
    given = {"form": form, "database": "public"}
    for origin, status in ((OWN, 403), ("https://example.com:7629", 403), (site, 200)):
        answer = made.run(http.post(path, data=given, headers={**who["root"], "Origin": origin}))
        assert answer.status_code == status, text_of(answer)


def test_signing_out_makes_the_browser_forget(guarded: tuple[Gateway, dict[str, Any]]) -> None:
    made, who = guarded
    answer = send(made, "/ui/sign-out", {"leave": ""}, **who["root"])
    assert answer.status_code == 401
    assert "you have signed out" in text_of(answer)
    assert any(each.startswith("Basic") for each in answer.headers.get_list("WWW-Authenticate"))
    assert (
        send(made, "/ui/sign-out", {"leave": ""}, **{**who["root"], "Origin": "http://example.org"}).status_code == 403
    )
