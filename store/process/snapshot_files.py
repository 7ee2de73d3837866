"""The store of snapshot files: a few, written from their beginning to their end, and thrown away.

Nothing is held open between two calls. So a step that outlives its caller (a cancelled task's, on a thread) never
writes into a file that another call has opened since.

Unsynced bytes may be lost in a crash.
"""

from __future__ import annotations

import errno
import logging
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Protocol

from cortado.errors import CortadoError, NotFound, ResourceExhausted, Unavailable
from cortado.store.engine.private_files import DIRECTORY_MODE, FILE_MODE
from cortado.store.files.regular_files import open_regular

_LOG: Final = logging.getLogger(__name__)

RETRY_DELAY_MS: Final = 1_000

NAME: Final = re.compile(r"[a-z]+-[0-9A-Za-z-]{1,64}")
_OF_GROUP: Final = re.compile(r"(?:in|out)-([1-9][0-9]{0,9})-.+")
_NO_SPACE: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


def made_name(group_id: int, snapshot_id: str) -> str:
    """Return the file of a snapshot that was made here."""
    return f"out-{group_id}-{snapshot_id}"


def fetched_name(group_id: int, snapshot_id: str) -> str:
    """Return the file of a snapshot that comes, or came, from a peer."""
    return f"in-{group_id}-{snapshot_id}"


def is_fetched(name: str) -> bool:
    """Return whether a peer's snapshot is in the file, or a part of it."""
    return name.startswith("in-")


def group_of(name: str) -> int | None:
    """Return the group whose snapshot is in the file; None for any other file."""
    found = _OF_GROUP.fullmatch(name)
    return None if found is None else int(found[1])


class SnapshotFiles(Protocol):
    """Raises ResourceExhausted if the disk is full, NotFound for a file that is gone, Unavailable for any other
    failure: nothing in a snapshot file is the only copy, so no failure here must stop a node."""

    def names(self) -> list[str]: ...

    def write(self, name: str, offset: int, data: bytes) -> None:
        """Write at ``offset``, which is not behind the file's end; at 0 the file is created, or emptied."""

    def read(self, name: str, offset: int, length: int) -> bytes:
        """Return up to ``length`` bytes at ``offset``; fewer at the file's end."""

    def size(self, name: str) -> int: ...

    def sync(self, name: str) -> None:
        """Return when the file, with its name, survives a power cut. If it raises, the file is of no use any more."""

    def remove(self, name: str) -> None:
        """Remove the file, if there is one."""

    def free_bytes(self) -> int:
        """Return how many bytes may still be written to the disk."""


def names_in(files: SnapshotFiles) -> list[str]:
    """List the files; none if that fails, which is logged."""
    try:
        return files.names()
    except CortadoError as problem:
        _LOG.warning("the files of snapshots can't be listed: %s", problem)
        return []


def delete_files(files: SnapshotFiles, names: Sequence[str]) -> None:
    """Delete the files that can be deleted, and log the others."""
    for name in names:
        try:
            files.remove(name)
        except CortadoError as problem:
            _LOG.warning("a leftover of a snapshot was not deleted: %s", problem)


def check_room(files: SnapshotFiles, needed_bytes: int) -> None:
    """Raise ResourceExhausted if their disk has fewer bytes free."""
    free_bytes = files.free_bytes()
    if free_bytes < needed_bytes:
        problem = f"a snapshot needs {needed_bytes} bytes of disk, {free_bytes} are free"
        raise ResourceExhausted(problem, RETRY_DELAY_MS, "disk", needed_bytes)


class DiskSnapshotFiles:
    """Files in one directory, which is made by the first write."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def names(self) -> list[str]:
        with _failures(self.path.name):
            return sorted(each.name for each in self.path.iterdir()) if self.path.exists() else []

    def write(self, name: str, offset: int, data: bytes) -> None:
        with _failures(name):
            if offset == 0:
                self.path.mkdir(mode=DIRECTORY_MODE, parents=True, exist_ok=True)
            flags = os.O_WRONLY | (os.O_CREAT | os.O_TRUNC if offset == 0 else 0)
            with self._opened(name, flags) as descriptor:
                left = memoryview(data)
                while left:
                    written = os.pwrite(descriptor, left, offset)
                    offset += written
                    left = left[written:]

    def read(self, name: str, offset: int, length: int) -> bytes:
        with _failures(name), self._opened(name, os.O_RDONLY) as descriptor:
            return os.pread(descriptor, length, offset)

    def size(self, name: str) -> int:
        with _failures(name):
            return self._file(name).stat().st_size

    def sync(self, name: str) -> None:
        with _failures(name):
            with self._opened(name, os.O_WRONLY) as descriptor:
                os.fsync(descriptor)
            for directory in (self.path, self.path.parent):
                descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
                try:
                    os.fsync(descriptor)
                finally:
                    os.close(descriptor)

    def remove(self, name: str) -> None:
        with _failures(name):
            # Files that another hand left there go, too, under any name: the directory is ours.
            (self.path / name).unlink(missing_ok=True)

    def free_bytes(self) -> int:
        with _failures(self.path.name):
            disk = os.statvfs(self.path if self.path.exists() else self.path.parent)
            return disk.f_bavail * disk.f_frsize

    def _file(self, name: str) -> Path:
        # Ids come from peers, and become names of files here.
        if NAME.fullmatch(name) is None:
            raise NotFound("snapshot", repr(name))
        return self.path / name

    @contextmanager
    def _opened(self, name: str, flags: int) -> Iterator[int]:
        descriptor = open_regular(self._file(name), flags, FILE_MODE)
        try:
            yield descriptor
        finally:
            os.close(descriptor)


@contextmanager
def _failures(name: str) -> Iterator[None]:
    """Translate the system's errors."""
    try:
        yield
    except FileNotFoundError:
        raise NotFound("snapshot", name) from None
    except OSError as problem:
        if problem.errno in _NO_SPACE:
            text = f"there is no room for the snapshot {name}: {problem.strerror}"
            raise ResourceExhausted(text, RETRY_DELAY_MS, "disk") from problem
        raise Unavailable(f"the snapshot file {name}: {problem.strerror}", RETRY_DELAY_MS) from problem
