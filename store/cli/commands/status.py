"""``cortado status``: a node's own status, and that of the other nodes of its cluster."""

from __future__ import annotations

from cortado.store.cli.answers import Answer
from cortado.store.cli.session import Session
from cortado.store.cli.tree import command


@command(
    "status",
    examples="""
        cortado status
        cortado status -e 127.0.0.1:7621 -o json
    """,
)
def status(session: Session) -> Answer:
    """Show the state of a server, its disk, clock and queues, and every member of its cluster."""
    from cortado.store.cli.status_answer import StatusAnswer, ask_each

    with session.client() as client:
        found = client.status()
        members = client.admin.members.list()
        return StatusAnswer(found, members, ask_each(client, members, found, session.timeout_s))
