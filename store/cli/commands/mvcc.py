"""``cortado mvcc``: all versions of a key, as one node has stored them."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from typing import Annotated, Any, Final, TypeAlias

from cortado.proto.v1 import inspect_pb2 as pb
from cortado.store.cli.commands.key import EntryArgument, IndexArgument, PartsArgument
from cortado.store.cli.commands.kv import KeyArgument, NamespaceArgument
from cortado.store.cli.commands.table import TableArgument
from cortado.store.cli.failures import DAMAGE, CheckFailed
from cortado.store.cli.inspecting import DataDirOption, index_of, inspected, parse_stored_key, shown_ts, table_of
from cortado.store.cli.numbers import whole
from cortado.store.cli.options import Argument, Option
from cortado.store.cli.parse import parse_key
from cortado.store.cli.render import count
from cortado.store.cli.session import Session
from cortado.store.cli.tree import command
from cortado.store.client.inspect import Inspected
from cortado.store.client.values import key_to_proto
from cortado.store.keys.decoded import KeyKind, decode_key
from cortado.store.names import split_table_name
from cortado.store.transfer.byte_text import bytes_to_text, parse_bytes

SHOWN_VERSIONS: Final = 100
_TEXT_MAX: Final = 200

_LimitOption: TypeAlias = Annotated[
    int | None,
    Option(
        "--limit",
        help="At most so many versions.",
        show_default=f"{SHOWN_VERSIONS} as a table, all with -o json",
        parser=whole("--limit", 1),
        metavar="N",
    ),
]


@command(
    "mvcc show kv",
    examples="""
        cortado mvcc show kv sessions user:1
        cortado mvcc show kv sessions user:1 --data-dir /var/lib/cortado -o json
    """,
)
def show_pair(
    session: Session,
    namespace: NamespaceArgument,
    key: KeyArgument,
    limit: _LimitOption = None,
    data_dir: DataDirOption = None,
) -> None:
    """Show all versions of a pair. Exit code 8 where one is damaged."""
    target = pb.KvTarget(namespace=namespace, key=parse_bytes(key, "KEY"))
    with inspected(session, data_dir) as node:
        _show(session, node, pb.ReadVersionsRequest(kv=target), limit)


@command(
    "mvcc show row",
    examples="""
        cortado mvcc show row flights.airlines UA
        cortado mvcc show row flights.flights 2013-01-01T10:00:00Z UA -e 127.0.0.1:7622
    """,
)
def show_row(
    session: Session,
    table: TableArgument,
    parts: PartsArgument,
    limit: _LimitOption = None,
    data_dir: DataDirOption = None,
) -> None:
    """Show all versions of a row, or of all rows that begin with these parts. Exit code 8 where one is damaged."""
    database, name = split_table_name(table)
    with inspected(session, data_dir) as node:
        declared = table_of(session, node, table).key
        key = key_to_proto(parse_key(parts, declared, prefix=True), declared, prefix=True)
        target = pb.RowTarget(database=database, table=name, key=key)
        _show(session, node, pb.ReadVersionsRequest(row=target), limit)


@command(
    "mvcc show index",
    examples="""
        cortado mvcc show index flights.flights by_tailnum N14228
    """,
)
def show_entry(
    session: Session,
    table: TableArgument,
    index: IndexArgument,
    parts: EntryArgument,
    limit: _LimitOption = None,
    data_dir: DataDirOption = None,
) -> None:
    """Show all versions of an index's entries for these values. Exit code 8 where one is damaged."""
    database, name = split_table_name(table)
    with inspected(session, data_dir) as node:
        described = table_of(session, node, table)
        declared = index_of(described, index).parts + described.key
        values = key_to_proto(parse_key(parts, declared, prefix=True), declared, prefix=True)
        target = pb.IndexTarget(database=database, table=name, index=index, values=values)
        _show(session, node, pb.ReadVersionsRequest(index=target), limit)


