"""The engine's map, lent to compiled code: its address, its readers, and the time of the loan.

LMDB maps its file. A tree of a read transaction stays as it is there until the transaction ends; after that its pages
are used again, and reading them gives false rows without an error. Closing the environment takes the map away, and
reading it then ends the process. So one object lends it, and a tree is valid inside its scope alone::

    with mapped.tree(Space.DATA) as tree:       # begins a transaction; MappedFile.close() waits for its end
        ...                                     # compiled code, without the interpreter's lock

LMDB does not tell where the map begins. In a transaction with buffers, the record of a sub-database is handed out as it
lies in the map, on a leaf page that begins with its own number. That gives the beginning, once, when the engine is
opened and that page has just been verified. The map is never moved or resized while it is open.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from ctypes import string_at
from mmap import PAGESIZE
from pathlib import Path
from threading import Condition
from typing import Final

import lmdb
import numpy as np

from cortado.store.engine.data_file import DATA_VERSION, DB_RECORD_BYTES, MAGIC, DbRecord
from cortado.store.engine.failures import read_failure
from cortado.store.engine.interface import Space, Tree
from cortado.store.engine.page_check import DEPTH_MAX, META_PAGES, NO_PAGE
from cortado.store.engine.page_nodes import HEADER_BYTES

_MAGIC_AND_VERSION: Final = (MAGIC | DATA_VERSION << 32).to_bytes(8, "little")


class MappedFile:
    """A :class:`~cortado.store.engine.interface.LentMap` of one environment. Used on any thread; trees are lent to
    several at once."""

    def __init__(
        self, begin: Callable[..., lmdb.Transaction[bytes]], data_file: Path, base: int, page_size: int
    ) -> None:
        self._begin = begin
        self._data_file = data_file
        self._base = base
        self._page_size = page_size
        self._lent = 0
        self._is_closed = False
        self._changed = Condition()

    @classmethod
    def of(
        cls, begin: Callable[..., lmdb.Transaction[bytes]], data_file: Path, page_size: int, last_page: int
    ) -> MappedFile | str:
        """Return the map of a file with pages that were just verified, up to ``last_page``; or why it cannot be
        lent."""
        if sys.byteorder != "little":
            return "this machine is not little-endian"
        if page_size != PAGESIZE:
            return f"the data file has pages of {page_size} bytes, this machine of {PAGESIZE}"
        with begin(buffers=True) as transaction:
            record = transaction.get(Space.DATA.encode())
            if record is None or len(record) != DB_RECORD_BYTES:
                return "the list of sub-databases is not where it is expected"
            address: int = np.frombuffer(record, np.uint8).__array_interface__["data"][0]
            page = address & -page_size
            number = int.from_bytes(string_at(page, 8), sys.byteorder)
            base = page - number * page_size
            if not META_PAGES <= number <= last_page or base <= 0:
                return f"the page of the list of sub-databases says that it is page {number}"
            if string_at(base + HEADER_BYTES, 8) != _MAGIC_AND_VERSION:
                return "the map does not begin with a meta page that is known"
        return cls(begin, data_file, base, page_size)

    @contextmanager
    def tree(self, space: Space) -> Iterator[Tree | None]:
        """See :meth:`~cortado.store.engine.interface.LentMap.tree`."""
        with self._changed:
            if self._is_closed:
                raise read_failure(lmdb.Error("the environment is closed"))
            self._lent += 1
        try:
            transaction = self._begin()
            try:
                yield self._tree(transaction.get(space.encode()))
            finally:
                transaction.abort()
        except lmdb.Error as error:
            raise read_failure(error) from error
        finally:
            with self._changed:
                self._lent -= 1
                self._changed.notify_all()

    def close(self) -> None:
        """Lend no more, and wait until all that was lent is given back."""
        with self._changed:
            self._is_closed = True
            self._changed.wait_for(lambda: not self._lent)

    def _tree(self, encoded: bytes | None) -> Tree | None:
        if encoded is None or len(encoded) != DB_RECORD_BYTES:
            return None
        record = DbRecord.decode(encoded)
        last_page = self._data_file.stat().st_size // self._page_size - 1
        if record.flags:
            return None
        if record.root == NO_PAGE:
            return None if record.depth else (self._base, self._page_size, last_page, 0, 0)
        if not (META_PAGES <= record.root <= last_page and 1 <= record.depth <= DEPTH_MAX):
            return None
        return self._base, self._page_size, last_page, record.root, record.depth
