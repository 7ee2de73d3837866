"""The schema registry's rules: which schema may become a subject's next version.

A new version is checked twice:

1. by the subject's compatibility *mode*, against the versions that the mode names; the default, BACKWARD_TRANSITIVE,
   means all that may have written stored rows, so that the newest version reads every row;
2. by what tables *pin*, in every mode, NONE too: the bytes of keys and index entries are on disk, so a field that is
   part of a primary key or an index may not be removed, retyped or given another default.

A refusal lists everything that is wrong at once. What is wrong in the same way against several versions is listed once,
with the newest of them.
"""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from dataclasses import dataclass, replace
from typing import Final

from cortado.errors import IncompatibleSchema, TooLarge
from cortado.schema.compatibility import (
    DEFAULT_MODE,
    CompatibilityMode,
    Incompatibility,
    IncompatibilityKind,
    check_against,
)
from cortado.schema.model import Schema
from cortado.schema.names import simple_name
from cortado.schema.pinned import check_pinned
from cortado.store import names
from cortado.store.catalog import stored
from cortado.store.catalog.catalog import Catalog
from cortado.store.catalog.declare import way_through_recursion
from cortado.store.catalog.descriptors import SchemaVersion, SubjectState
from cortado.store.mvcc.evaluation import Evaluation
from cortado.store.mvcc.mutations import Mutations

VERSIONS_MAX: Final = 1_000
SUBJECTS_MAX: Final = 10_000


@dataclass(frozen=True, slots=True)
class SchemaRegistered:
    """The reply of :func:`register_schema`. ``created`` is False where the same schema was registered before."""

    version: SchemaVersion
    created: bool


@dataclass(frozen=True, slots=True)
class CompatibilitySet:
    """The reply of :func:`set_compatibility`."""

    subject: str
    mode: CompatibilityMode


@dataclass(frozen=True, slots=True)
class SchemaCheck:
    """What :func:`check_schema` found under ``mode``. ``registered`` is the version that this schema is already."""

    mode: CompatibilityMode
    incompatibilities: tuple[Incompatibility, ...]
    registered: SchemaVersion | None = None

    @property
    def compatible(self) -> bool:
        return not self.incompatibilities


def register_schema(catalog: Catalog, subject: str, text: str) -> Evaluation:
    """The next version of ``subject``, or the one that is the same schema already; replies SchemaRegistered.

    Raises InvalidArgument (the subject's name), InvalidSchema, IncompatibleSchema, TooLarge.
    """
    check = check_schema(catalog, subject, text)
    if check.registered is not None:
        return Evaluation(Mutations(), SchemaRegistered(check.registered, created=False))
    if not check.compatible:
        found = [dataclasses.asdict(each) | {"kind": str(each.kind)} for each in check.incompatibilities]
        raise IncompatibleSchema(subject=subject, mode=check.mode.value, incompatibilities=found)
    state = _subject_or_new(catalog, subject)
    _check_room(catalog, state)
    version = SchemaVersion(
        schema_id=catalog.counters.next_schema_id,
        subject=subject,
        version=len(state.schema_ids) + 1,
        text=text,
        fingerprint=catalog.parse(text).fingerprint,
    )
    mutations = Mutations()
    mutations.put(stored.schema_key(version.schema_id), stored.encode_schema(version))
    state = replace(state, schema_ids=(*state.schema_ids, version.schema_id))
    mutations.put(stored.subject_key(subject), stored.encode_subject(state))
    counters = replace(catalog.counters, next_schema_id=version.schema_id + 1)
    mutations.put(stored.COUNTERS_KEY, stored.encode_counters(counters))
    return Evaluation(mutations, SchemaRegistered(version, created=True))


def check_schema(catalog: Catalog, subject: str, text: str, mode: CompatibilityMode | None = None) -> SchemaCheck:
    """What :func:`register_schema` would say, under ``mode`` or the subject's own. Changes nothing.

    A subject that does not exist yet takes any schema. Raises InvalidArgument (the subject's name), InvalidSchema.
    """
    names.check_subject(subject)
    return catalog.judged((subject, text, mode), lambda: _check(catalog, subject, text, mode))


def _check(catalog: Catalog, subject: str, text: str, mode: CompatibilityMode | None) -> SchemaCheck:
    schema = catalog.parse(text)
    state = _subject_or_new(catalog, subject)
    mode = state.mode if mode is None else mode
    for schema_id in state.schema_ids:
        registered = catalog.schema_version(schema_id)
        if registered.fingerprint == schema.fingerprint:
            return SchemaCheck(mode, (), registered)
    if not state.schema_ids:
        return SchemaCheck(mode, ())
    versions = [(version, catalog.schema(schema_id)) for version, schema_id in state.versions]
    found = check_against(schema, versions, mode) + _check_pinned_fields(catalog, state, schema)
    return SchemaCheck(mode, tuple(_once_each(found)))


def set_compatibility(catalog: Catalog, subject: str, mode: CompatibilityMode) -> Evaluation:
    """Another mode for ``subject``'s next versions; replies CompatibilitySet. Raises NotFound."""
    state = replace(catalog.subject(subject), mode=mode)
    mutations = Mutations()
    mutations.put(stored.subject_key(subject), stored.encode_subject(state))
    mutations.put(stored.COUNTERS_KEY, stored.encode_counters(catalog.counters))
    return Evaluation(mutations, CompatibilitySet(subject, mode))


def _subject_or_new(catalog: Catalog, subject: str) -> SubjectState:
    return catalog.find_subject(subject) or SubjectState(subject, DEFAULT_MODE)


def _check_pinned_fields(catalog: Catalog, state: SubjectState, schema: Schema) -> list[Incompatibility]:
    """Against the newest version alone: it was held to the ones before, or to the tables when they were created."""
    version, schema_id = state.versions[-1]
    newest = catalog.schema(schema_id)
    root = simple_name(schema.record.name)
    found = []
    for path, users in _pinned_paths(catalog, state.subject).items():
        for each in check_pinned(schema, newest, [path]) or _newly_recursive(schema, path):
            message = f"{each.message} ({path} is part of {', '.join(users)})"
            found.append(replace(each, path=f"{root}.{each.path}", version=version, message=message))
    return found


def _newly_recursive(schema: Schema, path: str) -> list[Incompatibility]:
    problem = way_through_recursion(schema, path)
    return [] if problem is None else [Incompatibility(path, IncompatibilityKind.PINNED_FIELD_RETYPED, problem)]


def _pinned_paths(catalog: Catalog, subject: str) -> dict[str, list[str]]:
    """Field paths that stored keys and index entries are made of, and what is made of each."""
    users: dict[str, list[str]] = defaultdict(list)
    for table in catalog.tables_of(subject):
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


def _check_room(catalog: Catalog, state: SubjectState) -> None:
    count = len(state.schema_ids)
    if count >= VERSIONS_MAX:
        problem = f"has {count} versions already, the most that are allowed"
        raise TooLarge("subject", problem, state.subject, count, VERSIONS_MAX)
    if count == 0:
        subjects = len(catalog.subjects())
        if subjects >= SUBJECTS_MAX:
            problem = f"there are {subjects} subjects already, the most that are allowed"
            raise TooLarge("subject", problem, state.subject, subjects, SUBJECTS_MAX)
