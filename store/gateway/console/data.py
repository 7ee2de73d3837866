"""``/ui/data``: databases and tables; the rows of one at a time, or at two; one row and its history."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlencode

from starlette.responses import Response

from cortado.errors import CortadoError, DeadlineExceeded, InvalidArgument, NotFound
from cortado.schema.json_text import json_text
from cortado.store.catalog.descriptors import TableDescriptor
from cortado.store.client.documents import Document
from cortado.store.client.scans import Scan
from cortado.store.client.values import Key, parse_at
from cortado.store.client.watch import Change, Changed, Resolved
from cortado.store.clock.timestamp import ZERO, Timestamp
from cortado.store.gateway.calls import Call
from cortado.store.gateway.console.pages import page, tried
from cortado.store.gateway.console.parts import first_namespaces, part_of
from cortado.store.gateway.console.visitor import Visitor
from cortado.store.gateway.elements import next_of, token_of
from cortado.store.gateway.paths import is_kept, segment_of
from cortado.store.transfer.key_text import NULL_TEXT, parse_key

if TYPE_CHECKING:
    from cortado.store.client import AsyncClient

ROWS: Final = 50
ROWS_BYTES_MAX: Final = 1 << 20
CHANGES_MAX: Final = 200
HISTORY_S: Final = 5.0
HISTORY_MARKS_MS: Final = 50
"""How often the cluster says how far a history is told: its end is one of these marks, and the page waits for it."""
_ABSENT: Final = object()
_NUMBER: Final = re.compile(r"-?[0-9]{1,40}(\.[0-9]{1,40})?")


@dataclass(frozen=True, slots=True)
class Row:
    """A row's key as texts, and its document at one time, and at another where two are compared; None: not there."""

    key: tuple[str, ...]
    value: Mapping[str, Any] | None
    other: Mapping[str, Any] | None = None
    written: Timestamp = ZERO

    @property
    def path(self) -> str | None:
        """The key, as the rest of a path; None where a browser would ask for another one."""
        return "/".join(segment_of(each) for each in self.key) if all(map(is_kept, self.key)) else None

    @property
    def verdict(self) -> str:
        """What became of it from the first time to the second."""
        if self.value is None:
            return "added"
        if self.other is None:
            return "removed"
        return "same" if self.value == self.other else "changed"

    def differs(self, name: str) -> bool:
        """Whether a field has another value at the second time."""
        return self.value is not None and self.other is not None and _held(self.value, name) != _held(self.other, name)


@dataclass(frozen=True, slots=True)
class Event:
    """A commit that changed a row: ``fields`` are (name, before, after), None for what was not there."""

    ts: Timestamp
    kind: str
    fields: tuple[tuple[str, str | None, str | None], ...]


def _held(value: Mapping[str, Any], path: str) -> Any:
    found: Any = value
    for name in path.split("."):
        found = found.get(name, _ABSENT) if isinstance(found, Mapping) else _ABSENT
    return found


def _texts(value: Mapping[str, Any], descriptor: TableDescriptor) -> tuple[str, ...]:
    """The parts of a document's key, as :func:`parse_key` reads them."""
    parts = (_held(value, each.path) for each in descriptor.key)
    return tuple(
        NULL_TEXT if each is None or each is _ABSENT else each if isinstance(each, str) else json_text(each)
        for each in parts
    )


async def listing(call: Call, visitor: Visitor) -> Response:
    """Databases with their tables, and namespaces."""
    client = call.client
    databases, tables, namespaces, dropped = await asyncio.gather(
        client.databases(), client.tables(), tried(first_namespaces(client)), tried(client.dropped())
    )
    by_database: dict[str, list[TableDescriptor | None]] = {name: [] for name in databases}
    for each in tables:
        by_database.setdefault(each.database, []).append(each)
    # A database without a table is an entry, too.
    entries = [(name, table) for name, listed in by_database.items() for table in listed or (None,)]
    part = part_of(call, entries, lambda entry: entry[0] if entry[1] is None else entry[1].full_name)
    return page(
        visitor,
        "data.html",
        area="data",
        part=part,
        databases=[(name, [each for _, each in group if each]) for name, group in groupby(part.items, itemgetter(0))],
        namespaces=namespaces,
        dropped=dropped,
    )


async def rows(call: Call, visitor: Visitor) -> Response:
    """Rows of a table, at one time or at two."""
    client = call.client
    table = call.table(client)
    at, other = call.text("at") or None, call.text("compare") or None
    descriptor, now = await asyncio.gather(table.descriptor(), client.now())
    oldest = await _oldest(client, descriptor)
    found: list[Row] | CortadoError
    token = b""
    try:
        found, token = await _rows(call, at)
        if other is not None:
            found = await _compared(call, found, at, other)
    except CortadoError as error:
        found = error
    asked = {name: call.text(name) for name in ("query", "index", "at", "compare", "order")}
    more = next_of(token)
    return page(
        visitor,
        "rows.html",
        area="data",
        table=descriptor,
        here=f"/ui/data/{descriptor.database}/{descriptor.name}",
        rows=found,
        columns=_columns(found, descriptor),
        numeric=_numeric(found),
        asked=asked,
        oldest=oldest,
        now=now,
        shown_ms=_shown_ms(at, now),
        next=urlencode({**{name: each for name, each in asked.items() if each}, "page": more}) if more else "",
        is_continued=bool(call.text("page")),
    )


def _shown_ms(at: str | None, now: Timestamp) -> int:
    """Where the slider stands."""
    try:
        found = now if at is None else parse_at(at, "at")
    except CortadoError:
        return now.wall_ms
    return found.wall_ms if isinstance(found, Timestamp) else int(found.timestamp() * 1000)


