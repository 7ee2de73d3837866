"""Columns of Avro bodies, compiled: each body is walked once, field by field, and checked in full.

A program (:mod:`cortado.store.mvcc.walks`) names the fields of a body. A body that does not fit it is STRANGE; so is a
rare form that is slow to check. Then the written columns are void, and the columnar codec reads the bodies again. So
the walk must refuse all that the codec refuses, and may refuse more.

No byte is read at or behind a body's end: each is compared with it first. (Words may reach behind a body, not behind
all of them.)
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from cortado.store.mvcc.kernel.machine import (
    compiled,
    copy,
    in_place,
    load1,
    load4,
    load8,
    low_zeros,
    number_at,
    set_number,
    store1,
    store4,
)
from cortado.store.mvcc.walks import (
    BOOLEAN,
    CODE,
    DECIMAL,
    FIXED,
    FIXED_DECIMAL,
    HIGH,
    LOW,
    NUMBER,
    OPERATION_NUMBERS,
    PRESENT,
    REAL,
    RECORD,
    SIZE,
    SLOT,
    TEXT,
    UUID,
)

DONE: Final = 0
STRANGE: Final = 1

BLOCK_ROWS: Final = 256
"""The rows that are walked together: their bodies and places stay near the processor."""

# A slot's numbers: addresses of arrays, the bytes of a value (0 for ranges of bytes), and how many rows are null.
VALUES: Final = 0
"""For ranges of bytes, the beginning of each: 64 bits a row."""
OFFSETS: Final = 1
"""For ranges of bytes, 32 bits a row, and one in front."""
VALIDITY: Final = 2
"""A byte a row; 0 if no row can be null."""
WIDTH: Final = 3
NULLS: Final = 4
SLOT_NUMBERS: Final = 5

_NONE: Final = -1
_HIGH_BITS: Final = np.uint64(0x8080808080808080)
_LOW_1: Final = np.uint64(0x007F007F007F007F)
_HIGH_1: Final = np.uint64(0x7F007F007F007F00)
_LOW_2: Final = np.uint64(0x00003FFF00003FFF)
_HIGH_2: Final = np.uint64(0x3FFF00003FFF0000)
_LOW_4: Final = np.uint64(0x000000000FFFFFFF)
_HIGH_4: Final = np.uint64(0x0FFFFFFF00000000)
_LAST_SHIFT: Final = 63
_UUID_BYTES: Final = 36
_SIGN: Final = 0x80


@compiled
def _slow_varint(place: Any, end: Any) -> Any:
    """Return a zigzag varint of up to ten bytes, and its end: _NONE if it is malformed, or cut off."""
    word = np.uint64(0)
    shift = 0
    while place < end:
        byte = load1(place)
        place += 1
        if shift == _LAST_SHIFT and byte > 1:
            return np.int64(0), np.int64(_NONE)
        word |= np.uint64(byte & 0x7F) << np.uint64(shift)
        if byte < 0x80:
            return np.int64(word >> np.uint64(1)) ^ -np.int64(word & np.uint64(1)), place
        shift += 7
    return np.int64(0), np.int64(_NONE)


@in_place
def _long_varint(place: Any, end: Any, limit: Any) -> Any:
    """Read as :func:`_slow_varint`, but a word, up to ``limit``, whose bytes are packed at once (SIMD within a
    register; Lemire et al., *Stream VByte*, 2017, describes the family)."""
    if place + 8 > limit:
        return _slow_varint(place, end)
    word = load8(place)
    stops = ~word & _HIGH_BITS
    if stops == 0:
        return _slow_varint(place, end)
    after = place + (low_zeros(stops) >> 3) + 1
    if after > end:
        return np.int64(0), np.int64(_NONE)
    word &= (stops & (~stops + np.uint64(1))) - np.uint64(1)
    word = (word & _LOW_1) | ((word & _HIGH_1) >> np.uint64(1))
    word = (word & _LOW_2) | ((word & _HIGH_2) >> np.uint64(2))
    word = (word & _LOW_4) | ((word & _HIGH_4) >> np.uint64(4))
    return np.int64(word >> np.uint64(1)) ^ -np.int64(word & np.uint64(1)), after


@in_place
def _varint(place: Any, end: Any, limit: Any) -> Any:
    """Read as :func:`_long_varint`, varints mostly of one byte."""
    if place < end:
        byte = load1(place)
        if byte < 0x80:
            return (byte >> 1) ^ -(byte & 1), place + 1
    return _long_varint(place, end, limit)


@in_place
def _after_varint(place: Any, end: Any, limit: Any) -> Any:
    """Return the end of a varint of up to eight bytes; _NONE for any other, and if that is not seen at once."""
    if place + 8 > limit:
        return _NONE
    stops = ~load8(place) & _HIGH_BITS
    after = place + (low_zeros(stops) >> 3) + 1 if stops != 0 else end + 1
    return after if after <= end else _NONE


@compiled
def _is_continued(place: Any, end: Any, count: Any) -> Any:
    """Return whether ``count`` bytes continue a character."""
    if place + count > end:
        return False
    stop = place + count
    while place < stop and load1(place) & 0xC0 == 0x80:
        place += 1
    return place == stop


@compiled
def _is_utf8(place: Any, end: Any) -> Any:
    """Check UTF-8 as Python decodes it: no surrogates, no overlong forms, nothing above U+10FFFF."""
    while place < end:
        first = load1(place)
        place += 1
        if first < 0x80:
            continue
        if first < 0xC2 or first > 0xF4:
            return False
        more = 1 if first < 0xE0 else 2 if first < 0xF0 else 3
        if not _is_continued(place, end, more):
            return False
        second = load1(place)
        if first == 0xE0 and second < 0xA0:
            return False
        if first == 0xED and second >= 0xA0:
            return False
        if first == 0xF0 and second < 0x90:
            return False
        if first == 0xF4 and second >= 0x90:
            return False
        place += more
    return True


@in_place
def _is_short_ascii(place: Any, size_bytes: Any, limit: Any) -> Any:
    """Return whether it has eight bytes at most, all of ASCII; False also if that is not seen at once."""
    if size_bytes > 8 or place + 8 > limit:
        return False
    # The bytes of the text are the lowest ones. Two shifts, since a shift by 64 bits does nothing.
    return ((load8(place) & _HIGH_BITS) << np.uint64(32 - 4 * size_bytes)) << np.uint64(32 - 4 * size_bytes) == 0


@compiled
def _is_text(place: Any, end: Any, limit: Any) -> Any:
    """Return whether it is UTF-8; words are read up to ``limit``."""
    at = place
    while at + 8 <= limit and at < end:
        word = load8(at)
        if at + 8 > end:
            # The bytes of the text are the lowest ones.
            word <<= np.uint64(8 * (8 - (end - at)))
        if word & _HIGH_BITS != 0:
            return _is_utf8(place, end)
        at += 8
    return at >= end or _is_utf8(at, end)


@compiled
def _is_uuid(place: Any, size_bytes: Any) -> Any:
    if size_bytes != _UUID_BYTES:
        return False
    for at in range(_UUID_BYTES):
        byte = load1(place + at)
        if at == 8 or at == 13 or at == 18 or at == 23:
            if byte != ord("-"):
                return False
        elif not (48 <= byte <= 57 or 65 <= byte <= 70 or 97 <= byte <= 102):
            return False
    return True


@compiled
def _is_decimal(place: Any, size_bytes: Any, safe_bytes: Any, bound: Any) -> Any:
    """Return whether a big-endian number is within its bound. Numbers of up to ``safe_bytes`` always are. ``bound`` is
    0 if it does not fit into 64 bits; longer numbers are then unknown."""
    if size_bytes == 0:
        return False
    if size_bytes <= safe_bytes:
        return True
    fill = 0xFF if load1(place) & _SIGN else 0
    at, end = place, place + size_bytes
    # Bytes that only extend the sign.
    while at < end - 1 and load1(at) == fill and (load1(at + 1) ^ fill) & _SIGN == 0:
        at += 1
    if end - at <= safe_bytes:
        return True
    if bound == 0 or end - at > 8:
        return False
    value = np.int64(-1 if fill else 0)
    while at < end:
        value = (value << 8) | load1(at)
        at += 1
    return -bound < value < bound


@in_place
def _outputs(slot: Any) -> Any:
    """Return a slot's VALUES, VALIDITY, WIDTH, NULLS; zeros if there is no slot."""
    if slot == 0:
        return np.int64(0), np.int64(0), np.int64(0), np.int64(0)
    return number_at(slot, VALUES), number_at(slot, VALIDITY), number_at(slot, WIDTH), number_at(slot, NULLS)


