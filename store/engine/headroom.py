"""Blocks of the disk that the data file has before LMDB needs them, so that admitted writes can be stored.

::

    data.mdb   |  pages that LMDB uses, or used once  |  headroom: zeros, their blocks promised by the file system  |
               0                                      last page                                           end of file

A write is admitted against the room on the disk, and a moment later it is committed in the log and acknowledged. If
another process filled the disk in between, the write could not be applied, and every read that must see it would wait
for room. So LMDB grows into blocks that the file has already. It writes its pages by their offsets, and does not mind a
file that is longer than they are.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from cortado.store.files.regular_files import open_regular

_BYTES_MIN: Final = 1 << 20
_BYTES_MAX: Final = 8 << 20
_PART: Final = 16
"""A sixteenth of the pages: a small database does not take megabytes that it never writes. Half of it is there at
least."""


class Headroom:
    """Keeps the headroom. It keeps none if the system cannot promise blocks, and less if the disk is nearly full.

    Used by the thread that writes the data file, since some file systems are promised blocks by writing to them.
    """

    def __init__(self, data_file: Path, limit_bytes: int) -> None:
        self._data_file = data_file
        self._limit_bytes = limit_bytes
        self._file_bytes = data_file.stat().st_size

    def keep(self, used_bytes: int) -> None:
        """LMDB's pages take ``used_bytes``, counted from the file's beginning."""
        aim_bytes = min(max(_BYTES_MIN, used_bytes // _PART), _BYTES_MAX)
        if self._file_bytes - used_bytes < aim_bytes // 2:
            end_bytes = max(used_bytes, self._file_bytes)
            self._grow(end_bytes, used_bytes + aim_bytes - end_bytes)

    def _grow(self, end_bytes: int, by_bytes: int) -> None:
        by_bytes = min(by_bytes, self._limit_bytes - end_bytes)
        if by_bytes <= 0 or not hasattr(os, "posix_fallocate"):
            return
        try:
            descriptor = open_regular(self._data_file, os.O_RDWR)
            try:
                os.posix_fallocate(descriptor, end_bytes, by_bytes)
            finally:
                self._file_bytes = os.fstat(descriptor).st_size
                os.close(descriptor)
        except OSError:
            # The disk is nearly full, which refuses writes, or can't promise blocks: then there is none.
            return
