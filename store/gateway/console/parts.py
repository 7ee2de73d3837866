"""Long lists, a part of them at a time: by a piece of their names, and from a place on; or their beginning alone."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar
from urllib.parse import urlencode

from cortado.proto.v1 import kv_pb2, tables_pb2
from cortado.store.client.stubs import Method, Stubs
from cortado.store.gateway.calls import Call, Parameter

if TYPE_CHECKING:
    from cortado.store.client import AsyncClient

T = TypeVar("T")

SHOWN_MAX: Final = 200
_PLACE_MAX: Final = 10_000_000
FIND: Final = (
    Parameter("find", "Only names that contain this."),
    Parameter("from", "From this place of the list on.", kind="integer"),
)


@dataclass(frozen=True, slots=True)
class Part(Generic[T]):
    """``items`` from the place ``begin`` on, of ``count`` whose names contain ``find``. ``before`` and ``behind`` are
    the queries of the parts beside it, empty at an end."""

    items: Sequence[T]
    begin: int
    count: int
    find: str
    before: str = ""
    behind: str = ""


def part_of(call: Call, items: Sequence[T], name: Callable[[T], str]) -> Part[T]:
    """Return the part that the call asks for."""
    find, begin = (call.text("find") or "").strip(), call.number("from", 0, _PLACE_MAX) or 0
    found = [each for each in items if find in name(each)] if find else items

    if begin >= len(found):
        # Behind the end, as of a list that became shorter: its last part.
        begin = max(len(found) - 1, 0) // SHOWN_MAX * SHOWN_MAX

    def query(place: int) -> str:
        return urlencode({**({"find": find} if find else {}), "from": place})

    before = query(max(begin - SHOWN_MAX, 0)) if begin else ""
    behind = query(begin + SHOWN_MAX) if begin + SHOWN_MAX < len(found) else ""
    return Part(found[begin : begin + SHOWN_MAX], begin, len(found), find, before, behind)


async def first_tables(client: AsyncClient) -> list[str]:
    """Return the full names of one table more than a page shows, or of all."""
    found = await _first(client, Stubs.tables.ListTables, tables_pb2.ListTablesRequest(), attrgetter("tables"))
    return [f"{each.database}.{each.name}" for each in found]


async def first_namespaces(client: AsyncClient) -> list[str]:
    """Return one namespace more than a page shows, or all: to find each one costs the cluster a step of its own."""
    return await _first(client, Stubs.kv.ListNamespaces, kv_pb2.ListNamespacesRequest(), attrgetter("namespaces"))


async def _first(client: AsyncClient, method: Method, request: Any, listed: Callable[[Any], Iterable[T]]) -> list[T]:
    found: list[T] = []
    while len(found) <= SHOWN_MAX:
        request.page_size = SHOWN_MAX + 1 - len(found)
        reply = await client._open_call(method, request)
        found += listed(reply)
        # The cluster ends a page early if it becomes large, or takes long.
        if not reply.next_page_token:
            break
        request.page_token = reply.next_page_token
    return found
