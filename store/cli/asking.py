"""Before something is destroyed: show it, and ask.

Every command that destroys has ``--dry-run``, which shows the effect and changes nothing. A command whose effect cannot
be undone asks first. ``--yes`` answers for a script. If no user can be asked, the command is refused: that is not
taken for a no.
"""

from __future__ import annotations

import sys
from typing import Annotated, Final, TypeAlias

import click

from cortado.errors import InvalidArgument
from cortado.store.cli.answers import Said
from cortado.store.cli.options import Option
from cortado.store.cli.terminal import harmless

UNCHANGED: Final = "nothing was changed"
_NOBODY: Final = "must be given, since there is no terminal to ask on"

DryRunOption: TypeAlias = Annotated[bool, Option("--dry-run", help="Print what would happen, and change nothing.")]
YesOption: TypeAlias = Annotated[bool, Option("--yes", "-y", help="Answer yes to the question.")]


def confirm(question: str, *, yes: bool) -> None:
    """Return if the answer is yes. Raises Abort for a no, InvalidArgument without an answer.

    Question and answer stay off standard output, which may be a script's JSON.
    """
    while not yes:
        answer = _answer(f"{harmless(question)} [y/N]: ")
        if answer in ("", "n", "no"):
            raise click.Abort
        yes = answer in ("y", "yes")


def _answer(prompt: str) -> str:
    """Read the answer behind the prompt. If a pipe answers, show the prompt only after it: the pipe may be empty."""
    is_asked = sys.stdin.isatty()
    if is_asked:
        _write(prompt)
    line = sys.stdin.readline()
    if not line:
        _write("\n" if is_asked else "")
        raise InvalidArgument("--yes", _NOBODY)
    if not is_asked:
        _write(f"{prompt}{harmless(line)}")
    return line.strip().lower()


def _write(text: str) -> None:
    sys.stderr.write(text)
    sys.stderr.flush()


def dry_delete(etag: str | None, if_etag: str | None) -> Said:
    """Return the effect that a delete of one thing would have. ``etag`` is the thing's, None if it does not exist."""
    would = etag is not None and if_etag in (None, etag)
    if etag is None:
        text = "would delete nothing: it does not exist"
    elif would:
        text = f"would delete the version with etag {etag}"
    else:
        text = f"would be refused: its etag is {etag}, not {if_etag}"
    return Said(text, {"would_delete": would, "etag": etag}, note=UNCHANGED)
