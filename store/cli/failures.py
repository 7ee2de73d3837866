"""The end of a command that failed: one line on standard error, and an exit code that a script can use.

:data:`EXIT_CODES` gives each code's meaning and remedy. It is the one source: ``docs/exit-codes.md`` is
held to it by a test, and an error finds its code by its class.
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from typing import Any, Final

from cortado.errors import (
    AlreadyExists,
    Broken,
    Cancelled,
    Conflict,
    CortadoError,
    DeadlineExceeded,
    DidNotHappen,
    IncompatibleSchema,
    Internal,
    NotFound,
    OutcomeUnknown,
    TryAgain,
)
from cortado.schema.json_text import json_text
from cortado.store.auth.tokens import without_tokens
from cortado.store.cli.terminal import harmless

OK: Final = 0
INTERNAL: Final = 1
USAGE: Final = 2
NOT_FOUND: Final = 3
CONFLICT: Final = 4
INCOMPATIBLE: Final = 5
UNAVAILABLE: Final = 6
UNKNOWN_OUTCOME: Final = 7
DAMAGE: Final = 8
SERVER_UNAVAILABLE: Final = 69
SERVER_DEFECT: Final = 70
DISK: Final = 74
SERVER_PORT: Final = 75
SERVER_REFUSED: Final = 78
INTERRUPTED: Final = 130
BROKEN_PIPE: Final = 141


@dataclass(frozen=True, slots=True)
class ExitCode:
    """A way to end. ``action`` is the next step of the caller, a person or a script."""

    code: int
    meaning: str
    action: str


EXIT_CODES: Final = (
    ExitCode(OK, "Success.", "Continue."),
    ExitCode(INTERNAL, "A defect in Cortado.", "Run it again with `CORTADO_DEBUG=1` for a traceback, and report it."),
    ExitCode(
        USAGE,
        "Usage error or invalid argument, or a prompt without a terminal (give `--yes`).",
        "Change the command: unchanged, it will be refused again. Nothing was changed.",
    ),
    ExitCode(
        NOT_FOUND,
        "No such database, table, index, field, subject, schema, document, key or member.",
        "Treat it as missing, or check the name.",
    ),
    ExitCode(
        CONFLICT,
        "A conflict: a condition that does not hold, a duplicate in a unique index, a name that is taken.",
        "Read the current state, and decide again. Nothing was changed.",
    ),
    ExitCode(
        INCOMPATIBLE, "A schema that is not compatible with its subject.", "Change the schema: each line names a place."
    ),
    ExitCode(
        UNAVAILABLE,
        "Unavailable: no server was reached, or there is no leader; the server is overloaded, or a read timed out; or "
        "a check was incomplete.",
        "Try again later. Nothing was changed.",
    ),
    ExitCode(
        UNKNOWN_OUTCOME,
        "The outcome of a write is unknown: it may have happened, or may still happen.",
        "Read the data before you repeat the write. The error names the request id.",
    ),
    ExitCode(
        DAMAGE,
        "Damage: a wrong checksum, a data directory that cannot be used, a clock out of bounds, a peer that refuses, "
        "or problems that `table verify-indexes`, `doctor`, `scrub`, `debug raft` or `debug mvcc` found.",
        "Call an operator: the message says what to do. Do not retry.",
    ),
    ExitCode(
        SERVER_UNAVAILABLE,
        "`server`: the cluster to join could not be reached, or has no leader.",
        "Start it again when the cluster is healthy.",
    ),
    ExitCode(
        SERVER_DEFECT,
        "`server`: a defect while the log was applied.",
        "Keep its log and its directory, and restart it; if it ends the same way, replace the node.",
    ),
    ExitCode(
        DISK,
        "`server`: the disk failed. Other commands: their output cannot be written, as on a full disk.",
        "`server`: check the disk, and restart it: acknowledged writes are kept. Others: make room for the output. "
        "What the command changed stays changed.",
    ),
    ExitCode(
        SERVER_PORT,
        "`server`: the port for clients was not served any more, and could not be served again. Leadership was handed "
        "over.",
        "Restart it; if it ends the same way, look at what else uses the address, and at the log.",
    ),
    ExitCode(
        SERVER_REFUSED,
        "`server`: the cluster to join refused it (not announced, another directory, another cluster).",
        "Do what the line on standard error says. A restart alone does not help.",
    ),
    ExitCode(INTERRUPTED, "Interrupted (Ctrl-C), or a prompt was answered with no.", "Nothing: it was requested."),
    ExitCode(BROKEN_PIPE, "The reader of the output went away (a broken pipe).", "Nothing, if that was intended."),
)

# The first class that fits counts, so the special ones stand before their parents.
_CODE_OF: Final[list[tuple[type[CortadoError], int]]] = [
    (NotFound, NOT_FOUND),
    (AlreadyExists, CONFLICT),
    (IncompatibleSchema, INCOMPATIBLE),
    (DidNotHappen, USAGE),
    (Conflict, CONFLICT),
    (TryAgain, UNAVAILABLE),
    (DeadlineExceeded, UNAVAILABLE),
    (OutcomeUnknown, UNKNOWN_OUTCOME),
    (Cancelled, INTERRUPTED),
    (Internal, INTERNAL),
    (Broken, DAMAGE),
]


class CheckFailed(Exception):
    """A check did its work and found a problem; its findings are on standard output already."""

    def __init__(self, exit_code: int) -> None:
        super().__init__(exit_code)
        self.exit_code = exit_code


class EndedWith(Exception):
    """A run that ends with ``error`` and an exit code that is not its class's."""

    def __init__(self, error: CortadoError, exit_code: int) -> None:
        super().__init__(error, exit_code)
        self.error = error
        self.exit_code = exit_code


def exit_code_of(error: CortadoError) -> int:
    """Return the exit code of an error's class."""
    return next((code for kind, code in _CODE_OF if isinstance(error, kind)), INTERNAL)


def report(error: CortadoError, *, as_json: bool, **more: Any) -> None:
    """Write one line about ``error`` on standard error. ``more`` says its place: in which file, in which row of it."""
    if as_json:
        fields = {name: value for name, value in error.fields().items() if name != "row"}
        body = {"reason": error.reason, "code": error.code, "message": error.message(), **fields, **more}
        _line(json_text({"error": body}, default=str))
        return
    where = "".join(f"{name} {value}: " for name, value in more.items())
    # A list of incompatibilities has lines of its own, and each names its place.
    _line(harmless(f"error: {where}{error.message()}"))


def report_usage(message: str, *, as_json: bool) -> None:
    """Write one line about a command line that does not parse."""
    if as_json:
        _line(json_text({"error": {"reason": "USAGE", "code": "INVALID_ARGUMENT", "message": message}}))
    elif message:  # Without one, the help was shown.
        _line(harmless(f"error: {message} (see --help)"))


def _line(text: str) -> None:
    try:
        # The user may have given a token in place of another argument.
        sys.stderr.write(f"{without_tokens(text)}\n")
        sys.stderr.flush()
    except OSError:
        # If standard error is gone, the exit code still tells; the interpreter would try once more at its end, and end
        # with a code of its own.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())
