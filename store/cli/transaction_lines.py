"""The operations of ``cortado txn apply``, a line each: :mod:`cortado.store.transfer.operation_json` has their form."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cortado.store.transfer.key_text import key_of_json
from cortado.store.transfer.operation_json import OperationAsked, read_operation

if TYPE_CHECKING:
    from cortado.store.client import Transaction


def apply_operation(transaction: Transaction, value: Any) -> None:
    """Add one operation, to be committed with the others. Raises InvalidArgument naming the member, and the client's
    errors."""
    asked = read_operation(value)
    if asked.table:
        _on_row(transaction, asked)
    else:
        getattr(transaction.kv(asked.namespace), asked.kind)(**asked.members)


def _on_row(transaction: Transaction, asked: OperationAsked) -> None:
    table, members = transaction.table(asked.table), asked.members
    if asked.kind == "put":
        table.put(table.codec.from_json(members.pop("document")), **members)
        return
    members["key"] = key_of_json(members["key"], table.descriptor.key, f"{asked.kind}.key")
    if asked.kind == "update":
        members["changes"] = table.codec.changes_from_json(members.pop("set"))
    getattr(table, asked.kind)(**members)
