"""The content of a directory's export: ``manifest.json`` is written last, so a directory that has it has a whole
export.

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
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from cortado.errors import InvalidArgument
from cortado.schema.compatibility import CompatibilityMode
from cortado.store.clock.retentions import KEEP_ALL
from cortado.store.clock.timestamp import Timestamp
from cortado.store.transfer.files import read_json, write_json
from cortado.store.transfer.json_fields import Fields

MANIFEST: Final = "manifest.json"
# There as long as the export is not done.
CHECKPOINT: Final = "export.checkpoint.json"
VERSION: Final = 2

KEPT_OF_TABLE: Final = ("name", "subject", "key", "indexes", "retention_ms", "ttl_ms")
"""The members of a table's descriptor: those that an export holds and an import makes again."""
LEFT_OF_TABLE: Final = ("table_id", "database", "version", "next_index_id", "named_ts", "principal")
"""The members of a table's descriptor: those that belong to the table in its cluster alone."""
KEPT_OF_INDEX: Final = ("name", "parts", "unique")
LEFT_OF_INDEX: Final = ("index_id", "state", "ready_ts", "job_id", "failure", "failed_keys")
"""Only indexes that are ready are kept, and each is made anew with its table."""


@dataclass(frozen=True, slots=True)
class FileEntry:
    """A file of rows: its path, its counts, and its checksum."""

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
    """A table, :data:`KEPT_OF_TABLE` and its files. Its rows are written by version ``schema_version`` of its subject.

    Old versions are kept for ``retention_ms``, and documents expire ``ttl_ms`` after their commit, both with the
    descriptor's values.
    """

    name: str
    subject: str
    schema_version: int
    key: tuple[str, ...]
    indexes: tuple[IndexEntry, ...]
    retention_ms: int
    ttl_ms: int
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
        """Raises InvalidArgument if a table names a subject that is not there."""
        found = next((each for each in self.subjects if each.subject == name), None)
        if found is None:
            raise InvalidArgument("manifest", f"has no subject {name}")
        return found


def write_manifest(directory: Path, manifest: Manifest) -> None:
    """Writes it, whole or not at all."""
    write_json(directory / MANIFEST, {"cortado_export": VERSION, **to_json(manifest)})


def read_manifest(directory: Path) -> Manifest:
    """Return the manifest of a directory. Raises InvalidArgument for wrong members, or an export that is not done."""
    if (directory / CHECKPOINT).exists() and not (directory / MANIFEST).exists():
        problem = "holds an export that is not done: end it first, with cortado export --resume"
        raise InvalidArgument("manifest", problem, str(directory))
    value = read_json(directory / MANIFEST, "manifest")
    if not isinstance(value, dict) or value.get("cortado_export") != VERSION:
        found = value.get("cortado_export") if isinstance(value, dict) else type(value).__name__
        raise InvalidArgument("manifest", f"must have cortado_export {VERSION}", str(found))
    fields = Fields(value, "manifest")
    manifest = Manifest(
        read_timestamp(fields),
        fields.text("database"),
        fields.text("format"),
        fields.text("compression"),
        fields.maybe("filter", fields.text),
        fields.maybe("columns", fields.texts),
        fields.each("subjects", _subject),
        fields.each("tables", _table),
    )
    check_different("manifest", (file.path for table in manifest.tables for file in table.files))
    for place, table in enumerate(manifest.tables):
        versions = len(manifest.subject(table.subject).schemas)
        if table.schema_version > versions:
            problem = f"must be one of the {versions} versions of {table.subject}"
            raise InvalidArgument(f"manifest.tables[{place}].schema_version", problem, str(table.schema_version))
    return manifest


def read_timestamp(fields: Fields) -> str:
    """Return the member ``timestamp``. Raises InvalidArgument for text that is no timestamp."""
    found = fields.text("timestamp")
    try:
        Timestamp.parse(found)
    except InvalidArgument:
        fields.refuse("timestamp", "a timestamp, as epoch.wall_ms.logical")
    return found


def read_file(fields: Fields) -> FileEntry:
    """Return a file's entry. Raises InvalidArgument."""
    path, sha256 = fields.path("path"), fields.sha256("sha256")
    return FileEntry(path, fields.whole("rows"), fields.whole("bytes"), sha256)


def check_different(what: str, paths: Iterable[str]) -> None:
    """Raises InvalidArgument for a path that stands there twice, or is that of an export's own files."""
    seen = {MANIFEST, CHECKPOINT}
    for path in paths:
        if path in seen:
            raise InvalidArgument(what, "must name each file once, and none of the export's own", path)
        seen.add(path)


def to_json(entry: Any) -> dict[str, Any]:
    """Return a manifest, or an entry of one, as JSON."""
    return dataclasses.asdict(entry)


def _subject(fields: Fields) -> SubjectEntry:
    compatibility = fields.text("compatibility")
    if compatibility not in list(CompatibilityMode):
        fields.refuse("compatibility", f"one of {', '.join(CompatibilityMode)}")
    return SubjectEntry(fields.text("subject"), compatibility, fields.texts("schemas"))


def _table(fields: Fields) -> TableEntry:
    return TableEntry(
        fields.text("name"),
        fields.text("subject"),
        fields.whole("schema_version", 1),
        fields.texts("key"),
        fields.each("indexes", _index),
        fields.whole("retention_ms", KEEP_ALL),
        fields.whole("ttl_ms"),
        fields.each("files", read_file),
    )


def _index(fields: Fields) -> IndexEntry:
    return IndexEntry(fields.text("name"), fields.texts("parts"), fields.flag("unique"))
