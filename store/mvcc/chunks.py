"""Selects the rows that a reader sees from a page of engine items: the vectorised heart of a scan.

A page holds every version of its keys, newest first, visible or not. Of each key, the first version that is not above
the read timestamp counts, and is a row unless it is a delete::

    key    a@9  a@7  a@4  b@8  c@5          at 8:  a@9 is not visible yet, a@7 counts, a@4 is older;
    counts  -    x    -    x    x                  b@8 counts; c@5 counts, and if it is a delete, c is no row

Visible versions of a key are a run at its end, so one counts if the item before it is another key's or not visible:
no loop is needed. A timestamp is compared as it is stored: inverted, so *visible* means not below the reader's.

Kinds are read one by one only if a page has other versions than plain puts: the kinds of deletes and of puts that
expire are below that of a put, so the smallest value of a page tells.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import compress, islice, pairwise
from operator import eq, itemgetter
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from cortado.errors import DataLoss
from cortado.store.clock.timestamp import TIMESTAMP_BYTES
from cortado.store.engine.interface import Page, ReadTransaction, Space
from cortado.store.keys.codec import INVERTED, successor_of_prefix
from cortado.store.keys.types import LogicalKey
from cortado.store.mvcc.reader import ScanChunk, logical_of, suffix_from
from cortado.store.mvcc.versions import (
    DELETE_KIND,
    EPOCH,
    EXPIRING_KIND,
    EXPIRING_PAYLOAD,
    EXPIRY,
    NO_EXPIRIES,
    PAYLOAD,
    PUT,
    PUT_KIND,
    Expiries,
    check_deleted,
)

_payload_of: Final[Callable[[bytes], bytes]] = itemgetter(PAYLOAD)
kind_of: Final[Callable[[bytes], int]] = itemgetter(0)

_WORD_BYTES: Final = 8
_EPOCH_BYTES: Final = 2

# A page begins with this many versions. Then it goes on from one to the next or, if each key has many, from key to key
# by a search each, which costs as much as passing by five or six versions.
_LOOK_ITEMS: Final = 128
_MANY_VERSIONS: Final = 6

_Flags: TypeAlias = NDArray[np.bool_]


def select_rows(
    engine_keys: list[bytes],
    engine_values: list[bytes],
    read_suffix: bytes,
    *,
    reverse: bool,
    resume: LogicalKey | None,
    as_of: bytes,
) -> ScanChunk:
    """Return the rows of a page given in ascending order of its engine keys; handed out descending if ``reverse``. Rows
    that have expired by the time of the suffix ``as_of`` are left out."""
    payloads = list(map(_payload_of, engine_values))
    expiries = NO_EXPIRIES
    if engine_keys:
        rows = newest_visible(engine_keys, read_suffix)
        if min(engine_values) < PUT or not all(payloads):
            kinds = np.frombuffer(bytes(map(kind_of, engine_values)), np.uint8)
            expiries = _unexpired(engine_keys, engine_values, as_of, rows, kinds, payloads)
            puts = kinds == PUT_KIND
            strange = np.flatnonzero(rows & ~puts & (kinds != DELETE_KIND) & (kinds != EXPIRING_KIND))
            if strange.size:
                check_deleted(engine_keys[strange[0]], engine_values[strange[0]])
            rows &= puts | (kinds == EXPIRING_KIND)
        if not rows.all():
            chosen = rows.tolist()
            engine_keys = list(compress(engine_keys, chosen))
            payloads = list(compress(payloads, chosen))
    if reverse:
        engine_keys.reverse()
        payloads.reverse()
    return ScanChunk.of_stored(engine_keys, payloads, resume, expiries)


def _unexpired(
    engine_keys: list[bytes],
    engine_values: list[bytes],
    as_of: bytes,
    rows: _Flags,
    kinds: NDArray[np.uint8],
    payloads: list[bytes],
) -> Expiries:
    """Clear the flags of the ``rows`` that have expired, cut the expiry off the ``payloads`` of those that will, and
    return their expiries."""
    found: dict[LogicalKey, int] = {}
    # As has_expired says, in half of its time: a version that is visible is of no later epoch.
    epoch, wall = as_of[:_EPOCH_BYTES], as_of[_EPOCH_BYTES:_WORD_BYTES].translate(INVERTED)
    for place in np.flatnonzero(rows & (kinds == EXPIRING_KIND)).tolist():
        key, value = engine_keys[place], engine_values[place]
        expiry = value[EXPIRY]
        if expiry <= wall or key[EPOCH] != epoch:
            rows[place] = False
        else:
            payloads[place] = value[EXPIRING_PAYLOAD]
            found[logical_of(key)] = int.from_bytes(expiry)
    return found


def newest_visible(engine_keys: list[bytes], read_suffix: bytes) -> _Flags:
    """Return whether each item is its key's newest visible version."""
    visible, continues = versions_of(engine_keys, read_suffix)
    counting = visible.copy()
    counting[1:] &= ~(continues & visible[:-1])
    return counting


