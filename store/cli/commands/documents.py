"""``cortado get``, ``put``, ``update``, ``add``, ``delete`` and ``scan``: documents of tables."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from cortado.errors import InvalidArgument, NotFound
from cortado.store.cli.additions import Addition
from cortado.store.cli.aggregates import Aggregates, chosen_rows
from cortado.store.cli.answers import Answer, Said
from cortado.store.cli.asking import DryRunOption, dry_delete
from cortado.store.cli.common_options import (
    SHOWN_MAX,
    AtOption,
    ColumnsOption,
    DocumentKeyArgument,
    EndOption,
    EtagOption,
    FilterOption,
    IfAbsentOption,
    IfPresentOption,
    LeadingPartsArgument,
    LimitOption,
    MaxBadOption,
    MetaOption,
    ReverseOption,
    StartOption,
    TableArgument,
    TtlOption,
    as_of,
    chosen_columns,
    put_mode,
    refuse_beside,
)
from cortado.store.cli.failures import OK
from cortado.store.cli.numbers import expires_of, expiry_text, ttl
from cortado.store.cli.options import Argument, Option
from cortado.store.cli.render import Renderer, count
from cortado.store.cli.session import Session
from cortado.store.cli.tree import command

if TYPE_CHECKING:
    from cortado.store.client import Client, Document


@command(
    "get",
    examples="""
        cortado get flights.airlines UA
        cortado get flights.flights 2013-01-01T10:00:00Z UA 1545 -o json
        cortado get flights.airlines UA --at 2025-11-20T13:00:00Z
        cortado get flights.airlines UA -o json | cortado put flights.airlines_copy
    """,
)
def get(
    session: Session, table: TableArgument, key: DocumentKeyArgument, at: AtOption = None, meta: MetaOption = False
) -> Answer:
    """Show a document by its key. Exit code 3 if there is none."""
    from cortado.store.transfer.key_text import parse_key

    with session.client() as client:
        handle = as_of(client, at).table(table)
        found = handle.get(parse_key(key, handle.descriptor.key))
    if found is None:
        raise NotFound("document", f"{shlex.join(key)} in table {table}")
    return OneDocument(found, meta=meta)


@command(
    "delete",
    examples="""
        cortado delete flights.airlines ZZ
        cortado delete flights.airlines ZZ --if-etag 0.1763643600000.2
        cortado delete flights.airlines ZZ --dry-run
    """,
)
def delete(
    session: Session,
    table: TableArgument,
    key: DocumentKeyArgument,
    if_etag: EtagOption = None,
    dry_run: DryRunOption = False,
) -> Answer:
    """Delete a document by its key. Succeeds if it does not exist."""
    from cortado.store.transfer.key_text import parse_key

    with session.client() as client:
        handle = client.table(table)
        parsed = parse_key(key, handle.descriptor.key)
        if dry_run:
            found = handle.get(parsed)
            return dry_delete(None if found is None else found.etag, if_etag)
        existed = handle.delete(parsed, if_etag=if_etag)
    return Said("deleted" if existed else "there was no such document", {"existed": existed})


@command(
    "scan",
    examples="""
        cortado scan flights.flights --limit 10
        cortado scan flights.flights 2013-01-01T10:00:00Z UA
        cortado scan flights.flights N14228 --index by_tailnum --columns time_hour,origin,dest
        cortado scan flights.flights --start 2013-06-01T00:00:00Z --end 2013-07-01T00:00:00Z -o json
        cortado scan flights.flights --filter "arr_delay > 60 and origin = 'JFK'" --reverse
        cortado scan flights.flights --aggregate "count(*) as n, avg(arr_delay) as late" --group-by carrier
        cortado scan flights.flights --filter "arr_delay > 60 and origin = 'JFK'" --count
    """,
)
def scan(
    session: Session,
    table: TableArgument,
    prefix: LeadingPartsArgument = None,
    lower: StartOption = None,
    upper: EndOption = None,
    index: Annotated[str | None, Option(help="Scan in the order of this index.", metavar="NAME")] = None,
    filter: FilterOption = None,
    columns: ColumnsOption = None,
    limit: LimitOption = None,
    reverse: ReverseOption = False,
    at: AtOption = None,
    aggregate: Annotated[
        str | None,
        Option(help="Instead of documents: count(*), and count, sum, min, max, avg of fields.", metavar="TEXT"),
    ] = None,
    group_by: Annotated[
        str | None, Option(help="Aggregate for each group of equal values of these fields.", metavar="FIELD,...")
    ] = None,
    count_only: Annotated[bool, Option("--count", help="Instead of documents: how many they are.")] = False,
    meta: MetaOption = False,
) -> None:
    """Show the documents of a key range, aggregates of them, or their number, as of one timestamp.

    Documents come in the order of the key or of the index, groups in the order of their values.
    """
    of_documents = {"--columns": columns is not None, "--reverse": reverse, "--meta": meta}
    if count_only:
        refuse_beside("--count", {"--aggregate": aggregate is not None, "--limit": limit is not None, **of_documents})
    if aggregate is not None:
        refuse_beside("--aggregate", of_documents)
    elif group_by is not None:
        raise InvalidArgument("--group-by", "must be given together with --aggregate")
    shown_max = SHOWN_MAX if limit is None and not session.as_json else None
    with session.client() as client:
        handle = as_of(client, at).table(table)
        chosen = chosen_rows(handle.descriptor, prefix, (lower, upper), index, filter)
        if count_only:
            rows = handle.count(**chosen)
            session.answer(Said(count(rows, "document"), {"count": rows}))
            return
        if aggregate is not None:
            groups = handle.aggregate_groups(aggregate, group_by=group_by, **chosen)
            session.answer(Aggregates(groups, limit, shown_max))
            return
        found = handle.scan(
            **chosen,
            columns=chosen_columns(columns),
            # One more tells whether there are more.
            limit=limit if shown_max is None else shown_max + 1,
            reverse=reverse,
        )
        session.answer(_Documents(found, shown_max, meta=meta))


@command(
    "put",
    examples="""
        cortado put flights.airlines '{"carrier": "ZZ", "name": "Zed Air"}'
        cortado put flights.airlines --file airlines.jsonl
        cortado scan flights.airlines -o json | cortado put flights.airlines_copy
        cortado put flights.airlines '{"carrier": "ZZ", "name": "Zed Air"}' --if-absent
        cortado put flights.airlines '{"carrier": "ZZ", "name": "Zed Air"}' --ttl 30m
    """,
)
def put(
    session: Session,
    table: TableArgument,
    document: Annotated[
        str | None,
        Argument(help="The document as JSON.", show_default="read standard input", metavar="DOCUMENT"),
    ] = None,
    file: Annotated[
        str | None, Option("--file", "-f", help="Read documents from this file; - for standard input.", metavar="PATH")
    ] = None,
    if_absent: IfAbsentOption = False,
    if_present: IfPresentOption = False,
    if_etag: EtagOption = None,
    ttl_ms: TtlOption = None,
    max_bad: MaxBadOption = None,
) -> Answer | None:
    """Store one document, or many from a file or standard input (JSON, one a line).

    Each document is stored whole, under the key that it holds. Several documents are stored or refused one by one, and
    counted; a bad line counts as refused. The exit code is that of the first refusal.
    """
    from cortado.store.cli.input import STDIN, json_input
    from cortado.store.cli.loading import load_lines

    if document is not None and file is not None:
        raise InvalidArgument("--file", "must not be given together with DOCUMENT")
    mode = put_mode(if_absent=if_absent, if_present=if_present, if_etag=if_etag is not None)
    how = {"if_absent": if_absent, "if_present": if_present, "if_etag": if_etag, "expires": expires_of(ttl_ms)}
    if document is not None and document != STDIN:
        with session.client() as client:
            return _put_one(client, table, (document, "DOCUMENT"), how)
    with ExitStack() as stack:
        given = json_input(file or STDIN, stack)
        client = stack.enter_context(session.client())
        if given.only is not None:
            return _put_one(client, table, (given.only, given.name), how)
        if if_etag is not None:
            raise InvalidArgument("--if-etag", "must not be given with more than one document")
        from cortado.store.transfer.stores import TableStore
        from cortado.store.transfer.tables import table_target

        store = TableStore(client.table(table), mode, expires_of(ttl_ms))
        load_lines(session, given, table_target(client, table), store, max_bad)
    return None


def _put_one(client: Client, table: str, given: tuple[str, str], how: Mapping[str, Any]) -> Answer:
    """``given`` is a text, and its name in errors; ``how`` the conditions and the expiry."""
    from cortado.schema.json_text import parse_json

    value = parse_json(*given)
    handle = client.table(table)
    document = handle.codec.from_json(value)
    etag = handle.put(document, **how)
    return Said(f"stored, with etag {etag}", {"etag": etag})


@command(
    "update",
    examples="""
        cortado update flights.airlines UA --set 'name="United"'
        cortado update flights.airlines ZZ --ttl 1h
        cortado update flights.flights 2013-01-01T10:00:00Z UA 1545 --set arr_delay=12 --set tailnum=null
    """,
)
def update(
    session: Session,
    table: TableArgument,
    key: DocumentKeyArgument,
    set_: Annotated[
        list[str] | None,
        Option("--set", help="A field, or a path such as a.b, and its new value; repeat.", metavar="FIELD=JSON"),
    ] = None,
    if_etag: EtagOption = None,
    ttl_ms: Annotated[
        int | None,
        Option(
            "--ttl",
            help="How long it lives, from now on: 90s, 30m, 12h, 7d, or none (for ever).",
            parser=ttl("--ttl"),
            show_default="as before",
            metavar="TIME",
        ),
    ] = None,
    meta: MetaOption = False,
) -> Answer:
    """Change some fields of a document, or when it expires, and show the result."""
    from cortado.store.cli.assignments import parse_assignments
    from cortado.store.transfer.key_text import parse_key

    if not set_ and ttl_ms is None:
        raise InvalidArgument("--set", "must name at least one field, unless --ttl is given")
    changes = parse_assignments(set_ or ())
    with session.client() as client:
        handle = client.table(table)
        key_values = parse_key(key, handle.descriptor.key)
        named = handle.codec.changes_from_json(changes)
        found = handle.update(key_values, named, if_etag=if_etag, expires=expires_of(ttl_ms))
    return OneDocument(found, meta=meta)


@command(
    "add",
    examples="""
        cortado add flights.flights 2013-01-01T10:00:00Z UA 1545 --field seats --by 5
        cortado add flights.flights 2013-01-01T10:00:00Z UA 1545 --field seats --by -2 --min 0
    """,
)
def add(
    session: Session,
    table: TableArgument,
    key: DocumentKeyArgument,
    field: Annotated[str, Option("--field", help="The int or long field to add to, or its path a.b.", metavar="FIELD")],
    addition: Addition,
) -> Answer:
    """Add to a whole number of a document, within bounds, and show the sum. Exit code 4 if it would leave them.

    Adds conflict with no other adds, however many callers there are.
    """
    from cortado.store.transfer.key_text import parse_key

    with session.client() as client:
        handle = client.table(table)
        parsed = parse_key(key, handle.descriptor.key)
        total = handle.add(parsed, field, addition.by, **addition.asked())
    return Said(str(total), {"sum": total})


# --- how documents are shown -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class OneDocument:
    """One document, in the form that ``put`` reads if that is JSON."""

    document: Document
    meta: bool
    exit_code: int = OK

    def as_json(self) -> list[Any]:
        return [_json(self.document, meta=self.meta)]

    def as_table(self, show: Renderer) -> None:
        document = self.document
        written = f"{document.ts.as_datetime():%Y-%m-%d %H:%M:%S}Z"
        expires = [("expires", expiry_text(document.expires_ms))] if document.expires_ms else []
        show.record([*document.to_json().items(), ("etag", document.etag), ("written", written), *expires])


@dataclass(frozen=True, slots=True)
class _Documents:
    """Documents as they come; in a table ``shown_max`` at most."""

    documents: Iterable[Document]
    shown_max: int | None
    meta: bool
    exit_code: int = OK

    def as_json(self) -> Iterable[Any]:
        return (_json(document, meta=self.meta) for document in self.documents)

    def as_table(self, show: Renderer) -> None:
        found = list(self.documents)
        values = [document.to_json() for document in found[: self.shown_max]]
        columns = list(dict.fromkeys(name for value in values for name in value))
        if values:
            show.table(columns, [[value.get(name) for name in columns] for value in values])
        more = ", and there are more (--limit)" if len(found) > len(values) else ""
        show.note(count(len(values), "document") + more)


def _json(document: Document, *, meta: bool) -> Any:
    value = document.to_json()
    expires = {"expires_ms": document.expires_ms} if document.expires_ms else {}
    return {"document": value, "etag": document.etag, **expires} if meta else value
