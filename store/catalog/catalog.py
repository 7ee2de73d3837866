"""The catalogue as one state of the store shows it: databases, tables, subjects and schemas.

A :class:`Catalog` is a view over a Reader, so a catalogue as of an earlier time is a Catalog over a Reader at that
time. A read at an earlier time takes the names of tables from it, with their meaning at that time, and all else from
the newest (:meth:`Catalog.named_as_in`): a table of that name may be another one by now, while a schema id never comes
to mean another schema. It reads through a :class:`CatalogCache`, which many Catalogs share::

    Catalog(reader, cache)
      `- one point read of the key `catalog` -> the timestamp of the last change -> the state cached under it

so the cache needs no notice of changes, and a view over writes still in flight never mixes with a view of the applied
state.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias, TypeVar

from cortado.errors import DataLoss, InvalidSchema, NotFound, WriteConflict
from cortado.schema.compatibility import DEFAULT_MODE, CompatibilityMode
from cortado.schema.model import Schema
from cortado.schema.parse import parse_schema
from cortado.store.auth.owners import ANYBODY, Asker
from cortado.store.catalog import stored
from cortado.store.catalog.descriptors import (
    DatabaseDescriptor,
    DropKind,
    Dropped,
    IndexDescriptor,
    RegisteredSchema,
    SchemaVersion,
    SubjectState,
    TableDescriptor,
)
from cortado.store.catalog.stored import Counters, generation_of
from cortado.store.clock.timestamp import ZERO, Timestamp
from cortado.store.keys import names
from cortado.store.keys.keyspace import meta_range, namespace_key
from cortado.store.keys.types import LogicalKey
from cortado.store.mvcc.reader import Reader, Version

T = TypeVar("T")
CheckName: TypeAlias = Callable[[TableDescriptor, TableDescriptor], None]
"""Takes a table as it was, and as it is now."""

STATES_MAX: Final = 8
PARSED_TEXT_MAX: Final = 4 << 20
VERDICTS_MAX: Final = 16
GENERATIONS_MAX: Final = 1_000
MOVED_MAX: Final = 1_000


@dataclass(slots=True)
class _State:
    """The values read from one state of the catalogue. Only what exists is kept, so it cannot outgrow the store; Two
    exceptions: namespaces without a mark, at most GENERATIONS_MAX at once, and tables that no longer have the name by
    which they were looked for, at most MOVED_MAX."""

    databases: dict[str, DatabaseDescriptor] = field(default_factory=dict)
    tables: dict[tuple[str, str], TableDescriptor] = field(default_factory=dict)
    subjects: dict[str, SubjectState] = field(default_factory=dict)
    registered: dict[int, RegisteredSchema] = field(default_factory=dict)
    schemas: dict[int, Schema] = field(default_factory=dict)
    generations: dict[str, int] = field(default_factory=dict)
    moved: dict[int, TableDescriptor | None] = field(default_factory=dict)
    verdicts: OrderedDict[Hashable, Any] = field(default_factory=OrderedDict)
    tables_by_subject: Mapping[str, Sequence[str]] | None = None


class CatalogCache:
    """Parsed catalogue states by the timestamp of their last change. May be shared by threads."""

    def __init__(self) -> None:
        self._states: OrderedDict[Timestamp, _State] = OrderedDict()
        self._parsed: dict[str, Schema] = {}
        self._parsed_length = 0

    def state_at(self, changed_ts: Timestamp) -> _State:
        state = self._states.get(changed_ts)
        if state is None:
            state = self._states.setdefault(changed_ts, _State())
            while len(self._states) > STATES_MAX:
                self._states.popitem(last=False)
        return state

    def parse(self, text: str) -> Schema:
        """Return the parsed schema of ``text``. Raises InvalidSchema."""
        schema = self._parsed.get(text)
        if schema is None:
            schema = parse_schema(text)
            if self._parsed_length + len(text) > PARSED_TEXT_MAX:
                self._parsed, self._parsed_length = {}, 0
            self._parsed[text] = schema
            self._parsed_length += len(text)
        return schema

    def clear(self) -> None:
        """Forget all. A leader that lost its place calls it: entries that it evaluated ahead of the log may never have
        happened, and its successor may use the same timestamps."""
        self._states = OrderedDict()


class Catalog:
    """The catalogue of ``reader``'s state, which must not change while the Catalog is used.

    Lookups raise NotFound with the kind and the name, InvalidArgument for what could never be a name, and DataLoss for
    a stored value that does not decode.
    """

    def __init__(
        self, reader: Reader, cache: CatalogCache | None = None, then: str = "", asker: Asker = ANYBODY
    ) -> None:
        """``then`` is the timestamp as text if an earlier time was asked for: a refusal names it, since a table that
        was not there then may be there now. New things count for ``asker``."""
        self.reader = reader
        self.asker = asker
        self._cache = CatalogCache() if cache is None else cache
        version = reader.get(stored.COUNTERS_KEY)
        self.changed_ts = ZERO if version is None else version.ts
        self.counters = Counters() if version is None else stored.decode_counters(version.payload)
        self._state = self._cache.state_at(self.changed_ts)
        self._then = then

    def named_as_in(self, past: Catalog, check: CheckName | None = None) -> Catalog:
        """This catalogue, but for the databases and tables: those of ``past``, as they were then. Each table that is
        found is given to ``check`` with its name of now, unless it has none."""
        return self if past.changed_ts == self.changed_ts else _NamedAsIn(self, past, check)

    def unchanged_since(self, start: Timestamp) -> Catalog:
        """Return this catalogue, for a transaction that began at ``start``: if a name stood for something else then, or
        stands for nothing any more, looking it up raises WriteConflict."""
        return self if self.changed_ts <= start else _UnchangedSince(self, start)

    def check_still(self, database: str, name: str, table_id: int) -> None:
        """The name means the table of that id, for a transaction that found it so. Raises WriteConflict."""

    # --- namespaces

    def generation_of(self, namespace: str) -> int:
        """Return which generation of a namespace its name means (:mod:`cortado.store.catalog.namespaces`). Raises
        InvalidArgument."""
        generations = self._state.generations
        found = generations.get(namespace)
        if found is None:
            if len(generations) >= GENERATIONS_MAX:
                generations.clear()
            found = generations[namespace] = generation_of(self.reader, namespace)
        return found

    # --- databases and tables

    def databases(self) -> list[str]:
        """Names of all databases, in order."""
        return [stored.decode_database(payload).name for payload in self._payloads("database")]

    def find_database(self, name: str) -> DatabaseDescriptor | None:
        database = self._state.databases.get(name)
        if database is None:
            version = self._get(stored.database_key(names.check_database(name)))
            if version is not None:
                database = self._state.databases[name] = stored.decode_database(version.payload)
        return database

    def database(self, name: str) -> DatabaseDescriptor:
        """Raises NotFound."""
        database = self.find_database(name)
        if database is None:
            raise NotFound("database", name, self._then)
        return database

    def find_table(self, database: str, name: str) -> TableDescriptor | None:
        """Return the table, or None. Raises NotFound if there is no such database."""
        table = self._state.tables.get((database, name))
        if table is None:
            self.database(database)
            version = self._get(stored.table_key(database, names.check_table(name)))
            if version is not None:
                table = self._state.tables[database, name] = stored.decode_table(version.payload)
        return table

    def table(self, database: str, name: str) -> TableDescriptor:
        """Return the table. Raises NotFound: for the database, or for the table."""
        table = self.find_table(database, name)
        if table is None:
            raise NotFound("table", f"{database}.{name}", self._then)
        return table

    def tables(self, database: str | None = None) -> list[TableDescriptor]:
        """Return all tables of ``database``, or of all, in the order of databases and names. Raises NotFound."""
        return list(self.tables_behind("", database))

    def tables_behind(self, full_name: str, database: str | None = None) -> Iterator[TableDescriptor]:
        """Return those of :meth:`tables` that come behind a name, which need not be that of one. Each is decoded when
        it is taken."""
        if database is not None:
            self.database(database)
        behind = full_name.split(".", 1) if full_name else ()
        payloads = self._payloads("table", *(() if database is None else (database,)), behind=("table", *behind))
        return map(stored.decode_table, payloads)

    def tables_by_subject(self) -> Mapping[str, Sequence[str]]:
        """Return the full names of the tables that follow each subject. Found once for each state of the catalogue:
        there may be ten thousand, which take long to decode."""
        found = self._state.tables_by_subject
        if found is None:
            names: dict[str, list[str]] = {}
            for table in self.tables():
                names.setdefault(table.subject, []).append(table.full_name)
            found = self._state.tables_by_subject = names
        return found

    def count_tables(self, database: str | None = None) -> int:
        """Return how many tables there are, of one database or of all. There may be ten thousand, which take long to
        decode."""
        return sum(1 for _ in self._payloads("table", *(() if database is None else (database,))))

    def tables_of(self, subject: str) -> list[TableDescriptor]:
        """Return all tables with documents that follow ``subject``."""
        found = self._tables_holding(stored.field_of_table(subject=subject))
        return [table for table in found if table.subject == subject]

    def find_table_with(self, table_id: int, database: str, name: str) -> TableDescriptor | None:
        """Return the table of that id, under any name; mostly it has the name that it had."""
        table = self.find_table(database, name) if self.find_database(database) is not None else None
        if table is not None and table.table_id == table_id:
            return table
        moved = self._state.moved
        if table_id not in moved:
            # Ten thousand tables take long to look through.
            found = self._tables_holding(stored.field_of_table(table_id=table_id))
            if len(moved) >= MOVED_MAX:
                moved.clear()
            moved[table_id] = next((each for each in found if each.table_id == table_id), None)
        return moved.get(table_id)

    def index_of(self, table: TableDescriptor, name: str) -> IndexDescriptor:
        """Return an index of a table of this catalogue. Raises NotFound, and IndexNotReady if it was begun only
        later."""
        found = table.index(name)
        if found is None:
            raise NotFound("index", f"{name} of table {table.full_name}", self._then)
        return found

    def _tables_holding(self, field: bytes) -> list[TableDescriptor]:
        return [stored.decode_table(payload) for payload in self._payloads("table") if field in payload]

    # --- drops

    def dropped(self, holding: bytes = b"") -> list[Dropped]:
        """Return all that was dropped and is not forgotten yet, in the order of their numbers; or those whose records
        have the bytes ``holding`` somewhere. There may be twenty thousand, which take a tenth of a second to decode."""
        return [stored.decode_dropped(payload) for payload in self._payloads("dropped") if holding in payload]

    def dropped_behind(self, number: int) -> Iterator[Dropped]:
        """Return those of :meth:`dropped` with greater numbers. Each is decoded when it is taken."""
        return map(stored.decode_dropped, self._payloads("dropped", behind=("dropped", number)))

    def dropped_tables_of(self, subject: str) -> list[TableDescriptor]:
        """Return all dropped tables that may be undropped, with documents that then follow ``subject``."""
        kinds = (DropKind.TABLE, DropKind.TRUNCATED)
        dropped = self.dropped(stored.field_of_table(subject=subject))
        tables = [stored.decode_table(each.what.descriptor) for each in dropped if each.what.kind in kinds]
        return [each for each in tables if each.subject == subject]

    def dropped_record(self, number: int) -> Dropped:
        """Raises NotFound."""
        version = self._get(stored.dropped_key(number))
        if version is None:
            raise NotFound("dropped", f"number {number}")
        return stored.decode_dropped(version.payload)

    # --- subjects and schemas

    def subjects(self) -> list[SubjectState]:
        """Return all subjects, in the order of their names, those without a version included."""
        return list(self.subjects_behind(""))

    def subjects_behind(self, name: str) -> Iterator[SubjectState]:
        """Return those of :meth:`subjects` that come behind a name, as :meth:`tables_behind`."""
        return map(stored.decode_subject, self._payloads("subject", behind=("subject", name) if name else ("subject",)))

    def count_subjects(self) -> int:
        """Return how many there are, those without a version included."""
        return sum(1 for _ in self._payloads("subject"))

    def find_subject(self, name: str) -> SubjectState | None:
        """Return the stored state of a subject, which may have no version."""
        state = self._state.subjects.get(name)
        if state is None:
            version = self._get(stored.subject_key(names.check_subject(name)))
            if version is not None:
                state = self._state.subjects[name] = stored.decode_subject(version.payload)
        return state

    def forgotten_subject(self, name: str) -> SubjectState:
        """Return the rest of a subject that is not there: the number that comes next."""
        version = self._get(stored.deleted_subject_key(name))
        return SubjectState(name) if version is None else stored.decode_subject(version.payload)

    def subject(self, name: str) -> SubjectState:
        """Return a subject that has a version. Raises NotFound."""
        state = self.find_subject(name)
        if state is None or state.newest is None:
            raise NotFound("subject", name)
        return state

    @property
    def default_mode(self) -> CompatibilityMode:
        """The mode of subjects that have none of their own."""
        version = self._get(stored.COMPATIBILITY_KEY)
        return (None if version is None else stored.decode_compatibility(version.payload)) or DEFAULT_MODE

    def registered_schema(self, schema_id: int) -> RegisteredSchema:
        """Return the schema of an id. Raises NotFound."""
        found = self._state.registered.get(schema_id)
        if found is None:
            version = self._get(stored.schema_key(schema_id))
            if version is None:
                raise NotFound("schema", f"with id {schema_id}")
            found = self._state.registered[schema_id] = stored.decode_schema(version.payload)
        return found

    def find_schema_id(self, digest: bytes) -> int | None:
        """Return the id of the schema that has a declaration of that digest, under any subject."""
        version = self._get(stored.schema_id_key(digest))
        return None if version is None else stored.decode_schema_id(version.payload)

    def schema(self, schema_id: int) -> Schema:
        """Return the parsed schema of an id. Raises NotFound."""
        schema = self._state.schemas.get(schema_id)
        if schema is None:
            text = self.registered_schema(schema_id).text
            try:
                schema = self._state.schemas[schema_id] = self.parse(text)
            except InvalidSchema as malformed:
                raise DataLoss("catalogue", f"schema {schema_id}: {malformed}") from malformed
        return schema

    def version_of_subject(self, subject: str, version: int = 0) -> SchemaVersion:
        """Return a version of ``subject``, 0 for the newest. Raises NotFound."""
        live = self.subject(subject).live
        found = live[-1] if version == 0 else next((each for each in live if each.version == version), None)
        if found is None:
            newest = f"whose newest is {live[-1].version}"
            raise NotFound("schema", f"version {version} of subject {subject}, {newest}")
        return SchemaVersion(subject, found.version, self.registered_schema(found.schema_id))

    def version_with_id(self, subject: str, schema_id: int) -> SchemaVersion:
        """Return the newest version of ``subject`` that has the schema of that id. Raises NotFound."""
        for each in reversed(self.subject(subject).live):
            if each.schema_id == schema_id:
                return SchemaVersion(subject, each.version, self.registered_schema(schema_id))
        raise NotFound("schema", f"with id {schema_id} in subject {subject}")

    def newest_schema(self, subject: str) -> tuple[int, Schema]:
        """Id and schema of the newest version. Raises NotFound."""
        newest = self.subject(subject).newest
        assert newest is not None
        return newest.schema_id, self.schema(newest.schema_id)

    def parse(self, text: str) -> Schema:
        """Return a schema, parsed once. Raises InvalidSchema."""
        return self._cache.parse(text)

    def judged(self, question: Hashable, judge: Callable[[], T]) -> T:
        """Return the verdict of ``judge``, which depends on this state of the catalogue alone; remembered for as long
        as it lasts.

        So a slow verdict may be reached beside the loop first, and is only looked up when the write is evaluated.
        """
        verdicts = self._state.verdicts
        found: T | None = verdicts.get(question)
        if found is None:
            found = judge()
            verdicts[question] = found
            while len(verdicts) > VERDICTS_MAX:
                verdicts.popitem(last=False)
        return found

    # --- reading

    def _get(self, key: LogicalKey) -> Version | None:
        return self.reader.get(key)

    def _payloads(self, *path: str, behind: Sequence[str | int] = ()) -> Iterator[bytes]:
        """Yield the payloads of all keys with names that begin with ``path``; only of those behind the key ``behind``,
        if that is longer than the path."""
        start, end = meta_range(*path)
        if len(behind) > len(path):
            start = min(max(start, meta_range(*behind)[1]), end)
        return (version.payload for _, version in self.reader.scan(start, end))


class _NamedAsIn(Catalog):
    """The databases and tables of another time. Both readers must stay as they are while it is used."""

    def __init__(self, newest: Catalog, past: Catalog, check: CheckName | None) -> None:
        super().__init__(newest.reader, newest._cache, str(past.reader.read_ts))
        self._newest = newest
        self._past = past
        self._check = check

    def databases(self) -> list[str]:
        return self._past.databases()

    def find_database(self, name: str) -> DatabaseDescriptor | None:
        return self._past.find_database(name)

    def find_table(self, database: str, name: str) -> TableDescriptor | None:
        self.database(database)
        found = self._past.find_table(database, name)
        if found is not None and self._check is not None:
            now = self._newest.find_table_with(found.table_id, database, name)
            if now is not None:
                self._check(found, now)
        return found

    def tables_behind(self, full_name: str, database: str | None = None) -> Iterator[TableDescriptor]:
        if database is not None:
            self.database(database)
        return self._past.tables_behind(full_name, database)

    def index_of(self, table: TableDescriptor, name: str) -> IndexDescriptor:
        if table.index(name) is None:
            newest = self._newest.find_table_with(table.table_id, table.database, table.name)
            later = None if newest is None else newest.index(name)
            if later is not None:
                later.check_ready(table.full_name, self._past.reader.as_of)
        return super().index_of(table, name)

    def generation_of(self, namespace: str) -> int:
        return self._past.generation_of(namespace)


class _UnchangedSince(Catalog):
    """Tables and namespaces with names that still stand for the same as at ``start``."""

    def __init__(self, newest: Catalog, start: Timestamp) -> None:
        super().__init__(newest.reader, newest._cache)
        self._start = start
        self._unchanged: set[str] = set()

    def find_table(self, database: str, name: str) -> TableDescriptor | None:
        try:
            table = super().find_table(database, name)
        except NotFound as gone:
            raise self._conflict(database, name) or gone from None
        if table is None:
            conflict = self._conflict(database, name)
            if conflict is not None:
                raise conflict
        elif table.named_ts > self._start:
            raise self._conflict_at(database, name, table.named_ts)
        return table

    def generation_of(self, namespace: str) -> int:
        found = super().generation_of(namespace)
        if namespace not in self._unchanged:
            changed = self.reader.changed_since([namespace_key(namespace)], (), self._start)
            if changed is not None:
                raise WriteConflict(namespace, str(self._start), str(changed.ts), kind="namespace")
            self._unchanged.add(namespace)
        return found

    def check_still(self, database: str, name: str, table_id: int) -> None:
        table = None
        with suppress(NotFound):
            table = super().find_table(database, name)
        if table is None:
            raise self._conflict(database, name) or self._conflict_at(database, name, self.changed_ts)
        if table.table_id != table_id:
            raise self._conflict_at(database, name, table.named_ts)

    def _conflict(self, database: str, name: str) -> WriteConflict | None:
        changed = self.reader.changed_since([stored.table_key(database, name)], (), self._start)
        return None if changed is None else self._conflict_at(database, name, changed.ts)

    def _conflict_at(self, database: str, name: str, changed_ts: Timestamp) -> WriteConflict:
        return WriteConflict(f"{database}.{name}", str(self._start), str(changed_ts), kind="table")
