"""The console shows the API's answers, escapes them, loads nothing from other hosts and changes nothing."""

from __future__ import annotations

import json
import re
import socket
from collections.abc import Iterator
from html import unescape
from html.parser import HTMLParser
from importlib.resources import files
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import httpx
import pytest

from cortado.errors import DeadlineExceeded
from cortado.proto.v1 import cluster_pb2
from cortado.store.client import Client
from cortado.store.client.stubs import Stubs
from cortado.store.client.watch import WatchOptions
from cortado.store.doctor.cluster_checks import cluster_checks
from cortado.store.doctor.nodes import nodes_facts
from cortado.store.gateway.console.data import HISTORY_MARKS_MS
from cortado.store.gateway.console.rows import Row
from cortado.store.gateway.console.samples import Samples
from cortado.store.gateway.console.site import operations
from cortado.store.keys.types import KeyType
from support.cluster import cortado
from support.console_forms import act, form_of, path_of, send, text_of
from support.gateways import Gateway, gateway_before
from support.server_process import running_server, wait_until

pytestmark = pytest.mark.process

SCRIPT: Final = "<script>alert('x')</script>"
TURNED: Final = "\u202eevil\u200b\x07"
PAGES: Final = (
    "/ui",
    "/ui/data",
    "/ui/data/console/items",
    "/ui/data/console/items/tea",
    "/ui/pairs/carts",
    "/ui/pairs/carts/a%2Fb",
    "/ui/roles",
    "/ui/schemas",
    "/ui/schemas/console.items",
    "/ui/changes",
    "/ui/changes?table=console.items",
    "/ui/calls",
)
ITEM: Final[dict[str, Any]] = {
    "type": "record",
    "name": "Item",
    "fields": [
        {"name": "id", "type": "string"},
        {"name": "name", "type": "string", "default": ""},
        {"name": "left", "type": "long", "default": 0},
    ],
}
NEXT: Final[dict[str, Any]] = {**ITEM, "fields": [*ITEM["fields"], {"name": "shelf", "type": "int", "default": 0}]}
TEXT: Final = "application/x-www-form-urlencoded"


