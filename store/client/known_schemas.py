"""A client's knowledge of schemas: parsed, and asked for once.

A schema id names one text for ever, in all subjects, so :meth:`KnownSchemas.by_id` keeps what it parsed. A subject's
version stays cached too: its number is never used again. The *newest* version of a subject can change at any time by
another client. :meth:`KnownSchemas.newest` remembers it for :data:`NEWEST_RECENT_S`. A sign of a newer one ends that at
once: a row written with it, a document with a field that the remembered version lacks, a registration through this
client.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from cortado.proto.v1 import schemas_pb2
from cortado.schema.canonical import crc64_fingerprint, sha256_fingerprint
from cortado.schema.model import Schema
from cortado.schema.parse import parse_schema
from cortado.store.client.arguments import whole
from cortado.store.client.caches import SchemaCache
from cortado.store.client.connection import Connection
from cortado.store.keys.names import check_subject

NEWEST_RECENT_S: Final = 5.0
"""How long the newest version of a subject is remembered."""
ASKING_S: Final = 0.5
"""How much longer by those who come while one asks again."""

_UINT32_MAX: Final = (1 << 32) - 1


@dataclass(frozen=True, slots=True)
class SchemaVersion:
    """One registered version. ``schema`` is the declaration as it was first registered (JSON text): ``schema_id`` names
    it in all subjects.

    ``fingerprint`` is the registry's own, by which versions differ: of a form that keeps defaults and aliases, too.
    """

    schema_id: int
    subject: str
    version: int
    schema: str
    fingerprint: str
    created: bool = False
    deleted: bool = False

    def avro_fingerprints(self) -> dict[str, str]:
        """Return Avro's fingerprints of the Parsing Canonical Form, as in other libraries: ``sha256``, ``crc64``."""
        return avro_fingerprints(parse_schema(self.schema))


class KnownSchemas:
    """The schemas that one client has seen; it asks the registry for the others."""

    def __init__(self, connection: Connection, cache: SchemaCache[SchemaVersion], *, timeout_s: float) -> None:
        self._connection = connection
        self._stub = connection.stubs.schemas
        self._cache = cache
        self._timeout_s = timeout_s

    def within(self, timeout_s: float) -> KnownSchemas:
        """Return the same schemas, with each call taking no longer than that."""
        return KnownSchemas(self._connection, self._cache, timeout_s=min(timeout_s, self._timeout_s))

    async def by_id(self, schema_id: int) -> Schema:
        """Return the parsed schema of an id; asked for once. Raises NotFound."""
        known = self._cache.by_id.get(whole(schema_id, "schema_id", 1, _UINT32_MAX))
        if known is not None:
            return known
        request = schemas_pb2.GetSchemaRequest(schema_id=schema_id)
        reply = await self._connection.call(self._stub.Get, request, timeout_s=self._timeout_s)
        return self._parsed(reply.version)

    async def declaration(self, schema_id: int) -> str:
        """Return the declaration of an id as JSON text; recent ones come from the cache. Raises NotFound."""
        known = self._cache.texts.get(whole(schema_id, "schema_id", 1, _UINT32_MAX))
        if known is not None:
            return known
        request = schemas_pb2.GetSchemaRequest(schema_id=schema_id)
        reply = await self._connection.call(self._stub.Get, request, timeout_s=self._timeout_s)
        declaration: str = reply.version.schema
        self._cache.texts.put(schema_id, declaration)
        return declaration

    async def version_with_id(self, subject: str, schema_id: int) -> tuple[SchemaVersion, Schema]:
        """Return the version of ``subject`` that has the schema of that id; asked for once. Raises NotFound."""
        known = self._cache.with_id.get((subject, schema_id))
        if known is not None:
            return known, await self.by_id(schema_id)
        request = schemas_pb2.GetSchemaRequest(
            subject=check_subject(subject), schema_id=whole(schema_id, "schema_id", 1, _UINT32_MAX)
        )
        reply = await self._connection.call(self._stub.Get, request, timeout_s=self._timeout_s)
        return self.remember(reply.version)

    async def newest(self, subject: str) -> tuple[SchemaVersion, Schema]:
        """Return the newest version of ``subject``, as of about :data:`NEWEST_RECENT_S` ago at most. Raises
        NotFound."""
        remembered = self._cache.newest.get(subject) if isinstance(subject, str) else None
        if remembered is not None:
            until_s, version = remembered
            known = self._cache.by_id.get(version.schema_id)
            now_s = self._connection.environment.monotonic_s()
            if known is not None and now_s < until_s:
                return version, known
            with self._cache.lock:
                # One caller asks again; others, which may be thousands, go on with the known version.
                self._cache.newest[subject] = (now_s + ASKING_S, version)
        found = await self.fetch(subject, None)
        until_s = self._connection.environment.monotonic_s() + NEWEST_RECENT_S
        with self._cache.lock:
            self._cache.newest[subject] = (until_s, found[0])
        return found

    async def version(self, subject: str, version: int) -> tuple[SchemaVersion, Schema]:
        """Return that version of ``subject``, parsed; asked for once. Raises NotFound."""
        known = self._cache.versions.get((subject, version))
        if known is not None:
            return known, await self.by_id(known.schema_id)
        return await self.fetch(subject, version)

    def forget_newest(self, subject: str) -> None:
        """Forget the newest version: there may be a newer one."""
        with self._cache.lock:
            self._cache.newest.pop(subject, None)

    async def fetch(self, subject: str, version: int | None) -> tuple[SchemaVersion, Schema]:
        """Ask for that version of ``subject``, None for the newest. Raises NotFound."""
        number = 0 if version is None else whole(version, "version", 1, _UINT32_MAX)
        request = schemas_pb2.GetSchemaRequest(subject=check_subject(subject), version=number)
        reply = await self._connection.call(self._stub.Get, request, timeout_s=self._timeout_s)
        return self.remember(reply.version)

    def remember(self, message: schemas_pb2.SchemaVersion, *, created: bool = False) -> tuple[SchemaVersion, Schema]:
        """Keep a version that the registry has told, and return it."""
        schema, version = self._parsed(message), version_from_proto(message)
        with self._cache.lock:
            self._cache.versions[version.subject, version.version] = version
            self._cache.with_id[version.subject, version.schema_id] = version
        return (replace(version, created=created), schema)

    def _parsed(self, message: schemas_pb2.SchemaVersion) -> Schema:
        known = self._cache.by_id.get(message.schema_id)
        if known is None:
            parsed = parse_schema(message.schema)
            with self._cache.lock:
                # The first one stays: documents decoded with it share its types.
                known = self._cache.by_id.setdefault(message.schema_id, parsed)
        return known


def avro_fingerprints(schema: Schema) -> dict[str, str]:
    """Return the fingerprints of a parsed schema, as :meth:`SchemaVersion.avro_fingerprints`."""
    # CRC-64-AVRO is a number, and is written as single-object encoding has it: the lowest byte first.
    crc64 = crc64_fingerprint(schema).to_bytes(8, "little")
    return {"sha256": sha256_fingerprint(schema).hex(), "crc64": crc64.hex()}


def version_from_proto(message: schemas_pb2.SchemaVersion) -> SchemaVersion:
    """Return a version as a value."""
    return SchemaVersion(
        message.schema_id,
        message.subject,
        message.version,
        message.schema,
        message.fingerprint,
        deleted=message.deleted,
    )
