"""Before something is destroyed: what would be, and whether it shall.

Every command that destroys has ``--dry-run``, which says what would happen and changes nothing, and what cannot be
brought back asks first. ``--yes`` answers for a script. Where nobody can be asked the command is refused, and not
taken for a no that somebody gave.
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
    """Return where the answer is yes. Raises Abort for a no, InvalidArgument where there is no answer.

    Question and answer stay off standard output, which may be somebody's JSON.
    """
    while not yes:
        answer = _answer(f"{harmless(question)} [y/N]: ")
        if answer in ("", "n", "no"):
            raise click.Abort
        yes = answer in ("y", "yes")


def _answer(prompt: str) -> str:
    """What is typed behind the prompt. Where a pipe answers, the prompt waits until it has: it may have nothing."""
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


def dry_delete(etag: str | None, if_match: str | None) -> Said:
    """What a delete of one thing would do: ``etag`` is that of what is there, None where nothing is."""
    would = etag is not None and if_match in (None, etag)
    if etag is None:
        text = "would delete nothing: it does not exist"
    elif would:
        text = f"would delete what has the etag {etag}"
    else:
        text = f"would be refused: its etag is {etag}, not {if_match}"
    return Said(text, {"would_delete": would, "etag": etag}, note=UNCHANGED)
