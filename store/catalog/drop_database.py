"""A database that goes away with its tables, and comes back with them.

Its record has no ranges: each of its tables has a record of its own, which names the database's as the one that it was
dropped with. Tables that had been dropped before stay dropped when the database comes back. A database keeps its
number, so the ids of its tables stay right, even under another name.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from cortado.errors import AlreadyExists, InvalidArgument, NotFound, TooLarge
from cortado.store.catalog import stored
from cortado.store.catalog.catalog import Catalog
from cortado.store.catalog.declare import check_room_for_databases, check_room_for_tables
from cortado.store.catalog.descriptors import Drop, DropKind, Dropped, TableDescriptor
from cortado.store.catalog.drop import check_not_clearing, put_back
from cortado.store.catalog.dropped import delete_records, drop_of_table, drop_ranges
from cortado.store.clock.timestamp import Timestamp
from cortado.store.keys import names
from cortado.store.mvcc.evaluation import Evaluation
from cortado.store.mvcc.mutations import Mutations

CASCADE_TABLES_MAX: Final = 1_000
CASCADE_BYTES_MAX: Final = 1 << 20
"""The bound on the descriptors of all tables that are dropped with a database: they are written in one commit."""


@dataclass(frozen=True, slots=True)
class DatabaseDropped:
    """The reply of :func:`drop_database`: the database's record, and those of its tables."""

    dropped: Dropped
    tables: tuple[Dropped, ...]


@dataclass(frozen=True, slots=True)
class DatabaseUndropped:
    """The reply of :func:`undrop_database`: the tables that came back, and the names of tables that could not."""

    database: str
    tables: tuple[TableDescriptor, ...]
    cleared: tuple[str, ...]


def drop_database(catalog: Catalog, name: str, *, cascade: bool, commit_ts: Timestamp) -> Evaluation:
    """Away with a database, and where ``cascade`` is, with its tables; replies DatabaseDropped.

    Raises InvalidArgument (a name; or it has tables), NotFound, TooLarge.
    """
    database = catalog.database(names.check_database(name))
    tables = catalog.tables(name)
    if tables and not cascade:
        problem = f"must be set: database {name} has {len(tables)} tables, such as {tables[0].full_name}"
        raise InvalidArgument("cascade", problem)
    if len(tables) > CASCADE_TABLES_MAX:
        problem = f"{CASCADE_TABLES_MAX} tables can be dropped with a database: drop others one by one before"
        raise TooLarge("database", problem, f"{name}, with {len(tables)}", len(tables), CASCADE_TABLES_MAX)
    drops = [drop_of_table(each, DropKind.TABLE) for each in tables]
    size_bytes = sum(len(each.descriptor) for each in drops)
    if size_bytes > CASCADE_BYTES_MAX:
        problem = f"the descriptions of its tables must have {CASCADE_BYTES_MAX} bytes: drop some one by one before"
        raise TooLarge("database", problem, f"{name}, with {size_bytes}", size_bytes, CASCADE_BYTES_MAX)
    mutations = Mutations()
    mutations.delete(stored.database_key(name))
    for table in tables:
        mutations.delete(stored.table_key(name, table.name))
    own = Drop(DropKind.DATABASE, name, descriptor=stored.encode_database(database))
    made = drop_ranges(catalog, mutations, [own, *drops], commit_ts, together=True)
    return Evaluation(mutations, DatabaseDropped(made[0], tuple(made[1:])))


def undrop_database(
    catalog: Catalog, name: str, *, number: int = 0, as_name: str = "", commit_ts: Timestamp
) -> Evaluation:
    """Bring back a database, and the tables that were dropped with it; replies DatabaseUndropped.

    ``number`` is the record's; 0 for the newest of that name. Tables with an expired grace stay away. Raises
    InvalidArgument, NotFound, AlreadyExists, TooLarge.
    """
    names.check_database(name)
    record = _record(catalog, name, number)
    check_not_clearing(record, "database")
    back_as = names.check_database(as_name, "as_name") if as_name else name
    if catalog.find_database(back_as) is not None:
        raise AlreadyExists("database", back_as)
    database = replace(stored.decode_database(record.what.descriptor), name=back_as)
    check_room_for_databases(catalog, database.principal)
    beside = catalog.dropped(stored.field_of_dropped(dropped_with=record.number))
    members = [each for each in beside if each.dropped_with == record.number]
    whole = [each for each in members if not each.is_clearing]
    tables = [stored.decode_table(each.what.descriptor) for each in whole]
    check_room_for_tables(catalog, [each.principal for each in tables])
    mutations = Mutations()
    mutations.put(stored.database_key(back_as), stored.encode_database(database))
    back = [put_back(mutations, each, back_as, each.name, commit_ts) for each in tables]
    delete_records(catalog, mutations, [record, *whole])
    cleared = tuple(each.what.name for each in members if each.is_clearing)
    return Evaluation(mutations, DatabaseUndropped(back_as, tuple(back), cleared))


def _record(catalog: Catalog, name: str, number: int) -> Dropped:
    for each in reversed(catalog.dropped(stored.field_of_dropped(name=name))):
        if each.what.kind is DropKind.DATABASE and each.what.name == name and number in (0, each.number):
            return each
    numbered = f" with number {number}" if number else ""
    raise NotFound("dropped database", f"{name}{numbered}")
