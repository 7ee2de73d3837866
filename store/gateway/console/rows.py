"""The rows of a table as a page shows them: at one time, or what differs between two."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from cortado.errors import InvalidArgument, InvalidPageToken
from cortado.schema.json_text import json_text
from cortado.store.catalog.descriptors import TableDescriptor
from cortado.store.client.documents import Document
from cortado.store.client.scans import Scan
from cortado.store.clock.timestamp import ZERO, Timestamp
from cortado.store.gateway.calls import Call
from cortado.store.gateway.elements import token_of
from cortado.store.gateway.paths import is_kept, segment_of
from cortado.store.transfer.key_text import parse_key

if TYPE_CHECKING:
    from cortado.store.client import AsyncClient

ROWS: Final = 50
ROWS_BYTES_MAX: Final = 1 << 20
COMPARED_ROWS: Final = 500
"""How many rows of each time are compared at once."""
COMPARED_TIMES: Final = 5
"""How often a page goes on to look for what differs."""
ABSENT: Final = object()
_HEAD: Final = struct.Struct(">H")


@dataclass(frozen=True, slots=True)
class Row:
    """A row's key as texts, and its document at one time, and at another if two are compared; None: not there."""

    key: tuple[str, ...]
    value: Mapping[str, Any] | None
    other: Mapping[str, Any] | None = None
    written: Timestamp = ZERO

    @property
    def path(self) -> str | None:
        """The key, as the rest of a path; None if a browser would ask for another one."""
        return "/".join(segment_of(each) for each in self.key) if all(map(is_kept, self.key)) else None

    @property
    def verdict(self) -> str:
        """The difference between the first time and the second."""
        if self.value is None:
            return "added"
        if self.other is None:
            return "removed"
        return "same" if self.value == self.other else "changed"

    def differs(self, name: str) -> bool:
        """Return whether a field has another value at the second time."""
        return self.value is not None and self.other is not None and held(self.value, name) != held(self.other, name)


def held(value: Mapping[str, Any], path: str) -> Any:
    found: Any = value
    for name in path.split("."):
        found = found.get(name, ABSENT) if isinstance(found, Mapping) else ABSENT
    return found


def _texts(value: Mapping[str, Any], descriptor: TableDescriptor) -> tuple[str, ...]:
    """Return the parts of a document's key, as :func:`parse_key` reads them."""
    parts = (held(value, each.path) for each in descriptor.key)
    return tuple(each if isinstance(each, str) else json_text(each) for each in parts)


def _scan(call: Call, at: str | None) -> Scan:
    if call.text("order") not in (None, "", "up", "down"):
        raise InvalidArgument("order", "must be up or down", str(call.text("order")))
    return Scan(
        index=call.text("index") or None,
        filter=call.text("filter") or None,
        reverse=call.text("order") == "down",
        at=at,
        with_versions=True,
    )


async def rows_at(call: Call, at: str | None, token: bytes, rows_max: int = ROWS) -> tuple[list[Row], bytes]:
    """Return some rows of the scan that the call asks for, at a time or now, and the token of those behind them."""
    table, descriptor = call.table(call.client), await call.table(then(call, at)).descriptor()
    found, rest = await table._open_page(_scan(call, at), token, rows_max=rows_max, bytes_max=ROWS_BYTES_MAX)
    return [_row(each, descriptor) for each in found], rest


def _row(document: Document, descriptor: TableDescriptor) -> Row:
    value = document.to_json()
    return Row(_texts(value, descriptor), value, written=document.ts)


def then(call: Call, at: str | None) -> AsyncClient:
    """Return a client that reads at a time, or now."""
    return call.client if at is None else call.client.at(at)


@dataclass(frozen=True, slots=True)
class Differences:
    """The rows that differ between two times, and how many rows beside them were the same. ``token`` is the place
    of the next page, empty at the end."""

    rows: list[Row]
    same: int
    token: bytes


async def differences(call: Call, at: str | None, other: str | None) -> Differences:
    """Return the rows of the scan at either time that are not the same at both; None is now.

    Both scans are read side by side until a page is full, or some thousand rows were the same. If rows were added or
    removed, the two are not at the same key at a page's end: then a row may stand on two pages.
    """
    rows: list[Row] = []
    same, tokens = 0, _tokens_of(call)
    for _ in range(COMPARED_TIMES):
        found, tokens = await _piece(call, (at, other), tokens)
        rows += [each for each in found if each.verdict != "same"]
        same += sum(each.verdict == "same" for each in found)
        if tokens is None or len(rows) >= ROWS:
            break
    return Differences(rows, same, b"" if tokens is None else _HEAD.pack(len(tokens[0])) + b"".join(tokens))


def _tokens_of(call: Call) -> tuple[bytes, bytes] | None:
    """Return the tokens at which both scans go on; None at the beginning."""
    given = token_of(call)
    if not given:
        return None
    length = _HEAD.unpack_from(given)[0] if len(given) > _HEAD.size else len(given)
    both = given[_HEAD.size :]
    if length > len(both):
        raise InvalidPageToken("page", "must be the next of a page of this comparison")
    return both[:length], both[length:]


async def _piece(
    call: Call, times: tuple[str | None, str | None], tokens: tuple[bytes, bytes] | None
) -> tuple[list[Row], tuple[bytes, bytes] | None]:
    """Return some rows of each time, each as it was at both, and the tokens to go on with; None at the end of both."""
    pages: list[list[Row]] = []
    rest: list[bytes] = []
    for place, at in enumerate(times):
        has_ended = tokens is not None and not tokens[place]
        token = b"" if tokens is None else tokens[place]
        found, token = ([], b"") if has_ended else await rows_at(call, at, token, COMPARED_ROWS)
        pages.append(found)
        rest.append(token)
    before, after = ({each.key: each.value for each in found} for found in pages)
    before |= await _values(call, [key for key in after if key not in before], times[0])
    after |= await _values(call, [key for key in before if key not in after], times[1])
    rows = [Row(key, before[key], after[key]) for key in before]
    return rows, (rest[0], rest[1]) if any(rest) else None


async def _values(
    call: Call, keys: Sequence[tuple[str, ...]], at: str | None
) -> dict[tuple[str, ...], Mapping[str, Any] | None]:
    if not keys:
        return {}
    table = call.table(then(call, at))
    parts = (await table.descriptor()).key
    found = await table.get_many([parse_key(each, parts) for each in keys])
    return {key: None if each is None else each.to_json() for key, each in zip(keys, found, strict=True)}
