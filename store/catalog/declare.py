"""Creating databases and tables: checks of the declarations, and their mutations.

Numbers come from counters: a database's from the catalogue's, a table's from its database's, an index's from its
table's. A number is never used again, even after a drop.

A table's key and indexes name fields of its subject's newest schema, by path (``a``, ``address.city``). Each part's
type follows from that schema. A part of a primary key may be declared nullable there (all of Spark's columns are). But
a document with null in it is refused when it is written; a part of an index may be null.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from cortado.errors import AlreadyExists, InvalidArgument, TooLarge
from cortado.schema.field_paths import way_through_recursion
from cortado.schema.key_types import key_type_of
from cortado.schema.model import Record, Schema
from cortado.schema.names import describe_type
from cortado.store.catalog import stored
from cortado.store.catalog.catalog import Catalog
from cortado.store.catalog.descriptors import DatabaseDescriptor, IndexDescriptor, TableDescriptor
from cortado.store.catalog.shares import check_share_of, count_databases_of, count_tables_of
from cortado.store.clock import retentions
from cortado.store.clock.timestamp import Timestamp
from cortado.store.keys import names
from cortado.store.keys.keyspace import NUMBER_MAX, table_id_of
from cortado.store.keys.types import KeyPart, KeyType
from cortado.store.mvcc.evaluation import Evaluation
from cortado.store.mvcc.expiry import check_ttl
from cortado.store.mvcc.mutations import Mutations

PARTS_MAX: Final = 16
INDEXES_MAX: Final = 64
PATH_LENGTH_MAX: Final = 200
DATABASES_MAX: Final = 1_000
TABLES_MAX: Final = 10_000
RETENTIONS_MAX: Final = 1_000
"""Tables with a retention of their own."""


@dataclass(frozen=True, slots=True)
class PartDeclaration:
    """A part as it is asked for: its type follows from the schema."""

    path: str
    descending: bool = False


@dataclass(frozen=True, slots=True)
class IndexDeclaration:
    """An index as it is asked for: its id is given to it."""

    name: str
    parts: tuple[PartDeclaration, ...]
    unique: bool = False


@dataclass(frozen=True, slots=True)
class DatabaseCreated:
    """The reply of :func:`create_database`."""

    database: str


@dataclass(frozen=True, slots=True)
class TableCreated:
    """The reply of :func:`create_table`."""

    table: TableDescriptor


@dataclass(frozen=True, slots=True)
class TableAltered:
    """The reply of :func:`alter_table`."""

    table: TableDescriptor


def create_database(catalog: Catalog, name: str) -> Evaluation:
    """Create a database; replies DatabaseCreated. Raises InvalidArgument, AlreadyExists, TooLarge."""
    names.check_database(name)
    if catalog.find_database(name) is not None:
        raise AlreadyExists("database", name)
    check_room_for_databases(catalog, catalog.asker.principal)
    number = next_number("database", catalog.counters.next_database_number, "databases")
    database = DatabaseDescriptor(name, number, principal=catalog.asker.principal)
    mutations = Mutations()
    mutations.put(stored.database_key(name), stored.encode_database(database))
    counters = replace(catalog.counters, next_database_number=number + 1)
    mutations.put(stored.COUNTERS_KEY, stored.encode_counters(counters))
    return Evaluation(mutations, DatabaseCreated(name))


@dataclass(frozen=True, slots=True)
class TableTimes:
    """How long a table keeps old versions, and documents: see :class:`TableDescriptor`."""

    retention_ms: int = 0
    ttl_ms: int = 0


NO_TIMES: Final = TableTimes()


def create_table(
    catalog: Catalog,
    database: str,
    name: str,
    *,
    key: Sequence[PartDeclaration],
    indexes: Sequence[IndexDeclaration] = (),
    subject: str = "",
    times: TableTimes = NO_TIMES,
    commit_ts: Timestamp,
) -> Evaluation:
    """Create a new, empty table of ``subject`` (empty: ``database.name``); replies TableCreated.

    Raises InvalidArgument (a name, a path or its type), NotFound (database, subject), AlreadyExists, TooLarge.
    """
    names.check_database(database)
    names.check_table(name)
    check_retention(times.retention_ms)
    check_ttl(times.ttl_ms)
    subject = names.check_subject(subject) if subject else f"{database}.{name}"
    if catalog.find_table(database, name) is not None:
        raise AlreadyExists("table", f"{database}.{name}")
    schema = _document_schema(catalog, subject)
    owner = catalog.database(database)
    number = next_number("table", owner.next_table_number, f"tables of database {database}")
    table = TableDescriptor(
        table_id=table_id_of(owner.number, number),
        database=database,
        name=name,
        subject=subject,
        key=resolve_parts(schema, key, "key"),
        indexes=_resolve_indexes(schema, indexes, next_index_id=1),
        next_index_id=len(indexes) + 1,
        retention_ms=times.retention_ms,
        named_ts=commit_ts,
        ttl_ms=times.ttl_ms,
        principal=catalog.asker.principal,
    )
    check_room_for_tables(catalog, [table.principal])
    check_room_for_retentions(catalog, times.retention_ms, table.principal)
    mutations = Mutations()
    mutations.put(stored.table_key(database, name), stored.encode_table(table))
    owner = replace(owner, next_table_number=number + 1)
    mutations.put(stored.database_key(database), stored.encode_database(owner))
    mutations.put(stored.COUNTERS_KEY, stored.encode_counters(catalog.counters))
    return Evaluation(mutations, TableCreated(table))


def alter_table(
    catalog: Catalog, database: str, name: str, *, retention_ms: int | None = None, ttl_ms: int | None = None
) -> Evaluation:
    """Keep old versions of a table for another time, and let later puts expire after another one (None: as before);
    replies TableAltered.

    Raises InvalidArgument, NotFound, TooLarge.
    """
    names.check_database(database)
    table = catalog.table(database, names.check_table(name))
    retention_ms = table.retention_ms if retention_ms is None else retention_ms
    ttl_ms = table.ttl_ms if ttl_ms is None else ttl_ms
    check_retention(retention_ms)
    check_ttl(ttl_ms)
    if (retention_ms, ttl_ms) == (table.retention_ms, table.ttl_ms):
        return Evaluation(Mutations(), TableAltered(table))
    if table.retention_ms == 0:
        check_room_for_retentions(catalog, retention_ms, table.principal)
    table = replace(table, retention_ms=retention_ms, ttl_ms=ttl_ms, version=table.version + 1)
    mutations = Mutations()
    mutations.put(stored.table_key(database, name), stored.encode_table(table))
    mutations.put(stored.COUNTERS_KEY, stored.encode_counters(catalog.counters))
    return Evaluation(mutations, TableAltered(table))


def check_retention(retention_ms: int) -> None:
    """Raises InvalidArgument."""
    if retention_ms not in (0, retentions.KEEP_ALL) and not retentions.MS_MIN <= retention_ms <= retentions.MS_MAX:
        problem = f"must be 0, {retentions.KEEP_ALL}, or between {retentions.MS_MIN} and {retentions.MS_MAX}"
        raise InvalidArgument("retention_ms", problem, str(retention_ms))


def check_room_for_retentions(catalog: Catalog, retention_ms: int, principal: str) -> None:
    """Check the room for a table's own ``retention_ms``: whether one more that counts for ``principal`` may have one.
    Raises TooLarge, and ResourceExhausted if the principal has its share."""
    if retention_ms:
        own = [each.principal for each in catalog.tables() if each.retention_ms]
        own += [each.principal for each in catalog.dropped() if each.what.retention_ms]
        what = "tables with a retention of their own (dropped ones too)"
        check_room("retention_ms", len(own), RETENTIONS_MAX, what)
        check_share_of(catalog, principal, what, lambda: own.count(principal), len(own), RETENTIONS_MAX)


def check_room_for_databases(catalog: Catalog, principal: str) -> None:
    """Raise TooLarge if there is no room for one more, and ResourceExhausted if the principal has its share."""
    total = len(catalog.databases())
    check_room("database", total, DATABASES_MAX, "databases")
    own = partial(count_databases_of, catalog, principal)
    check_share_of(catalog, principal, "databases", own, total, DATABASES_MAX)


def check_room_for_tables(catalog: Catalog, principals: Sequence[str]) -> None:
    """For each of these one more that counts for it. Raises TooLarge if there is no room for all, and ResourceExhausted
    if a principal has its share."""
    total = catalog.count_tables()
    check_room("table", total, TABLES_MAX, "tables", len(principals))
    for principal, more in Counter(principals).items():
        own = partial(count_tables_of, catalog, principal)
        check_share_of(catalog, principal, "tables", own, total + len(principals) - more, TABLES_MAX, more)


def _document_schema(catalog: Catalog, subject: str) -> Schema:
    """Return the newest version if documents can follow all of them. Raises NotFound, InvalidArgument.

    A document may be written with any version, so each must be a record; the registry keeps it so from here on.
    """
    for each in catalog.subject(subject).live:
        root = catalog.schema(each.schema_id).root
        if not isinstance(root, Record):
            problem = f"version {each.version} is of type {describe_type(root)}, and documents are records"
            raise InvalidArgument("subject", problem, subject)
    return catalog.newest_schema(subject)[1]


def resolve_parts(schema: Schema, parts: Sequence[PartDeclaration], field: str) -> tuple[KeyPart, ...]:
    """Declared parts with their types. Raises InvalidArgument, TooLarge naming ``field[i].path``."""
    if not parts:
        raise InvalidArgument(field, "must have at least one part")
    if len(parts) > PARTS_MAX:
        raise TooLarge(field, f"must have at most {PARTS_MAX} parts", str(len(parts)), len(parts), PARTS_MAX)
    seen: set[str] = set()
    resolved = []
    for i, part in enumerate(parts):
        where = f"{field}[{i}].path"
        if len(part.path) > PATH_LENGTH_MAX:
            raise InvalidArgument(where, f"must have at most {PATH_LENGTH_MAX} characters", names.shown(part.path))
        if part.path in seen:
            raise InvalidArgument(where, "is named twice", part.path)
        seen.add(part.path)
        resolved.append(KeyPart(part.path, _type_of(schema, part.path, where), part.descending))
    return tuple(resolved)


def _type_of(schema: Schema, path: str, where: str) -> KeyType:
    try:
        type_name, _ = key_type_of(schema, path)
    except InvalidArgument as unfit:
        raise InvalidArgument(where, unfit.problem, unfit.value or names.shown(path)) from unfit
    problem = way_through_recursion(schema, path)
    if problem is not None:
        raise InvalidArgument(where, problem, names.shown(path))
    return KeyType(type_name)


def _resolve_indexes(
    schema: Schema, indexes: Sequence[IndexDeclaration], *, next_index_id: int
) -> tuple[IndexDescriptor, ...]:
    """Return the indexes with their types, and with ids from ``next_index_id`` on."""
    if len(indexes) > INDEXES_MAX:
        raise TooLarge("indexes", f"must be at most {INDEXES_MAX}", str(len(indexes)), len(indexes), INDEXES_MAX)
    seen: set[str] = set()
    resolved = []
    for i, index in enumerate(indexes):
        names.check_index(index.name, f"indexes[{i}].name")
        if index.name in seen:
            raise InvalidArgument(f"indexes[{i}].name", "is the name of another index of this table", index.name)
        seen.add(index.name)
        parts = resolve_parts(schema, index.parts, f"indexes[{i}].parts")
        resolved.append(IndexDescriptor(next_index_id + i, index.name, parts, index.unique))
    return tuple(resolved)


def next_number(field: str, number: int, what: str) -> int:
    """Return ``number`` if there is such a number. Raises TooLarge."""
    if number > NUMBER_MAX:
        problem = f"all {NUMBER_MAX} numbers for {what} are given away, and none is used again"
        raise TooLarge(field, problem, "", number - 1, NUMBER_MAX)
    return number


def check_room(field: str, count: int, limit: int, what: str, more: int = 1) -> None:
    if count + more > limit:
        most = (
            "the most that are allowed" if count >= limit else f"and {limit} are allowed: there is no room for {more}"
        )
        raise TooLarge(field, f"there are {count} {what} already, {most}", "", count, limit)
