"""The modes of a bulk load: their names in Python, and on the wire."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final, Literal, TypeAlias

from cortado.errors import InvalidArgument
from cortado.proto.v1 import documents_pb2
from cortado.store.client.arguments import shown

PutMode: TypeAlias = Literal["upsert", "insert", "replace"]
BulkMode: TypeAlias = Literal["upsert", "insert", "replace", "update", "delete"]
"""Rows of an "update" have some fields alone, and the others stay; those of a "delete" have the primary key's."""

_WHOLE_ROWS: Final = ("upsert", "insert", "replace")
_BULK_MODES: Final[dict[str, documents_pb2.BulkMode]] = {
    "upsert": documents_pb2.BULK_MODE_UPSERT,
    "insert": documents_pb2.BULK_MODE_INSERT,
    "replace": documents_pb2.BULK_MODE_REPLACE,
    "update": documents_pb2.BULK_MODE_UPDATE,
    "delete": documents_pb2.BULK_MODE_DELETE,
}


def whole_rows(mode: PutMode) -> documents_pb2.BulkMode:
    """Return the mode of a bulk load of whole rows. Raises InvalidArgument naming the known modes."""
    return _known(mode, _WHOLE_ROWS)


def bulk_mode(mode: str) -> documents_pb2.BulkMode:
    """Return the mode of a bulk load. Raises as :func:`whole_rows`."""
    return _known(mode, _BULK_MODES)


def _known(mode: str, modes: Collection[str]) -> documents_pb2.BulkMode:
    if not isinstance(mode, str) or mode not in modes:
        raise InvalidArgument("mode", f"must be one of {', '.join(modes)}", shown(mode))
    return _BULK_MODES[mode]
