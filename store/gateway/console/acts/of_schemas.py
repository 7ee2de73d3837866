"""Acts on schemas."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from cortado.errors import NotFound
from cortado.schema.compatibility import CompatibilityMode
from cortado.store.gateway.console.acts.act import Act, Done, Input, Sight, Texts, optional

if TYPE_CHECKING:
    from cortado.store.client import AsyncClient


def _of_subject(target: Texts) -> str:
    return f"/ui/schemas/{quote(target['subject'], safe='')}"


async def _subject(client: AsyncClient, target: Texts) -> Sight:
    """Also of a subject that is not there yet."""
    try:
        newest = str((await client.schemas.numbers(target["subject"]))[-1].version)
        mode = await client.schemas.compatibility(target["subject"])
    except NotFound:
        newest, mode = "none", await client.schemas.default_compatibility()
    facts = (("Subject", target["subject"]), ("Newest version", newest), ("Compatibility", str(mode)))
    return Sight(facts, f"{newest} {mode}")


async def _register(client: AsyncClient, target: Texts, given: Texts) -> Done:
    made = await client.schemas.register(target["subject"], given["schema"].strip())
    return Done(
        f"It is version {made.version} of {target['subject']}, under the id {made.schema_id}.", _of_subject(target)
    )


async def _set_mode(client: AsyncClient, target: Texts, given: Texts) -> Done:
    mode = await client.schemas.set_compatibility(target["subject"], optional(given["mode"]))
    return Done(f"New versions of {target['subject']} must be compatible: {mode}.", _of_subject(target))


ACTS: Final = (
    Act(
        "register-schema", "Register a schema", "Register it",
        "Rows may be written with it from then on, and it keeps its number and its id for ever. What is not compatible "
        "is refused.",
        _subject, _register, _of_subject, ("subject",),
        (Input("schema", "An Avro schema, as JSON", "lines", required=True),),
    ),
    Act(
        "set-compatibility", "Change the compatibility of new versions", "Change it",
        "It counts for versions that are registered from then on. A weaker mode may leave readers behind that cannot "
        "read new documents.",
        _subject, _set_mode, _of_subject, ("subject",),
        (Input("mode", "Compatible", "choice", choices=("", *(each.value for each in CompatibilityMode))),),
    ),
)  # fmt: skip
