"""Read a slice's rows: the newest visible version of each key, checked and packed, forwards or backwards.

::

    key    a@9  a@7  a@4  b@8  c@5      at 8, forwards: the first visible one of a key counts, and older ones are passed
                                        backwards: the last visible one before one that is not, or another key

Every version that is passed is checked, visible or not. If a key has many, searches go past most of them, as the Python
path's do. Neighbouring keys tend to have similar numbers of versions: behind a key with many, a search goes past the
next key's at once.

A slice ends between two keys, never within one, once it has its rows, bytes or versions. It names the key with which
the next one begins, or backwards before which it ends.

A wrong pointer, order or checksum, or an unknown kind, is STRANGE: the packed rows are not to be used, and the Python
path reads the slice again, finds the cause and reports it.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from cortado.store.clock.timestamp import TIMESTAMP_BYTES
from cortado.store.mvcc.kernel.machine import (
    INTACT,
    REGISTER,
    compare,
    compiled,
    copy,
    copy_short,
    crc,
    first_difference,
    in_place,
    load1,
    load8_ordered,
    number_at,
    set_number,
)
from cortado.store.mvcc.kernel.pages import DEPTH, item_on
from cortado.store.mvcc.kernel.tree import END, FOUND, LEVEL, move, seek, seek_from
from cortado.store.mvcc.versions import DELETE_KIND, EXPIRING_KIND, EXPIRY_BYTES, PUT_KIND

# The outcomes of a slice.
DONE: Final = 0
STRANGE: Final = 1
NO_ROOM: Final = 2
"""The first row has more bytes than there is room for: NEEDED."""

# Numbers of `limits`.
REVERSE: Final = 0
ROWS_MAX: Final = 1
BYTES_MAX: Final = 2
"""Bytes of keys and values that are looked at."""
VERSIONS_MAX: Final = 3
HEAD_BYTES: Final = 4
"""Bytes at the start of each payload, packed apart from the rest."""
PAYLOAD_ROOM: Final = 5
KEYS_ONLY: Final = 6
"""1: values are neither looked at nor packed, so deleted keys count, too."""

# Of `times`: the read timestamp as keys have it, and the time up to which pairs have expired; they sort as their bytes.
READ_HIGH: Final = 0
READ_LOW: Final = 1
EXPIRED: Final = 2

# Places of `terms`: bytes that come in and go out.
START_AT: Final = 0
END_AT: Final = 1024
RESUME_AT: Final = 2048
_SOUGHT_AT: Final = 3072
READ_AT: Final = 3600
"""The read timestamp's suffix; then the suffixes that no version's is before, or behind."""
FIRST_AT: Final = 3616
LAST_AT: Final = 3632
TERM_BYTES: Final = 4096

# Of `out`: addresses of arrays.
STATE: Final = 0
PLACE: Final = 1
KEYS: Final = 2
KEY_ENDS: Final = 3
SUFFIXES: Final = 4
HEADS: Final = 5
BODIES: Final = 6
BODY_ENDS: Final = 7
EXPIRIES: Final = 8

# Numbers of the state.
START_BYTES: Final = 0
END_BYTES: Final = 1
ROWS: Final = 2
RESUME_BYTES: Final = 3
"""-1 at the end of the range."""
NEEDED: Final = 4
VERSIONS: Final = 5
LOOKED_BYTES: Final = 6
_LOGICAL_KEYS: Final = 7
EXPIRING: Final = 8
"""How many rows expire."""
STATE_NUMBERS: Final = 9

_SUFFIX: Final = TIMESTAMP_BYTES
_TAIL_BYTES: Final = 8
_VALUE_BYTES_MIN: Final = 1 + _TAIL_BYTES
_PUT: Final = PUT_KIND
_DELETE: Final = DELETE_KIND
_EXPIRING: Final = EXPIRING_KIND
_EXPIRY_BYTES: Final = EXPIRY_BYTES
_EXPIRY_MASK: Final = np.uint64((1 << 48) - 1)
# A search on the leaf costs less than passing by this many versions.
_MANY_VERSIONS: Final = 3
# Behind a key with more versions than these, the next key's are searched past at once.
_FEW_VERSIONS: Final = 3
_NEIGHBOUR_BYTES_MAX: Final = 1 << 14
_NO_ROW: Final = 0


@in_place
def _is_intact(key: Any, key_bytes: Any, data: Any, data_bytes: Any) -> Any:
    if key_bytes <= _SUFFIX or data_bytes < _VALUE_BYTES_MIN:
        return False
    return crc(crc(REGISTER, key, key_bytes), data, data_bytes) == INTACT


@in_place
def _is_visible(times: Any, key: Any, key_bytes: Any) -> Any:
    suffix = key + key_bytes - _SUFFIX
    high = load8_ordered(suffix)
    if high != times[READ_HIGH]:
        return high > times[READ_HIGH]
    return (load8_ordered(suffix + 4) & np.uint64(0xFFFFFFFF)) >= times[READ_LOW]


@in_place
def _payload_start(times: Any, key: Any, key_bytes: Any, data: Any, data_bytes: Any) -> Any:
    """Return the payload's beginning in a value; _NO_ROW for a deleted or expired version, -1 for an unknown kind."""
    kind = load1(data)
    if kind == _PUT:
        return 1
    if kind == _DELETE:
        return _NO_ROW
    if kind != _EXPIRING or data_bytes < _VALUE_BYTES_MIN + _EXPIRY_BYTES:
        return -1
    epoch = load8_ordered(key + key_bytes - _SUFFIX) & ~_EXPIRY_MASK
    wall = load8_ordered(data + 1) >> np.uint64(16)
    return _NO_ROW if times[EXPIRED] <= (epoch | (~wall & _EXPIRY_MASK)) else 1 + _EXPIRY_BYTES


