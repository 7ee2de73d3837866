"""Rows that were not stored, kept aside: a file of them, to be mended and imported again, and one of the reasons.

The rows stand one a line, as JSON (a line of JSON lines just as it was read). ``FILE.reasons`` has a line of JSON for
each of them, in the same order::

    {"file": "orders.jsonl", "row": 17, "field": "total", "reason": "INVALID_DOCUMENT", "message": "total: must be ..."}
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import BinaryIO, Final

from cortado.errors import InvalidArgument
from cortado.store.transfer.files import disk_errors
from cortado.store.transfer.rows import BadRow

REASONS: Final = ".reasons"


def reason_json(bad: BadRow) -> dict[str, object]:
    """Return the place of a bad row, and its problem."""
    where = bad.error.fields().get("field", "")
    return {
        "file": bad.file,
        "row": bad.place,
        "field": where,
        "reason": bad.error.reason,
        "message": bad.error.message(),
    }


class BadRows:
    """The two files, made with the first bad row. Raises InvalidArgument if they exist, unless ``force``."""

    def __init__(self, path: Path, *, force: bool = False, sizes: tuple[int, int] | None = None) -> None:
        self._paths = (path, path.with_name(path.name + REASONS))
        self._files: tuple[BinaryIO, BinaryIO] | None = None
        self._sizes = sizes or (0, 0)
        if not path.parent.is_dir() or path.is_dir():
            # Said now, and not with the first bad row, which may come after an hour.
            raise InvalidArgument("--bad-rows", "must be a file, in a directory that exists", str(path))
        for each in self._paths:
            if sizes is None and not force and each.exists():
                raise InvalidArgument("--bad-rows", "exists already: --force replaces it", str(each))

    def add(self, bad: BadRow) -> None:
        """Add a bad row. A row that has no text is an empty line, with a reason."""
        rows, reasons = self._opened()
        with disk_errors(self._paths[0]):
            rows.write(f"{bad.text or ''}\n".encode("utf-8", "surrogateescape"))
            reasons.write(json.dumps(reason_json(bad), ensure_ascii=False, default=str).encode() + b"\n")

    def sync(self) -> tuple[int, int]:
        """Make the added rows durable; returns the sizes of both files."""
        if self._files is None:
            return self._sizes
        with disk_errors(self._paths[0]):
            for file in self._files:
                file.flush()
                os.fsync(file.fileno())
        return self._files[0].tell(), self._files[1].tell()

    def close(self) -> None:
        for file in self._files or ():
            with disk_errors(self._paths[0]):
                file.close()

    def _opened(self) -> tuple[BinaryIO, BinaryIO]:
        if self._files is None:
            self._files = (self._open(0), self._open(1))
        return self._files

    def _open(self, which: int) -> BinaryIO:
        path, size = self._paths[which], self._sizes[which]
        with disk_errors(path):
            file = path.open("r+b" if path.exists() else "w+b")
            if file.seek(0, os.SEEK_END) < size:
                file.close()
                raise InvalidArgument("--bad-rows", f"is shorter than the {size} bytes of the checkpoint", str(path))
            # Rows added after the checkpoint are added again.
            file.truncate(size)
            file.seek(size)
        return file
