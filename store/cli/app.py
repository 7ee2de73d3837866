"""The app: the modules of the commands at the top, and the end of a run."""

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
from cortado.store.cli.options import given
from cortado.store.cli.session import ALONE, Outer, Output, Session, global_options
from cortado.store.cli.tree import Group, Home, outer_of

COMPLETE_VARIABLE: Final = "_CORTADO_COMPLETE"
"""The variable that a shell's script sets to ask for completions."""

HELP: Final = """Cortado: a replicated, ordered key-value and document store.

Start a server with "cortado server", then look at it with "cortado status". The --help of each command ends with
examples.

What each exit code means, and what to do about it: docs/exit-codes.md.
"""

HOMES: Final = {
    "server": Home("Run a server in the foreground, until Ctrl-C or SIGTERM.", ("server",)),
    "gateway": Home("Serve documents and pairs over HTTP, in the foreground, until Ctrl-C or SIGTERM.", ("gateway",)),
    "status": Home("Show the state of a server and of every member of its cluster.", ("status",)),
    "health": Home("Check whether a node or a gateway can serve.", ("health",)),
    "slow": Home("Show the last calls that took long, and where their time went.", ("slow",)),
    "top": Home("Watch all nodes: roles, rates, latencies, lag, queues, disk, memory, clocks.", ("top",)),
    "member": Home("List, add, promote, remove and rebuild the cluster's members.", ("member", "member_grow")),
    "cluster": Home(
        "Run a cluster on this machine, for development and experiments.",
        ("cluster", "cluster_status", "cluster_logs", "cluster_faults"),
    ),
    "schema": Home("Avro schemas: subjects, versions, compatibility.", ("schema",)),
    "db": Home("Databases.", ("database",)),
    "table": Home("Tables and their indexes.", ("table",)),
    "index": Home("Indexes of tables that may have rows.", ("index",)),
    "job": Home("Long work that the cluster does by itself.", ("job",)),
    "get": Home("Show a document by its key.", ("documents",)),
    "delete": Home("Delete a document by its key.", ("documents",)),
    "scan": Home("Show the documents of a key range, or aggregates of them, as of one timestamp.", ("documents",)),
    "count": Home("Count the documents of a key range, as of one timestamp.", ("documents",)),
    "put": Home("Store one document, or many from a file or standard input (JSON, one a line).", ("documents",)),
    "update": Home("Change some fields of a document, or when it expires, and show the result.", ("documents",)),
    "add": Home("Add to a whole number of a document, within bounds, and show the sum.", ("documents",)),
    "kv": Home("Key-value pairs (bytes to bytes) in namespaces.", ("kv",)),
    "txn": Home("Transactions over documents and pairs.", ("txn",)),
    "watch": Home("Stream changes in commit order, without gaps.", ("watch",)),
    "export": Home("Write a table, a database or a namespace to files, as of one timestamp.", ("export",)),
    "import": Home("Load files into a table, a database or a namespace.", ("import_",)),
    "backup": Home("Backups of a whole cluster, in directories.", ("backup",)),
    "restore": Home("Put a backup into an empty cluster.", ("restore",)),
    "clock": Home("The server's clock.", ("clock",)),
    "key": Home("Decode and encode stored keys, as logs and errors show them.", ("key",)),
    "mvcc": Home("Inspect the versions that one node has stored.", ("mvcc",)),
    "raft": Home("Inspect the replicated log of one node.", ("raft",)),
    "scrub": Home("Verify all stored data, and compare the replicas at one timestamp.", ("scrub",)),
    "gc": Home("How far back reads can go, and what is removed.", ("gc",)),
    "lease": Home("Leases, which keep what somebody reads from being collected.", ("lease",)),
    "damage": Home("List damaged data, and accept the loss of what cannot be repaired.", ("damage",)),
    "auth": Home("Roles: principals, their tokens, and what they may do.", ("auth",)),
    "quota": Home("Quotas: how much principals, databases and namespaces may use.", ("quota",)),
    "cert": Home("Make certificates for nodes and clients.", ("cert",)),
    "recover": Home("Repair a stopped node by hand, when nothing else helps.", ("recover",)),
    "config": Home("The settings of servers and of this command line.", ("config",)),
    "context": Home("Names for clusters and how to reach them.", ("context",)),
    "doctor": Home("Check the nodes, this host, a data directory, certificates and logs.", ("doctor",)),
    "shell": Home("Run commands at a prompt, or from standard input, over one connection.", ("shell",)),
    "completion": Home("Print the script that completes commands in a shell.", ("completion",)),
}
HELPS: Final = {
    "auth principal": "Who may call: principals, and their tokens.",
    "key encode": "Print the stored key of a pair, a row or an index entry.",
    "mvcc show": "Show all versions of a key, deleted and damaged ones too.",
}


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
    return Group((), HELP, HOMES, HELPS, params=[*global_options(), version], callback=_globals)


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
