"""``cortado table``: tables and their indexes."""

from __future__ import annotations

from typing import Annotated, Any, Final, TypeAlias

from cortado.errors import InvalidArgument
from cortado.store.catalog.descriptors import TableDescriptor
from cortado.store.cli.completing import complete_databases, complete_tables
from cortado.store.cli.failures import DAMAGE, CheckFailed
from cortado.store.cli.numbers import whole
from cortado.store.cli.options import Argument, Option
from cortado.store.cli.parse import key_to_json, parse_bound
from cortado.store.cli.render import count
from cortado.store.cli.session import Session
from cortado.store.cli.tree import command
from cortado.store.client import Index
from cortado.store.keys.types import KeyPart

TableArgument: TypeAlias = Annotated[
    str,
    Argument(help="The table, as database.table.", metavar="TABLE", completion=complete_tables),
]
AtOption: TypeAlias = Annotated[
    str | None,
    Option("--at", help="Read as of a timestamp (0.1763643600000.2) or a time (2025-11-20T13:00:00Z).", metavar="TIME"),
]

SHOWN_MAX: Final = 100
"""How many rows a scan shows as a table, where no --limit was given."""

LimitOption: TypeAlias = Annotated[
    int | None,
    Option(
        "--limit",
        help="At most so many.",
        show_default=f"{SHOWN_MAX} as a table, all with -o json",
        parser=whole("--limit"),
        metavar="N",
    ),
]
ReverseOption: TypeAlias = Annotated[bool, Option("--reverse", help="In descending order of the key.")]


@command(
    "table create",
    examples="""
        cortado table create flights.airlines --key carrier
        cortado table create flights.flights --key time_hour --key carrier --key flight --index by_tailnum=tailnum
        cortado table create shop.orders --key customer --key 'placed desc' --unique by_number=number
    """,
)
def create(
    session: Session,
    table: TableArgument,
    key: Annotated[
        list[str],
        Option("--key", help="A field of the primary key, perhaps with ' desc'; repeat.", metavar="FIELD"),
    ],
    subject: Annotated[str | None, Option(help="The schema subject.", show_default="TABLE", metavar="SUBJECT")] = None,
    index: Annotated[
        list[str] | None,
        Option("--index", help="An index on fields; may be repeated.", metavar="NAME=FIELD,..."),
    ] = None,
    unique: Annotated[
        list[str] | None,
        Option("--unique", help="A unique index; may be repeated.", metavar="NAME=FIELD,..."),
    ] = None,
) -> None:
    """Make a table whose documents follow a registered schema."""
    indexes = [parse_index(text, "--index", unique=False) for text in index or []]
    indexes += [parse_index(text, "--unique", unique=True) for text in unique or []]
    with session.client() as client:
        found = client.create_table(table, key, subject=subject, indexes=indexes)
    if session.as_json:
        session.show.json(descriptor_json(found))
    else:
        session.show.line(f"table {found.full_name} is made")


@command(
    "table list",
    examples="""
        cortado table list
        cortado table list flights -o json
    """,
)
def list_tables(
    session: Session,
    database: Annotated[
        str | None,
        Argument(help="Only this database's tables.", metavar="DATABASE", completion=complete_databases),
    ] = None,
) -> None:
    """List the tables."""
    with session.client() as client:
        found = client.tables(database)
    if session.as_json:
        for each in found:
            session.show.json(descriptor_json(each))
        return
    rows = [(each.full_name, _parts(each.key), len(each.indexes), each.subject) for each in found]
    session.show.table(("table", "key", "indexes", "subject"), rows)


@command(
    "table describe",
    examples="""
        cortado table describe flights.flights
        cortado table describe flights.flights -o json
    """,
)
def describe(session: Session, table: TableArgument) -> None:
    """Show a table's key, its indexes and its subject."""
    with session.client() as client:
        found = client.describe(table)
    if session.as_json:
        session.show.json(descriptor_json(found))
        return
    session.show.record(
        [
            ("table", found.full_name),
            ("id", found.table_id),
            ("version", found.version),
            ("subject", found.subject),
            ("key", _parts(found.key)),
        ]
    )
    if found.indexes:
        rows = [(each.name, _parts(each.parts), "yes" if each.unique else "no") for each in found.indexes]
        session.show.table(("index", "fields", "unique"), rows)


