"""``/ui/schemas``: subjects and versions, what differs between two, and the verdict on a schema that is none yet."""

from __future__ import annotations

import asyncio
import difflib
import json
from typing import Final

from starlette.responses import Response

from cortado.errors import CortadoError, InvalidArgument
from cortado.schema.json_text import json_text
from cortado.store.client.schemas import SchemaCheck, SchemaVersion
from cortado.store.gateway.calls import Call
from cortado.store.gateway.console.pages import page, tried
from cortado.store.gateway.paths import parameters

FORM: Final = "application/x-www-form-urlencoded"
_VERSION_MAX: Final = (1 << 32) - 1
_LINES_MAX: Final = 1_000


async def listing(call: Call) -> Response:
    """The subjects."""
    subjects, level = await asyncio.gather(call.client.schemas.subjects(), call.client.schemas.default_compatibility())
    return page("schemas.html", area="schemas", subjects=subjects, level=level)


async def subject(call: Call) -> Response:
    """One subject: its versions, and what differs between two of them."""
    return await _subject(call, "", None)


async def verdict(call: Call) -> Response:
    """The same, with what registering the schema of the form would say. Nothing is registered."""
    call.media_type()
    fields = parameters(await call.body())
    unknown = fields.keys() - {"schema"}
    if unknown or "schema" not in fields:
        raise InvalidArgument("body", "must have the field schema, and no other", ", ".join(sorted(unknown)))
    text = fields["schema"].strip()
    found = await tried(call.client.schemas.check(call.name("subject"), text))
    return await _subject(call, text, found)


async def _subject(call: Call, given: str, checked: SchemaCheck | CortadoError | None) -> Response:
    schemas, name = call.client.schemas, call.name("subject")
    versions, level = await asyncio.gather(schemas.versions(name), schemas.compatibility(name))
    new = _chosen(call, "to", versions, versions[-1])
    old = _chosen(
        call, "from", versions, next((each for each in reversed(versions) if each.version < new.version), new)
    )
    return page(
        "subject.html",
        area="schemas",
        subject=name,
        versions=versions,
        level=level,
        old=old,
        new=new,
        lines=await asyncio.to_thread(_difference, old, new),
        newest=_lines(versions[-1]),
        given=given,
        checked=checked,
    )


def _chosen(call: Call, name: str, versions: list[SchemaVersion], default: SchemaVersion) -> SchemaVersion:
    number = call.number(name, 1, _VERSION_MAX)
    if number is None:
        return default
    found = next((each for each in versions if each.version == number), None)
    if found is None:
        listed = ", ".join(str(each.version) for each in versions)
        raise InvalidArgument(name, f"must be a version of this subject, which has {listed}", str(number))
    return found


def _lines(version: SchemaVersion) -> list[str]:
    return json_text(json.loads(version.schema), indent=2).splitlines()


def _difference(old: SchemaVersion, new: SchemaVersion) -> list[tuple[str, str]] | None:
    """(sign, line), where the sign is +, - or a space, and @ for lines that are left out; None where it takes long."""
    before, after = _lines(old), _lines(new)
    if max(len(before), len(after)) > _LINES_MAX:
        return None
    found = list(difflib.unified_diff(before, after, n=3, lineterm=""))[2:]
    return [(each[:1] or " ", "" if each.startswith("@@") else each[1:]) for each in found]
