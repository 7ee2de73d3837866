"""Namespaces of pairs that are listed, dropped and brought back."""

from __future__ import annotations

from cortado.proto.v1 import kv_pb2
from cortado.store.client.connection import Connection
from cortado.store.client.drops import DropRecord, record_from_proto, record_number
from cortado.store.keys.names import check_namespace


class AsyncNamespaces:
    """All namespaces, over one connection."""

    def __init__(self, connection: Connection, *, timeout_s: float) -> None:
        self._connection = connection
        self._stub = connection.stubs.kv
        self._timeout_s = timeout_s

    async def names(self) -> list[str]:
        """Return the namespaces that have pairs, in order; all as of one timestamp."""
        found: list[str] = []
        request = kv_pb2.ListNamespacesRequest()
        while True:
            reply = await self._connection.call(self._stub.ListNamespaces, request, timeout_s=self._timeout_s)
            found += reply.namespaces
            if not reply.next_page_token:
                return found
            request.page_token = reply.next_page_token

    async def drop(self, namespace: str) -> DropRecord:
        """Drop a namespace. Raises NotFound."""
        request = kv_pb2.DropNamespaceRequest(namespace=check_namespace(namespace))
        reply = await self._connection.write(self._stub.DropNamespace, request, timeout_s=self._timeout_s)
        return record_from_proto(reply.dropped)

    async def undrop(self, namespace: str, number: int | None) -> None:
        """Undrop a namespace. Raises NotFound, AlreadyExists, InvalidArgument."""
        request = kv_pb2.UndropNamespaceRequest(namespace=check_namespace(namespace), number=record_number(number))
        await self._connection.write(self._stub.UndropNamespace, request, timeout_s=self._timeout_s)
