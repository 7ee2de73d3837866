"""The table of permissions: a row for each method, and the place in which each finds its resources."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator
from typing import Any

import pytest
from google.protobuf.descriptor import MethodDescriptor

from cortado.proto import message_class, v1
from cortado.proto.v1 import (
    auth_pb2,
    collection_pb2,
    common_pb2,
    documents_pb2,
    kv_pb2,
    schemas_pb2,
    tables_pb2,
    transactions_pb2,
)
from cortado.store.auth.roles import CLUSTER, Demand, Permission, Rights, Role, check_grant
from cortado.store.server.permissions import CARRIERS, PACKAGE, RULES, rule_of

READ, WRITE, DEFINE = Permission.READ, Permission.WRITE, Permission.DEFINE


def _methods() -> Iterator[MethodDescriptor]:
    for module in pkgutil.iter_modules(v1.__path__):
        if module.name.endswith("_pb2"):
            for service in importlib.import_module(f"{v1.__name__}.{module.name}").DESCRIPTOR.services_by_name.values():
                yield from service.methods


def _name(method: MethodDescriptor) -> str:
    return f"{method.containing_service.full_name}/{method.name}".removeprefix(PACKAGE)


def test_every_method_has_a_row_and_no_row_is_left_over() -> None:
    declared = {_name(each) for each in _methods()}
    assert len(declared) > 90
    assert declared == {*RULES, *CARRIERS}


def test_every_row_finds_its_resources_in_an_empty_request() -> None:
    for method in _methods():
        if _name(method) not in CARRIERS:
            request = message_class(method.input_type)()
            demands = RULES[_name(method)].of(request)
            assert demands or _name(method) == "Documents/Bulk", _name(method)


def test_a_method_without_a_row_is_allowed_to_nobody() -> None:
    (demand,) = rule_of("cortado.v1.KeyValue/New").of(None)
    assert not Rights.of([check_grant(role.value, "cluster") for role in Role]).allow(demand)


def _table_demand(permission: Permission, name: str = "a.b") -> Demand:
    return Demand(permission, check_grant("reader", f"table:{name}").resource)


def _pairs_demand(permission: Permission, name: str = "n") -> Demand:
    return Demand(permission, check_grant("reader", f"namespace:{name}").resource)


TABLE = documents_pb2.TableName(database="a", table="b")
OWN = common_pb2.ReadAt(
    own_writes=[
        common_pb2.Operation(put=common_pb2.DocumentPut(database="a", table="c")),
        common_pb2.Operation(check_pair=common_pb2.KvCheck(namespace="n")),
    ]
)


@pytest.mark.parametrize(
    ("method", "request_", "demands"),
    [
        ("KeyValue/Get", kv_pb2.KvGetRequest(namespace="n"), {_pairs_demand(READ)}),
        ("KeyValue/Put", kv_pb2.KvPutRequest(namespace="n"), {_pairs_demand(WRITE)}),
        ("Documents/Get", documents_pb2.GetDocumentRequest(table=TABLE), {_table_demand(READ)}),
        (
            "Documents/Scan",
            documents_pb2.ScanRequest(table=TABLE, at=OWN),
            {_table_demand(READ), _table_demand(WRITE, "a.c"), _pairs_demand(READ)},
        ),
        (
            "Transactions/Commit",
            transactions_pb2.CommitRequest(operations=OWN.own_writes),
            {_table_demand(WRITE, "a.c"), _pairs_demand(READ)},
        ),
        ("Transactions/Commit", transactions_pb2.CommitRequest(), {Demand(Permission.KNOWN)}),
        (
            "Tables/RenameTable",
            tables_pb2.RenameTableRequest(database="a", name="b", new_name="c"),
            {_table_demand(DEFINE), _table_demand(DEFINE, "a.c")},
        ),
        (
            "Tables/CreateTable",
            tables_pb2.CreateTableRequest(database="a", name="b", subject="x.y"),
            {_table_demand(DEFINE), _table_demand(READ, "x.y")},
        ),
        ("Tables/ListTables", tables_pb2.ListTablesRequest(), {Demand(Permission.KNOWN)}),
        (
            "Tables/ListTables",
            tables_pb2.ListTablesRequest(database="a"),
            {Demand(Permission.SEE, check_grant("reader", "database:a").resource)},
        ),
        ("Schemas/GetCompatibility", schemas_pb2.GetCompatibilityRequest(subject="a.b"), {_table_demand(READ)}),
        ("Schemas/ListVersions", schemas_pb2.ListVersionsRequest(schema_id=1), {Demand(Permission.KNOWN)}),
        ("Tables/CheckTable", tables_pb2.CheckTableRequest(database="a", name="b"), {_table_demand(READ)}),
        (
            "Tables/CheckTable",
            tables_pb2.CheckTableRequest(database="a", name="b", repair=True),
            {_table_demand(DEFINE)},
        ),
        ("Documents/Bulk", documents_pb2.BulkRequest(chunk=documents_pb2.BulkChunk()), set()),
        (
            "Documents/Bulk",
            documents_pb2.BulkRequest(start=documents_pb2.BulkStart(table=TABLE)),
            {_table_demand(WRITE)},
        ),
        ("Auth/Grant", auth_pb2.GrantRequest(role="owner", resource="table:a.b"), {_table_demand(DEFINE)}),
        ("Auth/Grant", auth_pb2.GrantRequest(role="admin", resource="table:a.b"), {Demand(Permission.ADMINISTER)}),
        ("Auth/Grant", auth_pb2.GrantRequest(role="reader", resource="cluster"), {Demand(Permission.ADMINISTER)}),
    ],
)
def test_resources_are_found_in_requests(method: str, request_: Any, demands: set[Demand]) -> None:
    assert set(RULES[method].of(request_)) == demands


def test_every_kind_of_operation_is_known() -> None:
    kinds = common_pb2.Operation.DESCRIPTOR.oneofs_by_name["operation"].fields
    for kind in kinds:
        operation = common_pb2.Operation()
        message = getattr(operation, kind.name)
        message.SetInParent()
        for name in ("database", "table", "namespace"):
            if name in message.DESCRIPTOR.fields_by_name:
                setattr(message, name, "x")
        (demand,) = RULES["Transactions/Commit"].of(transactions_pb2.CommitRequest(operations=[operation]))
        assert demand.resource in ("table:x.x", "namespace:x")
        assert demand.permission is (READ if "check" in kind.name else WRITE), kind.name


LISTS_OF_NAMES = {"KeyValue/ListNamespaces", "Tables/ListDatabases", "Tables/ListTables", "Schemas/ListSubjects"}
"""Their services leave out the names that the caller does not see."""


def test_every_other_list_is_for_who_sees_the_whole_cluster_or_names_what_it_lists() -> None:
    """A new list of everything is closed, or one of those whose service is known to cut it."""
    nobody, reader = Rights.of([check_grant("owner", "table:a.b")]), Rights.of([check_grant("reader", "cluster")])
    admin = Rights.of([check_grant("admin", "cluster")])
    for name, rule in RULES.items():
        if "/List" not in name or name in (*LISTS_OF_NAMES, "Schemas/ListVersions"):
            continue
        (demand,) = rule.of(None)
        assert not nobody.allow(demand), name
        assert (reader if demand.permission is Permission.VIEW else admin).allow(demand), name


def test_what_is_about_the_cluster_names_the_cluster() -> None:
    for name in ("Cluster/AddMember", "Inspect/ReadLog", "Backups/Read", "Auth/Enable", "Restores/Begin"):
        assert [each.resource for each in RULES[name].of(None)] == [CLUSTER]


def test_what_writes_data_adds_some_or_frees_some() -> None:
    """If no more may be stored, the one is refused, and the other is not."""
    for method in _methods():
        rule = RULES.get(_name(method))
        if rule is None or rule.adds is not None:
            continue
        permissions = {each.permission for each in rule.of(message_class(method.input_type)())}
        assert WRITE not in permissions or rule.frees is True, _name(method)


TAKES_AWAY = ("Delete", "Drop", "Truncate", "Cancel", "Abort", "Release", "Remove", "Revoke", "Abandon")
NO_WRITE = {"Cluster/RemoveMember"}
"""Members are changed by entries of their own, which nothing refuses for want of room."""
OTHERS_THAT_FREE = {"Tables/AlterTable", "Tables/RenameTable", "Documents/Bulk", "Transactions/Commit"}
OTHERS_THAT_PASS = {"Collection/AcquireLease", "Quotas/Set", "Auth/RotateToken"}


def test_every_method_that_takes_something_away_passes_on_a_full_disk_and_no_other() -> None:
    names = {_name(each) for each in _methods() if _name(each) not in CARRIERS}
    taking_away = {each for each in names if each.partition("/")[2].startswith(TAKES_AWAY)} - NO_WRITE
    assert len(taking_away) > 12
    marked = {name for name in names if RULES[name].frees is not False}
    assert marked == taking_away | OTHERS_THAT_FREE | OTHERS_THAT_PASS
    assert all(RULES[name].frees is True for name in taking_away)


def _deletes(staging: documents_pb2.Staging | None = None) -> documents_pb2.BulkRequest:
    start = documents_pb2.BulkStart(table=TABLE, mode=documents_pb2.BULK_MODE_DELETE, staging=staging)
    return documents_pb2.BulkRequest(start=start)


DELETE = common_pb2.Operation(delete=common_pb2.DocumentDelete(database="a", table="b"))
PUT = common_pb2.Operation(put=common_pb2.DocumentPut(database="a", table="b"))


@pytest.mark.parametrize(
    ("method", "request_", "frees"),
    [
        ("Documents/Bulk", _deletes(), True),
        ("Documents/Bulk", _deletes(documents_pb2.Staging(task=1)), False),
        ("Documents/Bulk", documents_pb2.BulkRequest(start=documents_pb2.BulkStart(table=TABLE)), False),
        ("Transactions/Commit", transactions_pb2.CommitRequest(operations=[DELETE, DELETE]), True),
        ("Transactions/Commit", transactions_pb2.CommitRequest(operations=[DELETE, PUT]), False),
        ("Transactions/Commit", transactions_pb2.CommitRequest(), False),
        ("Tables/RenameTable", tables_pb2.RenameTableRequest(replaces=1), True),
        ("Tables/RenameTable", tables_pb2.RenameTableRequest(), False),
        ("Collection/AcquireLease", collection_pb2.AcquireLeaseRequest(consumer="c"), True),
        ("Collection/AcquireLease", collection_pb2.AcquireLeaseRequest(), False),
    ],
)
def test_of_some_methods_it_is_the_request_that_frees_room_or_not(method: str, request_: Any, frees: bool) -> None:
    assert RULES[method].frees_by(request_) is frees


@pytest.mark.parametrize(
    ("operations", "added"),
    [
        ([common_pb2.Operation(put=common_pb2.DocumentPut(database="a", table="b"))], {_table_demand(WRITE)}),
        ([common_pb2.Operation(add_pair=common_pb2.KvAdd(namespace="n"))], {_pairs_demand(WRITE)}),
        ([common_pb2.Operation(delete=common_pb2.DocumentDelete(database="a", table="b"))], set()),
        ([common_pb2.Operation(delete_pair=common_pb2.KvDelete(namespace="n"))], set()),
        ([common_pb2.Operation(check_pair=common_pb2.KvCheck(namespace="n"))], set()),
        (
            [common_pb2.Operation(packed_pairs=common_pb2.KvPackedOperations(namespace="n", key_lengths=bytes(8)))],
            {_pairs_demand(WRITE)},
        ),
        (
            [
                common_pb2.Operation(
                    packed_pairs=common_pb2.KvPackedOperations(
                        namespace="n", key_lengths=bytes(8), deletes=b"\0\0\0\0\1\0\0\0"
                    )
                )
            ],
            set(),
        ),
        ([common_pb2.Operation()], set()),
    ],
)
def test_a_commit_adds_where_it_does_more_than_delete(
    operations: list[common_pb2.Operation], added: set[Demand]
) -> None:
    adds = RULES["Transactions/Commit"].adds
    assert adds is not None
    assert set(adds(transactions_pb2.CommitRequest(operations=operations))) == added


def test_a_load_of_deletes_adds_nothing() -> None:
    adds = RULES["Documents/Bulk"].adds
    assert adds is not None
    expected = {documents_pb2.BULK_MODE_INSERT: {_table_demand(WRITE)}, documents_pb2.BULK_MODE_DELETE: set()}
    for mode, added in expected.items():
        start = documents_pb2.BulkStart(table=TABLE, mode=mode)
        assert set(adds(documents_pb2.BulkRequest(start=start))) == added
    assert adds(documents_pb2.BulkRequest(chunk=documents_pb2.BulkChunk())) == ()
