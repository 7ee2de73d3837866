"""``cortado key``: stored keys for people, and the other way round."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Annotated, Final, TypeAlias

from cortado.errors import CortadoError
from cortado.store.catalog.descriptors import key_names
from cortado.store.cli.commands.kv import KeyArgument, NamespaceArgument
from cortado.store.cli.commands.table import TableArgument
from cortado.store.cli.inspecting import index_of, key_json, parse_stored_key, running_node
from cortado.store.cli.options import Argument, Option
from cortado.store.cli.parse import parse_key
from cortado.store.cli.session import Session
from cortado.store.cli.tree import command
from cortado.store.client.values import Part, micros_of
from cortado.store.clock.timestamp import Timestamp
from cortado.store.keys.codec import INVERTED, encode_parts
from cortado.store.keys.decoded import NO_NAMES, DecodedKey, KeyNames, decode_key
from cortado.store.keys.keyspace import check_key_length, index_prefix, kv_key, row_prefix
from cortado.store.keys.types import KeyPart, KeyValue
from cortado.store.transfer.byte_text import parse_bytes

# Names are a help, and not worth waiting for.
_NAMES_TIMEOUT_S: Final = 1.0

PartsArgument: TypeAlias = Annotated[
    list[str], Argument(help="The key's parts in their order, each by its declared type.", metavar="PART")
]
EntryArgument: TypeAlias = Annotated[
    list[str],
    Argument(help="The indexed values in their order; behind them, perhaps, the primary key.", metavar="PART"),
]
IndexArgument: TypeAlias = Annotated[str, Argument(help="The index's name.", metavar="INDEX")]
HexArgument: TypeAlias = Annotated[
    list[str],
    Argument(help=r"Stored keys: hexadecimal, or text with \xNN for a byte.", metavar="HEX"),
]
_VersionOption: TypeAlias = Annotated[
    str | None, Option("--version-at", help="Of this version: its timestamp is part of the key.", metavar="TS")
]


@command(
    "key decode",
    examples="""
        cortado key decode 740000000172
        cortado key decode 6b3073657373696f6e7300012c757365722f310001 -o json
        cortado key decode 0000000165000000000000002a
    """,
)
def decode(session: Session, keys: HexArgument) -> None:
    """Take stored keys apart: the space, the table and the index, each typed part, the version's timestamp.

    All spaces are known: rows, index entries, pairs, the catalogue, the log's entries, remembered requests.
    Tables have names where a server can be asked, and ids elsewhere.
    """
    decoded = [decode_key(parse_stored_key(text)) for text in keys]
    names = _names(session, decoded)
    for each in decoded:
        if session.as_json:
            session.show.json(key_json(each, names))
        else:
            session.show.line(each.text(names))


def _names(session: Session, keys: Sequence[DecodedKey]) -> KeyNames:
    """The names of tables, where some key speaks of one and a server answers at once."""
    if all(each.table_id is None for each in keys):
        return NO_NAMES
    problem: CortadoError | None = None
    for endpoint in session.endpoint.split(","):
        asked = replace(session, endpoint=endpoint, timeout_s=min(session.timeout_s, _NAMES_TIMEOUT_S))
        try:
            with running_node(asked) as node:
                return key_names(node.tables())
        except CortadoError as refused:
            problem = refused
    session.show.note(f"tables are shown by their ids: {problem}")
    return NO_NAMES


@command(
    "key encode kv",
    remote=False,
    examples="""
        cortado key encode kv sessions user/1
        cortado key encode kv sessions user/1 --version-at 0.1763643600000.2
    """,
)
def encode_pair(
    session: Session, namespace: NamespaceArgument, key: KeyArgument, version_at: _VersionOption = None
) -> None:
    """Show the stored key of a pair. Talks to no server."""
    _show(session, kv_key(namespace, parse_bytes(key, "KEY")), version_at, NO_NAMES)


@command(
    "key encode row",
    examples="""
        cortado key encode row flights.airlines UA
    """,
)
def encode_row(session: Session, table: TableArgument, parts: PartsArgument, version_at: _VersionOption = None) -> None:
    """Show the stored key of a row, or what the keys of several begin with."""
    with session.client() as client:
        found = client.describe(table)
    encoded = row_prefix(found.table_id) + _encoded(parts, found.key)
    _show(session, encoded, version_at, key_names([found]))


@command(
    "key encode index",
    examples="""
        cortado key encode index flights.flights by_tailnum N14228
    """,
)
def encode_entry(
    session: Session,
    table: TableArgument,
    index: IndexArgument,
    parts: EntryArgument,
    version_at: _VersionOption = None,
) -> None:
    """Show the stored key of an index entry, or what the keys of several begin with."""
    with session.client() as client:
        found = client.describe(table)
    declared = index_of(found, index)
    encoded = index_prefix(found.table_id, declared.index_id) + _encoded(parts, declared.parts + found.key)
    _show(session, encoded, version_at, key_names([found]))


def _encoded(texts: Sequence[str], parts: Sequence[KeyPart]) -> bytes:
    values = [_key_value(part) for part in parse_key(texts, parts, prefix=True)]
    return encode_parts(values, parts[: len(values)])


def _key_value(part: Part) -> KeyValue:
    return micros_of(part, "key") if isinstance(part, datetime) else part


def _show(session: Session, key: bytes, version_at: str | None, names: KeyNames) -> None:
    check_key_length(key, "key")
    if version_at is not None:
        key += bytes(Timestamp.parse(version_at)).translate(INVERTED)
    if session.as_json:
        session.show.json(key_json(decode_key(key), names))
    else:
        session.show.line(key.hex())
