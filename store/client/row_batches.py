"""The rows of a scan as they come: batches with their schemas, and the end of each reply."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

from cortado.errors import NotFound
from cortado.proto.v1 import common_pb2, documents_pb2
from cortado.schema.model import Schema
from cortado.store.client.documents import RowBatch, projection
from cortado.store.client.known_schemas import KnownSchemas


async def row_batches(
    replies: AsyncGenerator[Any, None], schemas: KnownSchemas
) -> AsyncGenerator[tuple[list[RowBatch], bytes], None]:
    """Yield the rows of each reply, and the token from which the scan goes on behind them. Raises NotFound."""
    projected, projected_text = None, ""
    async with aclosing(replies):
        async for reply in replies:
            if reply.projected_schema and reply.projected_schema != projected_text:
                projected_text = reply.projected_schema
                projected = projection(projected_text)
            batches = [await _row_batch(each, projected, schemas) for each in reply.batches]
            token = reply.next_page_token
            # The rows are out of it, which is kept by none of them.
            del reply
            yield batches, token


async def _row_batch(batch: common_pb2.RowBatch, projected: Schema | None, schemas: KnownSchemas) -> RowBatch:
    schema = await schemas.by_id(batch.schema_id) if batch.schema_id else projected
    if schema is None:
        raise NotFound("schema", "of the selected columns")
    return RowBatch(batch.schema_id, batch.bodies, batch.lengths, batch.versions, schema)


async def one_page(
    replies: AsyncGenerator[tuple[list[RowBatch], bytes], None], request: documents_pb2.ScanRequest, bytes_max: int
) -> tuple[list[RowBatch], bytes]:
    """Return the rows of the request's page, fewer if they have ``bytes_max`` or more, and the token behind them."""
    found: list[RowBatch] = []
    size, left = 0, request.page_size
    async with aclosing(replies):
        async for batches, token in replies:
            found += batches
            size += sum(len(each.bodies) for each in batches)
            left -= sum(map(len, batches))
            if not token or left <= 0 or size >= bytes_max:
                return found, token
            # If the stream breaks and goes on elsewhere, only the rest is asked for.
            request.page_size = left
    return found, b""


async def each_batch(
    replies: AsyncGenerator[tuple[list[RowBatch], bytes], None], *, is_empty: bool
) -> AsyncGenerator[RowBatch, None]:
    """Yield the rows alone. A scan that asks for nothing ``is_empty``: it is not begun."""
    async with aclosing(replies):
        if not is_empty:
            async for batches, _ in replies:
                for batch in batches:
                    yield batch
