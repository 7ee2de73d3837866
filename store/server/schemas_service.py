"""``cortado.v1.Schemas``: the registry of subjects, their versions, and the compatibility of new ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from google.protobuf.message import Message

from cortado.errors import InvalidArgument, NotFound
from cortado.proto.v1 import schemas_pb2 as pb
from cortado.schema.compatibility import CompatibilityMode, Incompatibility
from cortado.store.auth.caller import CALLER, seen_by, unmet
from cortado.store.auth.roles import Demand, Permission, Rights, subject_resource, table_resource
from cortado.store.catalog.catalog import Catalog
from cortado.store.catalog.deletion import VersionsDeleted, delete_versions
from cortado.store.catalog.descriptors import RegisteredSchema, SchemaVersion, SubjectState, SubjectVersion
from cortado.store.catalog.registry import (
    CompatibilitySet,
    SchemaRegistered,
    check_schema,
    mode_of,
    register_schema,
    set_compatibility,
    set_default_compatibility,
)
from cortado.store.clock.timestamp import Timestamp
from cortado.store.mvcc.evaluation import Evaluation
from cortado.store.server.listing import behind, next_page
from cortado.store.server.service import Service

_PREFIX = "COMPATIBILITY_MODE_"

INCOMPATIBILITIES_MAX: Final = 1_000
"""The incompatibilities that one check reports; a caller that has mended these may check again."""


class SchemasService(Service):
    """Parsing and comparing schemas takes milliseconds, so it runs beside the loop if it can."""

    async def register(self, request: pb.RegisterSchemaRequest) -> bytes:
        """Register a schema. It is compared with the older versions ahead, beside the loop; in its turn the write only
        looks the result up. Raises IncompatibleSchema, InvalidSchema."""
        # Compared with all versions here, it is only looked up when the write is evaluated. A refusal here is final.
        catalog = self.catalog(self.host.meta, await self.host.meta.reads.applied_to(await self.newest()))
        await self.host.process.scan(lambda: check_schema(catalog, request.subject, request.schema))

        def reply(registered: SchemaRegistered) -> Message:
            return pb.RegisterSchemaResponse(version=_version(registered.version), created=registered.created)

        return await self.change_catalog(
            request,
            lambda catalog, _: register_schema(catalog, request.subject, request.schema),
            SchemaRegistered,
            reply,
        )

    async def get(self, request: pb.GetSchemaRequest) -> Message:
        """Return a schema by subject and version, or by id, since rows hold that; version 0 is the newest. Raises
        NotFound."""
        read_ts = await self.newest()
        await self._check_may_read(request.subject, read_ts)
        return pb.GetSchemaResponse(
            header=self.header(read_ts), version=_find(self.catalog(self.host.meta, read_ts), request)
        )

    async def _check_may_read(self, subject: str, newest: Timestamp) -> None:
        """Check that the caller reads the subject, or a table that follows it: its rows are of the subject's schemas.
        If no subject is named, other methods cut results to those that the caller sees. Raises PermissionDenied."""
        caller, replica = CALLER.get(), self.host.meta
        if caller is None or not subject:
            return
        refusal = unmet(caller, Demand(Permission.READ, subject_resource(subject)))
        if refusal is None:
            return
        applied = replica.store.snapshot(await replica.reads.applied_to(newest))
        with self.host.process.reads.place():
            tables = await self.host.process.scan(lambda: replica.catalog(applied).tables_by_subject().get(subject, ()))
        for each in tables:
            if unmet(caller, Demand(Permission.READ, table_resource(*each.split(".")))) is None:
                return
        raise refusal

    async def list_subjects(self, request: pb.ListSubjectsRequest) -> Message:
        """Return a page of subjects that the caller may know of, with their tables; each is decoded on the scan
        thread."""
        replica = self.host.meta
        newest = await replica.reads.applied_to(await self.newest())
        rights = seen_by(CALLER.get())

        def page() -> tuple[Timestamp, list[pb.SubjectSummary], bytes]:
            read_ts, subjects, token = next_page(
                request,
                newest=newest,
                items=lambda ts, after: (
                    each
                    for each in Catalog(replica.store.snapshot(ts)).subjects_behind(after)
                    if (each.versions if request.include_deleted else each.newest) and _is_seen(each, rights)
                ),
                name=lambda subject: subject.subject,
                shape=[str(request.include_deleted)],
            )
            return read_ts, _summaries(replica.catalog(replica.store.snapshot(read_ts)), subjects, rights), token

        # Ten thousand tables, and as many subjects, take long to decode.
        with self.host.process.reads.place():
            read_ts, summaries, token = await self.host.process.scan(page)
        return pb.ListSubjectsResponse(header=self.header(read_ts), subjects=summaries, next_page_token=token)

    async def list_versions(self, request: pb.ListVersionsRequest) -> Message:
        """Return a page of one subject's versions, or of all that have one schema id."""
        replica, rights = self.host.meta, seen_by(CALLER.get())
        newest = await replica.reads.applied_to(await self.newest())
        await self._check_may_read(request.subject, newest)

        def page() -> tuple[Timestamp, list[pb.SchemaVersion], bytes]:
            # A schema id never comes to mean another schema.
            catalog = Catalog(replica.store.snapshot(newest))

            def size_bytes(found: tuple[str, SubjectVersion]) -> int:
                return len(catalog.registered_schema(found[1].schema_id).text)

            read_ts, versions, token = next_page(
                request,
                newest=newest,
                items=lambda ts, after: behind(
                    after, _versions(Catalog(replica.store.snapshot(ts)), request, rights), _name_of_version
                ),
                name=_name_of_version,
                shape=[request.subject, str(request.include_deleted), str(request.schema_id)],
                size_bytes=None if request.omit_schemas else size_bytes,
            )
            return read_ts, [_listed(catalog, request, *found) for found in versions], token

        # Versions with one schema are searched in all subjects, which take long to decode.
        with self.host.process.reads.place():
            read_ts, versions, token = await self.host.process.scan(page)
        return pb.ListVersionsResponse(header=self.header(read_ts), versions=versions, next_page_token=token)

    async def check(self, request: pb.CheckSchemaRequest) -> Message:
        """Return the result that :meth:`register` would have, without registering: also whether the very schema is a
        version already. At most INCOMPATIBILITIES_MAX are reported."""
        read_ts = await self.host.meta.reads.applied_to(await self.newest())
        catalog = self.catalog(self.host.meta, read_ts)
        mode = _mode_value(request.mode)
        check = await self.host.process.scan(
            lambda: check_schema(catalog, request.subject, request.schema, mode, request.version)
        )
        return pb.CheckSchemaResponse(
            header=self.header(read_ts),
            compatible=check.compatible,
            incompatibilities=map(_incompatibility, check.incompatibilities[:INCOMPATIBILITIES_MAX]),
            mode=_mode_message(check.mode),
            registered=None if check.registered is None else _version(check.registered),
        )

    async def get_compatibility(self, request: pb.GetCompatibilityRequest) -> Message:
        """Return the mode of a subject, or the default if none is named; ``own`` tells whether the subject has one of
        its own."""
        read_ts = await self.newest()
        catalog = self.catalog(self.host.meta, read_ts)
        mode, own = catalog.default_mode, False
        if request.subject:
            state = catalog.find_subject(request.subject)
            if state is None or (state.newest is None and state.mode is None):
                raise NotFound("subject", request.subject)
            mode, own = mode_of(catalog, state), state.mode is not None
        return pb.GetCompatibilityResponse(header=self.header(read_ts), mode=_mode_message(mode), own=own)

    async def set_compatibility(self, request: pb.SetCompatibilityRequest) -> bytes:
        """Set the mode of a subject, or the default if none is named. Registered versions are not compared again."""
        mode = _mode_value(request.mode)

        def change(catalog: Catalog, _commit_ts: Timestamp) -> Evaluation:
            if not request.subject:
                return set_default_compatibility(catalog, mode)
            return set_compatibility(catalog, request.subject, mode)

        return await self.change_catalog(
            request,
            change,
            CompatibilitySet,
            lambda made: pb.SetCompatibilityResponse(mode=_mode_message(made.mode)),
        )

    async def delete(self, request: pb.DeleteSchemaRequest) -> bytes:
        """Delete one version, or all of a subject: hide them, or with ``permanent`` remove them. The schemas can still
        be read by their ids."""

        def change(catalog: Catalog, _commit_ts: Timestamp) -> Evaluation:
            return delete_versions(catalog, request.subject, request.version, permanent=request.permanent)

        return await self.change_catalog(
            request, change, VersionsDeleted, lambda gone: pb.DeleteSchemaResponse(versions=gone.versions)
        )


