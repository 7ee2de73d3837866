"""``cortado completion``: the script that lets a shell complete commands, options, tables and databases.

A shell calls ``cortado`` itself for its suggestions, with what is typed so far in the environment; the scripts do no
more than that, so they need not change with the commands.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Final

import typer

from cortado.store.cli.session import Session, command

_BASH: Final = """\
_cortado_completion() {
    local IFS=$'\\n'
    COMPREPLY=($(env COMP_WORDS="${COMP_WORDS[*]}" COMP_CWORD="$COMP_CWORD" _CORTADO_COMPLETE=complete_bash cortado))
}
complete -o default -F _cortado_completion cortado
"""
_ZSH: Final = """\
#compdef cortado
_cortado_completion() {
    eval "$(env _TYPER_COMPLETE_ARGS="${words[1,$CURRENT]}" _CORTADO_COMPLETE=complete_zsh cortado)"
}
compdef _cortado_completion cortado
"""
_FISH: Final = """\
function _cortado_completion
    env _CORTADO_COMPLETE=complete_fish _TYPER_COMPLETE_FISH_ACTION=$argv[1] \\
        _TYPER_COMPLETE_ARGS=(commandline -cp) cortado
end
complete --command cortado --no-files --arguments "(_cortado_completion get-args)" \\
    --condition "_cortado_completion is-args"
"""


class Shell(StrEnum):
    """Which shells there is a script for."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


_SCRIPTS: Final = {Shell.BASH: _BASH, Shell.ZSH: _ZSH, Shell.FISH: _FISH}


def add_to(app: typer.Typer) -> None:
    @command(
        app,
        "completion",
        remote=False,
        examples="""
            cortado completion bash > ~/.local/share/bash-completion/completions/cortado
            cortado completion zsh > ~/.zfunc/_cortado
            cortado completion fish > ~/.config/fish/completions/cortado.fish
        """,
    )
    def completion(
        session: Session, shell: Annotated[Shell, typer.Argument(help="bash, zsh or fish.", metavar="SHELL")]
    ) -> None:
        """Print the script that completes commands, options and names of tables in a shell.

        Names come from the server at --endpoint, or what the environment and the context say; where none answers at
        once, none are offered.
        """
        if session.as_json:
            session.show.json({"shell": shell.value, "script": _SCRIPTS[shell]})
        else:
            session.show.line(_SCRIPTS[shell].rstrip())
