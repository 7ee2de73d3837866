"""The operations of a transaction between their messages and the values of :mod:`cortado.store.transactions`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from struct import unpack
from typing import Any

from cortado.errors import InvalidArgument
from cortado.proto.v1 import common_pb2
from cortado.store.catalog.catalog import Catalog
from cortado.store.keys.packing import LENGTH_BYTES, cut
from cortado.store.keys.types import KeyValue
from cortado.store.kv.batches import KvBatch
from cortado.store.kv.operations import KvAdd, KvCheck, KvDelete, KvPut
from cortado.store.mvcc.evaluation import Condition
from cortado.store.mvcc.expiry import NEVER
from cortado.store.server.convert import condition_value, expiry_value, key_values
from cortado.store.server.document_messages import document_input, update_changes
from cortado.store.tables.operations import Add, Check, Delete, DocumentInput, Put, Update
from cortado.store.transactions.operations import OnPairs, Operation


def operation_count(messages: Sequence[common_pb2.Operation]) -> int:
    """Return the number of operations; a packed one counts as many as it holds."""
    packed = [each for each in messages if each.HasField("packed_pairs")]
    return len(messages) - len(packed) + sum([len(each.packed_pairs.key_lengths) // LENGTH_BYTES for each in packed])


def documents_of(messages: Sequence[common_pb2.Operation]) -> dict[int, tuple[str, str, DocumentInput]]:
    """Return the documents of puts, each with its database and table, by the operation's place. Raises
    InvalidArgument."""
    return {
        place: (
            each.put.database,
            each.put.table,
            document_input(each.put.document, f"operations[{place}].put.document"),
        )
        for place, each in enumerate(messages)
        if each.HasField("put")
    }


def operations_of(
    catalog: Catalog, messages: Sequence[common_pb2.Operation], field: str, first: int = 0
) -> Iterator[Operation]:
    """Yield the operations one by one. Raises InvalidArgument naming the operation, counted from ``first``; NotFound
    for its table."""
    return (_operation(catalog, each, f"{field}[{place}]") for place, each in enumerate(messages, first))


def _operation(catalog: Catalog, message: common_pb2.Operation, field: str) -> Operation:
    kind = message.WhichOneof("operation")
    if kind is None:
        raise InvalidArgument(field, "must set one of the operations")
    each: Any = getattr(message, kind)
    field = f"{field}.{kind}"
    if kind in ("put_pair", "delete_pair", "add_pair", "check_pair", "packed_pairs"):
        return OnPairs(each.namespace, _on_pair(kind, each, field))
    if kind == "put":
        document = document_input(each.document, f"{field}.document")
        expiry = expiry_value(each, f"{field}.expiry")
        return Put(each.database, each.table, document, condition=_condition(each, field), expiry=expiry)
    return _on_document(kind, each, _key(catalog, each, field), field)


def _on_document(kind: str, each: Any, key: Sequence[KeyValue], field: str) -> Operation:
    match kind:
        case "update":
            changes = update_changes(each.changes_json, f"{field}.changes_json")
            expiry = expiry_value(each, f"{field}.expiry")
            return Update(each.database, each.table, key, changes, _condition(each, field), json=True, expiry=expiry)
        case "delete":
            return Delete(each.database, each.table, key, _condition(each, field))
        case "add":
            return Add(each.database, each.table, key, each.field, each.delta, *_bounds(each, field))
        case _:
            return Check(each.database, each.table, key, _required_condition(each, field))


def _on_pair(kind: str, each: Any, field: str) -> KvPut | KvDelete | KvAdd | KvCheck | KvBatch:
    match kind:
        case "put_pair":
            expiry = expiry_value(each, f"{field}.expiry") or NEVER
            return KvPut(each.key, each.value, _condition(each, field, kv=True), expiry)
        case "delete_pair":
            return KvDelete(each.key, _condition(each, field, kv=True))
        case "add_pair":
            return KvAdd(each.key, each.delta, *_bounds(each, field))
        case "check_pair":
            return KvCheck(each.key, _required_condition(each, field, kv=True))
        case _:
            return packed_pairs(each, field)


def _key(catalog: Catalog, each: Any, field: str) -> Sequence[KeyValue]:
    return key_values(each.key, catalog.table(each.database, each.table).key, f"{field}.key")


def _condition(each: Any, field: str, *, kv: bool = False) -> Condition | None:
    if not each.HasField("condition"):
        return None
    return condition_value(each.condition, field=f"{field}.condition", kv=kv)


def _required_condition(each: Any, field: str, *, kv: bool = False) -> Condition:
    condition = _condition(each, field, kv=kv)
    if condition is None:
        raise InvalidArgument(f"{field}.condition", "must be set: a check is nothing else")
    return condition


def _bounds(each: Any, field: str) -> tuple[int | None, int | None]:
    least = each.min if each.HasField("min") else None
    most = each.max if each.HasField("max") else None
    if least is not None and most is not None and least > most:
        raise InvalidArgument(f"{field}.min", f"must not be above max, {most}", str(least))
    return least, most


# --- many at once --------------------------------------------------------------------------------------------------


def packed_pairs(packed: common_pb2.KvPackedOperations, field: str) -> KvBatch:
    """Return packed pairs as one batch. Raises InvalidArgument."""
    keys = _cut(packed.keys, packed.key_lengths, f"{field}.keys")
    values = _cut(packed.values, packed.value_lengths, f"{field}.values")
    if len(keys) != len(values):
        problem = f"are of {len(values)} values, and there are {len(keys)} keys"
        raise InvalidArgument(f"{field}.value_lengths", problem)
    expiry = expiry_value(packed, f"{field}.expiry") or NEVER
    return KvBatch(keys, values, _deletes(packed.deletes, values, f"{field}.deletes"), expiry)


def _cut(joined: bytes, lengths: bytes, field: str) -> tuple[bytes, ...]:
    try:
        return cut(joined, lengths)
    except ValueError as contradiction:
        raise InvalidArgument(field, str(contradiction)) from None


def _deletes(packed: bytes, values: Sequence[bytes], field: str) -> frozenset[int]:
    count, left = divmod(len(packed), LENGTH_BYTES)
    if left:
        raise InvalidArgument(field, f"must have {LENGTH_BYTES} bytes a place", f"{len(packed)} bytes")
    places = unpack(f"<{count}I", packed)
    for before, place in zip((-1, *places), places, strict=False):
        if place <= before:
            raise InvalidArgument(field, f"must rise: {place} follows {before}")
        if place >= len(values):
            raise InvalidArgument(field, f"names an operation that is not there: there are {len(values)}", str(place))
        if values[place]:
            raise InvalidArgument(field, "names an operation that has a value", str(place))
    return frozenset(places)
