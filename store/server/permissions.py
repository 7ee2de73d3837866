"""The permissions that each method of the API needs: one row a method, which finds its resources in the request.

::

    "KeyValue/Put": Rule(_namespace(WRITE))
     method               `- from the request to demands: a permission on a resource, each of which must be met

While roles are on, a method without a row is refused to all callers, and a test fails for it. ``changes`` marks methods
that change more than data: they are audited. ``stored`` finds demands in the stored state and not in the request, such
as the tables of a large transaction. Like the others they are decided at the serving node, and for writes once more at
the append.

A denial is decided from names alone: nothing looks up before whether the resource exists. Any known caller may list
names: the services leave out names that the caller does not see (:meth:`Rights.sees`). Schemas are alike: the tables
that follow a subject decide whether a caller may read it (:mod:`.schemas_service`).

A call counts for the quotas of the resources that it needs to read or write (:mod:`cortado.store.quotas`). ``adds``
finds the resources that it adds data to; it is refused if one of them may store no more. Calls that only remove are not
refused. ``frees`` marks calls that make room: while the disk or the map is full to its reserve, those calls alone may
write, down to the last part of the reserve.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, TypeAlias

from cortado.errors import CortadoError, NotFound
from cortado.proto.internal.jobs_pb2 import StoredIndexBuild
from cortado.proto.v1 import common_pb2, documents_pb2
from cortado.store.auth.owners import Asker
from cortado.store.auth.roles import (
    CLUSTER,
    Demand,
    Permission,
    check_resource,
    database_resource,
    namespace_resource,
    subject_resource,
    table_resource,
)
from cortado.store.catalog.catalog import Catalog
from cortado.store.jobs.job import find_job
from cortado.store.mvcc.reader import Reader
from cortado.store.staging.records import find_record

Demands: TypeAlias = Sequence[Demand]
OfRequest: TypeAlias = Callable[[Any], Demands]
OfStored: TypeAlias = Callable[[Any, Reader, Asker], Demands]

READ, WRITE, DEFINE = Permission.READ, Permission.WRITE, Permission.DEFINE
KNOWN: Final = (Demand(Permission.KNOWN),)
_JOB_ID_MAX: Final = (1 << 63) - 1


@dataclass(frozen=True, slots=True)
class Rule:
    """The rule of one method."""

    of: OfRequest
    changes: bool = False
    stored: OfStored | None = None
    adds: OfRequest | None = None
    is_metered: bool = True
    """Whether quotas count it: it reads or writes data, and does not only describe it."""
    frees: bool | Callable[[Any], bool] = False
    """Whether it, or a request of it, frees room on the disk, or takes away rights, tokens or quotas, which must not
    wait for room."""

    def frees_by(self, request: Any) -> bool:
        """Return whether this request frees room."""
        return self.frees if isinstance(self.frees, bool) else self.frees(request)

    owns_names: bool = False
    """Whether it has a name in a space of its caller's own (:mod:`cortado.store.auth.owners`)."""
    hidden: Callable[[Any], CortadoError] | None = None
    """Makes the answer for an unknown subject: also for callers that do not see the subject of ``stored`` demands."""

    @property
    def asks_this_node(self) -> bool:
        """Return whether no other node can answer for this one."""
        return self.of in (_view, _operate)


def _always(permission: Permission) -> OfRequest:
    demands = (Demand(permission),)
    return lambda _request: demands


def _table(permission: Permission) -> OfRequest:
    """Return the demand on the ``table`` of a request, a TableName."""

    def of(request: Any) -> Demands:
        named = request.table
        return _of_table(permission, named.database, named.table)

    return of


def _namespace(permission: Permission) -> OfRequest:
    return lambda request: _of_namespace(permission, request.namespace)


def _read(of: OfRequest) -> OfRequest:
    """Add the demands of a transaction's own writes, which are evaluated so that it reads them."""

    def with_own(request: Any) -> Demands:
        if not request.HasField("at"):
            return of(request)
        return [*of(request), *_operations(request.at.own_writes)]

    return with_own


