"""The console in a real browser: by keyboard alone, narrow and wide, light and dark, with what its script adds."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx
import pytest

from cortado.store.client import Client
from support.browser import CHROMIUM, DRIVER, ENTER, LEFT, TAB, Browser, browser
from support.gateway_process import GatewayProcess, gateway_process
from support.server_process import running_server, wait_until

pytestmark = [
    pytest.mark.process,
    pytest.mark.long,
    pytest.mark.skipif(
        not (CHROMIUM and DRIVER),
        reason="no browser: on Debian, apt-get install chromium chromium-driver brings one and what drives it",
    ),
]

ITEM = {
    "type": "record",
    "name": "Item",
    "fields": [{"name": "id", "type": "string"}, {"name": "left", "type": "long"}],
}
PAGES = (
    "/ui",
    "/ui/data",
    "/ui/data/shop/items",
    "/ui/data/shop/items/tea",
    "/ui/pairs/carts",
    "/ui/pairs/carts/one",
    "/ui/roles",
    "/ui/acts/create-table",
    "/ui/acts/drop-table?table=shop.items",
    "/ui/acts/check-table?table=shop.items",
    "/ui/schemas",
    "/ui/schemas/shop.items",
    "/ui/changes?table=shop.items",
    "/ui/calls",
)
# WCAG 2.2, 2.5.8: controls are 24 pixels high, except for links in a text.
SMALL = """
    const kinds = "a[href^='/ui/acts/'], button, select, input:not([type]), .flag, .reload";
    return [...document.querySelectorAll(kinds)]
        .filter((each) => each.offsetParent && each.getBoundingClientRect().height < 24)
        .map((each) => each.outerHTML.slice(0, 80));"""
# Finds states, such as those of members, whose words stand in two lines.
BROKEN = """
    return [...document.querySelectorAll("td .state")].filter((each) => {
        const range = document.createRange();
        range.setStart(each.firstChild, 0);
        range.setEnd(each.firstChild, each.textContent.split(" ")[0].length);
        return range.getClientRects().length > 1;
    }).map((each) => each.textContent);"""
FOCUSED = "return document.activeElement.textContent.trim() || document.activeElement.id"


class Console:
    """A browser before a gateway before a node, and a client of the node."""

    def __init__(self, window: Browser, gateway: GatewayProcess, client: Client) -> None:
        self.window = window
        self.client = client
        self.url = gateway.url

    def open(self, path: str) -> Browser:
        self.window.open(self.url + path)
        return self.window

    def text(self, selector: str) -> str:
        return str(self.window.script("return document.querySelector(arguments[0])?.textContent ?? ''", selector))

    def tab_to(self, wanted: str) -> None:
        """Press Tab until the wanted element has the focus, as a user does that sees the focus."""
        for _ in range(40):
            if self.window.script(FOCUSED) == wanted:
                return
            self.window.press(TAB)
        raise AssertionError(f"{wanted} is not reached")

    def await_text(self, selector: str, wanted: str) -> None:
        wait_until(lambda: wanted in self.text(selector), f"{wanted} in {selector}")


@pytest.fixture(scope="module")
def console(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Console]:
    folder = tmp_path_factory.mktemp("console")
    with (
        running_server(folder / "data") as server,
        gateway_process(server.endpoint, folder, "--console-acts-without-roles") as gateway,
        Client(server.endpoint) as client,
        browser() as window,
    ):
        client.create_database("shop")
        client.schemas.register("shop.items", ITEM)
        client.create_table("shop.items", key=["id"])
        for left in range(3):
            client.table("shop.items").put({"id": "tea", "left": left})
        client.table("shop.items").put({"id": "<img src=x onerror=document.title='obeyed'>", "left": 1})
        client.kv("carts").put(b"one", b'{"title": "<img src=x onerror=document.title=1>"}')
        yield Console(window, gateway, client)


def test_every_page_fits_every_window_and_breaks_no_rule_of_its_policy(console: Console) -> None:
    colours = set()
    for dark in (False, True):
        for width in (360, 1280):
            console.window.look(width=width, dark=dark)
            for path in PAGES:
                window = console.open(path)
                assert window.script("return document.documentElement.scrollWidth") <= width, (path, width)
                assert window.script("return document.title") != "obeyed"
                assert window.script(SMALL) == [], (path, width)
                assert window.script(BROKEN) == [], (path, width)
        colours.add(console.window.script("return getComputedStyle(document.documentElement).backgroundColor"))
    assert len(colours) == 2
    assert console.window.problems() == []


def test_text_stands_out_from_what_is_behind_it(console: Console) -> None:
    # WCAG 2.2, 1.4.3: 4.5 to 1.
    contrast = """
        const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
        const light = (colour) => {
            canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = colour; canvas.fillRect(0, 0, 1, 1);
            const [r, g, b] = [...canvas.getImageData(0, 0, 1, 1).data].map((each) => each / 255)
                .map((each) => each <= 0.04045 ? each / 12.92 : ((each + 0.055) / 1.055) ** 2.4);
            return 0.2126 * r + 0.7152 * g + 0.0722 * b;
        };
        const behind = (element) => {
            for (let each = element; each; each = each.parentElement) {
                const colour = getComputedStyle(each).backgroundColor;
                if (colour !== "rgba(0, 0, 0, 0)") return colour;
            }
        };
        const poor = [];
        const texts = "a, p, td, th, dt, dd, h1, h2, code, label, button, ins, del, span";
        for (const each of document.querySelectorAll(texts)) {
            if (!each.textContent.trim() || each.matches(".skip, .hidden")) continue;
            const [one, other] = [light(getComputedStyle(each).color), light(behind(each))].sort((a, b) => b - a);
            if ((one + 0.05) / (other + 0.05) < 4.5) poor.push(each.outerHTML.slice(0, 80));
        }
        return poor;"""
    for dark in (False, True):
        console.window.look(width=1280, dark=dark)
        for path in PAGES:
            assert console.open(path).script(contrast) == [], (path, dark)


def test_the_keyboard_alone_leads_everywhere(console: Console) -> None:
    console.window.look(width=1280)
    window = console.open("/ui")
    window.press(TAB)
    assert window.script(FOCUSED) == "Skip to the content"
    assert window.script("return document.activeElement.getBoundingClientRect().left") >= 0
    assert window.script("return getComputedStyle(document.activeElement).outlineStyle") == "solid"
    console.tab_to("Data")
    window.press(ENTER)
    console.await_text("h1", "Data")
    console.tab_to("items")
    window.press(ENTER)
    console.await_text("h1", "items")
    window.script("document.getElementById('query').focus()")
    window.press(*"left = 2", ENTER)
    console.await_text("caption", "1 rows")


def test_the_slider_leads_to_the_rows_as_they_were(console: Console) -> None:
    window = console.open("/ui/data/shop/items")
    assert "2 rows" in console.text("caption")
    window.script("document.getElementById('slide').focus(); document.getElementById('slide').value = 1")
    window.press(LEFT)
    assert window.script("return document.getElementById('at').value").endswith("Z")
    wait_until(lambda: "at=2" in window.script("return location.search"), "the page of that time")
    console.await_text("main", "The table had no rows then.")


def test_changes_arrive_while_one_looks(console: Console) -> None:
    console.open("/ui/changes?table=shop.items")
    console.await_text("[data-status]", "Live.")
    items = console.client.table("shop.items")
    items.put({"id": "<b>new</b>\u202e", "left": 5})
    items.update("tea", {"left": 9})
    items.delete("<b>new</b>\u202e")
    wait_until(lambda: console.window.script("return document.querySelectorAll('.tail li').length") == 3, "three")
    shown = console.window.script("return [...document.querySelectorAll('.tail li')].map((each) => each.className)")
    assert shown == ["new removed", "new changed", "new added"]
    assert "<b>new</b>\\u202e" in console.text(".tail")
    assert console.text(".tail time").startswith(str(datetime.now(UTC).year))
    assert console.window.problems() == []


def test_a_schema_is_pasted_and_gets_its_verdict(console: Console) -> None:
    window = console.open("/ui/schemas/shop.items")
    window.script("document.getElementById('schema').value = arguments[0]", '{"type": "record", "name": "Item"}')
    window.script("document.getElementById('schema').form.requestSubmit()")
    console.await_text(".note", "This is no schema")
    assert window.script("return document.getElementById('schema').value") == '{"type": "record", "name": "Item"}'


def test_an_act_is_done_by_keyboard_once_its_target_is_typed(console: Console) -> None:
    console.client.create_table("shop.dropped", key=["id"], subject="shop.items")
    window = console.open("/ui/data/shop/dropped")
    console.tab_to("Definition and acts")
    window.press(ENTER)
    console.tab_to("Drop: shop.dropped")
    window.press(ENTER)
    console.await_text("h1", "Drop a table")
    console.tab_to("typed")
    window.press(*"shop.drop", ENTER)
    console.await_text("[role=alert]", "Nothing was done. typed: must be the name of the target, shop.dropped")
    console.tab_to("typed")
    window.press(*"shop.dropped", ENTER)
    console.await_text("[role=status]", "Done. Table shop.dropped was dropped")
    assert [each.full_name for each in console.client.tables("shop")] == ["shop.items"]
    window.open(console.url + "/ui/data")
    assert "shop.dropped" in console.text("main")


@contextmanager
def page_of_another_site(text: str) -> Iterator[str]:
    """Its address: the same host, another port."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, *_: object) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/"
    finally:
        server.shutdown()
        server.server_close()


