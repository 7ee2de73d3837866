"""The page of calls to try, in a real browser: each call can be sent, by keyboard alone, narrow and wide."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from cortado.store.client import Client
from cortado.store.gateway.application import all_operations
from support.browser import CHROMIUM, DRIVER, ENTER, TAB, Browser, browser
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

STATE = "return document.getElementById('state').textContent"
ANSWER = "return document.getElementById('answer').textContent"
CHOOSE = """
    const chosen = [...document.querySelectorAll('option')].find((each) => each.textContent === arguments[0]);
    document.getElementById('operation').value = chosen.value;
    document.getElementById('operation').dispatchEvent(new Event('change'));
"""
FILL = """
    for (const each of document.querySelectorAll('#fields [required]')) each.value ||= 'x';
    document.getElementById('form').requestSubmit();
"""
UNLABELLED = "return [...document.querySelectorAll('select, input, textarea')].filter((e) => !e.labels.length).length"
CALLS = [f"{each.method} {each.path.replace(':path}', '}')}" for each in all_operations()]
FOCUSED = "const at = document.activeElement; return at.dataset.name || at.id || at.tagName"


@dataclass
class Page:
    window: Browser
    gateway: GatewayProcess

    def open(self, *, width: int = 1_200, dark: bool = False) -> Browser:
        self.window.look(width=width, dark=dark)
        self.window.open(f"{self.gateway.url}/try")
        wait_until(lambda: self.window.script("return document.querySelectorAll('option').length > 9"), "the calls")
        return self.window

    def wait(self) -> str:
        """Return the state of the sent request, once there is one."""
        wait_until(lambda: self.window.script(STATE) not in ("", "Waits for an answer"), "an answer")
        return str(self.window.script(STATE))


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    with (
        running_server(tmp_path_factory.mktemp("node") / "data") as server,
        gateway_process(server.endpoint, tmp_path_factory.mktemp("gateway")) as gateway,
        browser() as window,
    ):
        with Client(server.endpoint) as client:
            client.kv("carts").put(b"a/b", b"one")
        yield Page(window, gateway)


def test_a_call_is_sent_by_keyboard_alone(page: Page) -> None:
    window = page.open()
    window.script(CHOOSE, "GET /v1/kv/{namespace}/{key}")
    window.script("document.getElementById('operation').focus()")
    for name, text in (("namespace", "carts"), ("key", "a/b")):
        window.press(TAB)
        assert window.script(FOCUSED) == name
        window.press(*text)
    window.press(ENTER)
    assert page.wait() == "200 OK"
    assert "6f 6e 65" in window.script(ANSWER), "bytes are shown as such"
    found = set()
    for _ in range(8):
        window.press(TAB)
        found.add(window.script(FOCUSED))
    assert {"at", "send", "answer"} <= found


@pytest.mark.parametrize("part", [".", "..", "a/../b"])
def test_a_part_that_the_browser_would_take_away_is_not_sent(page: Page, part: str) -> None:
    window = page.open()
    window.script(CHOOSE, "DELETE /v1/kv/{namespace}/{key}")
    window.script("document.querySelector('[data-name=key]').value = arguments[0]", part)
    window.script(FILL)
    assert "a browser cannot send" in page.wait()


def test_a_stream_is_stopped(page: Page) -> None:
    window = page.open()
    window.script(CHOOSE, "GET /v1/kv/{namespace}:watch")
    window.script("document.querySelector('[data-name=after]').value = 'beginning'")
    window.script("document.querySelector('[data-name=namespace]').value = 'carts'")
    window.script(FILL)
    wait_until(lambda: "event: resolved" in window.script(ANSWER), "the first events")
    window.script("document.getElementById('stop').click()")
    wait_until(lambda: window.script(STATE) == "200 OK; stopped", "the end")


def test_each_call_can_be_sent(page: Page) -> None:
    window = page.open()
    for each in CALLS:
        window.script(CHOOSE, each)
        window.script(FILL)
        assert page.wait()[:3].isdigit(), each
    # The console shows the refusals, and nothing else.
    assert not [each for each in window.problems() if "Failed to load resource" not in each]


@pytest.mark.parametrize(("width", "dark"), [(360, False), (1_200, True)], ids=["narrow", "wide and dark"])
def test_nothing_sticks_out_and_each_field_has_a_label(page: Page, width: int, dark: bool) -> None:
    window = page.open(width=width, dark=dark)
    for each in CALLS:
        window.script(CHOOSE, each)
        assert window.script("return document.documentElement.scrollWidth <= window.innerWidth"), each
        assert window.script(UNLABELLED) == 0, each
