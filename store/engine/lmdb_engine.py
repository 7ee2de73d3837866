"""The engine on LMDB: one environment, a sub-database for each space.

Properties of LMDB that matter here (py-lmdb 3, LMDB 0.9; measured, see ``docs/adr/0003-use-of-lmdb.md``):

- A write transaction is begun and ended on one thread. A commit from another thread returns without an error, and
  every later writer hangs; so the scope below checks.
- A commit is two flushes: the pages, then the meta page. Both stay on.
- No ``writemap``: with it a full disk is a SIGBUS. Without it, a full disk is an error of one transaction.
- The map is sparse address space, not memory and not disk: the default is large, so that no user meets its end.
- Readers see the last commit and block no other; but pages freed since the oldest reader began are not used again.
"""

from __future__ import annotations

import os
import resource
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, NamedTuple

import lmdb

from cortado.errors import CortadoError, DataDirectoryError, DataLoss, Internal, InvalidArgument
from cortado.store.engine.data_directory import DataDirectory, Identity
from cortado.store.engine.data_file import DamagedDataFile, check_metas, newest_meta
from cortado.store.engine.failures import (
    StorageFailed,
    disk_full,
    is_input_output_error,
    is_no_space,
    map_full,
    read_failure,
)
from cortado.store.engine.headroom import Headroom
from cortado.store.engine.interface import (
    ABOVE_KEYS,
    LAST_RESERVE_PART,
    Disordered,
    MapUse,
    PointReader,
    RoomLeft,
    Space,
)
from cortado.store.engine.lmdb_transactions import LmdbReadTransaction, LmdbWriteTransaction, Spaces
from cortado.store.engine.mapped import MappedFile
from cortado.store.engine.page_check import check_pages
from cortado.store.engine.private_files import FILE_MODE
from cortado.store.files.regular_files import open_regular
from cortado.store.observe.measures import CommitMeasures

MAP_BYTES_DEFAULT: Final = 256 << 30
MAP_BYTES_MIN: Final = 1 << 20
RESERVE_BYTES_DEFAULT: Final = 64 << 20

CHECKED_BYTES_DEFAULT: Final = 2 << 30
_CHECKED: Final = (Space.DATA, Space.REQUESTS, Space.CHANGES)
"""Each item has a checksum that covers its key, and is repaired by itself, or can be done without."""

_LOOK_AGAIN_AFTER_BYTES: Final = 1 << 20
_EVIDENTLY_FULL_BYTES: Final = 1 << 20


class DataFileUse(NamedTuple):
    """``entries`` by the name of their space; ``readers`` is the number of places for readers that were ever taken."""

    file_bytes: int
    page_bytes: int
    entries: dict[str, int]
    readers: int
    readers_max: int
    transaction_id: int


def _nothing_beside(_data_dir: Path) -> None:
    """The engine is all there is."""