def test_a_page_of_another_site_can_neither_act_nor_look(console: Console) -> None:
    own = httpx.get(f"{console.url}/ui/acts/create-database", trust_env=False).text
    [form] = re.findall(r'name="form" value="([^"]+)"', own)
    # Even where it knew a form that is good.
    text = f"""<body><iframe src="{console.url}/ui"></iframe><form method="post"
        action="{console.url}/ui/acts/create-database"><input name="form" value="{form}">
        <input name="database" value="forged"></form>"""
    with page_of_another_site(text) as elsewhere:
        window = console.window
        window.open(elsewhere)
        framed = "try { return frames[0].document.body.innerText } catch { return 'closed' }"
        assert window.script(framed) in ("closed", "")
        window.script("document.forms[0].submit()")
        console.await_text("main", "Origin: must be the gateway's own")
        window.problems()
    assert "forged" not in console.client.databases()


def test_a_page_that_reloads_itself_shows_what_is_there_now(console: Console) -> None:
    console.window.hurry()
    window = console.open("/ui/calls")
    assert window.script("return document.getElementById('reload').checked") is False
    window.script("document.getElementById('reload').click(); window.stays = true")
    before = console.text("main")
    wait_until(lambda: console.text("main") != before, "a page that changed")
    assert window.script("return window.stays && document.getElementById('reload').checked") is True
    assert window.problems() == []


