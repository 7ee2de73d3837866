"""Quotas: limits of principals, databases and namespaces, and their use."""

from __future__ import annotations

from dataclasses import dataclass

from cortado.proto.v1 import quotas_pb2 as pb
from cortado.store.client.arguments import text, whole
from cortado.store.client.connection import Connection
from cortado.store.client.public_faces import public_face
from cortado.store.quotas.limits import BYTES_PER_SECOND_MAX, CALLS_PER_SECOND_MAX, STORED_BYTES_MAX


@dataclass(frozen=True, slots=True)
class QuotaInfo:
    """A quota; None means no limit. Its use: ``used_bytes`` are stored, as the leader has measured last, and
    ``refused`` counts calls refused since the leader started or the quota was changed."""

    target: str
    calls_per_second: int | None
    bytes_per_second: int | None
    stored_bytes: int | None
    used_bytes: int | None = None
    refused: int = 0


@public_face
class AsyncQuotas:
    """Limits of the cluster's use."""

    def __init__(self, connection: Connection, *, timeout_s: float) -> None:
        self._connection = connection
        self._timeout_s = timeout_s
        self._stub = connection.stubs.quotas

    async def set(
        self,
        target: str,
        *,
        calls_per_second: int | None = None,
        bytes_per_second: int | None = None,
        stored_bytes: int | None = None,
    ) -> None:
        """Set the quota of ``principal:NAME``, ``database:NAME`` or ``namespace:NAME``, in the place of the one
        before: a limit that is not given does not exist. The rates hold on each node. Raises InvalidArgument, and
        TooLarge if there are too many quotas."""
        request = pb.SetQuotaRequest(
            target=text(target, "target"),
            calls_per_second=_limit(calls_per_second, "calls_per_second", CALLS_PER_SECOND_MAX),
            bytes_per_second=_limit(bytes_per_second, "bytes_per_second", BYTES_PER_SECOND_MAX),
            stored_bytes=_limit(stored_bytes, "stored_bytes", STORED_BYTES_MAX),
        )
        await self._connection.write(self._stub.Set, request, timeout_s=self._timeout_s)

    async def remove(self, target: str) -> None:
        """Remove a quota. Raises NotFound."""
        request = pb.RemoveQuotaRequest(target=text(target, "target"))
        await self._connection.write(self._stub.Remove, request, timeout_s=self._timeout_s)

    async def get(self, target: str) -> QuotaInfo:
        """Return one quota. Raises NotFound."""
        request = pb.GetQuotaRequest(target=text(target, "target"))
        return _info((await self._connection.call(self._stub.Get, request, timeout_s=self._timeout_s)).quota)

    async def all(self) -> list[QuotaInfo]:
        """Return all quotas, by their targets."""
        found: list[QuotaInfo] = []
        request = pb.ListQuotasRequest()
        while True:
            reply = await self._connection.call(self._stub.List, request, timeout_s=self._timeout_s)
            found += map(_info, reply.quotas)
            if not reply.next_page_token:
                return found
            request.page_token = reply.next_page_token


def _limit(value: int | None, field: str, high: int) -> int:
    return 0 if value is None else whole(value, field, 1, high)


def _info(state: pb.QuotaState) -> QuotaInfo:
    quota = state.quota
    return QuotaInfo(
        quota.target,
        quota.calls_per_second or None,
        quota.bytes_per_second or None,
        quota.stored_bytes or None,
        state.used_bytes if state.HasField("used_bytes") else None,
        state.refused,
    )
