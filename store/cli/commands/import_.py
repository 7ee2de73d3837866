"""``cortado import``: files into a table, a database or a namespace."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from cortado.store.cli.commands.table import key_field, parse_indexes
from cortado.store.cli.common_options import BAD_MAX, MaxBadOption, Mode, ModeOption, QuietOption, TtlOption
from cortado.store.cli.numbers import expires_of
from cortado.store.cli.options import Argument, Option
from cortado.store.cli.session import Session
from cortado.store.cli.tree import command


@dataclass(frozen=True, slots=True)
class Making:
    """The table to make if there is none."""

    create: Annotated[bool, Option("--create", help="Create the table if it does not exist.")] = False
    key: Annotated[
        list[str] | None,
        Option(
            "--key",
            help="With --create: a field of the key, optionally followed by ' desc'; repeat.",
            metavar="FIELD",
        ),
    ] = None
    index: Annotated[
        list[str] | None,
        Option("--index", help="With --create: an index; may be repeated.", metavar="NAME=FIELD,..."),
    ] = None
    unique: Annotated[
        list[str] | None,
        Option("--unique", help="With --create: a unique index; may be repeated.", metavar="NAME=FIELD,..."),
    ] = None
    schema: Annotated[
        str | None,
        Option(
            "--schema",
            help="With --create: a file with the Avro schema.",
            show_default="that in an Avro file or a manifest, or the subject's",
            metavar="FILE",
        ),
    ] = None


@dataclass(frozen=True, slots=True)
class Course:
    """The handling of bad rows, and of an interrupted import."""

    bad_rows: Annotated[str | None, Option("--bad-rows", help="Write refused rows to this file.", metavar="FILE")] = (
        None
    )
    max_bad: MaxBadOption = None
    resume: Annotated[bool, Option("--resume", help="Continue an interrupted import.")] = False
    checkpoint: Annotated[
        str | None,
        Option(
            "--checkpoint",
            help="The file that records the progress.",
            show_default="TARGET.import-checkpoint",
            metavar="FILE",
        ),
    ] = None
    force: Annotated[
        bool, Option("--force", help="Discard an earlier checkpoint, and replace the file of bad rows.")
    ] = False
    dry_run: Annotated[bool, Option("--dry-run", help="Read and check every row, and change nothing.")] = False


@command(
    "import",
    examples="""
        cortado import flights.airlines airlines.jsonl
        cortado import flights.airlines airlines.csv --null NULL
        cortado import flights.flights part-*.avro --create --key time_hour --key carrier --key flight
        cortado import flights.flights flights.parquet --bad-rows bad.jsonl --max-bad 100
        cortado import flights backup/ --resume
        cortado export kv:sessions | cortado import kv:sessions_copy -
    """,
)
def import_(
    session: Session,
    target: Annotated[str, Argument(help="A table (database.table), a database, or kv:NAMESPACE.", metavar="TARGET")],
    file: Annotated[list[str], Argument(help="Files, an export's directory, or - for standard input.", metavar="FILE")],
    making: Making,
    course: Course,
    format: Annotated[
        str | None, Option(help="jsonl, csv, avro or parquet.", show_default="by the suffix", metavar="NAME")
    ] = None,
    null: Annotated[
        str | None,
        Option("--null", help="The text for null in CSV.", show_default="an empty cell", metavar="TEXT"),
    ] = None,
    mode: ModeOption = Mode.UPSERT,
    ttl_ms: TtlOption = None,
    quiet: QuietOption = False,
) -> None:
    """Load files into a table, a database or a namespace.

    Each row is stored or refused by itself, and all are counted; refused rows can be written to a file. The exit code
    is that of the first refusal. --resume continues an import that was interrupted.
    """
    from cortado.store.cli.input import STDIN, read_text, tell_that_it_waits
    from cortado.store.cli.loading import LoadedAnswer, Teller, counted
    from cortado.store.cli.progress import showing_progress
    from cortado.store.transfer.bad_rows import REASONS
    from cortado.store.transfer.load import Loaded
    from cortado.store.transfer.run_import import ImportRequest, run_import

    if STDIN in file:
        tell_that_it_waits("rows from standard input")
    request = ImportRequest(
        target,
        tuple(file),
        format=format,
        null_text=null,
        mode=mode.value,
        expires=expires_of(ttl_ms),
        create=making.create,
        key=tuple(map(key_field, making.key or ())),
        indexes=tuple(parse_indexes(making.index or [], making.unique or [])),
        schema=None if making.schema is None else read_text(making.schema),
        bad_rows=None if course.bad_rows is None else Path(course.bad_rows),
        bad_max=BAD_MAX if course.max_bad is None else course.max_bad,
        checkpoint=None if course.checkpoint is None else Path(course.checkpoint),
        resume=course.resume,
        force=course.force,
        dry_run=course.dry_run,
    )
    request.check()
    loaded = Loaded()
    answer = LoadedAnswer(target, loaded, course.bad_rows, f"{course.bad_rows}{REASONS}", is_rehearsal=course.dry_run)
    teller = Teller(session.as_json)
    with (
        session.client() as client,
        showing_progress(quiet=quiet) as report,
        counted(session, answer),
    ):
        run_import(client, request, stdin=sys.stdin.buffer, tell=teller, report=report, loaded=loaded)
