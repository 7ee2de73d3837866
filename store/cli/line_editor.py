"""The shell's prompt on a terminal: readline edits the line, recalls earlier lines, and completes at TAB.

Completions are click's, as bash, zsh and fish get them, without a process for it.
"""

from __future__ import annotations

import glob
import os
import shlex
from types import ModuleType
from typing import Final

from click.shell_completion import ShellComplete, split_arg_string

from cortado.errors import InvalidArgument
from cortado.store.cli.app import build
from cortado.store.cli.history import LINES_MAX, History
from cortado.store.cli.render import Renderer
from cortado.store.cli.session import Outer
from cortado.store.cli.shell import EXIT, HELP

_WORDS_END_AT: Final = " \t\n"


class LineEditor:
    """Reads lines from the terminal; without ``history`` none is remembered."""

    def __init__(self, outer: Outer, history: History | None) -> None:
        self._outer = outer
        self._history = history
        self._offered: list[str] = []
        self._readline = _readline()
        remembered = self._remembered()
        if self._readline is not None:
            self._set_up(self._readline, remembered)

    def read(self, prompt: str) -> str:
        """Return one line, without its end. Raises EOFError, KeyboardInterrupt."""
        line = input(prompt)
        if self._history is not None:
            try:
                if self._history.add(line) and self._readline is not None:
                    self._readline.add_history(line)
            except OSError as error:
                self._without_history(error.strerror or str(error))
        return line

    def _remembered(self) -> list[str]:
        if self._history is None:
            return []
        try:
            return self._history.load()
        except OSError as error:
            self._without_history(error.strerror or str(error))
        except InvalidArgument as error:
            self._without_history(error.message())
        return []

    def _without_history(self, problem: str) -> None:
        self._history = None
        Renderer().note(f"the history of lines is not kept: {problem}")

    def _set_up(self, readline: ModuleType, remembered: list[str]) -> None:
        readline.set_auto_history(False)
        readline.clear_history()
        readline.set_history_length(LINES_MAX)
        for line in remembered:
            readline.add_history(line)
        readline.set_completer_delims(_WORDS_END_AT)
        readline.set_completer(self._complete)
        # macOS has libedit under the name readline, with other words for the same.
        is_libedit = "libedit" in (readline.__doc__ or "")
        readline.parse_and_bind("bind ^I rl_complete" if is_libedit else "tab: complete")

    def _complete(self, text: str, state: int) -> str | None:
        """Return the next completion: readline asks for one after the other, from 0 on, until it gets None."""
        if state == 0 and self._readline is not None:
            line = self._readline.get_line_buffer()[: self._readline.get_endidx()]
            self._offered = candidates(line, text, self._outer)
        return self._offered[state] if state < len(self._offered) else None


def _readline() -> ModuleType | None:
    """Return readline; None for an interpreter built without it: lines are read, and no more."""
    try:
        import readline
    except ImportError:
        return None
    return readline


def candidates(line: str, text: str, outer: Outer) -> list[str]:
    """Return the completions of ``text``, with which ``line`` ends, as they are to be typed.

    Nothing is offered within quotes: readline sees a part of such a word, and would replace no more than that.
    """
    try:
        shlex.split(line)
    except ValueError:
        return []
    words = split_arg_string(line)
    if text and words.pop() != text:
        return []
    if words[:1] == ["cortado"]:
        del words[0]
    is_first = not words
    if words[:1] == [HELP]:
        del words[0]
    # In --output=j click completes the value alone.
    option = f"{text.partition('=')[0]}=" if text.startswith("-") and "=" in text else ""
    found = []
    for each in ShellComplete(build(), {"obj": outer}, "cortado", "").get_completions(words, text):
        if each.type in ("file", "dir"):
            found += [f"{option}{name}" for name in _files(text.removeprefix(option))]
        else:
            found.append(f"{option}{shlex.quote(each.value)} ")
    if is_first:
        found += [f"{word} " for word in (EXIT, HELP) if word.startswith(text)]
    return found


def _files(typed: str) -> list[str]:
    names = sorted(glob.glob(f"{glob.escape(typed)}*"))  # noqa: PTH207 - a path would lose a part of the typed text.
    return [f"{shlex.quote(name)}/" if os.path.isdir(name) else f"{shlex.quote(name)} " for name in names]  # noqa: PTH112