@in_place
def _begin(block: Any, at: Any, present: Any, row: Any) -> Any:
    """Return the beginning of a row's value, behind its union's branch (_NONE: malformed); and whether it is null."""
    places, waits, bodies, ends, first, _, limit = block
    place = number_at(places, row - first)
    if waits != 0 and number_at(waits, row - first) > at:
        return place, True
    if present < 0:
        return place, False
    branch, place = _varint(place, bodies + number_at(ends, row), limit)
    if place < 0 or branch < 0 or branch > 1:
        return np.int64(_NONE), False
    return place, branch != present


@compiled
def _numbers(operation: Any, at: Any, slot: Any, block: Any) -> Any:
    """Walk NUMBER, for a block of rows: DONE or STRANGE."""
    places, _, bodies, ends, first, last, limit = block
    values, validity, width, nulls = _outputs(slot)
    present, low, high = number_at(operation, PRESENT), number_at(operation, LOW), number_at(operation, HIGH)
    safe_bytes = number_at(operation, SIZE) if slot == 0 else 0
    for row in range(first, last):
        place, is_null = _begin(block, at, present, row)
        if place < 0:
            return STRANGE
        value = np.int64(0)
        if not is_null:
            begin, end = place, bodies + number_at(ends, row)
            place = _after_varint(place, end, limit) if safe_bytes != 0 else _NONE
            if place - begin > safe_bytes or place < 0:
                value, place = _varint(begin, end, limit)
                if place < 0 or value < low or value > high:
                    return STRANGE
        set_number(places, row - first, place)
        if slot != 0:
            if width == 8:
                set_number(values, row, value)
            else:
                store4(values + 4 * row, value)
            if is_null:
                store1(validity + row, 0)
                nulls += 1
    if slot != 0:
        set_number(slot, NULLS, nulls)
    return DONE


