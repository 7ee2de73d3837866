"""``/ui/schemas``: subjects and versions, the differences between two, and the verdict on a schema not yet
registered."""

from __future__ import annotations

import asyncio
import difflib
import json
from typing import Any, Final

from starlette.responses import Response

from cortado.errors import CortadoError, InvalidArgument, NotFound
from cortado.schema.json_text import json_text
from cortado.store.auth.roles import Demand, Permission, subject_resource
from cortado.store.client.known_schemas import SchemaVersion
from cortado.store.client.schemas import SchemaCheck
from cortado.store.gateway.calls import Call
from cortado.store.gateway.console.acts.serving import form_of
from cortado.store.gateway.console.pages import page, tried
from cortado.store.gateway.console.parts import part_of
from cortado.store.gateway.console.visitor import Visitor
from cortado.store.keys.names import check_subject, shown

FORM: Final = "application/x-www-form-urlencoded"
_VERSION_MAX: Final = (1 << 32) - 1
_LINES_MAX: Final = 1_000


async def listing(call: Call, visitor: Visitor) -> Response:
    """Return the subjects; or the page of a new subject, for a visitor that wants to make it."""
    new = call.text("subject")
    if new is not None:
        return await _subject(call, visitor, check_subject(new.strip()))
    subjects, level = await asyncio.gather(call.client.schemas.subjects(), call.client.schemas.default_compatibility())
    return page(
        visitor, "schemas.html", area="schemas", part=part_of(call, subjects, lambda each: each.subject), level=level
    )


async def subject(call: Call, visitor: Visitor) -> Response:
    """Return the page of one subject: its versions, and the differences between two of them."""
    return await _subject(call, visitor, call.name("subject"))


async def verdict(call: Call, visitor: Visitor) -> Response:
    """Return the same, with the verdict on the form's schema. Nothing is registered."""
    fields = await call.form()
    unknown = fields.keys() - {"schema"}
    if unknown or "schema" not in fields:
        raise InvalidArgument("body", "must have the field schema, and no other", shown(", ".join(sorted(unknown))))
    name, text = call.name("subject"), fields["schema"].strip()
    checked = await tried(call.client.schemas.test_compatibility(name, text))
    return await _subject(call, visitor, name, text, checked)


async def _subject(
    call: Call, visitor: Visitor, name: str, given: str = "", checked: SchemaCheck | CortadoError | None = None
) -> Response:
    """``given`` is a schema, and ``checked`` the verdict on it. Raises NotFound for a subject without a version, unless
    the visitor is about to make its first one."""
    schemas = call.client.schemas
    try:
        versions = await schemas.versions(name)
    except NotFound:
        if not visitor.may_act or (checked is None and call.text("subject") is None):
            raise
        versions = []
    level = await (schemas.compatibility(name) if versions else schemas.default_compatibility())
    newest = _lines(versions[-1]) if versions else []
    return page(
        visitor,
        "subject.html",
        area="schemas",
        subject=name,
        versions=versions,
        level=level,
        newest=newest,
        given=given,
        checked=checked,
        defines_it=visitor.may(Demand(Permission.DEFINE, subject_resource(name))),
        form=await form_of(call, visitor, "register-schema", {"subject": name}) if checked is not None else "",
        **(await _differences(call, versions) if versions else {}),
    )


async def _differences(call: Call, versions: list[SchemaVersion]) -> dict[str, Any]:
    """Return the two versions that are compared, and how they differ."""
    new = _chosen(call, "to", versions, versions[-1])
    old = _chosen(
        call, "from", versions, next((each for each in reversed(versions) if each.version < new.version), new)
    )
    return {"old": old, "new": new, "lines": await asyncio.to_thread(_difference, old, new)}


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
    text = json_text(json.loads(version.schema), indent=2)
    # It may be edited and sent back, so that what does not print stands as JSON's own escape.
    return "".join(each if each.isprintable() or each == "\n" else json.dumps(each)[1:-1] for each in text).split("\n")


def _difference(old: SchemaVersion, new: SchemaVersion) -> list[tuple[str, str]] | None:
    """Return (sign, line): the sign is +, - or a space, and @ for lines that are left out. None if it takes long."""
    before, after = _lines(old), _lines(new)
    if max(len(before), len(after)) > _LINES_MAX:
        return None
    found = list(difflib.unified_diff(before, after, n=3, lineterm=""))[2:]
    return [(each[:1] or " ", "" if each.startswith("@@") else each[1:]) for each in found]
