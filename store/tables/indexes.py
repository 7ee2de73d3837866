"""Index maintenance: the changes of index entries that follow from a row's change.

An entry's key holds all of it; only a unique one needs a payload, to name its row::

    unique, no null       t <table id> i <index id> <values>                   -> primary key
    unique, with a null   t <table id> i <index id> <values> <primary key>     -> primary key
    not unique            t <table id> i <index id> <values> <primary key>     -> (empty)

So two rows collide in a unique index if and only if their entries have the same key, and a null never collides, as in
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
    """One entry. If ``exclusive``, no other row may have an entry of this key."""

    index: IndexDescriptor
    key: LogicalKey
    payload: bytes
    exclusive: bool


@dataclass(frozen=True, slots=True)
class IndexChange:
    """The entries to remove from an index and to put there when a row changes. An entry that ``stays`` is neither."""

    removed: LogicalKey | None
    added: IndexEntry | None
    stays: IndexEntry | None = None


def index_label(table: TableDescriptor, index: IndexDescriptor) -> str:
    """Return an index's name in errors."""
    return f"index {index.name} of table {table.full_name}"


def entry_of(
    table: TableDescriptor, index: IndexDescriptor, values: Sequence[KeyValue], primary_key: bytes
) -> IndexEntry:
    """Return the entry of a row with these indexed ``values``. Raises KeyTooLong naming the index."""
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


def update(
    table: TableDescriptor,
    index: IndexDescriptor,
    primary_key: bytes,
    old: Mapping[str, Any] | None,
    new: Mapping[str, Any] | None,
) -> IndexChange:
    """Return the change in one index as the row of ``primary_key`` goes from ``old`` to ``new`` (None: no row).

    Both documents are as the subject's newest version reads them. Raises KeyTooLong.
    """
    before = None if old is None else entry_of(table, index, key_values(old, index.parts), primary_key)
    after = None if new is None else entry_of(table, index, key_values(new, index.parts), primary_key)
    if before is not None and after is not None and before.key == after.key:
        return IndexChange(None, None, after)
    return IndexChange(None if before is None else before.key, after)
