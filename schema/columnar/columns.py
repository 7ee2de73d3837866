"""Columns from columns: spread out over more rows, taken by index, put together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from cortado.schema.columnar.column import (
    Bools,
    Bytes,
    BytesColumn,
    Column,
    FlatColumn,
    Ints,
    ListColumn,
    MapColumn,
    NullColumn,
    Offsets,
    OpaqueColumn,
    RecordColumn,
    UnionColumn,
    offsets_of,
)
from cortado.schema.columnar.lanes import spread

C = TypeVar("C", bound=Column)


def expand(column: Column, present: Bools) -> Column:
    """Return one row for each of ``present``: the column's next row for True, null for False."""
    length = len(present)
    if column.length == length:
        return column
    validity = np.zeros(length, np.bool_)
    validity[present] = True if column.validity is None else column.validity
    match column:
        case FlatColumn():
            values = np.zeros(length, column.values.dtype)
            values[present.nonzero()[0]] = column.values
            return FlatColumn(column.type, length, values, validity=validity)
        case BytesColumn() | OpaqueColumn() | ListColumn() | MapColumn():
            return replace(column, length=length, offsets=_spaced(column.offsets, present), validity=validity)
        case RecordColumn():
            return RecordColumn(column.type, length, column.children, validity=validity)
        case UnionColumn():
            branches = np.zeros(length, np.int32)
            branches[present] = column.branches
            return UnionColumn(column.type, length, branches, column.children, validity=validity)
        case _:
            return NullColumn(column.type, length)


def _spaced(offsets: Offsets, present: Bools) -> Offsets:
    before = np.zeros(len(present) + 1, np.int64)
    np.cumsum(present, out=before[1:])
    return offsets[before]


def field_column(column: Column, path: str) -> Column:
    """Return the field at ``path`` (``address.city``) of a record column, with the record's rows: null if a record
    is."""
    present: list[Bools] = []
    for step in path.split("."):
        if not isinstance(column, RecordColumn):
            raise KeyError(path)
        if column.validity is not None:
            present.append(column.validity)
        column = column.children[step]
    for mask in reversed(present):
        column = expand(column, mask)
    return column


def take(column: C, index: npt.NDArray[np.intp] | Ints) -> C:
    """Return the rows at ``index``, which may repeat and come in any order."""
    validity = None if column.validity is None else column.validity[index]
    if validity is not None and validity.all():
        validity = None
    taken: Column
    match column:
        case FlatColumn():
            taken = FlatColumn(column.type, len(index), column.values[index], validity=validity)
        case BytesColumn() | OpaqueColumn():
            picked, offsets = _ranges(column.offsets, index)
            data = column.data[picked]
            taken = replace(column, length=len(index), offsets=offsets, data=data, validity=validity)
        case ListColumn():
            picked, offsets = _ranges(column.offsets, index)
            taken = ListColumn(column.type, len(index), offsets, take(column.items, picked), validity=validity)
        case MapColumn():
            picked, offsets = _ranges(column.offsets, index)
            keys, values = take(column.keys, picked), take(column.values, picked)
            taken = MapColumn(column.type, len(index), offsets, keys, values, validity=validity)
        case RecordColumn():
            dense = _dense(column.validity, index)
            children = {name: take(child, dense) for name, child in column.children.items()}
            taken = RecordColumn(column.type, len(index), children, validity=validity)
        case UnionColumn():
            taken = _take_union(column, index, validity)
        case _:
            taken = NullColumn(column.type, len(index))
    assert isinstance(taken, type(column))
    return taken


def _ranges(offsets: Offsets, index: npt.NDArray[np.intp] | Ints) -> tuple[Ints, Offsets]:
    starts = offsets[:-1][index].astype(np.int64)
    lengths = offsets[1:][index] - starts
    taken = offsets_of(lengths)
    return spread(starts, lengths, taken), taken


def _dense(validity: Bools | None, index: npt.NDArray[np.intp] | Ints) -> Ints:
    """Return the places of the rows at ``index`` among the rows that are not null: a record's children have no
    others."""
    if validity is None:
        return np.asarray(index, np.int64)
    rank: Ints = np.cumsum(validity) - 1
    return rank[index[validity[index]]]


def present_rows(column: Column) -> npt.NDArray[np.intp]:
    """Return the rows that are not null."""
    return np.arange(column.length) if column.validity is None else np.flatnonzero(column.validity)


