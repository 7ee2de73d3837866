"""Tables that go away, come back, begin anew, or get another name: the mutations that make it so.

::

    drop      descriptor away, a record in its place (dropped.py)
    undrop    the record away, the descriptor back: same id, so the same rows and entries
    truncate  a new id under the old name, and a record of the old id: both in one commit
    rename    the descriptor under another name of the same database: same id

No row is touched by any of it. Versions of the catalogue are kept for the longest retention. So a read at an earlier
time finds the descriptor of that time, and with it the id of the rows.

A record names its table by id. The upper half of an id is the number of its database, so a dropped table comes back
only into its own database, under any name.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from cortado.errors import AlreadyExists, InvalidArgument, NotFound
from cortado.store.catalog import stored
from cortado.store.catalog.catalog import Catalog
from cortado.store.catalog.declare import check_room_for_retentions, check_room_for_tables, next_number
from cortado.store.catalog.descriptors import DropKind, Dropped, TableDescriptor
from cortado.store.catalog.dropped import drop_of_table, drop_ranges, forget
from cortado.store.clock.timestamp import Timestamp
from cortado.store.keys import names
from cortado.store.keys.keyspace import database_number_of, table_id_of
from cortado.store.mvcc.evaluation import Evaluation
from cortado.store.mvcc.mutations import Mutations


@dataclass(frozen=True, slots=True)
class TableDropped:
    """The reply of :func:`drop_table`: the record, with the number by which it can be undropped."""

    dropped: Dropped


@dataclass(frozen=True, slots=True)
class TableTruncated:
    """The reply of :func:`truncate_table`: the empty table, and the record of the old one."""

    table: TableDescriptor
    dropped: Dropped


@dataclass(frozen=True, slots=True)
class TableNamed:
    """The reply of :func:`rename_table` and :func:`undrop_table`: the table as it is now, and the one that it has
    replaced."""

    table: TableDescriptor
    replaced: Dropped | None = None


def drop_table(catalog: Catalog, database: str, name: str, *, commit_ts: Timestamp) -> Evaluation:
    """Away with a table, until it is undropped; replies TableDropped. Raises InvalidArgument, NotFound, TooLarge."""
    table = _table(catalog, database, name)
    mutations = Mutations()
    mutations.delete(stored.table_key(database, name))
    (made,) = drop_ranges(catalog, mutations, [drop_of_table(table, DropKind.TABLE)], commit_ts)
    return Evaluation(mutations, TableDropped(made))


def truncate_table(catalog: Catalog, database: str, name: str, *, commit_ts: Timestamp) -> Evaluation:
    """Put an empty table in the place of a table; replies TableTruncated. Raises InvalidArgument, NotFound,
    TooLarge."""
    table = _table(catalog, database, name)
    check_room_for_retentions(catalog, table.retention_ms, table.principal)
    owner = catalog.database(database)
    number = next_number("table", owner.next_table_number, f"tables of database {database}")
    empty = replace(table, table_id=table_id_of(owner.number, number), version=table.version + 1, named_ts=commit_ts)
    empty = empty.with_builds_ready(commit_ts)
    mutations = Mutations()
    mutations.put(stored.table_key(database, name), stored.encode_table(empty))
    owner = replace(owner, next_table_number=number + 1)
    mutations.put(stored.database_key(database), stored.encode_database(owner))
    (made,) = drop_ranges(catalog, mutations, [drop_of_table(table, DropKind.TRUNCATED)], commit_ts)
    return Evaluation(mutations, TableTruncated(empty, made))


def rename_table(
    catalog: Catalog, database: str, name: str, new_name: str, *, replaces: int = 0, commit_ts: Timestamp
) -> Evaluation:
    """Another name in the same database; replies TableNamed.

    The table with the id ``replaces`` is dropped for it; 0: the name must be free. Raises InvalidArgument, NotFound,
    AlreadyExists (also if another table has the new name), TooLarge.
    """
    table = _table(catalog, database, name)
    there = catalog.find_table(database, names.check_table(new_name, "new_name"))
    if there is not None and (there.table_id != replaces or new_name == name):
        raise AlreadyExists("table", there.full_name)
    if there is None and replaces:
        raise NotFound("table", f"{database}.{new_name}, which was to be replaced")
    renamed = replace(table, name=new_name, version=table.version + 1, named_ts=commit_ts)
    mutations = Mutations()
    mutations.delete(stored.table_key(database, name))
    mutations.put(stored.table_key(database, new_name), stored.encode_table(renamed))
    if there is None:
        mutations.put(stored.COUNTERS_KEY, stored.encode_counters(catalog.counters))
        return Evaluation(mutations, TableNamed(renamed))
    (made,) = drop_ranges(catalog, mutations, [drop_of_table(there, DropKind.TABLE)], commit_ts)
    return Evaluation(mutations, TableNamed(renamed, made))


def undrop_table(
    catalog: Catalog, database: str, name: str, *, number: int = 0, as_name: str = "", commit_ts: Timestamp
) -> Evaluation:
    """Bring back a dropped table, under its name or ``as_name``; replies TableNamed.

    ``number`` is the record's; 0 for the newest of that name. A truncated table comes back only under ``as_name``.
    Raises InvalidArgument (also if the grace is over), NotFound, AlreadyExists, TooLarge.
    """
    owner = catalog.database(names.check_database(database))
    names.check_table(name)
    record, table = _record(catalog, owner.number, f"{database}.{name}", name, number, truncated=bool(as_name))
    check_not_clearing(record, "name")
    if record.what.kind is DropKind.TRUNCATED and not as_name:
        problem = f"must be given: {record.what.name} was truncated then, and goes on under its name"
        raise InvalidArgument("as_name", problem)
    _check_free(catalog, database, names.check_table(as_name, "as_name") if as_name else name)
    check_room_for_tables(catalog, [table.principal])
    mutations = forget(catalog, record.number)
    back = put_back(mutations, table, database, as_name or name, commit_ts)
    return Evaluation(mutations, TableNamed(back))


def put_back(
    mutations: Mutations, table: TableDescriptor, database: str, name: str, commit_ts: Timestamp
) -> TableDescriptor:
    """Return the descriptor of a dropped table, put into ``mutations`` under a name that is free."""
    back = replace(table, database=database, name=name, version=table.version + 1, named_ts=commit_ts)
    back = back.with_builds_failed("the table was dropped while it was being built")
    mutations.put(stored.table_key(database, name), stored.encode_table(back))
    return back


def check_not_clearing(record: Dropped, field: str) -> None:
    """Raises InvalidArgument if the grace is over."""
    if record.is_clearing:
        problem = f"was dropped at {record.dropped_ts}, its grace is over, and its rows are being cleared"
        raise InvalidArgument(field, problem, record.what.name)


def _record(
    catalog: Catalog, database_number: int, full_name: str, name: str, number: int, *, truncated: bool
) -> tuple[Dropped, TableDescriptor]:
    """Return the record of that number, or the newest, and its table; without a number those that were ``truncated``
    count if they are asked for, or if there is no other."""
    found = []
    for each in catalog.dropped(stored.field_of_table(name=name)):
        if each.what.kind in (DropKind.TABLE, DropKind.TRUNCATED) and number in (0, each.number):
            table = stored.decode_table(each.what.descriptor)
            if database_number_of(table.table_id) == database_number and table.name == name:
                found.append((each, table))
    if not found:
        numbered = f" with number {number}" if number else ""
        raise NotFound("dropped table", f"{full_name}{numbered}")
    whole = [each for each in found if each[0].what.kind is DropKind.TABLE]
    return found[-1] if truncated or not whole else whole[-1]


def _table(catalog: Catalog, database: str, name: str) -> TableDescriptor:
    return catalog.table(names.check_database(database), names.check_table(name))


def _check_free(catalog: Catalog, database: str, name: str) -> None:
    if catalog.find_table(database, name) is not None:
        raise AlreadyExists("table", f"{database}.{name}")
