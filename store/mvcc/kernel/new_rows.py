"""New rows, compiled: their keys laid together from columns, put into order, and made the engine's items.

::

    columns of the key   ->  lay_keys      keys, in the order of the rows; a row's primary key behind those of an index
    keys                 ->  order_keys    the rows' places in the order of their keys; none if two keys are equal
    keys, bodies, places ->  encode_puts   key | suffix ..., head | body | CRC of the key | CRC ...
    pieces, places       ->  gather        the same pieces in that order

Parts are encoded as :mod:`cortado.store.keys.codec` defines it, and versions as :mod:`cortado.store.mvcc.versions`
does. The caller has checked that ranges lie within their arrays, and gives room for all that is written.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from cortado.store.clock.timestamp import TIMESTAMP_BYTES
from cortado.store.keys.codec import NULL_TAG
from cortado.store.mvcc.kernel.machine import (
    REGISTER,
    compare,
    compiled,
    copy,
    copy_short,
    crc,
    first_difference,
    in_place,
    load1,
    load4,
    load8,
    load8_ordered,
    number_at,
    set_number,
    store1,
    store4,
    store8,
)

DONE: Final = 0
STRANGE: Final = 1
REPEATED: Final = 2
"""Two keys are equal."""

# A part's numbers. Its values are WIDTH bytes a row or, with WIDTH 0, ranges of bytes between OFFSETS of 32 bits.
TAG: Final = 0
VALUES: Final = 1
OFFSETS: Final = 2
WIDTH: Final = 3
MASK: Final = 4
"""255 if the part is descending, so that all its bytes are inverted, else 0."""
VALIDITY: Final = 5
"""A byte a row, 0 for null; or 0 if no row is null."""
PART_NUMBERS: Final = 6

# The rows whose keys have a tail.
NO_ROWS: Final = 0
ROWS_WITH_NULL: Final = 1
ALL_ROWS: Final = 2

_END: Final = 0x01
_ESCAPED: Final = 0xFF
_ALL_BYTES: Final = np.uint64(0x0101010101010101)
_HIGHEST_BITS: Final = np.uint64(0x8080808080808080)
_REGISTER_ONES: Final = np.uint64(0xFFFFFFFF)


@in_place
def _lay_fixed(target: Any, source: Any, size_bytes: Any, mask: Any) -> Any:
    """Copy a value of a fixed width, each byte under the mask; return its end."""
    if size_bytes == 8:
        store8(target, np.int64(load8(source) ^ (_ALL_BYTES * np.uint64(mask))))
        return target + 8
    for at in range(size_bytes):
        store1(target + at, load1(source + at) ^ mask)
    return target + size_bytes


@compiled
def _lay_text(target: Any, source: Any, end: Any, mask: Any) -> Any:
    """Copy a text with its zeros escaped, and its end behind it, each byte under the mask; return its end."""
    masks = _ALL_BYTES * np.uint64(mask)
    while source < end:
        if source + 8 <= end:
            word = load8(source)
            if ((word - _ALL_BYTES) & ~word & _HIGHEST_BITS) == 0:
                store8(target, np.int64(word ^ masks))
                source += 8
                target += 8
                continue
        byte = load1(source)
        store1(target, byte ^ mask)
        source += 1
        target += 1
        if byte == 0:
            store1(target, _ESCAPED ^ mask)
            target += 1
    store1(target, mask)
    store1(target + 1, _END ^ mask)
    return target + 2


@in_place
def _begin_of(ends: Any, row: Any) -> Any:
    return number_at(ends, row - 1) if row > 0 else np.int64(0)


@compiled
def lay_keys(prefix: Any, parts: Any, tails: Any, rows: Any, out: Any, ends: Any) -> Any:
    """Lay each row's key end to end at ``out``, and its end to ``ends``: DONE, or STRANGE if one is too long.

    ``prefix``: the address and the length of the keys' common beginning, and the most bytes of a key. ``parts``: the
    address of the parts' numbers, and how many parts there are. ``tails``: the addresses of pieces
    and of their ends, and which rows have theirs as a tail."""
    target = out
    for row in range(rows):
        start, has_tail = target, tails[2] == ALL_ROWS
        copy_short(target, prefix[0], prefix[1])
        target += prefix[1]
        for place in range(parts[1]):
            part = parts[0] + 8 * PART_NUMBERS * place
            width, mask, values = number_at(part, WIDTH), number_at(part, MASK), number_at(part, VALUES)
            validity = number_at(part, VALIDITY)
            if validity != 0 and load1(validity + row) == 0:
                store1(target, NULL_TAG ^ mask)
                target += 1
                has_tail |= tails[2] == ROWS_WITH_NULL
                continue
            store1(target, number_at(part, TAG) ^ mask)
            target += 1
            if width > 0:
                target = _lay_fixed(target, values + width * row, width, mask)
            else:
                offsets = number_at(part, OFFSETS)
                begin, end = load4(offsets + 4 * row), load4(offsets + 4 * row + 4)
                target = _lay_text(target, values + begin, values + end, mask)
        if has_tail:
            begin = _begin_of(tails[1], row)
            size_bytes = number_at(tails[1], row) - begin
            copy_short(target, tails[0] + begin, size_bytes)
            target += size_bytes
        if target - start > prefix[2]:
            return STRANGE
        set_number(ends, row, target - out)
    return DONE


@compiled
def _compare_keys(keys: Any, ends: Any, left: Any, right: Any) -> Any:
    """Compare the keys of two rows as :func:`compare` does."""
    left_begin, right_begin = _begin_of(ends, left), _begin_of(ends, right)
    return compare(
        keys + left_begin,
        number_at(ends, left) - left_begin,
        keys + right_begin,
        number_at(ends, right) - right_begin,
    )


@compiled
def _word_from(key: Any, size_bytes: Any, begin: Any) -> Any:
    """Return the eight bytes of a key from ``begin`` on, as a number in their order; zeros stand behind its end."""
    if begin + 8 <= size_bytes:
        return load8_ordered(key + begin)
    word = np.uint64(0)
    for at in range(8):
        byte = load1(key + begin + at) if begin + at < size_bytes else np.int64(0)
        word = (word << np.uint64(8)) | np.uint64(byte)
    return word


@in_place
def _is_before(keys: Any, ends: Any, words: Any, left: Any, right: Any) -> Any:
    """Return whether one row's key is below another's, or equal to it."""
    left_word, right_word = load8(words + 8 * left), load8(words + 8 * right)
    if left_word != right_word:
        return left_word < right_word
    return _compare_keys(keys, ends, left, right) <= 0


@compiled
def _merge(sorting: Any, source: Any, target: Any, bounds: Any) -> Any:
    """Merge two neighbouring runs of places, ``[begin, middle)`` and ``[middle, end)``, from one array to the other."""
    keys, ends, words = sorting
    begin, middle, end = bounds
    left, right = begin, middle
    for at in range(begin, end):
        takes_left = right >= end
        if left < middle and right < end:
            takes_left = _is_before(keys, ends, words, number_at(source, left), number_at(source, right))
        if takes_left:
            set_number(target, at, number_at(source, left))
            left += 1
        else:
            set_number(target, at, number_at(source, right))
            right += 1


@compiled
def _common_bytes(keys: Any, ends: Any, rows: Any) -> Any:
    """Return how many bytes all keys begin with alike."""
    common = number_at(ends, 0)
    for row in range(1, rows):
        begin = number_at(ends, row - 1)
        common = first_difference(keys, keys + begin, min(common, number_at(ends, row) - begin))
    return common


@compiled
def _sort(keys: Any, ends: Any, rows: Any, places: Any, scratch: Any) -> Any:
    """Sort the rows' places by their keys: a merge of runs, which compares words first."""
    words, spare = scratch, scratch + 8 * rows
    common = _common_bytes(keys, ends, rows)
    for row in range(rows):
        begin = _begin_of(ends, row)
        word = _word_from(keys + begin, number_at(ends, row) - begin, common)
        store8(words + 8 * row, np.int64(word))
    sorting = (keys, ends, words)
    source, target = places, spare
    width = np.int64(1)
    while width < rows:
        begin = np.int64(0)
        while begin < rows:
            middle, end = min(begin + width, rows), min(begin + 2 * width, rows)
            _merge(sorting, source, target, (begin, middle, end))
            begin += 2 * width
        source, target = target, source
        width *= 2
    if source != places:
        copy(places, source, 8 * rows)


