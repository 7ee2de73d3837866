"""Rows of a bulk chunk that hold some of a document's fields: completed from the stored rows, column by column.

::

    rows of the chunk    key, stock            │ (7, 3)
    stored rows          key, name, stock      │ (7, "tea", 9), perhaps written with an older schema
    whole rows           in the newest schema  │ (7, "tea", 3)

A row that is not there cannot be completed, and is refused. The rest is a chunk of whole rows that replace others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from cortado.errors import ConditionFailed, InvalidDocument, TooLarge
from cortado.schema.columnar.column import Column
from cortado.schema.columnar.columns import take
from cortado.schema.columnar.encode import encode_rows
from cortado.store.keys.keyspace import primary_key_of
from cortado.store.keys.packing import cut
from cortado.store.mvcc.reader import Version
from cortado.store.tables.chunk import PreparedChunk, PreparedParts, RowErrors, at_row, prepare_documents
from cortado.store.tables.columns import decode_columns
from cortado.store.tables.entries import IndexEntries
from cortado.store.tables.operations import AvroRows, BulkChunk, BulkMode
from cortado.store.tables.rows import BATCH_BYTES_MAX
from cortado.store.tables.view import TableView


class Completed(NamedTuple):
    """A chunk with whole rows, the same prepared, and the stored version of each prepared row."""

    chunk: BulkChunk
    prepared: PreparedChunk
    live: Sequence[Version]


def complete(parts: PreparedParts, live: Sequence[Version | None], chunk: BulkChunk) -> Completed:
    """Return the chunk with whole rows: those of ``parts`` over the stored ones.

    ``live`` is the stored version under each row's key. Raises DataLoss, and TooLarge if the whole rows are more than a
    chunk may have.
    """
    view = parts.view
    errors: RowErrors = dict(parts.errors)
    present = [row for row, version in enumerate(live) if version is not None]
    if len(present) < len(live):
        for row in sorted(set(range(len(live))).difference(present)):
            shown = view.show_key(primary_key_of(parts.row_keys[row]))
            errors[parts.places[row]] = ConditionFailed(shown, "present", "absent", row=parts.places[row])
    bodies: list[bytes] = [b""] * len(present)
    changed = {name: parts.columns[name] for name in chunk.columns}
    versions = [version for version in live if version is not None]
    stored = [version.payload for version in versions]
    for rows, columns in decode_columns(view, stored, view.newest, None) if stored else ():
        index = np.asarray([present[row] for row in rows], np.intp)
        merged = {**columns, **{name: take(column, index) for name, column in changed.items()}}
        for row, body in zip(rows, _encoded(view, merged, len(rows)), strict=True):
            bodies[row] = body
    total = sum(map(len, bodies))
    if total > BATCH_BYTES_MAX:
        problem = f"whole rows of an updated chunk may have {BATCH_BYTES_MAX} bytes: send fewer rows a chunk"
        raise TooLarge("rows", problem, f"{total} bytes", total, BATCH_BYTES_MAX)
    lengths = np.fromiter(map(len, bodies), dtype="<u4", count=len(bodies)).tobytes()
    whole = replace(chunk, rows=AvroRows(view.newest_id, b"".join(bodies), lengths), mode=BulkMode.REPLACE, columns=())
    prepared = prepare_documents(view, whole)
    places = [parts.places[row] for row in present]
    errors |= {places[row]: at_row(error, places[row]) for row, error in prepared.errors.items()}
    versions = [versions[row] for row in prepared.places]
    expiries = [version.expires_ms for version in versions] if chunk.expiry is None else None
    prepared = replace(prepared, places=[places[row] for row in prepared.places], errors=errors, expiries=expiries)
    return Completed(whole, prepared, versions)


def _encoded(view: TableView, columns: Mapping[str, Column], count: int) -> Sequence[bytes]:
    """Return the rows' bodies; a row that has become too large gets a body that may not be stored."""
    try:
        bodies, lengths = encode_rows(view.newest, columns, count, bytes_max=BATCH_BYTES_MAX)
    except InvalidDocument as refused:
        problem = f"whole rows of an updated chunk may have {BATCH_BYTES_MAX} bytes: send fewer rows a chunk"
        raise TooLarge("rows", problem, refused.problem, BATCH_BYTES_MAX + 1, BATCH_BYTES_MAX) from refused
    return cut(bodies, lengths.astype("<u4", copy=False).tobytes())


def keys_of_rows(parts: PreparedParts) -> PreparedChunk:
    """Return rows to be deleted, as a chunk with empty payloads in the place of the stored ones."""
    view = parts.view
    primary_keys = [primary_key_of(key) for key in parts.row_keys] if view.indexes else []
    entries = [IndexEntries(index, list(parts.row_keys), [False] * len(parts.row_keys)) for index in view.indexes]
    payloads = [b""] * len(parts.row_keys)
    return PreparedChunk(view, parts.places, parts.row_keys, primary_keys, payloads, entries, parts.errors)
