"""The audit log: a line of JSON for each denial, and for each change except of data.

::

    {"time": "2026-11-20T20:14:03.512Z", "node": "n1", "principal": "reports", "method": "KeyValue/Put",
     "resources": ["namespace:carts"], "about": "", "outcome": "PERMISSION_DENIED", "request_id": "0f3c..."}

``outcome`` is OK or the reason of the error. ``about`` names the subject of a change of rights or members. Neither
values nor keys nor tokens are ever in it; the principal of an unknown caller is empty.

It lies in ``audit/`` in the data directory: ``audit.log``, and as it grows over 16 MiB ``audit.log.1`` to ``.8``, the
newest first.

A thread writes, since the event loop waits for no disk. Lines that wait are bounded. If denials come faster than the
disk writes, further lines are only counted, and a line says how many are missing. For denials and failed changes each
principal has a thousand lines at once, and then one a second. All unknown callers share one such allowance. Further
lines are counted, too. The allowance for changes that are made is fifty thousand at once. Otherwise one caller could
push all other lines out of the files. A line has at most 2 KiB, and counts as one for each 256 bytes. A crash loses the
lines that wait: every change stands in the replicated log, too.
"""

from __future__ import annotations

import json
import logging
import os
import threading
from collections import deque
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO, Final

from google.protobuf.message import Message

from cortado.errors import CortadoError, DataDirectoryError, PermissionDenied, Unauthenticated
from cortado.invariants import invariant
from cortado.store.auth.caller import Caller
from cortado.store.files.regular_files import open_regular
from cortado.store.server.allowances import Allowances
from cortado.store.server.permissions import PACKAGE

FILE_NAME: Final = "audit.log"
FILE_BYTES_MAX: Final = 16 << 20
FILES_MAX: Final = 8
WAITING_MAX: Final = 10_000
LINES_AT_ONCE: Final = 1_000
LINE_MS: Final = 1_000.0
"""Each principal has this many lines at once for refused calls, and one more each ``LINE_MS``."""
CHANGES_AT_ONCE: Final = 50_000
CHANGE_MS: Final = 1_000.0
"""The same for changes that were made while roles are on: 12 MiB of the 144 MiB that the files hold."""
LINE_BYTES_MAX: Final = 2_048
LINE_BYTES: Final = 256
"""The bytes of a line that count as one line."""
_RESOURCES_BYTES_MAX: Final = 1_000
"""For a commit of many tables, the line names the first ones."""
_ABOUT_BYTES_MAX: Final = 500
_NAME_BYTES_MAX: Final = 200
_ID_CHARS_MAX: Final = 64
_ABOUT: Final = ("principal", "role", "node_id", "to_node_id", "target")
"""The fields of all requests that name the subject."""
_LOG: Final = logging.getLogger(__name__)
_DENIALS: Final = (Unauthenticated, PermissionDenied)
OK: Final = "OK"


