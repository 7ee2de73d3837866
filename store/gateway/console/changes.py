"""``/ui/changes``: a live tail of a table or a namespace. The browser follows the events of
:mod:`cortado.store.gateway.watching` by itself."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING
from urllib.parse import quote

from starlette.responses import Response

from cortado.errors import CortadoError, InvalidArgument
from cortado.store.gateway.calls import Call
from cortado.store.gateway.console.pages import page, tried
from cortado.store.gateway.console.parts import first_namespaces, first_tables
from cortado.store.gateway.console.visitor import Visitor
from cortado.store.gateway.paths import is_kept
from cortado.store.keys.names import check_namespace, split_table_name
from cortado.store.transfer.byte_text import parse_bytes
from cortado.store.transfer.key_text import parse_key

if TYPE_CHECKING:
    from cortado.store.client import AsyncClient


async def changes(call: Call, visitor: Visitor) -> Response:
    """Return the page: the tables and namespaces to follow, and the followed one."""
    client = call.client
    tables, namespaces = await asyncio.gather(tried(first_tables(client)), tried(first_namespaces(client)))
    table, namespace, begins = call.text("table") or "", call.text("namespace") or "", call.text("prefix") or ""
    if table and namespace:
        raise InvalidArgument("namespace", "must not be given together with table", namespace)
    followed: str | CortadoError = ""
    try:
        if table:
            followed = await _of_table(client, table, begins)
        elif namespace:
            followed = _of_namespace(namespace, begins)
    except CortadoError as error:
        followed = error
    return page(
        visitor,
        "changes.html",
        area="changes",
        tables=tables,
        namespaces=namespaces,
        table=table,
        namespace=namespace,
        prefix=begins,
        followed=followed,
    )


async def _of_table(client: AsyncClient, name: str, begins: str) -> str:
    """Return the path of its events."""
    database, table = split_table_name(name)
    descriptor = await client.describe(name)
    parts = begins.split("/") if begins else []
    parse_key(parts, descriptor.key, prefix=True)
    if not all(is_kept(each) for each in parts):
        problem = "must have no part that is just dots: browsers take it out of a path, and would follow something else"
        raise InvalidArgument("prefix", problem, begins)
    below = "".join(f"/{quote(each, safe='')}" for each in parts)
    return f"/v1/db/{database}/{table}{below}:watch?withPrevious=true"


def _of_namespace(name: str, begins: str) -> str:
    parse_bytes(begins, "prefix")
    return f"/v1/kv/{check_namespace(name)}:watch?withPrevious=true" + (
        f"&prefix={quote(begins, safe='')}" if begins else ""
    )
