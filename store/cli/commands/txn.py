"""``cortado txn``: transactions."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from typing import Annotated

from cortado.errors import InvalidArgument
from cortado.store.cli.answers import Answer, Said
from cortado.store.cli.options import Argument
from cortado.store.cli.render import count
from cortado.store.cli.session import Session
from cortado.store.cli.tree import command


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

    They count in their order. A line is an object with one member, which says what is done: put, update, delete, add or
    check. It names a table or a namespace, and has the options of the client's verb.
    """
    from cortado.schema.json_text import parse_json
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
                    apply_operation(transaction, parse_json(line.decode("utf-8", "surrogateescape"), ""))
                except InvalidArgument as refused:
                    # As the file has it, and not as the place of an operation.
                    field = ": ".join(filter(None, (f"line {number}", refused.field)))
                    raise replace(refused, field=field) from refused
                operations += 1
    text = f"committed {count(operations, 'operation')}, with etag {transaction.etag}"
    return Said(text, {"operations": operations, "etag": transaction.etag, "sums": transaction.sums})