@compiled
def order_keys(keys: Any, ends: Any, rows: Any, places: Any, scratch: Any) -> Any:
    """Write the places of rows, at least one, in the order of their keys: DONE, or REPEATED. ``scratch`` is the address
    of two numbers for each row."""
    is_ascending = True
    set_number(places, 0, 0)
    for row in range(1, rows):
        set_number(places, row, row)
        if is_ascending:
            is_ascending = _compare_keys(keys, ends, row - 1, row) < 0
    if is_ascending:
        return DONE
    _sort(keys, ends, rows, places, scratch)
    for at in range(1, rows):
        if _compare_keys(keys, ends, number_at(places, at - 1), number_at(places, at)) == 0:
            return REPEATED
    return DONE


@compiled
def encode_puts(given: Any, constants: Any, bodies: Any, out: Any) -> Any:
    """Write the engine's items: keys to the first address of ``out``, values to the second, each end to end.

    ``given``: the addresses of keys, of their ends, of the rows' places in their order, and how many rows there are.
    ``constants``: the addresses of the suffix of all keys, and of the head of all contents, and the length of the head.
    ``bodies``: the addresses of bodies, and of their ends."""
    keys, key_ends, places, rows = given
    suffix, head, head_bytes = constants
    body_bytes, body_ends = bodies
    key, value = out
    for at in range(rows):
        row = number_at(places, at)
        begin = _begin_of(key_ends, row)
        size_bytes = number_at(key_ends, row) - begin
        copy_short(key, keys + begin, size_bytes)
        store8(key + size_bytes, np.int64(load8(suffix)))
        store4(key + size_bytes + 8, load4(suffix + 8))
        size_bytes += TIMESTAMP_BYTES
        of_key = crc(REGISTER, key, size_bytes)
        key += size_bytes
        content = value
        copy_short(value, head, head_bytes)
        value += head_bytes
        begin = _begin_of(body_ends, row)
        size_bytes = number_at(body_ends, row) - begin
        copy(value, body_bytes + begin, size_bytes)
        value += size_bytes
        store4(value, np.int64(of_key ^ _REGISTER_ONES))
        value += 4
        of_all = crc(of_key, content, value - content)
        store4(value, np.int64(of_all ^ _REGISTER_ONES))
        value += 4


@compiled
def gather(pieces: Any, ends: Any, places: Any, rows: Any, out: Any) -> Any:
    """Copy pieces that lie end to end, in the order of ``places``."""
    target = out
    for at in range(rows):
        row = number_at(places, at)
        begin = _begin_of(ends, row)
        size_bytes = number_at(ends, row) - begin
        copy_short(target, pieces + begin, size_bytes)
        target += size_bytes