@compiled
def _pack(limits: Any, out: Any, key: Any, key_bytes: Any, value: Any) -> Any:
    """Pack one row more; ``value`` is its address, bytes, and its payload's beginning. DONE, STRANGE, or NO_ROOM."""
    state = out[STATE]
    row = number_at(state, ROWS)
    logical_bytes = key_bytes - _SUFFIX
    keys_end = 0 if row == 0 else number_at(out[KEY_ENDS], row - 1)
    if limits[KEYS_ONLY] == 0:
        data, data_bytes, start = value
        bodies_end = 0 if row == 0 else number_at(out[BODY_ENDS], row - 1)
        head_bytes = limits[HEAD_BYTES]
        body_bytes = data_bytes - start - _TAIL_BYTES - head_bytes
        if body_bytes < 0:
            return STRANGE
        if bodies_end + body_bytes > limits[PAYLOAD_ROOM]:
            set_number(state, NEEDED, body_bytes)
            return NO_ROOM
        if head_bytes:
            copy_short(out[HEADS] + row * head_bytes, data + start, head_bytes)
        copy(out[BODIES] + bodies_end, data + start + head_bytes, body_bytes)
        set_number(out[BODY_ENDS], row, bodies_end + body_bytes)
        set_number(out[EXPIRIES], row, 0)
        if start > 1:
            set_number(out[EXPIRIES], row, np.int64(load8_ordered(data + 1) >> np.uint64(16)))
            set_number(state, EXPIRING, number_at(state, EXPIRING) + 1)
    copy_short(out[KEYS] + keys_end, key, logical_bytes)
    copy(out[SUFFIXES] + row * _SUFFIX, key + logical_bytes, _SUFFIX)
    set_number(out[KEY_ENDS], row, keys_end + logical_bytes)
    set_number(state, ROWS, row + 1)
    return DONE


@compiled
def _take(times: Any, limits: Any, out: Any, item: Any) -> Any:
    """Pack a key's chosen version, if it is a row."""
    key, key_bytes, data, data_bytes = item
    if limits[KEYS_ONLY]:
        return _pack(limits, out, key, key_bytes, (data, data_bytes, 0))
    start = _payload_start(times, key, key_bytes, data, data_bytes)
    if start <= 0:
        return DONE if start == _NO_ROW else STRANGE
    return _pack(limits, out, key, key_bytes, (data, data_bytes, start))


@compiled
def _ends_before(terms: Any, out: Any, key: Any, key_bytes: Any) -> Any:
    """End the slice; the next one begins with this logical key, or ends before it."""
    copy(terms + RESUME_AT, key, key_bytes - _SUFFIX)
    set_number(out[STATE], RESUME_BYTES, key_bytes - _SUFFIX)
    return DONE


@in_place
def _is_enough(limits: Any, out: Any) -> Any:
    state = out[STATE]
    if number_at(state, _LOGICAL_KEYS) == 0:
        return False
    is_enough = number_at(state, ROWS) >= limits[ROWS_MAX] or number_at(state, VERSIONS) >= limits[VERSIONS_MAX]
    return is_enough or number_at(state, LOOKED_BYTES) >= limits[BYTES_MAX]


