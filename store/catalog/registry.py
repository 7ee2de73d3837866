"""The schema registry's rules: which schema may become a subject's next version.

A schema id names a text in the whole cluster, as Confluent's registry promises: the same declaration has the same id in
all subjects. Within a subject the question is another one: a schema that reads and writes as a version does (equal
fingerprints) is that version, with any comments (``docs/adr/0028-one-id-per-schema-text.md``).

A new version is checked twice:

1. by the subject's compatibility *mode*, its own or that of all subjects, against the versions that the mode names.
   BACKWARD_TRANSITIVE, the default, means all that may have written stored rows, so that the newest reads every row;
2. by what tables *pin*, in every mode, NONE too: the bytes of keys and index entries are on disk, so a field of a
   primary key or an index may not be removed, retyped or given another default.

A subject may hold schemas of any root type, keys of Kafka's topics for example. If a table follows it, each version is
a record: ``declare.py`` looks at those there are, and this module at each new one.

A refusal lists all problems at once. The same problem against several versions is listed once, with the newest of them.
"""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from cortado.errors import IncompatibleSchema, InvalidSchema, NotFound, TooLarge
from cortado.schema.compatibility import (
    DEFAULT_MODE,
    CompatibilityMode,
    Incompatibility,
    IncompatibilityKind,
    check_against,
)
from cortado.schema.field_paths import way_through_recursion
from cortado.schema.model import Record, Schema
from cortado.schema.names import describe_type, simple_name
from cortado.schema.parse import declaration_digest
from cortado.schema.pinned import check_pinned
from cortado.store.catalog import stored
from cortado.store.catalog.catalog import Catalog
from cortado.store.catalog.deletion import put_subject
from cortado.store.catalog.descriptors import RegisteredSchema, SchemaVersion, SubjectState, TableDescriptor
from cortado.store.catalog.shares import check_share_of, count_subjects_of
from cortado.store.keys import names
from cortado.store.mvcc.evaluation import Evaluation
from cortado.store.mvcc.mutations import Mutations

VERSIONS_MAX: Final = 1_000
SUBJECTS_MAX: Final = 10_000


@dataclass(frozen=True, slots=True)
class SchemaRegistered:
    """The reply of :func:`register_schema`. ``created`` is False if the same schema was registered before."""

    version: SchemaVersion
    created: bool


@dataclass(frozen=True, slots=True)
class CompatibilitySet:
    """The reply of :func:`set_compatibility`: the mode that is in force now."""

    mode: CompatibilityMode


@dataclass(frozen=True, slots=True)
class SchemaCheck:
    """The findings of :func:`check_schema` under ``mode``. ``registered`` is the version that this schema is already.

    ``digest`` says which declaration it is, in all subjects.
    """

    mode: CompatibilityMode
    digest: bytes
    incompatibilities: tuple[Incompatibility, ...] = ()
    registered: SchemaVersion | None = None

    @property
    def compatible(self) -> bool:
        return not self.incompatibilities


def register_schema(catalog: Catalog, subject: str, text: str) -> Evaluation:
    """Register the next version of ``subject``, or find the one that is the same schema already; replies
    SchemaRegistered.

    Raises InvalidArgument (the subject's name), InvalidSchema, IncompatibleSchema, TooLarge.
    """
    check = check_schema(catalog, subject, text)
    if check.registered is not None:
        return Evaluation(Mutations(), SchemaRegistered(check.registered, created=False))
    if not check.compatible:
        found = [dataclasses.asdict(each) | {"kind": str(each.kind)} for each in check.incompatibilities]
        raise IncompatibleSchema(subject=subject, mode=check.mode.value, incompatibilities=found)
    state = _subject_or_new(catalog, subject)
    _check_room_for_version(state)
    mutations = Mutations()
    schema = _schema_of(catalog, text, check.digest, mutations)
    state = state.with_version(schema.schema_id)
    put_subject(mutations, state)
    version = SchemaVersion(subject, state.versions[-1].version, schema)
    return Evaluation(mutations, SchemaRegistered(version, created=True))


def _schema_of(catalog: Catalog, text: str, digest: bytes, mutations: Mutations) -> RegisteredSchema:
    """Return the schema of that text; if it is new, put it into ``mutations``."""
    counters = catalog.counters
    schema_id = catalog.find_schema_id(digest)
    if schema_id is not None:
        schema = catalog.registered_schema(schema_id)
    else:
        schema = RegisteredSchema(counters.next_schema_id, text, catalog.parse(text).fingerprint)
        mutations.put(stored.schema_key(schema.schema_id), stored.encode_schema(schema))
        mutations.put(stored.schema_id_key(digest), stored.encode_schema_id(schema.schema_id))
        counters = replace(counters, next_schema_id=schema.schema_id + 1)
    mutations.put(stored.COUNTERS_KEY, stored.encode_counters(counters))
    return schema


def check_schema(
    catalog: Catalog, subject: str, text: str, mode: CompatibilityMode | None = None, version: int = 0
) -> SchemaCheck:
    """Return the verdict of :func:`register_schema`, under ``mode`` or the one in force. Changes nothing.

    A subject that does not exist yet takes any schema. With a ``version`` it is compared with that one alone. Raises
    InvalidArgument (the subject's name), InvalidSchema, and NotFound if there is no such version.
    """
    names.check_subject(subject)
    return catalog.judged((subject, text, mode, version), lambda: _check(catalog, subject, text, mode, version))


