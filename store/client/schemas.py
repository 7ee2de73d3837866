"""The schema registry for clients: subjects, versions, ids, and the rules of compatibility.

A schema id names one text for ever, in all subjects, so :meth:`Schemas.by_id` keeps what it parsed. A subject's
version stays cached too: its number is never used again. The *newest* version of a subject can change at any time by
another client. :meth:`Schemas.newest` remembers it for :data:`NEWEST_RECENT_S`. A sign of a newer one ends that at
once: a row written with it, a document with a field that the remembered version lacks, a registration through this
client.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from cortado.errors import InvalidArgument
from cortado.proto.v1 import schemas_pb2
from cortado.schema.canonical import crc64_fingerprint, sha256_fingerprint
from cortado.schema.compatibility import CompatibilityMode, Incompatibility
from cortado.schema.model import Schema
from cortado.schema.parse import parse_schema
from cortado.store.client.arguments import flag, shown, text, whole
from cortado.store.client.caches import SchemaCache
from cortado.store.client.connection import Connection
from cortado.store.client.public_faces import public_face
from cortado.store.keys.names import check_subject

NEWEST_RECENT_S: Final = 5.0
"""How long the newest version of a subject is remembered."""
ASKING_S: Final = 0.5
"""How much longer by those who come while one asks again."""

_OF_FASTAVRO: Final = ("__fastavro_parsed", "__named_schemas")
_MODE_PREFIX: Final = "COMPATIBILITY_MODE_"
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


@dataclass(frozen=True, slots=True)
class VersionSummary:
    """A version without its declaration, which ``schema_id`` names."""

    subject: str
    version: int
    schema_id: int
    deleted: bool = False


@dataclass(frozen=True, slots=True)
class SubjectSummary:
    """A subject: the number of its versions, its compatibility mode, and the tables whose documents follow it."""

    subject: str
    versions: int
    mode: CompatibilityMode
    tables: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SchemaCheck:
    """The answer of a trial registration. ``incompatibilities`` is empty if ``compatible``; ``registered`` is the
    version that the schema is already."""

    compatible: bool
    mode: CompatibilityMode
    incompatibilities: tuple[Incompatibility, ...]
    registered: SchemaVersion | None = None


@public_face
class AsyncSchemas:
    """The registry."""

    def __init__(self, connection: Connection, cache: SchemaCache[SchemaVersion], *, timeout_s: float) -> None:
        self._connection = connection
        self._stub = connection.stubs.schemas
        self._cache = cache
        self._timeout_s = timeout_s

    def within(self, timeout_s: float) -> AsyncSchemas:
        """Return the same schemas, with each call taking no longer than that."""
        return AsyncSchemas(self._connection, self._cache, timeout_s=min(timeout_s, self._timeout_s))

    # --- the registry's calls --------------------------------------------------------------------------------

    async def register(self, subject: str, schema: str | Mapping[str, Any]) -> SchemaVersion:
        """Register a version of ``subject``; the same schema again gives the same version, and the same text under
        another subject the same id.

        Raises InvalidSchema, or IncompatibleSchema with every incompatibility and its path.
        """
        request = schemas_pb2.RegisterSchemaRequest(subject=check_subject(subject), schema=schema_text(schema))
        reply = await self._connection.write(self._stub.Register, request, timeout_s=self._timeout_s)
        self.forget_newest(subject)
        return self._remember(reply.version, created=reply.created)[0]

    async def get(self, subject: str, version: int | None = None) -> SchemaVersion:
        """Return a version of ``subject``, by default the newest. Raises NotFound."""
        return (await self._fetch_version(subject, version))[0]

    async def delete(self, subject: str, version: int | None = None, *, permanent: bool = False) -> list[int]:
        """Delete one version of ``subject`` or all, softly, or ``permanent`` after that. Return their numbers.

        Schemas stay, and their ids. Raises NotFound, or InvalidArgument if a table follows the subject, or if a
        permanent deletion includes a version that was not deleted before.
        """
        number = 0 if version is None else whole(version, "version", 1, _UINT32_MAX)
        request = schemas_pb2.DeleteSchemaRequest(
            subject=check_subject(subject), version=number, permanent=flag(permanent, "permanent")
        )
        reply = await self._connection.write(self._stub.Delete, request, timeout_s=self._timeout_s)
        self.forget_newest(subject)
        return [*reply.versions]

    async def versions(self, subject: str, *, include_deleted: bool = False) -> list[SchemaVersion]:
        """Return all versions of ``subject``, oldest first. Raises NotFound."""
        request = schemas_pb2.ListVersionsRequest(
            subject=check_subject(subject), include_deleted=flag(include_deleted, "include_deleted")
        )
        return [_version(each) for each in await self._list(request)]

    async def numbers(self, subject: str, *, include_deleted: bool = False) -> list[VersionSummary]:
        """Return version numbers without the declarations; otherwise as :meth:`versions`."""
        request = schemas_pb2.ListVersionsRequest(
            subject=check_subject(subject),
            include_deleted=flag(include_deleted, "include_deleted"),
            omit_schemas=True,
        )
        return [_version_summary(each) for each in await self._list(request)]

    async def uses(self, schema_id: int, *, include_deleted: bool = False) -> list[VersionSummary]:
        """Return the versions of all subjects that have the schema of that id, by subject. Raises NotFound if there is
        no such schema."""
        request = schemas_pb2.ListVersionsRequest(
            schema_id=whole(schema_id, "schema_id", 1, _UINT32_MAX),
            include_deleted=flag(include_deleted, "include_deleted"),
            omit_schemas=True,
        )
        return [_version_summary(each) for each in await self._list(request)]

    async def _list(self, request: schemas_pb2.ListVersionsRequest) -> list[schemas_pb2.SchemaVersion]:
        found: list[schemas_pb2.SchemaVersion] = []
        while True:
            reply = await self._connection.call(self._stub.ListVersions, request, timeout_s=self._timeout_s)
            found += reply.versions
            if not reply.next_page_token:
                return found
            request.page_token = reply.next_page_token

    async def subjects(self, *, include_deleted: bool = False) -> list[SubjectSummary]:
        """Return all subjects, by name."""
        found: list[SubjectSummary] = []
        request = schemas_pb2.ListSubjectsRequest(include_deleted=flag(include_deleted, "include_deleted"))
        while True:
            reply = await self._connection.call(self._stub.ListSubjects, request, timeout_s=self._timeout_s)
            found += [
                SubjectSummary(each.subject, each.versions, mode_from_proto(each.mode), tuple(each.tables))
                for each in reply.subjects
            ]
            if not reply.next_page_token:
                return found
            request.page_token = reply.next_page_token

    async def test_compatibility(
        self,
        subject: str,
        schema: str | Mapping[str, Any],
        mode: CompatibilityMode | str | None = None,
        *,
        version: int | None = None,
    ) -> SchemaCheck:
        """Return the answer that :meth:`register` would give, under the subject's mode or another; changes nothing.

        With a ``version`` the schema is compared with that one alone. Raises NotFound if there is no such version.
        """
        request = schemas_pb2.CheckSchemaRequest(
            subject=check_subject(subject),
            schema=schema_text(schema),
            mode=None if mode is None else mode_to_proto(mode),
            version=0 if version is None else whole(version, "version", 1, _UINT32_MAX),
        )
        reply = await self._connection.call(self._stub.Check, request, timeout_s=self._timeout_s)
        problems = tuple(
            Incompatibility(each.path, each.kind, each.message, each.version) for each in reply.incompatibilities
        )
        registered = _version(reply.registered) if reply.HasField("registered") else None
        return SchemaCheck(reply.compatible, mode_from_proto(reply.mode), problems, registered)

    async def compatibility(self, subject: str) -> CompatibilityMode:
        """Return the mode under which versions of ``subject`` are checked, its own or the default's. Raises
        NotFound."""
        return (await self._compatibility(check_subject(subject)))[0]

    async def own_compatibility(self, subject: str) -> CompatibilityMode | None:
        """Return the mode that ``subject`` has of its own, or None if the default's counts. Raises NotFound."""
        mode, own = await self._compatibility(check_subject(subject))
        return mode if own else None

    async def default_compatibility(self) -> CompatibilityMode:
        """Return the mode of all subjects without one of their own."""
        return (await self._compatibility(""))[0]

    async def set_compatibility(self, subject: str, mode: CompatibilityMode | str | None) -> CompatibilityMode:
        """Set the mode for versions to come, even before the first; None removes it, so that the default counts.
        Returns the mode in force. Raises InvalidArgument for an unknown mode, NotFound if no mode was set."""
        return await self._set_compatibility(check_subject(subject), mode)

    async def set_default_compatibility(self, mode: CompatibilityMode | str | None) -> CompatibilityMode:
        """Set the mode of all subjects without one of their own; None for BACKWARD_TRANSITIVE."""
        return await self._set_compatibility("", mode)

    async def _compatibility(self, subject: str) -> tuple[CompatibilityMode, bool]:
        request = schemas_pb2.GetCompatibilityRequest(subject=subject)
        reply = await self._connection.call(self._stub.GetCompatibility, request, timeout_s=self._timeout_s)
        return mode_from_proto(reply.mode), reply.own

    async def _set_compatibility(self, subject: str, mode: CompatibilityMode | str | None) -> CompatibilityMode:
        number = None if mode is None else mode_to_proto(mode)
        request = schemas_pb2.SetCompatibilityRequest(subject=subject, mode=number)
        reply = await self._connection.write(self._stub.SetCompatibility, request, timeout_s=self._timeout_s)
        return mode_from_proto(reply.mode)

    # --- parsed and cached -----------------------------------------------------------------------------------

    async def by_id(self, schema_id: int) -> Schema:
        """Return the parsed schema of an id; asked for once. Raises NotFound."""
        known = self._cache.by_id.get(whole(schema_id, "schema_id", 1, _UINT32_MAX))
        if known is not None:
            return known
        request = schemas_pb2.GetSchemaRequest(schema_id=schema_id)
        reply = await self._connection.call(self._stub.Get, request, timeout_s=self._timeout_s)
        return self._parsed(reply.version)

    async def text_by_id(self, schema_id: int) -> str:
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
        return self._remember(reply.version)

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
        found = await self._fetch_version(subject, None)
        until_s = self._connection.environment.monotonic_s() + NEWEST_RECENT_S
        with self._cache.lock:
            self._cache.newest[subject] = (until_s, found[0])
        return found

    async def version(self, subject: str, version: int) -> tuple[SchemaVersion, Schema]:
        """Return that version of ``subject``, parsed; asked for once. Raises NotFound."""
        known = self._cache.versions.get((subject, version))
        if known is not None:
            return known, await self.by_id(known.schema_id)
        return await self._fetch_version(subject, version)

    def forget_newest(self, subject: str) -> None:
        """Forget the newest version: there may be a newer one."""
        with self._cache.lock:
            self._cache.newest.pop(subject, None)

    async def _fetch_version(self, subject: str, version: int | None) -> tuple[SchemaVersion, Schema]:
        number = 0 if version is None else whole(version, "version", 1, _UINT32_MAX)
        request = schemas_pb2.GetSchemaRequest(subject=check_subject(subject), version=number)
        reply = await self._connection.call(self._stub.Get, request, timeout_s=self._timeout_s)
        return self._remember(reply.version)

    def _remember(self, message: schemas_pb2.SchemaVersion, *, created: bool = False) -> tuple[SchemaVersion, Schema]:
        schema, version = self._parsed(message), _version(message)
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