@in_place
def _look(tree: Any, limits: Any, out: Any) -> Any:
    """Return the item at the place; its first number is -1 if it is not whole."""
    place = out[PLACE]
    leaf = LEVEL * (tree[DEPTH] - 1)
    key, key_bytes, data, data_bytes = item_on(tree, number_at(place, leaf), number_at(place, leaf + 1))
    if key < 0 or key_bytes <= _SUFFIX:
        return -1, key_bytes, data, data_bytes
    if limits[KEYS_ONLY] == 0 and not _is_intact(key, key_bytes, data, data_bytes):
        return -1, key_bytes, data, data_bytes
    return key, key_bytes, data, data_bytes


@in_place
def _count(limits: Any, out: Any, item: Any, passed: Any) -> Any:
    """Count an item, behind ``passed`` others of its key. These count half: they are checked, not copied."""
    state = out[STATE]
    looked = item[1] if limits[KEYS_ONLY] else item[1] + item[3]
    looked = looked >> 1 if passed else looked
    set_number(state, LOOKED_BYTES, number_at(state, LOOKED_BYTES) + looked)
    set_number(state, VERSIONS, number_at(state, VERSIONS) + 1)


@compiled
def _is_neighbour_intact(tree: Any, out: Any) -> Any:
    """Check the item at the place, which bounds the range: a wrong key of it might hide a key of the range."""
    place = out[PLACE]
    leaf = LEVEL * (tree[DEPTH] - 1)
    key, key_bytes, data, data_bytes = item_on(tree, number_at(place, leaf), number_at(place, leaf + 1))
    return key >= 0 and (data_bytes > _NEIGHBOUR_BYTES_MAX or _is_intact(key, key_bytes, data, data_bytes))


@compiled
def _seek_version(tree: Any, terms: Any, out: Any, item: Any, suffix: Any) -> Any:
    """Move to the first version of the item's key that is not before a suffix, or to the next key."""
    sought = terms + _SOUGHT_AT
    key, key_bytes, _, _ = item
    copy(sought, key, key_bytes - _SUFFIX)
    copy(sought + key_bytes - _SUFFIX, suffix, _SUFFIX)
    return seek_from(tree, out[PLACE], sought, key_bytes)


@in_place
def _follows(before: Any, item: Any) -> Any:
    """Return 2 if the second of two items is above the first, 1 if it is a later one of the same logical key, 0 if it
    does not follow."""
    key, key_bytes, _, _ = before
    other, other_bytes, _, _ = item
    shorter = min(key_bytes, other_bytes)
    place = first_difference(key, other, shorter)
    is_above = load1(key + place) < load1(other + place) if place < shorter else key_bytes < other_bytes
    if not is_above:
        return 0
    return 1 if key_bytes == other_bytes and place >= key_bytes - _SUFFIX else 2


@compiled
def _pass_to(tree: Any, limits: Any, terms: Any, out: Any, item: Any, suffix: Any) -> Any:
    """Move as :func:`_seek_version`, forwards; and return whether it passed any. All passed items are versions of one
    key, so the last of them is one: else keys are out of order, and the search has passed another key's."""
    found = _seek_version(tree, terms, out, item, suffix)
    if found < END or move(tree, out[PLACE], -1) != FOUND:
        return -1, False
    last = _look(tree, limits, out)
    if last[0] < 0 or (last[0] != item[0] and _follows(item, last) != 1):
        return -1, False
    return (move(tree, out[PLACE], 1) if found == FOUND else END), last[0] != item[0]


@compiled
def _begin(tree: Any, limits: Any, terms: Any, out: Any) -> Any:
    """Move to the range's first item, or backwards to its last: as seek() and move() say."""
    place, state = out[PLACE], out[STATE]
    at = terms
    if limits[REVERSE]:
        found = seek(tree, place, at + END_AT, number_at(state, END_BYTES))
        if found < END or (found == FOUND and not _is_neighbour_intact(tree, out)):
            return -1
        return move(tree, place, -1)
    found = seek(tree, place, at + START_AT, number_at(state, START_BYTES))
    if found < END:
        return -1
    before = move(tree, place, -1)
    if before < END or (before == FOUND and not _is_neighbour_intact(tree, out)):
        return -1
    if found == END:
        return END
    return move(tree, place, 1) if before == FOUND else FOUND