class Markup(HTMLParser):
    """The content of a page: tags with their attributes, and the text between them."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str]]] = []
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, {name: value or "" for name, value in attrs}))

    def handle_data(self, data: str) -> None:
        self.text += data

    def all(self, tag: str) -> list[dict[str, str]]:
        return [attributes for name, attributes in self.tags if name == tag]


def get(made: Gateway, path: str, status: int = 200, **headers: str) -> Markup:
    answer: httpx.Response = made.run(made.http.get(path, headers=headers))
    assert answer.status_code == status, answer.text
    assert answer.headers["Content-Type"].startswith("text/html")
    return Markup(answer.text)


def post(made: Gateway, schema: str, status: int = 200) -> Markup:
    path = "/ui/schemas/console.items"
    answer: httpx.Response = made.run(made.http.post(path, data={"schema": schema}))
    assert answer.status_code == status, answer.text
    return Markup(answer.text)


@pytest.fixture(scope="module")
def console_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("console") / "data"


@pytest.fixture(scope="module")
def console(console_folder: Path) -> Iterator[Gateway]:
    with running_server(console_folder, "--slow-request-ms", "1") as server, gateway_before(server.endpoint) as made:
        made.run(_make(made))
        yield made


async def _make(made: Gateway) -> None:
    client = made.client
    await client.create_database("console")
    await client.schemas.register("console.items", ITEM)
    await client.create_table("console.items", key=["id"])
    items = client.table("console.items")
    await items.put({"id": "tea", "name": "Tea", "left": 8})
    await items.put({"id": "gone", "name": "x" * 100_000, "left": 1})
    await items.put({"id": SCRIPT, "name": f"{SCRIPT}{TURNED}", "left": 1})
    await items.put({"id": "a/b", "name": "\"' onload=alert(1)", "left": 1})
    await items.put({"id": "..", "name": "", "left": 1})
    await client.schemas.register("console.items", NEXT)
    await client.admin.gc.advance_consumer(f"{SCRIPT}{TURNED}", await client.now(), label=f"{SCRIPT}{TURNED}")
    await client.schemas.register("console.docs", {**ITEM, "doc": f"{SCRIPT}{TURNED}"})
    carts = client.kv("carts")
    await carts.put(b"a/b", b'{"a": [1, 2]}')
    await carts.put(b"..", b"")
    await carts.put(b"\xff\x00", b"\xff" * 100_000)
    await carts.put(SCRIPT.encode(), f"{SCRIPT}{TURNED}".encode())


# --- what every page keeps to ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", PAGES)
def test_a_page_loads_from_here_alone_and_runs_nothing_that_stands_in_it(console: Gateway, path: str) -> None:
    answer = console.run(console.http.get(path))
    policy = dict(each.strip().partition(" ")[::2] for each in answer.headers["Content-Security-Policy"].split(";"))
    assert policy["default-src"] == policy["frame-ancestors"] == policy["base-uri"] == "'none'"
    assert {policy[each] for each in ("script-src", "style-src", "connect-src", "form-action")} == {"'self'"}
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert answer.headers["Cache-Control"] == "no-store"
    page = Markup(answer.text)
    assert page.all("script") == [{"src": "/ui/console.js", "defer": ""}]
    assert page.all("style") == []
    for _, attributes in page.tags:
        assert not [name for name in attributes if name.startswith("on") or name == "style"]
        for name in ("src", "href", "action"):
            assert attributes.get(name, "/").startswith(("/", "?", "#")), attributes
            assert not attributes.get(name, "/").startswith("//"), attributes


@pytest.mark.parametrize("path", PAGES)
def test_a_page_can_be_read_and_used_without_a_mouse_or_eyes(console: Gateway, path: str) -> None:
    page = get(console, path)
    assert page.all("html")[0]["lang"] == "en"
    assert [len(page.all(each)) for each in ("header", "main", "footer", "h1")] == [1, 1, 1, 1]
    assert page.all("nav")[0]["aria-label"]
    assert page.all("a")[0]["href"] == f"#{page.all('main')[0]['id']}"
    names = [each["id"] for _, each in page.tags if "id" in each]
    assert len(names) == len(set(names))
    labelled = {each["for"] for each in page.all("label")}
    for tag in ("input", "select", "textarea"):
        assert {each["id"] for each in page.all(tag)} <= labelled
    for attributes in [each for _, each in page.tags]:
        assert set(attributes.get("aria-labelledby", "").split()) <= set(names)
    assert all("alt" in each for each in page.all("img"))
    assert all(each.get("scope") for each in page.all("th"))
    # Each scrolling region is reached by the keyboard, and has a name.
    for each in [*page.all("pre"), *(each for each in page.all("div") if each.get("class") == "wide")]:
        assert each["tabindex"] == "0"
        assert each.get("aria-label") or each.get("aria-labelledby")


def test_the_files_of_a_page_are_served_and_name_no_other_host(console: Gateway) -> None:
    for name, kind in (("console.css", "text/css"), ("console.js", "text/javascript"), ("icon.svg", "image/svg+xml")):
        answer = console.request("GET", f"/ui/{name}")
        assert answer.headers["Content-Type"].partition(";")[0] == kind
        assert not re.search(r"//[a-z]+\.|@import|url\(", answer.text.replace("http://www.w3.org/2000/svg", ""))
    script = files("cortado.store.gateway.console").joinpath("console.js").read_text()
    assert not re.search(r"innerHTML|outerHTML|insertAdjacent|document\.write|\beval\b|Function\(", script)


async def _stored(made: Gateway, folder: Path) -> list[object]:
    """Data with its versions, and the node's own commits, which happen now and then."""
    rows = [(each.value, each.etag) async for each in made.client.table("console.items").scan()]
    pairs = [(each.key, each.value, each.etag) async for each in made.client.kv("carts").scan()]
    return [rows, pairs, (folder / "audit" / "audit.log").read_text()]


def test_nothing_is_changed_by_any_page(console: Gateway, console_folder: Path) -> None:
    assert {(each.method, each.path) for each in operations(Samples()) if each.method != "GET"} == {
        ("POST", "/ui/schemas/{subject}"),
        ("POST", "/ui/acts/{act}"),
        ("POST", "/ui/sign-out"),
    }
    # Earlier acts are in the audit log once this one is: lines have the order of the acts.
    console.run(console.client.schemas.set_compatibility("console.docs", "FULL"))
    audit = console_folder / "audit" / "audit.log"
    wait_until(lambda: "Schemas/SetCompatibility" in audit.read_text(), "the audit log is up to date")
    before = console.run(_stored(console, console_folder))
    for path in PAGES:
        get(console, path)
    post(console, '{"type": "string"}')
    assert console.run(_stored(console, console_folder)) == before


