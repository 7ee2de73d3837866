"""A table, a database or a namespace into files, all at one timestamp.

::

    one file      scan ───────────────► FILE.partial ── sync, rename ──► FILE
    a directory   plan: the timestamp, and for each table its key ranges ──► export.checkpoint.json
                  for each range: scan ──► part ── sync, rename ──► written down in the checkpoint
                  manifest.json, and the checkpoint goes

A directory's export that was killed goes on by ``resume``: at the same timestamp, with the parts that are not written
down yet. Since a part's bytes depend on its rows alone, the result is the same to the byte. A hold keeps the versions
that it reads from collection while it runs, but not between a kill and a resume.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from cortado.errors import InvalidArgument, NotFound
from cortado.store.catalog.descriptors import IndexState, TableDescriptor
from cortado.store.client import Client, KeyRange
from cortado.store.client.values import At
from cortado.store.clock.timestamp import Timestamp
from cortado.store.keys.types import KeyPart
from cortado.store.transfer.export_plan import ExportPlan, Part, TablePlan, check_directory, clear_directory
from cortado.store.transfer.files import Sink, WholeFile, below, disk_errors
from cortado.store.transfer.formats import Encoding
from cortado.store.transfer.kept import kept
from cortado.store.transfer.manifest import FileEntry, IndexEntry, Manifest, SubjectEntry, TableEntry, write_manifest
from cortado.store.transfer.progress import Progress, Report, silent
from cortado.store.transfer.writers import RowScan, write_pairs, write_rows

PART_ROWS: Final = 250_000
_CUTS: Final = 256
"""Key ranges that a table is cut into, before they are put together again to parts."""
PARTS_MAX: Final = 40_000
"""The most files of an export: its checkpoint and its manifest name each, and both are bounded when they are read."""


@dataclass(frozen=True, slots=True)
class Selection:
    """The selection of an export from each table: when, which rows, which fields."""

    at: At = None
    filter: str | None = None
    columns: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Into:
    """The destination of an export's parts, and their form: at most ``part_rows`` in each. ``resume`` goes on with an
    export that was begun there, ``force`` replaces it."""

    directory: Path
    encoding: Encoding
    part_rows: int = PART_ROWS
    resume: bool = False
    force: bool = False


@dataclass(frozen=True, slots=True)
class Exported:
    """The counts of an export: rows, their timestamp, and files with their bytes."""

    rows: int
    timestamp: str
    files: int
    bytes: int


# --- one file ------------------------------------------------------------------------------------------------------


def export_table(
    client: Client, full_name: str, sink: Sink, encoding: Encoding, selection: Selection, report: Report = silent
) -> tuple[int, Timestamp]:
    """Writes a table's rows into ``sink``, in key order. Returns how many, and their timestamp."""
    with kept(client, selection.at, f"export of {full_name}") as at:
        ts, ranges = client.table(full_name).split(1, at=at)
        then = client.at(ts)
        version = client.schemas.get(then.describe(full_name).subject).version
        table = then.table(full_name, schema_version=version)
        scan = RowScan(table, table.codec.schema()[1], filter=selection.filter, columns=selection.columns, at=ts)
        total = sum(each.rows for each in ranges)
        written = write_rows(scan, encoding, sink, name=full_name, metadata=_metadata(full_name, ts))
        return _counted(written, full_name, total, report), ts


def export_namespace(
    client: Client, namespace: str, sink: Sink, encoding: Encoding, at: At, report: Report = silent
) -> tuple[int, Timestamp | None]:
    """Writes a namespace's pairs into ``sink``. Returns how many, and their timestamp if it is known."""
    with kept(client, at, f"export of kv:{namespace}") as read_at:
        ts = client.now() if read_at is None else read_at
        exact = ts if isinstance(ts, Timestamp) else None
        pairs = client.kv(namespace).scan(at=ts)
        written = write_pairs(pairs, encoding, sink, name=f"kv:{namespace}", metadata={"cortado.timestamp": str(ts)})
        return _counted(written, f"kv:{namespace}", 0, report), exact