def _summaries(catalog: Catalog, subjects: Sequence[SubjectState], rights: Rights | None) -> list[pb.SubjectSummary]:
    tables, default_mode = catalog.tables_by_subject(), catalog.default_mode
    return [
        pb.SubjectSummary(
            subject=each.subject,
            versions=len(each.live),
            mode=_mode_message(each.mode or default_mode),
            tables=[
                name
                for name in tables.get(each.subject, ())
                if rights is None or rights.sees(table_resource(*name.split(".")))
            ],
        )
        for each in subjects
    ]


def _is_seen(state: SubjectState, rights: Rights | None) -> bool:
    return rights is None or rights.sees(subject_resource(state.subject))


def _versions(
    catalog: Catalog, request: pb.ListVersionsRequest, rights: Rights | None
) -> list[tuple[str, SubjectVersion]]:
    """Return versions with their subjects: those of one subject, those with one schema, or those of one subject with
    one schema."""
    if request.subject:
        state = catalog.find_subject(request.subject)
        if state is None or not (state.versions if request.include_deleted else state.live):
            raise NotFound("subject", request.subject)
        subjects = [state]
    elif request.schema_id:
        subjects = [each for each in catalog.subjects() if _is_seen(each, rights)]
    else:
        raise InvalidArgument("subject", "must be set, or else schema_id")
    if request.schema_id:
        catalog.registered_schema(request.schema_id)
    return [
        (state.subject, each)
        for state in subjects
        for each in (state.versions if request.include_deleted else state.live)
        if request.schema_id in (0, each.schema_id)
    ]


