"""A write's treatment of a key that has, or lacks, a document: its names in Python, and on the wire."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, TypeAlias, TypeVar

from cortado.errors import InvalidArgument
from cortado.proto.v1 import common_pb2, documents_pb2
from cortado.store.client.arguments import shown

M = TypeVar("M")
PutMode: TypeAlias = Literal["upsert", "insert", "replace"]
BulkMode: TypeAlias = Literal["upsert", "insert", "replace", "update", "delete"]
"""Rows of an "update" have some fields alone, and the others stay; those of a "delete" have the primary key's."""

_MODES: Final[dict[str, documents_pb2.PutMode]] = {
    "upsert": documents_pb2.PUT_MODE_UPSERT,
    "insert": documents_pb2.PUT_MODE_INSERT,
    "replace": documents_pb2.PUT_MODE_REPLACE,
}
_BULK_MODES: Final[dict[str, documents_pb2.BulkMode]] = {
    "upsert": documents_pb2.BULK_MODE_UPSERT,
    "insert": documents_pb2.BULK_MODE_INSERT,
    "replace": documents_pb2.BULK_MODE_REPLACE,
    "update": documents_pb2.BULK_MODE_UPDATE,
    "delete": documents_pb2.BULK_MODE_DELETE,
}


def joined_condition(mode: documents_pb2.PutMode, of_etag: common_pb2.Condition | None) -> common_pb2.Condition | None:
    """Return the condition of both on the live version. Raises InvalidArgument if they exclude each other."""
    if of_etag is not None:
        if mode == documents_pb2.PUT_MODE_INSERT:
            raise InvalidArgument("if_match", "excludes the mode insert, which wants no document", shown(of_etag.etag))
        return of_etag
    if mode == documents_pb2.PUT_MODE_UPSERT:
        return None
    if mode == documents_pb2.PUT_MODE_INSERT:
        return common_pb2.Condition(absent=True)
    return common_pb2.Condition(present=True)


def put_mode(mode: str) -> documents_pb2.PutMode:
    """Return a mode's number. Raises InvalidArgument naming the known modes."""
    return _known(mode, _MODES)


def whole_rows(mode: PutMode) -> documents_pb2.BulkMode:
    """Return the mode of a bulk load of whole rows. Raises as :func:`put_mode`."""
    put_mode(mode)
    return bulk_mode(mode)


def bulk_mode(mode: str) -> documents_pb2.BulkMode:
    """Return the mode of a bulk load. Raises as :func:`put_mode`."""
    return _known(mode, _BULK_MODES)


def _known(mode: str, modes: Mapping[str, M]) -> M:
    known = modes.get(mode) if isinstance(mode, str) else None
    if known is None:
        raise InvalidArgument("mode", f"must be one of {', '.join(modes)}", shown(mode))
    return known
