"""The pages below ``/ui``, a row each, and the files that they load."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from importlib.resources import files
from typing import Final, TypeAlias

from starlette.responses import Response

from cortado.errors import CortadoError, InvalidArgument, Unauthenticated
from cortado.store.gateway.calls import Call, Operation, Parameter
from cortado.store.gateway.console import calls, changes, cluster, data, pairs, roles, schemas
from cortado.store.gateway.console.acts import serving
from cortado.store.gateway.console.forms import check_own
from cortado.store.gateway.console.pages import HEADERS, HTML, failed
from cortado.store.gateway.console.parts import FIND
from cortado.store.gateway.console.samples import Samples
from cortado.store.gateway.console.visitor import Visitor, visitor_of
from cortado.store.gateway.elements import PAGE
from cortado.store.gateway.problems import Refused

ROOT: Final = "/ui"
Page: TypeAlias = Callable[[Call, Visitor], Awaitable[Response]]

_FILES: Final = {"console.css": "text/css", "console.js": "text/javascript", "icon.svg": "image/svg+xml"}
_ROWS: Final = (
    Parameter("filter", "Only rows for which this is true, in the filter grammar."),
    Parameter("index", "By this index: its order."),
    Parameter("order", "up or down."),
    Parameter("at", "As of a timestamp or a time; empty: now."),
    Parameter("compare", "And as of another one, side by side; now for the newest."),
    PAGE,
)
_PAIR: Final = (_ROWS[3], Parameter("as", "Values as auto, text, hex or json."))
_PAIRS: Final = (Parameter("prefix", "Keys that begin with these bytes."), *_PAIR, PAGE)
_SUBJECT: Final = (Parameter("subject", "The page of a subject that is not there yet."),)
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
    Parameter("within", "Measure for this many seconds; default: since its start.", kind="integer"),
    Parameter("sort", "By method, calls, failed, rate, p50 or p99; default: calls."),
    Parameter("methods", "all: those of tools and of the clients' own plumbing too."),
)


def operations(samples: Samples) -> list[Operation]:
    """Return the pages and the files."""
    pages = [
        _page("", partial(cluster.cluster, samples), "the cluster"),
        _page("/data", data.listing, "databases and tables", FIND),
        _page("/data/{database}/{table}", data.rows, "the rows of a table", _ROWS),
        _page("/data/{database}/{table}/{key:path}", data.row, "a row and its history", _ROWS[3:4]),
        _page("/pairs/{namespace}", pairs.listing, "the pairs of a namespace", _PAIRS),
        _page("/pairs/{namespace}/{key:path}", pairs.pair, "a pair and its history", _PAIR),
        _page("/schemas", schemas.listing, "subjects", (*_SUBJECT, *FIND)),
        _page("/schemas/{subject}", schemas.subject, "the versions of a schema", _VERSIONS),
        _page("/changes", changes.changes, "a live tail of changes", _CHANGES),
        _page("/calls", partial(calls.calls, samples), "the calls of a node", _CALLS),
        _page("/roles", roles.roles, "principals and their rights", FIND),
        _page("/acts/{act}", serving.show, "what an act would do", serving.TARGETS),
        _form("/schemas/{subject}", schemas.verdict, "the verdict on a schema; nothing is registered"),
        _form("/acts/{act}", serving.act, "an act", serving.TARGETS),
        _form("/sign-out", leave, "the browser forgets the credential"),
    ]
    served = [
        Operation("GET", f"{ROOT}/{name}", partial(_file, name, kind), f"The console: {name}.", gives={200: (kind,)})
        for name, kind in _FILES.items()
    ]
    return [*served, *pages]


def _page(path: str, handler: Page, what: str, parameters: tuple[Parameter, ...] = ()) -> Operation:
    return _operation("GET", path, handler, what, parameters)


def _form(path: str, handler: Page, what: str, parameters: tuple[Parameter, ...] = ()) -> Operation:
    return _operation("POST", path, handler, what, parameters, (schemas.FORM,))


def _operation(
    method: str, path: str, handler: Page, what: str, parameters: tuple[Parameter, ...], takes: tuple[str, ...] = ()
) -> Operation:
    async def answer(call: Call) -> Response:
        visitor = await visitor_of(call)
        try:
            return await handler(call, visitor)
        except Unauthenticated:
            raise
        except (CortadoError, Refused) as error:
            return failed(error, visitor)

    summary = f"The console: {what}."
    return Operation(method, ROOT + path, answer, summary, parameters, takes, {200: (HTML,)}, failed)


async def leave(call: Call, visitor: Visitor) -> Response:
    """Refuse the visitor as not signed in: that makes a browser forget the credential that it has sent so far."""
    check_own(call.headers)
    if not visitor.name:
        raise InvalidArgument("visitor", "must have signed in to sign out")
    raise Unauthenticated("you have signed out; the next sign-in begins anew")


async def _file(name: str, kind: str, _: Call) -> Response:
    content = files("cortado.store.gateway.console").joinpath(name).read_bytes()
    return Response(content, 200, {**HEADERS, "Cache-Control": "no-cache"}, kind)
