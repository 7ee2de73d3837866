"""The catalogue's keys and stored values: the only place that knows their form (``docs/formats/catalog.md``).

================================  ==================  ===================================================
key, in the space ``m``           value               holds
================================  ==================  ===================================================
``catalog``                       StoredCounters      the next numbers; rewritten by *every* change
``database`` name                 StoredDatabase      its number, and the next table's
``table`` database, name          StoredTable         key, subject, indexes
``schema`` id                     StoredSchema        the declaration
``schema-id`` digest              StoredSchemaId      which id the schema of a text has
``subject`` name                  StoredSubject       its own mode, and its versions
``deleted-subject`` name          StoredSubject       of one that is gone: the number that comes next
``compatibility``                 StoredCompatibility the mode of subjects without one of their own
``dropped`` number                StoredDropped       what was dropped, until its grace is over
``dropped-by`` principal          StoredShare         how many of these count for a principal
``namespace`` name                StoredNamespace     of one that was dropped once: which generation its name means
================================  ==================  ===================================================

Because every change rewrites ``catalog``, the timestamp of that key's version names the catalogue's whole state: values
that are cached under it stay true for ever.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from cortado.errors import CortadoError, DataLoss
from cortado.invariants import invariant
from cortado.proto.internal import catalog_pb2 as pb
from cortado.schema.compatibility import CompatibilityMode
from cortado.store.catalog.descriptors import (
    DatabaseDescriptor,
    Drop,
    DropKind,
    Dropped,
    IndexDescriptor,
    IndexState,
    RegisteredSchema,
    SubjectState,
    SubjectVersion,
    TableDescriptor,
)
from cortado.store.clock.timestamp import ZERO, Timestamp
from cortado.store.keys.keyspace import meta_key, namespace_key
from cortado.store.keys.names import check_namespace
from cortado.store.keys.types import KeyPart, KeyType, LogicalKey
from cortado.store.mvcc.reader import Reader
from cortado.store.mvcc.stored_messages import decode_stored, encode_stored

COUNTERS_KEY: Final = meta_key("catalog")
COMPATIBILITY_KEY: Final = meta_key("compatibility")


@dataclass(frozen=True, slots=True)
class Counters:
    """The numbers that come next. They only grow, so a number never comes to mean another thing. ``dropped``: the
    number of records of drops, kept since counting twenty thousand takes long."""

    next_database_number: int = 1
    next_schema_id: int = 1
    next_dropped_number: int = 1
    dropped: int = 0


def database_key(name: str) -> LogicalKey:
    return meta_key("database", name)


def table_key(database: str, name: str) -> LogicalKey:
    return meta_key("table", database, name)


def dropped_key(number: int) -> LogicalKey:
    return meta_key("dropped", number)


def dropped_by_key(principal: str) -> LogicalKey:
    return meta_key("dropped-by", principal)


def schema_key(schema_id: int) -> LogicalKey:
    return meta_key("schema", schema_id)


def schema_id_key(digest: bytes) -> LogicalKey:
    """Return the key of the id of the schema that has a declaration of that digest."""
    return meta_key("schema-id", digest.hex())


def subject_key(name: str) -> LogicalKey:
    return meta_key("subject", name)


def deleted_subject_key(name: str) -> LogicalKey:
    """Return the key of a subject's next version while there is no such subject."""
    return meta_key("deleted-subject", name)


def encode_counters(counters: Counters) -> bytes:
    numbers = pb.StoredCounters(
        next_database_number=counters.next_database_number,
        next_schema_id=counters.next_schema_id,
        next_dropped_number=counters.next_dropped_number,
        dropped=counters.dropped,
    )
    return encode_stored(numbers)


def decode_counters(payload: bytes) -> Counters:
    stored = decode_stored(pb.StoredCounters, payload, "catalogue")
    return Counters(stored.next_database_number, stored.next_schema_id, stored.next_dropped_number, stored.dropped)


def encode_database(database: DatabaseDescriptor) -> bytes:
    return encode_stored(
        pb.StoredDatabase(
            name=database.name,
            number=database.number,
            next_table_number=database.next_table_number,
            principal=database.principal,
        )
    )


def decode_database(payload: bytes) -> DatabaseDescriptor:
    stored = decode_stored(pb.StoredDatabase, payload, "catalogue")
    return DatabaseDescriptor(stored.name, stored.number, stored.next_table_number, stored.principal)


