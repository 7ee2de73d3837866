"""``/compatibility`` and ``/config``: whether a schema could be registered, and the level that decides that."""

from __future__ import annotations

from typing import Final

from starlette.responses import Response

from cortado.errors import InvalidArgument, NotFound
from cortado.schema.compatibility import CompatibilityMode, Incompatibility
from cortado.schema.json_text import shown
from cortado.store.client.schemas import SchemaCheck
from cortado.store.gateway.calls import Call, Operation, Parameter
from cortado.store.gateway.registry.codes import (
    INVALID_LEVEL,
    NO_OWN_LEVEL,
    NO_SUBJECT,
    NO_VERSION,
    NOT_PERMITTED,
    Coded,
    missing_schema_is,
)
from cortado.store.gateway.registry.reading import (
    LATEST,
    NORMALIZE,
    answer,
    declaration_of,
    fields_of,
    flag,
    operation,
    schemas_of,
    subject_of,
    version_of,
)
from cortado.store.gateway.registry.versions import pick

DEFAULT_TO_GLOBAL: Final = Parameter(
    "defaultToGlobal", "The level of all subjects, if the subject has none of its own.", kind="boolean"
)

_VERBOSE: Final = Parameter("verbose", "Tell why.", kind="boolean")
_CHECKED: Final = "/compatibility/subjects/{subject}/versions"
_LEVEL: Final = "/config/{subject}"
_LEVEL_FIELDS: Final = frozenset({"compatibility", "compatibilityLevel"})
_OTHER_FIELDS: Final = (
    *("alias", "normalize", "validateFields", "compatibilityGroup", "compatibilityPolicy"),
    *("defaultMetadata", "overrideMetadata", "defaultRuleSet", "overrideRuleSet"),
)


def operations() -> list[Operation]:
    """Return the rows for compatibility levels."""
    checking = (_VERBOSE, NORMALIZE)
    return [
        operation("POST", _CHECKED, check, "Whether a schema could be registered.", *checking),
        # As Kafka's Java client writes it.
        operation("POST", f"{_CHECKED}/", check, "Whether a schema could be registered.", *checking),
        operation("POST", f"{_CHECKED}/{{version}}", check_one, "Whether it fits one version.", *checking),
        operation("GET", "/config", default_level, "The level of all subjects."),
        operation("PUT", "/config", set_default_level, "Sets the level of all subjects."),
        operation("DELETE", "/config", delete_default_level, "Resets the level of all subjects to the initial one."),
        operation("GET", _LEVEL, level, "The level of a subject.", DEFAULT_TO_GLOBAL),
        operation("PUT", _LEVEL, set_level, "Sets the level of a subject."),
        operation("DELETE", _LEVEL, delete_level, "Takes the level of a subject away."),
    ]


async def check(call: Call) -> Response:
    """Return the verdict that registering would give."""
    return _verdict(call, await schemas_of(call).test_compatibility(subject_of(call), await declaration_of(call)))


async def check_one(call: Call) -> Response:
    """Return the verdict against one version. If the subject has no latest version, the schema fits."""
    subject, version = subject_of(call), version_of(call)
    text = await declaration_of(call)
    schemas = schemas_of(call)
    try:
        number = pick(await schemas.numbers(subject), version).version
    except NotFound:
        if version != LATEST:
            raise
        return _verdict(call, await schemas.test_compatibility(subject, text))
    with missing_schema_is(NO_VERSION):
        return _verdict(call, await schemas.test_compatibility(subject, text, version=number))


def _verdict(call: Call, found: SchemaCheck) -> Response:
    told = {"is_compatible": found.compatible}
    if not flag(call, _VERBOSE.name):
        return answer(call, told)
    return answer(call, {**told, "messages": [_message(each) for each in found.incompatibilities]})


def _message(found: Incompatibility) -> str:
    return f"{found.kind}: version {found.version}, {found.path}: {found.message}"


async def default_level(call: Call) -> Response:
    """Return the level in force for subjects that have none of their own."""
    return answer(call, _level(await schemas_of(call).default_compatibility()))


async def set_default_level(call: Call) -> Response:
    """Return the level that was set."""
    wanted = await _wanted(call)
    await schemas_of(call).set_default_compatibility(wanted)
    return answer(call, {"compatibility": wanted})


async def delete_default_level(call: Call) -> Response:
    """Return the level that was in force."""
    schemas = schemas_of(call)
    before = await schemas.default_compatibility()
    await schemas.set_default_compatibility(None)
    return answer(call, _level(before))


async def level(call: Call) -> Response:
    """Return the subject's own level, or that of all. A subject that is not there has none."""
    subject, or_default = subject_of(call), flag(call, DEFAULT_TO_GLOBAL.name)
    found = await _own(call, subject)
    if found is None and not or_default:
        raise Coded(
            NO_OWN_LEVEL, NotFound("level", f"of subject {subject} alone: defaultToGlobal=true gives that of all")
        )
    return answer(call, _level(found or await schemas_of(call).default_compatibility()))


async def set_level(call: Call) -> Response:
    """Return the level that was set."""
    subject, wanted = subject_of(call), await _wanted(call)
    await schemas_of(call).set_compatibility(subject, wanted)
    return answer(call, {"compatibility": wanted})


async def delete_level(call: Call) -> Response:
    """Return the level that the subject had."""
    subject = subject_of(call)
    before = await _own(call, subject)
    if before is None:
        raise Coded(NO_SUBJECT, NotFound("subject", f"{subject} with a level of its own"))
    await schemas_of(call).set_compatibility(subject, None)
    return answer(call, _level(before))


async def _own(call: Call, subject: str) -> CompatibilityMode | None:
    try:
        return await schemas_of(call).own_compatibility(subject)
    except NotFound:
        return None


async def _wanted(call: Call) -> CompatibilityMode:
    """Return the level that the body names. Raises Coded."""
    body = await fields_of(call, _LEVEL_FIELDS | set(_OTHER_FIELDS))
    for name in _OTHER_FIELDS:
        if body.get(name):
            other = InvalidArgument(name, "must be left out: only levels are configured here", shown(body[name]))
            raise Coded(NOT_PERMITTED, other)
    given = body.get("compatibility", body.get("compatibilityLevel"))
    wanted = given.upper() if isinstance(given, str) else ""
    if wanted not in list(CompatibilityMode):
        problem = f"must be one of {', '.join(CompatibilityMode)}"
        raise Coded(INVALID_LEVEL, InvalidArgument("compatibility", problem, shown(given)))
    return CompatibilityMode(wanted)


def _level(mode: CompatibilityMode) -> dict[str, str]:
    return {"compatibilityLevel": mode}