def _counted(written: Iterator[int], what: str, total: int, report: Report) -> int:
    rows = 0
    for each in written:
        rows += each
        report(Progress(what, rows, done=rows, total=total))
    return rows


def _metadata(full_name: str, ts: Timestamp) -> dict[str, str]:
    return {"cortado.table": full_name, "cortado.timestamp": str(ts)}


# --- a directory ---------------------------------------------------------------------------------------------------


def export_directory(
    client: Client, database: str, tables: Sequence[str] | None, selection: Selection, into: Into, report: Report
) -> Exported:
    """Write tables of a database (all of them, unless they are named) as parts with a manifest.

    With ``resume`` it goes on with an export that was begun there, or begins. Raises InvalidArgument if the directory
    holds an export and neither ``resume`` nor ``force`` is given, or if the export to be resumed is another one.
    """
    plan = check_directory(into.directory, resume=into.resume, force=into.force)
    asked = ExportPlan.asked(
        client.status().cluster_id, database, tables, into.encoding, selection.filter, selection.columns
    )
    if plan is not None:
        plan.check_same(asked, selection.at)
    with kept(client, selection.at if plan is None else plan.timestamp, f"export of {database}") as at:
        if plan is None:
            selection = replace(selection, at=at)
            ts, table_plans = _plan(client, database, tables, into.encoding, selection, into.part_rows)
            plan = replace(asked, timestamp=str(ts), tables=table_plans)
            clear_directory(into.directory, force=into.force)
            plan.write(into.directory)
        return _Parts(client, plan, into.directory, into.encoding, report).write()


def _plan(
    client: Client,
    database: str,
    tables: Sequence[str] | None,
    encoding: Encoding,
    selection: Selection,
    part_rows: int,
) -> tuple[Timestamp, tuple[TablePlan, ...]]:
    then = client.snapshot() if selection.at is None else client.at(selection.at)
    at: At = None
    found = [each for each in then.tables(database) if tables is None or each.name in tables]
    for name in tables or ():
        if name not in {each.name for each in found}:
            raise NotFound("table", f"{database}.{name}")
    ts: Timestamp | None = None
    plans: list[TablePlan] = []
    folders: set[str] = set()
    for descriptor in found:
        # Some file systems take Rows and rows for the same.
        is_taken = descriptor.name.casefold() in folders
        folder = f"{descriptor.name}-{descriptor.table_id}" if is_taken else descriptor.name
        folders.add(folder.casefold())
        ts, ranges = then.table(descriptor.full_name).split(_CUTS, at=at)
        # From the first table's answer, so that all tables are read at the same time, however it was given.
        at = ts
        version = client.schemas.get(descriptor.subject).version
        parts = [
            Part.of(f"{folder}/part-{number:05}{encoding.suffix}", each, descriptor.key)
            for number, each in enumerate(_joined(ranges, part_rows))
        ]
        plans.append(TablePlan(descriptor.name, descriptor.table_id, version, tuple(parts)))
        if sum(len(each.parts) for each in plans) > PARTS_MAX:
            problem = f"makes more than {PARTS_MAX} files: give a larger one, or export some of the tables"
            raise InvalidArgument("--part-rows", problem, str(part_rows))
    return ts or then.now(), tuple(plans)


def _joined(ranges: Sequence[KeyRange], part_rows: int) -> Iterator[KeyRange]:
    """Neighbours put together until they hold about as many rows as a part should."""
    rows = first = 0
    for place, each in enumerate(ranges):
        rows += each.rows
        is_last = place == len(ranges) - 1
        if is_last or rows + ranges[place + 1].rows > part_rows:
            yield KeyRange(ranges[first].start, each.end, rows)
            rows, first = 0, place + 1


