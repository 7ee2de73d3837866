"""The log of a server: lines for people, or one JSON object a line for machines.

::

    2026-11-20T20:14:03.512Z INFO leads in term 7
    {"time": "2026-11-20T20:14:03.512Z", "level": "info", "logger": "cortado.store.replica.driver", "message": "leads in
     term 7", "cluster_id": "c-1", "node_id": "n1"}

Times are UTC. Lines that are logged while a request is answered carry its method, and, if it has them, its request id
and its caller's trace. A record may bring fields of its own: ``extra={"fields": {...}}``.

No secret and no content of a document belongs in a log. Log lines are written with that in mind; the message of
an unexpected exception is not, since it may quote the value that caused it. So only the kind and the frames of such an
exception are written, unless the level is ``debug``. Cortado's own errors and the operating system's are written whole.
The lines of libraries are bounded (:mod:`cortado.store.observe.library_logs`).
"""

from __future__ import annotations

import json
import logging
import sys
import traceback
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Final, TypeAlias

from cortado.errors import CortadoError
from cortado.store.observe.call import CURRENT
from cortado.store.observe.library_logs import LibraryLines
from cortado.store.observe.traceparent import trace_id_of

_ExceptionInfo: TypeAlias = "tuple[type[BaseException], BaseException, TracebackType | None] | tuple[None, None, None]"
_SPEAKABLE: Final = (CortadoError, OSError)


class _Formatter(logging.Formatter):
    """``shows_all``: messages of any exception."""

    def __init__(self, *, shows_all: bool) -> None:
        super().__init__("%(asctime)s %(levelname)s %(message)s")
        self._shows_all = shows_all

    def formatTime(self, record: logging.LogRecord, datefmt: str | None = None) -> str:  # noqa: N802, ARG002
        return _time_of(record)

    def formatException(self, ei: _ExceptionInfo) -> str:  # noqa: N802
        error = ei[1]
        if error is None:
            return ""
        if self._shows_all:
            return super().formatException(ei).strip()
        return "\n".join(_frames(error))


class TextFormatter(_Formatter):
    """A line for people; an exception's frames below it."""


class JsonFormatter(_Formatter):
    """One object. ``always`` goes into each."""

    def __init__(self, *, shows_all: bool, always: dict[str, str]) -> None:
        super().__init__(shows_all=shows_all)
        self._always = always

    def format(self, record: logging.LogRecord) -> str:
        fields: dict[str, Any] = {
            "time": _time_of(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **self._always,
            **_of_the_request(),
            **getattr(record, "fields", {}),
        }
        if record.exc_info:
            fields["exception"] = self.formatException(record.exc_info)
        return json.dumps(fields, ensure_ascii=False, default=str)


def log_to_stderr(form: str = "text", level: str = "info", always: dict[str, str] | None = None) -> None:
    """Log from ``level`` up, as ``form`` (text or json). A server's process calls it before anything else; a second
    call changes the form, once more is known of the node."""
    shows_all = level == "debug"
    formatter: logging.Formatter
    if form == "json":
        formatter = JsonFormatter(shows_all=shows_all, always=always or {})
    else:
        formatter = TextFormatter(shows_all=shows_all)
    root = logging.getLogger()
    ours = [each for each in root.handlers if isinstance(each, _StderrHandler)]
    handler = ours[0] if ours else _StderrHandler(sys.stderr)
    handler.setFormatter(formatter)
    if not ours:
        handler.addFilter(LibraryLines())
        root.addHandler(handler)
    root.setLevel(level.upper())


class _StderrHandler(logging.StreamHandler[Any]):
    """Ours, to be found again."""


def _time_of(record: logging.LogRecord) -> str:
    moment = datetime.fromtimestamp(record.created, UTC)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{moment.microsecond // 1000:03d}Z"


def _of_the_request() -> dict[str, str]:
    """Return the fields of the request that is being answered, if there is one."""
    call = CURRENT.get()
    if call is None or call.is_over:
        return {}
    fields = {"method": call.method}
    if call.write is not None and call.write.request_id:
        fields["request_id"] = call.write.request_id.hex()
    trace_id = trace_id_of(call.traceparent)
    if trace_id:
        fields["trace_id"] = trace_id
    return fields


def _frames(error: BaseException) -> list[str]:
    """Return the traceback without the messages of other programs' exceptions."""
    lines = []
    seen: BaseException | None = error
    while seen is not None:
        message = f": {seen}" if isinstance(seen, _SPEAKABLE) else ""
        lines.append(f"{type(seen).__name__}{message}")
        lines += [
            f"  {each.filename}:{each.lineno} in {each.name}" for each in traceback.extract_tb(seen.__traceback__)
        ]
        seen = seen.__cause__ or (None if seen.__suppress_context__ else seen.__context__)
        if seen is not None:
            lines.append("after")
    return lines
