"""Ranges of user keys, as requests state them."""

from __future__ import annotations

from dataclasses import dataclass

from cortado.errors import InvalidArgument
from cortado.store.keys.keyspace import kv_range
from cortado.store.keys.types import LogicalKey


@dataclass(frozen=True, slots=True)
class KvRange:
    """``[start, end)``, where an empty ``end`` is the namespace's end; or all keys that begin with ``prefix``."""

    start: bytes = b""
    end: bytes = b""
    prefix: bytes = b""


def logical_range(namespace: str, within: KvRange) -> tuple[LogicalKey, LogicalKey]:
    """The same range in stored keys. Raises InvalidArgument for a range that runs backwards, KeyTooLong."""
    if within.end and within.start > within.end:
        raise InvalidArgument("range.end", f"must not be below the start {within.start[:60]!r}", repr(within.end[:60]))
    return kv_range(namespace, within.start, within.end, within.prefix)