@compiled
def _sized(operation: Any, at: Any, slot: Any, block: Any) -> Any:
    """Walk REAL and BOOLEAN, which is a byte of 0 or 1: as :func:`_numbers`."""
    places, _, bodies, ends, first, last, _ = block
    values, validity, _, nulls = _outputs(slot)
    present, size_bytes = number_at(operation, PRESENT), number_at(operation, SIZE)
    for row in range(first, last):
        place, is_null = _begin(block, at, present, row)
        after = place if is_null else place + size_bytes
        if place < 0 or after > bodies + number_at(ends, row):
            return STRANGE
        if size_bytes == 1 and not is_null and load1(place) > 1:
            return STRANGE
        set_number(places, row - first, after)
        if slot != 0:
            if size_bytes == 8:
                set_number(values, row, np.int64(0) if is_null else np.int64(load8(place)))
            elif size_bytes == 4:
                store4(values + 4 * row, np.int64(0) if is_null else load4(place))
            else:
                store1(values + row, np.int64(0) if is_null else load1(place))
            if is_null:
                store1(validity + row, 0)
                nulls += 1
    if slot != 0:
        set_number(slot, NULLS, nulls)
    return DONE


@compiled
def _is_sound(operation: Any, place: Any, size_bytes: Any) -> Any:
    """Return whether bytes fit their type, which is not TEXT."""
    code = number_at(operation, CODE)
    if code == UUID:
        return _is_uuid(place, size_bytes)
    if code == DECIMAL:
        return _is_decimal(place, size_bytes, number_at(operation, SIZE), number_at(operation, HIGH))
    if code == FIXED_DECIMAL:
        return _is_decimal(place, size_bytes, number_at(operation, LOW), number_at(operation, HIGH))
    return True


