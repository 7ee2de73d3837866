"""A chunk of plain new rows, checked and keyed by the scan kernel: no object for a row (ADR 63).

::

    bodies + lengths ─► walk: every body is checked, the key's columns ─► keys, in order ─► PackedRows
                                     │                                     │
                                     └── anything that is not plain ───────┴──► None: chunk.py prepares the chunk

A plain chunk holds whole Avro rows of the newest schema, for a table without indexes whose rows do not expire. The
kernel knows the types of its key, every row is good, and no key comes twice. The kernel has no errors of its own: a
chunk that it refuses is prepared by :mod:`cortado.store.tables.chunk`, which names the row and the reason. So both ways
store the same bytes and give the same answers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from cortado.errors import InvalidArgument
from cortado.schema.columnar.column import BytesColumn, Column, FlatColumn, logical_of
from cortado.schema.model import Fixed
from cortado.store.catalog.catalog import Catalog
from cortado.store.keys.codec import TAGS
from cortado.store.keys.columns import fixed_values
from cortado.store.keys.types import KeyPart, KeyType
from cortado.store.mvcc.packed import PackedPayloads
from cortado.store.mvcc.packed_rows import PackedRows
from cortado.store.mvcc.row_maker import KeyColumn, RowMaker
from cortado.store.tables.operations import AvroRows, BulkChunk, BulkMode
from cortado.store.tables.rows import BATCH_BYTES_MAX, BATCH_ROWS_MAX, DOCUMENT_BYTES_MAX, encode_payload
from cortado.store.tables.view import TableView
from cortado.store.tables.walked import walked_columns

PACK_FROM: Final = 64
"""Fewer rows cost as little one by one."""

_LENGTH_BYTES: Final = 4


@dataclass(frozen=True, slots=True)
class PackedChunk:
    """All rows of a plain chunk. Good for any state of the store in which the table and its newest schema are those of
    ``view``."""

    view: TableView
    rows: PackedRows

    def fits(self, view: TableView) -> bool:
        return self.view.table == view.table and self.view.newest_id == view.newest_id


def pack_chunk(catalog: Catalog, chunk: BulkChunk, maker: RowMaker) -> PackedChunk | None:
    """Check and key a chunk; None if it is not plain. Raises NotFound for an unknown database or table."""
    rows = chunk.rows
    if not isinstance(rows, AvroRows) or chunk.mode not in (BulkMode.UPSERT, BulkMode.INSERT):
        return None
    view = TableView(catalog, chunk.database, chunk.table)
    is_plain = not (chunk.columns or view.indexes or view.table.ttl_ms) and chunk.expiry is None
    if not is_plain or rows.schema_id != view.newest_id:
        return None
    ends = _ends_of(rows)
    if ends is None:
        return None
    paths = dict.fromkeys(part.path for part in view.table.key)
    columns = walked_columns(PackedPayloads(b"", 0, rows.bodies, ends, maker), view.newest, tuple(paths))
    if columns is None:
        return None
    parts = [_key_column(columns[part.path], part) for part in view.table.key]
    laid = [part for part in parts if part is not None]
    keys = maker.lay_keys(view.row_prefix, laid, len(ends)) if len(laid) == len(parts) else None
    if keys is None:
        return None
    head = encode_payload(rows.schema_id, b"")
    return PackedChunk(view, PackedRows(maker, keys, head, rows.bodies, ends))


def _ends_of(rows: AvroRows) -> np.ndarray[tuple[int], np.dtype[np.int64]] | None:
    """Return the ends of the bodies; None if the chunk or one of them has not the size of a plain one."""
    count, left = divmod(len(rows.lengths), _LENGTH_BYTES)
    if left or not PACK_FROM <= count <= BATCH_ROWS_MAX or len(rows.bodies) > BATCH_BYTES_MAX:
        return None
    lengths = np.frombuffer(rows.lengths, "<u4")
    # An empty body, and lengths that do not add up to the bodies, are refused by the walk.
    return None if lengths.max() > DOCUMENT_BYTES_MAX else np.cumsum(lengths, dtype=np.int64)


def _key_column(column: Column, part: KeyPart) -> KeyColumn | None:
    """Return a part's values as the kernel lays them; None if one is null, or it does not lay this type."""
    tag = TAGS[part.type]
    if column.validity is not None:
        return None
    if isinstance(column, BytesColumn):
        if part.type is KeyType.UUID and isinstance(column.type, Fixed):
            return KeyColumn(tag, column.data.reshape(column.length, -1), is_descending=part.descending)
        if part.type in (KeyType.STRING, KeyType.BYTES) and logical_of(column.type) is None:
            return KeyColumn(tag, column.data, column.offsets, part.descending)
        return None
    if not isinstance(column, FlatColumn):
        return None
    try:
        # Days as they are: as values of a key they would be objects. Those of enums are.
        values = column.values if part.type is KeyType.DATE else column.key_values()
        matrix = fixed_values(values, part) if isinstance(values, np.ndarray) else None
    except InvalidArgument:
        return None
    return None if matrix is None else KeyColumn(tag, matrix, is_descending=part.descending)
