"""Keys of many rows at once, by numpy: each as :func:`cortado.store.keys.codec.encode_parts` gives it.

Parts of a fixed width, with the constant bytes around them (prefix, tags, ends of strings), are laid side by side in
one matrix of bytes, a row of it for each row, and cut into ``bytes`` in C. Only strings, bytes and decimals are handled
value by value; a join puts the pieces of each row together::

    prefix, 20, time (8), 30 │ carrier │ 00 01, 14, flight (8)
    matrix ─────────────────►  list      matrix ──────────────►   b"".join of each row

A column with nulls in it leaves the matrix: its encoding has no fixed width. A column with values not exactly of the
expected type goes through the single encoder, which accepts or refuses them to the letter.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import date
from typing import Final, TypeAlias
from uuid import UUID

import numpy as np
import numpy.typing as npt

from cortado.errors import InvalidArgument, InvalidDocument
from cortado.store.keys.codec import (
    DAYS_MAX,
    DAYS_MIN,
    END_OF_TEXT,
    EPOCH_ORDINAL,
    ESCAPED_ZERO,
    INVERTED,
    NULL_TAG,
    TAGS,
    encode_part,
)
from cortado.store.keys.types import KeyPart, KeyType, KeyValue

Bytes: TypeAlias = npt.NDArray[np.uint8]
Column: TypeAlias = Sequence[KeyValue] | npt.NDArray[np.generic]
"""One part of many rows: a list, or an array of numbers in which a masked element is null."""

_SIGN64: Final = np.uint64(1 << 63)
_NULL_PART: Final = bytes((NULL_TAG,))

_LIST_TYPES: Final[dict[KeyType, type]] = {
    KeyType.BOOL: bool,
    KeyType.INT64: int,
    KeyType.FLOAT64: float,
    KeyType.TIMESTAMP: int,
    KeyType.DATE: date,
    KeyType.UUID: UUID,
    KeyType.BYTES: bytes,
    KeyType.STRING: str,
}
_PLACEHOLDERS: Final[dict[KeyType, KeyValue]] = {
    KeyType.BOOL: False,
    KeyType.INT64: 0,
    KeyType.FLOAT64: 0.0,
    KeyType.TIMESTAMP: 0,
    KeyType.DATE: date(1970, 1, 1),
    KeyType.UUID: UUID(int=0),
    KeyType.BYTES: b"",
    KeyType.STRING: "",
}
_ARRAY_KINDS: Final[dict[KeyType, str]] = {
    KeyType.BOOL: "b",
    KeyType.INT64: "iu",
    KeyType.FLOAT64: "f",
    KeyType.TIMESTAMP: "iu",
    KeyType.DATE: "iu",
}


def encode_columns(
    prefix: bytes, columns: Sequence[Column], parts: Sequence[KeyPart], *, suffixes: Sequence[bytes] | None = None
) -> list[bytes]:
    """Return the key of each row: ``prefix``, its parts, its suffix.

    A column is a list of key values, or an array of plain numbers (timestamps in microseconds, dates in days; a masked
    element is null). Raises InvalidArgument if the columns are not as many as the parts or not of one length, and
    InvalidDocument with the row and the part's path for the first value of a column that does not fit.
    """
    if len(columns) != len(parts) or not columns:
        raise InvalidArgument("key", f"must have {len(parts)} columns, at least one", f"{len(columns)} columns")
    rows = len(columns[0])
    for name, length in [
        *((part.path, len(column)) for part, column in zip(parts, columns, strict=True)),
        ("suffixes", rows if suffixes is None else len(suffixes)),
    ]:
        if length != rows:
            raise InvalidArgument(name, f"must have {rows} rows, as the first column has", f"{length} rows")
    if rows == 0:
        return []
    keys = _Rows(rows)
    keys.add_constant(prefix)
    for column, part in zip(columns, parts, strict=True):
        _add_part(keys, column, part)
    if suffixes is not None:
        keys.add_pieces(suffixes)
    return keys.joined()


class _Rows:
    """The pieces of every row, in order. Constants and matrices gather until a list of pieces comes between."""

    def __init__(self, rows: int) -> None:
        self._rows = rows
        self._blocks: list[Bytes] = []
        self._pieces: list[Iterable[bytes]] = []

    def add_constant(self, constant: bytes) -> None:
        self._blocks.append(np.broadcast_to(np.frombuffer(constant, np.uint8), (self._rows, len(constant))))

    def add_matrix(self, matrix: Bytes) -> None:
        """``matrix`` has the shape (rows, width)."""
        self._blocks.append(matrix)

    def add_pieces(self, pieces: Sequence[bytes]) -> None:
        self._cut()
        self._pieces.append(pieces)

    def joined(self) -> list[bytes]:
        self._cut()
        if len(self._pieces) == 1:
            return list(self._pieces[0])
        return list(map(b"".join, zip(*self._pieces, strict=True)))

    def _cut(self) -> None:
        if sum(block.shape[1] for block in self._blocks):
            self._pieces.append(cut_rows(np.hstack(self._blocks)))
        self._blocks = []


def cut_rows(matrix: Bytes) -> list[bytes]:
    """Return each row of a matrix of bytes as ``bytes`` (12 ns a row; slicing takes 55)."""
    return np.ascontiguousarray(matrix).view(f"V{matrix.shape[1]}").ravel().tolist()


# --- parts -----------------------------------------------------------------------------------------------------


def _add_part(keys: _Rows, column: Column, part: KeyPart) -> None:
    values, is_null = _split_nulls(column, part)
    try:
        if part.type in (KeyType.STRING, KeyType.BYTES):
            _add_texts(keys, _texts(values, part.type), is_null, part)
        else:
            _add_fixed(keys, _fixed_payloads(values, part), is_null, part)
    except _Unexpected:
        keys.add_pieces(_one_by_one(column, part))


class _Unexpected(Exception):
    """A column that the single encoder should look at, value by value."""


def nulls_of(column: Column) -> npt.NDArray[np.bool_] | None:
    """Return a mask of a column's nulls; None if it has none."""
    if isinstance(column, np.ndarray) and column.dtype.kind != "O":
        is_null = np.ma.getmaskarray(column)
        return is_null if is_null.any() else None
    if None not in column:
        return None
    return np.fromiter((value is None for value in column), np.bool_, len(column))


