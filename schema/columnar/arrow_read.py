"""Arrow arrays to columns of an Avro type: the types of ``docs/formats/avro-arrow.md``, and ones that fit into them.

Nulls are taken out first and put back last, so that Arrow's memory under a null is never read.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from cortado.errors import InvalidArgument
from cortado.schema.columnar.checks import uuid_bytes, wrong_uuids
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
    RecordColumn,
    UnionColumn,
    logical_kind,
    offsets_of,
)
from cortado.schema.columnar.columns import expand
from cortado.schema.columnar.origin import Origin
from cortado.schema.model import (
    NULL,
    Array,
    AvroType,
    Enum,
    Fixed,
    Kind,
    LogicalKind,
    Map,
    Primitive,
    Record,
    Union,
)
from cortado.schema.names import describe_type

# One unit of the stored number, in nanoseconds.
_MILLI, _MICRO, _NANO = 10**6, 10**3, 1
_UNITS = {"s": 10**9, "ms": _MILLI, "us": _MICRO, "ns": _NANO}
_STORED = {
    LogicalKind.TIME_MILLIS: _MILLI,
    LogicalKind.TIME_MICROS: _MICRO,
    LogicalKind.TIMESTAMP_MILLIS: _MILLI,
    LogicalKind.TIMESTAMP_MICROS: _MICRO,
    LogicalKind.TIMESTAMP_NANOS: _NANO,
    LogicalKind.LOCAL_TIMESTAMP_MILLIS: _MILLI,
    LogicalKind.LOCAL_TIMESTAMP_MICROS: _MICRO,
    LogicalKind.LOCAL_TIMESTAMP_NANOS: _NANO,
}
_NANOS = (LogicalKind.TIMESTAMP_NANOS, LogicalKind.LOCAL_TIMESTAMP_NANOS)
_TIMES = (LogicalKind.TIME_MILLIS, LogicalKind.TIME_MICROS)
_ZONED = (LogicalKind.TIMESTAMP_MILLIS, LogicalKind.TIMESTAMP_MICROS, LogicalKind.TIMESTAMP_NANOS)
_COUNT_MAX = 2**32 - 1


def read_array(array: pa.Array, type_: AvroType, origin: Origin) -> Column:
    """Return an array's values as a column of ``type_``; nulls stay nulls even if the type has none.

    Raises InvalidArgument for an array of a type that does not go into ``type_``, InvalidDocument for a value.
    """
    array = _plain(array)
    if isinstance(type_, Union) and type_.nullable is None:
        return _read_union(array, type_, origin)
    inner = type_.nullable if isinstance(type_, Union) else type_
    assert inner is not None
    if pa.types.is_null(array.type):
        return NullColumn(NULL, len(array))
    if not array.null_count:
        return _read(array, inner, origin)
    validity = array.is_valid().to_numpy(zero_copy_only=False)
    column = _read(array.drop_null(), inner, origin.where(np.flatnonzero(validity)))
    return expand(column, validity)


def _plain(array: pa.Array) -> pa.Array:
    """Return the array in the layout that is read here: no dictionaries, views, large offsets or extensions."""
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    kind = array.type
    if pa.types.is_dictionary(kind):
        return _plain(array.dictionary_decode())
    if pa.types.is_run_end_encoded(kind):
        return _plain(pc.run_end_decode(array))
    if pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return array.cast(pa.string())
    if pa.types.is_large_binary(kind) or pa.types.is_binary_view(kind):
        return array.cast(pa.binary())
    if pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind) or pa.types.is_list_view(kind):
        return array.cast(pa.list_(kind.value_field))
    return array


def _read(array: pa.Array, type_: AvroType, origin: Origin) -> Column:
    """Read an array without nulls, of a type that is no union."""
    match type_:
        case Primitive(logical=None) | Enum() | Fixed(logical=None):
            return _read_plain(array, type_, origin)
        case Primitive() | Fixed():
            return _read_logical(array, type_, origin)
        case Array() if pa.types.is_list(array.type):
            offsets, first, count = _list_offsets(array)
            items = read_array(array.values.slice(first, count), type_.items, origin.items(offsets))
            return ListColumn(type_, len(array), offsets, items)
        case Map() if pa.types.is_map(array.type):
            offsets, first, count = _list_offsets(array)
            inside = origin.items(offsets)
            keys = read_array(array.keys.slice(first, count), Primitive(Kind.STRING), inside)
            values = read_array(array.items.slice(first, count), type_.values, inside)
            assert isinstance(keys, BytesColumn)
            return MapColumn(type_, len(array), offsets, keys, values)
        case Record() if pa.types.is_struct(array.type):
            return RecordColumn(type_, len(array), _read_fields(array, type_, origin))
        case _:
            raise _refused(array, type_, origin)


def _refused(array: pa.Array, type_: AvroType, origin: Origin) -> InvalidArgument:
    return InvalidArgument(f"column {origin.path()}", f"cannot be written as {describe_type(type_)}", f"{array.type}")


def _read_fields(array: pa.Array, record: Record, origin: Origin) -> dict[str, Column]:
    members = dict(zip((member.name for member in array.type), array.flatten(), strict=True))
    for name in members:
        if record.field(name) is None:
            raise InvalidArgument(f"column {origin.field(name).path()}", f"{record.name} has no such field")
    columns = {}
    for field in record.fields:
        if field.name not in members:
            raise InvalidArgument(
                f"column {origin.field(field.name).path()}", f"is missing; {record.name} has that field"
            )
        columns[field.name] = read_array(members[field.name], field.type, origin.field(field.name))
    return columns


def _read_union(array: pa.Array, union: Union, origin: Origin) -> Column:
    """Read a struct with one member set (see the table of types); with one branch, the value itself."""
    numbers = [number for number, branch in enumerate(union.branches) if branch != NULL]
    null = union.branches.index(NULL) if NULL in union.branches else None
    count = len(array)
    if len(numbers) <= 1:
        branch = union.branches[numbers[0]] if numbers else NULL
        return UnionColumn(union, count, np.zeros(count, np.int32), (read_array(array, branch, origin),))
    if pa.types.is_null(array.type):
        array = pa.nulls(count, pa.struct([(f"member{place}", pa.null()) for place in range(len(numbers))]))
    names = [f"member{place}" for place in range(len(numbers))]
    if not pa.types.is_struct(array.type) or sorted(member.name for member in array.type) != sorted(names):
        raise _refused(array, union, origin)
    members = dict(zip((member.name for member in array.type), array.flatten(), strict=True))
    valid = np.array([members[name].is_valid().to_numpy(zero_copy_only=False) for name in names])
    chosen = valid.sum(axis=0)
    wrong = chosen > 1 if null is not None else chosen != 1
    if wrong.any():
        row = int(np.argmax(wrong))
        raise origin.error(row, f"must have one member set, has {chosen[row]}")
    branches = np.where(chosen == 1, np.array(numbers)[valid.argmax(axis=0)], null or 0).astype(np.int32)
    children: list[Column] = []
    for number, branch in enumerate(union.branches):
        rows = np.flatnonzero(branches == number)
        if number == null:
            children.append(NullColumn(NULL, len(rows)))
        else:
            member = members[names[numbers.index(number)]].drop_null()
            children.append(read_array(member, branch, origin.where(rows)))
    return UnionColumn(union, count, branches, tuple(children))


# --- types without a logical type ------------------------------------------------------------------------------


def _read_plain(array: pa.Array, type_: Primitive | Fixed | Enum, origin: Origin) -> Column:
    kind = array.type
    match type_:
        case Enum() if pa.types.is_string(kind):
            return _read_enum(array, type_, origin)
        case Fixed() | Primitive(kind=Kind.BYTES) if pa.types.is_binary(kind) or pa.types.is_fixed_size_binary(kind):
            return BytesColumn(type_, len(array), *_byte_ranges(array))
        case Primitive(kind=Kind.STRING) if pa.types.is_string(kind):
            return BytesColumn(type_, len(array), *_byte_ranges(array))
        case Primitive(kind=Kind.BOOLEAN) if pa.types.is_boolean(kind):
            return FlatColumn(type_, len(array), array.to_numpy(zero_copy_only=False))
        case Primitive(kind=Kind.INT | Kind.LONG) if pa.types.is_integer(kind):
            return _integers(array.to_numpy(), type_, origin)
        case Primitive(kind=Kind.FLOAT) if pa.types.is_float32(kind) or pa.types.is_float16(kind):
            return FlatColumn(type_, len(array), array.to_numpy().astype(np.float32, copy=False))
        case Primitive(kind=Kind.DOUBLE) if pa.types.is_floating(kind) or _is_small_integer(kind):
            return FlatColumn(type_, len(array), array.to_numpy().astype(np.float64, copy=False))
        case _:
            raise _refused(array, type_, origin)


def _is_small_integer(kind: pa.DataType) -> bool:
    """Return whether every value is a double exactly."""
    return bool(pa.types.is_integer(kind) and kind.bit_width <= 32)


def _integers(values: npt.NDArray[Any], type_: Primitive, origin: Origin) -> FlatColumn:
    """Integers of any width as those of an int or a long."""
    dtype = np.int32 if type_.kind is Kind.INT else np.int64
    if values.dtype != dtype and len(values):
        limits = np.iinfo(dtype)
        low, high = int(values.min()), int(values.max())
        if low < limits.min or high > limits.max:
            row = int(np.argmin(values) if low < limits.min else np.argmax(values))
            raise origin.error(row, f"is not in the range of {describe_type(type_)}", str(values[row]))
    return FlatColumn(type_, len(values), values.astype(dtype, copy=False))


def _read_enum(array: pa.Array, type_: Enum, origin: Origin) -> Column:
    found = pc.index_in(array, pa.array(type_.symbols, pa.string()))
    if found.null_count:
        row = int(np.argmin(found.is_valid().to_numpy(zero_copy_only=False)))
        raise origin.error(row, f"is not one of the symbols of {type_.name}", repr(array[row].as_py()))
    return FlatColumn(type_, len(array), found.to_numpy())


def _byte_ranges(array: pa.Array) -> tuple[Offsets, Bytes]:
    """Return the (offsets, data) of strings or binaries without nulls."""
    count, buffers = len(array), array.buffers()
    if pa.types.is_fixed_size_binary(array.type):
        width = array.type.byte_width
        data = _view(buffers[1], np.uint8)[array.offset * width : (array.offset + count) * width]
        return offsets_of(np.full(count, width)), data
    if not count:
        return np.zeros(1, np.int32), np.zeros(0, np.uint8)
    offsets = _view(buffers[1], np.int32)[array.offset : array.offset + count + 1]
    data = _view(buffers[2], np.uint8)[offsets[0] : offsets[-1]]
    return (offsets if offsets[0] == 0 else offsets - offsets[0]), data


def _view(buffer: pa.Buffer | None, dtype: type[np.generic]) -> npt.NDArray[Any]:
    return np.zeros(0, dtype) if buffer is None else np.frombuffer(buffer, dtype)


def _list_offsets(array: pa.Array) -> tuple[Offsets, int, int]:
    """Return the offsets from 0, the child at which the first range begins, and the number of children."""
    if not len(array):
        return np.zeros(1, np.int32), 0, 0
    offsets = array.offsets.to_numpy()
    return offsets - offsets[0], int(offsets[0]), int(offsets[-1] - offsets[0])


# --- logical types ---------------------------------------------------------------------------------------------


def _read_logical(array: pa.Array, type_: Primitive | Fixed, origin: Origin) -> Column:
    kind = logical_kind(type_)
    match kind:
        case LogicalKind.DECIMAL if pa.types.is_decimal(array.type) or pa.types.is_integer(array.type):
            return _read_decimal(array, type_, origin)
        case LogicalKind.UUID if pa.types.is_string(array.type):
            return _read_uuid(array, type_, origin)
        case LogicalKind.UUID | LogicalKind.DURATION if isinstance(type_, Fixed) and _is_binary(array.type):
            return BytesColumn(type_, len(array), *_byte_ranges(array))
        case LogicalKind.DURATION if pa.types.is_struct(array.type):
            return _read_duration(array, type_, origin)
        case LogicalKind.DATE if pa.types.is_date(array.type):
            return FlatColumn(type_, len(array), array.cast(pa.date32()).view(pa.int32()).to_numpy())
        case _ if kind in _STORED and isinstance(type_, Primitive):
            return _read_moments(array, type_, kind, origin)
        case _:
            raise _refused(array, type_, origin)


def _is_binary(kind: pa.DataType) -> bool:
    return bool(pa.types.is_binary(kind) or pa.types.is_fixed_size_binary(kind))


def _is_timestamp(kind: pa.DataType, *, zoned: bool) -> bool:
    return bool(pa.types.is_timestamp(kind) and (kind.tz is not None) == zoned)


def _read_moments(array: pa.Array, type_: Primitive, kind: LogicalKind, origin: Origin) -> Column:
    """Timestamps and times of day: in any unit, or as the number that :func:`arrow_schema` makes of them."""
    found = array.type
    is_moment = pa.types.is_time(found) if kind in _TIMES else _is_timestamp(found, zoned=kind in _ZONED)
    if is_moment:
        unit = _UNITS[found.unit]
    elif pa.types.is_integer(found) and kind in (*_NANOS, *_TIMES):
        unit = _MICRO if kind in _TIMES else _NANO
    else:
        raise _refused(array, type_, origin)
    if not pa.types.is_integer(found):
        array = array.view(pa.int32() if pa.types.is_time32(found) else pa.int64())
    long = Primitive(Kind.LONG, type_.logical)
    values = _converted(_integers(array.to_numpy(), long, origin).values, unit, _STORED[kind], type_, origin)
    return _integers(values, type_, origin)


def _converted(values: Ints, unit: int, stored: int, type_: Primitive, origin: Origin) -> Ints:
    """Return ``values`` of ``unit`` nanoseconds as ones of ``stored``: exactly, or truncated if the origin says so."""
    if unit < stored:
        values, rest = np.divmod(values, stored // unit)
        wrong = (rest != 0) & (not origin.truncates)
        problem = f"is finer than {describe_type(type_)} keeps"
    else:
        most = (2**63 - 1) // (unit // stored)
        wrong = (values > most) | (values < -most)
        problem = f"is not in the range of {describe_type(type_)}"
        values = np.where(wrong, 0, values) * (unit // stored)
    if wrong.any():
        raise origin.error(int(np.argmax(wrong)), problem)
    return values


def _read_uuid(array: pa.Array, type_: Primitive | Fixed, origin: Origin) -> Column:
    offsets, data = _byte_ranges(array)
    wrong = wrong_uuids(data, offsets)
    if wrong.any():
        row = int(np.argmax(wrong))
        raise origin.error(row, "is not a UUID", repr(array[row].as_py()))
    if isinstance(type_, Primitive):
        return BytesColumn(type_, len(array), offsets, data)
    return BytesColumn(type_, len(array), offsets_of(np.full(len(array), 16)), uuid_bytes(data))


def _read_duration(array: pa.Array, type_: Primitive | Fixed, origin: Origin) -> Column:
    names = [member.name for member in array.type]
    if sorted(names) != ["days", "milliseconds", "months"]:
        raise _refused(array, type_, origin)
    counts = np.zeros((len(array), 3), "<u4")
    members = dict(zip(names, array.flatten(), strict=True))
    for place, name in enumerate(("months", "days", "milliseconds")):
        member, inside = members[name], origin.field(name)
        if member.null_count or not pa.types.is_integer(member.type):
            raise _refused(array, type_, origin)
        values = member.to_numpy()
        wrong = (values < 0) | (values > _COUNT_MAX)
        if wrong.any():
            row = int(np.argmax(wrong))
            raise inside.error(row, f"must be from 0 to {_COUNT_MAX}", str(values[row]))
        counts[:, place] = values
    return BytesColumn(type_, len(array), offsets_of(np.full(len(array), 12)), counts.view(np.uint8).reshape(-1))


def _read_decimal(array: pa.Array, type_: Primitive | Fixed, origin: Origin) -> Column:
    assert type_.logical is not None
    target = pa.decimal128(38, type_.logical.scale)
    try:
        array = array.cast(target)
    except pa.ArrowInvalid:
        raise _unfit_decimal(array, target, type_, origin) from None
    start = array.offset * 16
    words = _view(array.buffers()[1], np.uint8)[start : start + 16 * len(array)].reshape(-1, 16)[:, ::-1]
    negative = words[:, 0] >= 0x80
    fill = np.where(negative, 0xFF, 0).astype(np.uint8)[:, None]
    # Leading bytes that only repeat the sign go, as long as the next one still shows it; one byte stays.
    idle = (words[:, :-1] == fill) & ((words[:, 1:] >= 0x80) == negative[:, None])
    spare = np.logical_and.accumulate(idle, axis=1).sum(axis=1)
    wrong = _over(words, 10**type_.logical.precision)
    if wrong.any():
        row = int(np.argmax(wrong))
        raise origin.error(row, f"has more than {type_.logical.precision} digits", str(array[row].as_py()))
    if isinstance(type_, Fixed):
        size = type_.size
        wide = np.broadcast_to(fill, (len(array), max(size, 16))).copy()
        wide[:, wide.shape[1] - 16 :] = words
        return BytesColumn(type_, len(array), offsets_of(np.full(len(array), size)), wide[:, -size:].reshape(-1))
    kept: Bools = np.arange(16) >= spare[:, None]
    return BytesColumn(type_, len(array), offsets_of(16 - spare), words[kept])


def _over(words: Bytes, bound: int) -> Bools:
    """Return a mask of the big-endian 16-byte numbers that are not within ``-bound < number < bound``."""
    halves = np.ascontiguousarray(words)
    high = halves[:, :8].copy().view(">i8")[:, 0].astype(np.int64)
    low = halves[:, 8:].copy().view(">u8")[:, 0].astype(np.uint64)
    top, rest = divmod(bound, 2**64)
    # -bound as two halves: numbers above it are within.
    bottom, least = divmod(-bound, 2**64)
    under = (high < top) | ((high == top) & (low < np.uint64(rest)))
    above = (high > bottom) | ((high == bottom) & (low > np.uint64(least)))
    over: Bools = ~(under & above)
    return over


def _unfit_decimal(array: pa.Array, target: pa.DataType, type_: Primitive | Fixed, origin: Origin) -> Exception:
    for row in range(len(array)):
        try:
            array.slice(row, 1).cast(target)
        except pa.ArrowInvalid:
            return origin.error(row, f"does not fit into {describe_type(type_)}", str(array[row].as_py()))
    return _refused(array, type_, origin)
