"""The console's forms, filled in as a browser does it."""

from __future__ import annotations

import re
from base64 import b64encode
from html import unescape
from typing import Final
from urllib.parse import urlencode

import httpx

from support.gateways import Gateway

OWN: Final = "http://localhost:7629"


def path_of(act: str, **target: str) -> str:
    return f"/ui/acts/{act}" + (f"?{urlencode(target)}" if target else "")


def get(made: Gateway, path: str, **headers: str) -> httpx.Response:
    answer: httpx.Response = made.run(made.http.get(path, headers=headers))
    return answer


def form_of(answer: httpx.Response) -> str:
    assert answer.status_code == 200, answer.text
    found = re.search(r'name="form" value="([^"]+)"', answer.text)
    assert found is not None
    return found[1]


def send(made: Gateway, path: str, fields: dict[str, str], **headers: str) -> httpx.Response:
    given = {"Origin": OWN, "Sec-Fetch-Site": "same-origin", **headers}
    answer: httpx.Response = made.run(made.http.post(path, data=fields, headers=given))
    return answer


def act(made: Gateway, name: str, given: dict[str, str] | None = None, /, **target: str) -> str:
    """Act as a visitor does, and return the text of the answer."""
    path = path_of(name, **target)
    answer = send(made, path, {"form": form_of(get(made, path)), **(given or {})})
    assert answer.status_code == 200, answer.text
    return text_of(answer)


def text_of(answer: httpx.Response) -> str:
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", answer.text)).split())


def act_refused(made: Gateway, name: str, given: dict[str, str], **target: str) -> httpx.Response:
    path = path_of(name, **target)
    return send(made, path, {"form": form_of(get(made, path)), **given})


def basic(token: str) -> dict[str, str]:
    return {"Authorization": f"Basic {b64encode(f'who:{token}'.encode()).decode()}"}