def _check(catalog: Catalog, subject: str, text: str, mode: CompatibilityMode | None, version: int) -> SchemaCheck:
    schema, digest = catalog.parse(text), declaration_digest(text)
    state = catalog.find_subject(subject) or SubjectState(subject)
    mode = mode or mode_of(catalog, state)
    registered = _registered(catalog, state, schema)
    if version:
        catalog.version_of_subject(subject, version)
    elif registered is not None or not state.live:
        return SchemaCheck(mode, digest, registered=registered)
    # A dropped table may come back, with the keys that it has.
    tables = catalog.tables_of(subject) + catalog.dropped_tables_of(subject)
    if tables and not isinstance(schema.root, Record):
        problem = f"must be a record: the documents of table {tables[0].full_name} follow subject {subject}"
        raise InvalidSchema("schema", problem, describe_type(schema.root))
    versions = [(each.version, catalog.schema(each.schema_id)) for each in state.live if version in (0, each.version)]
    found = check_against(schema, versions, mode)
    if registered is None and versions[-1][0] == state.live[-1].version:
        found += _check_pinned_fields(tables, versions[-1], schema)
    return SchemaCheck(mode, digest, tuple(_once_each(found)), registered)


def _registered(catalog: Catalog, state: SubjectState, schema: Schema) -> SchemaVersion | None:
    """Return the oldest version that is this schema."""
    for each in state.live:
        registered = catalog.registered_schema(each.schema_id)
        if registered.fingerprint == schema.fingerprint:
            return SchemaVersion(state.subject, each.version, registered)
    return None


def mode_of(catalog: Catalog, state: SubjectState) -> CompatibilityMode:
    """Return the mode that is in force for a subject: its own, or that of all subjects."""
    return state.mode or catalog.default_mode


def set_compatibility(catalog: Catalog, subject: str, mode: CompatibilityMode | None) -> Evaluation:
    """Another mode for ``subject``'s next versions, or none of its own; replies CompatibilitySet.

    A subject may have one before its first version. Raises InvalidArgument (the subject's name), NotFound if there is
    no subject to take it from, TooLarge.
    """
    names.check_subject(subject)
    if mode is None and catalog.find_subject(subject) is None:
        raise NotFound("subject", subject)
    state = replace(_subject_or_new(catalog, subject), mode=mode)
    mutations = Mutations()
    put_subject(mutations, state)
    mutations.put(stored.COUNTERS_KEY, stored.encode_counters(catalog.counters))
    return Evaluation(mutations, CompatibilitySet(mode_of(catalog, state)))


def set_default_compatibility(catalog: Catalog, mode: CompatibilityMode | None) -> Evaluation:
    """Another mode for all subjects that have none of their own, None for DEFAULT_MODE; replies CompatibilitySet."""
    mutations = Mutations()
    if mode is None:
        mutations.delete(stored.COMPATIBILITY_KEY)
    else:
        mutations.put(stored.COMPATIBILITY_KEY, stored.encode_compatibility(mode))
    mutations.put(stored.COUNTERS_KEY, stored.encode_counters(catalog.counters))
    return Evaluation(mutations, CompatibilitySet(mode or DEFAULT_MODE))


def _subject_or_new(catalog: Catalog, subject: str) -> SubjectState:
    """Return the subject, or a new one if there is room. Raises TooLarge, and ResourceExhausted if the caller has its
    share."""
    state = catalog.find_subject(subject)
    if state is not None:
        return state
    count = catalog.count_subjects()
    if count >= SUBJECTS_MAX:
        problem = f"there are {count} subjects already, the most that are allowed"
        raise TooLarge("subject", problem, subject, count, SUBJECTS_MAX)
    principal = catalog.asker.principal
    own = partial(count_subjects_of, catalog, principal)
    check_share_of(catalog, principal, "subjects", own, count, SUBJECTS_MAX)
    return replace(catalog.forgotten_subject(subject), principal=principal)


def _check_pinned_fields(
    tables: Sequence[TableDescriptor], newest: tuple[int, Schema], schema: Schema
) -> list[Incompatibility]:
    """Against the newest version alone: it was held to the ones before, or to the tables when they were created."""
    version, before = newest
    found = []
    for path, users in _pinned_paths(tables).items():
        root = simple_name(schema.record.name)
        for each in check_pinned(schema, before, [path]) or _newly_recursive(schema, path):
            message = f"{each.message} ({path} is part of {', '.join(users)})"
            found.append(replace(each, path=f"{root}.{each.path}", version=version, message=message))
    return found


def _newly_recursive(schema: Schema, path: str) -> list[Incompatibility]:
    problem = way_through_recursion(schema, path)
    return [] if problem is None else [Incompatibility(path, IncompatibilityKind.PINNED_FIELD_RETYPED, problem)]


def _pinned_paths(tables: Sequence[TableDescriptor]) -> dict[str, list[str]]:
    """Return the field paths in stored keys and index entries, and the keys and indexes that use each."""
    users: dict[str, list[str]] = defaultdict(list)
    for table in tables:
        for part in table.key:
            users[part.path].append(f"the key of table {table.full_name}")
        for index in table.indexes:
            for part in index.parts:
                users[part.path].append(f"index {index.name} of table {table.full_name}")
    return users


def _once_each(found: list[Incompatibility]) -> list[Incompatibility]:
    newest: dict[tuple[str, str, str], Incompatibility] = {}
    for each in found:
        same = (each.path, each.kind, each.message)
        if same not in newest or newest[same].version < each.version:
            newest[same] = each
    return list(newest.values())


def _check_room_for_version(state: SubjectState) -> None:
    count = len(state.versions)
    if count >= VERSIONS_MAX:
        problem = f"has {count} versions already, the most that are allowed"
        raise TooLarge("subject", problem, state.subject, count, VERSIONS_MAX)
