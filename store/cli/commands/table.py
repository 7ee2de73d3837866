"""``cortado table``: tables and their indexes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final, TypeAlias

from cortado.errors import InvalidArgument
from cortado.store.cli.answers import Answer, Rows, Said
from cortado.store.cli.asking import UNCHANGED, DryRunOption, YesOption, confirm
from cortado.store.cli.common_options import AsNameOption, AtOption, NumberOption, TableArgument, as_of
from cortado.store.cli.completing import complete_databases, complete_subjects
from cortado.store.cli.drops import dropped_rows, record_json
from cortado.store.cli.failures import DAMAGE, OK
from cortado.store.cli.numbers import retention, show_retention, show_ttl, ttl, whole
from cortado.store.cli.options import Argument, Option
from cortado.store.cli.render import Renderer, count
from cortado.store.cli.session import Session
from cortado.store.cli.sizes import bytes_text, rows_text, size_json
from cortado.store.cli.tree import command
from cortado.store.keys.keyspace import show_table_id
from cortado.store.keys.names import split_table_name

if TYPE_CHECKING:
    from cortado.store.catalog.descriptors import TableDescriptor
    from cortado.store.client import Index, TableSize
    from cortado.store.keys.types import KeyPart

_RETENTION_HELP: Final = "How long old versions are kept: 90s, 30m, 12h, 7d, all, or default (as the cluster)."
RetentionOption: TypeAlias = Annotated[
    int,
    Option(
        "--retention",
        help=_RETENTION_HELP,
        parser=retention("--retention"),
        show_default="default",
        metavar="TIME",
    ),
]

_TTL_HELP: Final = "How long documents live, unless a write says otherwise: 90s, 30m, 12h, 7d, or none (for ever)."


@command(
    "table create",
    examples="""
        cortado table create flights.airlines --key carrier
        cortado table create flights.flights --key time_hour --key carrier --key flight --index by_tailnum=tailnum
        cortado table create shop.orders --key customer --key 'placed desc' --unique by_number=number
        cortado table create shop.recent --subject shop.orders --key customer --ttl 30d
    """,
)
def create(
    session: Session,
    table: TableArgument,
    key: Annotated[
        list[str],
        Option("--key", help="A field of the primary key, optionally followed by ' desc'; repeat.", metavar="FIELD"),
    ],
    subject: Annotated[
        str | None,
        Option(help="The schema subject.", show_default="TABLE", metavar="SUBJECT", completion=complete_subjects),
    ] = None,
    index: Annotated[
        list[str] | None, Option("--index", help="An index on fields; may be repeated.", metavar="NAME=FIELD,...")
    ] = None,
    unique: Annotated[
        list[str] | None, Option("--unique", help="A unique index; may be repeated.", metavar="NAME=FIELD,...")
    ] = None,
    retention_ms: RetentionOption = 0,
    ttl_ms: Annotated[
        int, Option("--ttl", help=_TTL_HELP, parser=ttl("--ttl"), show_default="none", metavar="TIME")
    ] = 0,
) -> Answer:
    """Create a table whose documents follow a registered schema."""
    indexes = parse_indexes(index or [], unique or [])
    with session.client() as client:
        found = client.create_table(
            table,
            [key_field(each) for each in key],
            subject=subject,
            indexes=indexes,
            retention_ms=retention_ms,
            ttl_ms=ttl_ms,
        )
    return Said(f"created table {found.full_name}", descriptor_json(found))


@command(
    "table alter",
    examples="""
        cortado table alter flights.airlines --retention 7d
        cortado table alter flights.airlines --retention default
        cortado table alter flights.airlines --ttl 30d
        cortado table alter flights.airlines --ttl none
    """,
)
def alter(
    session: Session,
    table: TableArgument,
    retention_ms: Annotated[
        int | None,
        Option("--retention", help=_RETENTION_HELP, parser=retention("--retention"), metavar="TIME"),
    ] = None,
    ttl_ms: Annotated[int | None, Option("--ttl", help=_TTL_HELP, parser=ttl("--ttl"), metavar="TIME")] = None,
) -> Answer:
    """Change a table's retention of old versions, or the time to live of documents that are put from now on."""
    if retention_ms is None and ttl_ms is None:
        raise InvalidArgument("--retention", "or --ttl must be given")
    with session.client() as client:
        found = client.alter_table(table, retention_ms=retention_ms, ttl_ms=ttl_ms)
    kept, lives = show_retention(found.retention_ms), show_ttl(found.ttl_ms)
    return Said(f"old versions of {table} are kept: {kept}; documents live: {lives}", descriptor_json(found))


