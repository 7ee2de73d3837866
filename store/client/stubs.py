"""The methods of ``cortado.v1``, by name: ``stubs.kv.Put`` is a :class:`Method`, made once from the descriptors.

A method is of no connection: which one a call goes to is decided when it is made.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, Final

from google.protobuf.descriptor import FileDescriptor, MethodDescriptor
from google.protobuf.descriptor_pb2 import MethodOptions
from google.protobuf.message import Message

from cortado.proto import message_class, streams_of
from cortado.proto.v1 import (
    auth_pb2,
    backups_pb2,
    calls_pb2,
    cluster_pb2,
    collection_pb2,
    documents_pb2,
    jobs_pb2,
    kv_pb2,
    large_transactions_pb2,
    quotas_pb2,
    schemas_pb2,
    settings_pb2,
    statistics_pb2,
    tables_pb2,
    transactions_pb2,
    watch_pb2,
)


@dataclass(frozen=True, slots=True, eq=False)
class Method:
    """A call of a service, with a ``name`` such as "cortado.v1.KeyValue/Put".

    ``changes``: it may change something, and is no read. ``is_read_at``: its requests hold the time to read in ``at``.
    ``is_resumable``: a stream whose replies carry tokens.
    """

    name: str
    request: type[Message]
    reply_of: Callable[[bytes], Any]
    client_streaming: bool
    server_streaming: bool
    changes: bool
    is_read_at: bool
    is_resumable: bool

    @property
    def stream_reply_of(self) -> Callable[[bytes], Any] | None:
        """Return the parser of a stream's replies; None if the reader parses them."""
        return self.reply_of if self.server_streaming and self.name != "cortado.v1.Calls/Exchange" else None


def _method(descriptor: MethodDescriptor) -> Method:
    service = descriptor.containing_service.full_name
    fields = descriptor.input_type.fields_by_name
    streams = streams_of(descriptor)
    return Method(
        name=f"{service}/{descriptor.name}",
        request=message_class(descriptor.input_type),
        reply_of=message_class(descriptor.output_type).FromString,
        client_streaming=streams.client,
        server_streaming=streams.server,
        changes=descriptor.GetOptions().idempotency_level != MethodOptions.NO_SIDE_EFFECTS,
        is_read_at="at" in fields,
        is_resumable="page_token" in fields,
    )


def _methods(file: FileDescriptor, service: str) -> Any:
    return SimpleNamespace(**{each.name: _method(each) for each in file.services_by_name[service].methods})


class Stubs:
    """The services."""

    auth: Final[Any] = _methods(auth_pb2.DESCRIPTOR, "Auth")
    backups: Final[Any] = _methods(backups_pb2.DESCRIPTOR, "Backups")
    restores: Final[Any] = _methods(backups_pb2.DESCRIPTOR, "Restores")
    calls: Final[Any] = _methods(calls_pb2.DESCRIPTOR, "Calls")
    cluster: Final[Any] = _methods(cluster_pb2.DESCRIPTOR, "Cluster")
    collection: Final[Any] = _methods(collection_pb2.DESCRIPTOR, "Collection")
    documents: Final[Any] = _methods(documents_pb2.DESCRIPTOR, "Documents")
    jobs: Final[Any] = _methods(jobs_pb2.DESCRIPTOR, "Jobs")
    kv: Final[Any] = _methods(kv_pb2.DESCRIPTOR, "KeyValue")
    quotas: Final[Any] = _methods(quotas_pb2.DESCRIPTOR, "Quotas")
    schemas: Final[Any] = _methods(schemas_pb2.DESCRIPTOR, "Schemas")
    settings: Final[Any] = _methods(settings_pb2.DESCRIPTOR, "Settings")
    statistics: Final[Any] = _methods(statistics_pb2.DESCRIPTOR, "Statistics")
    tables: Final[Any] = _methods(tables_pb2.DESCRIPTOR, "Tables")
    large_transactions: Final[Any] = _methods(large_transactions_pb2.DESCRIPTOR, "LargeTransactions")
    transactions: Final[Any] = _methods(transactions_pb2.DESCRIPTOR, "Transactions")
    watch: Final[Any] = _methods(watch_pb2.DESCRIPTOR, "Watch")