@command(
    "table check",
    examples="""
        cortado table check flights.flights
        cortado table check flights.flights --at 2025-11-20T13:00:00Z -o json
    """,
)
def check(session: Session, table: TableArgument, at: AtOption = None) -> None:
    """Prove that every index holds what the rows say, and nothing else. Exit code 8 where it does not."""
    with session.client() as client:
        found = client.check_table(table, at=at)
    problems = [
        {"index": each.index, "kind": each.kind, "key": each.key, "message": each.message} for each in found.problems
    ]
    if session.as_json:
        session.show.json(
            {
                "table": table,
                "rows": found.rows_checked,
                "entries": found.entries_checked,
                "timestamp": str(found.ts),
                "problems": problems,
            }
        )
    else:
        checked = (
            f"{count(found.rows_checked, 'row')} and {count(found.entries_checked, 'index entry', 'index entries')}"
        )
        verdict = "no problems" if not problems else count(len(problems), "problem")
        session.show.line(f"{table}: {checked} checked at {found.ts}: {verdict}")
        if problems:
            session.show.table(("index", "kind", "key", "problem"), [list(each.values()) for each in problems])
    if problems:
        raise CheckFailed(DAMAGE)


@command(
    "table split",
    examples="""
        cortado table split flights.flights 4
        cortado table split flights.flights 4 --from 2013-06-01T00:00:00Z -o json
    """,
)
def split(
    session: Session,
    table: TableArgument,
    parts: Annotated[int, Argument(help="How many ranges are wanted.", parser=whole("PARTS", 1), metavar="PARTS")],
    lower: Annotated[
        str | None, Option("--from", help="Where to begin: a part or a JSON array.", metavar="KEY")
    ] = None,
    upper: Annotated[str | None, Option("--to", help="Where to end, exclusive.", metavar="KEY")] = None,
    at: AtOption = None,
) -> None:
    """Cut a table into key ranges with about equal amounts of data, for readers side by side."""
    with session.client() as client:
        handle = client.table(table)
        declared = handle.descriptor.key
        ts, ranges = handle.split(
            parts, parse_bound(lower, declared, "--from"), parse_bound(upper, declared, "--to"), at=at
        )
    rows = [(key_to_json(each.lower), key_to_json(each.upper), each.rows) for each in ranges]
    if session.as_json:
        for start, end, about in rows:
            session.show.json({"from": start, "to": end, "rows": about, "timestamp": str(ts)})
        return
    session.show.table(
        ("from", "to (exclusive)", "rows, about"),
        [
            ("the beginning" if start is None else start, "the end" if end is None else end, about)
            for start, end, about in rows
        ],
        title=f"{table} at {ts}",
    )


def parse_index(text: str, option: str, *, unique: bool) -> Index:
    """``name=field,field desc``. Raises InvalidArgument."""
    name, equals, fields = text.partition("=")
    parts = [field.strip() for field in fields.split(",")]
    if not equals or not name or not all(parts):
        raise InvalidArgument(option, "must look like name=field,field", repr(text))
    return Index(name, parts, unique)


def descriptor_json(found: TableDescriptor) -> dict[str, Any]:
    """A table's description as JSON."""
    return {
        "table": found.full_name,
        "table_id": found.table_id,
        "version": found.version,
        "subject": found.subject,
        "key": [_part_json(part) for part in found.key],
        "indexes": [
            {"name": each.name, "unique": each.unique, "parts": [_part_json(part) for part in each.parts]}
            for each in found.indexes
        ],
    }


def _part_json(part: KeyPart) -> dict[str, Any]:
    return {"path": part.path, "type": str(part.type), "descending": part.descending}


def _parts(parts: tuple[KeyPart, ...]) -> str:
    return ", ".join(f"{part.path} {part.type}{' desc' if part.descending else ''}" for part in parts)
