"""Documents and their bytes, synchronous."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cortado.schema.model import Schema
from cortado.store.client.blocking.drive import run
from cortado.store.client.blocking.forward import forwards
from cortado.store.client.documents import AsyncDocumentCodec
from cortado.store.client.known_schemas import SchemaVersion


@forwards(AsyncDocumentCodec)
class DocumentCodec:
    """Encodes and decodes documents of one subject, with its newest version or with a chosen one."""

    def __init__(self, core: AsyncDocumentCodec) -> None:
        self._core = core

    def schema(self) -> tuple[SchemaVersion, Schema]:
        return run(self._core.schema())

    def refresh(self) -> bool:
        return run(self._core.refresh())

    def encode(self, document: Any) -> tuple[int, bytes]:
        return run(self._core.encode(document))

    def reader_of(self, writer_id: int) -> tuple[Schema, Schema | None]:
        return run(self._core.reader_of(writer_id))

    def decode(self, schema_id: int, body: bytes) -> tuple[Any, Schema]:
        return run(self._core.decode(schema_id, body))

    def encode_json(self, value: Any) -> tuple[int, bytes]:
        return run(self._core.encode_json(value))

    def encode_texts(self, row: Any) -> tuple[int, bytes]:
        return run(self._core.encode_texts(row))

    def encode_fields(
        self, document: Mapping[str, Any], columns: tuple[str, ...], table_name: str
    ) -> tuple[int, bytes]:
        return run(self._core.encode_fields(document, columns, table_name))

    def from_json(self, value: Any) -> dict[str, Any]:
        return run(self._core.from_json(value))

    def changes_from_json(self, changes: Mapping[str, Any]) -> dict[str, Any]:
        return run(self._core.changes_from_json(changes))

    def changes_to_json(self, changes: Mapping[str, Any]) -> dict[str, Any]:
        return run(self._core.changes_to_json(changes))
