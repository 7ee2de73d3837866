"""``cortado get``, ``put``, ``update``, ``delete`` and ``scan``: documents of tables."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from itertools import chain, islice
from typing import Annotated, Any, TypeAlias

from cortado.errors import InvalidArgument, NotFound
from cortado.schema.json_text import parse_json
from cortado.store.catalog.descriptors import TableDescriptor
from cortado.store.cli import failures
from cortado.store.cli.asking import DryRunOption, show_dry_delete
from cortado.store.cli.commands.table import SHOWN_MAX, AtOption, LimitOption, ReverseOption, TableArgument
from cortado.store.cli.input import STDIN, read_documents
from cortado.store.cli.options import Argument, Option
from cortado.store.cli.parse import parse_assignments, parse_bound, parse_key
from cortado.store.cli.render import count
from cortado.store.cli.session import Session
from cortado.store.cli.tree import command
from cortado.store.client import Document, Table
from cortado.store.keys.types import KeyPart

KeyArgument: TypeAlias = Annotated[
    list[str], Argument(help="The key's parts in their order, each by its declared type.", metavar="KEY")
]
MatchOption: TypeAlias = Annotated[
    str | None, Option("--if-match", help="Only if the document's etag is this one.", metavar="ETAG")
]


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
    session: Session,
    table: TableArgument,
    key: KeyArgument,
    at: AtOption = None,
    meta: Annotated[
        bool, Option("--meta", help="With -o json: the etag and the timestamp around the document.")
    ] = False,
) -> None:
    """Show a document by its key. Exit code 3 where there is none."""
    with session.client() as client:
        handle = client.table(table)
        found = handle.get(parse_key(key, handle.descriptor.key), at=at)
    if found is None:
        raise NotFound("document", f"{shlex.join(key)} in table {table}")
    show_document(session, found, meta=meta)


@command(
    "delete",
    examples="""
        cortado delete flights.airlines ZZ
        cortado delete flights.airlines ZZ --if-match 0.1763643600000.2
        cortado delete flights.airlines ZZ --dry-run
    """,
)
def delete(
    session: Session,
    table: TableArgument,
    key: KeyArgument,
    if_match: MatchOption = None,
    dry_run: DryRunOption = False,
) -> None:
    """Delete a document by its key. It is no error where there is none."""
    with session.client() as client:
        handle = client.table(table)
        if dry_run:
            found = handle.get(parse_key(key, handle.descriptor.key))
            show_dry_delete(session, None if found is None else found.etag, if_match)
            return
        existed = handle.delete(parse_key(key, handle.descriptor.key), if_match=if_match)
    if session.as_json:
        session.show.json({"existed": existed})
    else:
        session.show.line("deleted" if existed else "there was no such document")


@command(
    "scan",
    examples="""
        cortado scan flights.flights --limit 10
        cortado scan flights.flights 2013-01-01T10:00:00Z UA
        cortado scan flights.flights N14228 --index by_tailnum --columns time_hour,origin,dest
        cortado scan flights.flights --from 2013-06-01T00:00:00Z --to 2013-07-01T00:00:00Z -o json
        cortado scan flights.flights --filter "arr_delay > 60 and origin = 'JFK'" --reverse
    """,
)
def scan(
    session: Session,
    table: TableArgument,
    prefix: Annotated[
        list[str] | None,
        Argument(help="Parts that the key, or the index's key, begins with.", metavar="PART"),
    ] = None,
    lower: Annotated[
        str | None,
        Option("--from", help="Where the range begins: a part, or a JSON array of parts.", metavar="KEY"),
    ] = None,
    upper: Annotated[str | None, Option("--to", help="Where the range ends, exclusive.", metavar="KEY")] = None,
    index: Annotated[str | None, Option(help="Scan by this index.", metavar="NAME")] = None,
    filter: Annotated[str | None, Option(help="Only documents for which this is true.", metavar="EXPR")] = None,
    columns: Annotated[str | None, Option(help="Only these fields, with commas between.", metavar="FIELD,...")] = None,
    limit: LimitOption = None,
    reverse: ReverseOption = False,
    at: AtOption = None,
    meta: Annotated[
        bool, Option("--meta", help="With -o json: the etag and the timestamp around each document.")
    ] = False,
) -> None:
    """Show the documents of a range, in the order of the key or of an index, as of one timestamp."""
    shown_max = SHOWN_MAX if limit is None and not session.as_json else limit
    with session.client() as client:
        handle = client.table(table)
        parts = index_parts(handle.descriptor, index)
        found = handle.scan(
            parse_bound(lower, parts, "--from"),
            parse_bound(upper, parts, "--to"),
            prefix=parse_key(prefix, parts, prefix=True) if prefix else None,
            index=index,
            filter=filter,
            columns=None if columns is None else [each.strip() for each in columns.split(",")],
            # One more tells whether there are more.
            limit=shown_max + 1 if limit is None and shown_max is not None else limit,
            reverse=reverse,
            at=at,
        )
        if session.as_json:
            for document in found:
                show_document(session, document, meta=meta)
        else:
            _show_table(session, list(found), shown_max if limit is None else None)


@command(
    "put",
    examples="""
        cortado put flights.airlines '{"carrier": "ZZ", "name": "Zed Air"}'
        cortado put flights.airlines --file airlines.jsonl
        cortado scan flights.airlines -o json | cortado put flights.airlines_copy
        cortado put flights.airlines '{"carrier": "ZZ", "name": "Zed Air"}' --mode insert
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
        str | None, Option("--file", "-f", help="Read documents from here; - for stdin.", metavar="PATH")
    ] = None,
    mode: Annotated[
        str,
        Option(help="upsert: always; insert: only new ones; replace: only ones that exist.", metavar="MODE"),
    ] = "upsert",
    if_match: MatchOption = None,
) -> None:
    """Store a document, or as many as a file or standard input holds (JSON, one a line).

    Documents are stored whole, under the key that they hold. Of many, a bad one is refused by itself, and the exit
    code is that of the first refusal.
    """
    if document is not None and file is not None:
        raise InvalidArgument("--file", "must not be given together with DOCUMENT")
    if document is not None and document != STDIN:
        values: Iterator[Any] = iter([parse_json(document, "DOCUMENT")])
    else:
        values = read_documents(file or STDIN)
    with session.client() as client:
        _put_all(session, client.table(table), values, mode, if_match)


