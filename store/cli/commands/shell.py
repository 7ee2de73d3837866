"""``cortado shell``: commands at a prompt or from standard input, over one connection."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Annotated

import click

from cortado.errors import InvalidArgument
from cortado.store.cli.options import Option
from cortado.store.cli.session import Outer, Session
from cortado.store.cli.tree import command

if TYPE_CHECKING:
    from cortado.store.cli.line_editor import LineEditor


@command(
    "shell",
    in_shell=False,
    examples="""
        cortado shell
        cortado shell -e 127.0.0.1:7621 -o json
        cortado shell < commands.txt
        cortado shell --keep-going < commands.txt
    """,
)
def shell(
    session: Session,
    keep_going: Annotated[
        bool, Option("--keep-going", help="With standard input: continue after a line that fails.")
    ] = False,
) -> None:
    """Run commands at a prompt, or from standard input, in one process and over one connection.

    A line is a command of the command line, with the same options; cortado before it may be left out. Global options of
    the shell hold for every line that has none of its own. At the prompt TAB completes, help explains, and exit or
    Ctrl-D leaves; Ctrl-C ends the running command alone.

    Lines of standard input are run up to the first that fails, and the shell ends with its exit code. No questions are
    asked there: commands that ask need --yes.
    """
    import time

    from cortado.store.cli.app import run
    from cortado.store.cli.shared import Shared
    from cortado.store.cli.shell import Lines, converse, run_batch

    if sys.stdin is None:
        raise InvalidArgument("standard input", "is closed: there is nothing to run")
    shared = Shared(time.monotonic)
    outer = Outer(session.given, shared)
    lines = Lines(run, outer, as_json=session.as_json)
    try:
        if sys.stdin.isatty() and sys.stdout.isatty():
            code = converse(lines, _editor(outer), session)
        else:
            code = run_batch(lines, sys.stdin.buffer, keep_going=keep_going)
    finally:
        shared.close()
    raise click.exceptions.Exit(code)


def _editor(outer: Outer) -> LineEditor:
    from cortado.store.cli.directories import user_directory
    from cortado.store.cli.history import History
    from cortado.store.cli.line_editor import LineEditor

    directory = user_directory(os.environ, "XDG_STATE_HOME", ".local/state")
    return LineEditor(outer, None if directory is None else History(directory / "history"))