class LmdbEngine:
    """See :class:`~cortado.store.engine.interface.Engine`."""

    def __init__(
        self,
        directory: DataDirectory,
        environment: lmdb.Environment,
        spaces: Spaces,
        reserve_bytes: int | None,
        disordered: Sequence[Disordered],
    ) -> None:
        self._directory = directory
        self._environment = environment
        self._begin = environment.begin
        self._spaces = spaces
        self._data_file = directory.data_file
        self._page_size: int = environment.stat()["psize"]
        self._limit_bytes: int = environment.info()["map_size"]
        self.reserve_bytes = (
            min(RESERVE_BYTES_DEFAULT, self._limit_bytes // 8) if reserve_bytes is None else reserve_bytes
        )
        self._disordered = disordered
        self._unlooked_bytes = 0
        self._headroom = Headroom(self._data_file, self._limit_bytes)
        self._failure: StorageFailed | None = None
        last_page = environment.info()["last_pgno"]
        self._mapped = MappedFile.of(self._begin, self._data_file, self._page_size, last_page)
        self.measures = CommitMeasures()

    @classmethod
    def open(
        cls,
        path: str | Path,
        *,
        new_identity: Callable[[], Identity],
        map_bytes: int | None = None,
        reserve_bytes: int | None = None,
        sync: bool = True,
        checked_bytes: int | None = CHECKED_BYTES_DEFAULT,
        create_beside: Callable[[Path], None] = _nothing_beside,
    ) -> LmdbEngine:
        """Open the data directory, or create it with ``new_identity()``; ``create_beside`` durably makes the other
        parts of a new one, and is called again if an earlier creation was cut off.

        ``map_bytes`` bounds the data (default 256 GiB, or the most that the process may map); it may be enlarged at any
        later open. ``reserve_bytes`` of map and disk are kept free of admitted writes (default 64 MiB, or an eighth of
        a smaller map). ``sync=False`` gives durability up, for tests. ``checked_bytes`` of the data file's pages are
        checked first, and beyond that only branch pages; None for all. Raises DataDirectoryError.
        """
        if map_bytes is not None and map_bytes < MAP_BYTES_MIN:
            raise InvalidArgument("map_bytes", f"must be at least {MAP_BYTES_MIN}", str(map_bytes))

        def create(engine_path: Path) -> None:
            try:
                _open_environment(engine_path, MAP_BYTES_MIN, sync=True)[0].close()
            except lmdb.Error as problem:
                raise DataDirectoryError(str(path), f"its data file cannot be made: {problem}") from problem
            create_beside(engine_path.parent)

        directory = DataDirectory.open(Path(path), new_identity=new_identity, create_engine=create)
        with _closed_on_failure(directory):
            disordered = _check(directory.data_file, checked_bytes)
            environment, spaces = _open_largest(directory.engine_path, map_bytes, sync=sync)
            engine = cls(directory, environment, spaces, reserve_bytes, disordered)
            engine._keep_headroom()
            return engine

    @classmethod
    def open_stopped(cls, path: str | Path, *, checked_bytes: int | None = CHECKED_BYTES_DEFAULT) -> LmdbEngine:
        """Open the data directory of a node that does not run, to read it: nothing in it is written, LMDB's table of
        readers included. Raises DataDirectoryError."""
        directory = DataDirectory.open_stopped(Path(path))
        with _closed_on_failure(directory):
            disordered = _check(directory.data_file, checked_bytes)
            environment, spaces = _open_to_read(directory)
            return cls(directory, environment, spaces, reserve_bytes=0, disordered=disordered)

    @property
    def identity(self) -> Identity:
        return self._directory.identity

    @property
    def disordered(self) -> Sequence[Disordered]:
        return self._disordered

    def join_cluster(self, cluster_id: str) -> None:
        """As :meth:`~cortado.store.engine.data_directory.DataDirectory.join_cluster`. Waits for the disk."""
        self._directory.join_cluster(cluster_id)

    def begin_cluster(self, cluster_id: str) -> None:
        """As :meth:`~cortado.store.engine.data_directory.DataDirectory.begin_cluster`. Waits for the disk."""
        self._directory.begin_cluster(cluster_id)

    @property
    def path(self) -> Path:
        return self._directory.path

    def read(self) -> LmdbReadTransaction:
        return LmdbReadTransaction(self._begin, self._spaces, self._page_size)

    @property
    def mapped(self) -> MappedFile | str:
        """Return the map, to be read by compiled code; or why it cannot be."""
        return self._mapped

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
        if self._failure is not None:
            raise self._failure
        return LmdbWriteTransaction(
            self._begin,
            self._spaces,
            self._page_size,
            self._write_failure,
            self._keep_headroom,
            self.measures,
            time.perf_counter,
        )

    def admit(self, size_bytes: int, *, behind_bytes: int = 0, frees: bool = False) -> None:
        cost_bytes = 2 * size_bytes + self._page_size
        if cost_bytes > self._unlooked_bytes:
            # If there was not enough, look again, since room may have been made. Admitted bytes that are not stored
            # count at a look alone: from then on each write counts by itself.
            map_room_bytes, disk_room_bytes = self._room()
            room_bytes = min(map_room_bytes, disk_room_bytes) - self.reserve_bytes - 2 * behind_bytes
            if cost_bytes > room_bytes:
                # Nor may smaller writes use the rest of the last look any more.
                self._unlooked_bytes = max(0, min(room_bytes, self._unlooked_bytes))
                last_bytes = self.reserve_bytes // LAST_RESERVE_PART
                if frees and cost_bytes <= room_bytes + self.reserve_bytes - last_bytes:
                    return
                raise self._no_room(map_room_bytes, disk_room_bytes, last_bytes if frees else self.reserve_bytes)
            self._unlooked_bytes = min(room_bytes, _LOOK_AGAIN_AFTER_BYTES)
        self._unlooked_bytes -= cost_bytes

    def room(self) -> RoomLeft:
        return RoomLeft(min(self._room()), self.reserve_bytes)

    def use(self) -> MapUse:
        with self._looking():
            with self._begin() as transaction:
                stats = [transaction.stat(), *map(transaction.stat, self._spaces.values())]
            pages = sum(stat["branch_pages"] + stat["leaf_pages"] + stat["overflow_pages"] for stat in stats)
            pages += 2 + newest_meta(self._data_file).free_list_pages
        return MapUse(pages * self._page_size, self._limit_bytes)

    def data_file_use(self) -> DataFileUse:
        """Return the data file's size, and what LMDB says of its pages and readers."""
        info = self._environment.info()
        return DataFileUse(
            file_bytes=self._file_bytes(),
            page_bytes=self._page_size,
            entries={space.value: self._entries(space) for space in self._spaces},
            readers=info["num_readers"],
            readers_max=info["max_readers"],
            transaction_id=info["last_txnid"],
        )

    def _entries(self, space: Space) -> int:
        with self._begin() as transaction:
            entries: int = transaction.stat(self._spaces[space])["entries"]
        return entries

    def disk_free_bytes(self) -> int:
        """Return the bytes that an unprivileged process may still write to the disk under the directory."""
        with self._looking():
            disk = os.statvfs(self._directory.engine_path)
        return disk.f_bavail * disk.f_frsize

    def close(self) -> None:
        if isinstance(self._mapped, MappedFile):
            self._mapped.close()
        self._environment.close()
        self._directory.close()

    # --- room and failures -------------------------------------------------------------------------------------

    def _keep_headroom(self) -> None:
        self._headroom.keep((self._environment.info()["last_pgno"] + 1) * self._page_size)

    def _room(self) -> tuple[int, int]:
        """Bytes that may still be written: by the map's limit, by the disk's."""
        use = self.use()
        # Pages freed inside the file are used before it grows, so they count if the disk has no room left.
        reusable_bytes = max(0, self._file_bytes() - use.used_bytes)
        return use.limit_bytes - use.used_bytes, self.disk_free_bytes() + reusable_bytes

    def _file_bytes(self) -> int:
        with self._looking():
            return self._data_file.stat().st_size

    @contextmanager
    def _looking(self) -> Iterator[None]:
        """Look at the data file and its disk. A disk that cannot be read cannot be written either."""
        try:
            yield
        except lmdb.Error as error:
            raise read_failure(error) from error
        except DamagedDataFile as damaged:
            raise DataLoss("a page of the data file", str(damaged)) from damaged
        except OSError as error:
            raise StorageFailed(f"{self._data_file} cannot be read: {error.strerror}") from error

    def _no_room(self, map_room_bytes: int, disk_room_bytes: int, reserve_bytes: int) -> CortadoError:
        if map_room_bytes <= disk_room_bytes:
            return map_full(self._limit_bytes)
        return disk_full(self.disk_free_bytes(), f"{reserve_bytes} are kept in reserve")

    def _write_failure(self, error: lmdb.Error) -> Exception:
        """Return the error to raise for an error in a write transaction, which is already aborted."""
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
        elif is_input_output_error(error) and self.disk_free_bytes() < _EVIDENTLY_FULL_BYTES:
            # LMDB reports a write that was cut short for want of room as EIO.
            failure = disk_full(self.disk_free_bytes(), str(error))
        if failure is not None and self._can_write():
            return failure
        self._failure = StorageFailed(f"{self.path}: {error}")
        return self._failure

    def _can_write(self) -> bool:
        """Return False if LMDB gave up: it failed to write a meta page, and it is unknown which one is on the disk."""
        try:
            self._begin(write=True).abort()
        except lmdb.Error:
            return False
        return True


@contextmanager
def _closed_on_failure(directory: DataDirectory) -> Iterator[None]:
    """Release the directory after any failure of the open, and raise LMDB's errors as ours."""
    file = directory.data_file
    try:
        yield
    except (DamagedDataFile, lmdb.Error) as problem:
        directory.close()
        advice = f"; {_what_next(directory)}" if isinstance(problem, DamagedDataFile) else ""
        raise DataDirectoryError(str(directory.path), f"its data file {file}: {problem}{advice}") from problem
    except OSError as problem:
        directory.close()
        reason = f"its data file {file} cannot be read: {problem.strerror}"
        raise DataDirectoryError(str(directory.path), reason) from problem
    except BaseException:
        directory.close()
        raise


def _what_next(directory: DataDirectory) -> str:
    node_id = directory.identity.node_id
    return (
        f"replace this node: cortado member remove {node_id}, then add a new id with an empty directory; "
        "a cluster of one: restore the directory from a backup"
    )


def _check(data_file: Path, checked_bytes: int | None) -> list[Disordered]:
    """Return the ranges in which keys are out of order. Raises DamagedDataFile if LMDB, which trusts the file, would
    crash; OSError if it can't be read."""
    with suppress(FileNotFoundError):
        # LMDB writes into the file that it finds there.
        os.close(open_regular(data_file.with_name("lock.mdb")))
    meta = check_metas(data_file)
    pages_max = None if checked_bytes is None else checked_bytes // meta.page_size
    descriptor = open_regular(data_file)
    try:
        file_bytes = os.fstat(descriptor).st_size
        names = [space.encode() for space in Space]
        found = check_pages(
            lambda offset, length: os.pread(descriptor, length, offset),
            file_bytes,
            meta,
            names,
            checked=[space.encode() for space in _CHECKED],
            pages_max=pages_max,
        )
    finally:
        os.close(descriptor)
    return [Disordered(Space(name.decode()), low, high or ABOVE_KEYS) for name, low, high in found.disordered]


def _open_environment(engine_path: Path, map_bytes: int, *, sync: bool) -> tuple[lmdb.Environment, Spaces]:
    environment = lmdb.open(
        str(engine_path),
        map_size=map_bytes,
        mode=FILE_MODE,
        max_dbs=len(Space) + 4,
        sync=sync,
        metasync=sync,
        # Kept for the next read to use again: beginning one is then a third cheaper.
        max_spare_txns=4,
    )
    return environment, {space: environment.open_db(space.encode()) for space in Space}


def _open_to_read(directory: DataDirectory) -> tuple[lmdb.Environment, Spaces]:
    """Open without LMDB's table of readers: no process writes, since the directory is locked."""
    environment = lmdb.open(
        str(directory.engine_path),
        map_size=directory.data_file.stat().st_size,
        max_dbs=len(Space) + 4,
        readonly=True,
        lock=False,
        create=False,
    )
    try:
        return environment, {space: environment.open_db(space.encode(), create=False) for space in Space}
    except BaseException:
        environment.close()
        raise


def _open_largest(engine_path: Path, map_bytes: int | None, *, sync: bool) -> tuple[lmdb.Environment, Spaces]:
    """With the map that was asked for; by default the largest that the process may have, down from 256 GiB."""
    if map_bytes is not None:
        return _open_environment(engine_path, map_bytes, sync=sync)
    map_bytes = MAP_BYTES_DEFAULT
    file_bytes_max = resource.getrlimit(resource.RLIMIT_FSIZE)[0]
    if file_bytes_max != resource.RLIM_INFINITY:
        # A write beyond it would be cut short, which LMDB reports as a broken disk; a full map is an honest refusal.
        map_bytes = max(MAP_BYTES_MIN, min(map_bytes, file_bytes_max))
    while True:
        try:
            return _open_environment(engine_path, map_bytes, sync=sync)
        except lmdb.MemoryError:
            # A limit on address space (ulimit -v, a small container): halve until it fits.
            if map_bytes // 2 < MAP_BYTES_MIN:
                raise
            map_bytes //= 2
