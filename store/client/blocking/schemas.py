"""The schema registry, synchronous."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cortado.schema.compatibility import CompatibilityMode
from cortado.schema.model import Schema
from cortado.store.client.blocking.drive import run
from cortado.store.client.blocking.forward import forwards
from cortado.store.client.known_schemas import SchemaVersion
from cortado.store.client.schemas import AsyncSchemas, SchemaCheck, SubjectSummary, VersionSummary


@forwards(AsyncSchemas)
class Schemas:
    """The registry. It is ``client.schemas``, and may be shared by threads."""

    def __init__(self, core: AsyncSchemas) -> None:
        self._core = core

    def register(self, subject: str, schema: str | Mapping[str, Any]) -> SchemaVersion:
        return run(self._core.register(subject, schema))

    def get(self, subject: str, version: int | None = None) -> SchemaVersion:
        return run(self._core.get(subject, version))

    def delete(self, subject: str, version: int | None = None, *, permanent: bool = False) -> list[int]:
        return run(self._core.delete(subject, version, permanent=permanent))

    def versions(self, subject: str, *, include_deleted: bool = False) -> list[SchemaVersion]:
        return run(self._core.versions(subject, include_deleted=include_deleted))

    def subjects(self, *, include_deleted: bool = False) -> list[SubjectSummary]:
        return run(self._core.subjects(include_deleted=include_deleted))

    def numbers(self, subject: str, *, include_deleted: bool = False) -> list[VersionSummary]:
        return run(self._core.numbers(subject, include_deleted=include_deleted))

    def uses(self, schema_id: int, *, include_deleted: bool = False) -> list[VersionSummary]:
        return run(self._core.uses(schema_id, include_deleted=include_deleted))

    def test_compatibility(
        self,
        subject: str,
        schema: str | Mapping[str, Any],
        mode: CompatibilityMode | str | None = None,
        *,
        version: int | None = None,
    ) -> SchemaCheck:
        return run(self._core.test_compatibility(subject, schema, mode, version=version))

    def compatibility(self, subject: str) -> CompatibilityMode:
        return run(self._core.compatibility(subject))

    def own_compatibility(self, subject: str) -> CompatibilityMode | None:
        return run(self._core.own_compatibility(subject))

    def default_compatibility(self) -> CompatibilityMode:
        return run(self._core.default_compatibility())

    def set_compatibility(self, subject: str, mode: CompatibilityMode | str | None) -> CompatibilityMode:
        return run(self._core.set_compatibility(subject, mode))

    def set_default_compatibility(self, mode: CompatibilityMode | str | None) -> CompatibilityMode:
        return run(self._core.set_default_compatibility(mode))

    def get_by_id(self, schema_id: int) -> Schema:
        return run(self._core.get_by_id(schema_id))

    def declaration(self, schema_id: int) -> str:
        return run(self._core.declaration(schema_id))