class Audit:
    """The audit log of one node. Without a ``directory`` nothing is written."""

    def __init__(self, directory: Path | None, node_id: str, wall_ms: Callable[[], float]) -> None:
        """Raises DataDirectoryError if the directory cannot be used."""
        self._node_id = node_id
        self._wall_ms = wall_ms
        self._waiting: deque[str] = deque()
        self._lost = 0
        self._refused = Allowances(LINES_AT_ONCE, LINE_MS)
        self._made = Allowances(CHANGES_AT_ONCE, CHANGE_MS)
        self._wake = threading.Event()
        self._is_closed = False
        self._thread: threading.Thread | None = None
        if directory is not None:
            self._file = _open(directory)
            self._thread = threading.Thread(target=self._write, name="cortado-audit", daemon=True)
            self._thread.start()

    def denied(self, name: str, caller: Caller, error: CortadoError, request: Message | None) -> None:
        """Record a denial of a call, or of a stream that was open."""
        caller.is_denied = True
        self._say(name, caller, error.reason, request)

    def ended(
        self, name: str, caller: Caller, error: CortadoError | None, request: Message | None, *, changes: bool
    ) -> None:
        """Record the end of an admitted call; it may have been denied when its write was appended."""
        if caller.is_denied:
            return
        if isinstance(error, _DENIALS):
            self.denied(name, caller, error, request)
        elif changes:
            self._say(name, caller, OK if error is None else error.reason, request)

    def close(self) -> None:
        """Write the lines that wait, and end the thread."""
        self._is_closed = True
        self._wake.set()
        if self._thread is not None:
            self._thread.join()

    def _say(self, name: str, caller: Caller, outcome: str, request: Message | None) -> None:
        if self._thread is None:
            return
        if len(self._waiting) >= WAITING_MAX:
            self._lost += 1
            return
        if not self._has_line(caller, outcome):
            return
        line = {
            "time": _time(self._wall_ms()),
            "node": self._node_id,
            "principal": caller.name,
            "method": _fitting([name.removeprefix(PACKAGE)], _NAME_BYTES_MAX)[0],
            "resources": _resources(caller),
            "about": _about(request),
            "outcome": outcome,
            "request_id": getattr(request, "request_id", b"").hex()[:_ID_CHARS_MAX],
        }
        text = json.dumps(line)
        invariant(len(text) <= LINE_BYTES_MAX, "a line of the audit log is bounded", len(text), LINE_BYTES_MAX)
        if not self._has_line(caller, outcome, (len(text) - 1) // LINE_BYTES):
            return
        self._waiting.append(text)
        self._wake.set()

    def _has_line(self, caller: Caller, outcome: str, count: int = 1) -> bool:
        """Return whether the principal may have ``count`` more lines; if not, count a missing line. Changes are not
        bounded while roles are off, since all callers are one then."""
        if outcome == OK and caller.rights is None:
            return True
        allowances = self._made if outcome == OK else self._refused
        if not allowances.wait_ms(caller.name, self._wall_ms(), count):
            return True
        self._lost += 1
        return False

    def _write(self) -> None:
        while not (self._is_closed and not self._waiting):
            self._wake.wait()
            self._wake.clear()
            while self._waiting:
                self._emit(self._waiting.popleft())
            lost, self._lost = self._lost, 0
            if lost:
                self._emit(json.dumps({"time": _time(self._wall_ms()), "node": self._node_id, "lines_missing": lost}))
            if self._is_closed:
                break
        self._file.close()

    def _emit(self, line: str) -> None:
        try:
            self._file.append(line)
        except OSError as error:  # A full disk, say: the node serves on.
            _LOG.error("the audit log is not written: %s", error.strerror or error)


class _Rotated:
    """A file of lines, and those before it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = _appending(path)

    def append(self, line: str) -> None:
        """Raises OSError."""
        if self._file.tell() >= FILE_BYTES_MAX:
            self._file.close()
            for number in range(FILES_MAX, 0, -1):
                older = self._numbered(number - 1)
                if older.exists():
                    older.replace(self._numbered(number))
            self._file = _appending(self._path)
        self._file.write(line.encode("ascii") + b"\n")
        self._file.flush()

    def _numbered(self, number: int) -> Path:
        return self._path.with_name(f"{self._path.name}.{number}") if number else self._path

    def close(self) -> None:
        self._file.close()


def _appending(path: Path) -> BinaryIO:
    return os.fdopen(open_regular(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT), "ab")


def _open(directory: Path) -> _Rotated:
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        return _Rotated(directory / FILE_NAME)
    except OSError as error:
        raise DataDirectoryError(str(directory), f"the audit log cannot be written: {error.strerror}") from error


def _resources(caller: Caller) -> Sequence[str]:
    return _fitting(list(dict.fromkeys(demand.resource for demand in caller.demands)), _RESOURCES_BYTES_MAX)


def _about(request: Message | None) -> str:
    found: list[str] = [getattr(request, name, "") for name in _ABOUT]
    return " ".join(_fitting([each for each in found if each], _ABOUT_BYTES_MAX))


def _fitting(texts: list[str], bytes_max: int) -> list[str]:
    """Return the first of ``texts`` that fit into ``bytes_max`` as JSON, each shortened; behind them the number left
    out."""
    found: list[str] = []
    for text in texts:
        shortened = text[:_NAME_BYTES_MAX]
        while (size_bytes := len(json.dumps(shortened))) > _NAME_BYTES_MAX:
            # At least one character less; each has at most twelve bytes.
            shortened = shortened[: len(shortened) - 1 - (size_bytes - _NAME_BYTES_MAX) // 12]
        bytes_max -= size_bytes
        if bytes_max < 0:
            return [*found, f"and {len(texts) - len(found)}"]
        found.append(shortened)
    return found


def _time(wall_ms: float) -> str:
    text = datetime.fromtimestamp(wall_ms / 1_000, UTC).isoformat(timespec="milliseconds")
    return text.replace("+00:00", "Z")
