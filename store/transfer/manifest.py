"""What an export of a directory holds: ``manifest.json``, written last, so that where it is the export is whole.

::

    shop-backup/
      manifest.json                 timestamp, tables, keys, indexes, schemas, and of each file its rows and checksum
      customers/part-00000.avro     the first key range of shop.customers
      orders/part-00000.avro
      orders/part-00001.avro

Checksums are SHA-256: ``sha256sum`` says the same. Paths are relative to the manifest, with ``/`` between.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, Final, NoReturn, TypeVar

from cortado.errors import InvalidArgument
from cortado.store.transfer.files import read_json, write_json

MANIFEST: Final = "manifest.json"
# There as long as the export is not done.
CHECKPOINT: Final = "export.checkpoint.json"
VERSION: Final = 1

_Entry = TypeVar("_Entry")
_SHA256: Final = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class FileEntry:
    """A file of rows: where it is, what it holds, and its checksum."""

    path: str
    rows: int
    bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class IndexEntry:
    """An index; ``parts`` are field paths, perhaps followed by ``desc``."""

    name: str
    parts: tuple[str, ...]
    unique: bool


@dataclass(frozen=True, slots=True)
class TableEntry:
    """A table. Its rows are written by version ``schema_version`` of its subject."""

    name: str
    subject: str
    schema_version: int
    key: tuple[str, ...]
    indexes: tuple[IndexEntry, ...]
    files: tuple[FileEntry, ...]

    @property
    def rows(self) -> int:
        return sum(file.rows for file in self.files)


@dataclass(frozen=True, slots=True)
class SubjectEntry:
    """A subject with all its versions, the first one first, as they were registered."""

    subject: str
    compatibility: str
    schemas: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Manifest:
    """An export: the tables as of ``timestamp``, all of their rows unless there is a ``filter``."""

    timestamp: str
    database: str
    format: str
    compression: str
    filter: str | None
    columns: tuple[str, ...] | None
    subjects: tuple[SubjectEntry, ...]
    tables: tuple[TableEntry, ...]

    def table(self, name: str) -> TableEntry | None:
        return next((each for each in self.tables if each.name == name), None)

    def subject(self, name: str) -> SubjectEntry:
        """Raises InvalidArgument where a table names a subject that is not there."""
        found = next((each for each in self.subjects if each.subject == name), None)
        if found is None:
            raise InvalidArgument("manifest", f"has no subject {name}")
        return found


def write_manifest(directory: Path, manifest: Manifest) -> None:
    """Writes it, whole or not at all."""
    write_json(directory / MANIFEST, {"cortado_export": VERSION, **to_json(manifest)})


def read_manifest(directory: Path) -> Manifest:
    """The manifest of a directory. Raises InvalidArgument for what is wrong in it, or an export that is not done."""
    if (directory / CHECKPOINT).exists() and not (directory / MANIFEST).exists():
        problem = "holds an export that is not done: end it first, with cortado export --resume"
        raise InvalidArgument("manifest", problem, str(directory))
    value = read_json(directory / MANIFEST, "manifest")
    if not isinstance(value, dict) or value.get("cortado_export") != VERSION:
        found = value.get("cortado_export") if isinstance(value, dict) else type(value).__name__
        raise InvalidArgument("manifest", f"must have cortado_export {VERSION}", str(found))
    fields = _Fields(value, "manifest")
    return Manifest(
        fields.text("timestamp"),
        fields.text("database"),
        fields.text("format"),
        fields.text("compression"),
        fields.maybe("filter", fields.text),
        fields.maybe("columns", fields.texts),
        fields.each("subjects", _subject),
        fields.each("tables", _table),
    )


def to_json(entry: Any) -> dict[str, Any]:
    """A manifest, or an entry of one, as JSON."""
    return dataclasses.asdict(entry)


class _Fields:
    """The members of a JSON object, each of the type that it must have. Raises InvalidArgument naming its path."""

    def __init__(self, value: Any, path: str) -> None:
        if not isinstance(value, dict):
            raise InvalidArgument(path, "must be an object", type(value).__name__)
        self._value: Mapping[str, Any] = value
        self._path = path

    def text(self, name: str) -> str:
        found = self._get(name)
        return found if isinstance(found, str) else self._refuse(name, "text")

    def flag(self, name: str) -> bool:
        found = self._get(name)
        return found if isinstance(found, bool) else self._refuse(name, "true or false")

    def whole(self, name: str) -> int:
        found = self._get(name)
        return found if type(found) is int and found >= 0 else self._refuse(name, "a whole number")

    def texts(self, name: str) -> tuple[str, ...]:
        found = self._get(name)
        if not isinstance(found, list) or not all(isinstance(each, str) for each in found):
            self._refuse(name, "an array of texts")
        return tuple(found)

    def maybe(self, name: str, read: Callable[[str], _Entry]) -> _Entry | None:
        return None if self._get(name) is None else read(name)

    def each(self, name: str, read: Callable[[_Fields], _Entry]) -> tuple[_Entry, ...]:
        found = self._get(name)
        if not isinstance(found, list):
            self._refuse(name, "an array")
        return tuple(read(_Fields(each, f"{self._path}.{name}[{place}]")) for place, each in enumerate(found))

    def path(self, name: str) -> str:
        """A path that stays below the manifest's directory."""
        found = self.text(name)
        parts = PurePosixPath(found).parts
        if not parts or found.startswith("/") or ".." in parts:
            self._refuse(name, "a path below the manifest")
        return found

    def sha256(self, name: str) -> str:
        found = self.text(name)
        if _SHA256.fullmatch(found) is None:
            self._refuse(name, "64 hexadecimal digits")
        return found

    def _get(self, name: str) -> Any:
        return self._value.get(name)

    def _refuse(self, name: str, wanted: str) -> NoReturn:
        found = "nothing" if name not in self._value else repr(self._value[name])[:80]
        raise InvalidArgument(f"{self._path}.{name}", f"must be {wanted}", found)


def _subject(fields: _Fields) -> SubjectEntry:
    return SubjectEntry(fields.text("subject"), fields.text("compatibility"), fields.texts("schemas"))


def _table(fields: _Fields) -> TableEntry:
    return TableEntry(
        fields.text("name"),
        fields.text("subject"),
        fields.whole("schema_version"),
        fields.texts("key"),
        fields.each("indexes", _index),
        fields.each("files", _file),
    )


def _index(fields: _Fields) -> IndexEntry:
    return IndexEntry(fields.text("name"), fields.texts("parts"), fields.flag("unique"))


def _file(fields: _Fields) -> FileEntry:
    return FileEntry(fields.path("path"), fields.whole("rows"), fields.whole("bytes"), fields.sha256("sha256"))
