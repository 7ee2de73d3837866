"""The texts that keys hold behind a common beginning, cut out and put end to end: compiled.

A text in a key has its zeros escaped, and an end (:mod:`cortado.store.keys.codec`)::

    beginning | a 00 ff b 00 01      ->      a 00 b
              ^ before         ^ end of the key

Any other form is STRANGE, and the interpreter says what it is.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from cortado.store.mvcc.kernel.machine import compiled, in_place, load1, load8, number_at, store1, store4, store8

STRANGE: Final = -1

_END_BYTES: Final = 2
_END: Final = 0x01
_ESCAPED: Final = 0xFF
_LOWEST_BITS: Final = np.uint64(0x0101010101010101)
_HIGHEST_BITS: Final = np.uint64(0x8080808080808080)


@in_place
def _has_zero(word: Any) -> Any:
    """Return whether one of its eight bytes is 0."""
    return ((word - _LOWEST_BITS) & ~word & _HIGHEST_BITS) != 0


@compiled
def _cut_text(target: Any, source: Any, end: Any) -> Any:
    """Write a text to ``target``, and return its end there; STRANGE for a wrong escape."""
    while source < end:
        if source + 8 <= end and not _has_zero(load8(source)):
            store8(target, np.int64(load8(source)))
            source += 8
            target += 8
            continue
        byte = load1(source)
        if byte == 0:
            source += 1
            if source >= end or load1(source) != _ESCAPED:
                return np.int64(STRANGE)
        store1(target, byte)
        source += 1
        target += 1
    return target


@compiled
def cut_texts(given: Any, out: Any, lengths: Any) -> Any:
    """Cut all texts; return how many bytes they have, or STRANGE.

    ``given``: the address of keys, that of their ends in 64 bits, how many there are, and how many bytes stand before
    each text. ``out`` has room for all keys, ``lengths`` for 32 bits each.
    """
    keys, ends, count, before = given
    target = out
    start = np.int64(0)
    for row in range(count):
        end = number_at(ends, row)
        last = end - _END_BYTES
        if start + before > last or load1(keys + last) != 0 or load1(keys + last + 1) != _END:
            return np.int64(STRANGE)
        reached = _cut_text(target, keys + start + before, keys + last)
        if reached == STRANGE:
            return np.int64(STRANGE)
        store4(lengths + 4 * row, reached - target)
        target = reached
        start = end
    return target - out