# The same few resources are asked for all the time; the cache is bounded, so that made-up names fill no memory.
@lru_cache(maxsize=4_096)
def _of_table(permission: Permission, database: str, table: str) -> Demands:
    return (Demand(permission, table_resource(database, table)),)


@lru_cache(maxsize=4_096)
def _of_namespace(permission: Permission, namespace: str) -> Demands:
    return (Demand(permission, namespace_resource(namespace)),)


def _named_table(permission: Permission, name: str = "name") -> OfRequest:
    """Return the demand on a table by fields of the request itself, ``database`` and ``name``."""
    return lambda request: (Demand(permission, table_resource(request.database, getattr(request, name))),)


def _database(permission: Permission) -> OfRequest:
    return lambda request: (Demand(permission, database_resource(request.database)),)


def _subject(permission: Permission) -> OfRequest:
    return lambda request: (Demand(permission, subject_resource(request.subject)),)


def _renamed_table(request: Any) -> Demands:
    return [Demand(DEFINE, table_resource(request.database, each)) for each in (request.name, request.new_name)]


def _undropped_table(request: Any) -> Demands:
    names = (request.name, request.as_name or request.name)
    return [Demand(DEFINE, table_resource(request.database, each)) for each in names]


def _undropped_database(request: Any) -> Demands:
    return [Demand(DEFINE, database_resource(each)) for each in (request.database, request.as_name or request.database)]


def _created_table(request: Any) -> Demands:
    """Return the demands for a new table. It may have rows by the schemas of another table's subject."""
    table = Demand(DEFINE, table_resource(request.database, request.name))
    return (table, Demand(READ, subject_resource(request.subject))) if request.subject else (table,)


def _listed_tables(request: Any) -> Demands:
    """Return the demands for a list of tables. A caller without a role in a database does not learn whether it
    exists."""
    return (Demand(Permission.SEE, database_resource(request.database)),) if request.database else KNOWN


def _sized_tables(request: Any) -> Demands:
    """Return the demands for sizes. A list of sizes is cut to the tables that its caller may read."""
    if request.name:
        return (Demand(READ, table_resource(request.database, request.name)),)
    return _listed_tables(request)


def _subject_if_named(request: Any) -> Demands:
    """Return the demand on a subject. Any known caller may read the level of all subjects."""
    return (Demand(READ, subject_resource(request.subject)),) if request.subject else KNOWN


def _checked_table(request: Any) -> Demands:
    return (Demand(DEFINE if request.repair else READ, table_resource(request.database, request.name)),)


def _window(request: Any) -> Demands:
    match request.WhichOneof("of"):
        case "table":
            named = request.table.table
            return (Demand(READ, table_resource(named.database, named.table)),)
        case "pairs":
            return (Demand(READ, namespace_resource(request.pairs.namespace)),)
        case _:
            return (Demand(Permission.KNOWN),)


def _bulk(request: Any) -> Demands:
    """Return the demands of a message of the stream: the first names the table."""
    if request.WhichOneof("message") != "start":
        return ()
    named = request.start.table
    return (Demand(WRITE, table_resource(named.database, named.table)),)


def _bulk_added(request: Any) -> Demands:
    """Return the resources that a load adds to, by the mode in its first message."""
    return () if request.start.mode == documents_pb2.BULK_MODE_DELETE else _bulk(request)


def _bulk_frees(request: Any) -> bool:
    """Return whether a load frees room, by its first message; staged deletes take room twice."""
    start = request.start
    return start.mode == documents_pb2.BULK_MODE_DELETE and not start.HasField("staging")


def _rename_drops(request: Any) -> bool:
    """Return whether the rename drops a table that had the name."""
    return bool(request.replaces)


def _lease_moves(request: Any) -> bool:
    """Return whether the lease is a consumer's: as it moves on, it releases the versions behind it."""
    return bool(request.consumer)


