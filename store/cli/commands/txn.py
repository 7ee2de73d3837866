"""``cortado txn``: transactions."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

from cortado.errors import InvalidArgument
from cortado.store.cli.answers import Answer, Rows, Said
from cortado.store.cli.asking import UNCHANGED, DryRunOption, YesOption, confirm
from cortado.store.cli.options import Argument
from cortado.store.cli.render import count, moment
from cortado.store.cli.session import Session
from cortado.store.cli.tree import command

if TYPE_CHECKING:
    from cortado.store.client import LargeTransactionRecord


@command(
    "txn apply",
    examples="""
        cortado txn apply operations.jsonl
        echo '{"add": {"namespace": "counters", "key": "sold", "delta": 1}}' | cortado txn apply
    """,
)
def apply(
    session: Session,
    file: Annotated[
        str | None,
        Argument(help="Operations as JSON, one a line.", show_default="read standard input", metavar="FILE"),
    ] = None,
) -> Answer:
    """Commit operations on documents and pairs, all of them or none.

    Operations apply in their order. Each line is an object with one member, which names the operation: put, update,
    delete, add or require. It names a table or a namespace, and takes the options of the same call in the Python
    client.
    """
    from cortado.schema.json_text import parse_json_bytes
    from cortado.store.cli.input import STDIN, json_input
    from cortado.store.cli.transaction_lines import apply_operation

    with ExitStack() as stack:
        given = json_input(file or STDIN, stack)
        client = stack.enter_context(session.client())
        operations = 0
        with client.transaction() as transaction:
            for number, line in enumerate(given.lines, 1):
                if line.isspace():
                    continue
                try:
                    apply_operation(transaction, parse_json_bytes(line, ""))
                except InvalidArgument as refused:
                    # As the file has it, and not as the place of an operation.
                    field = ": ".join(filter(None, (f"line {number}", refused.field)))
                    raise replace(refused, field=field) from refused
                operations += 1
    text = f"committed {count(operations, 'operation')}, with etag {transaction.etag}"
    return Said(text, {"operations": operations, "etag": transaction.etag, "sums": transaction.sums})


@command(
    "txn list",
    examples="""
        cortado txn list
        cortado txn list -o json
    """,
)
def list_(session: Session) -> Answer:
    """List the large transactions that are open, and those that ended in the last day.

    Rows that an open one has staged are locked for other writers. It is aborted when its lease is no longer renewed.
    """
    with session.client() as client:
        found = client.large_transactions.list()
    columns = ("transaction", "state", "began", "tables", "label")
    return Rows(columns, [_row(each) for each in found], [_record(each) for each in found])


@command("txn abort", examples="cortado txn abort 9f86d081884c7d659a2feaa0c55ad015 --yes")
def abort(
    session: Session,
    transaction: Annotated[str, Argument(help="The transaction, as txn list shows it.", metavar="TRANSACTION")],
    dry_run: DryRunOption = False,
    yes: YesOption = False,
) -> Answer:
    """Abort an open large transaction: it has no effect, and its locks are released.

    One that has ended stays as it is.
    """
    with session.client() as client:
        found = client.large_transactions.get(transaction)
        if found.state == "open" and dry_run:
            return Said(f"would abort {transaction}", _record(found), note=UNCHANGED)
        if found.state == "open":
            confirm(f"Abort {transaction}{f' ({found.label})' if found.label else ''}?", yes=yes)
            found = client.large_transactions.abort(transaction)
    return Said(f"the transaction {transaction} is {_state(found)}", _record(found))


def _state(found: LargeTransactionRecord) -> str:
    return f"aborted: {found.cause}" if found.state == "aborted" else found.state


def _row(found: LargeTransactionRecord) -> tuple[str, ...]:
    return found.transaction_id, _state(found), moment(found.start), ", ".join(found.tables), found.label or "-"


def _record(found: LargeTransactionRecord) -> dict[str, Any]:
    return {
        "transaction_id": found.transaction_id,
        "state": found.state,
        "start": str(found.start),
        "committed": None if found.committed is None else str(found.committed),
        "tables": list(found.tables),
        "label": found.label,
        "is_resolved": found.is_resolved,
        "cause": found.cause,
        "principal": found.principal,
    }
