"""The engine on LMDB: one environment, a sub-database for each space.

What to know of LMDB here (py-lmdb 3, LMDB 0.9; measured, see ``docs/adr/0003-use-of-lmdb.md``):

- A write transaction is begun and ended on one thread. A commit from another thread returns without an error, and
  every later writer hangs; so the scope below checks.
- A commit is two flushes: the pages, then the meta page. Both stay on.
- No ``writemap``: with it a full disk is a SIGBUS. Without it, a full disk is an error of one transaction.
- The map is sparse address space, not memory and not disk: the default is large, so that nobody meets its end.
- Readers see the last commit and block nobody; but pages freed since the oldest reader began are not used again.
"""

from __future__ import annotations

import os
import threading
from bisect import bisect_left
from collections.abc import Callable, Iterable
from itertools import islice
from operator import itemgetter
from pathlib import Path
from types import TracebackType
from typing import Final, Self, TypeAlias

import lmdb

from cortado.errors import DataDirectoryError, Internal
from cortado.store.engine.data_directory import DataDirectory, Identity
from cortado.store.engine.data_file import DamagedDataFile, check_data_file, newest_meta
from cortado.store.engine.failures import (
    StorageFailed,
    disk_full,
    is_input_output_error,
    is_no_space,
    map_full,
    read_failure,
)
from cortado.store.engine.interface import MapUse, Page, PointReader, Space

MAP_BYTES_DEFAULT: Final = 256 << 30
MAP_BYTES_MIN: Final = 1 << 20
RESERVE_BYTES_MAX: Final = 64 << 20

_LOOK_AGAIN_AFTER_BYTES: Final = 16 << 20

# Read first what a short range needs, then more at a time. Where values are large, never so many that a run of the
# largest (1 MiB each) fills the memory before their sizes are looked at.
_FIRST_BATCH: Final = 16
_BATCH_MAX: Final = 128
_BATCH_MAX_OF_SMALL: Final = 2_048
# All values over half a page stand on overflow pages: where these are few, no batch can be large.
_OVERFLOW_BYTES_FEW: Final = 8 << 20

_Spaces: TypeAlias = "dict[Space, lmdb._Database]"

_key_of: Callable[[tuple[bytes, bytes]], bytes] = itemgetter(0)
_value_of: Callable[[tuple[bytes, bytes]], bytes] = itemgetter(1)


