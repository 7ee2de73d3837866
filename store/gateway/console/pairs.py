"""``/ui/pairs``: the pairs of a namespace, by their keys, at one time; one of them and its history.

A value is bytes. Its form is guessed, or chosen by the visitor: text, hexadecimal, JSON.
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, get_args
from urllib.parse import urlencode

from starlette.responses import Response

from cortado.errors import CortadoError, DeadlineExceeded, InvalidArgument, NotFound
from cortado.schema.json_text import json_text, parse_json
from cortado.store.client.kv import KvPair, range_of
from cortado.store.client.watch import Changed, Resolved
from cortado.store.clock.timestamp import ZERO, Timestamp
from cortado.store.gateway.calls import Call
from cortado.store.gateway.console.pages import page, tried
from cortado.store.gateway.console.visitor import Visitor
from cortado.store.gateway.elements import next_of, token_of
from cortado.store.gateway.paths import is_kept, segment_of
from cortado.store.keys.names import check_namespace, shown
from cortado.store.transfer.byte_text import bytes_to_text, parse_bytes

if TYPE_CHECKING:
    from cortado.store.client import AsyncClient

Form: TypeAlias = Literal["auto", "text", "hex", "json"]
FORMS: Final[tuple[Form, ...]] = get_args(Form)

ROWS: Final = 50
CHANGES_MAX: Final = 100
HISTORY_S: Final = 5.0
HISTORY_MARKS_MS: Final = 50
"""How often the cluster says how far a history is told: its end is one of these marks, and the page waits for it."""
SHOWN_BYTES_MAX: Final = 64 << 10
"""Bytes of a value that are shown. Longer JSON is shown as text."""
BRIEF_BYTES_MAX: Final = 512
"""Bytes of a value that are shown in a list or a history."""
INDENTED_CHARS_MAX: Final = 4 * SHOWN_BYTES_MAX
"""The longest JSON that is shown on many lines."""


@dataclass(frozen=True, slots=True)
class Shown:
    """A value as text, in the form that was chosen, and how many bytes of it are left out."""

    form: Form
    text: str
    left_out: int


@dataclass(frozen=True, slots=True)
class Event:
    """A commit that changed a pair; ``value`` is None for a deletion."""

    ts: Timestamp
    value: Shown | None
    size: int


def shown_as(value: bytes, form: Form, bytes_max: int, *, indent: int | None = None) -> Shown:
    """Return the value as text, JSON on one line without an ``indent``.

    Invalid JSON, and bytes for which ``auto`` finds no better form, are shown as bytes are written elsewhere: printable
    UTF-8 as it is, every other byte as an escape.
    """
    cut = value[:bytes_max]
    left_out = len(value) - len(cut)
    if form == "hex":
        return Shown("hex", cut.hex(" "), left_out)
    if form in ("auto", "json") and not left_out:
        pretty = _json(value, indent, is_sure=form == "json")
        if pretty is not None:
            return Shown("json", pretty, 0)
    if form == "auto" and not _is_text(cut, is_whole=not left_out):
        return Shown("hex", cut.hex(" "), left_out)
    return Shown("text", bytes_to_text(cut), left_out)


def _json(value: bytes, indent: int | None, *, is_sure: bool) -> str | None:
    """Return the value as JSON; None if it is no JSON, and unless it ``is_sure``, for a bare number or word."""
    if not is_sure and value[:1] not in (b"{", b"["):
        return None
    try:
        read = parse_json(value.decode(), "value")
        pretty = json_text(read) if indent is None else _indented(read, indent)
    except (ValueError, InvalidArgument):
        # Numbers that JSON reads and does not write, such as 1e999, are ValueErrors.
        return None
    return pretty


def _indented(value: Any, indent: int) -> str:
    """Return JSON on many lines; on one, if most of it would be spaces before deeply nested values."""
    size = 0
    for piece in json.JSONEncoder(indent=indent).iterencode(value):
        size += len(piece)
        if size > INDENTED_CHARS_MAX:
            return json_text(value)
    return json_text(value, indent=indent)


def _is_text(value: bytes, *, is_whole: bool) -> bool:
    try:
        text = value.decode()
    except UnicodeDecodeError as error:
        if is_whole or error.start < len(value) - 3:
            return False
        # The cut may have left a part of a character.
        text = value[: error.start].decode()
    return all(each.isprintable() or each in "\n\r\t" for each in text)


def _path(namespace: str, key: bytes) -> str:
    """Return the path of a pair's page."""
    return f"/ui/pairs/{namespace}/{segment_of(key)}"


