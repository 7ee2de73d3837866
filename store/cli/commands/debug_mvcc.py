"""``cortado debug mvcc``: all versions of a key, as one node has stored them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final, TypeAlias

from cortado.store.cli.common_options import (
    DataDirOption,
    EntryArgument,
    IndexArgument,
    NamespaceArgument,
    PairKeyArgument,
    PartsArgument,
    TableArgument,
)
from cortado.store.cli.numbers import whole
from cortado.store.cli.options import Argument, Option
from cortado.store.cli.session import Session
from cortado.store.cli.tree import command
from cortado.store.keys.names import split_table_name
from cortado.store.transfer.byte_text import parse_bytes

if TYPE_CHECKING:
    from cortado.proto.v1 import inspect_pb2
    from cortado.store.client.inspect import Inspected

SHOWN_VERSIONS: Final = 100

_LimitOption: TypeAlias = Annotated[
    int | None,
    Option(
        "--limit",
        help="Maximum number of versions.",
        show_default=f"{SHOWN_VERSIONS} as a table, all with -o json",
        parser=whole("--limit", 1),
        metavar="N",
    ),
]


@command(
    "debug mvcc kv",
    examples="""
        cortado debug mvcc kv sessions user:1
        cortado debug mvcc kv sessions user:1 --data-dir /var/lib/cortado -o json
    """,
)
def show_pair(
    session: Session,
    namespace: NamespaceArgument,
    key: PairKeyArgument,
    limit: _LimitOption = None,
    data_dir: DataDirOption = None,
) -> None:
    """Show all versions of a pair. Exit code 8 if one is damaged."""
    from cortado.proto.v1 import inspect_pb2 as pb
    from cortado.store.cli.inspecting import inspected

    target = pb.KvTarget(namespace=namespace, key=parse_bytes(key, "KEY"))
    with inspected(session, data_dir) as node:
        _show(session, node, pb.ReadVersionsRequest(kv=target), limit)


@command(
    "debug mvcc row",
    examples="""
        cortado debug mvcc row flights.airlines UA
        cortado debug mvcc row flights.flights 2013-01-01T10:00:00Z UA -e 127.0.0.1:7622
    """,
)
def show_row(
    session: Session,
    table: TableArgument,
    parts: PartsArgument,
    limit: _LimitOption = None,
    data_dir: DataDirOption = None,
) -> None:
    """Show all versions of a row, or of all rows that begin with these parts. Exit code 8 if one is damaged."""
    from cortado.proto.v1 import inspect_pb2 as pb
    from cortado.store.cli.inspecting import inspected, table_of
    from cortado.store.client.values import key_to_proto
    from cortado.store.transfer.key_text import parse_key

    database, name = split_table_name(table)
    with inspected(session, data_dir) as node:
        declared = table_of(session, node, table).key
        key = key_to_proto(parse_key(parts, declared, prefix=True), declared, prefix=True)
        target = pb.RowTarget(database=database, table=name, key=key)
        _show(session, node, pb.ReadVersionsRequest(row=target), limit)


@command(
    "debug mvcc index",
    examples="""
        cortado debug mvcc index flights.flights by_tailnum N14228
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
    """Show all versions of the entries of an index for these values. Exit code 8 if one is damaged."""
    from cortado.proto.v1 import inspect_pb2 as pb
    from cortado.store.cli.inspecting import index_of, inspected, table_of
    from cortado.store.client.values import key_to_proto
    from cortado.store.transfer.key_text import parse_key

    database, name = split_table_name(table)
    with inspected(session, data_dir) as node:
        described = table_of(session, node, table)
        indexed = index_of(described, index).parts
        declared = indexed + described.key
        key = parse_key(parts, declared, prefix=True, nullable=len(indexed))
        values = key_to_proto(key, declared, prefix=True)
        target = pb.IndexTarget(database=database, table=name, index=index, values=values)
        _show(session, node, pb.ReadVersionsRequest(index=target), limit)


@command(
    "debug mvcc key",
    examples="""
        cortado debug mvcc key 6b3073657373696f6e730001000000002c757365722f310001
    """,
)
def show_key(
    session: Session,
    key: Annotated[str, Argument(help=r"A stored key: hexadecimal, or text with \xNN for a byte.", metavar="HEX")],
    limit: _LimitOption = None,
    data_dir: DataDirOption = None,
) -> None:
    """Show all versions of a stored key, or of all keys with this prefix. Exit code 8 if one is damaged."""
    from cortado.proto.v1 import inspect_pb2 as pb
    from cortado.store.cli.inspecting import inspected, parse_stored_key

    with inspected(session, data_dir) as node:
        _show(session, node, pb.ReadVersionsRequest(key=parse_stored_key(key)), limit)


def _show(session: Session, node: Inspected, request: inspect_pb2.ReadVersionsRequest, limit: int | None) -> None:
    from cortado.store.cli.versions_answer import VersionsAnswer, versions_of

    shown_max = limit if session.as_json else limit or SHOWN_VERSIONS
    # One more tells whether there are more.
    versions = versions_of(node, request, None if shown_max is None else shown_max + 1)
    session.answer(VersionsAnswer(versions, shown_max))
