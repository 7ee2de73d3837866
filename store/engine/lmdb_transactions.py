"""Transactions on LMDB, as scopes: how items are read in pages, and that a writer stays on its thread."""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from itertools import islice, repeat
from math import ceil
from operator import itemgetter
from types import TracebackType
from typing import Final, Self, TypeAlias

import lmdb

from cortado.invariants import invariant
from cortado.store.engine.failures import read_failure
from cortado.store.engine.interface import Page, Space
from cortado.store.observe.measures import CommitMeasures

Begin: TypeAlias = Callable[..., "lmdb.Transaction[bytes]"]
Spaces: TypeAlias = dict[Space, "lmdb._Database"]

# The first batch suits a short range; later ones are larger.
_FIRST_BATCH: Final = 16
_BATCH_MAX: Final = 2_048
# All values over half a page stand on overflow pages: if these are few, no batch can be large.
_OVERFLOW_BYTES_FEW: Final = 8 << 20

_key_of: Callable[[tuple[bytes, bytes]], bytes] = itemgetter(0)
_value_of: Callable[[tuple[bytes, bytes]], bytes] = itemgetter(1)


class LmdbReadTransaction:
    """A scope: begins on entry, ends on exit. Cursors never leave it."""

    def __init__(self, begin: Begin, spaces: Spaces, page_size: int) -> None:
        self._begin = begin
        self._spaces = spaces
        self._page_size = page_size
        self._transaction: lmdb.Transaction[bytes]

    def __enter__(self) -> Self:
        try:
            self._transaction = self._begin()
        except lmdb.Error as error:
            raise read_failure(error) from error
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._transaction.abort()
        if isinstance(error, lmdb.Error):
            raise read_failure(error) from error

    def get(self, space: Space, key: bytes) -> bytes | None:
        return self._transaction.get(key, db=self._spaces[space])

    def seek(self, space: Space, key: bytes) -> tuple[bytes, bytes] | None:
        cursor = self._transaction.cursor(self._spaces[space])
        return cursor.item() if cursor.set_range(key) else None

    def seek_many(
        self, space: Space, keys: Iterable[bytes], *, max_bytes: int | None = None
    ) -> list[tuple[bytes, bytes] | None]:
        cursor = self._transaction.cursor(self._spaces[space])
        to, item = cursor.set_range, cursor.item
        if max_bytes is None:
            return [item() if to(key) else None for key in keys]
        found: list[tuple[bytes, bytes] | None] = []
        for key in keys:
            if not to(key):
                found.append(None)
                continue
            there = item()
            found.append(there)
            max_bytes -= len(there[0]) + len(there[1])
            if max_bytes <= 0:
                break
        return found

    def page(
        self,
        space: Space,
        start: bytes,
        end: bytes,
        *,
        reverse: bool = False,
        max_items: int,
        max_bytes: int = 1 << 20,
    ) -> Page:
        cursor = self._transaction.cursor(self._spaces[space])
        if not (_to_last_before(cursor, end) if reverse else cursor.set_range(start)):
            return Page([], [], True)
        keys: list[bytes] = []
        values: list[bytes] = []
        items = cursor.iterprev() if reverse else cursor.iternext()
        are_small = self._are_small(space)
        max_items, max_bytes = max(1, max_items), max(1, max_bytes)
        batch, left = _FIRST_BATCH, max_bytes
        while len(keys) < max_items and left > 0:
            wanted = min(batch, max_items - len(keys))
            if keys:
                # As many as fit, if they go on as they began.
                wanted = min(wanted, max(_FIRST_BATCH, ceil(left * len(keys) / (max_bytes - left))))
            found = list(islice(items, wanted)) if are_small else _up_to_bytes(items, wanted, left)
            found_keys = list(map(_key_of, found))
            is_end = bool(found) and not _inside(found_keys[-1], start, end, reverse)
            if is_end:
                count = _count_inside(found_keys, start, end, reverse)
                del found_keys[count:], found[count:]
            found_values = list(map(_value_of, found))
            left -= _cut(found_keys, found_values, left)
            keys += found_keys
            values += found_values
            if len(found_keys) < len(found):
                return Page(keys, values, False)
            if is_end or (len(found) < wanted and (are_small or left > 0)):
                return Page(keys, values, True)
            batch = min(batch * 8, _BATCH_MAX)
        # The cursor stands on the last item that was taken.
        follows = (cursor.prev() if reverse else cursor.next()) and _inside(cursor.key(), start, end, reverse)
        return Page(keys, values, not follows)

    def firsts(
        self, space: Space, start: bytes, end: bytes, tail: bytes, *, max_items: int, max_bytes: int = 1 << 20
    ) -> Page:
        cursor = self._transaction.cursor(self._spaces[space])
        to, item = cursor.set_range, cursor.item
        size = len(tail)
        above = b"\xff" * (size + 1)
        keys: list[bytes] = []
        values: list[bytes] = []
        wanted = start
        for _ in repeat(None, max_items):
            if not to(wanted):
                return Page(keys, values, True)
            key, value = item()
            if key >= end:
                return Page(keys, values, True)
            keys.append(key)
            values.append(value)
            max_bytes -= len(key) + len(value)
            if max_bytes <= 0:
                break
            wanted = key[:-size] + (tail if key[-size:] < tail else above)
        return Page(keys, values, False)

    def _are_small(self, space: Space) -> bool:
        """Return whether the values are so small, or large ones so few, that a batch may be read before it is
        weighed."""
        overflow_pages = self._transaction.stat(self._spaces[space])["overflow_pages"]
        return overflow_pages * self._page_size <= _OVERFLOW_BYTES_FEW

    def keys(self, space: Space, start: bytes, end: bytes, *, max_items: int) -> tuple[list[bytes], bool]:
        cursor = self._transaction.cursor(self._spaces[space])
        if not cursor.set_range(start):
            return [], True
        keys = list(islice(cursor.iternext(keys=True, values=False), max_items))
        if keys and keys[-1] >= end:
            del keys[bisect_left(keys, end) :]
            return keys, True
        return keys, len(keys) < max_items

    def walk(self, space: Space, start: bytes, *, reverse: bool = False) -> Iterator[tuple[bytes, Callable[[], bytes]]]:
        cursor = self._transaction.cursor(self._spaces[space])
        if not (_to_last_before(cursor, start) if reverse else cursor.set_range(start)):
            return
        keys = cursor.iterprev(values=False) if reverse else cursor.iternext(values=False)
        for key in keys:
            yield key, cursor.value


