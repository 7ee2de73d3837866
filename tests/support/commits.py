"""A fake server's answers to commits, and a function that a client runs until it has committed."""

from __future__ import annotations

from typing import Any

from cortado.errors import CortadoError, WriteConflict
from cortado.proto.v1 import transactions_pb2
from cortado.store.client import AsyncTransaction, Client
from support.faces import run_core
from support.fake_server import Handler, break_off, header, refuse

CONFLICT = WriteConflict("k", "0.1.0", "0.2.0")
COMMITTED = transactions_pb2.CommitResponse(header=header(2_000), etag="0.2000.0", sums=[5])


def answering(*ends: CortadoError | type[ConnectionError] | None) -> Handler:
    """Return a handler that gives one end after the other, the last one for ever: an error, a lost answer, or None for
    a success."""
    left = list(ends)

    def answer(request: Any, context: Any) -> transactions_pb2.CommitResponse:
        end = left.pop(0) if len(left) > 1 else left[0]
        if end is ConnectionError:
            break_off(context)
        if isinstance(end, CortadoError):
            refuse(context, end)
        return COMMITTED

    return answer


def run_adds(client: Client, **options: Any) -> list[int]:
    """Run a function that adds 5, and return the numbers of its runs."""
    runs: list[int] = []

    async def once(txn: AsyncTransaction) -> list[int]:
        runs.append(len(runs) + 1)
        await txn.kv("n").add(b"k", 5)
        return runs

    return run_core(client, client._core.run(once, **options))
