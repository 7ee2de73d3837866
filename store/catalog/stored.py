"""The catalogue's keys and stored values: the only place that knows how they look (``docs/formats/catalog.md``).

================================  ==================  ===================================================
key, in the space ``m``           value               holds
================================  ==================  ===================================================
``catalog``                       StoredCounters      the next ids; rewritten by *every* change
``database`` name                 StoredDatabase
``table`` database, name          StoredTable         key, subject, indexes
``schema`` id                     StoredSchema        the declaration
``subject`` name                  StoredSubject       the mode, and the ids of the versions
================================  ==================  ===================================================

Because every change rewrites ``catalog``, the timestamp of that key's version names the catalogue's whole state: what
is cached under it stays true for ever.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, TypeVar

from google.protobuf.message import DecodeError, Message

from cortado.errors import DataLoss
from cortado.proto.internal import catalog_pb2 as pb
from cortado.schema.compatibility import CompatibilityMode
from cortado.store.catalog.descriptors import IndexDescriptor, SchemaVersion, SubjectState, TableDescriptor
from cortado.store.keys.keyspace import meta_key
from cortado.store.keys.types import KeyPart, KeyType, LogicalKey

COUNTERS_KEY: Final = meta_key("catalog")

M = TypeVar("M", bound=Message)


@dataclass(frozen=True, slots=True)
class Counters:
    """The ids that come next. They only grow, so an id never comes to mean another thing."""

    next_table_id: int = 1
    next_schema_id: int = 1


def database_key(name: str) -> LogicalKey:
    return meta_key("database", name)


def table_key(database: str, name: str) -> LogicalKey:
    return meta_key("table", database, name)


def schema_key(schema_id: int) -> LogicalKey:
    return meta_key("schema", schema_id)


def subject_key(name: str) -> LogicalKey:
    return meta_key("subject", name)


def encode_counters(counters: Counters) -> bytes:
    return _encode(pb.StoredCounters(next_table_id=counters.next_table_id, next_schema_id=counters.next_schema_id))


def decode_counters(payload: bytes) -> Counters:
    stored = _decode(pb.StoredCounters(), payload)
    return Counters(stored.next_table_id, stored.next_schema_id)


def encode_database(name: str) -> bytes:
    return _encode(pb.StoredDatabase(name=name))


def decode_database(payload: bytes) -> str:
    return _decode(pb.StoredDatabase(), payload).name


def encode_table(table: TableDescriptor) -> bytes:
    return _encode(
        pb.StoredTable(
            table_id=table.table_id,
            database=table.database,
            name=table.name,
            subject=table.subject,
            key=_stored_parts(table.key),
            indexes=[
                pb.StoredIndex(
                    index_id=index.index_id, name=index.name, parts=_stored_parts(index.parts), unique=index.unique
                )
                for index in table.indexes
            ],
            version=table.version,
        )
    )


def decode_table(payload: bytes) -> TableDescriptor:
    stored = _decode(pb.StoredTable(), payload)
    return TableDescriptor(
        table_id=stored.table_id,
        database=stored.database,
        name=stored.name,
        subject=stored.subject,
        key=_parts(stored.key),
        indexes=tuple(
            IndexDescriptor(index.index_id, index.name, _parts(index.parts), index.unique) for index in stored.indexes
        ),
        version=stored.version,
    )


def encode_schema(version: SchemaVersion) -> bytes:
    return _encode(
        pb.StoredSchema(
            schema_id=version.schema_id,
            subject=version.subject,
            version=version.version,
            text=version.text,
            fingerprint=version.fingerprint,
        )
    )


def decode_schema(payload: bytes) -> SchemaVersion:
    stored = _decode(pb.StoredSchema(), payload)
    return SchemaVersion(stored.schema_id, stored.subject, stored.version, stored.text, stored.fingerprint)


def encode_subject(state: SubjectState) -> bytes:
    return _encode(pb.StoredSubject(subject=state.subject, mode=state.mode.value, schema_ids=state.schema_ids))


def decode_subject(payload: bytes) -> SubjectState:
    stored = _decode(pb.StoredSubject(), payload)
    try:
        mode = CompatibilityMode(stored.mode)
    except ValueError as unknown:
        raise DataLoss("catalogue", f"subject {stored.subject} has the unknown mode {stored.mode!r}") from unknown
    return SubjectState(stored.subject, mode, tuple(stored.schema_ids))


def _encode(stored: Message) -> bytes:
    return stored.SerializeToString(deterministic=True)


def _decode(stored: M, payload: bytes) -> M:
    try:
        stored.ParseFromString(payload)
    except DecodeError as malformed:
        raise DataLoss("catalogue", f"a value is no {type(stored).__name__}") from malformed
    return stored


def _stored_parts(parts: tuple[KeyPart, ...]) -> list[pb.StoredKeyPart]:
    return [pb.StoredKeyPart(path=part.path, type=part.type.value, descending=part.descending) for part in parts]


def _parts(stored: Iterable[pb.StoredKeyPart]) -> tuple[KeyPart, ...]:
    try:
        return tuple(KeyPart(part.path, KeyType(part.type), part.descending) for part in stored)
    except ValueError as unknown:
        raise DataLoss("catalogue", str(unknown)) from unknown
