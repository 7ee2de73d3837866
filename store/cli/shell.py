"""``cortado shell``: the commands of the command line, one after the other in one process, over one connection.

::

    a line ── words ── app.run(words, outer) ── exit code
                            │
                            └── Outer: the shell's own global options, and the client that its commands share

There is no second parser: a line is cut into words as a POSIX shell cuts it. The words are run as the command line
runs its arguments, with the same errors and exit codes. There are no pipes, redirections or jobs: a line that has one
is refused, so that ``>`` never becomes a part of a key. Variables and patterns of files are text.

Two things read lines: a prompt, which goes on behind a failure, and a batch from standard input, which stops there.
"""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Final, Protocol, TypeAlias

from cortado.errors import InvalidArgument
from cortado.store.cli import failures
from cortado.store.cli.render import Renderer
from cortado.store.cli.session import Outer, Session
from cortado.store.cli.terminal import harmless
from cortado.store.settings.sizes import size_text

Run: TypeAlias = Callable[[Sequence[str], Outer], int]

LINE_BYTES_MAX: Final = 16 << 20
"""The longest line of a batch; no server takes a document of that size."""
EXIT: Final = "exit"
HELP: Final = "help"
_QUOTED_OR_OPERATOR: Final = re.compile(r"""\\.|"(?:\\.|[^"\\])*"|'[^']*'|([|&;<>])""", re.S)
# The run has closed standard output: its reader is gone, or it cannot be written.
_OUTPUT_IS_GONE: Final = (failures.BROKEN_PIPE, failures.DISK)


class Editor(Protocol):
    """The source of the user's lines."""

    def read(self, prompt: str) -> str:
        """Raise EOFError for Ctrl-D, KeyboardInterrupt for Ctrl-C."""
        ...


class _Left(Exception):
    """The user said exit."""


def words_of(line: str) -> list[str]:
    """Return the arguments that a line has for the command line; none for an empty one and for a comment.

    ``cortado`` at the beginning is left out, so that an example works as it is. Raises InvalidArgument.
    """
    if line.lstrip().startswith("#"):
        return []
    operator = next(filter(None, _QUOTED_OR_OPERATOR.findall(line)), None)
    if operator is not None:
        problem = "must have no pipe, redirection or job; quote such characters of data"
        raise InvalidArgument("line", problem, operator)
    try:
        words = shlex.split(line)
    except ValueError as error:
        raise InvalidArgument("line", f"cannot be cut into words: {error}") from None
    if words[:1] == ["cortado"]:
        del words[0]
    if words[:1] == [HELP]:
        return [*words[1:], "--help"]
    return words


class Lines:
    """Runs lines, with the options and the client of ``outer``."""

    def __init__(self, run: Run, outer: Outer, *, as_json: bool) -> None:
        self._run = run
        self._outer = outer
        self._as_json = as_json

    def run(self, line: str) -> int:
        """Run one line; return its exit code. Its error has been shown. Raises _Left."""
        try:
            words = words_of(line)
            if words[:1] == [EXIT]:
                if words[1:]:
                    raise InvalidArgument(EXIT, "takes nothing", words[1])
                raise _Left
        except InvalidArgument as error:
            failures.report(error, as_json=self._as_json)
            return failures.exit_code_of(error)
        if not words:
            return failures.OK
        if self._outer.shared is not None:
            self._outer.shared.forget_names()
        return self._run(words, self._outer)


def converse(lines: Lines, editor: Editor, session: Session) -> int:
    """Read and run lines until exit or Ctrl-D. Ctrl-C ends the command, or drops the line; the shell goes on."""
    code = failures.OK
    while True:
        try:
            code = lines.run(editor.read(_prompt(session, code)))
            if code in _OUTPUT_IS_GONE:
                return code
            if code == failures.INTERRUPTED:
                _new_line()  # Behind ^C.
        except KeyboardInterrupt:
            _new_line()
        except EOFError:
            _new_line()
            return failures.OK
        except _Left:
            return failures.OK


def _prompt(session: Session, code: int) -> str:
    """Return which context is used, and how the last command ended if it failed."""
    name = f" {harmless(session.context.name)}" if session.context.name else ""
    return f"cortado{name}{'' if code == failures.OK else f' [{code}]'}> "


def _new_line() -> None:
    sys.stderr.write("\n")
    sys.stderr.flush()


def run_batch(lines: Lines, source: BinaryIO, *, keep_going: bool) -> int:
    """Run the lines of ``source`` up to the first that fails, or with ``keep_going`` all of them.

    Returns the exit code of the first that failed. A command reads nothing from ``source``: it would take the lines
    behind it for its data or for a yes. Raises InvalidArgument for a line that is too long.
    """
    first = failures.OK
    for number, line in _numbered(source):
        try:
            with _nothing_to_read():
                code = lines.run(line)
        except _Left:
            break
        if code == failures.OK:
            continue
        first = first or code
        if code in _OUTPUT_IS_GONE:
            break
        Renderer().note(f"line {number} ended with exit code {code}")
        if not keep_going or code == failures.INTERRUPTED:
            break
    return first


def _numbered(source: BinaryIO) -> Iterator[tuple[int, str]]:
    number = 0
    while line := source.readline(LINE_BYTES_MAX + 1):
        number += 1
        if len(line) > LINE_BYTES_MAX:
            raise InvalidArgument("standard input", f"line {number} is longer than {size_text(LINE_BYTES_MAX)}")
        # As the arguments of a process: text that is no UTF-8 is refused by the command that takes it.
        yield number, line.decode("utf-8", "surrogateescape").rstrip("\r\n")


@contextmanager
def _nothing_to_read() -> Iterator[None]:
    before = sys.stdin
    with Path(os.devnull).open() as nothing:
        sys.stdin = nothing
        try:
            yield
        finally:
            sys.stdin = before
