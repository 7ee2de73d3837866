"""``cortado options``: the global options, which are left out of the commands' own help."""

from __future__ import annotations

from cortado.store.cli.answers import Answer, Rows
from cortado.store.cli.session import Session, global_options
from cortado.store.cli.tree import command


@command(
    "options",
    remote=False,
    examples="""
        cortado options
        cortado options -o json
    """,
)
def options(_: Session) -> Answer:
    """Explain the global options, which all commands take that call a server.

    They may stand before the command or after it; after it wins. docs/exit-codes.md explains the exit codes.
    """
    records = [{"option": max(each.opts, key=len), "meaning": each.help or ""} for each in global_options()]
    return Rows(("option", "meaning"), [tuple(each.values()) for each in records], records)
