"""The schema registry for clients: subjects, versions, ids, and the rules of compatibility."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from cortado.errors import InvalidArgument
from cortado.proto.v1 import schemas_pb2
from cortado.schema.compatibility import CompatibilityMode, Incompatibility
from cortado.schema.model import Schema
from cortado.store.client.arguments import flag, shown, text, whole
from cortado.store.client.caches import SchemaCache
from cortado.store.client.connection import Connection
from cortado.store.client.known_schemas import KnownSchemas, SchemaVersion, version_from_proto
from cortado.store.client.public_faces import public_face
from cortado.store.keys.names import check_subject

_OF_FASTAVRO: Final = ("__fastavro_parsed", "__named_schemas")
_MODE_PREFIX: Final = "COMPATIBILITY_MODE_"
_UINT32_MAX: Final = (1 << 32) - 1


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
        self._known = KnownSchemas(connection, cache, timeout_s=timeout_s)
        self._timeout_s = timeout_s

    async def register(self, subject: str, schema: str | Mapping[str, Any]) -> SchemaVersion:
        """Register a version of ``subject``; the same schema again gives the same version, and the same text under
        another subject the same id.

        Raises InvalidSchema, or IncompatibleSchema with every incompatibility and its path.
        """
        request = schemas_pb2.RegisterSchemaRequest(subject=check_subject(subject), schema=schema_text(schema))
        reply = await self._connection.write(self._stub.Register, request, timeout_s=self._timeout_s)
        self._known.forget_newest(subject)
        return self._known.remember(reply.version, created=reply.created)[0]

    async def get(self, subject: str, version: int | None = None) -> SchemaVersion:
        """Return a version of ``subject``, by default the newest. Raises NotFound."""
        return (await self._known.fetch(subject, version))[0]

    async def get_by_id(self, schema_id: int) -> Schema:
        """Return the parsed schema of an id; asked for once. Raises NotFound."""
        return await self._known.by_id(schema_id)

    async def declaration(self, schema_id: int) -> str:
        """Return the declaration of an id as JSON text; recent ones come from the cache. Raises NotFound."""
        return await self._known.declaration(schema_id)

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
        self._known.forget_newest(subject)
        return [*reply.versions]

    async def versions(self, subject: str, *, include_deleted: bool = False) -> list[SchemaVersion]:
        """Return all versions of ``subject``, oldest first. Raises NotFound."""
        request = schemas_pb2.ListVersionsRequest(
            subject=check_subject(subject), include_deleted=flag(include_deleted, "include_deleted")
        )
        return [version_from_proto(each) for each in await self._list(request)]

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
        registered = version_from_proto(reply.registered) if reply.HasField("registered") else None
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


def _version_summary(message: schemas_pb2.SchemaVersion) -> VersionSummary:
    return VersionSummary(message.subject, message.version, message.schema_id, message.deleted)
