"""Tables that are made, filled, dropped, truncated, renamed and brought back, with their databases, against a
dictionary of names. At the end every state that there ever was is read again at its time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cortado.errors import AlreadyExists, CortadoError, InvalidArgument, NotFound
from cortado.store.catalog.catalog import Catalog, CatalogCache
from cortado.store.catalog.declare import PartDeclaration, create_database, create_table
from cortado.store.catalog.drop import drop_table, rename_table, truncate_table, undrop_table
from cortado.store.catalog.drop_database import drop_database, undrop_database
from cortado.store.catalog.dropped import begin_clearing, collectible, forget
from cortado.store.catalog.registry import register_schema
from cortado.store.clock.timestamp import Timestamp
from cortado.store.mvcc.evaluation import Evaluation
from cortado.store.tables.operations import Delete, JsonDocument, Put
from cortado.store.tables.view import TableView
from cortado.store.tables.write import evaluate_delete, evaluate_put
from support.dict_reader import DictStore

SCHEMA = '{"type": "record", "name": "R", "fields": [{"name": "id", "type": "long"}]}'
DATABASES = ["a", "b"]
NAMES = ["t", "u"]

Ids = frozenset[int]
Names = dict[tuple[str, str], Ids]


@dataclass(eq=False)
class Table:
    ids: set[int] = field(default_factory=set)


@dataclass(eq=False)
class Database:
    tables: dict[str, Table] = field(default_factory=dict)


@dataclass(eq=False)
class Gone:
    """A dropped name: a table of a database, or a database with those of its tables that were dropped with it."""

    database: Database
    name: str
    table: Table | None = None
    was_truncated: bool = False
    owner: Gone | None = None


class Twin:
    """Names as a dictionary, and dropped ones as a list."""

    def __init__(self) -> None:
        self.databases: dict[str, Database] = {}
        self.gone: list[Gone] = []

    def names(self) -> Names:
        return {
            (database, name): frozenset(table.ids)
            for database, there in self.databases.items()
            for name, table in there.tables.items()
        }

    def database(self, name: str) -> Database:
        if name not in self.databases:
            raise NotFound("database", name)
        return self.databases[name]

    def table(self, database: str, name: str) -> Table:
        there = self.database(database)
        if name not in there.tables:
            raise NotFound("table", name)
        return there.tables[name]

    def make_database(self, database: str, *_: Any) -> None:
        if database in self.databases:
            raise AlreadyExists("database", database)
        self.databases[database] = Database()

    def make(self, database: str, name: str, *_: Any) -> None:
        if name in self.database(database).tables:
            raise AlreadyExists("table", name)
        self.databases[database].tables[name] = Table()

    def put(self, database: str, name: str, _other: str, number: int) -> None:
        self.table(database, name).ids.add(number)

    def delete(self, database: str, name: str, _other: str, number: int) -> None:
        self.table(database, name).ids.discard(number)

    def drop(self, database: str, name: str, *_: Any) -> None:
        table = self.table(database, name)
        del self.databases[database].tables[name]
        self.gone.append(Gone(self.databases[database], name, table))

    def truncate(self, database: str, name: str, *_: Any) -> None:
        table = self.table(database, name)
        self.databases[database].tables[name] = Table()
        self.gone.append(Gone(self.databases[database], name, table, was_truncated=True))

    def rename(self, database: str, name: str, other: str, _number: int) -> None:
        table = self.table(database, name)
        if other in self.databases[database].tables:
            raise AlreadyExists("table", other)
        self.databases[database].tables[other] = self.databases[database].tables.pop(name)
        assert self.databases[database].tables[other] is table

    def undrop(self, database: str, name: str, other: str, _number: int) -> None:
        there = self.database(database)
        found = [each for each in self.gone if each.table and each.database is there and each.name == name]
        if not found:
            raise NotFound("dropped table", name)
        whole = [each for each in found if not each.was_truncated]
        chosen = found[-1] if other != name or not whole else whole[-1]
        if chosen.was_truncated and other == name:
            raise InvalidArgument("as_name", "must be given")
        if other in there.tables:
            raise AlreadyExists("table", other)
        assert chosen.table is not None
        there.tables[other] = chosen.table
        self.gone.remove(chosen)

    def drop_database(self, database: str, *_: Any) -> None:
        there = self.database(database)
        del self.databases[database]
        own = Gone(there, database)
        self.gone.append(own)
        self.gone += [Gone(there, name, table, owner=own) for name, table in sorted(there.tables.items())]
        there.tables = {}

    def undrop_database(self, database: str, _name: str, other: str, number: int) -> None:
        as_name = DATABASES[number % 2]
        found = [each for each in self.gone if each.table is None and each.name == database]
        if not found:
            raise NotFound("dropped database", database)
        if as_name in self.databases:
            raise AlreadyExists("database", as_name)
        own = found[-1]
        members = [each for each in self.gone if each.owner is own]
        own.database.tables = {each.name: each.table for each in members if each.table is not None}
        self.databases[as_name] = own.database
        self.gone = [each for each in self.gone if each is not own and each.owner is not own]

    def clear(self, _database: str, _name: str, _other: str, number: int) -> None:
        """Remove for good the record in that place, of those that nothing else was dropped with."""
        held = {id(each.owner) for each in self.gone}
        loose = [each for each in self.gone if id(each) not in held]
        if loose:
            self.gone.remove(loose[number % len(loose)])


class World:
    """The commands, on a keyspace in a dictionary."""

    def __init__(self) -> None:
        self.store = DictStore()
        self.cache = CatalogCache()
        self._do(lambda catalog, _: register_schema(catalog, "s", SCHEMA))

    def _do(self, command: Callable[[Catalog, Timestamp], Evaluation]) -> None:
        self.store.write(lambda reader, ts: command(Catalog(reader, self.cache), ts))

    def make_database(self, database: str, *_: Any) -> None:
        self._do(lambda catalog, _: create_database(catalog, database))

    def make(self, database: str, name: str, *_: Any) -> None:
        key = [PartDeclaration("id")]
        self._do(lambda catalog, ts: create_table(catalog, database, name, key=key, subject="s", commit_ts=ts))

    def put(self, database: str, name: str, _other: str, number: int) -> None:
        put = Put(database, name, JsonDocument(f'{{"id": {number}}}'))
        self._do(lambda catalog, ts: evaluate_put(catalog.reader, ts, catalog, put))

    def delete(self, database: str, name: str, _other: str, number: int) -> None:
        delete = Delete(database, name, (number,))
        self._do(lambda catalog, ts: evaluate_delete(catalog.reader, ts, catalog, delete))

    def drop(self, database: str, name: str, *_: Any) -> None:
        self._do(lambda catalog, ts: drop_table(catalog, database, name, commit_ts=ts))

    def truncate(self, database: str, name: str, *_: Any) -> None:
        self._do(lambda catalog, ts: truncate_table(catalog, database, name, commit_ts=ts))

    def rename(self, database: str, name: str, other: str, _number: int) -> None:
        self._do(lambda catalog, ts: rename_table(catalog, database, name, other, commit_ts=ts))

    def undrop(self, database: str, name: str, other: str, _number: int) -> None:
        as_name = "" if other == name else other
        self._do(lambda catalog, ts: undrop_table(catalog, database, name, as_name=as_name, commit_ts=ts))

    def drop_database(self, database: str, *_: Any) -> None:
        self._do(lambda catalog, ts: drop_database(catalog, database, cascade=True, commit_ts=ts))

    def undrop_database(self, database: str, _name: str, _other: str, number: int) -> None:
        as_name = DATABASES[number % 2]
        self._do(lambda catalog, ts: undrop_database(catalog, database, as_name=as_name, commit_ts=ts))

    def clear(self, _database: str, _name: str, _other: str, number: int) -> None:
        loose = collectible(self.catalog())
        if loose:
            chosen = loose[number % len(loose)].number
            self._do(lambda catalog, _: Evaluation(begin_clearing(catalog, chosen), None))
            self._do(lambda catalog, _: Evaluation(forget(catalog, chosen), None))

    def catalog(self, at: Timestamp | None = None) -> Catalog:
        return Catalog(self.store.snapshot(at), self.cache)

    def names(self, at: Timestamp) -> Names:
        """Return the names that a read at that time finds."""
        catalog = self.catalog().named_as_in(self.catalog(at))
        return {
            (each.database, each.name): self.rows(catalog, each.database, each.name, at) for each in catalog.tables()
        }

    def rows(self, catalog: Catalog, database: str, name: str, at: Timestamp) -> Ids:
        view = TableView(catalog, database, name)
        chunk = self.store.scan_chunk(*_rows_of(view), at)
        return frozenset(view.decode(payload)["id"] for payload in chunk.payloads)


def _rows_of(view: TableView) -> Any:
    from cortado.store.tables.scan import scan_range

    return scan_range(view.table, None)


MAKING = ["make_database", "make", "make", "put", "put", "put", "put", "delete"]
GOING = [
    "drop",
    "drop",
    "truncate",
    "truncate",
    "rename",
    "undrop",
    "undrop",
    "drop_database",
    "undrop_database",
    "clear",
]
Step = tuple[str, str, str, str, int]
STEPS = st.lists(
    st.tuples(
        st.sampled_from([*MAKING, *GOING, "clear"]),
        st.sampled_from(["a", "a", "a", "b"]),
        st.sampled_from(["t", "t", "u"]),
        st.sampled_from(NAMES),
        st.integers(0, 3),
    ),
    min_size=40,
    max_size=80,
)


@given(STEPS)
def test_each_read_at_a_time_finds_the_names_and_the_rows_of_that_time(steps: list[Step]) -> None:
    world, twin = World(), Twin()
    history: list[tuple[Timestamp, Names]] = []
    for verb, *asked in [("make_database", "a", "", "", 0), ("make", "a", "t", "", 0), *steps]:
        refused: CortadoError | None = None
        try:
            getattr(twin, verb)(*asked)
        except CortadoError as refusal:
            refused = refusal
        if refused is None:
            getattr(world, verb)(*asked)
        else:
            with pytest.raises(type(refused)):
                getattr(world, verb)(*asked)
        history.append((world.store.now, twin.names()))
        assert world.catalog().counters.dropped == len(world.catalog().dropped()), "records are counted"
    for ts, names in history:
        assert world.names(ts) == names
    ids = [each.table_id for each in world.catalog().tables()]
    assert len(set(ids)) == len(ids), "no two tables have a key in common"
