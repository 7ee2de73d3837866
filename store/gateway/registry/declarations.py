"""``/schemas``: the schema of an id, and the subjects and versions that use it.

Every consumer of a topic looks ids up. The client's cache answers, so the cluster is not asked twice for one id.
"""

from __future__ import annotations

import re
from typing import Any, Final

from starlette.responses import Response

from cortado.errors import NotFound, TooLarge
from cortado.store.client.schemas import VersionSummary
from cortado.store.gateway.calls import Call, Operation, Parameter
from cortado.store.gateway.registry.reading import (
    DELETED,
    IDS_ONLY,
    LIMIT,
    OFFSET,
    PAGE,
    SUBJECT,
    answer,
    flag,
    operation,
    page,
    schemas_of,
    whole,
)
from cortado.store.gateway.registry.subjects import PREFIX, prefix_of
from cortado.store.gateway.registry.versions import bare
from cortado.store.keys.names import shown

SCHEMAS_MAX: Final = 1_000
"""That one answer lists."""
CHARACTERS_MAX: Final = 8 << 20
"""Characters of all declarations in one answer."""

LATEST_ONLY: Final = Parameter("latestOnly", "Only the newest version of each subject.", kind="boolean")

_ID: Final = "/schemas/ids/{id}"
_DIGITS: Final = re.compile("[0-9]{1,10}")
_INT32_MAX: Final = (1 << 31) - 1


def operations() -> list[Operation]:
    """Return the rows for schemas."""
    fetch_max = Parameter("fetchMaxId", "Tells the highest id, too: not here.", kind="boolean")
    users = (DELETED, SUBJECT, *PAGE)
    others = (
        Parameter("aliases", "Changes nothing: subjects have no aliases.", kind="boolean"),
        Parameter("ruleType", "Changes nothing: schemas have no rules."),
    )
    return [
        operation("GET", _ID, by_id, "The schema of an id.", *IDS_ONLY, fetch_max),
        operation("GET", f"{_ID}/schema", declaration, "The declaration that an id names.", *IDS_ONLY),
        operation("GET", f"{_ID}/subjects", subjects, "The subjects that have the schema of an id.", *users),
        operation("GET", f"{_ID}/versions", versions, "The versions that have the schema of an id.", *users),
        operation("GET", "/schemas/types", types, "The kinds of schemas."),
        operation("GET", "/schemas", everything, "Versions of subjects.", PREFIX, DELETED, LATEST_ONLY, *PAGE, *others),
    ]


async def by_id(call: Call) -> Response:
    """Return the declaration, as a text within JSON."""
    return answer(call, {"schema": await schemas_of(call).declaration(_id_of(call))})


async def declaration(call: Call) -> Response:
    """Return the declaration alone, which is JSON."""
    return bare(call, await schemas_of(call).declaration(_id_of(call)))


async def subjects(call: Call) -> Response:
    """Return the names of subjects, in order."""
    return answer(call, page(call, sorted({each.subject for each in await _uses(call)})))


async def versions(call: Call) -> Response:
    """Subjects and versions, in order."""
    found = [{"subject": each.subject, "version": each.version} for each in await _uses(call)]
    return answer(call, page(call, found))


async def types(call: Call) -> Response:
    """Avro alone."""
    return answer(call, ["AVRO"])


async def everything(call: Call) -> Response:
    """Return versions with their declarations, by subject. Raises TooLarge if there would be too much of them at
    once."""
    include_deleted, latest_only = flag(call, DELETED.name), flag(call, LATEST_ONLY.name)
    offset, limit = max(0, whole(call, OFFSET.name, 0)), whole(call, LIMIT.name, SCHEMAS_MAX)
    limit = limit if 0 <= limit <= SCHEMAS_MAX else SCHEMAS_MAX
    schemas, prefix = schemas_of(call), prefix_of(call)
    found: list[dict[str, Any]] = []
    characters = 0
    for subject in await schemas.subjects(include_deleted=include_deleted):
        if len(found) >= limit:
            break
        if not subject.subject.startswith(prefix):
            continue
        counted = 0 if include_deleted else 1 if latest_only else subject.versions
        if 0 < counted <= offset:
            # Left out whole, without asking for it.
            offset -= counted
            continue
        listed = await schemas.numbers(subject.subject, include_deleted=include_deleted)
        listed = listed[-1:] if latest_only else listed
        for each in listed[offset : offset + limit - len(found)]:
            text = await schemas.declaration(each.schema_id)
            characters += len(text)
            if characters > CHARACTERS_MAX:
                problem = f"must be smaller: the declarations have more than {CHARACTERS_MAX} characters together"
                raise TooLarge(LIMIT.name, problem, str(limit), characters, CHARACTERS_MAX)
            found.append({"subject": each.subject, "version": each.version, "id": each.schema_id, "schema": text})
        offset = max(0, offset - len(listed))
    return answer(call, found)


async def _uses(call: Call) -> list[VersionSummary]:
    """Return the versions that have the schema, of the subject that the query names, or of all."""
    found = await schemas_of(call).uses(_id_of(call), include_deleted=flag(call, DELETED.name))
    subject = (call.text(SUBJECT.name) or "").removeprefix(":.:")
    return [each for each in found if subject in ("", each.subject)]


def _id_of(call: Call) -> int:
    """Return the id that the path names. Raises NotFound for text that is no id."""
    given = call.name("id")
    if _DIGITS.fullmatch(given) is None or not 1 <= int(given) <= _INT32_MAX:
        raise NotFound("schema", f"with id {shown(given)}: ids are numbers from 1 to {_INT32_MAX}")
    return int(given)
