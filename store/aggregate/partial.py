"""Groups of the rows looked at so far, in columns, until they leave."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np

from cortado.errors import TooLarge
from cortado.schema.columnar.column import BytesColumn, Column, FlatColumn
from cortado.schema.columnar.columns import concat, take
from cortado.schema.columnar.encode import encode_rows
from cortado.store.aggregate.bind import Aggregation
from cortado.store.aggregate.reduce import Merge, group_rows, reduce_column
from cortado.store.aggregate.values import ordered, travelling
from cortado.store.mvcc.walks import ColumnKernel

GROUPS_MAX: Final = 100_000
GROUPS_BYTES_MAX: Final = 2 << 20
"""More groups, or more bytes of them, leave: a reply then fits what gRPC lets a caller take unasked, 4 MiB."""
GROUP_BYTES_MAX: Final = 7 << 20
"""The bound on one group as it travels."""

_APART_MAX: Final = 8_000
_PIECES_MAX: Final = 64
"""So many groups of single slices, or slices, wait to be put together: that costs some numpy calls at least."""


Kept: TypeAlias = list[tuple[Merge, Column]]


@dataclass(frozen=True, slots=True)
class Piece:
    """Groups, each once: the columns of their keys, and the state of each measure."""

    keys: list[Column]
    kept: list[Kept]
    count: int

    @property
    def bytes(self) -> int:
        """Return about how many bytes they take as they travel."""
        return sum(map(_bytes, self.keys)) + sum(_bytes(column) for kept in self.kept for _, column in kept)


def _bytes(column: Column) -> int:
    if isinstance(column, BytesColumn):
        return len(column.data) + 3 * column.length
    assert isinstance(column, FlatColumn)
    return column.length * (column.values.dtype.itemsize + 2)


def piece_of(
    aggregation: Aggregation, columns: Mapping[str, Column], rows: int, kernel: ColumnKernel | None = None
) -> Piece:
    """Return the groups of these rows, at least one row; ``columns`` are by path. The compiled kernel does it, if there
    is one."""
    keys = [ordered(columns[field.path], field) for field in aggregation.group_by]
    kept = [measure.begin(columns, rows) for measure in aggregation.measures]
    return _together(keys, kept, rows, kernel)


def _together(keys: list[Column], kept: list[Kept], rows: int, kernel: ColumnKernel | None) -> Piece:
    groups = group_rows(keys, rows, kernel)
    return Piece(
        [take(key, groups.first_rows) for key in keys],
        [[(merge, reduce_column(merge, column, groups)) for merge, column in each] for each in kept],
        len(groups),
    )


def _behind_each_other(kept: Sequence[Kept]) -> Kept:
    """Join the states of one measure in several pieces."""
    return [(parts[0][0], concat([column for _, column in parts])) for parts in zip(*kept, strict=True)]


class PartialGroups:
    """The groups of the rows since the last reply, or of a part of the rows behind those."""

    def __init__(self, aggregation: Aggregation) -> None:
        self._aggregation = aggregation
        self._pieces: list[Piece] = []
        self._count = self._bytes = self._apart = 0
        self.share = 1
        """Of how many holders of the bounds this is one: 2 halves them."""
        self.is_full = False
        """Whether there are as many as may be, and have to leave."""
        self.kernel: ColumnKernel | None = None
        """The compiled kernel that groups, if there is one."""

    @property
    def held(self) -> tuple[int, int]:
        """How many groups are held, and about how many bytes: some twice, until they are joined."""
        return self._count, self._bytes

    def add(self, piece: Piece) -> None:
        """Put the groups of more rows to those that are there."""
        self._pieces.append(piece)
        self._count += piece.count
        self._bytes += piece.bytes
        self._apart += piece.count
        if self.share * self._count >= GROUPS_MAX or self.share * self._bytes >= GROUPS_BYTES_MAX:
            self.join()
            # At half of it, so that a join is followed by as many rows as it had.
            half = 2 * self.share
            self.is_full = half * self._count >= GROUPS_MAX or half * self._bytes >= GROUPS_BYTES_MAX
        elif self._apart >= max(_APART_MAX, self._pieces[0].count) or len(self._pieces) >= _PIECES_MAX:
            self.join()

    def absorb(self, other: PartialGroups) -> None:
        """Take over the groups of another part; that is empty then."""
        other.join()
        for piece in other._pieces:
            self.add(piece)
        other._pieces = []
        other._count = other._bytes = 0

    def join(self) -> None:
        """Put equal groups together now. It costs some numpy calls."""
        pieces = self._pieces
        if len(pieces) > 1:
            keys = [concat(list(columns)) for columns in zip(*(piece.keys for piece in pieces), strict=True)]
            kept = [_behind_each_other(each) for each in zip(*(piece.kept for piece in pieces), strict=True)]
            joined = _together(keys, kept, self._count, self.kernel)
            self._pieces, self._count, self._bytes = [joined], joined.count, joined.bytes
        self._apart = 0

    def take(self) -> tuple[bytes, np.ndarray[tuple[int], np.dtype[np.uint32]]]:
        """Return all of them as Avro bodies of the groups' schema, end to end, and their lengths; none are left. Raises
        TooLarge for a group that no reply could hold."""
        self.join()
        self.is_full = False
        if not self._pieces:
            return b"", np.zeros(0, np.uint32)
        piece = self._pieces.pop()
        self._count = self._bytes = 0
        columns = [travelling(key, field) for key, field in zip(piece.keys, self._aggregation.group_by, strict=True)]
        for measure, kept in zip(self._aggregation.measures, piece.kept, strict=True):
            columns += measure.travelling([column for _, column in kept])
        schema = self._aggregation.groups_schema
        named = dict(zip((field.name for field in schema.record.fields), columns, strict=True))
        if piece.count == 1 and piece.bytes > GROUP_BYTES_MAX:
            problem = f"one has {piece.bytes} bytes, a reply may have {GROUP_BYTES_MAX}"
            raise TooLarge("groups", problem, "", piece.bytes, GROUP_BYTES_MAX)
        return encode_rows(schema, named, piece.count, bytes_max=GROUP_BYTES_MAX + 1024)