def _operations(operations: Iterable[common_pb2.Operation]) -> Demands:
    found: set[Demand] = set()
    for each in operations:
        kind = each.WhichOneof("operation")
        if kind is None:
            continue
        what = getattr(each, kind)
        permission = READ if kind in _CHECKS else WRITE
        if kind in _OF_PAIRS:
            found.add(Demand(permission, namespace_resource(what.namespace)))
        else:
            found.add(Demand(permission, table_resource(what.database, what.table)))
    return sorted(found, key=lambda demand: (demand.resource, demand.permission.value))


_CHECKS: Final = frozenset({"check", "check_pair"})
_ADD_NOTHING: Final = _CHECKS | {"delete", "delete_pair"}
_OF_PAIRS: Final = frozenset({"put_pair", "delete_pair", "add_pair", "check_pair", "packed_pairs"})


def _commit(request: Any) -> Demands:
    return _operations(request.operations) or (Demand(Permission.KNOWN),)


def _commit_added(request: Any) -> Demands:
    return _operations(each for each in request.operations if not _only_deletes(each))


def _commit_frees(request: Any) -> bool:
    return bool(request.operations) and all(map(_only_deletes, request.operations))


def _only_deletes(operation: common_pb2.Operation) -> bool:
    kind = operation.WhichOneof("operation")
    if kind == "packed_pairs":
        packed = operation.packed_pairs
        return len(packed.deletes) >= len(packed.key_lengths)
    return kind in _ADD_NOTHING


def _begun_transaction(request: Any) -> Demands:
    return [Demand(WRITE, table_resource(each.database, each.table)) for each in request.tables] or KNOWN


def _stored_transaction(request: Any, reader: Reader, asker: Asker) -> Demands:
    """Return the demands of a stored transaction. Another principal's transaction is unknown to this caller; evaluation
    says so."""
    record = find_record(reader, request.transaction_id)
    if record is None or not asker.owns(record.principal):
        return ()
    catalog = Catalog(reader)
    return [_named_now(WRITE, catalog, each.table_id, each.database, each.name) for each in record.tables]


def _aborted_transaction(request: Any, reader: Reader, asker: Asker) -> Demands:
    """Return the demands of an abort. The principal of a transaction may always end it, and so may operators."""
    record = find_record(reader, request.transaction_id)
    return () if record is None or record.principal or asker.operates else _stored_transaction(request, reader, asker)


def _unknown_transaction(request: Any) -> CortadoError:
    return NotFound("transaction", request.transaction_id.hex())


def _unknown_job(request: Any) -> CortadoError:
    return NotFound("job", str(request.job_id))


def _stored_job(permission: Permission) -> OfStored:
    def of(request: Any, reader: Reader, _asker: Asker) -> Demands:
        job = find_job(reader, request.job_id) if request.job_id <= _JOB_ID_MAX else None
        if job is None:
            return ()
        build = StoredIndexBuild.FromString(job.parameters)
        return (_named_now(permission, Catalog(reader), build.table_id, build.database, build.table),)

    return of


def _named_now(permission: Permission, catalog: Catalog, table_id: int, database: str, name: str) -> Demand:
    """Return the demand on a table that is stored by its id: by its present name, or by the last one that it had."""
    now = catalog.find_table_with(table_id, database, name)
    return Demand(permission, table_resource(database, name) if now is None else table_resource(now.database, now.name))


def _granted(request: Any) -> Demands:
    """Return the demands of a grant. The owner of a resource gives and takes roles there; the admin those of the
    cluster. Raises InvalidArgument."""
    resource = request.resource
    if request.role not in ("reader", "writer", "owner") or resource == CLUSTER or ":" not in resource:
        return (Demand(Permission.ADMINISTER),)
    return (Demand(DEFINE, check_resource(resource)),)


_known: Final = _always(Permission.KNOWN)
_hold: Final = _always(Permission.HOLD)
_view: Final = _always(Permission.VIEW)
_operate: Final = _always(Permission.OPERATE)
_administer: Final = _always(Permission.ADMINISTER)

