"""Bounds of the log lines of libraries: a stranger's bytes can make a library log, at a rate that the stranger chooses.

gRPC logs each metadata value that is no UTF-8, up to three times a call. The value may be 4 KB, and HPACK sends it as
one byte from the second call on. So a log line is longer than the bytes that caused it, and fills the disk. Such a
value may also hold a token.

Each library has LINES_AT_ONCE lines, and then one every LINE_S. The first line behind a gap says how many are missing.
Bytes in a message are replaced by their number. Cortado's own lines are not bounded here.
"""

from __future__ import annotations

import logging
from typing import Final

OURS: Final = "cortado"
LINES_AT_ONCE: Final = 100
LINE_S: Final = 10.0


class LibraryLines(logging.Filter):
    """For a handler. Times are those of the records, in seconds."""

    def __init__(self) -> None:
        super().__init__()
        self._whole_s: dict[str, float] = {}
        """By library: when it has all of its lines again."""
        self._missing: dict[str, int] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        library = record.name.partition(".")[0]
        if library == OURS:
            return True
        taken_s = self._whole_s.get(library, 0.0) - record.created
        # It is more only if the clock was put back.
        if not 0.0 <= taken_s <= LINES_AT_ONCE * LINE_S:
            taken_s = 0.0
        if taken_s + LINE_S > LINES_AT_ONCE * LINE_S:
            self._missing[library] = self._missing.get(library, 0) + 1
            return False
        self._whole_s[library] = record.created + taken_s + LINE_S
        if isinstance(record.args, tuple):
            record.args = tuple(map(_shown, record.args))
        missing = self._missing.pop(library, 0)
        if missing:
            record.msg, record.args = f"{record.getMessage()} ({missing} lines of {library} before it are missing)", ()
        return True


def _shown(argument: object) -> object:
    return f"{len(argument)} bytes" if isinstance(argument, bytes | bytearray | memoryview) else argument
