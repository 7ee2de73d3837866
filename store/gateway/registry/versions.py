"""``/subjects/{subject}/versions``: registering one, reading and deleting them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from starlette.responses import Response

from cortado.errors import NotFound
from cortado.store.client.schemas import VersionSummary
from cortado.store.gateway.calls import Call, Operation
from cortado.store.gateway.registry.codes import (
    IN_USE,
    NO_VERSION,
    VERSION_DELETED,
    VERSION_NOT_DELETED,
    Coded,
    invalid_is,
    missing_schema_is,
)
from cortado.store.gateway.registry.reading import (
    DELETED,
    DELETED_ONLY,
    DELETED_ONLY_TOO,
    FIND_TAGS,
    FORMAT,
    LATEST,
    NORMALIZE,
    PAGE,
    answer,
    declaration_of,
    flag,
    operation,
    page,
    schemas_of,
    subject_of,
    version_of,
)
from cortado.store.gateway.registry.subjects import PERMANENT

_VERSIONS: Final = "/subjects/{subject}/versions"
_VERSION: Final = f"{_VERSIONS}/{{version}}"


def operations() -> list[Operation]:
    """Return the rows for versions."""
    listing = (DELETED, DELETED_ONLY, DELETED_ONLY_TOO, *PAGE)
    return [
        operation("GET", _VERSIONS, list_versions, "The numbers of a subject's versions.", *listing),
        operation("POST", _VERSIONS, register, "Registers a version.", NORMALIZE, FORMAT),
        operation("GET", _VERSION, get, "A version, or the latest.", DELETED, FORMAT, FIND_TAGS),
        operation("DELETE", _VERSION, delete, "Deletes a version, softly first.", PERMANENT),
        operation("GET", f"{_VERSION}/schema", declaration, "The declaration of a version.", DELETED, FORMAT),
        operation("GET", f"{_VERSION}/referencedby", referenced_by, "Ids of schemas that refer to it: none.", *PAGE),
    ]


async def list_versions(call: Call) -> Response:
    """Their numbers, in order."""
    only = flag(call, DELETED_ONLY.name) or flag(call, DELETED_ONLY_TOO.name)
    found = await schemas_of(call).numbers(subject_of(call), include_deleted=only or flag(call, DELETED.name))
    return answer(call, page(call, [each.version for each in found if each.deleted or not only]))


async def register(call: Call) -> Response:
    """Return the id of the schema, and no more: a client would take a declaration for the one that it sent, and
    remember that in its place."""
    subject = subject_of(call)
    found = await schemas_of(call).register(subject, await declaration_of(call))
    return answer(call, {"id": found.schema_id})


async def get(call: Call) -> Response:
    """Return the version with its id and declaration."""
    found = await _named(call, include_deleted=flag(call, DELETED.name))
    text = await schemas_of(call).declaration(found.schema_id)
    told = {"subject": found.subject, "version": found.version, "id": found.schema_id, "schema": text}
    return answer(call, told | ({"deleted": True} if found.deleted else {}))


async def declaration(call: Call) -> Response:
    """Return the declaration alone, which is JSON."""
    found = await _named(call, include_deleted=flag(call, DELETED.name))
    return bare(call, await schemas_of(call).declaration(found.schema_id))


async def referenced_by(call: Call) -> Response:
    """Schemas of Avro hold all that they mean."""
    await _named(call, include_deleted=True)
    return answer(call, [])


async def delete(call: Call) -> Response:
    """Delete a version and return its number."""
    subject, permanent = subject_of(call), flag(call, PERMANENT.name)
    found = await _named(call, include_deleted=permanent or version_of(call) != LATEST)
    if found.deleted and not permanent:
        gone = f"version {found.version} of subject {subject}: it was softly deleted, and permanent=true forgets it"
        raise Coded(VERSION_DELETED, NotFound("schema", gone))
    with invalid_is(IN_USE, "subject"), invalid_is(VERSION_NOT_DELETED, "permanent"), missing_schema_is(NO_VERSION):
        await schemas_of(call).delete(subject, found.version, permanent=permanent)
    return answer(call, found.version)


async def _named(call: Call, *, include_deleted: bool) -> VersionSummary:
    """Return the version that the path names. Raises NotFound for the subject, and Coded for the version."""
    subject, version = subject_of(call), version_of(call)
    return pick(await schemas_of(call).numbers(subject, include_deleted=include_deleted), version)


def pick(versions: Sequence[VersionSummary], version: int) -> VersionSummary:
    """Return that version, or the newest for LATEST. Raises Coded."""
    newest = versions[-1]
    found = newest if version == LATEST else next((each for each in versions if each.version == version), None)
    if found is None:
        missing = NotFound("schema", f"version {version} of subject {newest.subject}, whose newest is {newest.version}")
        raise Coded(NO_VERSION, missing)
    return found


def bare(call: Call, text: str) -> Response:
    """Return a declaration as it was registered, and not as a text within JSON."""
    shaped = answer(call, None)
    return Response(text.encode(), 200, {"Cache-Control": "no-store"}, shaped.media_type)