RULES: Final[dict[str, Rule]] = {
    "KeyValue/Get": Rule(_read(_namespace(READ))),
    "KeyValue/MultiGet": Rule(_read(_namespace(READ))),
    "KeyValue/Put": Rule(_namespace(WRITE), adds=_namespace(WRITE)),
    "KeyValue/Delete": Rule(_namespace(WRITE), frees=True),
    "KeyValue/DeleteRange": Rule(_namespace(WRITE), frees=True),
    "KeyValue/Scan": Rule(_read(_namespace(READ))),
    "KeyValue/ScanPage": Rule(_read(_namespace(READ))),
    "KeyValue/ListNamespaces": Rule(_known),
    "KeyValue/DropNamespace": Rule(_namespace(DEFINE), changes=True, frees=True),
    "KeyValue/UndropNamespace": Rule(_namespace(DEFINE), changes=True),
    "Documents/Get": Rule(_read(_table(READ))),
    "Documents/MultiGet": Rule(_read(_table(READ))),
    "Documents/Put": Rule(_table(WRITE), adds=_table(WRITE)),
    "Documents/Update": Rule(_table(WRITE), adds=_table(WRITE)),
    "Documents/Delete": Rule(_table(WRITE), frees=True),
    "Documents/Bulk": Rule(_bulk, adds=_bulk_added, frees=_bulk_frees, owns_names=True),
    "Documents/Scan": Rule(_read(_table(READ))),
    "Documents/Aggregate": Rule(_read(_table(READ))),
    "Documents/Split": Rule(_read(_table(READ))),
    "Transactions/Commit": Rule(_commit, adds=_commit_added, frees=_commit_frees),
    "Transactions/Settle": Rule(_hold),
    "LargeTransactions/Begin": Rule(_begun_transaction, adds=_begun_transaction, owns_names=True),
    "LargeTransactions/Commit": Rule(_hold, stored=_stored_transaction, hidden=_unknown_transaction, owns_names=True),
    "LargeTransactions/Abort": Rule(
        _hold, stored=_aborted_transaction, hidden=_unknown_transaction, frees=True, owns_names=True
    ),
    "LargeTransactions/List": Rule(_view),
    "Tables/CreateDatabase": Rule(_database(DEFINE), changes=True),
    "Tables/ListDatabases": Rule(_known),
    "Tables/CreateTable": Rule(_created_table, changes=True),
    "Tables/ListTables": Rule(_listed_tables),
    "Tables/DescribeTable": Rule(_named_table(READ), is_metered=False),
    "Tables/TableSizes": Rule(_sized_tables, is_metered=False),
    "Tables/DatabaseSizes": Rule(_known),
    "Tables/AlterTable": Rule(_named_table(DEFINE), changes=True, frees=True),
    "Tables/DropTable": Rule(_named_table(DEFINE), changes=True, frees=True),
    "Tables/TruncateTable": Rule(_named_table(DEFINE), changes=True, frees=True),
    "Tables/RenameTable": Rule(_renamed_table, changes=True, frees=_rename_drops),
    "Tables/UndropTable": Rule(_undropped_table, changes=True),
    "Tables/DropDatabase": Rule(_database(DEFINE), changes=True, frees=True),
    "Tables/UndropDatabase": Rule(_undropped_database, changes=True),
    "Tables/ListDropped": Rule(_view),
    "Tables/CheckTable": Rule(_checked_table),
    "Tables/CreateIndex": Rule(
        _named_table(DEFINE, "table"), changes=True, adds=_named_table(DEFINE, "table"), owns_names=True
    ),
    "Tables/DropIndex": Rule(_named_table(DEFINE, "table"), changes=True, frees=True),
    "Schemas/Register": Rule(_subject(DEFINE), changes=True),
    "Schemas/Get": Rule(_known, is_metered=False),
    "Schemas/ListSubjects": Rule(_known),
    "Schemas/ListVersions": Rule(_known, is_metered=False),
    "Schemas/Check": Rule(_subject(READ), is_metered=False),
    "Schemas/GetCompatibility": Rule(_subject_if_named, is_metered=False),
    "Schemas/SetCompatibility": Rule(_subject(DEFINE), changes=True),
    "Schemas/Delete": Rule(_subject(DEFINE), changes=True, frees=True),
    "Watch/KeyValue": Rule(_namespace(READ)),
    "Watch/Table": Rule(_table(READ)),
    "Watch/Window": Rule(_window),
    "Collection/AcquireLease": Rule(_hold, frees=_lease_moves, owns_names=True),
    "Collection/KeepLease": Rule(_hold, owns_names=True),
    "Collection/ReleaseLease": Rule(_hold, frees=True, owns_names=True),
    "Collection/ListLeases": Rule(_view),
    "Collection/Status": Rule(_view),
    "Collection/Run": Rule(_operate, changes=True),
    "Jobs/List": Rule(_view),
    "Jobs/Get": Rule(_known, stored=_stored_job(READ), hidden=_unknown_job),
    "Jobs/Pause": Rule(_known, changes=True, stored=_stored_job(DEFINE), hidden=_unknown_job),
    "Jobs/Resume": Rule(_known, changes=True, stored=_stored_job(DEFINE), hidden=_unknown_job),
    "Jobs/Cancel": Rule(_known, changes=True, stored=_stored_job(DEFINE), hidden=_unknown_job, frees=True),
    "Cluster/Status": Rule(_view),
    "Cluster/Clock": Rule(_known),
    "Cluster/BumpEpoch": Rule(_operate, changes=True),
    "Cluster/Members": Rule(_known),
    "Cluster/AddMember": Rule(_operate, changes=True),
    "Cluster/PromoteMember": Rule(_operate, changes=True),
    "Cluster/RemoveMember": Rule(_operate, changes=True),
    "Cluster/RebuildReplica": Rule(_operate, changes=True),
    "Cluster/AcceptLoss": Rule(_operate, changes=True),
    "Cluster/TransferLeader": Rule(_operate, changes=True),
    "Backups/Plan": Rule(_operate),
    "Backups/Read": Rule(_operate),
    "Backups/Follow": Rule(_operate),
    "Restores/Begin": Rule(_administer, changes=True),
    "Restores/Put": Rule(_administer),
    "Restores/End": Rule(_administer, changes=True),
    "Restores/Abandon": Rule(_administer, changes=True, frees=True),
    "Restores/Status": Rule(_view),
    "Inspect/ReadLog": Rule(_operate),
    "Inspect/ReadVersions": Rule(_operate),
    "Inspect/VerifyRange": Rule(_operate),
    "Inspect/ListItems": Rule(_operate),
    "Settings/ListSettings": Rule(_view),
    "Statistics/ReadStatistics": Rule(_view),
    "Statistics/ListSlowCalls": Rule(_operate),
    "Quotas/Set": Rule(_administer, changes=True, frees=True),
    "Quotas/Remove": Rule(_administer, changes=True, frees=True),
    "Quotas/Get": Rule(_view),
    "Quotas/List": Rule(_view),
    "Auth/Enable": Rule(_administer, changes=True),
    "Auth/Disable": Rule(_administer, changes=True),
    "Auth/Status": Rule(_known),
    "Auth/WhoAmI": Rule(_known),
    "Auth/ListPrincipals": Rule(_administer),
    "Auth/CreatePrincipal": Rule(_administer, changes=True),
    "Auth/RotateToken": Rule(_administer, changes=True, frees=True),
    "Auth/RevokePrincipal": Rule(_administer, changes=True, frees=True),
    "Auth/Grant": Rule(_granted, changes=True),
    "Auth/RevokeGrant": Rule(_granted, changes=True, frees=True),
}
"""By service and method, without the package. ``Calls/Exchange`` carries calls, which are checked one by one."""
CARRIERS: Final = frozenset({"Calls/Exchange"})
PACKAGE: Final = "cortado.v1."


def rule_of(full_name: str) -> Rule:
    """Return the rule of a method such as "cortado.v1.KeyValue/Put"; for one without a row, a rule that no caller
    meets."""
    return RULES.get(full_name.removeprefix(PACKAGE), NOBODY)


NOBODY: Final = Rule(_always(Permission.NOBODY))
"""The rule of a method without a row."""