def encode_table(table: TableDescriptor) -> bytes:
    highest = max((index.index_id for index in table.indexes), default=0)
    invariant(table.next_index_id > highest, "an index's id is never used again", table.next_index_id, highest)
    return encode_stored(
        pb.StoredTable(
            table_id=table.table_id,
            database=table.database,
            name=table.name,
            subject=table.subject,
            key=_stored_parts(table.key),
            indexes=map(_stored_index, table.indexes),
            version=table.version,
            next_index_id=table.next_index_id,
            retention_ms=table.retention_ms,
            named_ts=bytes(table.named_ts),
            ttl_ms=table.ttl_ms,
            principal=table.principal,
        )
    )


def decode_table(payload: bytes) -> TableDescriptor:
    stored = decode_stored(pb.StoredTable, payload, "catalogue")
    return TableDescriptor(
        table_id=stored.table_id,
        database=stored.database,
        name=stored.name,
        subject=stored.subject,
        key=_parts(stored.key),
        indexes=tuple(map(_index, stored.indexes)),
        version=stored.version,
        next_index_id=stored.next_index_id,
        retention_ms=stored.retention_ms,
        named_ts=_timestamp(stored.named_ts),
        ttl_ms=stored.ttl_ms,
        principal=stored.principal,
    )


def field_of_table(*, table_id: int = 0, name: str = "", subject: str = "", principal: str = "") -> bytes:
    """Return bytes that occur in the descriptor of every table with these values; others may have them, too."""
    return encode_stored(pb.StoredTable(table_id=table_id, name=name, subject=subject, principal=principal))


def field_of_subject(principal: str) -> bytes:
    """As :func:`field_of_table`, for the stored state of a subject."""
    return encode_stored(pb.StoredSubject(principal=principal))


def field_of_dropped(*, name: str = "", dropped_with: int = 0) -> bytes:
    """As :func:`field_of_table`, for the record of a drop."""
    return encode_stored(pb.StoredDropped(name=name, dropped_with=dropped_with))


def encode_dropped(dropped: Dropped) -> bytes:
    what = dropped.what
    return encode_stored(
        pb.StoredDropped(
            number=dropped.number,
            kind=what.kind.value,
            name=what.name,
            dropped_ts=bytes(dropped.dropped_ts),
            retention_ms=what.retention_ms,
            table_id=what.table_id,
            ranges=[pb.StoredRange(start=start, end=end) for start, end in what.ranges],
            descriptor=what.descriptor,
            dropped_with=dropped.dropped_with,
            is_clearing=dropped.is_clearing,
            principal=dropped.principal,
        )
    )


def decode_dropped(payload: bytes) -> Dropped:
    stored = decode_stored(pb.StoredDropped, payload, "catalogue")
    try:
        kind = DropKind(stored.kind)
    except ValueError as unknown:
        raise DataLoss("catalogue", f"{stored.name} was dropped as the unknown kind {stored.kind!r}") from unknown
    ranges = tuple((LogicalKey(each.start), LogicalKey(each.end)) for each in stored.ranges)
    what = Drop(kind, stored.name, stored.table_id, stored.retention_ms, ranges, stored.descriptor)
    dropped_ts = _timestamp(stored.dropped_ts)
    return Dropped(stored.number, what, dropped_ts, stored.dropped_with, stored.is_clearing, stored.principal)


def encode_share(dropped: int) -> bytes:
    return encode_stored(pb.StoredShare(dropped=dropped))


def decode_share(payload: bytes) -> int:
    return decode_stored(pb.StoredShare, payload, "catalogue").dropped


def encode_generation(generation: int) -> bytes:
    return encode_stored(pb.StoredNamespace(generation=generation))


def decode_generation(payload: bytes) -> int:
    return decode_stored(pb.StoredNamespace, payload, "catalogue").generation


def generation_of(reader: Reader, namespace: str) -> int:
    """Return the generation that a namespace's name stands for: that of its mark, 0 if there is no mark
    (:mod:`cortado.store.catalog.namespaces`). Raises InvalidArgument, DataLoss."""
    version = reader.get(_mark_of(namespace))
    return 0 if version is None else decode_generation(version.payload)


@lru_cache(maxsize=1_024)
def _mark_of(namespace: str) -> LogicalKey:
    return namespace_key(check_namespace(namespace))


