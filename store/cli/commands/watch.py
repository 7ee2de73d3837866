"""``cortado watch``: what changes in a namespace or in a table, as it changes."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from datetime import datetime
from typing import Annotated, Any, TypeAlias, TypeVar

from cortado.errors import CortadoError
from cortado.schema.json_text import json_text
from cortado.store.cli.commands.kv import NamespaceArgument, PrefixOption
from cortado.store.cli.commands.table import TableArgument
from cortado.store.cli.numbers import whole
from cortado.store.cli.options import Argument, Option
from cortado.store.cli.parse import key_to_json, parse_bound, parse_key
from cortado.store.cli.session import Session
from cortado.store.cli.terminal import one_line
from cortado.store.cli.tree import command
from cortado.store.client import Client, Document, Resolved, Watch
from cortado.store.client.values import Key, parse_at
from cortado.store.client.watch import Change, Changed
from cortado.store.clock.timestamp import ZERO, Timestamp
from cortado.store.transfer.byte_text import bytes_to_text, parse_bytes

K = TypeVar("K")
V = TypeVar("V")

AfterOption: TypeAlias = Annotated[
    str | None,
    Option(
        "--from",
        help="Changes after this timestamp or time; beginning: all that is kept.",
        show_default="now",
        metavar="TIME",
    ),
]
UntilOption: TypeAlias = Annotated[
    str | None,
    Option(
        "--until",
        help="End when everything up to this timestamp or time was shown; now: what is committed by now.",
        show_default="never",
        metavar="TIME",
    ),
]
StateOption: TypeAlias = Annotated[bool, Option("--state", help="First show what is there at the start.")]
PreviousOption: TypeAlias = Annotated[bool, Option("--previous", help="Show with each change what it replaced.")]
EveryOption: TypeAlias = Annotated[
    int,
    Option(
        "--resolved-ms",
        help="With -o json: report progress at least this often.",
        parser=whole("--resolved-ms"),
        metavar="MS",
    ),
]


@command(
    "watch kv",
    examples="""
        cortado watch kv sessions
        cortado watch kv sessions --prefix user: --state
        cortado watch kv sessions --from beginning --until now -o json
        cortado watch kv sessions --from 0.1763643600000.2 -o json
    """,
)
def kv(
    session: Session,
    namespace: NamespaceArgument,
    lower: Annotated[str | None, Option(help="Where the range begins.", metavar="KEY")] = None,
    upper: Annotated[str | None, Option(help="Where the range ends, exclusive.", metavar="KEY")] = None,
    prefix: PrefixOption = None,
    after: AfterOption = None,
    until: UntilOption = None,
    state: StateOption = False,
    previous: PreviousOption = False,
    resolved_ms: EveryOption = 1_000,
) -> None:
    """Show the changes of a namespace. Ctrl-C ends it, and says from where to go on."""
    with (
        session.client() as client,
        client.kv(namespace).watch(
            parse_bytes(lower or "", "--lower"),
            parse_bytes(upper or "", "--upper"),
            prefix=None if prefix is None else parse_bytes(prefix, "--prefix"),
            after=_moment(client, after, "--from"),
            until=_moment(client, until, "--until"),
            initial_state=state,
            with_previous=previous,
            resolved_ms=resolved_ms,
        ) as watch,
    ):
        _show_all(session, watch, _pair_json, _pair_line)


@command(
    "watch table",
    examples="""
        cortado watch table flights.flights
        cortado watch table flights.flights 2013-01-01T10:00:00Z UA --state
        cortado watch table flights.airlines --from beginning --until now -o json
    """,
)
def table(
    session: Session,
    table: TableArgument,
    prefix: Annotated[
        list[str] | None, Argument(help="Parts that the primary key begins with.", metavar="PART")
    ] = None,
    lower: Annotated[
        str | None, Option(help="Where the range begins: a part, or a JSON array of parts.", metavar="KEY")
    ] = None,
    upper: Annotated[str | None, Option(help="Where the range ends, exclusive.", metavar="KEY")] = None,
    after: AfterOption = None,
    until: UntilOption = None,
    state: StateOption = False,
    previous: PreviousOption = False,
    resolved_ms: EveryOption = 1_000,
) -> None:
    """Show the changes of a table's documents. Ctrl-C ends it, and says from where to go on."""
    with session.client() as client:
        handle = client.table(table)
        parts = handle.descriptor.key
        with handle.watch(
            parse_bound(lower, parts, "--lower"),
            parse_bound(upper, parts, "--upper"),
            prefix=parse_key(prefix, parts, prefix=True) if prefix else None,
            after=_moment(client, after, "--from"),
            until=_moment(client, until, "--until"),
            initial_state=state,
            with_previous=previous,
            resolved_ms=resolved_ms,
        ) as watch:
            _show_all(session, watch, _document_json, _document_line)


def _moment(client: Client, text: str | None, option: str) -> Timestamp | datetime | None:
    match text:
        case None:
            return None
        case "beginning":
            return ZERO
        case "now":
            return client.now()
    return parse_at(text, option)


def _show_all(
    session: Session,
    watch: Watch[K, V],
    as_json: Callable[[Change[K, V]], dict[str, Any]],
    as_line: Callable[[Change[K, V]], str],
) -> None:
    """Every event until the end, or Ctrl-C; then from where another run would go on."""
    try:
        for event in watch:
            if isinstance(event, Resolved):
                if session.as_json:
                    session.show.json({"type": "resolved", "timestamp": str(event.ts)})
                # What was written is complete up to here: whoever reads a pipe shall have it.
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
        session.show.note(f"complete up to {watch.resolved}; go on with --from {watch.resolved}")


def _pair_json(change: Change[bytes, bytes]) -> dict[str, Any]:
    shown: dict[str, Any] = {"key": bytes_to_text(change.key)}
    if isinstance(change, Changed):
        shown["value"] = bytes_to_text(change.value)
    if change.previous is not None:
        shown["previous"] = bytes_to_text(change.previous)
    return shown


def _pair_line(change: Change[bytes, bytes]) -> str:
    value = f"  {bytes_to_text(change.value)}" if isinstance(change, Changed) else ""
    previous = "" if change.previous is None else f"  (was {bytes_to_text(change.previous)})"
    return bytes_to_text(change.key) + value + previous


def _document_json(change: Change[Key, Document]) -> dict[str, Any]:
    shown: dict[str, Any] = {"key": key_to_json(change.key)}
    if isinstance(change, Changed):
        shown["document"] = change.value.to_json()
    if change.previous is not None:
        shown["previous"] = change.previous.to_json()
    return shown


def _document_line(change: Change[Key, Document]) -> str:
    key = " ".join(each if isinstance(each, str) else json.dumps(each) for each in key_to_json(change.key) or ())
    value = f"  {_text(change.value)}" if isinstance(change, Changed) else ""
    previous = "" if change.previous is None else f"  (was {_text(change.previous)})"
    return key + value + previous


def _text(document: Document) -> str:
    return json_text(document.to_json())
