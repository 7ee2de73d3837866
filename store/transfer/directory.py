"""The place of files that others read: in a directory, or below a URL of an object store. Backups, and all commands
that keep rows aside, go through :class:`Directory`, so each does the same in both.

- *Locally* a file is written beside its name, synced, and renamed, and the directory is synced.
- *Below a URL* (``s3://bucket/monday``) it is made in a temporary file and then uploaded. An object store shows an
  object once all of it is there, and has no names to rename. `fsspec <https://filesystem-spec.readthedocs.io>`_ knows
  the stores; it comes with ``pip install 'cortadodb[remote]'``, and a store's own package (s3fs, gcsfs) is the user's
  to install. A ``file://`` URL is a path of this disk: fsspec would write it in place, without a sync.

Either way a file that is there is whole, and the one that says that all are there is written last.
"""

from __future__ import annotations

import fcntl
import os
import posixpath
import re
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any, BinaryIO, Final, Protocol, Self, TypeAlias

from cortado.errors import CortadoError, InvalidArgument, Unsupported
from cortado.extras import needing
from cortado.store.transfer.files import Sink, WholeFile, below, disk_errors, open_to_read, sync_directory

Where: TypeAlias = str | Path
"""A path, or a URL as text."""

_URL: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*(::|://)")


class Directory(Protocol):
    """Files by name. ``str()`` gives the path or the URL. Everything raises InvalidArgument that names the file if the
    disk or the store refuses it."""

    def names(self) -> list[str] | None:
        """Return the names in it, sorted; None if it is not there."""
        ...

    def make(self) -> None:
        """Make it, durably, unless it is there. Its parent must be there."""
        ...

    def has(self, name: str) -> bool:
        """Return whether there is a file of that name."""
        ...

    def reading(self, name: str) -> AbstractContextManager[BinaryIO]:
        """Return a file's bytes."""
        ...

    def writing(self, name: str) -> AbstractContextManager[Sink]:
        """Return a file in the making: durably there, whole, at the end of the block; after an error it is not
        there."""
        ...

    def remove(self, name: str) -> None:
        """Removes a file, durably."""
        ...

    def held(self) -> AbstractContextManager[None]:
        """Hold it for this process alone until the end of the block, if the file system has locks: a disk does, an
        object store does not. Raises InvalidArgument while another one holds it."""
        ...

    def at(self, path: str) -> Self:
        """Return the directory at a path from here."""
        ...

    def path_to(self, other: Directory) -> str:
        """Return the path from here for :meth:`at`. Raises InvalidArgument if none leads there."""
        ...


def directory_at(where: Where) -> Directory:
    """Return the directory. Raises Unsupported for a URL if its package is not installed, InvalidArgument for text that
    is no URL."""
    if isinstance(where, str) and _URL.match(where):
        return _at_url(where)
    return LocalDirectory(Path(where))


@dataclass(frozen=True, slots=True)
class LocalDirectory:
    """On a disk."""

    path: Path

    def __str__(self) -> str:
        return str(self.path)

    def names(self) -> list[str] | None:
        if not self.path.exists():
            return None
        with disk_errors(self.path, "read"):
            return sorted(path.name for path in self.path.iterdir())

    def make(self) -> None:
        with disk_errors(self.path):
            if not self.path.exists():
                self.path.mkdir()
                sync_directory(self.path.parent)

    def has(self, name: str) -> bool:
        return (self.path / name).exists()

    @contextmanager
    def reading(self, name: str) -> Iterator[BinaryIO]:
        path = below(self.path, name)
        with open_to_read(path) as file, disk_errors(path, "read"):
            yield file

    def writing(self, name: str) -> WholeFile:
        return WholeFile(self.path / name)

    def remove(self, name: str) -> None:
        with disk_errors(self.path / name):
            (self.path / name).unlink()
            sync_directory(self.path)

    @contextmanager
    def held(self) -> Iterator[None]:
        with disk_errors(self.path):
            opened = os.open(self.path, os.O_RDONLY)
        try:
            with disk_errors(self.path, "locked"):
                try:
                    fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    raise InvalidArgument("DIR", "is followed by another process", str(self)) from None
            yield
        finally:
            os.close(opened)

    def at(self, path: str) -> LocalDirectory:
        return LocalDirectory((self.path / path).resolve())

    def path_to(self, other: Directory) -> str:
        if not isinstance(other, LocalDirectory):
            raise _elsewhere(self, other)
        return os.path.relpath(other.path.resolve(), self.path.resolve())


@dataclass(frozen=True, slots=True)
class RemoteDirectory:
    """Below a URL: ``path`` is its path in the file system ``fs``."""

    fs: Any = field(repr=False)
    path: str

    def __str__(self) -> str:
        return str(self.fs.unstrip_protocol(self.path))

    def names(self) -> list[str] | None:
        with self._errors("", "read"), suppress(FileNotFoundError):
            # Another process may have written since it was listed last.
            self.fs.invalidate_cache()
            paths = [entry["name"].rstrip("/") for entry in self.fs.ls(self.path, detail=True)]
            # Some stores list the directory's own placeholder.
            return sorted(posixpath.basename(path) for path in paths if path != self.path.rstrip("/"))
        return None

    def make(self) -> None:
        # Without parents: a name that is mistyped must not become a bucket.
        with self._errors(""), suppress(FileExistsError):
            self.fs.mkdir(self.path, create_parents=False)

    def has(self, name: str) -> bool:
        with self._errors(name, "read"):
            self.fs.invalidate_cache()
            return bool(self.fs.exists(self._path(name)))

    @contextmanager
    def reading(self, name: str) -> Iterator[BinaryIO]:
        with self._errors(name, "read"), self.fs.open(self._path(name), "rb") as file:
            yield file

    @contextmanager
    def writing(self, name: str) -> Iterator[Sink]:
        with disk_errors(f"a temporary file for {self}/{name}"), NamedTemporaryFile(prefix="cortado-") as file:
            yield file
            file.flush()
            with self._errors(name):
                self.fs.put_file(file.name, self._path(name))

    def remove(self, name: str) -> None:
        with self._errors(name):
            self.fs.rm_file(self._path(name))

    def held(self) -> AbstractContextManager[None]:
        return nullcontext()

    def at(self, path: str) -> RemoteDirectory:
        return RemoteDirectory(self.fs, posixpath.normpath(self._path(path)))

    def path_to(self, other: Directory) -> str:
        if not isinstance(other, RemoteDirectory) or other.fs != self.fs:
            raise _elsewhere(self, other)
        return posixpath.relpath(other.path, self.path)

    def _path(self, name: str) -> str:
        return posixpath.join(self.path, name)

    @contextmanager
    def _errors(self, name: str, what: str = "written") -> Iterator[None]:
        """Each store has errors of its own, and not all are an OSError."""
        try:
            yield
        except (CortadoError, FileExistsError):
            raise
        except Exception as error:
            where = f"{self}/{name}" if name else str(self)
            problem = " ".join(str(error).split()) or type(error).__name__
            raise InvalidArgument("file", f"cannot be {what}: {problem}", where) from None


def _at_url(url: str) -> Directory:
    with needing("remote", "a URL"):
        from fsspec.core import url_to_fs
        from fsspec.implementations.local import LocalFileSystem
    try:
        fs, path = url_to_fs(url)
    except ImportError as error:
        raise Unsupported(f"the URL {url}", str(error)) from None
    except Exception as error:
        raise InvalidArgument("DIR", f"is no URL of a file system that is known: {error}", url) from None
    return LocalDirectory(Path(path)) if type(fs) is LocalFileSystem else RemoteDirectory(fs, path)


def _elsewhere(here: Directory, other: Directory) -> InvalidArgument:
    return InvalidArgument("base", f"must be in the same file system as {here}", str(other))