@compiled
def _forwards(tree: Any, times: Any, limits: Any, terms: Any, out: Any) -> Any:
    place, state = out[PLACE], out[STATE]
    at = terms
    before = (np.int64(0), np.int64(0), np.int64(0), np.int64(0))
    is_taken = False
    passed, searched, has_many = 0, False, False
    found = _begin(tree, limits, terms, out)
    while found == FOUND:
        item = _look(tree, limits, out)
        if item[0] < 0:
            return STRANGE
        relation = 2 if before[0] == 0 else _follows(before, item)
        if relation == 0:
            return STRANGE
        if relation == 2:
            if compare(item[0], item[1], at + END_AT, number_at(state, END_BYTES)) >= 0:
                return DONE
            if _is_enough(limits, out):
                return _ends_before(terms, out, item[0], item[1])
            set_number(state, _LOGICAL_KEYS, number_at(state, _LOGICAL_KEYS) + 1)
            is_taken = False
            has_many = has_many if searched else passed > _FEW_VERSIONS
            passed, searched = 0, False
        if not is_taken and _is_visible(times, item[0], item[1]):
            took = _take(times, limits, out, item)
            if took == NO_ROOM and number_at(state, _LOGICAL_KEYS) > 1:
                return _ends_before(terms, out, item[0], item[1])
            if took != DONE:
                return took
            is_taken = True
            passed = 0
        before = item
        _count(limits, out, item, passed)
        passed += 1
        if passed <= _MANY_VERSIONS and not (has_many and is_taken):
            found = move(tree, place, 1)
        else:
            found, has_passed = _pass_to(tree, limits, terms, out, item, at + (LAST_AT if is_taken else READ_AT))
            has_many = has_passed or passed > _FEW_VERSIONS
            passed, searched = 0, True
    return DONE if found == END else STRANGE


@compiled
def _backwards(tree: Any, times: Any, limits: Any, terms: Any, out: Any) -> Any:
    place, state = out[PLACE], out[STATE]
    at = terms
    nothing = (np.int64(0), np.int64(0), np.int64(0), np.int64(0))
    before, newest, finished = nothing, nothing, nothing
    is_past = False
    passed, searched, has_many = 0, False, False
    found = _begin(tree, limits, terms, out)
    while found >= END:
        item = nothing
        relation = 2
        if found == FOUND:
            item = _look(tree, limits, out)
            if item[0] < 0:
                return STRANGE
            relation = 2 if before[0] == 0 else _follows(item, before)
            if relation == 0:
                return STRANGE
        if relation == 2:
            if newest[0] != 0:
                took = _take(times, limits, out, newest)
                if took == NO_ROOM and finished[0] != 0:
                    return _ends_before(terms, out, finished[0], finished[1])
                if took != DONE:
                    return took
            finished = before
            if found == END or compare(item[0], item[1], at + START_AT, number_at(state, START_BYTES)) < 0:
                return DONE
            if _is_enough(limits, out):
                return _ends_before(terms, out, before[0], before[1])
            set_number(state, _LOGICAL_KEYS, number_at(state, _LOGICAL_KEYS) + 1)
            newest = nothing
            is_past = False
            has_many = has_many if searched else passed > _FEW_VERSIONS
            passed, searched = 0, False
        if not is_past and _is_visible(times, item[0], item[1]):
            newest = item
        else:
            is_past = True
        before = item
        _count(limits, out, item, passed)
        passed += 1
        if passed > _MANY_VERSIONS or has_many:
            # To the newest visible one, or past the invisible ones; items before it are another key's, or newer.
            found = _seek_version(tree, terms, out, item, at + (FIRST_AT if is_past else READ_AT))
            before = _look(tree, limits, out) if found == FOUND else nothing
            if before[0] <= 0 or (before[0] != item[0] and _follows(before, item) != 1):
                return STRANGE
            has_many = before[0] != item[0] or passed > _FEW_VERSIONS
            passed, searched = 0, True
            newest = newest if is_past else before
            is_past = True
        found = move(tree, place, -1)
    return STRANGE


@compiled
def read_rows(tree: Any, times: Any, limits: Any, terms: Any, out: Any) -> Any:
    """Pack a slice of the rows of a range; returns DONE, STRANGE or NO_ROOM.

    ``tree`` is read only while the transaction lives from which it was taken.
    """
    state = out[STATE]
    for number in range(STATE_NUMBERS):
        if number != START_BYTES and number != END_BYTES:
            set_number(state, number, 0)
    set_number(state, RESUME_BYTES, -1)
    if tree[DEPTH] == 0:
        return DONE
    if limits[REVERSE]:
        return _backwards(tree, times, limits, terms, out)
    return _forwards(tree, times, limits, terms, out)