def test_no_other_site_s_page_may_ask(console: Gateway) -> None:
    get(console, "/ui", 403, Origin="http://example.org")
    get(console, "/ui", 200, Origin="http://localhost:7629")


# --- stored data is text --------------------------------------------------------------------------------------------


def test_stored_markup_is_shown_and_never_obeyed(console: Gateway) -> None:
    page = get(console, "/ui/data/console/items")
    assert SCRIPT in page.text
    assert "\"' onload=alert(1)" in page.text
    assert len(page.all("script")) == 1


@pytest.mark.parametrize(
    "path",
    [*PAGES, "/ui/schemas/console.docs", "/ui/pairs/carts?at=%3Cscript%3E",
     "/ui/data/console/items?filter=%3Cscript%3E",
     f"/ui/data/console/items/{quote(SCRIPT, safe='')}", f"/ui/pairs/carts/{quote(SCRIPT, safe='')}",
     f"/ui/data/console/{quote(SCRIPT, safe='')}", f"/ui/pairs/{quote(SCRIPT, safe='')}",
     f"/ui/schemas/{quote(SCRIPT, safe='')}", f"/ui/calls?node={quote(SCRIPT, safe='')}",
     f"/ui/changes?table={quote(SCRIPT, safe='')}", f"/ui/{quote(SCRIPT, safe='')}",
     f"/ui/acts/{quote(SCRIPT, safe='')}", f"/ui/data?find={quote(SCRIPT, safe='')}"],
)  # fmt: skip
def test_no_page_has_markup_of_somebody_else_s(console: Gateway, path: str) -> None:
    with gateway_before(console.client.endpoint, acts_without_roles=True) as acting:
        for made in (console, acting):
            answer = made.run(made.http.get(path))
            page = Markup(answer.text)
            assert page.all("script") == [{"src": "/ui/console.js", "defer": ""}]
            assert not [name for _, each in page.tags for name in each if name.startswith("on") or name == "style"]
            assert not {"\u202e", "\u200b", "\x07"} & set(answer.text)
            assert answer.headers["Content-Security-Policy"].startswith("default-src 'none'")


def test_what_would_turn_or_hide_text_stands_as_an_escape(console: Gateway) -> None:
    for path in ("/ui/data/console/items", f"/ui/data/console/items/{Row((SCRIPT,), {}).path}"):
        answer = console.run(console.http.get(path))
        assert answer.status_code == 200
        assert not {"\u202e", "\u200b", "\x07"} & set(answer.text)
    assert "\\u202eevil\\u200b\\u0007" in Markup(console.run(console.http.get("/ui/data/console/items")).text).text


def test_a_long_value_is_cut_and_says_how_long_it_is(console: Gateway) -> None:
    assert "(100,000 characters)" in get(console, "/ui/data/console/items").text
    answer = console.run(console.http.get("/ui/data/console/items/gone"))
    assert len(answer.content) < 50_000


@pytest.mark.parametrize("name", ["a%2Fb", "tea"])
def test_a_row_is_found_whatever_its_key_holds(console: Gateway, name: str) -> None:
    shown = get(console, f"/ui/data/console/items/{name}")
    assert "There is no such row" not in shown.text
    links = [each["href"] for each in get(console, "/ui/data/console/items").all("a")]
    assert f"/ui/data/console/items/{name}" in links


def test_what_a_browser_would_take_for_another_path_is_no_link(console: Gateway) -> None:
    for path, name in (("/ui/data/console/items", ".."), ("/ui/pairs/carts", "..")):
        page = get(console, path)
        assert f"{name} no page: browsers take dots alone out of a path" in " ".join(page.text.split())
        assert not [each for each in page.all("a") if "%2E" in each["href"]]
    # As of a table "b": /v1/db/console/items/../b:watch.
    followed = get(console, "/ui/changes?table=console.items&prefix=..")
    assert "prefix: must have no part that is just dots" in followed.text
    assert "data-watch" not in str(followed.tags)