def encode_schema(schema: RegisteredSchema) -> bytes:
    return encode_stored(pb.StoredSchema(schema_id=schema.schema_id, text=schema.text, fingerprint=schema.fingerprint))


def decode_schema(payload: bytes) -> RegisteredSchema:
    stored = decode_stored(pb.StoredSchema, payload, "catalogue")
    return RegisteredSchema(stored.schema_id, stored.text, stored.fingerprint)


def encode_schema_id(schema_id: int) -> bytes:
    return encode_stored(pb.StoredSchemaId(schema_id=schema_id))


def decode_schema_id(payload: bytes) -> int:
    return decode_stored(pb.StoredSchemaId, payload, "catalogue").schema_id


def encode_subject(state: SubjectState) -> bytes:
    numbers = [each.version for each in state.versions]
    ascending = sorted({*numbers, state.next_version}) == [*numbers, state.next_version]
    invariant(ascending, "a subject's version is never used again", state.subject, numbers, state.next_version)
    versions = [
        pb.StoredVersion(version=each.version, schema_id=each.schema_id, deleted=each.deleted)
        for each in state.versions
    ]
    return encode_stored(
        pb.StoredSubject(
            subject=state.subject,
            mode=_stored_mode(state.mode),
            versions=versions,
            next_version=state.next_version,
            principal=state.principal,
        )
    )


def decode_subject(payload: bytes) -> SubjectState:
    stored = decode_stored(pb.StoredSubject, payload, "catalogue")
    versions = tuple(SubjectVersion(each.version, each.schema_id, each.deleted) for each in stored.versions)
    mode = _mode(stored.mode, stored.subject)
    return SubjectState(stored.subject, mode, versions, stored.next_version, stored.principal)


def encode_compatibility(mode: CompatibilityMode) -> bytes:
    return encode_stored(pb.StoredCompatibility(mode=_stored_mode(mode)))


def decode_compatibility(payload: bytes) -> CompatibilityMode | None:
    return _mode(decode_stored(pb.StoredCompatibility, payload, "catalogue").mode, "")


def _stored_mode(mode: CompatibilityMode | None) -> str:
    return "" if mode is None else mode.value


def _mode(stored: str, subject: str) -> CompatibilityMode | None:
    try:
        return CompatibilityMode(stored) if stored else None
    except ValueError as unknown:
        whose = f"subject {subject} has" if subject else "all subjects have"
        raise DataLoss("catalogue", f"{whose} the unknown mode {stored!r}") from unknown


def _timestamp(encoded: bytes) -> Timestamp:
    try:
        return Timestamp.from_bytes(encoded)
    except CortadoError as malformed:
        raise DataLoss("catalogue", f"no timestamp: {malformed}") from malformed


def _stored_index(index: IndexDescriptor) -> pb.StoredIndex:
    return pb.StoredIndex(
        index_id=index.index_id,
        name=index.name,
        parts=_stored_parts(index.parts),
        unique=index.unique,
        state="" if index.state is IndexState.READY else index.state.value,
        ready_ts=b"" if index.ready_ts == ZERO else bytes(index.ready_ts),
        job_id=index.job_id,
        failure=index.failure,
        failed_keys=index.failed_keys,
    )


def _index(stored: pb.StoredIndex) -> IndexDescriptor:
    try:
        state = IndexState(stored.state) if stored.state else IndexState.READY
    except ValueError as malformed:
        raise DataLoss("catalogue", f"index {stored.name}: {malformed}") from malformed
    return IndexDescriptor(
        index_id=stored.index_id,
        name=stored.name,
        parts=_parts(stored.parts),
        unique=stored.unique,
        state=state,
        ready_ts=_timestamp(stored.ready_ts) if stored.ready_ts else ZERO,
        job_id=stored.job_id,
        failure=stored.failure,
        failed_keys=tuple(stored.failed_keys),
    )


def _stored_parts(parts: tuple[KeyPart, ...]) -> list[pb.StoredKeyPart]:
    return [pb.StoredKeyPart(path=part.path, type=part.type.value, descending=part.descending) for part in parts]


def _parts(stored: Iterable[pb.StoredKeyPart]) -> tuple[KeyPart, ...]:
    try:
        return tuple(KeyPart(part.path, KeyType(part.type), part.descending) for part in stored)
    except ValueError as unknown:
        raise DataLoss("catalogue", str(unknown)) from unknown
