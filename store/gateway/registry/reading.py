"""Reads a call to the registry, as strictly as its clients allow.

They write ``True`` for ``true``, ask for ``latest`` or -1, begin a subject with the context that all are in (``:.:``),
and send fields of other kinds of schemas as null.
"""

from __future__ import annotations

import re
from collections.abc import Sequence, Set
from typing import Any, Final, TypeVar

from starlette.responses import Response

from cortado.errors import InvalidArgument, InvalidSchema
from cortado.schema.json_text import json_text, shown
from cortado.schema.limits import SCHEMA_BYTES_MAX
from cortado.store.client.schemas import AsyncSchemas
from cortado.store.gateway.calls import BYTES, JSON, Call, Operation, Parameter
from cortado.store.gateway.registry.codes import (
    INVALID_SCHEMA,
    INVALID_SUBJECT,
    INVALID_VERSION,
    MEDIA_TYPE,
    NOT_PERMITTED,
    SCHEMA_TOO_LARGE,
    Coded,
    failed,
)
from cortado.store.keys.names import check_subject
from cortado.store.keys.names import shown as shown_name

T = TypeVar("T")

GIVES: Final = {200: (MEDIA_TYPE, "application/vnd.schemaregistry+json", JSON)}
TAKES: Final = (*GIVES[200], BYTES)

LATEST: Final = 0
"""The version that :func:`version_of` returns for the newest."""

DELETED: Final = Parameter("deleted", "Include softly deleted ones.", kind="boolean")
DELETED_ONLY: Final = Parameter("deletedOnly", "Only softly deleted ones.", kind="boolean")
DELETED_ONLY_TOO: Final = Parameter("deleted_only", "As deletedOnly.", kind="boolean")
OFFSET: Final = Parameter("offset", "How many to leave out at the beginning.", kind="integer")
LIMIT: Final = Parameter("limit", "How many at most; all for a negative one.", kind="integer")
NORMALIZE: Final = Parameter("normalize", "Changes nothing: schemas are compared by their meaning.", kind="boolean")
FORMAT: Final = Parameter("format", "Changes nothing: Avro has one form.")
SUBJECT: Final = Parameter("subject", "Changes nothing: an id names one text in all subjects.")
FIND_TAGS: Final = Parameter("findTags", "Changes nothing: schemas have no tags.")
IDS_ONLY: Final = (
    FORMAT,
    SUBJECT,
    FIND_TAGS,
    Parameter("referenceFormat", "As format."),
    Parameter("reference_format", "As format."),
)
PAGE: Final = (OFFSET, LIMIT)

_CONTEXT: Final = ":.:"
_NUMBER: Final = re.compile(r"-?[0-9]{1,18}")
_INT32_MAX: Final = (1 << 31) - 1
_FLAGS: Final = {"true": True, "false": False, "": False}
_OF_OTHERS: Final = (
    *("references", "metadata", "ruleSet"),
    *("schemaTagsToAdd", "schemaTagsToRemove", "propagateSchemaTags"),
)
_DECLARATION: Final = frozenset({"schema", "schemaType", "id", "version", *_OF_OTHERS})
_UNKNOWN_TOO: Final = "Confluent-Accept-Unknown-Properties"


def operation(method: str, path: str, handler: Any, summary: str, *parameters: Parameter) -> Operation:
    """Return a row of the table of operations, with the properties that all rows of the registry share."""

    async def checked(call: Call) -> Response:
        call.wanted(GIVES[200])  # A caller that does not accept the media type is refused before any effect.
        response: Response = await handler(call)
        return response

    takes = TAKES if method in ("POST", "PUT") else ()
    return Operation(method, path, checked, summary, parameters, takes=takes, gives=GIVES, failed=failed)


def answer(call: Call, value: Any) -> Response:
    """``value`` as JSON, in the media type that is wanted."""
    media_type = call.wanted(GIVES[200])
    return Response(json_text(value).encode(), 200, {"Cache-Control": "no-store"}, media_type)


def schemas_of(call: Call) -> AsyncSchemas:
    """Return the cluster's registry."""
    return call.client.schemas


