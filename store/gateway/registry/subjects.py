"""``/subjects``: listing subjects, finding the version of a schema, and deleting subjects, softly and then for good."""

from __future__ import annotations

from typing import Final

from starlette.responses import Response

from cortado.errors import NotFound
from cortado.schema.parse import parse_schema
from cortado.store.client.schemas import AsyncSchemas
from cortado.store.gateway.calls import Call, Operation, Parameter
from cortado.store.gateway.registry.codes import (
    IN_USE,
    SUBJECT_DELETED,
    SUBJECT_NOT_DELETED,
    Coded,
    invalid_is,
)
from cortado.store.gateway.registry.reading import (
    DELETED,
    DELETED_ONLY,
    DELETED_ONLY_TOO,
    FORMAT,
    NORMALIZE,
    PAGE,
    answer,
    declaration_of,
    flag,
    operation,
    page,
    schemas_of,
    subject_of,
)

PREFIX: Final = Parameter("subjectPrefix", "Only subjects whose names begin with this.")
PERMANENT: Final = Parameter("permanent", "Remove for good versions that were softly deleted.", kind="boolean")

_SUBJECT: Final = "/subjects/{subject}"


def operations() -> list[Operation]:
    """Return the rows for subjects."""
    listing = (PREFIX, DELETED, DELETED_ONLY, DELETED_ONLY_TOO, *PAGE)
    return [
        operation("GET", "/subjects", list_subjects, "The names of all subjects.", *listing),
        operation("POST", _SUBJECT, look_up, "Which version a schema is.", NORMALIZE, DELETED, FORMAT),
        operation("DELETE", _SUBJECT, delete, "Deletes all versions of a subject, softly first.", PERMANENT),
    ]


async def list_subjects(call: Call) -> Response:
    """Return the names, in order."""
    only = flag(call, DELETED_ONLY.name) or flag(call, DELETED_ONLY_TOO.name)
    found = await schemas_of(call).subjects(include_deleted=only or flag(call, DELETED.name))
    prefix = prefix_of(call)
    names = [each.subject for each in found if each.subject.startswith(prefix) and not (only and each.versions)]
    return answer(call, page(call, names))


def prefix_of(call: Call) -> str:
    """Return how the names of subjects must begin; that they may be of any context, or of the one there is, says
    nothing."""
    return (call.text(PREFIX.name) or "").removeprefix(":*:").removeprefix(":.:")


async def look_up(call: Call) -> Response:
    """Return the version that the body's schema is."""
    subject, include_deleted = subject_of(call), flag(call, DELETED.name)
    text = await declaration_of(call)
    schemas = schemas_of(call)
    found = (await schemas.test_compatibility(subject, text)).registered
    if found is not None:
        version, schema_id, declaration = found.version, found.schema_id, found.schema
    else:
        version, schema_id, declaration = await _among(schemas, subject, text, include_deleted)
    return answer(call, {"subject": subject, "version": version, "id": schema_id, "schema": declaration})


async def _among(schemas: AsyncSchemas, subject: str, text: str, include_deleted: bool) -> tuple[int, int, str]:
    """Version, id and declaration of the softly deleted version that the schema was. Raises NotFound."""
    versions = await schemas.numbers(subject, include_deleted=include_deleted)
    wanted = parse_schema(text).fingerprint
    for each in reversed(versions):
        declaration = await schemas.declaration(each.schema_id) if each.deleted else ""
        if each.deleted and parse_schema(declaration).fingerprint == wanted:
            return each.version, each.schema_id, declaration
    raise NotFound("schema", f"of that meaning in subject {subject}")


async def delete(call: Call) -> Response:
    """Return which versions were deleted."""
    subject, permanent = subject_of(call), flag(call, PERMANENT.name)
    schemas = schemas_of(call)
    try:
        with invalid_is(IN_USE, "subject"), invalid_is(SUBJECT_NOT_DELETED, "permanent"):
            deleted = await schemas.delete(subject, permanent=permanent)
    except NotFound:
        if permanent:
            raise
        await schemas.numbers(subject, include_deleted=True)
        gone = NotFound("subject", f"{subject}: it was softly deleted, and permanent=true forgets it")
        raise Coded(SUBJECT_DELETED, gone) from None
    return answer(call, deleted)
