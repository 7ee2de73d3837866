"""``cortado watch``: the changes in a namespace or in a table, as they happen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from cortado.errors import InvalidArgument
from cortado.store.cli.commands.kv import EndOption, StartOption
from cortado.store.cli.common_options import NamespaceArgument, PrefixOption, TableArgument
from cortado.store.cli.numbers import whole
from cortado.store.cli.options import Argument, Option
from cortado.store.cli.session import Session
from cortado.store.cli.times import FORMS
from cortado.store.cli.tree import command
from cortado.store.transfer.byte_text import parse_bytes


@dataclass(frozen=True, slots=True)
class Course:
    """The times between which changes are watched, and the parts of a change that are shown."""

    after: Annotated[
        str | None,
        Option(
            "--after",
            help=f"Changes after {FORMS} (five minutes ago); beginning: all that are retained.",
            show_default="now",
            metavar="TIME",
        ),
    ] = None
    until: Annotated[
        str | None,
        Option(
            "--until",
            help="Stop once every change up to this time was shown, given as for --after; now: all committed so far.",
            show_default="never",
            metavar="TIME",
        ),
    ] = None
    state: Annotated[bool, Option("--state", help="Show the state at the start first.")] = False
    previous: Annotated[bool, Option("--previous", help="Show with each change the value that it replaced.")] = False
    resolved_ms: Annotated[
        int,
        Option(
            "--resolved-ms",
            help="With -o json: report progress at least this often.",
            parser=whole("--resolved-ms"),
            metavar="MS",
        ),
    ] = 1_000


@command(
    "watch kv",
    examples="""
        cortado watch kv sessions
        cortado watch kv sessions --prefix user: --state
        cortado watch kv sessions --after beginning --until now -o json
        cortado watch kv sessions --after 0.1763643600000.2 -o json
    """,
)
def kv(
    session: Session,
    namespace: NamespaceArgument,
    course: Course,
    lower: StartOption = None,
    upper: EndOption = None,
    prefix: PrefixOption = None,
) -> None:
    """Stream the changes of a namespace. Ctrl-C stops it, and prints where to continue."""
    from cortado.store.cli.watching import moment_of, pair_line, show_all
    from cortado.store.transfer.change_json import pair_json

    if prefix is not None and (lower is not None or upper is not None):
        raise InvalidArgument("--prefix", "must not be given together with --start or --end")
    with (
        session.client() as client,
        client.kv(namespace).watch(
            parse_bytes(lower or "", "--start"),
            parse_bytes(upper or "", "--end"),
            prefix=None if prefix is None else parse_bytes(prefix, "--prefix"),
            after=moment_of(client, course.after, "--after"),
            until=moment_of(client, course.until, "--until"),
            initial_state=course.state,
            with_previous=course.previous,
            resolved_ms=course.resolved_ms,
        ) as watch,
    ):
        show_all(session, watch, pair_json, pair_line)


@command(
    "watch table",
    examples="""
        cortado watch table flights.flights
        cortado watch table flights.flights 2013-01-01T10:00:00Z UA --state
        cortado watch table flights.airlines --after beginning --until now -o json
    """,
)
def table(
    session: Session,
    table: TableArgument,
    course: Course,
    prefix: Annotated[list[str] | None, Argument(help="Leading parts of the primary key.", metavar="PART")] = None,
    lower: Annotated[
        str | None, Option("--start", help="Lower bound: a part, or a JSON array of parts.", metavar="KEY")
    ] = None,
    upper: Annotated[str | None, Option("--end", help="Upper bound, exclusive.", metavar="KEY")] = None,
) -> None:
    """Stream the changes of a table's documents. Ctrl-C stops it, and prints where to continue."""
    from cortado.store.cli.watching import document_line, moment_of, show_all
    from cortado.store.transfer.change_json import document_json
    from cortado.store.transfer.key_text import parse_bound, parse_key

    if prefix and (lower is not None or upper is not None):
        raise InvalidArgument("PART", "must not be given together with --start or --end")
    with session.client() as client:
        handle = client.table(table)
        parts = handle.descriptor.key
        with handle.watch(
            parse_bound(lower, parts, "--start"),
            parse_bound(upper, parts, "--end"),
            prefix=parse_key(prefix, parts, prefix=True) if prefix else None,
            after=moment_of(client, course.after, "--after"),
            until=moment_of(client, course.until, "--until"),
            initial_state=course.state,
            with_previous=course.previous,
            resolved_ms=course.resolved_ms,
        ) as watch:
            show_all(session, watch, document_json, document_line)