@command(
    "table list",
    examples="""
        cortado table list
        cortado table list flights -o json
        cortado table list --dropped
    """,
)
def list_tables(
    session: Session,
    database: Annotated[
        str | None, Argument(help="Only this database's tables.", metavar="DATABASE", completion=complete_databases)
    ] = None,
    dropped: Annotated[bool, Option("--dropped", help="List drops whose data is not cleared yet, instead.")] = False,
    at: AtOption = None,
) -> Answer:
    """List the tables, with their rows and bytes as of now.

    ~ stands before an estimate. Bytes are those of rows and indexes, with all stored versions.
    """
    with session.client() as client:
        if dropped:
            if at is not None:
                raise InvalidArgument("--at", "must not be given together with --dropped")
            chosen = [each for each in client.dropped() if each.kind != "namespace"]
            return dropped_rows([each for each in chosen if database in (None, each.name.partition(".")[0])])
        found = as_of(client, at).tables(database)
        sizes = {each.full_name: each for each in client.admin.sizes.tables(database)} if at is None else {}
    columns = ("table", "key", "indexes", "subject", "rows", "size")
    rows, records = [], []
    for each in found:
        size = sizes.get(each.full_name)
        of_rows = None if size is None else size.rows
        told = (parts_text(each.key), len(each.indexes), each.subject, rows_text(of_rows), bytes_text(size))
        rows.append((each.full_name, *told))
        records.append({**descriptor_json(each), "size": size_json(size)})
    return Rows(columns, rows, records)


@command(
    "table describe",
    examples="""
        cortado table describe flights.flights
        cortado table describe flights.flights -o json
    """,
)
def describe(session: Session, table: TableArgument, at: AtOption = None) -> Answer:
    """Show a table's key, its indexes and its subject, and their stored size.

    ~ stands before an estimate. Bytes include all stored versions.
    """
    with session.client() as client:
        found = as_of(client, at).describe(table)
        size = client.admin.sizes.table(table) if at is None else None
    return _Described(found, size)


@command(
    "table truncate",
    examples="""
        cortado table truncate flights.airlines_copy --dry-run
        cortado table truncate flights.airlines_copy --yes
    """,
)
def truncate(session: Session, table: TableArgument, dry_run: DryRunOption = False, yes: YesOption = False) -> Answer:
    """Empty a table at once, however large it is.

    The old rows can be undropped under another name until their grace is over.
    """
    with session.client() as client:
        found = client.describe(table)
        if dry_run:
            return Said(f"would truncate {table}{_grace(found)}", descriptor_json(found), note=UNCHANGED)
        confirm(f"Truncate table {table}{_grace(found)}?", yes=yes)
        record = client.truncate_table(table)
    return Said(f"truncated {table}: number {record.number}", record_json(record))


@command(
    "table drop",
    examples="""
        cortado table drop flights.airlines_copy --dry-run
        cortado table drop flights.airlines_copy --yes
    """,
)
def drop(session: Session, table: TableArgument, dry_run: DryRunOption = False, yes: YesOption = False) -> Answer:
    """Drop a table.

    It can be undropped until its grace is over, which is as long as its old versions are kept. Reads at an earlier time
    find it until then.
    """
    with session.client() as client:
        found = client.describe(table)
        if dry_run:
            return Said(f"would drop {table}{_grace(found)}", descriptor_json(found), note=UNCHANGED)
        confirm(f"Drop table {table}{_grace(found)}?", yes=yes)
        record = client.drop_table(table)
    return Said(f"dropped {table}: number {record.number}", record_json(record))


