"""The work of ``cortado export``: into a directory, into one file, or onto standard output."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cortado.errors import InvalidArgument
from cortado.store.cli.failures import OK
from cortado.store.cli.input import STDIN
from cortado.store.cli.render import Renderer, count
from cortado.store.client import Client
from cortado.store.keys.names import check_database, check_namespace, split_table_name
from cortado.store.settings.sizes import size_text
from cortado.store.transfer.export import (
    PART_ROWS,
    Exported,
    Into,
    Selection,
    export_directory,
    export_namespace,
    export_table,
)
from cortado.store.transfer.files import WholeFile, WriteOnly
from cortado.store.transfer.formats import Encoding, Format, encoding_to_write
from cortado.store.transfer.progress import Report
from cortado.store.transfer.run_import import NAMESPACE_PREFIX


@dataclass(frozen=True, slots=True)
class ExportRequest:
    """An export's arguments. ``format`` and ``compression`` are None if the destination determines them, ``null_text``
    if CSV writes null as an empty cell."""

    source: str
    destination: str
    selection: Selection
    format: str | None
    compression: str | None
    null_text: str | None
    part_rows: int | None
    resume: bool
    force: bool


def run_export(client: Client, request: ExportRequest, report: Report) -> Exported:
    """Does it. Raises InvalidArgument for what does not go together, and what ends an export."""
    source, destination = request.source, request.destination
    is_whole = "." not in source and not source.startswith(NAMESPACE_PREFIX)
    if not is_whole and not _is_directory(destination):
        if request.resume:
            raise InvalidArgument("--resume", "needs a directory: a file is written whole or not at all")
        encoding = encoding_to_write(request.format, request.compression, destination, Format.JSONL, request.null_text)
        return _export_file(client, request, encoding, report)
    if destination == STDIN:
        raise InvalidArgument("DESTINATION", "must be a directory for a database")
    if request.null_text is not None:
        raise InvalidArgument("--null", "is for a file: a directory's parts say null by an empty cell")
    default = Format.AVRO if is_whole else Format.JSONL
    database, tables = _tables_of(source)
    into = Into(
        Path(destination),
        encoding_to_write(request.format, request.compression, "", default),
        part_rows=request.part_rows or PART_ROWS,
        resume=request.resume,
        force=request.force,
    )
    return export_directory(client, database, tables, request.selection, into, report)


@dataclass(frozen=True, slots=True)
class ExportAnswer:
    """The result of an export, and its destination."""

    request: ExportRequest
    done: Exported
    exit_code: int = OK

    @property
    def rows(self) -> str:
        return count(self.done.rows, "pair" if self.request.source.startswith(NAMESPACE_PREFIX) else "row")

    def as_json(self) -> Iterable[Any]:
        done = self.done
        return [
            {
                "source": self.request.source,
                "destination": self.request.destination,
                "rows": done.rows,
                "files": done.files,
                "bytes": done.bytes,
                "timestamp": done.timestamp,
            }
        ]

    def as_table(self, show: Renderer) -> None:
        done, destination = self.done, self.request.destination
        where = destination.rstrip(os.sep) if done.files == 1 else f"{count(done.files, 'file')} of {destination}"
        show.line(f"{self.rows} of {self.request.source} at {done.timestamp} are in {where} ({size_text(done.bytes)})")


def _is_directory(destination: str) -> bool:
    return destination != STDIN and (destination.endswith("/") or Path(destination).is_dir())


def _tables_of(source: str) -> tuple[str, list[str] | None]:
    """Return the database and the tables to export of it, None for all."""
    if source.startswith(NAMESPACE_PREFIX):
        raise InvalidArgument("DESTINATION", "must be a file or - for a namespace")
    if "." in source:
        database, table = split_table_name(source, "SOURCE")
        return database, [table]
    return check_database(source, "SOURCE"), None


def _export_file(client: Client, request: ExportRequest, encoding: Encoding, report: Report) -> Exported:
    source, selection = request.source, request.selection
    if request.destination == STDIN:
        if encoding.format is not Format.JSONL and sys.stdout.isatty():
            raise InvalidArgument("DESTINATION", f"must be given: {encoding.format} cannot be shown on a terminal")
        sys.stdout.flush()
        rows, ts = _write(client, source, _Stdout(), encoding, selection, report)
        sys.stdout.buffer.flush()
        return Exported(rows, ts, 0, 0)
    path = Path(request.destination)
    if path.is_file() and not request.force:
        raise InvalidArgument("DESTINATION", "exists already: --force replaces it", request.destination)
    with WholeFile(path) as file:
        rows, ts = _write(client, source, file, encoding, selection, report)
    return Exported(rows, ts, 1, file.bytes)


def _write(
    client: Client, source: str, sink: WholeFile | _Stdout, encoding: Encoding, selection: Selection, report: Report
) -> tuple[int, str]:
    if source.startswith(NAMESPACE_PREFIX):
        if selection.filter is not None or selection.columns is not None:
            raise InvalidArgument("--filter" if selection.filter is not None else "--columns", "is for tables alone")
        namespace = check_namespace(source.removeprefix(NAMESPACE_PREFIX), "SOURCE")
        rows, pairs_ts = export_namespace(client, namespace, sink, encoding, selection.at, report)
        return rows, str(pairs_ts or selection.at)
    split_table_name(source, "SOURCE")
    rows, ts = export_table(client, source, sink, encoding, selection, report)
    return rows, str(ts)


class _Stdout(WriteOnly):
    """Standard output as pyarrow wants a file to be."""

    closed = False

    def __init__(self) -> None:
        self._file = sys.stdout.buffer
        self._bytes = 0

    def write(self, data: bytes, /) -> int:
        self._bytes += len(data)
        return self._file.write(data)

    def tell(self) -> int:
        return self._bytes

    def flush(self) -> None:
        self._file.flush()

    def close(self) -> None:
        """Leave it open: the process closes it."""
