"""Before something is destroyed: what would be, and whether it shall.

Every command that destroys has ``--dry-run``, which says what would happen and changes nothing, and what cannot be
brought back asks first. ``--yes`` answers for a script. Where nobody can be asked the command is refused, and not
taken for a no that somebody gave.
"""

from __future__ import annotations

import sys
from typing import Annotated, TypeAlias

import click

from cortado.errors import InvalidArgument
from cortado.store.cli.options import Option
from cortado.store.cli.session import Session
from cortado.store.cli.terminal import harmless

DryRunOption: TypeAlias = Annotated[bool, Option("--dry-run", help="Say what would happen, and change nothing.")]
YesOption: TypeAlias = Annotated[bool, Option("--yes", "-y", help="Do not ask.")]


def confirm(question: str, *, yes: bool) -> None:
    """Return where the answer is yes. Raises Abort for a no, InvalidArgument where there is no answer.

    Question and answer stay off standard output, which may be somebody's JSON.
    """
    while not yes:
        sys.stderr.write(f"{harmless(question)} [y/N]: ")
        sys.stderr.flush()
        line = sys.stdin.readline()
        if not line:
            sys.stderr.write("\n")
            raise InvalidArgument("--yes", "must be given where nobody can be asked")
        answer = line.strip().lower()
        if answer in ("", "n", "no"):
            raise click.Abort
        yes = answer in ("y", "yes")


def show_dry_delete(session: Session, etag: str | None, if_match: str | None) -> None:
    """What a delete of one thing would do: ``etag`` is that of what is there, None where nothing is."""
    would = etag is not None and if_match in (None, etag)
    if session.as_json:
        session.show.json({"would_delete": would, "etag": etag})
        return
    if etag is None:
        session.show.line("would delete nothing: it does not exist")
    elif would:
        session.show.line(f"would delete what has the etag {etag}")
    else:
        session.show.line(f"would be refused: its etag is {etag}, not {if_match}")
    session.show.note("nothing was changed")
