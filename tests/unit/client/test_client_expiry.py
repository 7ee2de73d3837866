"""The expiry of writes: the fields that are sent."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta

import pytest

from cortado.proto.v1 import common_pb2, documents_pb2, schemas_pb2, tables_pb2, transactions_pb2
from cortado.store.client import Client
from support.faces import FACES, open_client
from support.fake_server import FakeServer, header

ROW = {"type": "record", "name": "Row", "fields": [{"name": "id", "type": "long"}]}
TABLE = tables_pb2.Table(
    table_id=1,
    database="d",
    name="t",
    subject="d.t",
    key=[tables_pb2.KeyPart(path="id", type=tables_pb2.KEY_TYPE_INT64)],
)
KEY = common_pb2.Key(parts=[common_pb2.Value(int64=1)])
HOUR = common_pb2.Expiry(ttl_ms=3_600_000)


@pytest.fixture
def server() -> Iterator[FakeServer]:
    version = schemas_pb2.SchemaVersion(schema_id=1, subject="d.t", version=1, schema=json.dumps(ROW))
    document = common_pb2.Document(schema_id=1, avro=b"\x02")
    found = documents_pb2.FoundDocument(document=document, etag="0.1.0", expires_ms=7)
    with FakeServer().running() as running:
        running.handlers |= {
            "Tables.DescribeTable": lambda request, context: tables_pb2.DescribeTableResponse(
                header=header(), table=TABLE
            ),
            "Schemas.Get": lambda request, context: schemas_pb2.GetSchemaResponse(header=header(), version=version),
            "Documents.Update": lambda request, context: documents_pb2.UpdateDocumentResponse(
                header=header(), found=found
            ),
            "Transactions.Commit": lambda request, context: transactions_pb2.CommitResponse(
                header=header(2_000), etag="0.2000.0"
            ),
        }
        yield running


@pytest.fixture(params=FACES)
def client(server: FakeServer, request: pytest.FixtureRequest) -> Iterator[Client]:
    with open_client(request.param, server.endpoint, timeout_s=5) as opened:
        yield opened


def test_an_update_may_say_nothing_but_when_the_document_expires(server: FakeServer, client: Client) -> None:
    assert client.table("d.t").update(1, {}, expires=timedelta(hours=1)).expires_ms == 7
    [update] = server.calls("Documents.Update")
    assert (update.key, update.changes_json, update.expiry) == (KEY, "{}", HOUR)
    with client.transaction() as txn:
        txn.table("d.t").update(1, {}, expires=timedelta(hours=1))
    [commit] = server.calls("Transactions.Commit")
    [operation] = commit.operations
    assert (operation.update.key, operation.update.changes_json, operation.update.expiry) == (KEY, "{}", HOUR)
