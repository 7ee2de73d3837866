"""``cortado completion``: the script that lets a shell complete commands, options, tables and databases.

A shell calls ``cortado`` itself for its suggestions, with the typed part of the line in the environment. The scripts
are click's, and do no more than that: they need not change with the commands.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Final

import click
from click.shell_completion import BashComplete, FishComplete, ZshComplete

from cortado.store.cli.answers import Answer, Said
from cortado.store.cli.options import Argument
from cortado.store.cli.session import Session
from cortado.store.cli.tree import command


class Shell(StrEnum):
    """Which shells there is a script for."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


_KINDS: Final = {Shell.BASH: BashComplete, Shell.ZSH: ZshComplete, Shell.FISH: FishComplete}


@command(
    "completion",
    remote=False,
    examples="""
        cortado completion bash > ~/.local/share/bash-completion/completions/cortado
        cortado completion zsh > ~/.zfunc/_cortado
        cortado completion fish > ~/.config/fish/completions/cortado.fish
    """,
)
def completion(_: Session, shell: Annotated[Shell, Argument(help="bash, zsh or fish.", metavar="SHELL")]) -> Answer:
    """Print the script that completes commands, options and names of tables in a shell.

    Names come from the server that the line, the environment or the context names. If none answers at once, none are
    offered.
    """
    kind = _KINDS[shell]
    made = kind(click.Group(), {}, "cortado", "_CORTADO_COMPLETE")
    # Not source(), which runs bash to ask for its version.
    script = (made.source_template % made.source_vars()).strip()
    return Said(script, {"shell": shell.value, "script": script})
