"""Files and directories that only their owner may read, write or enter.

A user that can read the data file has all data, and one that can open LOCK can hold its lock and keep the server from
starting. So new files get their mode at once, whatever the umask, and files with a wider one are mended before they are
used::

    directories 0700    files 0600

Links inside of a directory are not followed: other users that could write may have put them there, and the process that
mends may be root.
"""

from __future__ import annotations

import logging
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from cortado.errors import DataDirectoryError

_LOG: Final = logging.getLogger(__name__)

DIRECTORY_MODE: Final = 0o700
FILE_MODE: Final = 0o600
UMASK: Final = 0o077
_OTHERS: Final = 0o077


def make_private(path: Path) -> None:
    """Take every right of other users away from ``path`` and all files in it. Raises DataDirectoryError naming a file
    of another user; OSError if the system refuses otherwise."""
    mended = [each for each in _below(path) if _mend(path, each)]
    if mended:
        _LOG.warning(
            "other users could use %d files and directories of %s, such as %s: they are private now",
            len(mended),
            path,
            mended[0],
        )


def _below(path: Path) -> Iterator[Path]:
    """Yield the directory first: once it is closed, no other user reaches the files below by name."""
    yield path
    for folder, folders, files in os.walk(path):
        for name in sorted((*folders, *files)):
            yield Path(folder) / name


def _mend(top: Path, path: Path) -> bool:
    """Mend a file's mode. Returns whether it was too wide. Raises DataDirectoryError."""
    try:
        status = path.stat() if path == top else path.lstat()
    except FileNotFoundError:
        return False
    name = "directory" if path == top else str(path.relative_to(top))
    if stat.S_ISLNK(status.st_mode):
        _check_target(top, path, name)
        return False
    mode = stat.S_IMODE(status.st_mode)
    if not mode & _OTHERS:
        return False
    try:
        path.chmod(mode & ~_OTHERS)
    except PermissionError:
        problem = (
            f"its {name} may be read or written by other users (mode {mode:o}), and belongs to user {status.st_uid}, so"
            " this process cannot change that: give it to the user who runs the server, or another path"
        )
        raise DataDirectoryError(str(top), problem) from None
    return True


def _check_target(top: Path, link: Path, name: str) -> None:
    """Check the target of a link, such as a directory on another disk: the operator that linked it looks after it."""
    if link.is_dir():
        mode = stat.S_IMODE(link.stat().st_mode)
        if mode & _OTHERS:
            problem = f"its {name} leads to a directory that other users may enter (mode {mode:o}): make it 700"
            raise DataDirectoryError(str(top), problem)