@command(
    "mvcc show key",
    examples="""
        cortado mvcc show key 6b3073657373696f6e7300012c757365722f310001
    """,
)
def show_key(
    session: Session,
    key: Annotated[str, Argument(help=r"A stored key: hexadecimal, or text with \xNN for a byte.", metavar="HEX")],
    limit: _LimitOption = None,
    data_dir: DataDirOption = None,
) -> None:
    """Show all versions of a stored key, or of all that begin so. Exit code 8 where one is damaged."""
    with inspected(session, data_dir) as node:
        _show(session, node, pb.ReadVersionsRequest(key=parse_stored_key(key)), limit)


def _show(session: Session, node: Inspected, request: pb.ReadVersionsRequest, limit: int | None) -> None:
    shown_max = limit if session.as_json else limit or SHOWN_VERSIONS
    versions = _versions(node, request, None if shown_max is None else shown_max + 1)
    damaged = _show_json(session, versions, shown_max) if session.as_json else _table(session, versions, shown_max)
    if damaged:
        raise CheckFailed(DAMAGE)


def _versions(node: Inspected, request: pb.ReadVersionsRequest, limit: int | None) -> Iterator[pb.StoredVersion]:
    left = limit
    while left is None or left > 0:
        request.page_size = min(left or 1_000, 1_000)
        reply = node.read_versions(request)
        yield from reply.versions
        if not reply.next_page_token:
            return
        left = None if left is None else left - len(reply.versions)
        request.page_token = reply.next_page_token


def _table(session: Session, found: Iterator[pb.StoredVersion], shown_max: int | None) -> bool:
    versions = list(found)
    shown = versions[:shown_max]
    rows = [
        (
            each.key.text.rpartition(" @")[0] or each.key.text,
            shown_ts(each.timestamp) or "-",
            each.kind,
            each.payload_bytes,
            "ok" if each.is_intact else "WRONG",
            _cut(_value_text(each)),
        )
        for each in shown
    ]
    columns = ("key", "timestamp", "kind", "bytes", "checksum", "value")
    if len({row[0] for row in rows}) > 1:
        session.show.table(columns, rows)
    elif rows:
        session.show.line(rows[0][0])
        session.show.table(columns[1:], [row[1:] for row in rows])
    more = ", and there are more (--limit)" if len(versions) > len(shown) else ""
    session.show.note(count(len(shown), "version") + more)
    return any(each.problem for each in shown)


def _value_text(version: pb.StoredVersion) -> str:
    if version.problem:
        return version.problem
    if version.kind != "put":
        return ""
    return version.value or bytes_to_text(version.payload)


def _cut(text: str) -> str:
    return text if len(text) <= _TEXT_MAX else f"{text[:_TEXT_MAX]}... (-o json shows all)"


def _show_json(session: Session, versions: Iterator[pb.StoredVersion], shown_max: int | None) -> bool:
    damaged = False
    for place, each in enumerate(versions):
        if place == shown_max:
            break
        damaged |= bool(each.problem)
        session.show.json(
            {
                "key": each.key.key.hex(),
                "text": each.key.text,
                "timestamp": shown_ts(each.timestamp),
                "kind": each.kind,
                "intact": each.is_intact,
                "payload_bytes": each.payload_bytes,
                "payload": base64.b64encode(each.payload).decode(),
                "schema_id": each.schema_id or None,
                "value": _value_json(each),
                "problem": each.problem or None,
            }
        )
    return damaged


def _value_json(version: pb.StoredVersion) -> Any:
    """A document as an object, a pair's value as the key-value commands show it, else text; None for none."""
    kind = decode_key(version.key.key).kind
    if version.kind != "put" or version.problem:
        return None
    if kind is KeyKind.PAIR:
        return bytes_to_text(version.payload) if len(version.payload) == version.payload_bytes else None
    if not version.value:
        return None
    return json.loads(version.value) if kind in (KeyKind.ROW, KeyKind.CATALOG) else version.value
