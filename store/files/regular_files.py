"""Opening files that any user may have put there, so that they can neither hang, fill nor mislead a process.

::

    a pipe        is not waited for          } what is opened must be a regular file
    a device      is not read for ever       }
    a link        is not followed, unless the user named the file: secrets of Kubernetes are links
    a large file  is read up to a bound

A small file that the user names, which may be a pipe, is read by :mod:`cortado.store.files.named_files`.

Each refusal is an :class:`OSError`, and its ``strerror`` says why, as the system's own errors do.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path


def open_regular(path: Path | str, flags: int = os.O_RDONLY, mode: int = 0o600, *, follows_links: bool = False) -> int:
    """Return the descriptor of a regular file, which the caller closes. Raises OSError."""
    flags |= os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY
    if not follows_links:
        flags |= os.O_NOFOLLOW
    try:
        descriptor = os.open(path, flags, mode)
    except OSError as error:
        if error.errno == errno.ENXIO:
            # A pipe without a reader, or a socket.
            raise _no_regular_file(path) from None
        if error.errno in (errno.ELOOP, errno.EMLINK) and not follows_links:
            raise OSError(error.errno, "it is a link, and is not followed", str(path)) from None
        raise
    found = os.fstat(descriptor).st_mode
    if stat.S_ISREG(found):
        return descriptor
    os.close(descriptor)
    if stat.S_ISDIR(found):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    raise _no_regular_file(path)


def read_regular(path: Path | str, bytes_max: int, *, follows_links: bool = False) -> bytes:
    """Return all of a regular file. Raises OSError, also if it has more than ``bytes_max`` bytes."""
    with os.fdopen(open_regular(path, follows_links=follows_links), "rb") as file:
        content = file.read(bytes_max + 1)
    if len(content) > bytes_max:
        raise OSError(errno.EFBIG, f"it has more than {bytes_max} bytes", str(path))
    return content


def create_anew(path: Path, mode: int = 0o600) -> int:
    """Return the descriptor of a new, empty file, to be written and closed by the caller. A file of that name is
    removed, so a link leads nowhere. Raises OSError."""
    path.unlink(missing_ok=True)
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)


def replace_small(path: Path, content: bytes, mode: int = 0o600) -> None:
    """Replace a file by a rename, so that its readers find it whole. Raises OSError."""
    temporary = path.with_name(path.name + ".new")
    with os.fdopen(create_anew(temporary, mode), "wb") as file:
        file.write(content)
    temporary.replace(path)


def is_of_another_user(status: os.stat_result) -> bool:
    """Return whether a file or a directory belongs neither to this user nor to root, so that its owner could change
    it."""
    return status.st_uid not in (0, os.geteuid())


def others_may_write(status: os.stat_result) -> bool:
    """Return whether more users than its owner could change it."""
    return bool(status.st_mode & (stat.S_IWGRP | stat.S_IWOTH))


def _no_regular_file(path: Path | str) -> OSError:
    return OSError(errno.EINVAL, "it is no regular file", str(path))