@command(
    "update",
    examples="""
        cortado update flights.airlines UA --set 'name="United"'
        cortado update flights.flights 2013-01-01T10:00:00Z UA 1545 --set arr_delay=12 --set tailnum=null
    """,
)
def update(
    session: Session,
    table: TableArgument,
    key: KeyArgument,
    set_: Annotated[
        list[str],
        Option("--set", help="A field, or a path such as a.b, and its new value; repeat.", metavar="FIELD=JSON"),
    ],
    if_match: MatchOption = None,
    meta: Annotated[
        bool, Option("--meta", help="With -o json: the etag and the timestamp around the document.")
    ] = False,
) -> None:
    """Change some fields of a document, and show it as it is then."""
    changes = parse_assignments(set_)
    with session.client() as client:
        handle = client.table(table)
        key_values = parse_key(key, handle.descriptor.key)
        found = handle.update(key_values, handle.codec.changes_from_json(changes), if_match=if_match)
    show_document(session, found, meta=meta)


def show_document(session: Session, document: Document, *, meta: bool) -> None:
    """One document, in the form that ``put`` reads where that is JSON."""
    value = document.to_json()
    if not session.as_json:
        session.show.record(
            [*value.items(), ("etag", document.etag), ("written", f"{document.ts.as_datetime():%Y-%m-%d %H:%M:%S}Z")]
        )
    elif meta:
        session.show.json({"document": value, "etag": document.etag})
    else:
        session.show.json(value)


def index_parts(table: TableDescriptor, index: str | None) -> tuple[KeyPart, ...]:
    """What a range's parts are: those of the primary key, or of an index. Raises NotFound."""
    if index is None:
        return table.key
    found = table.index(index)
    if found is None:
        raise NotFound("index", f"{index} of table {table.full_name}")
    return found.parts


def _show_table(session: Session, documents: list[Document], shown_max: int | None) -> None:
    shown = documents if shown_max is None else documents[:shown_max]
    values = [document.to_json() for document in shown]
    columns = list(dict.fromkeys(name for value in values for name in value))
    if values:
        session.show.table(columns, [[value.get(name) for name in columns] for value in values])
    session.show.note(
        count(len(shown), "document") + (", and there are more (--limit)" if len(documents) > len(shown) else "")
    )


def _put_all(session: Session, table: Table, values: Iterator[Any], mode: Any, if_match: str | None) -> None:
    first = list(islice(values, 2))
    if not first:
        raise InvalidArgument("DOCUMENT", "must be given: there was nothing to read")
    if len(first) == 1:
        etag = table.put(table.codec.from_json(first[0]), mode=mode, if_match=if_match)
        if session.as_json:
            session.show.json({"etag": etag})
        else:
            session.show.line(f"stored, with etag {etag}")
        return
    if if_match is not None:
        raise InvalidArgument("--if-match", "must not be given with more than one document")
    result = table.bulk_json(chain(first, values), mode=mode)
    if session.as_json:
        session.show.json({"written": result.written, "refused": result.refused})
    else:
        refused = f", {result.refused:,} refused" if result.refused else ""
        session.show.line(f"{count(result.written, 'document')} stored{refused}")
    for each in result.errors:
        failures.report(each.error, as_json=session.as_json, document=each.row)
    if result.refused > len(result.errors):
        session.show.note(f"... and {result.refused - len(result.errors):,} more")
    if result.errors:
        raise failures.CheckFailed(failures.exit_code_of(result.errors[0].error))
