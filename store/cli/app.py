"""The app: the whole command line, and the end of a run."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import click
from click.shell_completion import shell_complete

import cortado
from cortado.errors import Cancelled, CortadoError, Internal, InvalidArgument
from cortado.store.cli import failures
from cortado.store.cli.headings import HEADINGS, HELPS
from cortado.store.cli.options import given
from cortado.store.cli.session import ALONE, Outer, Output, Session, global_options
from cortado.store.cli.tree import Group, outer_of

COMPLETE_VARIABLE: Final = "_CORTADO_COMPLETE"
"""The variable that a shell's script sets to ask for completions."""

HELP: Final = "Cortado: a replicated, ordered key-value and document store."
EPILOG: Final = """\b
Example:
  cortado dev up --detach && cortado status

Each command's --help ends with examples. Exit codes: docs/exit-codes.md.
"""


def build() -> Group:
    """Return the whole command line."""
    version = click.Option(
        ["--version"],
        is_flag=True,
        expose_value=False,
        is_eager=True,  # Since the parser wants a command before it calls the function of the options.
        callback=_show_version,
        help="Show the version and exit.",
    )
    return Group((), HELP, HEADINGS, HELPS, params=[*global_options(), version], callback=_globals, epilog=EPILOG)


def _show_version(ctx: click.Context, _: click.Parameter, asked: bool) -> None:
    if asked and not ctx.resilient_parsing:
        sys.stdout.write(f"cortado {cortado.__version__}\n")
        ctx.exit()


def _globals(**values: Any) -> None:
    ctx = click.get_current_context()
    outer = outer_of(ctx)
    ctx.obj = replace(outer, given=outer.given.with_options(**dict(given(ctx.command.params, values))))


def execute(arguments: Sequence[str], outer: Outer) -> None:
    """Parse the command line, and run the command. Raises the command's errors."""
    app = build()
    with app.make_context("cortado", list(arguments), obj=outer) as ctx:
        try:
            app.invoke(ctx)
        finally:
            sys.stdout.flush()


def run(arguments: Sequence[str], outer: Outer = ALONE) -> int:
    """Run a command line; return the exit code. An error is one line on standard error, never a traceback."""
    try:
        execute(arguments, outer)
        return failures.OK
    except click.exceptions.Exit as ended:
        return ended.exit_code
    except failures.CheckFailed as found:
        return found.exit_code
    except (KeyboardInterrupt, click.Abort):
        return failures.INTERRUPTED
    except BrokenPipeError:
        _silence_stdout()
        return failures.BROKEN_PIPE
    except Exception as error:
        return _reported(error, as_json=wants_json(arguments, outer))


def _reported(error: Exception, *, as_json: bool) -> int:
    """Report an error, and return its exit code."""
    match error:
        case click.ClickException():
            failures.report_usage(_message(error), as_json=as_json)
            return failures.USAGE
        case failures.EndedWith():
            failures.report(error.error, as_json=as_json)
            return error.exit_code
        case Cancelled():
            pass
        case CortadoError():
            failures.report(error, as_json=as_json)
        case UnicodeEncodeError():
            # Bytes on the command line that are no UTF-8 come as halves of characters; only kv's keys and values may.
            return _reported(InvalidArgument("arguments", "must be UTF-8", repr(error.object)), as_json=as_json)
        case OSError() if error.errno == errno.ENAMETOOLONG:
            # Python says of no other path that it cannot be looked at.
            named = InvalidArgument("file", f"cannot be used: {error.strerror}", str(error.filename))
            return _reported(named, as_json=as_json)
        case OSError() if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EIO):
            _silence_stdout()
            problem = f"cannot be written: {error.strerror}"
            failures.report(InvalidArgument("standard output", problem), as_json=as_json)
            return failures.DISK
        case _:
            if os.environ.get("CORTADO_DEBUG"):
                raise error
            problem = f"{type(error).__name__}: {error} (set CORTADO_DEBUG=1 for a traceback)"
            return _reported(Internal(problem), as_json=as_json)
    return failures.exit_code_of(error)


def wants_json(arguments: Sequence[str], outer: Outer = ALONE) -> bool:
    """Return whether ``-o json`` was given, also if the rest does not parse; else the default of ``outer``."""
    wanted: bool | None = None
    for i, argument in enumerate(arguments):
        if argument == "--":
            break
        if argument in ("-o", "--output"):
            wanted = list(arguments[i + 1 : i + 2]) == [Output.JSON.value]
        elif argument in ("-ojson", "--output=json"):
            wanted = True
    return Session.resolve(outer.given, os.environ, strict=False).as_json if wanted is None else wanted


def _message(error: click.ClickException) -> str:
    return " ".join(error.format_message().split()).rstrip(".")


def _silence_stdout() -> None:
    # The interpreter flushes at its end, and would complain about the pipe once more.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def main() -> None:
    """Run the ``cortado`` script."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # Closed by a caller who wants none of it, as a daemon's are.
            setattr(sys, name, Path(os.devnull).open("w"))  # noqa: SIM115
    asked = os.environ.get(COMPLETE_VARIABLE)
    if asked:
        sys.exit(shell_complete(build(), {}, "cortado", COMPLETE_VARIABLE, asked))
    sys.exit(run(sys.argv[1:]))
