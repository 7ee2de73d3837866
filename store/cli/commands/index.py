"""``cortado index``: indexes of tables that may have rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from cortado.store.cli.answers import Answer, Rows, Said
from cortado.store.cli.asking import UNCHANGED, DryRunOption, YesOption, confirm
from cortado.store.cli.common_options import IndexArgument, QuietOption, TableArgument
from cortado.store.cli.options import Argument, Option
from cortado.store.cli.session import Session
from cortado.store.cli.tree import command

if TYPE_CHECKING:
    from cortado.store.catalog.descriptors import IndexDescriptor

NoWaitOption = Annotated[bool, Option("--no-wait", help="Return at once; cortado job list shows the progress.")]


@command(
    "index create",
    examples="""
        cortado index create flights.flights by_origin origin dest
        cortado index create flights.flights by_delay 'arr_delay desc' --no-wait
        cortado index create shop.orders by_customer customer number --unique
    """,
)
def create(
    session: Session,
    table: TableArgument,
    index: IndexArgument,
    field: Annotated[
        list[str], Argument(help="The indexed fields in order, each optionally followed by ' desc'.", metavar="FIELD")
    ],
    unique: Annotated[bool, Option("--unique", help="Allow no two documents with the same values.")] = False,
    no_wait: NoWaitOption = False,
    quiet: QuietOption = False,
) -> Answer:
    """Create an index of a table that is in use.

    The cluster builds it step by step beside other work, and continues under a new leader. Ctrl-C does not stop the
    build. If two documents have the same values of a unique index, the build fails and names them: drop the index, and
    correct the documents.
    """
    from cortado.store.cli.building import shown_until_built
    from cortado.store.cli.commands.table import key_field
    from cortado.store.client import Index

    wanted = Index(index, [key_field(each) for each in field], unique)
    with session.client() as client:
        started = client.create_index(table, wanted, wait=False)
        record = {"table": table, **index_json(started)}
        if no_wait:
            return Said(f"job {started.job_id} builds index {index} of table {table}", record)
        shown_until_built(session, client, started.job_id, quiet=quiet)
        [built] = [each for each in client.indexes(table) if each.name == index] or [started]
    built.check_ready(table, built.ready_ts)
    return Said(f"index {index} of table {table} is {built.state}", {"table": table, **index_json(built)})


@command("index drop", examples="cortado index drop flights.flights by_origin --yes")
def drop(
    session: Session, table: TableArgument, index: IndexArgument, dry_run: DryRunOption = False, yes: YesOption = False
) -> Answer:
    """Drop an index of a table, even while it is being built."""
    from cortado.errors import NotFound

    with session.client() as client:
        if index not in [each.name for each in client.indexes(table)]:
            raise NotFound("index", f"{index} of table {table}")
        record = {"table": table, "index": index, "dropped": not dry_run}
        if dry_run:
            return Said(f"would drop index {index} of table {table}", record, note=UNCHANGED)
        confirm(f"Drop index {index} of table {table}?", yes=yes)
        client.drop_index(table, index)
    return Said(f"dropped index {index} of table {table}", record)


@command(
    "index list",
    examples="""
        cortado index list flights.flights
        cortado index list flights.flights -o json
    """,
)
def list_indexes(session: Session, table: TableArgument) -> Answer:
    """List a table's indexes, each with its state."""
    from cortado.store.cli.commands.table import parts_text

    with session.client() as client:
        found = client.indexes(table)
    rows = [
        (each.name, parts_text(each.parts), "yes" if each.unique else "no", each.state, each.failure) for each in found
    ]
    return Rows(("index", "fields", "unique", "state", "problem"), rows, map(index_json, found))


def index_json(index: IndexDescriptor) -> dict[str, Any]:
    """Return an index's description as JSON."""
    from cortado.store.cli.commands.table import part_json

    shown = {
        "name": index.name,
        "unique": index.unique,
        "parts": [part_json(part) for part in index.parts],
        "state": str(index.state),
    }
    if index.job_id:
        shown["job"] = index.job_id
    if index.failure:
        shown |= {"failure": index.failure, "failed_keys": list(index.failed_keys)}
    return shown