class _Parts:
    """Writes the parts of a plan that are not there yet."""

    def __init__(self, client: Client, plan: ExportPlan, directory: Path, encoding: Encoding, report: Report) -> None:
        # Tables by the names that they had then.
        self._client = client.at(plan.timestamp)
        self._plan = plan
        self._directory = directory
        self._encoding = encoding
        self._report = report
        self._total = sum(part.rows_about for table in plan.tables for part in table.parts)
        self._rows = 0

    def write(self) -> Exported:
        plan = self._plan
        descriptors = {each.name: each for each in self._client.tables(plan.database)}
        entries = []
        for table in plan.tables:
            descriptor = descriptors.get(table.name)
            if descriptor is None or descriptor.table_id != table.table_id:
                problem = f"belongs to another table {plan.database}.{table.name} than there is now: begin with --force"
                raise InvalidArgument("checkpoint", problem)
            files = tuple(self._part(descriptor, table, part) for part in table.parts)
            place = self._place(descriptor.subject, table.schema_version)
            entries.append(_table_entry(descriptor, place, files))
        manifest = Manifest(
            plan.timestamp,
            plan.database,
            plan.format,
            plan.compression,
            plan.filter,
            plan.columns,
            self._subjects({each.subject for each in entries}),
            tuple(entries),
        )
        write_manifest(self._directory, manifest)
        plan.remove(self._directory)
        written = [file for entry in entries for file in entry.files]
        return Exported(
            sum(each.rows for each in written), plan.timestamp, len(written), sum(each.bytes for each in written)
        )

    def _part(self, descriptor: TableDescriptor, table: TablePlan, part: Part) -> FileEntry:
        if part.done is not None and self._is_there(part.done):
            self._rows += part.done.rows
            return part.done
        done = self._written(descriptor, table, part)
        self._plan = self._plan.with_done(part.path, done)
        self._plan.write(self._directory)
        return done

    def _is_there(self, done: FileEntry) -> bool:
        """A part that was removed or cut off since is written again: a manifest names nothing that is not there."""
        path = below(self._directory, done.path)
        with disk_errors(path, "read"):
            return path.exists() and path.stat().st_size == done.bytes

    def _written(self, descriptor: TableDescriptor, table: TablePlan, part: Part) -> FileEntry:
        plan, full_name = self._plan, descriptor.full_name
        ts = Timestamp.parse(plan.timestamp)
        handle = self._client.table(full_name, schema_version=table.schema_version)
        lower, upper = part.bounds()
        scan = RowScan(handle, handle.codec.schema()[1], lower, upper, plan.filter, plan.columns, ts)
        path = below(self._directory, part.path)
        with disk_errors(path.parent):
            path.parent.mkdir(exist_ok=True)
        rows = 0
        with WholeFile(path) as file:
            metadata = _metadata(full_name, ts)
            for each in write_rows(scan, self._encoding, file, name=part.path, metadata=metadata):
                rows += each
                self._rows += each
                self._report(Progress(full_name, self._rows, done=self._rows, total=self._total))
        return FileEntry(part.path, rows, file.bytes, file.sha256)

    def _place(self, subject: str, version: int) -> int:
        """Return the place of a version in the manifest, from 1: deleted ones are not in it."""
        return [each.version for each in self._client.schemas.versions(subject)].index(version) + 1

    def _subjects(self, names: set[str]) -> tuple[SubjectEntry, ...]:
        schemas = self._client.schemas
        return tuple(
            SubjectEntry(name, schemas.compatibility(name).value, tuple(each.schema for each in schemas.versions(name)))
            for name in sorted(names)
        )


def _table_entry(descriptor: TableDescriptor, version: int, files: tuple[FileEntry, ...]) -> TableEntry:
    # An index that is being built, or could not be, says nothing about the rows.
    ready = [each for each in descriptor.indexes if each.state is IndexState.READY]
    return TableEntry(
        descriptor.name,
        descriptor.subject,
        version,
        _paths(descriptor.key),
        tuple(IndexEntry(each.name, _paths(each.parts), each.unique) for each in ready),
        descriptor.retention_ms,
        descriptor.ttl_ms,
        files,
    )


def _paths(parts: Sequence[KeyPart]) -> tuple[str, ...]:
    return tuple(f"{part.path} desc" if part.descending else part.path for part in parts)
