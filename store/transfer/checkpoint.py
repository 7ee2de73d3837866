"""How far an import is, in a small file: every row before it was acknowledged, or is kept aside.

It is replaced after each segment of rows. An import that was killed begins again there, so rows of the segment that was
under way may be sent twice: by ``upsert`` and ``replace`` that changes nothing, by ``insert`` those that were written
are refused as existing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final

from cortado.errors import InvalidArgument
from cortado.schema.json_text import shown
from cortado.store.transfer.files import disk_errors, read_json, write_json
from cortado.store.transfer.json_fields import Fields

SUFFIX: Final = ".import-checkpoint"
_VERSION: Final = 1
_HEAD_BYTES: Final = 64 << 10


@dataclass(frozen=True, slots=True)
class Position:
    """``row`` rows of file number ``file`` are done, and all files before it; with the results."""

    file: int = 0
    row: int = 0
    written: int = 0
    refused: int = 0
    bad_sizes: tuple[int, int] = (0, 0)

    def after(self, row: int, written: int, refused: int, bad_sizes: tuple[int, int]) -> Position:
        return replace(
            self, row=row, written=self.written + written, refused=self.refused + refused, bad_sizes=bad_sizes
        )

    def next_file(self) -> Position:
        return replace(self, file=self.file + 1, row=0)


class Checkpoint:
    """The file at ``path``. ``identity`` names the files and the target of the import: another import may not go on
    from it."""

    def __init__(self, path: Path, identity: dict[str, Any]) -> None:
        self.path = path
        self._identity = identity

    def look(self, *, resume: bool, force: bool) -> Position | None:
        """Return the place to go on from; None to begin. Raises InvalidArgument for one that was begun, without either
        option."""
        if not self.path.exists():
            return None
        if resume:
            return self._read()
        if not force:
            problem = "shows an import that is not done: --resume goes on with it, --force begins anew"
            raise InvalidArgument("--checkpoint", problem, str(self.path))
        return None

    def save(self, position: Position) -> None:
        """Makes ``position`` durable."""
        write_json(self.path, {"cortado_import_checkpoint": _VERSION, **self._identity, "position": asdict(position)})

    def remove(self) -> None:
        with disk_errors(self.path, "removed"):
            self.path.unlink(missing_ok=True)

    def _read(self) -> Position:
        value = read_json(self.path, "--checkpoint")
        try:
            found = _position(Fields(value, "--checkpoint"))
        except InvalidArgument as error:
            problem = f"{error.problem}: --force begins anew"
            raise InvalidArgument(error.field, problem, error.value) from None
        for name, wanted in self._identity.items():
            if value.get(name) != wanted:
                problem = f"began with {name} {shown(value.get(name), 80)}, and not with {shown(wanted, 80)}"
                raise InvalidArgument("--resume", f"{problem}: --force begins anew")
        return found


def files_identity(paths: Sequence[Path]) -> list[dict[str, Any]]:
    """Return the identity of files, which tells them from others of the same name: their length and their beginning."""
    found = []
    for path in paths:
        with disk_errors(path, "read"), path.open("rb") as file:
            head = hashlib.sha256(file.read(_HEAD_BYTES)).hexdigest()
            found.append({"name": str(path), "bytes": path.stat().st_size, "head": head})
    return found


def _position(fields: Fields) -> Position:
    if fields.whole("cortado_import_checkpoint") != _VERSION:
        fields.refuse("cortado_import_checkpoint", str(_VERSION))
    position = fields.inner("position")
    rows, reasons = position.wholes("bad_sizes", 2)
    file, row, written, refused = (position.whole(name) for name in ("file", "row", "written", "refused"))
    return Position(file, row, written, refused, (rows, reasons))
