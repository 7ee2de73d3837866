"""``/ui/data``: databases and tables; the rows of one at a time, or at two; one row and its history."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlencode

from starlette.responses import Response

from cortado.errors import CortadoError, DeadlineExceeded, NotFound
from cortado.schema.json_text import json_text
from cortado.store.catalog.descriptors import TableDescriptor
from cortado.store.client.documents import Document
from cortado.store.client.sizes import TableSize
from cortado.store.client.values import Key, parse_at
from cortado.store.client.watch import Change, Changed, Resolved
from cortado.store.clock.timestamp import ZERO, Timestamp
from cortado.store.gateway.calls import Call
from cortado.store.gateway.console.pages import page, tried
from cortado.store.gateway.console.parts import first_namespaces, part_of
from cortado.store.gateway.console.rows import ABSENT, Row, differences, rows_at, then
from cortado.store.gateway.console.visitor import Visitor
from cortado.store.gateway.elements import next_of, token_of
from cortado.store.transfer.key_text import parse_key

if TYPE_CHECKING:
    from cortado.store.client import AsyncClient

CHANGES_MAX: Final = 200
HISTORY_S: Final = 5.0
SIZES_S: Final = 2.0
"""So long a page waits for sizes, and is shown without those that did not come."""
HISTORY_MARKS_MS: Final = 50
"""How often the cluster says how far a history is told: its end is one of these marks, and the page waits for it."""
_NUMBER: Final = re.compile(r"-?[0-9]{1,40}(\.[0-9]{1,40})?")


@dataclass(frozen=True, slots=True)
class Event:
    """A commit that changed a row: ``fields`` are (name, before, after), None for a missing field."""

    ts: Timestamp
    kind: str
    fields: tuple[tuple[str, str | None, str | None], ...]


async def listing(call: Call, visitor: Visitor) -> Response:
    """Databases with their tables, and namespaces."""
    client = call.client
    databases, tables, namespaces, dropped, of_databases = await asyncio.gather(
        client.databases(),
        client.tables(),
        tried(first_namespaces(client)),
        tried(client.dropped()),
        tried(client.with_timeout(SIZES_S).admin.sizes.databases()),
    )
    by_database: dict[str, list[TableDescriptor | None]] = {name: [] for name in databases}
    for each in tables:
        by_database.setdefault(each.database, []).append(each)
    # A database without a table is an entry, too.
    entries = [(name, table) for name, listed in by_database.items() for table in listed or (None,)]
    part = part_of(call, entries, lambda entry: entry[0] if entry[1] is None else entry[1].full_name)
    sizes = await _sizes(client, [table.full_name for _, table in part.items if table is not None])
    return page(
        visitor,
        "data.html",
        area="data",
        part=part,
        databases=[(name, [each for _, each in group if each]) for name, group in groupby(part.items, itemgetter(0))],
        sizes=sizes,
        database_sizes={} if isinstance(of_databases, CortadoError) else {each.name: each for each in of_databases},
        namespaces=namespaces,
        dropped=dropped,
    )


async def _sizes(client: AsyncClient, names: Iterable[str]) -> dict[str, TableSize]:
    """Return the sizes of the page's tables that are known in time."""
    brief = client.with_timeout(SIZES_S).admin.sizes
    found = await asyncio.gather(*(tried(brief.table(each)) for each in names))
    return {each.full_name: each for each in found if not isinstance(each, CortadoError)}


