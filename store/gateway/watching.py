"""Changes as server-sent events: ``GET /v1/db/{database}/{table}:watch``, ``GET /v1/kv/{namespace}:watch``.

::

    event: put
    data: {"timestamp": "0.1763643600000.2", "key": ["tea"], "document": {"id": "tea", "left": 8}}

    event: resolved
    id: 0.1763643601000.0
    data: {"timestamp": "0.1763643601000.0"}

Events are in commit order. ``resolved`` says that every change up to its timestamp has been sent; only it has an
``id``. A browser that reconnects sends the last ``id`` as ``Last-Event-ID`` and gets all later changes. Some come a
second time, the initial state does not. An event is sent at least every second, so that a reader can detect a dead
connection.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import Any, Final, TypeVar

from starlette.responses import Response

from cortado.errors import CortadoError, InvalidArgument
from cortado.schema.json_text import json_text
from cortado.store.client.values import At, parse_at
from cortado.store.client.watch import AsyncWatch, Change, Changed, Event, Resolved
from cortado.store.clock.timestamp import ZERO
from cortado.store.gateway.calls import SCHEMA_VERSION, Call, Operation, Parameter
from cortado.store.gateway.listings import PREFIX
from cortado.store.gateway.problems import problem
from cortado.store.gateway.streams import Stream, begun, check_stream
from cortado.store.transfer.byte_text import parse_bytes
from cortado.store.transfer.change_json import document_json, pair_json
from cortado.store.transfer.key_text import parse_key

K = TypeVar("K")
V = TypeVar("V")

_LOG: Final = logging.getLogger(__name__)

EVENTS: Final = "text/event-stream"

AFTER: Final = Parameter(
    "after", "Changes after this timestamp or time; beginning for all. Default: from now on.", field="options.after"
)
UNTIL: Final = Parameter(
    "until", "End with the changes of this timestamp or time. Default: no end.", field="options.until"
)
INITIAL: Final = Parameter("initialState", "First what there is at that time.", kind="boolean")
PREVIOUS: Final = Parameter("withPrevious", "With each change, the value that it replaced.", kind="boolean")
LAST_EVENT: Final = Parameter(
    "Last-Event-ID", "An id that was sent: the changes after it, whatever after and initialState say.", "header"
)


def operations() -> list[Operation]:
    """Return the rows for changes."""
    common = (AFTER, UNTIL, INITIAL, PREVIOUS, LAST_EVENT)
    gives = {200: (EVENTS,)}
    table, pairs = "/v1/db/{database}/{table}", "/v1/kv/{namespace}:watch"
    of_table, of_pairs = "Changes of documents whose keys begin with the path's.", "Changes of pairs."
    return [
        Operation("GET", table + "/{key:path}:watch", documents, of_table, (SCHEMA_VERSION, *common), gives=gives),
        Operation("GET", table + ":watch", documents, of_table, (SCHEMA_VERSION, *common), gives=gives),
        Operation("GET", pairs, namespace, of_pairs, (PREFIX, *common), gives=gives),
    ]


async def documents(call: Call) -> Response:
    """Return the changes of a table, or of a part of its keys."""
    call.wanted((EVENTS,))
    table, named = call.table(call.client), call.rest("key")
    prefix = parse_key(named, (await table.descriptor()).key, prefix=True) if named else None
    watch = table.watch(
        prefix=prefix,
        after=_after(call),
        until=_until(call),
        initial_state=_begins_with_state(call),
        with_previous=call.flag("withPrevious"),
    )
    return await _answer(call, watch, document_json)


async def namespace(call: Call) -> Response:
    """Return the changes of a namespace, or of the keys with a prefix."""
    call.wanted((EVENTS,))
    given = call.text("prefix")
    prefix = None if given is None else parse_bytes(given, "prefix")
    kv = call.client.kv(call.name("namespace"))
    watch = kv.watch(
        prefix=prefix,
        after=_after(call),
        until=_until(call),
        initial_state=_begins_with_state(call),
        with_previous=call.flag("withPrevious"),
    )
    return await _answer(call, watch, pair_json)


def _after(call: Call) -> At:
    last = call.header("Last-Event-ID")
    if last is not None:
        return parse_at(last, "Last-Event-ID")
    after = call.text("after")
    if after is None:
        return None
    return ZERO if after == "beginning" else parse_at(after, "after")


def _begins_with_state(call: Call) -> bool:
    """Return whether the watch begins with the state. A reader that reconnects was sent all of it: only ``resolved``
    has an id, and comes behind the state."""
    return call.flag("initialState") and LAST_EVENT.name not in call.headers


def _until(call: Call) -> At:
    until = call.text("until")
    return None if until is None else parse_at(until, "until")


async def _answer(call: Call, watch: AsyncWatch[K, V], as_json: Callable[[Change[K, V]], dict[str, Any]]) -> Response:
    """Return the stream, once its first event has come: an immediate refusal is answered as a problem."""
    check_stream(call)
    try:
        events = await begun(_events(watch, as_json))
    except InvalidArgument as error:
        if error.field == AFTER.field and LAST_EVENT.name in call.headers:
            error.field = LAST_EVENT.name
        raise
    return Stream(call.bounds, _with_problem(call, events), EVENTS)


async def _events(
    watch: AsyncWatch[K, V], as_json: Callable[[Change[K, V]], dict[str, Any]]
) -> AsyncGenerator[bytes, None]:
    async with watch:
        while text := await _next(watch, as_json):
            yield text


async def _next(watch: AsyncWatch[K, V], as_json: Callable[[Change[K, V]], dict[str, Any]]) -> bytes:
    """Empty at the end. The event, of some MiB maybe, is kept no longer than until it is text."""
    event = await anext(watch, None)
    return b"" if event is None else _event(event, as_json)


async def _with_problem(call: Call, events: AsyncGenerator[bytes, None]) -> AsyncGenerator[bytes, None]:
    async with aclosing(events):
        try:
            async for each in events:
                yield each
        except CortadoError as error:
            # The connection ends behind it; a caller that asks again gets a refusal as an answer of its own.
            _LOG.warning("a watch of %s ended: %s", call.operation.path, error)
            yield _text("problem", problem(error))


def _event(event: Event[K, V], as_json: Callable[[Change[K, V]], dict[str, Any]]) -> bytes:
    if isinstance(event, Resolved):
        return _text("resolved", {"timestamp": str(event.ts)}, str(event.ts))
    kind = "put" if isinstance(event, Changed) else "delete"
    return _text(kind, {"timestamp": str(event.ts), **as_json(event)})


def _text(kind: str, data: dict[str, Any], id: str = "") -> bytes:
    named = f"id: {id}\n" if id else ""
    return f"event: {kind}\n{named}data: {json_text(data)}\n\n".encode()
