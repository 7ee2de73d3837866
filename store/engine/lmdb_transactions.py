"""Transactions on LMDB, as scopes: how items are read in pages, and that a writer stays on its thread."""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections.abc import Callable, Iterable
from itertools import islice
from operator import itemgetter
from types import TracebackType
from typing import Final, Self, TypeAlias

import lmdb

from cortado.errors import Internal
from cortado.store.engine.failures import read_failure
from cortado.store.engine.interface import Page, Space
from cortado.store.observe.measures import CommitMeasures

Begin: TypeAlias = Callable[..., "lmdb.Transaction[bytes]"]
Spaces: TypeAlias = dict[Space, "lmdb._Database"]

# Read first what a short range needs, then more at a time. Where values are large, never so many that a run of the
# largest (1 MiB each) fills the memory before their sizes are looked at.
_FIRST_BATCH: Final = 16
_BATCH_MAX: Final = 128
_BATCH_MAX_OF_SMALL: Final = 2_048
# All values over half a page stand on overflow pages: where these are few, no batch can be large.
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

    def seek_many(self, space: Space, keys: Iterable[bytes]) -> list[tuple[bytes, bytes] | None]:
        cursor = self._transaction.cursor(self._spaces[space])
        to, item = cursor.set_range, cursor.item
        return [item() if to(key) else None for key in keys]

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
        batch = batch_max = _FIRST_BATCH
        while len(keys) < max_items and max_bytes > 0:
            wanted = min(batch, max_items - len(keys))
            found = list(islice(items, wanted))
            exhausted = len(found) < wanted
            found_keys = list(map(_key_of, found))
            if found and not _inside(found_keys[-1], start, end, reverse):
                count = _count_inside(found_keys, start, end, reverse)
                del found_keys[count:], found[count:]
                exhausted = True
            keys += found_keys
            found_values = list(map(_value_of, found))
            values += found_values
            if exhausted:
                return Page(keys, values, True)
            max_bytes -= wanted * len(keys[0]) + sum(map(len, found_values))
            if batch == _FIRST_BATCH:
                batch_max = self._batch_max(space)
            batch = min(batch * 8, batch_max)
        return Page(keys, values, False)

    def _batch_max(self, space: Space) -> int:
        overflow_pages = self._transaction.stat(self._spaces[space])["overflow_pages"]
        return _BATCH_MAX_OF_SMALL if overflow_pages * self._page_size <= _OVERFLOW_BYTES_FEW else _BATCH_MAX

    def keys(self, space: Space, start: bytes, end: bytes, *, max_items: int) -> tuple[list[bytes], bool]:
        cursor = self._transaction.cursor(self._spaces[space])
        if not cursor.set_range(start):
            return [], True
        keys = list(islice(cursor.iternext(keys=True, values=False), max_items))
        if keys and keys[-1] >= end:
            del keys[bisect_left(keys, end) :]
            return keys, True
        return keys, len(keys) < max_items


class LmdbWriteTransaction(LmdbReadTransaction):
    """The scope of the one writer: commits on a clean exit, aborts on an exception.

    ``failure_of`` says what an error of LMDB's means, once the transaction is aborted; ``measures`` takes how long it
    was filled and how long its commit took, by ``monotonic_s``.
    """

    def __init__(
        self,
        begin: Begin,
        spaces: Spaces,
        page_size: int,
        failure_of: Callable[[lmdb.Error], Exception],
        measures: CommitMeasures,
        monotonic_s: Callable[[], float],
    ) -> None:
        super().__init__(begin, spaces, page_size)
        self._failure_of = failure_of
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
        if threading.get_ident() != self._thread:
            raise Internal("a write transaction was ended on another thread than it began on")
        if error is None:
            filled_s = self._monotonic_s()
            try:
                self._transaction.commit()
            except lmdb.Error as problem:
                raise self._failure_of(problem) from problem
            self._measures.filling.observe(filled_s - self._began_s)
            self._measures.committing.observe(self._monotonic_s() - filled_s)
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


def _to_last_before(cursor: lmdb.Cursor[bytes], end: bytes) -> bool:
    return cursor.prev() if cursor.set_range(end) else cursor.last()


def _inside(key: bytes, start: bytes, end: bytes, reverse: bool) -> bool:
    return key >= start if reverse else key < end


def _count_inside(keys: list[bytes], start: bytes, end: bytes, reverse: bool) -> int:
    """How many of the first ``keys``, in reading order, are in the range."""
    if reverse:
        return len(keys) - bisect_left(keys[::-1], start)
    return bisect_left(keys, end)
