"""The output of ``cortado watch``: every event until the end, and the point from which another run would continue."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any, TypeVar

from cortado.errors import CortadoError
from cortado.schema.json_text import json_text
from cortado.store.cli.session import Session
from cortado.store.cli.terminal import one_line
from cortado.store.cli.times import Moment, moment
from cortado.store.client import Client, Document, Resolved, Watch
from cortado.store.client.values import Key
from cortado.store.client.watch import Change, Changed
from cortado.store.clock.timestamp import ZERO
from cortado.store.transfer.byte_text import bytes_to_text
from cortado.store.transfer.key_text import key_to_json

K = TypeVar("K")
V = TypeVar("V")


def moment_of(client: Client, text: str | None, option: str) -> Moment | None:
    match text:
        case None:
            return None
        case "beginning":
            return ZERO
        case "now":
            return client.now()
    return moment(option)(text)


def show_all(
    session: Session,
    watch: Watch[K, V],
    as_json: Callable[[Change[K, V]], dict[str, Any]],
    as_line: Callable[[Change[K, V]], str],
) -> None:
    """Show every event until the end, or Ctrl-C; then the point from which another run would continue."""
    try:
        for event in watch:
            if isinstance(event, Resolved):
                if session.as_json:
                    session.show.json({"type": "resolved", "timestamp": str(event.ts)})
                # All changes up to here are complete: the reader of a pipe shall have them.
                sys.stdout.flush()
            elif session.as_json:
                kind = "put" if isinstance(event, Changed) else "delete"
                session.show.json({"type": kind, "timestamp": str(event.ts), **as_json(event)})
            else:
                kind = "put   " if isinstance(event, Changed) else "delete"
                moment = f"{event.ts.as_datetime():%Y-%m-%d %H:%M:%S.%f}"[:-3]
                session.show.line(f"{moment}Z  {kind}  {one_line(as_line(event))}")
    except (KeyboardInterrupt, CortadoError):
        _note_end(session, watch)
        raise
    _note_end(session, watch)


def _note_end(session: Session, watch: Watch[K, V]) -> None:
    sys.stdout.flush()
    if watch.resolved is not None:
        session.show.note(f"complete up to {watch.resolved}; continue with --after {watch.resolved}")


def pair_line(change: Change[bytes, bytes]) -> str:
    value = f"  {bytes_to_text(change.value)}" if isinstance(change, Changed) else ""
    previous = "" if change.previous is None else f"  (was {bytes_to_text(change.previous)})"
    return bytes_to_text(change.key) + value + previous


def document_line(change: Change[Key, Document]) -> str:
    key = " ".join(each if isinstance(each, str) else json.dumps(each) for each in key_to_json(change.key) or ())
    value = f"  {_text(change.value)}" if isinstance(change, Changed) else ""
    previous = "" if change.previous is None else f"  (was {_text(change.previous)})"
    return key + value + previous


def _text(document: Document) -> str:
    return json_text(document.to_json())
