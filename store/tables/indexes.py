"""Index maintenance: what a row's change does to the entries of its table's indexes.

An entry's place says everything; only a unique one needs a payload, to name its row::

    unique, no null       t <table id> i <index id> <values>                   -> primary key
    unique, with a null   t <table id> i <index id> <values> <primary key>     -> primary key
    not unique            t <table id> i <index id> <values> <primary key>     -> (empty)

So two rows collide in a unique index exactly where their entries have the same key, and a null never collides, as in
SQL. Every row has exactly one entry in each index of its table: the invariant that ``check.py`` proves.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cortado.store.catalog.descriptors import IndexDescriptor, TableDescriptor
from cortado.store.keys.keyspace import index_key, index_payload
from cortado.store.keys.types import KeyValue, LogicalKey
from cortado.store.tables.rows import key_values


@dataclass(frozen=True, slots=True)
class IndexEntry:
    """One entry. Where ``exclusive``, no other row may have an entry of this key."""

    index: IndexDescriptor
    key: LogicalKey
    payload: bytes
    exclusive: bool


@dataclass(frozen=True, slots=True)
class IndexChange:
    """What to remove and what to put when a row changes. An entry that stays the same is in neither."""

    removed: Sequence[LogicalKey]
    added: Sequence[IndexEntry]


def index_label(table: TableDescriptor, index: IndexDescriptor) -> str:
    """An index's name in errors."""
    return f"index {index.name} of table {table.full_name}"


def entry_of(
    table: TableDescriptor, index: IndexDescriptor, values: Sequence[KeyValue], primary_key: bytes
) -> IndexEntry:
    """The entry of a row with these indexed ``values``. Raises KeyTooLong naming the index."""
    key = index_key(
        table.table_id,
        index.index_id,
        index.parts,
        values,
        primary_key,
        unique=index.unique,
        what=index_label(table, index),
    )
    payload = index_payload(values, primary_key, unique=index.unique)
    return IndexEntry(index, key, payload, exclusive=index.unique and None not in values)


def entries_of(table: TableDescriptor, primary_key: bytes, document: Mapping[str, Any]) -> list[IndexEntry]:
    """A row's entries, one for each index in the descriptor's order."""
    return [entry_of(table, index, key_values(document, index.parts), primary_key) for index in table.indexes]


def update(
    table: TableDescriptor,
    primary_key: bytes,
    old: Mapping[str, Any] | None,
    new: Mapping[str, Any] | None,
) -> IndexChange:
    """What changes in the indexes as the row of ``primary_key`` goes from ``old`` to ``new`` (None: no row).

    Both documents are as the subject's newest version reads them. Raises KeyTooLong.
    """
    if not table.indexes:
        return IndexChange((), ())
    before = {} if old is None else {entry.key: entry for entry in entries_of(table, primary_key, old)}
    after = [] if new is None else entries_of(table, primary_key, new)
    kept = {entry.key for entry in after}
    return IndexChange(
        removed=[key for key in before if key not in kept],
        added=[entry for entry in after if entry.key not in before],
    )