class LmdbEngine:
    """See :class:`~cortado.store.engine.interface.Engine`."""

    def __init__(self, directory: DataDirectory, environment: lmdb.Environment, spaces: _Spaces) -> None:
        self._directory = directory
        self._environment = environment
        self._begin = environment.begin
        self._spaces = spaces
        self._data_file = directory.data_file
        self._page_size: int = environment.stat()["psize"]
        self._limit_bytes: int = environment.info()["map_size"]
        self.reserve_bytes = min(RESERVE_BYTES_MAX, self._limit_bytes // 8)
        self._unlooked_bytes = 0
        self._failure: StorageFailed | None = None

    @classmethod
    def open(
        cls,
        path: str | Path,
        *,
        new_identity: Callable[[], Identity],
        map_bytes: int | None = None,
        sync: bool = True,
    ) -> LmdbEngine:
        """Open the data directory, or create it with ``new_identity()``.

        ``map_bytes`` bounds the data (default 256 GiB, or the most that the process may map); it may be enlarged at
        any later open. ``sync=False`` gives durability up, for tests. Raises DataDirectoryError.
        """

        def create(engine_path: Path) -> None:
            _open_environment(engine_path, MAP_BYTES_MIN, sync=True)[0].close()

        directory = DataDirectory.open(Path(path), new_identity=new_identity, create_engine=create)
        try:
            check_data_file(directory.data_file)
            environment, spaces = _open_largest(directory.engine_path, map_bytes, sync=sync)
            return cls(directory, environment, spaces)
        except (DamagedDataFile, lmdb.Error) as problem:
            directory.close()
            raise DataDirectoryError(str(path), f"its data file {directory.data_file}: {problem}") from problem
        except OSError as problem:
            directory.close()
            raise DataDirectoryError(
                str(path), f"its data file {directory.data_file} cannot be read: {problem.strerror}"
            ) from problem
        except BaseException:
            directory.close()
            raise

    @property
    def identity(self) -> Identity:
        return self._directory.identity

    @property
    def path(self) -> Path:
        return self._directory.path

    def read(self) -> LmdbReadTransaction:
        return LmdbReadTransaction(self)

    def point_reader(self, space: Space) -> PointReader:
        begin, database = self._begin, self._spaces[space]

        def seek(key: bytes) -> tuple[bytes, bytes] | None:
            try:
                # The cursor alone refers to the transaction, which ends with it, at the return.
                cursor = begin(database).cursor()
                return cursor.item() if cursor.set_range(key) else None
            except lmdb.Error as error:
                raise read_failure(error) from error

        return seek

    def write(self) -> LmdbWriteTransaction:
        return LmdbWriteTransaction(self)

    def admit(self, size_bytes: int) -> None:
        cost_bytes = 2 * size_bytes + self._page_size
        if cost_bytes > self._unlooked_bytes:
            # Looked at again where there was not enough, since somebody may have made room.
            room_bytes = self._room_bytes() - self.reserve_bytes
            if cost_bytes > room_bytes:
                raise self._full()
            self._unlooked_bytes = min(room_bytes, _LOOK_AGAIN_AFTER_BYTES)
        self._unlooked_bytes -= cost_bytes

    def use(self) -> MapUse:
        try:
            with self._begin() as transaction:
                stats = [transaction.stat(), *map(transaction.stat, self._spaces.values())]
            pages = sum(stat["branch_pages"] + stat["leaf_pages"] + stat["overflow_pages"] for stat in stats)
            pages += 2 + newest_meta(self._data_file).free_list_pages
        except lmdb.Error as error:
            raise read_failure(error) from error
        return MapUse(pages * self._page_size, self._limit_bytes)

    def disk_free_bytes(self) -> int:
        """What an unprivileged process may still write to the disk under the directory."""
        disk = os.statvfs(self._directory.engine_path)
        return disk.f_bavail * disk.f_frsize

    def close(self) -> None:
        self._environment.close()
        self._directory.close()

    # --- room and failures -------------------------------------------------------------------------------------

    def _room_bytes(self) -> int:
        use = self.use()
        # Pages freed inside the file are used before it grows, so they count where the disk has no room left.
        reusable_bytes = max(0, self._data_file.stat().st_size - use.used_bytes)
        return min(use.limit_bytes - use.used_bytes, self.disk_free_bytes() + reusable_bytes)

    def _full(self) -> Exception:
        use = self.use()
        if use.limit_bytes - use.used_bytes <= self.disk_free_bytes():
            return map_full(use.limit_bytes)
        return disk_full(self.disk_free_bytes(), f"{self.reserve_bytes} are kept in reserve")

    def _check_alive(self) -> None:
        if self._failure is not None:
            raise self._failure

    def _write_failure(self, error: lmdb.Error) -> Exception:
        """What to raise for an error in a write transaction, which is already aborted."""
        self._unlooked_bytes = 0
        if isinstance(error, lmdb.BadValsizeError):
            return Internal(f"a key that the engine cannot hold (1 to 511 bytes) was not refused before: {error}")
        if "closed" in str(error) and self._failure is None:
            return read_failure(error)
        failure: Exception | None = None
        if isinstance(error, lmdb.MapFullError | lmdb.TxnFullError):
            failure = map_full(self._limit_bytes)
        elif is_no_space(error):
            failure = disk_full(self.disk_free_bytes(), str(error))
        elif is_input_output_error(error) and self.disk_free_bytes() < self.reserve_bytes:
            # LMDB reports a write that was cut short for want of room as EIO.
            failure = disk_full(self.disk_free_bytes(), str(error))
        if failure is not None and self._can_write():
            return failure
        self._failure = StorageFailed(f"{self.path}: {error}")
        return self._failure

    def _can_write(self) -> bool:
        """False where LMDB gave up: it failed to write a meta page, and nobody knows which one is on the disk."""
        try:
            self._begin(write=True).abort()
        except lmdb.Error:
            return False
        return True


class LmdbReadTransaction:
    """A scope: begins on entry, ends on exit. Cursors never leave it."""

    def __init__(self, engine: LmdbEngine) -> None:
        self._engine = engine
        self._spaces = engine._spaces
        self._page_size = engine._page_size
        self._transaction: lmdb.Transaction[bytes]

    def __enter__(self) -> Self:
        try:
            self._transaction = self._engine._begin()
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
            values += map(_value_of, found)
            if exhausted:
                return Page(keys, values, True)
            max_bytes -= wanted * len(keys[0]) + sum(map(len, values[-wanted:]))
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
    """The scope of the one writer: commits on a clean exit, aborts on an exception."""

    def __enter__(self) -> Self:
        self._engine._check_alive()
        try:
            self._transaction = self._engine._begin(write=True)
        except lmdb.Error as error:
            raise self._engine._write_failure(error) from error
        self._thread = threading.get_ident()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if threading.get_ident() != self._thread:
            raise Internal("a write transaction was ended on another thread than it began on")
        if error is None:
            try:
                self._transaction.commit()
            except lmdb.Error as problem:
                raise self._engine._write_failure(problem) from problem
            return
        self._transaction.abort()
        if isinstance(error, lmdb.Error):
            raise self._engine._write_failure(error) from error

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


def _open_environment(engine_path: Path, map_bytes: int, *, sync: bool) -> tuple[lmdb.Environment, _Spaces]:
    environment = lmdb.open(
        str(engine_path),
        map_size=map_bytes,
        max_dbs=len(Space) + 4,
        sync=sync,
        metasync=sync,
        # Kept for the next read to use again: beginning one is then a third cheaper.
        max_spare_txns=4,
    )
    return environment, {space: environment.open_db(space.encode()) for space in Space}


def _open_largest(engine_path: Path, map_bytes: int | None, *, sync: bool) -> tuple[lmdb.Environment, _Spaces]:
    """With the map that was asked for; by default the largest that the process may have, down from 256 GiB."""
    if map_bytes is not None:
        return _open_environment(engine_path, map_bytes, sync=sync)
    map_bytes = MAP_BYTES_DEFAULT
    while True:
        try:
            return _open_environment(engine_path, map_bytes, sync=sync)
        except lmdb.MemoryError:
            # A limit on address space (ulimit -v, a small container): halve until it fits.
            if map_bytes // 2 < MAP_BYTES_MIN:
                raise
            map_bytes //= 2
