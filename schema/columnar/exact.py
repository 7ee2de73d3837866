"""Decimals and UUIDs in forms that numpy compares: whole numbers, and bytes of one size."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np

from cortado.schema.columnar.checks import UUID_TEXT_BYTES, low_words, uuid_bytes
from cortado.schema.columnar.column import BytesColumn, FlatColumn
from cortado.schema.model import Fixed, Kind, Primitive

UNIT_DIGITS_MAX: Final = 18
"""The most digits of a decimal that fits 64 bits."""
UUID_BYTES: Final = 16

_LONG: Final = Primitive(Kind.LONG)


def decimal_units(column: BytesColumn) -> FlatColumn:
    """Return decimals of up to 18 digits as counts of their smallest unit; zero for a null row."""
    values = np.zeros(column.length, np.int64)
    # A null row's range is empty, and a decimal's is not.
    rows = np.flatnonzero(np.diff(column.offsets))
    if len(rows):
        values[rows], _ = low_words(column.data, column.offsets, rows)
    return FlatColumn(_LONG, column.length, values, validity=column.validity)


def uuid_column(column: BytesColumn) -> BytesColumn:
    """UUIDs as 16 bytes each, whether they are stored so or as text, of either case."""
    if isinstance(column.type, Fixed):
        return column
    return replace(column, offsets=column.offsets // UUID_TEXT_BYTES * UUID_BYTES, data=uuid_bytes(column.data))
