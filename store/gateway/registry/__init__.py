"""The HTTP API of Kafka's schema registry, over the cluster's own schemas (``docs/registry.md``)::

    codes.py          error codes, and {"error_code", "message"}
    reading.py        reads a call: subject, version, flags, a declaration
    subjects.py       /subjects, /subjects/{subject}
    versions.py       /subjects/{subject}/versions...
    declarations.py   /schemas...: the schema of an id, from memory; the subjects that have it
    compatibility.py  /compatibility..., /config...
    fixed.py          answers that are the same in every cluster: modes, contexts, metadata

The cluster decides ids, compatibility levels and deletion. Only the client below remembers anything: the text of each
schema id, which never changes. So every gateway answers every call from the newest state.

Source: the API reference of Confluent's Schema Registry 7, and the clients that call it.
"""

from __future__ import annotations

from typing import Final

from cortado.store.gateway.calls import Operation
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
"""An unknown path below these is answered in the registry's form, too."""


def operations() -> list[Operation]:
    """Return the rows for the registry."""
    groups = (declarations, subjects, versions, compatibility, fixed)
    return [operation for group in groups for operation in group.operations()]