async def _oldest(client: AsyncClient, descriptor: TableDescriptor) -> Timestamp:
    """From when on the table can be read."""
    kept = await tried(client.collection.status())
    safepoint = ZERO if isinstance(kept, CortadoError) else kept.tables.get(descriptor.full_name, kept.safepoint)
    return max(safepoint, descriptor.named_ts)


def _scan(call: Call, at: str | None) -> Scan:
    if call.text("order") not in (None, "", "up", "down"):
        raise InvalidArgument("order", "must be up or down", str(call.text("order")))
    return Scan(
        index=call.text("index") or None,
        filter=call.text("query") or None,
        reverse=call.text("order") == "down",
        at=at,
        with_versions=True,
    )


async def _rows(call: Call, at: str | None) -> tuple[list[Row], bytes]:
    table, descriptor = call.table(call.client), await call.table(_then(call, at)).descriptor()
    found, rest = await table.open_page(_scan(call, at), token_of(call), rows_max=ROWS, bytes_max=ROWS_BYTES_MAX)
    return [_row(each, descriptor) for each in found], rest


def _row(document: Document, descriptor: TableDescriptor) -> Row:
    value = document.to_json()
    return Row(_texts(value, descriptor), value, written=document.ts)


def _then(call: Call, at: str | None) -> AsyncClient:
    return call.client if at is None else call.client.at(at)


async def _compared(call: Call, first: list[Row], at: str | None, other: str) -> list[Row]:
    """The rows that either time has on its page, each as it was at both."""
    second, _ = await _rows(call, None if other == "now" else other)
    keys = list(dict.fromkeys([each.key for each in first] + [each.key for each in second]))
    before = await _values(call, keys, at)
    after = await _values(call, keys, None if other == "now" else other)
    return [Row(key, before[key], after[key]) for key in keys]


async def _values(
    call: Call, keys: Sequence[tuple[str, ...]], at: str | None
) -> dict[tuple[str, ...], Mapping[str, Any] | None]:
    table = call.table(_then(call, at))
    parts = (await table.descriptor()).key
    found = await table.get_many([parse_key(each, parts) for each in keys])
    return {key: None if each is None else each.to_json() for key, each in zip(keys, found, strict=True)}


def _columns(found: list[Row] | CortadoError, descriptor: TableDescriptor) -> list[str]:
    """The fields of the rows, those that hold the key first."""
    seen: dict[str, None] = dict.fromkeys(each.path.partition(".")[0] for each in descriptor.key)
    for each in [] if isinstance(found, CortadoError) else found:
        seen.update(dict.fromkeys([*(each.value or ()), *(each.other or ())]))
    return list(seen)


def _numeric(found: list[Row] | CortadoError) -> set[str]:
    """The fields that hold nothing but numbers, also those that JSON has as text: they stand right in their column."""
    held: dict[str, bool] = {}
    for each in [] if isinstance(found, CortadoError) else found:
        for name, value in [*(each.value or {}).items(), *(each.other or {}).items()]:
            if value is not None:
                held[name] = held.get(name, True) and _is_number(value)
    return {name for name, is_it in held.items() if is_it}


def _is_number(value: Any) -> bool:
    if isinstance(value, str):
        return _NUMBER.fullmatch(value) is not None
    return isinstance(value, int | float) and not isinstance(value, bool)


async def row(call: Call, visitor: Visitor) -> Response:
    """One row, and what became of it."""
    client, at = call.client, call.text("at") or None
    table = call.table(client)
    descriptor = await table.descriptor()
    key = parse_key(call.rest("key"), descriptor.key)
    found, now, oldest = await asyncio.gather(
        call.table(_then(call, at)).get(key), client.now(), _oldest(client, descriptor)
    )
    history = await tried(_history(call, key, oldest, now))
    if found is None and (isinstance(history, CortadoError) or not history[0]):
        raise NotFound("document", f"{'/'.join(call.rest('key'))} in table {descriptor.full_name}")
    return page(
        visitor,
        "row.html",
        area="data",
        table=descriptor,
        here=f"/ui/data/{descriptor.database}/{descriptor.name}",
        key=call.rest("key"),
        found=found,
        at=at,
        history=history,
        oldest=oldest,
    )


async def _history(call: Call, key: Key, oldest: Timestamp, now: Timestamp) -> tuple[list[Event], bool]:
    """The last commits that changed the row, the newest first, and whether there are more."""
    events: list[Event] = []
    table = call.table(call.client)
    watch = table.watch(
        prefix=key, after=oldest, until=now, initial_state=True, with_previous=True, resolved_ms=HISTORY_MARKS_MS
    )
    try:
        async with watch, asyncio.timeout(HISTORY_S):
            async for event in watch:
                if not isinstance(event, Resolved):
                    events.append(_event(event))
                    del events[: -CHANGES_MAX - 1]
    except TimeoutError:
        raise DeadlineExceeded("the history did not come in time", round(HISTORY_S * 1000)) from None
    events.reverse()
    return events[:CHANGES_MAX], len(events) > CHANGES_MAX


def _event(change: Change[Key, Document]) -> Event:
    before = {} if change.previous is None else change.previous.to_json()
    after = change.value.to_json() if isinstance(change, Changed) else {}
    kind = "deleted" if not isinstance(change, Changed) else "changed" if before else "written"
    names = [each for each in dict.fromkeys([*before, *after]) if before.get(each, _ABSENT) != after.get(each, _ABSENT)]
    fields = tuple((name, _text(before, name), _text(after, name)) for name in names)
    return Event(change.ts, kind, fields)


def _text(value: Mapping[str, Any], name: str) -> str | None:
    return json_text(value[name]) if name in value else None