@command(
    "table undrop",
    examples="""
        cortado table undrop flights.airlines_copy
        cortado table undrop flights.airlines_copy --as airlines_before
    """,
)
def undrop(session: Session, table: TableArgument, as_name: AsNameOption = None, number: NumberOption = None) -> Answer:
    """Bring back a dropped table with its rows, its indexes and its history.

    A truncated table comes back under another name, which --as gives.
    """
    with session.client() as client:
        found = client.undrop_table(table, as_name=as_name, number=number)
    return Said(f"undropped {found.full_name}", descriptor_json(found))


@command(
    "table rename",
    examples="""
        cortado table rename flights.airlines_copy airlines_of_2013
        cortado table rename flights.airlines_of_2013 airlines_copy
        cortado table rename flights.airlines_new airlines_copy --replace --yes
    """,
)
def rename(
    session: Session,
    table: TableArgument,
    new_name: Annotated[str, Argument(help="The new name, in the same database.", metavar="NEW_NAME")],
    replace: Annotated[bool, Option("--replace", help="Drop the table that has the new name, in one step.")] = False,
    yes: YesOption = False,
) -> Answer:
    """Give a table another name in its database.

    With --replace the name always means one of the two tables. The replaced table can be undropped under another name
    until its grace is over.
    """
    with session.client() as client:
        replaced = None
        if replace:
            database, _ = split_table_name(table)
            replaced = client.describe(f"{database}.{new_name}")
            confirm(f"Drop table {replaced.full_name}{_grace(replaced)} for it?", yes=yes)
        found = client.rename_table(table, new_name, replaces=replaced)
    return Said(f"renamed {table} to {found.full_name}", descriptor_json(found))


@command(
    "table verify-indexes",
    examples="""
        cortado table verify-indexes flights.flights
        cortado table verify-indexes flights.flights --at 2025-11-20T13:00:00Z -o json
        cortado table verify-indexes flights.flights --repair
    """,
)
def verify_indexes(
    session: Session,
    table: TableArgument,
    at: AtOption = None,
    repair: Annotated[
        bool, Option("--repair", help="Put missing entries and delete stray ones; rows stay as they are.")
    ] = False,
) -> Answer:
    """Verify that every index agrees exactly with the rows. Exit code 8 if one does not, even if it is repaired.

    Problems that a repair cannot solve, such as two documents with the same values of a unique index, are counted as
    left.
    """
    with session.client() as client:
        found = client.verify_indexes(table, at=at, repair=repair)
    problems = [
        {"index": each.index, "kind": each.kind, "key": each.key, "message": each.message} for each in found.problems
    ]
    checked = f"{count(found.rows_checked, 'row')} and {count(found.entries_checked, 'index entry', 'index entries')}"
    verdict = count(len(problems), "problem") if problems else "no problems"
    if repair:
        verdict += f", {count(found.repaired, 'entry', 'entries')} repaired, {found.left:,} left"
    record = {
        "table": table,
        "rows": found.rows_checked,
        "entries": found.entries_checked,
        "timestamp": str(found.ts),
        "problems": problems,
        "repaired": found.repaired,
        "left": found.left,
    }
    return Rows(
        ("index", "kind", "key", "problem"),
        [list(each.values()) for each in problems],
        [record],
        head=f"{table}: {checked} checked at {found.ts}: {verdict}",
        exit_code=DAMAGE if problems else OK,
    )


@command(
    "table split",
    examples="""
        cortado table split flights.flights 4
        cortado table split flights.flights 4 --start 2013-06-01T00:00:00Z -o json
    """,
)
def split(
    session: Session,
    table: TableArgument,
    parts: Annotated[int, Argument(help="The number of ranges.", parser=whole("PARTS", 1), metavar="PARTS")],
    lower: Annotated[
        str | None, Option("--start", help="Lower bound: a part, or a JSON array of parts.", metavar="KEY")
    ] = None,
    upper: Annotated[str | None, Option("--end", help="Upper bound, exclusive.", metavar="KEY")] = None,
    at: AtOption = None,
) -> Answer:
    """Split a table into N key ranges of about equal size, for parallel readers."""
    from cortado.store.transfer.key_text import key_to_json, parse_bound

    with session.client() as client:
        handle = as_of(client, at).table(table)
        declared = handle.descriptor.key
        bounds = parse_bound(lower, declared, "--start"), parse_bound(upper, declared, "--end")
        ts, ranges = handle.split(parts, *bounds)
    found = [(key_to_json(each.start), key_to_json(each.end), each.rows) for each in ranges]
    return Rows(
        ("start", "end (exclusive)", "rows, about"),
        [
            ("the beginning" if start is None else start, "the end" if end is None else end, about)
            for start, end, about in found
        ],
        [{"start": start, "end": end, "rows": about, "timestamp": str(ts)} for start, end, about in found],
        head=f"{table} at {ts}",
    )


