"""``cortado db``: databases."""

from __future__ import annotations

from typing import Annotated

from cortado.errors import InvalidArgument
from cortado.store.cli.answers import Answer, Rows, Said
from cortado.store.cli.asking import UNCHANGED, DryRunOption, YesOption, confirm
from cortado.store.cli.common_options import AsNameOption, NumberOption
from cortado.store.cli.completing import complete_databases
from cortado.store.cli.options import Argument, Option
from cortado.store.cli.render import count
from cortado.store.cli.session import Session
from cortado.store.cli.sizes import bytes_text, database_json, rows_text
from cortado.store.cli.tree import command


@command("db create", examples="cortado db create flights")
def create(session: Session, name: Annotated[str, Argument(help="The new database's name.", metavar="NAME")]) -> Answer:
    """Create a database."""
    with session.client() as client:
        client.create_database(name)
    return Said(f"created database {name}", {"database": name})


@command(
    "db list",
    examples="""
        cortado db list
        cortado db list -o json
    """,
)
def list_databases(session: Session) -> Answer:
    """List the databases, with their tables, rows and bytes.

    ~ stands before an estimate. Bytes are those of rows and indexes with all versions, and of dropped tables that are
    not cleared yet. Only readers of the whole database see them.
    """
    with session.client() as client:
        names = client.databases()
        sizes = {each.name: each for each in client.admin.sizes.databases()}
    rows: list[tuple[object, ...]] = []
    for name in names:
        size = sizes.get(name)
        of_rows = None if size is None else size.rows
        rows.append((name, "-" if size is None else size.tables, rows_text(of_rows), bytes_text(of_rows)))
    records = [{"database": name, "size": database_json(sizes.get(name))} for name in names]
    return Rows(("database", "tables", "rows", "size"), rows, records)


@command(
    "db drop",
    examples="""
        cortado db drop shop --dry-run
        cortado db drop shop --cascade --yes
    """,
)
def drop(
    session: Session,
    name: Annotated[str, Argument(help="The database.", metavar="NAME", completion=complete_databases)],
    cascade: Annotated[bool, Option("--cascade", help="Drop its tables, too, at most 1,000.")] = False,
    dry_run: DryRunOption = False,
    yes: YesOption = False,
) -> Answer:
    """Drop a database.

    It can be undropped with the tables that were dropped with it, each until its own grace is over.
    """
    with session.client() as client:
        tables = [each.full_name for each in client.tables(name)]
        if tables and not cascade:
            raise InvalidArgument("--cascade", f"must be given: {name} has {count(len(tables), 'table')}", tables[0])
        what = f"database {name} with {count(len(tables), 'table')}"
        if dry_run:
            return Said(f"would drop {what}", {"database": name, "tables": tables}, note=UNCHANGED)
        confirm(f"Drop {what}?", yes=yes)
        done = client.drop_database(name, cascade=cascade)
    said = f"dropped database {name} with {count(len(done.tables), 'table')}: number {done.record.number}"
    return Said(said, {"database": name, "number": done.record.number, "tables": list(done.tables)})


@command(
    "db undrop",
    examples="cortado db undrop shop",
)
def undrop(
    session: Session,
    name: Annotated[str, Argument(help="The name that it had.", metavar="NAME")],
    as_name: AsNameOption = None,
    number: NumberOption = None,
) -> Answer:
    """Bring back a dropped database, and the tables that were dropped with it."""
    with session.client() as client:
        done = client.undrop_database(name, as_name=as_name, number=number)
    said = f"undropped database {done.database} with {count(len(done.tables), 'table')}"
    if done.cleared:
        said += f", without {', '.join(done.cleared)}: the grace is over"
    return Said(said, {"database": done.database, "tables": list(done.tables), "cleared": list(done.cleared)})
