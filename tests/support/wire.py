"""Raw stubs of ``cortado.v1``, as a client in any language would have them, and the errors that calls end with."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import grpc
import pytest

from cortado.errors import CortadoError
from cortado.proto.v1 import (
    cluster_pb2_grpc,
    collection_pb2_grpc,
    common_pb2,
    documents_pb2,
    documents_pb2_grpc,
    kv_pb2_grpc,
    schemas_pb2,
    schemas_pb2_grpc,
    tables_pb2,
    tables_pb2_grpc,
    transactions_pb2,
    transactions_pb2_grpc,
)
from cortado.store.clock.timestamp import Timestamp
from support.grpc_errors import from_rpc_error, was_answered


class Wire:
    """All services on one channel."""

    def __init__(self, endpoint: str, *, is_alone: bool = False) -> None:
        """Channels to one endpoint share a connection, but for one that ``is_alone``."""
        self.endpoint = endpoint
        self.channel = grpc.insecure_channel(endpoint, [("grpc.use_local_subchannel_pool", int(is_alone))])
        self.kv: Any = kv_pb2_grpc.KeyValueStub(self.channel)
        self.cluster: Any = cluster_pb2_grpc.ClusterStub(self.channel)
        self.collection: Any = collection_pb2_grpc.CollectionStub(self.channel)
        self.documents: Any = documents_pb2_grpc.DocumentsStub(self.channel)
        self.schemas: Any = schemas_pb2_grpc.SchemasStub(self.channel)
        self.tables: Any = tables_pb2_grpc.TablesStub(self.channel)
        self.transactions: Any = transactions_pb2_grpc.TransactionsStub(self.channel)

    def register(self, subject: str, *fields: dict[str, Any]) -> int:
        """Register a record of these fields as the subject's next version, and return its id."""
        schema = json.dumps({"type": "record", "name": "R", "fields": fields})
        request = schemas_pb2.RegisterSchemaRequest(subject=subject, schema=schema)
        return int(self.schemas.Register(request, timeout=10).version.schema_id)

    def create_table(self, database: str, name: str, key: list[str], *indexes: tables_pb2.Index) -> None:
        parts = [tables_pb2.KeyPart(path=path) for path in key]
        request = tables_pb2.CreateTableRequest(database=database, name=name, key=parts, indexes=indexes)
        self.tables.CreateTable(request, timeout=10)

    def commit(self, *operations: common_pb2.Operation, **more: Any) -> Any:
        """Commit all of ``operations`` at one timestamp; ``more`` are other fields of the request."""
        request = transactions_pb2.CommitRequest(operations=operations, **more)
        return self.transactions.Commit(request, timeout=30)


def refused(call: Callable[[], Any]) -> CortadoError:
    """Return the error that the server itself ended ``call`` with; a stream is read to its end."""
    with pytest.raises(grpc.RpcError) as ended:
        reply = call()
        if hasattr(reply, "__next__"):
            list(reply)
    assert was_answered(ended.value), f"no answer of the server's: {ended.value}"
    return from_rpc_error(ended.value)


def patient(read: Callable[[], Any]) -> Any:
    """Return the result of ``read``. As clients do, it calls again while the node is unavailable.

    A node that is asked for one timestamp asks its leader, and leaders change.
    """
    while True:
        try:
            return read()
        except grpc.RpcError as error:
            if error.code() is not grpc.StatusCode.UNAVAILABLE:
                raise


def table_name(full_name: str) -> documents_pb2.TableName:
    database, _, table = full_name.partition(".")
    return documents_pb2.TableName(database=database, table=table)


def int_key(*values: int) -> common_pb2.Key:
    return common_pb2.Key(parts=[common_pb2.Value(int64=value) for value in values])


def json_document(value: object) -> common_pb2.Document:
    return common_pb2.Document(json=json.dumps(value))


def put_pair(namespace: str, key: bytes, value: bytes = b"", **more: Any) -> common_pb2.Operation:
    return common_pb2.Operation(put_pair=common_pb2.KvPut(namespace=namespace, key=key, value=value, **more))


def put_document(full_name: str, value: object, **more: Any) -> common_pb2.Operation:
    """Return a put of a JSON document."""
    put = common_pb2.DocumentPut(**_names(full_name), document=json_document(value), **more)
    return common_pb2.Operation(put=put)


def update_document(full_name: str, key: common_pb2.Key, changes: object, **more: Any) -> common_pb2.Operation:
    update = common_pb2.DocumentUpdate(**_names(full_name), key=key, changes_json=json.dumps(changes), **more)
    return common_pb2.Operation(update=update)


def delete_document(full_name: str, key: common_pb2.Key, **more: Any) -> common_pb2.Operation:
    return common_pb2.Operation(delete=common_pb2.DocumentDelete(**_names(full_name), key=key, **more))


def _names(full_name: str) -> dict[str, str]:
    database, _, table = full_name.partition(".")
    return {"database": database, "table": table}


def timestamp_of(message: common_pb2.Timestamp) -> Timestamp:
    return Timestamp(message.epoch, message.wall_ms, message.logical)