def _name_of_version(found: tuple[str, SubjectVersion]) -> str:
    # A space sorts before all characters that a subject's name may have.
    return f"{found[0]} {found[1].version:010}"


def _listed(catalog: Catalog, request: pb.ListVersionsRequest, subject: str, found: SubjectVersion) -> pb.SchemaVersion:
    if not request.omit_schemas:
        return _schema(catalog.registered_schema(found.schema_id), subject, found.version, deleted=found.deleted)
    return pb.SchemaVersion(schema_id=found.schema_id, subject=subject, version=found.version, deleted=found.deleted)


def _find(catalog: Catalog, request: pb.GetSchemaRequest) -> pb.SchemaVersion:
    if request.schema_id:
        if request.version:
            raise InvalidArgument("schema_id", "excludes version", str(request.schema_id))
        if request.subject:
            return _version(catalog.version_with_id(request.subject, request.schema_id))
        return _schema(catalog.registered_schema(request.schema_id))
    if not request.subject:
        raise InvalidArgument("schema_id", "must be set, or else subject")
    return _version(catalog.version_of_subject(request.subject, request.version))


def _version(version: SchemaVersion) -> pb.SchemaVersion:
    return _schema(version.schema, version.subject, version.version)


def _schema(
    schema: RegisteredSchema, subject: str = "", version: int = 0, *, deleted: bool = False
) -> pb.SchemaVersion:
    return pb.SchemaVersion(
        schema_id=schema.schema_id,
        subject=subject,
        version=version,
        schema=schema.text,
        fingerprint=schema.fingerprint.hex(),
        deleted=deleted,
    )


def _incompatibility(found: Incompatibility) -> pb.Incompatibility:
    return pb.Incompatibility(version=found.version, path=found.path, kind=str(found.kind), message=found.message)


def _mode_message(mode: CompatibilityMode) -> str:
    """Return the name in the protocol, which a message's constructor takes for the number."""
    return _PREFIX + mode.name


def _mode_value(mode: int) -> CompatibilityMode | None:
    """Return a mode, or None if it was not set. Raises InvalidArgument for a number that names no mode."""
    if mode == pb.COMPATIBILITY_MODE_UNSPECIFIED:
        return None
    if mode not in pb.CompatibilityMode.values():
        raise InvalidArgument("mode", "is not a compatibility mode that this server knows", str(mode))
    return CompatibilityMode[pb.CompatibilityMode.Name(mode).removeprefix(_PREFIX)]
