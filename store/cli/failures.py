"""How a command ends that did not work: one line on standard error, and an exit code that a script can use.

====  =================================================================================================
code  meaning
====  =================================================================================================
0     it worked
1     an internal error: a defect of Cortado's
2     usage, or an argument that is wrong: the same command will be refused again
3     not found: a database, table, index, field, subject, schema, document or key
4     a conflict: a condition that does not hold, a value that a unique index has, a name that is taken
5     an incompatible schema
6     the server cannot serve now: not reached, overloaded, or too late with the answer of a read
7     the outcome of a write is unknown: it may have happened, or may yet
8     damage: a checksum, a data directory, a clock out of bounds, or problems that ``table check`` found
69    a server that was to join a cluster could not reach it, or it had no leader: start it again later
78    a server that was to join a cluster was refused by it: starting it again as it is will not help
130   interrupted (Ctrl-C)
141   whoever read the output went away (a broken pipe)
====  =================================================================================================
"""

from __future__ import annotations

import json
import sys
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

OK: Final = 0
INTERNAL: Final = 1
USAGE: Final = 2
NOT_FOUND: Final = 3
CONFLICT: Final = 4
INCOMPATIBLE: Final = 5
UNAVAILABLE: Final = 6
UNKNOWN_OUTCOME: Final = 7
DAMAGE: Final = 8
INTERRUPTED: Final = 130
BROKEN_PIPE: Final = 141

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
    """A check did its work and found something; what it found is on standard output already."""

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
    """The exit code of an error's class."""
    return next((code for kind, code in _CODE_OF if isinstance(error, kind)), INTERNAL)


def report(error: CortadoError, *, as_json: bool, **more: Any) -> None:
    """One line about ``error`` on standard error."""
    if as_json:
        body = {"reason": error.reason, "code": error.code, "message": error.message(), **error.fields(), **more}
        _line(json.dumps({"error": body}, ensure_ascii=False, default=str))
        return
    where = "".join(f"{name} {value}: " for name, value in more.items())
    # A list of incompatibilities has lines of its own, each of which says where.
    _line(f"error: {where}{printable(error.message())}")


def report_usage(message: str, *, as_json: bool) -> None:
    """One line about a command line that does not parse."""
    if as_json:
        _line(json.dumps({"error": {"reason": "USAGE", "code": "INVALID_ARGUMENT", "message": message}}))
    elif message:  # Without one, the help was shown.
        _line(f"error: {message} (see --help)")


def printable(text: str) -> str:
    """``text`` without control characters but line ends: what a server or a document holds must not move the cursor."""
    return "".join(char if char.isprintable() or char == "\n" else f"\\x{ord(char):02x}" for char in text)


def _line(text: str) -> None:
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()
