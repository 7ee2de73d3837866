"""A real browser without a screen: Chromium, by its driver's protocol (W3C WebDriver), which needs no package.

::

    with browser() as driver:
        driver.open("http://127.0.0.1:7629/ui")
        driver.press(TAB)
        assert driver.script("return document.activeElement.textContent") == "Skip to the content"
"""

from __future__ import annotations

import base64
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import httpx

from support.ports import free_port
from support.server_process import wait_until

CHROMIUM: Final = shutil.which("chromium") or shutil.which("chromium-browser") or ""
DRIVER: Final = shutil.which("chromedriver") or ""
TAB: Final = "\ue004"
ENTER: Final = "\ue007"
LEFT: Final = "\ue012"
WAIT_S: Final = 30.0
# It asks its maker for nothing, and no other host for anything.
_ARGUMENTS: Final = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-dev-shm-usage",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
)  # fmt: skip


class Browser:
    """A window."""

    def __init__(self, http: httpx.Client, session: str) -> None:
        self._http = http
        self._session = session

    def _ask(self, path: str, **body: Any) -> Any:
        answer = self._http.post(f"/session/{self._session}/{path}", json=body)
        value = answer.json()["value"]
        assert answer.is_success, value
        return value

    def open(self, url: str) -> None:
        """Returns when the page is there with all that it loads."""
        self._ask("url", url=url)

    def script(self, text: str, *arguments: Any) -> Any:
        return self._ask("execute/sync", script=text, args=list(arguments))

    def press(self, *keys: str) -> None:
        """Press keys on the keyboard, one after the other, in the element that has the focus."""
        actions = [{"type": kind, "value": key} for key in keys for kind in ("keyDown", "keyUp")]
        self._ask("actions", actions=[{"type": "key", "id": "keyboard", "actions": actions}])

    def look(self, *, width: int, height: int = 900, dark: bool = False) -> None:
        """Set the window's size, and whether its user prefers dark pages."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        self._devtools("Emulation.setDeviceMetricsOverride", size)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self._devtools("Emulation.setEmulatedMedia", {"features": [scheme]})

    def picture(self, path: Path) -> None:
        """Store all of the page, as a PNG file."""
        found = self._devtools("Page.captureScreenshot", {"captureBeyondViewport": True})
        path.write_bytes(base64.b64decode(found["data"]))

    def hurry(self) -> None:
        """Run repeated work ten times a second on pages that are opened from here on."""
        source = "{ const given = setInterval; window.setInterval = (work) => given(work, 100); }"
        self._devtools("Page.addScriptToEvaluateOnNewDocument", {"source": source})

    def problems(self) -> list[str]:
        """Return the messages of the browser's console since the last call: blocked loads, uncaught errors."""
        return [each["message"] for each in self._ask("se/log", type="browser")]

    def _devtools(self, command: str, parameters: dict[str, Any]) -> Any:
        return self._ask("goog/cdp/execute", cmd=command, params=parameters)


@contextmanager
def browser() -> Iterator[Browser]:
    """Yield a new window with no history."""
    port = free_port()
    with tempfile.TemporaryDirectory(prefix="cortado-browser-") as folder:
        environment = {**os.environ, "HOME": folder, "XDG_CONFIG_HOME": folder, "XDG_CACHE_HOME": folder}
        process = subprocess.Popen(
            [DRIVER, f"--port={port}"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment
        )
        try:
            with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=WAIT_S, trust_env=False) as http:
                wait_until(lambda: _is_there(http), "the browser's driver", WAIT_S)
                yield from _window(http, folder)
        finally:
            process.terminate()
            process.wait(WAIT_S)


def _window(http: httpx.Client, folder: str) -> Iterator[Browser]:
    chosen = {"binary": CHROMIUM, "args": [*_ARGUMENTS, f"--user-data-dir={folder}/profile"]}
    wanted = {"browserName": "chrome", "goog:chromeOptions": chosen, "goog:loggingPrefs": {"browser": "ALL"}}
    answer = http.post("/session", json={"capabilities": {"alwaysMatch": wanted}}).json()["value"]
    session = answer["sessionId"]
    try:
        yield Browser(http, session)
    finally:
        http.delete(f"/session/{session}")


def _is_there(http: httpx.Client) -> bool:
    try:
        return bool(http.get("/status").json()["value"]["ready"])
    except httpx.TransportError:
        return False