@compiled
def _ranges(operation: Any, at: Any, slot: Any, block: Any) -> Any:
    """Walk all types that are bytes: as :func:`_numbers`."""
    places, _, bodies, ends, first, last, limit = block
    starts, validity, _, nulls = _outputs(slot)
    offsets = number_at(slot, OFFSETS) if slot != 0 else 0
    total = load4(offsets + 4 * first) if slot != 0 else 0
    code, present, fixed_bytes = number_at(operation, CODE), number_at(operation, PRESENT), number_at(operation, SIZE)
    is_fixed, is_text = code in (FIXED, FIXED_DECIMAL), code == TEXT
    for row in range(first, last):
        end = bodies + number_at(ends, row)
        place, is_null = _begin(block, at, present, row)
        size_bytes = np.int64(0)
        if place >= 0 and not is_null:
            if is_fixed:
                size_bytes = fixed_bytes
            else:
                size_bytes, place = _varint(place, end, limit)
        if place < 0 or size_bytes < 0 or size_bytes > end - place:
            return STRANGE
        if not is_null:
            if is_text:
                is_ascii = _is_short_ascii(place, size_bytes, limit)
                if not is_ascii and not _is_text(place, place + size_bytes, limit):
                    return STRANGE
            elif not _is_sound(operation, place, size_bytes):
                return STRANGE
        set_number(places, row - first, place + size_bytes)
        if slot != 0:
            set_number(starts, row, place - bodies)
            total += size_bytes
            store4(offsets + 4 * row + 4, total)
            if is_null:
                store1(validity + row, 0)
                nulls += 1
    if slot != 0:
        set_number(slot, NULLS, nulls)
    return DONE


@compiled
def _records(operation: Any, at: Any, block: Any) -> Any:
    """Walk RECORD. If it is null, the row waits for the operation behind it, and the fields between are null. Else as
    :func:`_numbers`."""
    places, waits, _, _, first, last, _ = block
    present, behind = number_at(operation, PRESENT), at + 1 + number_at(operation, SIZE)
    for row in range(first, last):
        if number_at(waits, row - first) > at:
            continue
        place, is_null = _begin(block, at, present, row)
        if place < 0:
            return STRANGE
        set_number(places, row - first, place)
        if is_null:
            set_number(waits, row - first, behind)
    return DONE


@compiled
def _block(program: Any, block: Any) -> Any:
    """Walk a block of rows, operation by operation: an operation's code is looked up once for all of them."""
    operations, slots, count = program
    for at in range(count):
        operation = operations + 8 * OPERATION_NUMBERS * at
        code, number = number_at(operation, CODE), number_at(operation, SLOT)
        slot = slots + 8 * SLOT_NUMBERS * number if number >= 0 else 0
        if code == NUMBER:
            found = _numbers(operation, at, slot, block)
        elif code in (REAL, BOOLEAN):
            found = _sized(operation, at, slot, block)
        elif code == RECORD:
            found = _records(operation, at, block)
        else:
            found = _ranges(operation, at, slot, block)
        if found != DONE:
            return found
    return DONE


@compiled
def walk(program: Any, bodies: Any, ends: Any, rows: Any, scratch: Any) -> Any:
    """Walk all bodies: DONE, and the slots are written; or STRANGE.

    ``program`` is the addresses of operations and of slots, and how many operations there are; ``bodies`` and ``ends``
    are addresses. So is ``scratch``, of two times BLOCK_ROWS numbers: the place of each row of a block, and, if records
    may be null, the operation that it waits for."""
    limit = bodies + number_at(ends, rows - 1)
    waits = np.int64(0)
    for at in range(program[2]):
        if number_at(program[0] + 8 * OPERATION_NUMBERS * at, CODE) == RECORD:
            waits = scratch + 8 * BLOCK_ROWS
    start = bodies
    for first in range(0, rows, BLOCK_ROWS):
        last = min(first + BLOCK_ROWS, rows)
        for row in range(first, last):
            set_number(scratch, row - first, start)
            if waits != 0:
                set_number(waits, row - first, 0)
            start = bodies + number_at(ends, row)
        if _block(program, (scratch, waits, bodies, ends, first, last, limit)) != DONE:
            return STRANGE
        for row in range(first, last):
            if number_at(scratch, row - first) != bodies + number_at(ends, row):
                return STRANGE
    return DONE


@compiled
def gather(bodies: Any, starts: Any, offsets: Any, rows: Any, data: Any) -> Any:
    """Put the ranges of bytes of a slot behind each other."""
    for row in range(rows):
        begin = load4(offsets + 4 * row)
        copy(data + begin, bodies + number_at(starts, row), load4(offsets + 4 * row + 4) - begin)