def parse_indexes(plain: list[str], unique: list[str]) -> list[Index]:
    """Return the indexes of ``--index`` and ``--unique``. Raises InvalidArgument."""
    found = [parse_index(text, "--index", unique=False) for text in plain]
    return found + [parse_index(text, "--unique", unique=True) for text in unique]


def parse_index(text: str, option: str, *, unique: bool) -> Index:
    """``name=field,field desc``. Raises InvalidArgument."""
    from cortado.store.client import Index

    name, equals, fields = text.partition("=")
    parts = [key_field(field) for field in fields.split(",")]
    if not equals or not name or not all(parts):
        raise InvalidArgument(option, "must look like name=field,field", repr(text))
    return Index(name, parts, unique)


def key_field(text: str) -> str:
    """Return a field, perhaps with ``asc`` or ``desc`` behind it in any case, as the API has it."""
    path, blank, order = text.strip().rpartition(" ")
    if blank and order.lower() in ("asc", "desc"):
        return f"{path.strip()} {order.lower()}"
    return text.strip()


class _Described:
    """A table's key and subject, and its indexes below."""

    exit_code = OK

    def __init__(self, found: TableDescriptor, size: TableSize | None) -> None:
        self._found = found
        self._size = size

    def as_json(self) -> list[Any]:
        return [{**descriptor_json(self._found), "size": size_json(self._size)}]

    def as_table(self, show: Renderer) -> None:
        found, size = self._found, self._size
        rows_size = None if size is None else size.rows
        show.record(
            [
                ("table", found.full_name),
                ("id", f"{found.table_id} ({show_table_id(found.table_id)})"),
                ("version", found.version),
                ("subject", found.subject),
                ("key", parts_text(found.key)),
                ("old versions kept", show_retention(found.retention_ms)),
                ("documents live", show_ttl(found.ttl_ms)),
                ("rows", rows_text(rows_size)),
                ("size", f"{bytes_text(size)}, of which rows {bytes_text(rows_size)}"),
            ]
        )
        if found.indexes:
            rows = []
            for each in found.indexes:
                entries = None if size is None else size.indexes.get(each.name)
                told = (each.state, rows_text(entries), bytes_text(entries))
                rows.append((each.name, parts_text(each.parts), "yes" if each.unique else "no", *told))
            show.table(("index", "fields", "unique", "state", "entries", "size"), rows)


def _grace(found: TableDescriptor) -> str:
    return f" ({show_table_id(found.table_id)}, old versions kept: {show_retention(found.retention_ms)})"


def descriptor_json(found: TableDescriptor) -> dict[str, Any]:
    """Return a table's description as JSON."""
    return {
        "table": found.full_name,
        "table_id": found.table_id,
        "version": found.version,
        "subject": found.subject,
        "retention_ms": found.retention_ms,
        "ttl_ms": found.ttl_ms,
        "key": [part_json(part) for part in found.key],
        "indexes": [
            {
                "name": each.name,
                "unique": each.unique,
                "parts": [part_json(part) for part in each.parts],
                "state": str(each.state),
            }
            for each in found.indexes
        ],
    }


def part_json(part: KeyPart) -> dict[str, Any]:
    """Return a part of a key or an index as JSON."""
    return {"path": part.path, "type": str(part.type), "descending": part.descending}


def parts_text(parts: tuple[KeyPart, ...]) -> str:
    """Return the parts of a key or an index for people."""
    return ", ".join(f"{part.path} {part.type}{' desc' if part.descending else ''}" for part in parts)