def schema_text(schema: str | Mapping[str, Any]) -> str:
    """Return a schema's declaration as JSON text. Raises InvalidArgument for neither text nor JSON."""
    if isinstance(schema, str):
        return text(schema, "schema")
    # fastavro.parse_schema adds fields for itself, which hold the whole schema once more.
    if isinstance(schema, Mapping):
        schema = {name: value for name, value in schema.items() if name not in _OF_FASTAVRO}
    try:
        return json.dumps(schema)
    except (TypeError, ValueError) as error:
        raise InvalidArgument("schema", f"must be JSON: {error}") from None


def mode_to_proto(mode: CompatibilityMode | str) -> schemas_pb2.CompatibilityMode:
    """Return a mode's number. Raises InvalidArgument naming the known modes."""
    try:
        known = CompatibilityMode(mode.upper() if isinstance(mode, str) else mode)
    except ValueError:
        raise InvalidArgument("mode", f"must be one of {', '.join(CompatibilityMode)}", shown(mode)) from None
    number: schemas_pb2.CompatibilityMode = getattr(schemas_pb2, _MODE_PREFIX + known.name)
    return number


def mode_from_proto(mode: int) -> CompatibilityMode:
    """Return the mode of a number."""
    name = schemas_pb2.CompatibilityMode.Name(mode)
    return CompatibilityMode[name.removeprefix(_MODE_PREFIX)]


def avro_fingerprints(schema: Schema) -> dict[str, str]:
    """Return the fingerprints of a parsed schema, as :meth:`SchemaVersion.avro_fingerprints`."""
    # CRC-64-AVRO is a number, and is written as single-object encoding has it: the lowest byte first.
    crc64 = crc64_fingerprint(schema).to_bytes(8, "little")
    return {"sha256": sha256_fingerprint(schema).hex(), "crc64": crc64.hex()}


def _version(message: schemas_pb2.SchemaVersion) -> SchemaVersion:
    return SchemaVersion(
        message.schema_id,
        message.subject,
        message.version,
        message.schema,
        message.fingerprint,
        deleted=message.deleted,
    )


def _version_summary(message: schemas_pb2.SchemaVersion) -> VersionSummary:
    return VersionSummary(message.subject, message.version, message.schema_id, message.deleted)
