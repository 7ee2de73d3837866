"""The HTTP API of Kafka's schema registry, over the cluster's own schemas (``docs/registry.md``)::

    codes.py          error codes, and {"error_code", "message"}
    reading.py        what a call says: subject, version, flags, a declaration
    subjects.py       /subjects, /subjects/{subject}
    versions.py       /subjects/{subject}/versions...
    declarations.py   /schemas...: what an id names, from memory; who has it
    compatibility.py  /compatibility..., /config...
    fixed.py          what is the same in every cluster: modes, contexts, metadata

The cluster decides ids, compatibility levels and deletion. Only the client below remembers anything: the text of each
schema id, which never changes. So every gateway answers every call from the newest state.

Source: the API reference of Confluent's Schema Registry 7, and the clients that call it.
"""

from __future__ import annotations

from typing import Final

from cortado.store.gateway.operations import Operation
from cortado.store.gateway.registry import compatibility, declarations, fixed, subjects, versions
from cortado.store.gateway.registry.codes import failed

__all__ = ["ROOTS", "failed", "operations"]

ROOTS: Final = (
    "/subjects",
    "/schemas",
    "/compatibility",
    "/config",
    "/mode",
    "/contexts",
    "/associations",
    "/v1/metadata",
)
"""Below these a path that is none is answered in the registry's form, too."""


def operations() -> list[Operation]:
    """What is served of the registry."""
    groups = (declarations, subjects, versions, compatibility, fixed)
    return [operation for group in groups for operation in group.operations()]
