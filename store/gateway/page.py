"""``GET /try``: a page on which each call can be tried. It loads nothing from other hosts."""

from __future__ import annotations

from functools import partial
from importlib.resources import files
from typing import Final

from starlette.responses import Response

from cortado.store.gateway.calls import Call, Operation

_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_FILES: Final = {
    "/try": ("page.html", "text/html"),
    "/try.js": ("page.js", "text/javascript"),
    "/try.css": ("page.css", "text/css"),
}


def operations() -> list[Operation]:
    """Return the page and its two files."""
    return [
        Operation("GET", path, partial(_answer, name, kind), f"The page to try calls on: {name}.", gives={200: (kind,)})
        for path, (name, kind) in _FILES.items()
    ]


async def _answer(name: str, kind: str, _: Call) -> Response:
    headers = {"Content-Security-Policy": _POLICY, "Referrer-Policy": "no-referrer", "Cache-Control": "no-cache"}
    return Response(files("cortado.store.gateway").joinpath(name).read_bytes(), 200, headers, kind)
