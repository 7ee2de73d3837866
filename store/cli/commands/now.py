"""``cortado now``: a timestamp to read at."""

from __future__ import annotations

from cortado.store.cli.answers import Answer, Said
from cortado.store.cli.session import Session
from cortado.store.cli.tree import command


@command(
    "now",
    examples="""
        cortado now
        before=$(cortado now); cortado scan flights.flights --at "$before"
    """,
)
def now(session: Session) -> Answer:
    """Print a read timestamp: everything committed so far is at or below it.

    Give it to --at to read one state again and again; later writes are above it.
    """
    with session.client() as client:
        found = str(client.now())
    return Said(found, {"now": found})
