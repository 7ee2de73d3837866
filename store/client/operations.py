"""Writes as operations of a transaction: the requests of a table or a namespace, kept for a commit."""

from __future__ import annotations

from typing import Any, Final, TypeAlias

from cortado.errors import InvalidArgument
from cortado.proto.v1 import common_pb2
from cortado.store.client.arguments import whole

INT64_MIN: Final = -(1 << 63)
INT64_MAX: Final = (1 << 63) - 1
_LENGTH_BYTES: Final = 4

Scope: TypeAlias = tuple[str, str]
"""The place of a read: a table, as its database and name, or a namespace, as "" and its name."""


def operations_of(method: str, request: Any) -> list[common_pb2.Operation] | None:
    """Return a write's operations, None for one that no transaction can hold."""
    match method:
        case "cortado.v1.Transactions/Commit":
            return list(request.operations)
        case "cortado.v1.Documents/Put":
            put = _on_table(common_pb2.DocumentPut, request, document=request.document)
            _copy_expiry(request, put)
            operation = common_pb2.Operation(put=put)
        case "cortado.v1.Documents/Update":
            update = _on_table(common_pb2.DocumentUpdate, request, key=request.key, changes_json=request.changes_json)
            _copy_expiry(request, update)
            operation = common_pb2.Operation(update=update)
        case "cortado.v1.Documents/Delete":
            operation = common_pb2.Operation(delete=_on_table(common_pb2.DocumentDelete, request, key=request.key))
        case "cortado.v1.KeyValue/Put":
            # Filled in where it is, since a message that is given would be copied.
            operation = common_pb2.Operation()
            pair = operation.put_pair
            pair.namespace, pair.key, pair.value = request.namespace, request.key, request.value
            if request.HasField("condition"):
                pair.condition.CopyFrom(request.condition)
            _copy_expiry(request, pair)
        case "cortado.v1.KeyValue/Delete":
            delete = common_pb2.KvDelete(namespace=request.namespace, key=request.key, condition=_condition(request))
            operation = common_pb2.Operation(delete_pair=delete)
        case _:
            return None
    return [operation]


def scope_of(message: Any) -> Scope:
    """Return the scope of an operation's message (the content of its ``oneof``), or of a request to read."""
    fields = message.DESCRIPTOR.fields_by_name
    if "namespace" in fields:
        return "", message.namespace
    table = message if "database" in fields else message.table
    return table.database, table.table


def count_of(operation: common_pb2.Operation) -> int:
    """Return the number of operations in it."""
    if operation.HasField("packed_pairs"):
        return len(operation.packed_pairs.key_lengths) // _LENGTH_BYTES
    return 1


def addition(delta: int, least: int | None, most: int | None) -> dict[str, int]:
    """Return an add's delta, and its bounds if there are any. Raises InvalidArgument."""
    asked = {"delta": whole(delta, "delta", INT64_MIN, INT64_MAX)}
    for name, bound in (("min", least), ("max", most)):
        if bound is not None:
            asked[name] = whole(bound, name, INT64_MIN, INT64_MAX)
    if least is not None and most is not None and least > most:
        raise InvalidArgument("min", f"must not be above max, {most}", str(least))
    return asked


def required(condition: common_pb2.Condition | None, names: str) -> common_pb2.Condition:
    """Return the condition of a requirement. Raises InvalidArgument for None."""
    if condition is None:
        raise InvalidArgument("condition", f"must be one of {names}")
    return condition


def _on_table(kind: Any, request: Any, **fields: Any) -> Any:
    table = request.table
    return kind(database=table.database, table=table.table, condition=_condition(request), **fields)


def _copy_expiry(request: Any, operation: Any) -> None:
    if request.HasField("expiry"):
        operation.expiry.CopyFrom(request.expiry)


def _condition(request: Any) -> common_pb2.Condition | None:
    return request.condition if request.HasField("condition") else None