class LmdbWriteTransaction(LmdbReadTransaction):
    """The scope of the one writer: commits on a clean exit, aborts on an exception.

    ``failure_of`` maps an error of LMDB's, once the transaction is aborted; ``committed`` is called after a commit;
    ``measures`` takes how long it was filled and how long its commit took, by ``monotonic_s``.
    """

    def __init__(
        self,
        begin: Begin,
        spaces: Spaces,
        page_size: int,
        failure_of: Callable[[lmdb.Error], Exception],
        committed: Callable[[], None],
        measures: CommitMeasures,
        monotonic_s: Callable[[], float],
    ) -> None:
        super().__init__(begin, spaces, page_size)
        self._failure_of = failure_of
        self._committed = committed
        self._measures = measures
        self._monotonic_s = monotonic_s
        self._began_s = 0.0

    def __enter__(self) -> Self:
        try:
            self._transaction = self._begin(write=True)
        except lmdb.Error as error:
            raise self._failure_of(error) from error
        self._thread = threading.get_ident()
        self._began_s = self._monotonic_s()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        is_same = threading.get_ident() == self._thread
        invariant(is_same, "a write transaction ends on the thread that it began on")
        if error is None:
            filled_s = self._monotonic_s()
            try:
                self._transaction.commit()
            except lmdb.Error as problem:
                raise self._failure_of(problem) from problem
            self._measures.filling.observe(filled_s - self._began_s)
            self._measures.committing.observe(self._monotonic_s() - filled_s)
            self._committed()
            return
        self._transaction.abort()
        if isinstance(error, lmdb.Error):
            raise self._failure_of(error) from error

    def put(self, space: Space, key: bytes, value: bytes) -> None:
        self._transaction.put(key, value, db=self._spaces[space])

    def put_many(self, space: Space, items: Iterable[tuple[bytes, bytes]]) -> None:
        self._transaction.cursor(self._spaces[space]).putmulti(items)

    def delete(self, space: Space, key: bytes) -> bool:
        return self._transaction.delete(key, db=self._spaces[space])

    def delete_range(self, space: Space, start: bytes, end: bytes, *, max_items: int | None = None) -> int:
        cursor = self._transaction.cursor(self._spaces[space])
        deleted = 0
        if not cursor.set_range(start):
            return 0
        while deleted != max_items and cursor.key() < end and cursor.delete():
            deleted += 1
            if not cursor.key():  # the cursor has moved past the last item
                break
        return deleted

    def delete_places(self, space: Space, start: bytes, places: Iterable[int]) -> None:
        cursor = self._transaction.cursor(self._spaces[space])
        if not cursor.set_range(start):
            return
        stands_at = 0
        for deleted, place in enumerate(places):
            # Each deletion moves everything behind it, and the cursor to the item after it.
            while stands_at < place - deleted:
                cursor.next()
                stands_at += 1
            cursor.delete()


def _to_last_before(cursor: lmdb.Cursor[bytes], end: bytes) -> bool:
    return cursor.prev() if cursor.set_range(end) else cursor.last()


def _inside(key: bytes, start: bytes, end: bytes, reverse: bool) -> bool:
    return key >= start if reverse else key < end


def _count_inside(keys: list[bytes], start: bytes, end: bytes, reverse: bool) -> int:
    """Return how many of the first ``keys``, in reading order, are in the range."""
    if reverse:
        return len(keys) - bisect_left(keys[::-1], start)
    return bisect_left(keys, end)


def _up_to_bytes(items: Iterator[tuple[bytes, bytes]], count_max: int, bytes_max: int) -> list[tuple[bytes, bytes]]:
    """Return the next items, up to the one whose value reaches ``bytes_max``: no value behind it is read."""
    found = []
    for item in islice(items, count_max):
        found.append(item)
        bytes_max -= len(item[1])
        if bytes_max <= 0:
            break
    return found


def _cut(keys: list[bytes], values: list[bytes], bytes_max: int) -> int:
    """Drop the items behind the one that reaches ``bytes_max``; returns the bytes that stay."""
    size_bytes = sum(map(len, keys)) + sum(map(len, values))
    while size_bytes > bytes_max and size_bytes - len(keys[-1]) - len(values[-1]) >= bytes_max:
        size_bytes -= len(keys.pop()) + len(values.pop())
    return size_bytes
