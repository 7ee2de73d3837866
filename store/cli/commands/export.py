"""``cortado export``: a table, a database or a namespace into files."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from cortado.store.cli.common_options import AtOption, ColumnsOption, FilterOption, QuietOption, chosen_columns
from cortado.store.cli.numbers import whole
from cortado.store.cli.options import Argument, Option
from cortado.store.cli.session import Session
from cortado.store.cli.tree import command


@dataclass(frozen=True, slots=True)
class Files:
    """The files that are written."""

    format: Annotated[
        str | None,
        Option(
            help="jsonl, csv, avro or parquet.",
            show_default="by the suffix, else jsonl; avro for a database",
            metavar="NAME",
        ),
    ] = None
    compression: Annotated[
        str | None,
        Option(
            help="none, gzip, deflate, snappy or zstd, as the format allows.",
            show_default="none for jsonl and csv, deflate for avro, snappy for parquet",
            metavar="NAME",
        ),
    ] = None
    null: Annotated[
        str | None, Option("--null", help="The text for null in CSV.", show_default="an empty cell", metavar="TEXT")
    ] = None
    part_rows: Annotated[
        int | None,
        Option(
            help="About how many rows a file of a directory holds.",
            parser=whole("--part-rows", 1),
            show_default="250000",
            metavar="N",
        ),
    ] = None
    resume: Annotated[bool, Option("--resume", help="Continue an interrupted export.")] = False
    force: Annotated[bool, Option("--force", help="Replace what is there.")] = False


@command(
    "export",
    examples="""
        cortado export flights.airlines > airlines.jsonl
        cortado export flights.flights flights.parquet
        cortado export flights.flights flights.csv --null NULL
        cortado export flights backup/
        cortado export flights.flights flights/ --format avro --resume
        cortado export flights.flights late.jsonl.gz --filter 'arr_delay > 60' --columns carrier,flight
        cortado export kv:sessions sessions.jsonl --at 2025-11-20T13:00:00Z
    """,
)
def export(
    session: Session,
    source: Annotated[str, Argument(help="A table (database.table), a database, or kv:NAMESPACE.", metavar="SOURCE")],
    files: Files,
    destination: Annotated[
        str, Argument(help="A file, a directory (ends with /), or - for standard output.", metavar="DESTINATION")
    ] = "-",
    filter: FilterOption = None,
    columns: ColumnsOption = None,
    at: AtOption = None,
    quiet: QuietOption = False,
) -> None:
    """Write a table, a database or a namespace to files, as of one timestamp.

    A directory gets parts by key range, and a manifest with keys, indexes, schemas and checksums. A file is complete or
    absent.
    """
    from cortado.store.cli.exporting import ExportAnswer, ExportRequest, run_export
    from cortado.store.cli.input import STDIN
    from cortado.store.cli.progress import showing_progress
    from cortado.store.transfer.export import Selection

    chosen = chosen_columns(columns)
    selection = Selection(at, filter, None if chosen is None else tuple(chosen))
    request = ExportRequest(
        source,
        destination,
        selection,
        files.format,
        files.compression,
        files.null,
        files.part_rows,
        files.resume,
        files.force,
    )
    with session.client() as client, showing_progress(quiet=quiet) as report:
        done = run_export(client, request, report)
    answer = ExportAnswer(request, done)
    if destination != STDIN:
        session.answer(answer)
    elif not quiet:
        # Standard output holds the rows, and nothing else.
        session.show.note(f"{answer.rows} of {source} at {done.timestamp}")
