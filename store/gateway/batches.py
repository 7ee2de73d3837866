"""Many writes at once, all or nothing: ``POST /v1/db/{database}:batch``.

``{"operations": [...]}``, each in the form of ``cortado txn apply`` (:mod:`cortado.store.transfer.operation_json`);
tables are those of the database. Operations apply in order: each sees the ones before it.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

from starlette.responses import Response

from cortado.errors import InvalidArgument
from cortado.store.client.transaction import AsyncTransaction
from cortado.store.client.transaction_view import OPERATIONS_MAX
from cortado.store.gateway.calls import IDEMPOTENCY, JSON, Call, Operation, json_response
from cortado.store.gateway.conditions import quoted
from cortado.store.keys.names import check_database, check_table
from cortado.store.transfer.key_text import key_of_json
from cortado.store.transfer.operation_json import OperationAsked, read_operation

BATCH: Final = "/v1/db/{database}:batch"

_AT_ONCE: Final = 64
"""Operations that are prepared before the loop turns to other calls."""


def operations() -> list[Operation]:
    """Return the rows for batches."""
    summary = "Puts, updates, deletes, adds and requirements of documents and pairs, all of them or none."
    return [Operation("POST", BATCH, batch, summary, (IDEMPOTENCY,), takes=(JSON,))]


async def batch(call: Call) -> Response:
    """Return the etag of all that the batch wrote, and the new value of each add."""
    database = check_database(call.name("database"))
    asked = await call.json()
    if not isinstance(asked, dict) or asked.keys() != {"operations"} or not isinstance(asked["operations"], list):
        raise InvalidArgument("body", 'must be {"operations": [...]}')
    listed = asked["operations"]
    if not 1 <= len(listed) <= OPERATIONS_MAX:
        raise InvalidArgument("operations", f"must be 1 to {OPERATIONS_MAX}", str(len(listed)))
    transaction = (await call.writer()).transaction()
    async with transaction:
        for i, each in enumerate(listed):
            if i % _AT_ONCE == 0:
                await asyncio.sleep(0)
            try:
                await _apply(transaction, database, read_operation(each))
            except InvalidArgument as error:
                error.field = f"operations[{i}].{error.field}".rstrip(".")
                raise
    return json_response(
        {"etag": transaction.etag or None, "sums": transaction.sums},
        headers={"ETag": quoted(transaction.etag)} if transaction.etag else None,
    )


async def _apply(transaction: AsyncTransaction, database: str, asked: OperationAsked) -> None:
    members: dict[str, Any] = asked.members
    if not asked.table:
        await getattr(transaction.kv(asked.namespace), asked.kind)(**members)
        return
    table = transaction.table(f"{database}.{check_table(asked.table)}")
    if asked.kind == "put":
        await table.put(await table.codec.from_json(members.pop("document")), **members)
        return
    members["key"] = key_of_json(members["key"], (await table.descriptor()).key, "key")
    if asked.kind == "update":
        members["changes"] = await table.codec.changes_from_json(members.pop("set"))
    await getattr(table, asked.kind)(**members)
