"""``cortado import``: files into a table, a database or a namespace."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Final, cast

from cortado.store.cli import failures
from cortado.store.cli.commands.export import QuietOption
from cortado.store.cli.commands.table import parse_index
from cortado.store.cli.input import read_text
from cortado.store.cli.numbers import whole
from cortado.store.cli.options import Argument, Option
from cortado.store.cli.progress import showing_progress
from cortado.store.cli.render import count
from cortado.store.cli.session import Session
from cortado.store.cli.tree import command
from cortado.store.client.put_mode import PutMode
from cortado.store.transfer.bad_rows import REASONS
from cortado.store.transfer.checkpoint import SUFFIX
from cortado.store.transfer.load import BAD_MAX, Loaded
from cortado.store.transfer.rows import BadRow
from cortado.store.transfer.run_import import NAMESPACE_PREFIX, ImportRequest, run_import

SHOWN_MAX: Final = 20
"""Bad rows that are shown; all are counted, and kept where --bad-rows says."""


@command(
    "import",
    examples="""
        cortado import flights.airlines airlines.jsonl
        cortado import flights.flights part-*.avro --create --key time_hour --key carrier --key flight
        cortado import flights.flights flights.parquet --bad-rows bad.jsonl --max-bad 100
        cortado import flights backup/ --resume
        cortado export kv:sessions | cortado import kv:sessions_copy -
    """,
)
def import_(
    session: Session,
    target: Annotated[str, Argument(help="A table (database.table), a database, or kv:NAMESPACE.", metavar="TARGET")],
    file: Annotated[
        list[str],
        Argument(help="Files, an export's directory, or - for standard input.", metavar="FILE"),
    ],
    format: Annotated[
        str | None, Option(help="jsonl, avro or parquet.", show_default="by the suffix", metavar="NAME")
    ] = None,
    mode: Annotated[
        str,
        Option(help="upsert: always; insert: only new rows; replace: only ones that exist.", metavar="MODE"),
    ] = "upsert",
    create: Annotated[bool, Option("--create", help="Make the table where there is none.")] = False,
    key: Annotated[
        list[str] | None,
        Option("--key", help="With --create: a field of the key, perhaps with ' desc'; repeat.", metavar="FIELD"),
    ] = None,
    index: Annotated[
        list[str] | None,
        Option("--index", help="With --create: an index; may be repeated.", metavar="NAME=FIELD,..."),
    ] = None,
    unique: Annotated[
        list[str] | None,
        Option("--unique", help="With --create: a unique index; may be repeated.", metavar="NAME=FIELD,..."),
    ] = None,
    schema: Annotated[
        str | None,
        Option(
            "--schema",
            help="With --create: a file with the Avro schema.",
            show_default="that in an Avro file or a manifest, or the subject's",
            metavar="FILE",
        ),
    ] = None,
    bad_rows: Annotated[
        str | None, Option("--bad-rows", help="Keep rows that are refused in this file.", metavar="FILE")
    ] = None,
    max_bad: Annotated[
        int | None,
        Option(
            "--max-bad",
            help="End after more bad rows than that.",
            parser=whole("--max-bad"),
            show_default=f"{BAD_MAX}",
            metavar="N",
        ),
    ] = None,
    resume: Annotated[bool, Option("--resume", help="Go on with an import that was ended.")] = False,
    checkpoint: Annotated[
        str | None,
        Option(
            "--checkpoint",
            help="Where to write down how far it is.",
            show_default=f"TARGET{SUFFIX}",
            metavar="FILE",
        ),
    ] = None,
    force: Annotated[
        bool, Option("--force", help="Forget an earlier checkpoint, replace the file of bad rows.")
    ] = False,
    dry_run: Annotated[bool, Option("--dry-run", help="Read and check every row, and change nothing.")] = False,
    quiet: QuietOption = False,
) -> None:
    """Store the rows of files: each row is stored or refused by itself, and those that are bad can be kept aside.

    The exit code is that of the first bad row. An import that was ended goes on with --resume.
    """
    indexes = [parse_index(text, "--index", unique=False) for text in index or []]
    indexes += [parse_index(text, "--unique", unique=True) for text in unique or []]
    request = ImportRequest(
        target,
        tuple(file),
        format,
        cast(PutMode, mode),
        create,
        tuple(key or ()),
        tuple(indexes),
        None if schema is None else read_text(schema),
        None if bad_rows is None else Path(bad_rows),
        BAD_MAX if max_bad is None else max_bad,
        None if checkpoint is None else Path(checkpoint),
        resume,
        force,
        dry_run,
    )
    teller = _Teller(as_json=session.as_json)
    with session.client() as client, showing_progress(quiet=quiet) as report:
        loaded = run_import(client, request, stdin=sys.stdin.buffer, tell=teller, report=report)
    _show_done(session, request, loaded)
    if loaded.first_error is not None:
        raise failures.CheckFailed(failures.exit_code_of(loaded.first_error))


class _Teller:
    """Shows the first bad rows, each on a line of standard error."""

    def __init__(self, *, as_json: bool) -> None:
        self._as_json = as_json
        self._told = 0

    def __call__(self, bad: BadRow) -> None:
        self._told += 1
        if self._told <= SHOWN_MAX:
            failures.report(bad.error, as_json=self._as_json, file=bad.file, row=bad.place)
        elif self._told == SHOWN_MAX + 1 and not self._as_json:
            sys.stderr.write("... and more\n")


def _show_done(session: Session, request: ImportRequest, loaded: Loaded) -> None:
    kept = None if request.bad_rows is None or not loaded.refused else str(request.bad_rows)
    if session.as_json:
        session.show.json(
            {
                "target": request.target,
                "written": 0 if request.dry_run else loaded.written,
                "refused": loaded.refused,
                "bad_rows": kept,
                "timestamp": None if request.dry_run else str(loaded.ts),
            }
        )
        return
    rows = count(loaded.written, "pair" if request.target.startswith(NAMESPACE_PREFIX) else "row")
    refused = f", {loaded.refused:,} refused" if loaded.refused else ""
    where = f"; they are in {kept}, and why in {kept}{REASONS}" if kept else ""
    done = "would be sent to" if request.dry_run else "stored in"
    session.show.line(f"{rows} {done} {request.target}{refused}{where}")
