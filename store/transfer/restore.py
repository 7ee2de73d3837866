"""An export's directory back into a cluster: schemas, tables, indexes, and rows.

Nothing is changed before every file was found whole, by its checksum, and no table stands in the way.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from cortado.errors import AlreadyExists, InvalidArgument
from cortado.store.client import Client, Index
from cortado.store.client.put_mode import PutMode
from cortado.store.client.values import Expires
from cortado.store.transfer.files import below, disk_errors, sha256_of
from cortado.store.transfer.formats import Format
from cortado.store.transfer.load import Input, Task
from cortado.store.transfer.manifest import Manifest, TableEntry, read_manifest
from cortado.store.transfer.progress import Progress, Report, silent
from cortado.store.transfer.stores import Nowhere, TableStore
from cortado.store.transfer.tables import (
    find_table,
    future_target,
    key_paths,
    make_database,
    restore_subject,
    table_target,
)


@dataclass(frozen=True, slots=True)
class Export:
    """An export in a directory, and the tables of it that are wanted."""

    directory: Path
    manifest: Manifest
    tables: tuple[TableEntry, ...]

    @classmethod
    def open(cls, directory: Path, table: str | None = None) -> Export:
        """Open an export with all tables, or one: the one of that name, or the only one. Raises InvalidArgument."""
        manifest = read_manifest(directory)
        if table is None:
            return cls(directory, manifest, manifest.tables)
        found = manifest.table(table) or (manifest.tables[0] if len(manifest.tables) == 1 else None)
        if found is None:
            names = ", ".join(each.name for each in manifest.tables)
            raise InvalidArgument("manifest", f"has no table {table}; there are {names}", str(directory))
        return cls(directory, manifest, (found,))

    @property
    def format(self) -> Format:
        try:
            return Format(self.manifest.format)
        except ValueError:
            raise InvalidArgument(
                "manifest.format", f"must be one of {', '.join(Format)}", self.manifest.format
            ) from None

    def inputs(self, table: TableEntry) -> list[Input]:
        """Return a table's files."""
        paths = [self.directory / file.path for file in table.files]
        return [Input(str(path), self.format, path) for path in paths]

    def check_files(self, report: Report = silent) -> None:
        """Read every file once. Raises InvalidArgument for a file that is missing, or differs from the exported one."""
        files = [(table, file) for table in self.tables for file in table.files]
        total, before = sum(file.bytes for _, file in files), 0
        for _, file in files:
            path = below(self.directory, file.path)
            with disk_errors(path, "read"):
                size = path.stat().st_size
            found: int | str = ""
            for found in sha256_of(path) if size == file.bytes else ():
                if isinstance(found, int):
                    report(Progress(f"checking {file.path}", 0, done=before + found, total=total))
            if found != file.sha256:
                problem = f"is damaged: its checksum is not the manifest's (it has {size} bytes, and had {file.bytes})"
                raise InvalidArgument("file", problem, str(path))
            before += file.bytes


def restore_tasks(
    client: Client, export: Export, database: str, *, mode: PutMode, expires: Expires, again: bool
) -> list[Task]:
    """Make the database, the subjects and the tables, and return the tasks that load them.

    ``again``: tables may be there, of the same key and indexes. Raises AlreadyExists, InvalidArgument.
    """
    for entry in export.tables:
        _check_room(client, f"{database}.{entry.name}", entry, again=again)
    make_database(client, database)
    tasks: list[Task] = []
    for entry in export.tables:
        full_name = f"{database}.{entry.name}"
        make_table_of(client, export.manifest, entry, full_name)
        target, store = table_target(client, full_name), TableStore(client.table(full_name), mode, expires)
        tasks += [Task(each, target, store) for each in export.inputs(entry)]
    return tasks


def rehearsal_tasks(export: Export, database: str) -> list[Task]:
    """Return the tasks of :func:`restore_tasks`, to be read and sent nowhere; it changes nothing."""
    return [task for entry in export.tables for task in _rehearsal(export, entry, f"{database}.{entry.name}")]


def _rehearsal(export: Export, entry: TableEntry, full_name: str) -> Iterator[Task]:
    schemas = export.manifest.subject(entry.subject).schemas
    target = future_target(full_name, schemas[entry.schema_version - 1])
    yield from (Task(each, target, Nowhere()) for each in export.inputs(entry))


def make_table_of(client: Client, manifest: Manifest, entry: TableEntry, full_name: str) -> None:
    """Makes a table as the manifest describes it, with its subject; leaves one that is there."""
    if find_table(client, full_name) is not None:
        return
    subject = subject_name(manifest, entry, full_name)
    restore_subject(client, manifest.subject(entry.subject), subject)
    indexes = [Index(each.name, list(each.parts), each.unique) for each in entry.indexes]
    client.create_table(
        full_name,
        list(entry.key),
        subject=subject,
        indexes=indexes,
        retention_ms=entry.retention_ms,
        ttl_ms=entry.ttl_ms,
    )


def subject_name(manifest: Manifest, entry: TableEntry, full_name: str) -> str:
    """Return the name of a subject in the target: one that was named as its table goes with the table's name."""
    return full_name if entry.subject == f"{manifest.database}.{entry.name}" else entry.subject


def _check_room(client: Client, full_name: str, entry: TableEntry, *, again: bool) -> None:
    there = find_table(client, full_name)
    if there is None:
        return
    if not again:
        raise AlreadyExists("table", full_name)
    if key_paths(there) != list(entry.key):
        raise InvalidArgument("manifest", f"has another key of {full_name} than there is", ", ".join(entry.key))
