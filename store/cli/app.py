"""The app: all groups of commands under ``cortado``, and how a run of it ends."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Final

import typer

import cortado
from cortado.errors import Cancelled, CortadoError, Internal, InvalidArgument
from cortado.store.cli import failures
from cortado.store.cli.commands import (
    cert,
    clock,
    cluster,
    completion,
    config,
    context,
    database,
    doctor,
    documents,
    export,
    import_,
    key,
    kv,
    member,
    mvcc,
    raft,
    recover,
    schema,
    scrub,
    server,
    status,
    table,
    top,
    watch,
)
from cortado.store.cli.session import (
    ContextOption,
    EndpointOption,
    Given,
    Output,
    OutputOption,
    Session,
    TimeoutOption,
    TlsCaOption,
    TlsCertOption,
    TlsKeyOption,
)

# The parser's own complaints; typer names only the leaves of their tree.
_UsageError: Final[type[Exception]] = next(
    kind for kind in typer.BadParameter.__mro__ if kind.__name__ == "ClickException" and issubclass(kind, Exception)
)


def build() -> typer.Typer:
    """The whole command line."""
    app = typer.Typer(
        name="cortado",
        help="Cortado: a replicated, ordered key-value and document store.\n\nStart a server with [bold]cortado server"
        "[/bold], then look at it with [bold]cortado status[/bold]. Each command's --help ends with examples.\n\n"
        "What each exit code means, and what to do about it: docs/exit-codes.md.",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode="rich",
        context_settings={"help_option_names": ["--help", "-h"]},
    )
    app.callback()(_globals)
    for module in (
        server,
        status,
        top,
        member,
        cluster,
        schema,
        database,
        table,
        documents,
        kv,
        watch,
        export,
        import_,
        clock,
        key,
        mvcc,
        raft,
        scrub,
        cert,
        recover,
        config,
        context,
        doctor,
        completion,
    ):
        module.add_to(app)
    return app


def _show_version(asked: bool) -> None:
    # Eager, since the parser wants a command before it calls the function of the options.
    if asked:
        sys.stdout.write(f"cortado {cortado.__version__}\n")
        raise typer.Exit


def _globals(
    run_of: typer.Context,
    endpoint: EndpointOption = None,
    output: OutputOption = None,
    timeout: TimeoutOption = None,
    tls_ca: TlsCaOption = None,
    tls_cert: TlsCertOption = None,
    tls_key: TlsKeyOption = None,
    context: ContextOption = None,
    _version: Annotated[
        bool, typer.Option("--version", help="Show the version and exit.", callback=_show_version, is_eager=True)
    ] = False,
) -> None:
    run_of.obj = Given(endpoint, output, timeout, tls_ca, tls_cert, tls_key, context)


def run(arguments: Sequence[str]) -> int:
    """One run; returns the exit code. What went wrong is one line on standard error, never a traceback."""
    as_json = wants_json(arguments)
    try:
        outcome = build()(args=list(arguments), prog_name="cortado", standalone_mode=False)
        sys.stdout.flush()
        return outcome if isinstance(outcome, int) else failures.OK
    except failures.CheckFailed as found:
        return found.exit_code
    except failures.EndedWith as ended:
        failures.report(ended.error, as_json=as_json)
        return ended.exit_code
    except CortadoError as error:
        if not isinstance(error, Cancelled):
            failures.report(error, as_json=as_json)
        return failures.exit_code_of(error)
    except (KeyboardInterrupt, typer.Abort):
        return failures.INTERRUPTED
    except _UsageError as error:
        failures.report_usage(_message(error), as_json=as_json)
        return failures.USAGE
    except BrokenPipeError:
        _silence_stdout()
        return failures.BROKEN_PIPE
    except SystemExit as ended:
        # The parser ends the process by itself where a pipe breaks under a command, with a code of its own.
        if not isinstance(ended.__context__, BrokenPipeError):
            raise
        _silence_stdout()
        return failures.BROKEN_PIPE
    except UnicodeEncodeError as error:
        # Bytes on the command line that are no UTF-8 come as halves of characters; only kv's keys and values may.
        failures.report(InvalidArgument("arguments", "must be UTF-8", repr(error.object)), as_json=as_json)
        return failures.USAGE
    except Exception as error:
        if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EIO):
            _silence_stdout()
            problem = f"cannot be written: {error.strerror}"
            failures.report(InvalidArgument("standard output", problem), as_json=as_json)
            return failures.USAGE
        if os.environ.get("CORTADO_DEBUG"):
            raise
        problem = f"{type(error).__name__}: {error} (set CORTADO_DEBUG=1 for a traceback)"
        failures.report(Internal(problem), as_json=as_json)
        return failures.INTERNAL


def wants_json(arguments: Sequence[str]) -> bool:
    """Whether ``-o json`` was asked for, also where the rest does not parse; else what environment and context say."""
    wanted: bool | None = None
    for i, argument in enumerate(arguments):
        if argument == "--":
            break
        if argument in ("-o", "--output"):
            wanted = list(arguments[i + 1 : i + 2]) == [Output.JSON.value]
        elif argument in ("-ojson", "--output=json"):
            wanted = True
    return Session.resolve(Given(), os.environ, strict=False).as_json if wanted is None else wanted


def _message(error: Any) -> str:
    # The parser says first what kind of exception it met.
    return " ".join(str(error.format_message()).split()).rstrip(".").replace(": Value error, ", ": ")


def _silence_stdout() -> None:
    # The interpreter flushes at its end, and would complain about the pipe once more.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def main() -> None:
    """The ``cortado`` script."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # Closed by a caller who wants none of it, as a daemon's are.
            setattr(sys, name, Path(os.devnull).open("w"))  # noqa: SIM115
    sys.exit(run(sys.argv[1:]))
