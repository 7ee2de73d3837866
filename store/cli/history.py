"""The lines typed at the shell's prompt, in a file that its user alone may read, so that the next shell has them too.

Lines may hold documents and keys, so the file is made 0600, and set to that if it is found wider. Each line is added
when it is typed: a shell that is killed loses nothing, and several shells write to one file. A new shell cuts the file
to the last :data:`LINES_MAX` lines; a line that begins with a space is not remembered, as other shells have it.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Final

from cortado.errors import InvalidArgument
from cortado.store.files.regular_files import open_regular

LINES_MAX: Final = 1_000
"""How many lines a shell begins with."""
LINE_LENGTH_MAX: Final = 4_096
"""Longer lines, in characters, are not remembered: they are pasted data."""
_BYTES_MAX: Final = LINES_MAX * LINE_LENGTH_MAX * 4


class History:
    """The file at ``path``, which need not exist."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._last = ""

    def load(self) -> list[str]:
        """Return the lines so far, oldest first. Raises InvalidArgument for a file that is not the user's own,
        OSError."""
        self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        descriptor = open_regular(self._path, os.O_RDWR | os.O_CREAT)
        with os.fdopen(descriptor, "rb") as file:
            status = os.fstat(descriptor)
            if status.st_uid != os.geteuid():
                raise InvalidArgument("history", "must be a file of yours", str(self._path))
            os.fchmod(descriptor, 0o600)
            is_cut = status.st_size > _BYTES_MAX
            if is_cut:
                file.seek(-_BYTES_MAX, os.SEEK_END)
                file.readline()
            lines = file.read().decode("utf-8", "surrogateescape").split("\n")[:-1]
        if is_cut or len(lines) > LINES_MAX:
            lines = lines[-LINES_MAX:]
            self._replace(lines)
        self._last = lines[-1] if lines else ""
        return lines

    def add(self, line: str) -> bool:
        """Add a line, durable once the system has written it. False: the line is not remembered. Raises OSError."""
        if line[:1] in ("", " ") or line == self._last or len(line) > LINE_LENGTH_MAX:
            return False
        descriptor = open_regular(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        with os.fdopen(descriptor, "wb") as file:
            file.write(_bytes([line]))
        self._last = line
        return True

    def _replace(self, lines: list[str]) -> None:
        # A line that another shell adds between reading and this is lost; it is remembered there.
        descriptor, temporary = tempfile.mkstemp(prefix=f".{self._path.name}.", dir=self._path.parent)
        with os.fdopen(descriptor, "wb") as file:
            file.write(_bytes(lines))
        Path(temporary).replace(self._path)


def _bytes(lines: list[str]) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode("utf-8", "surrogateescape")