def _split_nulls(column: Column, part: KeyPart) -> tuple[Column, npt.NDArray[np.bool_] | None]:
    """Return the column with a placeholder for each null, and a mask of the nulls (None: it has none)."""
    if isinstance(column, np.ndarray) and column.dtype.kind == "O":
        column = column.tolist()
    is_null = nulls_of(column)
    if isinstance(column, np.ndarray):
        if column.dtype.kind not in "iufb":
            raise InvalidArgument(
                part.path, f"an array of {column.dtype} cannot be a key's column: use numbers or a list"
            )
        return np.ma.getdata(column), is_null
    if is_null is None:
        return column, None
    placeholder = _PLACEHOLDERS.get(part.type)
    return [placeholder if value is None else value for value in column], is_null


def _one_by_one(column: Column, part: KeyPart) -> list[bytes]:
    values: Sequence[KeyValue] = column.tolist() if isinstance(column, np.ndarray) else column
    encoded = []
    for row, value in enumerate(values):
        try:
            encoded.append(encode_part(value, part.type, part.descending, path=part.path))
        except InvalidArgument as refused:
            raise InvalidDocument(part.path, refused.problem, refused.value, row=row) from None
    return encoded


# --- strings and bytes -----------------------------------------------------------------------------------------


def _texts(values: Column, key_type: KeyType) -> list[bytes]:
    """Escaped, without tag and end."""
    if isinstance(values, np.ndarray) or set(map(type, values)) != {_LIST_TYPES[key_type]}:
        raise _Unexpected
    try:
        raw: list[bytes] = list(map(str.encode, values) if key_type is KeyType.STRING else values)  # type: ignore
    except UnicodeEncodeError:
        raise _Unexpected from None
    if b"\0" in b"".join(raw):
        return [each.replace(b"\0", ESCAPED_ZERO) for each in raw]
    return raw


