"""The calls that drop and bring back, as a client in any language makes them: wrong ones, and each of them twice."""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from cortado import errors
from cortado.proto.v1 import common_pb2, documents_pb2, tables_pb2
from cortado.store.client import Client
from support.server_process import ServerProcess
from support.wire import Wire, put_document, refused, table_name

pytestmark = pytest.mark.process

_NUMBERS = itertools.count(1)


@pytest.fixture
def wire(server: ServerProcess) -> Iterator[Wire]:
    wire = Wire(server.endpoint)
    yield wire
    wire.channel.close()


@pytest.fixture
def db(wire: Wire) -> str:
    """A database with the table t."""
    name = f"w{next(_NUMBERS)}"
    wire.tables.CreateDatabase(tables_pb2.CreateDatabaseRequest(database=name))
    wire.register(f"{name}.t", {"name": "a", "type": "long"})
    wire.create_table(name, "t", ["a"])
    return name


def request_id(client: Client) -> bytes:
    return bytes(client.now()) + os.urandom(8)


CALLS: dict[str, Any] = {
    "DropTable": tables_pb2.DropTableRequest,
    "TruncateTable": tables_pb2.TruncateTableRequest,
    "RenameTable": tables_pb2.RenameTableRequest,
    "UndropTable": tables_pb2.UndropTableRequest,
    "AlterTable": tables_pb2.AlterTableRequest,
}
MORE: dict[str, dict[str, Any]] = {"RenameTable": {"new_name": "u"}, "AlterTable": {"retention_ms": 5_000}}


@pytest.mark.parametrize("method", CALLS)
@pytest.mark.parametrize(
    ("database", "name", "field"),
    [
        ("", "t", "database: must not be empty"),
        ("{db}", "", "table: must not be empty"),
        ("{db}.x", "t", "database: must have only letters"),
        ("{db}", "-t", "table: must have only letters"),
        ("{db}", "t\n", "table: must have only letters"),
        ("{db}", "x" * 65, "table: must have at most 64 characters"),
        ("x" * 60_000, "t", "database: must have at most 64 characters"),
        ("{db}", "nix", "nix"),
        ("nix", "t", "no database nix"),
    ],
)
def test_names_of_nobody_are_refused(wire: Wire, db: str, method: str, database: str, name: str, field: str) -> None:
    request = CALLS[method](database=database.format(db=db), name=name, **MORE.get(method, {}))
    error = refused(lambda: getattr(wire.tables, method)(request))
    assert isinstance(error, errors.NotFound if "nix" in field else errors.InvalidArgument)
    assert field in error.message()
    assert len(error.message()) < 500


WRONG: dict[str, tuple[str, Callable[[str], Any], type[errors.CortadoError], str]] = {
    "a name that is taken": (
        "RenameTable",
        lambda db: tables_pb2.RenameTableRequest(database=db, name="t", new_name="t"),
        errors.AlreadyExists,
        ".t already exists",
    ),
    "a name with a database": (
        "RenameTable",
        lambda db: tables_pb2.RenameTableRequest(database=db, name="t", new_name="x.u"),
        errors.InvalidArgument,
        "new_name: must have only letters",
    ),
    "nothing to alter": (
        "AlterTable",
        lambda db: tables_pb2.AlterTableRequest(database=db, name="t"),
        errors.InvalidArgument,
        "retention_ms: or ttl_ms must be set",
    ),
    "a retention of no time": (
        "AlterTable",
        lambda db: tables_pb2.AlterTableRequest(database=db, name="t", retention_ms=999),
        errors.InvalidArgument,
        "retention_ms: must be 0, -1, or between 1000",
    ),
    "a retention before all time": (
        "CreateTable",
        lambda db: tables_pb2.CreateTableRequest(
            database=db, name="v", subject=f"{db}.t", key=[tables_pb2.KeyPart(path="a")], retention_ms=-(1 << 63)
        ),
        errors.InvalidArgument,
        "retention_ms: must be 0, -1, or between 1000",
    ),
    "a database with tables": (
        "DropDatabase",
        lambda db: tables_pb2.DropDatabaseRequest(database=db),
        errors.InvalidArgument,
        "cascade: must be set",
    ),
    "a database of nobody's": (
        "DropDatabase",
        lambda _: tables_pb2.DropDatabaseRequest(database="nix", cascade=True),
        errors.NotFound,
        "no database nix",
    ),
    "a database that was not dropped": (
        "UndropDatabase",
        lambda db: tables_pb2.UndropDatabaseRequest(database=db),
        errors.NotFound,
        "no dropped database",
    ),
    "a number of nobody's": (
        "UndropTable",
        lambda db: tables_pb2.UndropTableRequest(database=db, name="t", number=(1 << 32) - 1),
        errors.NotFound,
        "with number 4294967295",
    ),
    "a page token of nobody's": (
        "ListDropped",
        lambda _: tables_pb2.ListDroppedRequest(page_token=b"x" * 50),
        errors.InvalidPageToken,
        "page_token",
    ),
    "a table of the time before it was made": (
        "DescribeTable",
        lambda db: tables_pb2.DescribeTableRequest(
            database=db, name="t", at=common_pb2.ReadAt(timestamp=common_pb2.Timestamp(wall_ms=1))
        ),
        errors.CortadoError,
        "",
    ),
    "a table of a time to come": (
        "DescribeTable",
        lambda db: tables_pb2.DescribeTableRequest(
            database=db, name="t", at=common_pb2.ReadAt(timestamp=common_pb2.Timestamp(wall_ms=1 << 47))
        ),
        errors.TimestampInFuture,
        "",
    ),
    "tables of a time that is none": (
        "ListTables",
        lambda db: tables_pb2.ListTablesRequest(
            database=db, at=common_pb2.ReadAt(timestamp=common_pb2.Timestamp(epoch=1 << 20))
        ),
        errors.InvalidArgument,
        "at.timestamp.epoch",
    ),
}