async def rows(call: Call, visitor: Visitor) -> Response:
    """Return rows of a table, at one time or at two."""
    client = call.client
    at, other = call.text("at") or None, call.text("compare") or None
    (descriptor, is_gone), now = await asyncio.gather(_described(call, at, other), client.now())
    oldest, sizes = await asyncio.gather(_oldest(client, descriptor), _sizes(client, [descriptor.full_name]))
    found: list[Row] | CortadoError
    token, same = b"", 0
    try:
        if other is None:
            found, token = await rows_at(call, at, token_of(call))
        else:
            differ = await differences(call, at, None if other == "now" else other)
            found, same, token = differ.rows, differ.same, differ.token
    except CortadoError as error:
        found = error
    asked = {name: call.text(name) for name in ("filter", "index", "at", "compare", "order")}
    more = next_of(token)
    return page(
        visitor,
        "rows.html",
        area="data",
        table=descriptor,
        is_gone=is_gone,
        size=sizes.get(descriptor.full_name),
        here=f"/ui/data/{descriptor.database}/{descriptor.name}",
        rows=found,
        same=same,
        columns=_columns(found, descriptor),
        numeric=_numeric(found),
        asked=asked,
        oldest=oldest,
        now=now,
        shown_ms=_shown_ms(at, now),
        next=urlencode({**{name: each for name, each in asked.items() if each}, "page": more}) if more else "",
        is_continued=bool(call.text("page")),
    )


async def _described(call: Call, *times: str | None) -> tuple[TableDescriptor, bool]:
    """Return the call's table and False. Of a dropped table, return it as of the first of ``times``, and True.

    Raises NotFound.
    """
    try:
        return await call.table(call.client).descriptor(), False
    except NotFound:
        then_at = next((each for each in times if each not in (None, "now")), None)
        if then_at is None:
            raise
        return await call.table(then(call, then_at)).descriptor(), True


def _shown_ms(at: str | None, now: Timestamp) -> int:
    """Return the time at which the slider stands."""
    try:
        found = now if at is None else parse_at(at, "at")
    except CortadoError:
        return now.wall_ms
    return found.wall_ms if isinstance(found, Timestamp) else int(found.timestamp() * 1000)


async def _oldest(client: AsyncClient, descriptor: TableDescriptor) -> Timestamp:
    """Return the time from which on the table can be read."""
    kept = await tried(client.admin.gc.status())
    safepoint = ZERO if isinstance(kept, CortadoError) else kept.tables.get(descriptor.full_name, kept.safepoint)
    return max(safepoint, descriptor.named_ts)


def _columns(found: list[Row] | CortadoError, descriptor: TableDescriptor) -> list[str]:
    """Return the fields of the rows, those that hold the key first."""
    seen: dict[str, None] = dict.fromkeys(each.path.partition(".")[0] for each in descriptor.key)
    for each in [] if isinstance(found, CortadoError) else found:
        seen.update(dict.fromkeys([*(each.value or ()), *(each.other or ())]))
    return list(seen)


def _numeric(found: list[Row] | CortadoError) -> set[str]:
    """Return the fields that hold nothing but numbers, also those that JSON has as text: they stand right in their
    column."""
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
    """Return the page of one row, with its history."""
    client, at = call.client, call.text("at") or None
    descriptor, is_gone = await _described(call, at)
    key = parse_key(call.rest("key"), descriptor.key)
    found, now, oldest = await asyncio.gather(
        call.table(then(call, at)).get(key), client.now(), _oldest(client, descriptor)
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
        is_gone=is_gone,
        key=call.rest("key"),
        found=found,
        at=at,
        history=history,
        oldest=oldest,
    )


async def _history(call: Call, key: Key, oldest: Timestamp, now: Timestamp) -> tuple[list[Event], bool]:
    """Return the last commits that changed the row, the newest first, and whether there are more."""
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
    before = {} if change.previous is None else _written(change.previous)
    after = _written(change.value) if isinstance(change, Changed) else {}
    kind = "deleted" if not isinstance(change, Changed) else "changed" if before else "written"
    names = [each for each in dict.fromkeys([*before, *after]) if before.get(each, ABSENT) != after.get(each, ABSENT)]
    fields = tuple((name, _text(before, name), _text(after, name)) for name in names)
    return Event(change.ts, kind, fields)


def _written(document: Document) -> dict[str, Any]:
    """Return the fields that existed when it was written. A field added later has a default now, and had no value."""
    known = {each.name for each in document.writer.record.fields}
    existed = {each.name for each in document.schema.record.fields if not known.isdisjoint((each.name, *each.aliases))}
    return {name: value for name, value in document.to_json().items() if name in existed}


def _text(value: Mapping[str, Any], name: str) -> str | None:
    return json_text(value[name]) if name in value else None