def _form(call: Call) -> Form:
    given = call.text("as") or "auto"
    found = next((each for each in FORMS if each == given), None)
    if found is None:
        raise InvalidArgument("as", f"must be one of {', '.join(FORMS)}", shown(given))
    return found


async def _oldest(client: AsyncClient) -> Timestamp:
    """Return the time from which on pairs can be read."""
    kept = await tried(client.admin.gc.status())
    return ZERO if isinstance(kept, CortadoError) else kept.safepoint


async def listing(call: Call, visitor: Visitor) -> Response:
    """Return the page of the pairs whose keys begin with a prefix."""
    client, namespace, form = call.client, check_namespace(call.name("namespace")), _form(call)
    begins, at = call.text("prefix") or "", call.text("at") or None
    within = range_of(b"", b"", parse_bytes(begins, "prefix"))
    now, oldest, found = await asyncio.gather(
        client.now(),
        _oldest(client),
        tried(
            client.kv(namespace)._open_page(
                within, token_of(call), rows_max=ROWS, reverse=False, at=at, keys_only=False
            )
        ),
    )
    pairs, token = ([], b"") if isinstance(found, CortadoError) else found
    asked = {name: call.text(name) for name in ("prefix", "at", "as")}
    more = next_of(token)
    return page(
        visitor,
        "pairs.html",
        area="data",
        namespace=namespace,
        forms=FORMS,
        form=form,
        asked=asked,
        error=found if isinstance(found, CortadoError) else None,
        pairs=[_row(namespace, each, form) for each in pairs],
        oldest=oldest,
        now=now,
        next=urlencode({**{name: each for name, each in asked.items() if each}, "page": more}) if more else "",
        is_continued=bool(call.text("page")),
    )


def _row(namespace: str, pair: KvPair, form: Form) -> dict[str, object]:
    return {
        "key": bytes_to_text(pair.key),
        "path": _path(namespace, pair.key) if is_kept(pair.key) else None,
        "value": shown_as(pair.value, form, BRIEF_BYTES_MAX),
        "size": len(pair.value),
        "written": Timestamp.parse(pair.etag),
    }


async def pair(call: Call, visitor: Visitor) -> Response:
    """Return the page of one pair, with its history."""
    client, namespace, form = call.client, check_namespace(call.name("namespace")), _form(call)
    key, at = call.rest_bytes("key"), call.text("at") or None
    found, now, oldest = await asyncio.gather(client.kv(namespace).get(key, at=at), client.now(), _oldest(client))
    history = await tried(_history(client, namespace, key, form, oldest, now))
    if found is None and (isinstance(history, CortadoError) or not history[0]):
        raise NotFound("key", f"{bytes_to_text(key)} in namespace {namespace}")
    return page(
        visitor,
        "pair.html",
        area="data",
        namespace=namespace,
        key=bytes_to_text(key),
        whole=f"/v1/kv/{_path(namespace, key).removeprefix('/ui/pairs/')}",
        found=found,
        written=None if found is None else Timestamp.parse(found.etag),
        value=None if found is None else shown_as(found.value, form, SHOWN_BYTES_MAX, indent=2),
        forms=FORMS,
        at=at,
        history=history,
        oldest=oldest,
    )


async def _history(
    client: AsyncClient, namespace: str, key: bytes, form: Form, oldest: Timestamp, now: Timestamp
) -> tuple[list[Event], bool]:
    """Return the last commits that changed the pair, the newest first, and whether there are more."""
    events: list[Event] = []
    watch = client.kv(namespace).watch(
        key, key + b"\0", after=oldest, until=now, initial_state=True, resolved_ms=HISTORY_MARKS_MS
    )
    try:
        async with watch, asyncio.timeout(HISTORY_S):
            async for event in watch:
                if isinstance(event, Resolved):
                    continue
                value = event.value if isinstance(event, Changed) else None
                told = None if value is None else shown_as(value, form, BRIEF_BYTES_MAX)
                events.append(Event(event.ts, told, len(value or b"")))
                del events[: -CHANGES_MAX - 1]
    except TimeoutError:
        raise DeadlineExceeded("the history did not come in time", round(HISTORY_S * 1000)) from None
    events.reverse()
    return events[:CHANGES_MAX], len(events) > CHANGES_MAX