@pytest.mark.parametrize("path", ["/ui/data/console/items/none", "/ui/pairs/carts/none", "/ui/data/console/items/tea"])
def test_a_history_does_not_wait_for_the_next_second(
    console: Gateway, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []
    request = WatchOptions.to_proto

    def message(options: WatchOptions) -> Any:
        asked.append(request(options))
        return asked[-1]

    monkeypatch.setattr(WatchOptions, "to_proto", message)
    console.run(console.http.get(path))
    # The cluster says so often how far the watch is complete, and by default once a second.
    assert [each.resolved_interval_ms for each in asked] == [HISTORY_MARKS_MS]


# --- content of the pages --------------------------------------------------------------------------------------------


def test_the_cluster_page_shows_each_member_by_its_own_word(console: Gateway) -> None:
    status = console.run(console.client.status())
    text = get(console, "/ui").text
    assert all(each in text for each in (status.cluster_id, status.node_id, "serving", "checks are well"))
    assert "A cluster of one has no copy" in text


def test_the_cluster_page_says_what_the_doctor_says(console: Gateway) -> None:
    membership = console.client.admin.members
    console.run(membership.add("n8", "127.0.0.1:8"))
    try:
        found = cluster_checks(nodes_facts([console.client.endpoint], None, None, 10.0))
        [told] = [each for each in found if each.name == "lag of n8"]
        text = " ".join(get(console, "/ui").text.split())
        assert f"{told.verdict} {told.name} {told.found} {told.advice}" in text
        assert "Nothing stands out" not in text
    finally:
        console.run(membership.remove("n8"))


def test_a_node_that_hangs_is_asked_for_a_while_and_not_for_longer(console: Gateway) -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        asked = console.client.with_timeout(0.3)._open_call_at(
            address, Stubs.cluster.Status, cluster_pb2.StatusRequest()
        )
        with pytest.raises(DeadlineExceeded, match=r"^no answer within 0\.3 s$"):
            console.run(asked)


def test_tables_are_listed_with_their_keys(console: Gateway) -> None:
    text = get(console, "/ui/data").text
    assert re.search(rf"items\s+id\s+{KeyType.STRING}", text)


def test_rows_are_filtered_ordered_and_told_when_none_is_so(console: Gateway) -> None:
    found = get(console, "/ui/data/console/items?filter=left+%3E+5&order=down&index=&at=").text
    assert "1 rows as of now" in found
    assert "No row is so" in get(console, "/ui/data/console/items?filter=left+%3E+500").text
    assert "These rows cannot be shown" in get(console, "/ui/data/console/items?filter=left+%3E").text
    assert "at: must" in get(console, "/ui/data/console/items?at=yesterday").text


def test_two_times_stand_side_by_side(console: Gateway) -> None:
    items = console.client.table("console.items")
    at = console.run(console.client.now())

    async def change() -> None:
        await items.update("tea", {"left": 7})
        await items.delete("gone")
        await items.put({"id": "new", "name": "New", "left": 0})

    console.run(change())
    page = get(console, f"/ui/data/console/items?at={at}&compare=now")
    rows = {each["class"] for each in page.all("tr") if "class" in each}
    assert rows == {"changed", "added", "removed"}, "what is the same is counted, and not shown"
    assert "3 rows that differ, 3 that do not" in page.text
    assert re.search(r"tea\s+changed\s+Tea\s+8\s+7\s", page.text)


def test_a_row_s_history_has_each_commit_the_newest_first(console: Gateway) -> None:
    items = console.client.table("console.items")

    async def write() -> None:
        await items.put({"id": "history", "name": "a", "left": 1})
        await items.update("history", {"left": 2})
        await items.delete("history")

    console.run(write())
    page = get(console, "/ui/data/console/items/history")
    assert "There is no such row now" in page.text
    assert [each["class"] for each in page.all("li")] == ["deleted", "changed", "written"]
    at = page.all("a")[-4]["href"]
    assert '"left": 2' in get(console, f"/ui/data/console/items/history{at}").text


def test_versions_are_compared(console: Gateway) -> None:
    page = get(console, "/ui/schemas/console.items")
    assert "From version 1 to 2" in page.text
    assert len(page.all("ins")) >= 3
    assert '+     "name": "shelf"' in re.sub(r"\+\s+", "+     ", page.text)
    assert "Both are the same" in get(console, "/ui/schemas/console.items?from=2&to=2").text


@pytest.mark.parametrize(
    ("schema", "says"),
    [
        (ITEM, "It is version 1 already"),
        ({**ITEM, "fields": [*NEXT["fields"], {"name": "more", "type": "int", "default": 0}]}, "It would be the next"),
        ({**NEXT, "fields": [*NEXT["fields"], {"name": "must", "type": "int"}]}, "Not compatible"),
        ({"type": "record"}, "This is no schema that can be registered"),
    ],
)
def test_a_schema_gets_its_verdict_before_it_is_registered(console: Gateway, schema: Any, says: str) -> None:
    page = post(console, json.dumps(schema))
    assert says in " ".join(page.text.split())
    assert len(console.run(console.client.schemas.versions("console.items"))) == 2


@pytest.mark.parametrize(
    ("body", "kind", "status"),
    [
        ("schema=x&more=1", TEXT, 400),
        ("", TEXT, 400),
        ("{}", "application/json", 415),
        ("schema=%FF", TEXT, 400),
        ("schema=" + "x" * (9 << 20), TEXT, 413),
    ],
)
def test_another_form_is_refused_by_a_page(console: Gateway, body: str, kind: str, status: int) -> None:
    path = "/ui/schemas/console.items"
    answer = console.run(console.http.post(path, content=body, headers={"Content-Type": kind}))
    assert answer.status_code == status
    assert "That did not work" in answer.text


def test_the_tail_follows_what_was_chosen(console: Gateway) -> None:
    [section] = [
        each for each in get(console, "/ui/changes?table=console.items&prefix=a%2Fb").all("section")
        if "data-watch" in each
    ] or [{}]  # fmt: skip
    # A table of one part has no key of two.
    assert section == {}
    [section] = [
        each
        for each in get(console, "/ui/changes?table=console.items&prefix=tea").all("section")
        if "data-watch" in each
    ]
    assert section["data-watch"] == "/v1/db/console/items/tea:watch?withPrevious=true"
    at = console.run(console.client.now())
    events = console.request("GET", f"{section['data-watch']}&initialState=true&until={at}")
    assert events.headers["Content-Type"].startswith("text/event-stream")


def test_calls_are_counted_by_method(console: Gateway) -> None:
    text = get(console, "/ui/calls").text
    assert re.search(r"Documents/Put[1-9]", text)
    node = console.run(console.client.status()).node_id
    get(console, f"/ui/calls?node={node}")
    assert "no member nobody" in get(console, "/ui/calls?node=nobody", 404).text


@pytest.mark.parametrize(
    ("path", "status", "says"),
    [
        ("/ui/nowhere", 404, "/ui/nowhere"),
        ("/ui/data/console/none", 404, "table console.none"),
        ("/ui/data/console/items/none", 404, "document none"),
        ("/ui/data/console/items/a/b", 400, "must have 1 part"),
        ("/ui/schemas/none", 404, "none"),
        ("/ui?colour=red", 400, "is no parameter of this call"),
        ("/ui/calls?within=60", 400, "from 1 to 5"),
        ("/ui/schemas/console.items?from=9", 400, "which has 1, 2"),
        ("/ui/changes?table=a.b&namespace=c", 400, "must not be given together"),
    ],
)
def test_what_cannot_be_shown_is_a_page_that_says_why(console: Gateway, path: str, status: int, says: str) -> None:
    page = get(console, path, status)
    assert says in unescape(page.text)
    assert page.all("main")


def test_a_lease_is_ended_and_old_versions_are_collected(console: Gateway) -> None:
    held = console.run(console.client.admin.gc.advance_consumer("tail", console.run(console.client.now())))
    assert "/ui/acts/" not in console.run(console.http.get("/ui")).text
    with gateway_before(console.client.endpoint, acts_without_roles=True) as acting:
        assert any("/ui/acts/end-hold" in each["href"] for each in get(acting, "/ui").all("a"))
        path = path_of("end-hold", hold=held.hold_id)
        assert "The hold has ended" in act(acting, "end-hold", {"typed": held.hold_id}, hold=held.hold_id)
        assert acting.run(acting.http.get(path)).status_code == 404
        assert "stored items were removed" in act(acting, "collect")


def test_slow_calls_stand_with_where_their_time_went(console: Gateway) -> None:
    # It waits for a millisecond at least: the disk's.
    console.run(console.client.table("console.items").put({"id": "slow", "name": "SECRET" * 100_000, "left": 1}))
    page = get(console, "/ui/calls")
    text = " ".join(page.text.split())
    assert re.search(r"Documents/Put [0-9.]+ (ms|s) OK console items queued [0-9.]+ .?s", text), text
    assert "SECRET" not in text
    node = console.run(console.client.status()).node_id
    found = [json.loads(each) for each in cortado("slow", "-e", console.client.endpoint, "-o", "json").splitlines()]
    assert "cortado.v1.Documents/Put" in {each["method"] for each in found}
    assert {each["node_id"] for each in found} == {node}


# --- pairs ----------------------------------------------------------------------------------------------------------


def test_pairs_are_listed_by_prefix_as_they_were(console: Gateway) -> None:
    page = get(console, "/ui/pairs/carts")
    assert SCRIPT in page.text
    assert len(page.all("script")) == 1
    links = {each["href"] for each in page.all("a") if each["href"].startswith("/ui/pairs/carts/")}
    assert links == {f"/ui/pairs/carts/{each}" for each in ("a%2Fb", "%FF%00", quote(SCRIPT, safe=""))}
    for each in links:
        assert "There is no such pair" not in get(console, each).text
    assert "1 pairs" in get(console, "/ui/pairs/carts?prefix=a").text
    assert "1 pairs" in get(console, "/ui/pairs/carts?prefix=%5Cxff").text
    assert "No key begins so" in get(console, "/ui/pairs/carts?prefix=b").text
    assert "There were no pairs then" in get(console, "/ui/pairs/carts?at=0.1.0").text
    assert "These pairs cannot be shown" in get(console, "/ui/pairs/carts?at=yesterday").text
    assert "must be one of auto, text, hex, json" in get(console, "/ui/pairs/carts?as=xml", 400).text


def test_a_pair_has_its_history_and_all_of_a_long_value_is_one_link_away(console: Gateway) -> None:
    carts = console.client.kv("carts")

    async def write() -> None:
        await carts.put(b"history", b"one")
        await carts.put(b"history", b"two")
        await carts.delete(b"history")

    console.run(write())
    page = get(console, "/ui/pairs/carts/history")
    assert "There is no such pair now" in page.text
    assert [each["class"] for each in page.all("li")] == ["deleted", "written", "written"]
    then = next(each["href"] for each in page.all("a")[::-1] if each["href"].startswith("?at="))
    assert "one" in get(console, f"/ui/pairs/carts/history{then}").text
    get(console, "/ui/pairs/carts/none", 404)
    long = get(console, "/ui/pairs/carts/%FF%00")
    assert len(long.text) < 250_000
    [whole] = [each["href"] for each in long.all("a") if "download" in each]
    assert console.run(console.http.get(whole)).content == b"\xff" * 100_000


def test_an_act_stands_in_the_audit_log_under_its_visitor_s_name(console: Gateway, console_folder: Path) -> None:
    # The last one: roles are on meanwhile.
    token = console.run(console.client.admin.auth.enable("root")).token
    assert token is not None
    root = {"Authorization": f"Bearer {token.text}"}
    try:
        form = form_of(console.run(console.http.get(path_of("create-database"), headers=root)))
        answer = send(console, path_of("create-database"), {"form": form, "database": "audited"}, **root)
        assert "Database audited was created" in text_of(answer)
    finally:
        with Client(console.client.endpoint, token=token.text) as client:
            client.admin.auth.disable()

    def lines() -> list[dict[str, Any]]:
        text = (console_folder / "audit" / "audit.log").read_text()
        return [json.loads(each) for each in text.splitlines() if "audited" in each]

    wait_until(lambda: len(lines()) == 1, "a line of the audit log")
    [line] = lines()
    assert (line["principal"], line["method"], line["outcome"]) == ("root", "Tables/CreateDatabase", "OK")
