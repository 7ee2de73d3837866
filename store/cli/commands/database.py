"""``cortado db``: databases."""

from __future__ import annotations

from typing import Annotated

from cortado.store.cli.answers import Answer, Rows, Said
from cortado.store.cli.options import Argument
from cortado.store.cli.session import Session
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
    """List the databases."""
    with session.client() as client:
        names = client.databases()
    return Rows(("database",), [(name,) for name in names], [{"database": name} for name in names])