@pytest.mark.parametrize(("method", "request_of", "kind", "message"), WRONG.values(), ids=WRONG)
def test_what_cannot_be_is_refused_by_name(
    wire: Wire, db: str, method: str, request_of: Callable[[str], Any], kind: type[errors.CortadoError], message: str
) -> None:
    error = refused(lambda: getattr(wire.tables, method)(request_of(db)))
    assert isinstance(error, kind)
    assert message in error.message()


def test_each_call_twice_has_one_effect(wire: Wire, client: Client, db: str) -> None:
    def twice(method: str, request: Any) -> Any:
        request.request_id = request_id(client)
        first, second = (getattr(wire.tables, method)(request) for _ in range(2))
        assert first == second
        return first

    dropped = twice("DropTable", tables_pb2.DropTableRequest(database=db, name="t")).dropped
    assert twice("UndropTable", tables_pb2.UndropTableRequest(database=db, name="t")).table.table_id == dropped.table_id
    truncated = twice("TruncateTable", tables_pb2.TruncateTableRequest(database=db, name="t"))
    assert truncated.dropped.number == dropped.number + 1
    assert truncated.table.table_id == dropped.table_id + 1
    twice("RenameTable", tables_pb2.RenameTableRequest(database=db, name="t", new_name="u"))
    altered = twice("AlterTable", tables_pb2.AlterTableRequest(database=db, name="u", retention_ms=5_000)).table
    assert (altered.retention_ms, altered.table_id) == (5_000, truncated.table.table_id)
    gone = twice("DropDatabase", tables_pb2.DropDatabaseRequest(database=db, cascade=True))
    assert list(gone.tables) == [f"{db}.u"]
    back = twice("UndropDatabase", tables_pb2.UndropDatabaseRequest(database=db))
    assert (back.database, list(back.tables), list(back.cleared)) == (db, [f"{db}.u"], [])


def test_one_id_for_two_requests_is_refused(wire: Wire, client: Client, db: str) -> None:
    used = request_id(client)
    wire.tables.DropTable(tables_pb2.DropTableRequest(database=db, name="t", request_id=used))
    request = tables_pb2.TruncateTableRequest(database=db, name="t", request_id=used)
    error = refused(lambda: wire.tables.TruncateTable(request))
    assert isinstance(error, errors.InvalidArgument)


def test_what_was_dropped_is_listed_page_by_page(wire: Wire, db: str) -> None:
    for _ in range(3):
        wire.tables.TruncateTable(tables_pb2.TruncateTableRequest(database=db, name="t"))
    whole = wire.tables.ListDropped(tables_pb2.ListDroppedRequest())
    found: list[Any] = []
    token = b""
    while True:
        page = wire.tables.ListDropped(tables_pb2.ListDroppedRequest(page_size=2, page_token=token))
        assert len(page.dropped) <= 2
        found += page.dropped
        token = page.next_page_token
        if not token:
            break
    assert [each.number for each in found] == [each.number for each in whole.dropped]
    assert [each.name for each in found].count(f"{db}.t") == 3


@pytest.mark.parametrize("end", ["DropTable", "TruncateTable"])
def test_the_pages_of_a_scan_go_on_at_the_time_of_the_first(wire: Wire, db: str, end: str) -> None:
    name = f"{db}.t"
    wire.commit(*[put_document(name, {"a": number}) for number in range(5)])
    json_rows: list[str] = []
    request = documents_pb2.ScanRequest(table=table_name(name), page_size=2, format=common_pb2.DOCUMENT_FORMAT_JSON)
    while True:
        for reply in wire.documents.Scan(request):
            json_rows += reply.json_rows
            request.page_token = reply.next_page_token
        if len(json_rows) == 2:
            getattr(wire.tables, end)(CALLS[end](database=db, name="t"))
        if not request.page_token:
            break
    assert [json.loads(row) for row in json_rows] == [{"a": number} for number in range(5)]
    if end == "DropTable":
        request.ClearField("page_token")
        assert isinstance(refused(lambda: wire.documents.Scan(request)), errors.NotFound)
