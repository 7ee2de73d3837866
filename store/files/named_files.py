"""Small files that a user names: a regular file, or a pipe such as ``<(command)`` and ``/dev/stdin``.

::

    a regular file              is read anew every time: it may have been replaced
    a pipe, a terminal          is read to its end, once: its content is remembered for this process
    a device without an end     is read up to the bound, and refused
    a pipe that stays silent    is waited for, for a minute

A token, a certificate and a file of settings are each needed more than once, and a pipe yields its content to the first
reader alone. Files in a directory that any user may have made are read by
:mod:`cortado.store.files.regular_files` instead, which refuses all but regular files.
"""

from __future__ import annotations

import errno
import os
import select
import stat
import threading
import time
from pathlib import Path
from typing import Final

WAIT_S: Final = 60.0
_PIECE_BYTES: Final = 64 << 10

_LOCK: Final = threading.Lock()
_REMEMBERED: Final[dict[tuple[int, int], bytes]] = {}
"""By device and inode: descriptors of one pipe have different paths."""


def read_named(path: Path | str, bytes_max: int, wait_s: float = WAIT_S) -> bytes:
    """Read all of a file, a pipe included. Raises OSError, and its ``strerror`` says why: also for more than
    ``bytes_max`` bytes, and for a pipe without an end within ``wait_s``."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
    except OSError as error:
        if error.errno == errno.ENXIO:
            raise OSError(error.errno, "it is a socket, and no file", str(path)) from None
        raise
    try:
        status = os.fstat(descriptor)
        if stat.S_ISREG(status.st_mode):
            content = _to_end(descriptor, bytes_max)
        elif stat.S_ISDIR(status.st_mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        else:
            content = _once(descriptor, (status.st_dev, status.st_ino), bytes_max, wait_s)
    finally:
        os.close(descriptor)
    if len(content) > bytes_max:
        raise OSError(errno.EFBIG, f"it has more than {bytes_max} bytes", str(path))
    return content


def _once(descriptor: int, pipe: tuple[int, int], bytes_max: int, wait_s: float) -> bytes:
    with _LOCK:
        if pipe not in _REMEMBERED:
            content = _to_end(descriptor, bytes_max, wait_s)
            if len(content) > bytes_max:
                return content
            _REMEMBERED[pipe] = content
        return _REMEMBERED[pipe]


def _to_end(descriptor: int, bytes_max: int, wait_s: float | None = None) -> bytes:
    """Return up to one byte more than ``bytes_max``. Raises TimeoutError for a pipe without an end within
    ``wait_s``."""
    ends_s = time.monotonic() + (wait_s or 0.0)
    pieces, wanted = [], bytes_max + 1
    while wanted:
        if wait_s is not None and not _is_ready(descriptor, ends_s):
            raise TimeoutError(errno.ETIMEDOUT, f"it is a pipe, and did not end within {wait_s:g} s")
        try:
            piece = os.read(descriptor, min(wanted, _PIECE_BYTES))
        except BlockingIOError:
            continue  # Another process was faster.
        if not piece:
            break
        pieces.append(piece)
        wanted -= len(piece)
    return b"".join(pieces)


def _is_ready(descriptor: int, ends_s: float) -> bool:
    """Waits until there is something to read, or the last writer closed the pipe."""
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(max(0.0, ends_s - time.monotonic()) * 1_000))
