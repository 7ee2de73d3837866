"""``cortado export``: a table, a database or a namespace into files."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated, TypeAlias

from cortado.errors import InvalidArgument
from cortado.store.cli.commands.table import AtOption
from cortado.store.cli.input import STDIN
from cortado.store.cli.numbers import whole
from cortado.store.cli.options import Argument, Option
from cortado.store.cli.progress import showing_progress
from cortado.store.cli.render import count, size
from cortado.store.cli.session import Session
from cortado.store.cli.tree import command
from cortado.store.client import Client
from cortado.store.names import check_database, check_namespace, split_table_name
from cortado.store.transfer.export import (
    PART_ROWS,
    Exported,
    Selection,
    export_directory,
    export_namespace,
    export_table,
)
from cortado.store.transfer.files import WholeFile
from cortado.store.transfer.formats import Encoding, Format, encoding_to_write
from cortado.store.transfer.progress import Report
from cortado.store.transfer.run_import import NAMESPACE_PREFIX

QuietOption: TypeAlias = Annotated[bool, Option("--quiet", "-q", help="Show no progress.")]


@command(
    "export",
    examples="""
        cortado export flights.airlines > airlines.jsonl
        cortado export flights.flights flights.parquet
        cortado export flights backup/
        cortado export flights.flights flights/ --format avro --resume
        cortado export flights.flights late.jsonl.gz --filter 'arr_delay > 60' --columns carrier,flight
        cortado export kv:sessions sessions.jsonl --at 2025-11-20T13:00:00Z
    """,
)
def export(
    session: Session,
    source: Annotated[str, Argument(help="A table (database.table), a database, or kv:NAMESPACE.", metavar="SOURCE")],
    destination: Annotated[
        str,
        Argument(help="A file, a directory (ends with /), or - for standard output.", metavar="DESTINATION"),
    ] = STDIN,
    format: Annotated[
        str | None,
        Option(
            help="jsonl, avro or parquet.",
            show_default="by the suffix, else jsonl; avro for a database",
            metavar="NAME",
        ),
    ] = None,
    compression: Annotated[
        str | None,
        Option(
            help="none, gzip, deflate, snappy or zstd, as the format has them.",
            show_default="none for jsonl, deflate for avro, snappy for parquet",
            metavar="NAME",
        ),
    ] = None,
    filter: Annotated[str | None, Option(help="Only documents for which this is true.", metavar="EXPR")] = None,
    columns: Annotated[str | None, Option(help="Only these fields, with commas between.", metavar="FIELD,...")] = None,
    at: AtOption = None,
    part_rows: Annotated[
        int | None,
        Option(
            help="About how many rows a file of a directory holds.",
            parser=whole("--part-rows", 1),
            show_default=f"{PART_ROWS}",
            metavar="N",
        ),
    ] = None,
    resume: Annotated[bool, Option("--resume", help="Go on with an export that was ended.")] = False,
    force: Annotated[bool, Option("--force", help="Replace what is there.")] = False,
    quiet: QuietOption = False,
) -> None:
    """Write a table, a whole database or a namespace of the key-value API into files, as of one timestamp.

    A directory gets parts by ranges of the key, and a manifest with keys, indexes, schemas and checksums; a file is
    there whole or not at all.
    """
    chosen = None if columns is None else tuple(each.strip() for each in columns.split(","))
    selection = Selection(at, filter, chosen)
    with session.client() as client, showing_progress(quiet=quiet) as report:
        is_whole = "." not in source and not source.startswith(NAMESPACE_PREFIX)
        if is_whole or _is_directory(destination):
            if destination == STDIN:
                raise InvalidArgument("DESTINATION", "must be given for a database: a directory")
            encoding = encoding_to_write(format, compression, "", Format.AVRO if is_whole else Format.JSONL)
            database, tables = _tables_of(source)
            done = export_directory(
                client,
                database,
                tables,
                Path(destination),
                encoding,
                selection,
                part_rows=part_rows or PART_ROWS,
                resume=resume,
                force=force,
                report=report,
            )
        else:
            if resume:
                raise InvalidArgument("--resume", "needs a directory: a file is written whole or not at all")
            encoding = encoding_to_write(format, compression, destination, Format.JSONL)
            done = _export_file(client, source, destination, encoding, selection, report, force=force)
    _show_done(session, source, destination, done, quiet=quiet)


def _is_directory(destination: str) -> bool:
    return destination != STDIN and (destination.endswith("/") or Path(destination).is_dir())


def _tables_of(source: str) -> tuple[str, list[str] | None]:
    """The database and the tables to export of it, None for all."""
    if source.startswith(NAMESPACE_PREFIX):
        raise InvalidArgument("DESTINATION", "must be a file or - for a namespace")
    if "." in source:
        database, table = split_table_name(source, "SOURCE")
        return database, [table]
    return check_database(source, "SOURCE"), None


def _export_file(
    client: Client,
    source: str,
    destination: str,
    encoding: Encoding,
    selection: Selection,
    report: Report,
    *,
    force: bool,
) -> Exported:
    if destination == STDIN:
        if encoding.format is not Format.JSONL and sys.stdout.isatty():
            raise InvalidArgument("DESTINATION", f"must be given: {encoding.format} is nothing for a terminal")
        sys.stdout.flush()
        rows, ts = _write(client, source, _Stdout(), encoding, selection, report)
        sys.stdout.buffer.flush()
        return Exported(rows, ts, 0, 0)
    path = Path(destination)
    if path.is_file() and not force:
        raise InvalidArgument("DESTINATION", "exists already: --force replaces it", destination)
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


class _Stdout:
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

    def writable(self) -> bool:
        return True

    def readable(self) -> bool:
        return False

    def seekable(self) -> bool:
        return False

    def close(self) -> None:
        """It is the process's to close."""


def _show_done(session: Session, source: str, destination: str, done: Exported, *, quiet: bool) -> None:
    rows = count(done.rows, "pair" if source.startswith(NAMESPACE_PREFIX) else "row")
    if destination == STDIN:
        # What is on standard output is the rows, and nothing else.
        if not quiet:
            session.show.note(f"{rows} of {source} at {done.timestamp}")
        return
    if session.as_json:
        session.show.json(
            {
                "source": source,
                "destination": destination,
                "rows": done.rows,
                "files": done.files,
                "bytes": done.bytes,
                "timestamp": done.timestamp,
            }
        )
        return
    where = destination.rstrip(os.sep) if done.files == 1 else f"{count(done.files, 'file')} of {destination}"
    session.show.line(f"{rows} of {source} at {done.timestamp} are in {where} ({size(done.bytes)})")
