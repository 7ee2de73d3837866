"""Many documents or pairs: those whose keys begin as the path says, in pages or as lines.

::

    GET /v1/db/{database}/{table}                    all, in the order of the key
    GET /v1/db/{database}/{table}/{part}/{part}      those whose key begins so (all parts: one document)
    GET ...?index=by_name                            the parts, start and end are those of the index
    GET ...?filter=left > 10 and name = 'tea'         in the filter grammar
    GET /v1/kv/{namespace}?prefix=user/              pairs
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable
from contextlib import aclosing
from functools import partial
from typing import Any, Final

from starlette.responses import Response

from cortado.errors import InvalidArgument, NotFound
from cortado.store.client.documents import Document
from cortado.store.client.kv import KvPair, range_of
from cortado.store.client.scans import Scan
from cortado.store.client.table import AsyncTable
from cortado.store.gateway.calls import AT, COLUMNS, JSON, LONGS, SCHEMA_VERSION, Call, Operation, Parameter
from cortado.store.gateway.containers import CONTAINER, container_response
from cortado.store.gateway.elements import (
    END,
    LIMIT,
    LINES,
    PAGE,
    PAGE_BYTES_MAX,
    REVERSE,
    START,
    limit_of,
    lines_response,
    page_response,
    token_of,
)
from cortado.store.gateway.values import document_json
from cortado.store.keys.types import KeyPart
from cortado.store.transfer.byte_text import bytes_to_text, parse_bytes
from cortado.store.transfer.key_text import parse_bound, parse_key

TABLE: Final = "/v1/db/{database}/{table}"

FILTER: Final = Parameter("filter", "Only documents for which this is true, in the filter grammar.")
INDEX: Final = Parameter("index", "By this index: its order, its parts.")
PREFIX: Final = Parameter("prefix", r"Keys that begin so; \xNN is a byte.")
KEYS_ONLY: Final = Parameter("keysOnly", "Leave the values out.", kind="boolean")

LISTING: Final = (FILTER, INDEX, START, END, REVERSE, LIMIT, PAGE)
"""The parameters of a call for several documents, beside those of a call for one."""


def operations() -> list[Operation]:
    """Return the rows for listings, beside those of :mod:`cortado.store.gateway.documents` for both."""
    return [
        Operation(
            "GET",
            TABLE,
            documents,
            "The documents of a table, in pages, as lines or as an Avro file.",
            (AT, SCHEMA_VERSION, COLUMNS, LONGS, *LISTING),
            gives={200: (JSON, LINES, CONTAINER)},
        ),
        Operation(
            "GET",
            "/v1/kv/{namespace}",
            pairs,
            "The pairs of a namespace, in pages or as lines.",
            (AT, PREFIX, START, END, REVERSE, KEYS_ONLY, LIMIT, PAGE),
            gives={200: (JSON, LINES)},
        ),
    ]


async def documents(call: Call) -> Response:
    """Return the documents whose keys begin as the path says."""
    table = call.table(call.client)
    scan = _scan(call, await _parts(call))
    wanted = call.wanted((JSON, LINES, CONTAINER))
    if wanted == LINES:
        _check_no_pages(call, LINES)
        return await lines_response(call, _document_lines(call, table, scan))
    if wanted == CONTAINER:
        _check_no_pages(call, CONTAINER)
        return await _container(call, table, scan)
    found, rest = await table._open_page(scan, token_of(call), rows_max=limit_of(call), bytes_max=PAGE_BYTES_MAX)
    return page_response([_element(call, each) for each in found], rest)


async def _document_lines(call: Call, table: AsyncTable, scan: Scan) -> AsyncGenerator[Iterable[Any], None]:
    async with aclosing(await table._open_scan(scan)) as pages:
        async for page in pages:
            yield map(partial(_element, call), page)


async def _container(call: Call, table: AsyncTable, scan: Scan) -> Response:
    if scan.columns is not None:
        raise InvalidArgument("columns", f"must not be given together with Accept: {CONTAINER}")
    version, schema = await table.codec.schema()
    # The whole file has one schema, also if another version is registered meanwhile.
    pinned = call.client.table(table.full_name, schema_version=version.version)
    return await container_response(call, schema, await pinned._open_scan(scan))


def _element(call: Call, document: Document) -> dict[str, Any]:
    return {"etag": document.etag, "value": document_json(call, document)}


async def _parts(call: Call) -> tuple[KeyPart, ...]:
    """Return those that the path, start and end speak of, as of the time that is read."""
    client, index = call.reader(), call.text("index")
    table = call.table(client)
    descriptor = await table.descriptor()
    if index is None:
        return descriptor.key
    found = descriptor.index(index) or (await client.describe(table.full_name)).index(index)
    if found is None:
        raise NotFound("index", f"{index} of table {table.full_name}")
    return found.parts


def _scan(call: Call, parts: tuple[KeyPart, ...]) -> Scan:
    prefix = call.rest("key")
    start, end = call.text("start"), call.text("end")
    if prefix and (start is not None or end is not None):
        raise InvalidArgument("start" if start is not None else "end", "must not be given together with parts of a key")
    nullable = 0 if call.text("index") is None else len(parts)
    return Scan(
        start=parse_bound(start, parts, "start", nullable=nullable),
        end=parse_bound(end, parts, "end", nullable=nullable),
        prefix=parse_key(prefix, parts, prefix=True, nullable=nullable) if prefix else None,
        index=call.text("index"),
        filter=call.text("filter"),
        columns=call.columns(),
        reverse=call.flag("reverse"),
        at=call.text("at"),
        with_versions=True,
    )


async def pairs(call: Call) -> Response:
    """Return the pairs of a range of a namespace."""
    namespace = call.client.kv(call.name("namespace"))
    start, end, prefix = _bytes(call, "start") or b"", _bytes(call, "end") or b"", _bytes(call, "prefix")
    keys_only, reverse, at = call.flag("keysOnly"), call.flag("reverse"), call.text("at")
    if call.wanted((JSON, LINES)) == LINES:
        _check_no_pages(call, LINES)
        found = namespace._scan_pages(
            start or b"", end or b"", prefix=prefix, reverse=reverse, at=at, keys_only=keys_only
        )
        return await lines_response(call, _pair_lines(found, keys_only=keys_only))
    within = range_of(start or b"", end or b"", prefix)
    page, rest = await namespace._open_page(
        within, token_of(call), rows_max=limit_of(call), reverse=reverse, at=at, keys_only=keys_only
    )
    return page_response([_pair_json(each, keys_only=keys_only) for each in page], rest)


async def _pair_lines(
    pages: AsyncGenerator[Iterable[KvPair], None], *, keys_only: bool
) -> AsyncGenerator[Iterable[Any], None]:
    async with aclosing(pages):
        async for page in pages:
            yield map(partial(_pair_json, keys_only=keys_only), page)


def _pair_json(pair: KvPair, *, keys_only: bool) -> dict[str, Any]:
    shown = {"key": bytes_to_text(pair.key)}
    if not keys_only:
        shown["value"] = bytes_to_text(pair.value)
    return {**shown, "etag": pair.etag}


def _bytes(call: Call, name: str) -> bytes | None:
    given = call.text(name)
    return None if given is None else parse_bytes(given, name)


def _check_no_pages(call: Call, kind: str) -> None:
    for name in ("page", "limit"):
        if call.text(name) is not None:
            raise InvalidArgument(name, f"must not be given together with Accept: {kind}, which has no pages")