def versions_of(engine_keys: list[bytes], read_suffix: bytes) -> tuple[_Flags, _Flags]:
    """Return whether each item is visible; and whether each but the first is of the key before it."""
    joined = b"".join(engine_keys)
    length = len(engine_keys[0])
    if len(joined) == length * len(engine_keys) and max(map(len, engine_keys)) == length:
        table = np.frombuffer(joined, np.uint8).reshape(-1, length)
        return _visible_in(table, read_suffix), _continues_in(table)
    keys = list(map(logical_of, engine_keys))
    visible = np.fromiter(map(read_suffix.__le__, map(suffix_from, engine_keys)), np.bool_, len(keys))
    return visible, np.fromiter(map(eq, islice(keys, 1, None), keys), np.bool_, len(keys) - 1)


def _visible_in(table: NDArray[np.uint8], read_suffix: bytes) -> _Flags:
    """Return whether each key, a row of bytes, is visible: by eight bytes, and by four more if these are equal."""
    suffix_start = table.shape[1] - TIMESTAMP_BYTES
    read_high = np.uint64(int.from_bytes(read_suffix[:_WORD_BYTES]))
    high = _words(table, suffix_start)
    visible: _Flags = high > read_high
    same = high == read_high
    if same.any():
        # The same epoch and millisecond: the logical part decides.
        low = np.ascontiguousarray(table[:, suffix_start + _WORD_BYTES :]).view(">u4")[:, 0]
        visible |= same & (low >= np.uint32(int.from_bytes(read_suffix[_WORD_BYTES:])))
    return visible


def _continues_in(table: NDArray[np.uint8]) -> _Flags:
    """Return whether each row but the first has the logical key of the row before it: keys differ most often at their
    end."""
    logical_end = table.shape[1] - TIMESTAMP_BYTES
    if logical_end < _WORD_BYTES:
        return _equal_rows(table[1:, :logical_end], table[:-1, :logical_end])
    last_words = _words(table, logical_end - _WORD_BYTES)
    continues: _Flags = last_words[1:] == last_words[:-1]
    alike = np.flatnonzero(continues)
    continues[alike] = _equal_rows(table[alike, :logical_end], table[alike + 1, :logical_end])
    return continues


def _equal_rows(left: NDArray[np.uint8], right: NDArray[np.uint8]) -> _Flags:
    equal: _Flags = (left == right).all(axis=1)
    return equal


def _words(table: NDArray[np.uint8], start: int) -> NDArray[np.uint64]:
    """Eight bytes of each row from ``start``, as numbers in the order of the bytes."""
    words: NDArray[np.uint64] = np.ascontiguousarray(table[:, start : start + _WORD_BYTES]).view(">u8")[:, 0]
    return words


def read_page(
    txn: ReadTransaction,
    start: LogicalKey,
    end: LogicalKey,
    read_suffix: bytes,
    disordered: Callable[[bytes], DataLoss],
    *,
    max_items: int,
    max_bytes: int,
) -> Page:
    """Return versions of ``[start, end)``, ascending: all of them or, if each key has many, those that count. Raises
    the error of ``disordered`` for a key that is out of order."""
    look = min(max_items, _LOOK_ITEMS)
    keys, values, is_end = txn.page(Space.DATA, start, end, max_items=look, max_bytes=max_bytes)
    max_bytes -= sum(map(len, keys)) + sum(map(len, values))
    if is_end or max_bytes <= 0:
        return Page(keys, values, is_end)
    logical_keys = len(set(map(logical_of, keys)))
    has_many = logical_keys * min(_MANY_VERSIONS, len(keys)) <= len(keys)
    max_items -= logical_keys if has_many else len(keys)
    if not max_items:
        return Page(keys, values, False)
    if not has_many:
        rest = txn.page(Space.DATA, keys[-1] + b"\0", end, max_items=max_items, max_bytes=max_bytes)
        return Page(keys + rest.keys, values + rest.values, rest.exhausted)
    # The counting version of the last key may not be among them.
    last = logical_of(keys[-1])
    begin = last + read_suffix if suffix_from(keys[-1]) < read_suffix else successor_of_prefix(last)
    rest = txn.firsts(Space.DATA, begin, end, read_suffix, max_items=max_items, max_bytes=max_bytes)
    keys += rest.keys
    for key, follows in pairwise(keys):
        if follows <= key:
            raise disordered(follows)
    return Page(keys, values + rest.values, rest.exhausted)


def complete_last_key(
    txn: ReadTransaction, keys: list[bytes], values: list[bytes], read_suffix: bytes, *, reverse: bool
) -> None:
    """A page may end between two versions of a key: add the one that counts, unless the page has it."""
    last = logical_of(keys[-1])
    if not reverse and suffix_from(keys[-1]) >= read_suffix:
        return  # forwards, the newest visible version comes before every other visible one
    item = txn.seek(Space.DATA, last + read_suffix)
    if item is not None and logical_of(item[0]) == last and (not reverse or item[0] < keys[-1]):
        keys.append(item[0])
        values.append(item[1])
