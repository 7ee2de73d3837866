"""The generated stubs, made once for a channel: the one file that calls their untyped constructors."""

from __future__ import annotations

from typing import Any, Protocol

import grpc

from cortado.proto.v1.cluster_pb2_grpc import ClusterStub
from cortado.proto.v1.documents_pb2_grpc import DocumentsStub
from cortado.proto.v1.kv_pb2_grpc import KeyValueStub
from cortado.proto.v1.schemas_pb2_grpc import SchemasStub
from cortado.proto.v1.tables_pb2_grpc import TablesStub


class Method(Protocol):
    """A call of a stub: takes a request (or an iterator of them), answers with a reply (or an iterator)."""

    def __call__(self, request: Any, *, timeout: float | None = None) -> Any: ...


class Stubs:
    """The services of ``cortado.v1`` on one channel."""

    def __init__(self, channel: grpc.Channel) -> None:
        self.cluster: Any = ClusterStub(channel)  # type: ignore[no-untyped-call]
        self.documents: Any = DocumentsStub(channel)  # type: ignore[no-untyped-call]
        self.kv: Any = KeyValueStub(channel)  # type: ignore[no-untyped-call]
        self.schemas: Any = SchemasStub(channel)  # type: ignore[no-untyped-call]
        self.tables: Any = TablesStub(channel)  # type: ignore[no-untyped-call]