def squeeze(column: Column) -> Column:
    """Return the rows that are not null: the inverse of :func:`expand`."""
    if column.validity is None:
        return column
    present = np.flatnonzero(column.validity)
    length = len(present)
    match column:
        case FlatColumn():
            return FlatColumn(column.type, length, column.values[present])
        # A null row's range is empty, so the ranges that are left still follow each other.
        case BytesColumn() | OpaqueColumn() | ListColumn() | MapColumn():
            return replace(column, length=length, offsets=_kept(column.offsets, present), validity=None)
        case RecordColumn():
            return RecordColumn(column.type, length, column.children)
        case UnionColumn():
            return UnionColumn(column.type, length, column.branches[present], column.children)
        case _:
            return column


def _kept(offsets: Offsets, present: npt.NDArray[np.intp]) -> Offsets:
    return np.append(offsets[present], offsets[-1])


def branch_rows(column: UnionColumn, branch: int) -> npt.NDArray[np.intp]:
    """Return the rows with a value of this branch, in the order of the branch's child."""
    mine = column.branches == branch
    return np.flatnonzero(mine if column.validity is None else mine & column.validity)


def _take_union(column: UnionColumn, index: npt.NDArray[np.intp] | Ints, validity: Bools | None) -> UnionColumn:
    branches = column.branches[index]
    children = []
    for number, child in enumerate(column.children):
        rank = np.zeros(column.length, np.int64)
        rank[branch_rows(column, number)] = np.arange(child.length)
        mine = branches == number
        children.append(take(child, rank[index[mine if validity is None else mine & validity]]))
    return UnionColumn(column.type, len(index), branches, tuple(children), validity=validity)


def concat(columns: Sequence[Column]) -> Column:
    """Return the columns' rows behind each other. All are of one type, and there is at least one."""
    if len(columns) == 1:
        return columns[0]
    first = columns[0]
    length = sum(each.length for each in columns)
    validity = _concat_validity(columns)
    match first:
        case FlatColumn():
            values = np.concatenate([each.values for each in _all(columns, FlatColumn)])
            return FlatColumn(first.type, length, values, validity=validity)
        case BytesColumn():
            offsets, data = _concat_bytes(_all(columns, BytesColumn))
            return BytesColumn(first.type, length, offsets, data, validity=validity)
        case OpaqueColumn():
            offsets, data = _concat_bytes(_all(columns, OpaqueColumn))
            return OpaqueColumn(first.type, length, offsets, data, validity=validity)
        case ListColumn():
            lists = _all(columns, ListColumn)
            items = concat([each.items for each in lists])
            return ListColumn(first.type, length, _concat_offsets(lists), items, validity=validity)
        case MapColumn():
            maps = _all(columns, MapColumn)
            keys, entries = concat([each.keys for each in maps]), concat([each.values for each in maps])
            assert isinstance(keys, BytesColumn)
            return MapColumn(first.type, length, _concat_offsets(maps), keys, entries, validity=validity)
        case RecordColumn():
            records = _all(columns, RecordColumn)
            children = {name: concat([each.children[name] for each in records]) for name in first.children}
            return RecordColumn(first.type, length, children, validity=validity)
        case UnionColumn():
            unions = _all(columns, UnionColumn)
            branches = np.concatenate([each.branches for each in unions])
            united = tuple(concat(list(child)) for child in zip(*(each.children for each in unions), strict=True))
            return UnionColumn(first.type, length, branches, united, validity=validity)
        case _:
            return NullColumn(first.type, length)


def _all(columns: Sequence[Column], kind: type[C]) -> list[C]:
    kept = [each for each in columns if isinstance(each, kind)]
    assert len(kept) == len(columns)
    return kept


def _concat_validity(columns: Sequence[Column]) -> Bools | None:
    if all(each.validity is None for each in columns):
        return None
    return np.concatenate(
        [np.ones(each.length, np.bool_) if each.validity is None else each.validity for each in columns]
    )


def _concat_offsets(columns: Sequence[BytesColumn | OpaqueColumn | ListColumn | MapColumn]) -> Offsets:
    return offsets_of(np.concatenate([np.diff(each.offsets) for each in columns]))


def _concat_bytes(columns: Sequence[BytesColumn | OpaqueColumn]) -> tuple[Offsets, Bytes]:
    return _concat_offsets(columns), np.concatenate([each.data for each in columns])
