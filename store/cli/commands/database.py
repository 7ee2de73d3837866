"""``cortado db``: databases."""

from __future__ import annotations

from typing import Annotated

from cortado.store.cli.options import Argument
from cortado.store.cli.session import Session
from cortado.store.cli.tree import command


@command("db create", examples="cortado db create flights")
def create(session: Session, name: Annotated[str, Argument(help="The new database's name.", metavar="NAME")]) -> None:
    """Make a database, which tables are made in."""
    with session.client() as client:
        client.create_database(name)
    if session.as_json:
        session.show.json({"database": name})
    else:
        session.show.line(f"database {name} is made")


@command(
    "db list",
    examples="""
        cortado db list
        cortado db list -o json
    """,
)
def list_databases(session: Session) -> None:
    """List the databases."""
    with session.client() as client:
        names = client.databases()
    if session.as_json:
        for name in names:
            session.show.json({"database": name})
    else:
        session.show.table(("database",), [(name,) for name in names])
