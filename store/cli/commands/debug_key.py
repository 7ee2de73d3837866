"""``cortado debug key``: stored keys for people, and the other way round."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

from cortado.store.cli.answers import Answer
from cortado.store.cli.common_options import (
    EntryArgument,
    IndexArgument,
    NamespaceArgument,
    PairKeyArgument,
    PartsArgument,
    TableArgument,
)
from cortado.store.cli.failures import OK
from cortado.store.cli.numbers import whole
from cortado.store.cli.options import Argument, Option
from cortado.store.cli.render import Renderer
from cortado.store.cli.session import Session
from cortado.store.cli.tree import command
from cortado.store.keys.keyspace import ID_MAX
from cortado.store.transfer.byte_text import parse_bytes

if TYPE_CHECKING:
    from cortado.store.keys.decoded import DecodedKey, KeyNames

HexArgument: TypeAlias = Annotated[
    list[str],
    Argument(help=r"Stored keys: hexadecimal, or text with \xNN for a byte.", metavar="HEX"),
]
_VersionOption: TypeAlias = Annotated[
    str | None,
    Option("--version-at", help="Include this version's timestamp, as a stored key does.", metavar="TS"),
]


@dataclass(frozen=True, slots=True)
class _Keys:
    """Keys that were taken apart."""

    keys: list[DecodedKey]
    names: KeyNames
    exit_code: int = OK

    def as_json(self) -> list[Any]:
        from cortado.store.cli.inspecting import key_json

        return [key_json(each, self.names) for each in self.keys]

    def as_table(self, show: Renderer) -> None:
        for each in self.keys:
            show.line(each.text(self.names))


@command(
    "debug key decode",
    examples="""
        cortado debug key decode 740000000172
        cortado debug key decode 6b3073657373696f6e730001000000002c757365722f310001 -o json
        cortado debug key decode 0000000165000000000000002a
    """,
)
def decode(session: Session, keys: HexArgument) -> Answer:
    """Decode stored keys: the space, the table and the index, each typed part, the version's timestamp.

    All spaces are known: rows, index entries, pairs, the catalog, log entries, remembered requests. Tables are shown
    by name if a server can be asked, else by id.
    """
    from cortado.store.cli.inspecting import parse_stored_key
    from cortado.store.cli.stored_keys import names_of
    from cortado.store.keys.decoded import decode_key

    decoded = [decode_key(parse_stored_key(text)) for text in keys]
    return _Keys(decoded, names_of(session, decoded))


@command(
    "debug key encode kv",
    remote=False,
    examples="""
        cortado debug key encode kv sessions user/1
        cortado debug key encode kv sessions user/1 --version-at 0.1763643600000.2
    """,
)
def encode_pair(
    _: Session,
    namespace: NamespaceArgument,
    key: PairKeyArgument,
    generation: Annotated[
        int,
        Option(
            "--generation",
            help="The namespace's generation: the number of the last drop before the pair was written.",
            parser=whole("--generation", 0, ID_MAX),
            show_default="0: never dropped",
            metavar="N",
        ),
    ] = 0,
    version_at: _VersionOption = None,
) -> Answer:
    """Print the stored key of a pair. Asks no server."""
    from cortado.store.cli.stored_keys import stored_key
    from cortado.store.keys.decoded import NO_NAMES
    from cortado.store.keys.keyspace import kv_key

    return stored_key(kv_key(namespace, parse_bytes(key, "KEY"), generation), version_at, NO_NAMES)


@command(
    "debug key encode row",
    examples="""
        cortado debug key encode row flights.airlines UA
    """,
)
def encode_row(
    session: Session, table: TableArgument, parts: PartsArgument, version_at: _VersionOption = None
) -> Answer:
    """Print the stored key of a row, or the prefix of several."""
    from cortado.store.catalog.descriptors import key_names
    from cortado.store.cli.stored_keys import encoded, stored_key
    from cortado.store.keys.keyspace import row_prefix

    with session.client() as client:
        found = client.describe(table)
    return stored_key(row_prefix(found.table_id) + encoded(parts, found.key), version_at, key_names([found]))


@command(
    "debug key encode index",
    examples="""
        cortado debug key encode index flights.flights by_tailnum N14228
    """,
)
def encode_entry(
    session: Session,
    table: TableArgument,
    index: IndexArgument,
    parts: EntryArgument,
    version_at: _VersionOption = None,
) -> Answer:
    """Print the stored key of an index entry, or the prefix of several."""
    from cortado.store.catalog.descriptors import key_names
    from cortado.store.cli.inspecting import index_of
    from cortado.store.cli.stored_keys import encoded, stored_key
    from cortado.store.keys.keyspace import index_prefix

    with session.client() as client:
        found = client.describe(table)
    declared = index_of(found, index)
    key = index_prefix(found.table_id, declared.index_id) + encoded(
        parts, declared.parts + found.key, nullable=len(declared.parts)
    )
    return stored_key(key, version_at, key_names([found]))
