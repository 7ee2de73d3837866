"""Rows' and index entries' keys for many rows at once (needs numpy): the map of the keyspace, column by column.

Both functions build every key or none: the first row that has no key raises. A caller that must answer for each row
then asks :func:`~cortado.store.keys.keyspace.row_key` or :func:`~cortado.store.keys.keyspace.index_key` row by row.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import numpy as np

from cortado.errors import InvalidDocument
from cortado.store.keys.columns import Column, encode_columns, nulls_of
from cortado.store.keys.keyspace import LOGICAL_KEY_BYTES_MAX, check_key_length, index_prefix, row_prefix
from cortado.store.keys.types import KeyPart, LogicalKey


def row_keys(
    table_id: int, parts: Sequence[KeyPart], columns: Sequence[Column], *, what: str = "primary key"
) -> list[LogicalKey]:
    """Return each row's key, from one column for each part. Raises as ``row_key`` does; InvalidDocument names the
    row."""
    for part, column in zip(parts, columns, strict=False):
        is_null = nulls_of(column)
        if is_null is not None:
            problem = "must not be null in a primary key"
            raise InvalidDocument(part.path, problem, row=int(np.flatnonzero(is_null)[0]))
    return _checked(encode_columns(row_prefix(table_id), columns, parts), what)


def index_keys(
    table_id: int,
    index_id: int,
    parts: Sequence[KeyPart],
    columns: Sequence[Column],
    primary_keys: Sequence[bytes],
    *,
    unique: bool,
    what: str = "index",
) -> list[LogicalKey]:
    """Return each row's entry; ``primary_keys`` are the rows', encoded. Raises as ``index_key`` does."""
    suffixes: Sequence[bytes] | None = primary_keys
    if unique:
        masks = [is_null for is_null in map(nulls_of, columns) if is_null is not None]
        with_null = np.logical_or.reduce(masks).tolist() if masks else None
        suffixes = with_null and [key if null else b"" for key, null in zip(primary_keys, with_null, strict=True)]
    return _checked(encode_columns(index_prefix(table_id, index_id), columns, parts, suffixes=suffixes), what)


def _checked(keys: list[bytes], what: str) -> list[LogicalKey]:
    if max(map(len, keys), default=0) > LOGICAL_KEY_BYTES_MAX:
        for key in keys:
            check_key_length(key, what)
    return cast(list[LogicalKey], keys)
