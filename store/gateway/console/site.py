"""What is served below ``/ui``: a row for each page, and the files that they load."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from importlib.resources import files
from typing import Final

from starlette.responses import Response

from cortado.store.gateway.calls import Call
from cortado.store.gateway.console import calls, changes, cluster, data, schemas
from cortado.store.gateway.console.pages import HEADERS, HTML, failed
from cortado.store.gateway.elements import PAGE
from cortado.store.gateway.operations import Operation, Parameter

ROOT: Final = "/ui"

_FILES: Final = {"console.css": "text/css", "console.js": "text/javascript", "icon.svg": "image/svg+xml"}
_TABLE: Final = ROOT + "/data/{database}/{table}"
_SUBJECT: Final = ROOT + "/schemas/{subject}"
_ROWS: Final = (
    Parameter("query", "Only rows for which this is true, in the filter grammar."),
    Parameter("index", "By this index: its order."),
    Parameter("order", "up or down."),
    Parameter("at", "As of a timestamp or a time; empty: now."),
    Parameter("compare", "And as of another one, side by side; now for the newest."),
    PAGE,
)
_VERSIONS: Final = (
    Parameter("from", "The version to compare with.", kind="integer"),
    Parameter("to", "The version that is compared.", kind="integer"),
)
_CHANGES: Final = (
    Parameter("table", "The table to follow."),
    Parameter("namespace", "Or the namespace."),
    Parameter("prefix", "Keys that begin so: parts with slashes between them, or the bytes of a pair's key."),
)
_CALLS: Final = (
    Parameter("node", "Whose; default: the leader's."),
    Parameter("within", "Measure for so many seconds; default: since its start.", kind="integer"),
)


def operations() -> list[Operation]:
    """The pages and the files."""
    pages = [
        _page("", cluster.cluster, "the cluster"),
        _page("/data", data.listing, "databases and tables"),
        _page("/data/{database}/{table}", data.rows, "the rows of a table", _ROWS),
        _page("/data/{database}/{table}/{key:path}", data.row, "a row and its history", _ROWS[3:4]),
        _page("/schemas", schemas.listing, "subjects"),
        _page("/schemas/{subject}", schemas.subject, "the versions of a schema", _VERSIONS),
        _page("/changes", changes.changes, "a live tail of changes", _CHANGES),
        _page("/calls", calls.calls, "the calls of a node", _CALLS),
        Operation(
            "POST", _SUBJECT, schemas.verdict, "The console: the verdict on a schema; nothing is registered.",
            takes=(schemas.FORM,), gives={200: (HTML,)}, failed=failed,
        ),
    ]  # fmt: skip
    served = [
        Operation("GET", f"{ROOT}/{name}", partial(_file, name, kind), f"The console: {name}.", gives={200: (kind,)})
        for name, kind in _FILES.items()
    ]
    return [*served, *pages]


def _page(
    path: str, handler: Callable[[Call], Awaitable[Response]], what: str, parameters: tuple[Parameter, ...] = ()
) -> Operation:
    summary = f"The console: {what}."
    return Operation("GET", ROOT + path, handler, summary, parameters, gives={200: (HTML,)}, failed=failed)


async def _file(name: str, kind: str, _: Call) -> Response:
    content = files("cortado.store.gateway.console").joinpath(name).read_bytes()
    return Response(content, 200, {**HEADERS, "Cache-Control": "no-cache"}, kind)
