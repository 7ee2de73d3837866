"""A chunk of plain new rows, checked and keyed by the scan kernel: no object for a row (ADR 63).

::

    bodies + lengths ─► walk: every body is checked, ─► keys, in order; ─► PackedWrite
                        columns of key and indexes      index entries
                                     │                       │
                                     └─ anything not plain ──┴──► None: chunk.py prepares the chunk

A plain chunk holds whole Avro rows of any version of the schema. The kernel knows the types of its table's key and
indexes, every row is good, and no key and no unique value comes twice. The kernel has no errors of its own: a chunk
that it refuses is prepared by :mod:`cortado.store.tables.chunk`, which names the row and the reason. So both ways store
the same bytes and give the same answers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import compress
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from cortado.errors import InvalidArgument
from cortado.schema.columnar.column import Bools, Bytes, BytesColumn, Column, FlatColumn, logical_of
from cortado.schema.model import Fixed
from cortado.store.catalog.catalog import Catalog
from cortado.store.catalog.descriptors import IndexDescriptor
from cortado.store.keys.codec import TAGS
from cortado.store.keys.columns import fixed_values
from cortado.store.keys.keyspace import index_prefix
from cortado.store.keys.types import KeyPart, KeyType, LogicalKey
from cortado.store.mvcc.packed import PackedPayloads
from cortado.store.mvcc.packed_rows import PackedRows, PackedWrite
from cortado.store.mvcc.row_maker import KeyColumn, KeysInOrder, RowMaker, Tails
from cortado.store.tables.columns import walk_columns
from cortado.store.tables.entries import indexed_paths
from cortado.store.tables.operations import AvroRows, BulkChunk, BulkMode
from cortado.store.tables.rows import BATCH_BYTES_MAX, BATCH_ROWS_MAX, DOCUMENT_BYTES_MAX, encode_payload
from cortado.store.tables.view import TableView

PACK_FROM: Final = 64
"""Fewer rows cost as little one by one."""

_LENGTH_BYTES: Final = 4


_Ends: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class PackedChunk:
    """All rows of a plain chunk, and their index entries. Good for any state of the store in which the table and its
    newest schema are those of ``view``."""

    view: TableView
    rows: PackedRows
    entries: Sequence[_PackedEntries]

    def write(self, expires_ms: int) -> PackedWrite:
        """Return all of them, to expire at that wall time; 0 for never."""
        return PackedWrite([self.rows, *(each.rows for each in self.entries)], expires_ms)

    def exclusive(self) -> Iterator[Sequence[LogicalKey]]:
        """Yield the keys of each unique index's entries that no other row may have."""
        for each in self.entries:
            if each.index.unique:
                yield each.rows.keys if each.is_whole is None else list(compress(each.rows.keys, each.is_whole))

    def fits(self, view: TableView) -> bool:
        return self.view.table == view.table and self.view.newest_id == view.newest_id


def pack_chunk(catalog: Catalog, chunk: BulkChunk, maker: RowMaker) -> PackedChunk | None:
    """Check and key a chunk; None if it is not plain. Raises NotFound (database, table, schema), and InvalidArgument
    for a schema that is not the table's, or whose rows the newest cannot read."""
    rows = chunk.rows
    if not isinstance(rows, AvroRows) or chunk.mode not in (BulkMode.UPSERT, BulkMode.INSERT):
        return None
    view = TableView(catalog, chunk.database, chunk.table)
    ends = None if chunk.columns else _ends_of(rows)
    if ends is None:
        return None
    writer = view.writer(rows.schema_id, "rows.schema_id")
    paths = dict.fromkeys([*(part.path for part in view.table.key), *indexed_paths(view.indexes)])
    columns = walk_columns(PackedPayloads(b"", 0, rows.bodies, ends, maker), writer, view.newest, tuple(paths))
    if columns is None or any(columns[part.path].validity is not None for part in view.table.key):
        return None
    parts = _key_columns(columns, view.table.key)
    keys = None if parts is None else maker.lay_keys(view.row_prefix, parts, len(ends))
    if keys is None:
        return None
    packed = PackedRows(maker, keys, encode_payload(rows.schema_id, b""), rows.bodies, ends)
    entries = _pack_entries(view, columns, keys, maker)
    if entries is None:
        return None
    return PackedChunk(view, packed, entries)