def subject_of(call: Call) -> str:
    """Return the subject that the path names. Raises Coded for an invalid name."""
    try:
        name = call.name("subject").removeprefix(_CONTEXT)
        if name.startswith(":"):
            raise InvalidArgument("subject", "must be of the default context: there is no other", shown_name(name))
        return check_subject(name)
    except InvalidArgument as error:
        raise Coded(INVALID_SUBJECT, error) from None


def version_of(call: Call) -> int:
    """Return the version that the path names, or LATEST. Raises Coded."""
    given = call.name("version").strip()
    if given.lower() == "latest" or given == "-1":
        return LATEST
    if _NUMBER.fullmatch(given) and 1 <= int(given) <= _INT32_MAX:
        return int(given)
    problem = f"must be latest, or a number from 1 to {_INT32_MAX}"
    raise Coded(INVALID_VERSION, InvalidArgument("version", problem, shown_name(given)))


def flag(call: Call, name: str) -> bool:
    """Return a parameter that is true or false, by default false. Raises InvalidArgument."""
    given = call.text(name) or ""
    if given.lower() not in _FLAGS:
        raise InvalidArgument(name, "must be true or false", shown_name(given))
    return _FLAGS[given.lower()]


def page(call: Call, found: Sequence[T]) -> Sequence[T]:
    """Return the part that ``offset`` and ``limit`` select."""
    offset, limit = whole(call, OFFSET.name, 0), whole(call, LIMIT.name, -1)
    return found[max(0, offset) :][: limit if limit >= 0 else None]


def whole(call: Call, name: str, default: int) -> int:
    """Return a parameter that is a whole number. Raises InvalidArgument."""
    given = call.text(name)
    if given is None:
        return default
    if _NUMBER.fullmatch(given) is None:
        raise InvalidArgument(name, "must be a whole number", shown_name(given))
    return int(given)


async def declaration_of(call: Call) -> str:
    """Return the schema that the body declares, as text. Raises InvalidArgument, Coded.

    Fields that only other kinds of schemas have are refused by name, and so are an id and a version of the caller's
    choice.
    """
    body = await fields_of(call, _DECLARATION)
    kind = body.get("schemaType", "AVRO")
    if kind != "AVRO":
        raise InvalidSchema("schemaType", "must be AVRO, or left out: there are no others", shown(kind))
    for name in _OF_OTHERS:
        if body.get(name):
            raise InvalidSchema(name, "must be left out: schemas have none", shown(body[name]))
    for name in ("id", "version"):
        if body.get(name, -1) not in (-1, 0):
            problem = InvalidArgument(name, "must be left out: the registry gives it", shown(body[name]))
            raise Coded(NOT_PERMITTED, problem)
    text = body.get("schema")
    if not isinstance(text, str) or not text:
        raise Coded(INVALID_SCHEMA, InvalidArgument("schema", "must be an Avro schema as text", shown(text)))
    try:
        length = len(text.encode())
    except UnicodeEncodeError as error:
        problem = InvalidArgument("schema", f"must be valid Unicode: half a character stands at {error.start}")
        raise Coded(INVALID_SCHEMA, problem) from None
    if length > SCHEMA_BYTES_MAX:
        problem = InvalidArgument("schema", f"must have at most {SCHEMA_BYTES_MAX} bytes", str(length))
        raise Coded(SCHEMA_TOO_LARGE, problem)
    return text


async def fields_of(call: Call, known: Set[str]) -> dict[str, Any]:
    """Return the fields of the body that have a value. Raises InvalidArgument if it is no object.

    Raises Coded for a field that the API does not have, unless the caller says that it may send some.
    """
    body = await call.json()
    if not isinstance(body, dict):
        raise InvalidArgument("body", "must be a JSON object", shown(body))
    fields = {name: value for name, value in body.items() if value is not None}
    if (call.header(_UNKNOWN_TOO) or "").lower() != "true":
        for name in sorted(fields.keys() - known):
            problem = f"is no field of this call, which has {', '.join(sorted(known))}"
            raise Coded(422, InvalidArgument(shown_name(name), problem))
    return fields
