"""Files that are there whole or not at all.

A file is written under a name of its own (``.partial``), synced, and then renamed, and the directory is synced: a
reader that finds the name finds all of it, also after a crash. A refusal of the disk is an InvalidArgument that names
the file.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Final, Protocol, Self

from cortado.errors import InvalidArgument, TooLarge
from cortado.schema.json_bounds import check_json_bounds
from cortado.schema.json_text import parse_json
from cortado.store.files.regular_files import read_regular

PARTIAL: Final = ".partial"
JSON_BYTES_MAX: Final = 64 << 20
"""The bound of a manifest or a checkpoint: enough for the tens of thousands of files that its items allow."""
_PIECE_BYTES: Final = 1 << 20


class Sink(Protocol):
    """The destination of a writer's bytes."""

    def write(self, data: bytes, /) -> int: ...


class WriteOnly:
    """The methods of a file, besides its bytes, that writers such as pyarrow call."""

    def writable(self) -> bool:
        return True

    def readable(self) -> bool:
        return False

    def seekable(self) -> bool:
        return False


class WholeFile(WriteOnly):
    """A file in the making: at the end of ``with`` it is there, or after an error nothing is.

    ``bytes`` and ``sha256`` are of the written data. It is a file object as far as writers need one, pyarrow's among
    them. Raises InvalidArgument, also if another thing than a file has that name.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.bytes = 0
        self.closed = False
        self._digest = hashlib.sha256()
        self._partial = path.with_name(path.name + PARTIAL)
        if path.exists() and not path.is_file():
            # Renaming over a device or a pipe would take it away from its other users.
            raise InvalidArgument("file", "is no regular file, and cannot be replaced", str(path))
        with disk_errors(path):
            # Anew: an old one may be a link to another place, or a pipe without a reader.
            self._partial.unlink(missing_ok=True)
            self._file = self._partial.open("xb")

    @property
    def sha256(self) -> str:
        return self._digest.hexdigest()

    def write(self, data: bytes) -> int:
        with disk_errors(self.path):
            self._file.write(data)
        self._digest.update(data)
        self.bytes += len(data)
        return len(data)

    def tell(self) -> int:
        return self.bytes

    def flush(self) -> None:
        with disk_errors(self.path):
            self._file.flush()

    def close(self) -> None:
        """Do nothing: a writer calls it when it is done; the end of ``with`` makes the file whole."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            if kind is None:
                self._end()
        finally:
            # Gone by then if all went well. An interrupt may come at any time.
            with suppress(OSError):
                self._file.close()
            self._partial.unlink(missing_ok=True)

    def _end(self) -> None:
        with disk_errors(self.path):
            self._file.flush()
            os.fsync(self._file.fileno())
            self._file.close()
            self._partial.replace(self.path)
            sync_directory(self.path.parent)


def write_json(path: Path, value: Any) -> None:
    """Replaces a small file by ``value`` as JSON, whole or not at all."""
    with WholeFile(path) as file:
        file.write(json_bytes(value))


def json_bytes(value: Any) -> bytes:
    """Return a small file's bytes, which :func:`parse_written` reads."""
    return json.dumps(value, ensure_ascii=False, indent=1).encode() + b"\n"


def read_json(path: Path, what: str) -> Any:
    """Read a value that :func:`write_json` wrote. Raises InvalidArgument naming ``what`` and the file."""
    with disk_errors(path, "read"):
        data = read_regular(path, JSON_BYTES_MAX, follows_links=True)
    return parse_written(data, what, str(path))


def parse_written(data: bytes, what: str, where: str) -> Any:
    """Parse bytes that :func:`json_bytes` made. Raises InvalidArgument naming ``what`` and ``where``."""
    if len(data) > JSON_BYTES_MAX:
        raise InvalidArgument(what, f"is too large: the limit is {JSON_BYTES_MAX} bytes", where)
    try:
        check_json_bounds(data, what)
        return parse_json(data.decode(), what)
    except (UnicodeDecodeError, InvalidArgument, TooLarge) as error:
        problem = f"must be UTF-8: {error.reason}" if isinstance(error, UnicodeDecodeError) else error.problem
        raise InvalidArgument(what, f"is not what was written there: {problem}", where) from None


def below(directory: Path, path: str) -> Path:
    """Return the file at ``path`` below ``directory``, which need not be there yet.

    Raises InvalidArgument if a link would lead out of the directory, or if something stands that is no file.
    """
    names = path.split("/")
    found = directory
    for number, name in enumerate(names, 1):
        found /= name
        with disk_errors(found, "read"):
            try:
                mode = found.lstat().st_mode
            except FileNotFoundError:
                return directory / path
        is_right = stat.S_ISREG(mode) if number == len(names) else stat.S_ISDIR(mode)
        if not is_right:
            wanted = "regular file" if number == len(names) else "directory of its own"
            raise InvalidArgument("file", f"is no {wanted}, and is left alone", str(found))
    return found


def sync_directory(directory: Path) -> None:
    """Makes the names in it durable."""
    opened = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def sha256_of(path: Path) -> Iterator[int | str]:
    """Yield the bytes done so far, piece by piece, and last the checksum in hexadecimal."""
    digest = hashlib.sha256()
    done = 0
    with disk_errors(path, "read"), path.open("rb") as file:
        while piece := file.read(_PIECE_BYTES):
            digest.update(piece)
            done += len(piece)
            yield done
    yield digest.hexdigest()


@contextmanager
def disk_errors(path: Path | str, what: str = "written") -> Iterator[None]:
    """Raise the system's refusals as InvalidArgument: a full disk, a missing directory, a lack of rights."""
    try:
        yield
    except OSError as error:
        raise InvalidArgument("file", f"cannot be {what}: {error.strerror or error}", str(path)) from None


def is_read_once(path: Path) -> bool:
    """Return whether it is a pipe, such as ``<(command)``, or a device: its bytes are gone once they were read."""
    return path.exists() and not path.is_file() and not path.is_dir()


def open_to_read(path: Path) -> BinaryIO:
    """Return the file's bytes. Raises InvalidArgument."""
    with disk_errors(path, "read"):
        if path.is_dir():
            raise IsADirectoryError(21, "Is a directory")
        return path.open("rb")
