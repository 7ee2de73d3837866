"""The disk below the log files: a folder of preallocated files that are written at an offset and synced.

:class:`LogDirectory` is the port; the simulation's disk and the tests of faults implement it, :class:`FolderFiles` is
the real one. ``cortado.store.engine.failures`` defines its failures: no room is ``ResourceExhausted`` and may pass, any
other failure on the way to the disk is :class:`~cortado.store.engine.failures.StorageFailed`. A sync that fails is the
end for any reason, a full disk too: the kernel may have dropped the bytes to be written.

A file is preallocated, so that an append changes neither its length nor, if the file system can promise blocks, the
list of its free ones: one write and one fdatasync make it durable, and a full disk is met when a segment is created.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, Protocol

from cortado.errors import DataLoss
from cortado.store.engine.failures import StorageFailed, disk_full
from cortado.store.engine.private_files import DIRECTORY_MODE, FILE_MODE
from cortado.store.files.regular_files import open_regular

_NO_SPACE: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
_CANNOT_PROMISE: Final = frozenset({errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS})


class LogDirectory(Protocol):
    """A folder of files. Methods that change it raise ResourceExhausted or StorageFailed, ``read`` DataLoss."""

    def names(self) -> list[str]:
        """Return the names of all files, in any order."""

    def create(self, name: str, size_bytes: int) -> None:
        """A new file that reads as zeros; it and its name are durable. Raises ResourceExhausted, and leaves nothing."""

    def write(self, name: str, offset: int, data: bytes) -> None:
        """Write all of ``data``; not durable yet. If it raises, any part may have been written."""

    def sync(self, name: str) -> None:
        """Make all written bytes durable. Raises StorageFailed, and no other error."""

    def read(self, name: str, offset: int, size: int) -> bytes:
        """Return up to ``size`` bytes, fewer if the file ends before. Raises DataLoss if the disk can't read."""

    def size(self, name: str) -> int: ...

    def remove(self, name: str) -> None:
        """Durably."""

    def reader(self) -> LogDirectory:
        """Return the same folder, for another thread. The caller closes it: its open files stay on the disk."""

    def close(self) -> None:
        """Raises StorageFailed; everything is closed then, too."""


class FolderFiles:
    """The files of the folder ``path``, which is made if it is missing. Descriptors stay open until ``close``.

    With ``may_write=False`` it opens them for reading alone, and makes nothing.
    """

    def __init__(self, path: Path, *, may_write: bool = True) -> None:
        self._path = path
        self._may_write = may_write
        self._descriptors: dict[str, int] = {}
        if may_write:
            with self._failures(path.name):
                if not path.exists():
                    path.mkdir(mode=DIRECTORY_MODE)
                    _sync_folder(path.parent)
                # A process may have been killed after it created or removed files, before it synced the folder.
                _sync_folder(path)

    def names(self) -> list[str]:
        with self._failures(self._path.name):
            return [each.name for each in self._path.iterdir()] if self._path.exists() else []

    def create(self, name: str, size_bytes: int) -> None:
        with self._failures(name):
            descriptor = os.open(self._path / name, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, FILE_MODE)
            try:
                _preallocate(descriptor, size_bytes)
                os.fsync(descriptor)
                _sync_folder(self._path)
            except BaseException:
                os.close(descriptor)
                with suppress(OSError):
                    (self._path / name).unlink()
                raise
        self._descriptors[name] = descriptor

    def write(self, name: str, offset: int, data: bytes) -> None:
        with self._failures(name):
            descriptor = self._opened(name)
            written = os.pwrite(descriptor, data, offset)
            # A disk that fills takes a part, and says so at the next try.
            while written < len(data):
                written += os.pwrite(descriptor, memoryview(data)[written:], offset + written)

    def sync(self, name: str) -> None:
        with _failed_syncs(name):
            _sync_data(self._opened(name))

    def read(self, name: str, offset: int, size: int) -> bytes:
        try:
            descriptor, parts = self._opened(name), list[bytes]()
            while size > 0 and (part := os.pread(descriptor, size, offset)):
                parts.append(part)
                offset, size = offset + len(part), size - len(part)
            return b"".join(parts)
        except OSError as error:
            raise DataLoss(f"the log file {name}", f"byte {offset} can't be read: {error}") from error

    def size(self, name: str) -> int:
        with self._failures(name):
            return os.fstat(self._opened(name)).st_size

    def remove(self, name: str) -> None:
        with self._failures(name):
            descriptor = self._descriptors.pop(name, None)
            if descriptor is not None:
                os.close(descriptor)
            (self._path / name).unlink()
        with _failed_syncs(name):
            _sync_folder(self._path)

    def reader(self) -> FolderFiles:
        return FolderFiles(self._path, may_write=False)

    def close(self) -> None:
        failed: StorageFailed | None = None
        while self._descriptors:
            name, descriptor = self._descriptors.popitem()
            try:
                os.close(descriptor)
            except OSError as error:
                # It is closed all the same. A reader has lost nothing by it.
                if self._may_write and failed is None:
                    failed = StorageFailed(f"the log file {name} can't be closed: {error}")
                    failed.__cause__ = error
        if failed is not None:
            raise failed

    def _opened(self, name: str) -> int:
        descriptor = self._descriptors.get(name)
        if descriptor is None:
            flags = os.O_RDWR if self._may_write else os.O_RDONLY
            descriptor = self._descriptors[name] = open_regular(self._path / name, flags)
        return descriptor

    @contextmanager
    def _failures(self, name: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            if error.errno in _NO_SPACE:
                raise disk_full(self._free_bytes(), f"the log file {name}: {error}") from error
            raise StorageFailed(f"the log file {name}: {error}") from error

    def _free_bytes(self) -> int:
        disk = os.statvfs(self._path if self._path.exists() else self._path.parent)
        return disk.f_bavail * disk.f_frsize


@contextmanager
def _failed_syncs(name: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StorageFailed(f"the log file {name} can't be synced: {error}") from error


def _preallocate(descriptor: int, size_bytes: int) -> None:
    """Make the file read as zeros. If the file system can't promise blocks, a later write may meet a full disk."""
    if hasattr(os, "posix_fallocate"):
        try:
            os.posix_fallocate(descriptor, 0, size_bytes)
            return
        except OSError as error:
            if error.errno not in _CANNOT_PROMISE:
                raise
    os.ftruncate(descriptor, size_bytes)


def _sync_data(descriptor: int) -> None:
    if sys.platform == "darwin":
        # There fsync leaves data in the drive's own cache.
        import fcntl

        fcntl.fcntl(descriptor, fcntl.F_FULLFSYNC)
    else:
        os.fdatasync(descriptor)


def _sync_folder(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