@dataclass(frozen=True, slots=True)
class _PackedEntries:
    """One index's entry for each row. ``is_whole``: in the order of their keys, whether each has no null; None if none
    has one."""

    index: IndexDescriptor
    rows: PackedRows
    is_whole: Bools | None


def _pack_entries(
    view: TableView, columns: Mapping[str, Column], keys: KeysInOrder, maker: RowMaker
) -> list[_PackedEntries] | None:
    found: list[_PackedEntries] = []
    if not view.indexes:
        return found
    count = len(keys.ends)
    primary_keys, primary_ends = _without_prefix(keys, len(view.row_prefix))
    nothing = b"", np.zeros(count, np.int64)
    for index in view.indexes:
        parts = _key_columns(columns, index.parts)
        if parts is None:
            return None
        tails = Tails(primary_keys, primary_ends, index.unique)
        laid = maker.lay_keys(index_prefix(view.table.table_id, index.index_id), parts, count, tails)
        if laid is None:
            return None
        bodies = (primary_keys, primary_ends) if index.unique else nothing
        masks = [part.validity for part in parts if part.validity is not None]
        is_whole = np.logical_and.reduce(masks)[laid.places] if masks else None
        found.append(_PackedEntries(index, PackedRows(maker, laid, b"", *bodies), is_whole))
    return found


def _without_prefix(keys: KeysInOrder, prefix_bytes: int) -> tuple[bytes, _Ends]:
    """Return keys end to end without the beginning that all of them have, and the end of each."""
    begins = keys.ends - np.diff(keys.ends, prepend=0)
    is_kept = np.ones(len(keys.joined), np.bool_)
    for place in range(prefix_bytes):
        is_kept[begins + place] = False
    kept = np.frombuffer(keys.joined, np.uint8)[is_kept]
    return kept.tobytes(), keys.ends - prefix_bytes * np.arange(1, 1 + len(begins))


def _ends_of(rows: AvroRows) -> _Ends | None:
    """Return the ends of the bodies; None if the chunk or one of them has not the size of a plain one."""
    count, left = divmod(len(rows.lengths), _LENGTH_BYTES)
    if left or not PACK_FROM <= count <= BATCH_ROWS_MAX or len(rows.bodies) > BATCH_BYTES_MAX:
        return None
    lengths = np.frombuffer(rows.lengths, "<u4")
    # An empty body, and lengths that do not add up to the bodies, are refused by the walk.
    return None if lengths.max() > DOCUMENT_BYTES_MAX else np.cumsum(lengths, dtype=np.int64)


def _key_columns(columns: Mapping[str, Column], parts: Sequence[KeyPart]) -> list[KeyColumn] | None:
    """Return the parts' values as the kernel lays them; None if it does not lay the type of one."""
    found = [_key_column(columns[part.path], part) for part in parts]
    known = [each for each in found if each is not None]
    return known if len(known) == len(found) else None


def _key_column(column: Column, part: KeyPart) -> KeyColumn | None:
    if isinstance(column, BytesColumn):
        if part.type is KeyType.UUID and isinstance(column.type, Fixed):
            matrix = _rows_of(column, column.type.size)
            return KeyColumn(TAGS[part.type], matrix, None, part.descending, column.validity)
        if part.type in (KeyType.STRING, KeyType.BYTES) and logical_of(column.type) is None:
            return KeyColumn(TAGS[part.type], column.data, column.offsets, part.descending, column.validity)
        return None
    if not isinstance(column, FlatColumn):
        return None
    try:
        # Days as they are: as values of a key they would be objects. Those of enums are. A null is a zero here.
        values = column.values if part.type is KeyType.DATE else replace(column, validity=None).key_values()
        numbers = fixed_values(values, part) if isinstance(values, np.ndarray) else None
    except InvalidArgument:
        return None
    return None if numbers is None else KeyColumn(TAGS[part.type], numbers, None, part.descending, column.validity)


def _rows_of(column: BytesColumn, size_bytes: int) -> Bytes:
    """Return values of one size as a matrix with a row for each; a null's is zeros."""
    values = column.data.reshape(-1, size_bytes)
    if column.validity is None:
        return values
    matrix = np.zeros((column.length, size_bytes), np.uint8)
    matrix[column.validity] = values
    return matrix