def _add_texts(keys: _Rows, texts: list[bytes], is_null: npt.NDArray[np.bool_] | None, part: KeyPart) -> None:
    tag, end, null = bytes((TAGS[part.type],)), END_OF_TEXT, _NULL_PART
    if part.descending:
        tag, end, null = tag.translate(INVERTED), end.translate(INVERTED), null.translate(INVERTED)
        texts = [text.translate(INVERTED) for text in texts]
    if is_null is None:
        keys.add_constant(tag)
        keys.add_pieces(texts)
        keys.add_constant(end)
    else:
        nulls = is_null.tolist()
        keys.add_pieces([null if n else tag + text + end for text, n in zip(texts, nulls, strict=True)])


# --- parts of a fixed width ------------------------------------------------------------------------------------


def _add_fixed(keys: _Rows, payloads: Bytes, is_null: npt.NDArray[np.bool_] | None, part: KeyPart) -> None:
    tags = np.full((len(payloads), 1), TAGS[part.type], np.uint8)
    if part.descending:
        tags, payloads = ~tags, ~payloads
    if is_null is None:
        keys.add_matrix(tags)
        keys.add_matrix(payloads)
        return
    pieces = cut_rows(np.hstack((tags, payloads)))
    null = _NULL_PART.translate(INVERTED) if part.descending else _NULL_PART
    for row in np.flatnonzero(is_null).tolist():
        pieces[row] = null
    keys.add_pieces(pieces)


def _fixed_payloads(values: Column, part: KeyPart) -> Bytes:
    """Return the payloads as a matrix of bytes, ascending. Raises _Unexpected if the values are not all of the type."""
    if part.type is KeyType.DECIMAL:
        raise _Unexpected
    if isinstance(values, np.ndarray):
        return _payloads_of_array(values, part)
    if set(map(type, values)) != {_LIST_TYPES[part.type]}:
        raise _Unexpected
    rows = len(values)
    if part.type is KeyType.UUID:
        return np.frombuffer(b"".join([value.bytes for value in values]), np.uint8).reshape(rows, 16)  # type: ignore
    if part.type is KeyType.DATE:
        return _of_days(np.fromiter(map(date.toordinal, values), np.int64, rows) - EPOCH_ORDINAL)  # type: ignore
    try:
        return _payloads_of_array(np.array(values), part)
    except OverflowError:
        raise _Unexpected from None


def fixed_values(values: npt.NDArray[np.generic], part: KeyPart) -> Bytes | None:
    """Return the payloads of plain numbers as a matrix of bytes, ascending; None if they are not of the part's type.
    Raises InvalidDocument for a date out of range."""
    try:
        return _payloads_of_array(values, part)
    except _Unexpected:
        return None


def _payloads_of_array(values: npt.NDArray[np.generic], part: KeyPart) -> Bytes:
    if values.dtype.kind not in _ARRAY_KINDS.get(part.type, ""):
        raise _Unexpected
    if part.type is KeyType.BOOL:
        return values.astype(np.uint8).reshape(-1, 1)
    if part.type is KeyType.FLOAT64:
        return _of_floats(values.astype(np.float64))
    if values.dtype.kind == "u" and values.dtype.itemsize == 8 and values.max() >= _SIGN64:
        raise _Unexpected
    whole = values.astype(np.int64)
    if part.type is not KeyType.DATE:
        return _big_endian(whole.view(np.uint64) ^ _SIGN64)
    outside = np.flatnonzero((whole < DAYS_MIN) | (whole > DAYS_MAX))
    if len(outside):
        row = int(outside[0])
        problem = f"must be between {DAYS_MIN} and {DAYS_MAX} days from 1970"
        raise InvalidDocument(part.path, problem, str(whole[row]), row=row)
    return _of_days(whole)


def _of_days(days: npt.NDArray[np.int64]) -> Bytes:
    return _big_endian((days + (1 << 31)).astype(np.uint32))


def _of_floats(numbers: npt.NDArray[np.float64]) -> Bytes:
    canonical = np.where(np.isnan(numbers), np.nan, numbers + 0.0)  # -0.0 + 0.0 is 0.0
    bits = canonical.view(np.uint64)
    return _big_endian(np.where(bits & _SIGN64, ~bits, bits | _SIGN64))


def _big_endian(numbers: npt.NDArray[np.unsignedinteger]) -> Bytes:
    swapped = numbers.astype(numbers.dtype.newbyteorder(">"))
    return swapped.view(np.uint8).reshape(len(numbers), numbers.dtype.itemsize)