def test_with_roles_the_browser_signs_in_by_itself_and_shows_what_its_visitor_may_read(console: Console) -> None:
    # The last one: from here on all calls need a token.
    admin = console.client.admin.auth.enable("root").token
    assert admin is not None
    with Client(console.client.endpoint, token=admin.text) as root:
        issued = root.admin.auth.create("reader").token
        assert issued is not None
        root.admin.auth.grant("reader", "reader", "database:shop")
        try:
            for path in PAGES:
                assert httpx.get(console.url + path, trust_env=False).status_code == 401, path
            refused = httpx.get(console.url + "/ui/data", trust_env=False)
            assert [each.partition(" ")[0] for each in refused.headers.get_list("WWW-Authenticate")] == [
                "Bearer",
                "Basic",
            ]
            assert "Sign in when the browser asks" in refused.text
            assert "shop" not in refused.text
            window = console.window
            window.open(console.url.replace("//", f"//anybody:{issued.text}@") + "/ui/data/shop/items")
            assert "rows as of now" in console.text("caption"), console.text("main")
            # No token stands in a page or in its address, and the browser sends it with the page's requests.
            assert issued.text not in window.script("return document.documentElement.outerHTML + location.href")
            window.open(console.url + "/ui/changes?table=shop.items")
            console.await_text("[data-status]", "Live.")
            root.table("shop.items").put({"id": "seen", "left": 1})
            console.await_text(".tail", "seen")
            window.open(console.url + "/ui/schemas/nobodys")
            assert "shop.items" not in console.text("main")
            window.script("document.querySelector('.visitor button').click()")
            # Without a screen a browser cannot ask for another name, and shows a page of its own.
            wait_until(lambda: window.script("return location.protocol") == "chrome-error:", "it is signed out")
            window.open(console.url + "/ui/data/shop/items")
            assert window.script("return location.protocol") == "chrome-error:"
        finally:
            root.admin.auth.disable()
