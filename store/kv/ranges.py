"""Ranges of user keys, as requests state them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from cortado.errors import InvalidArgument
from cortado.store.keys.keyspace import kv_range
from cortado.store.keys.types import LogicalKey

KEY_SHOWN_MAX: Final = 60


@dataclass(frozen=True, slots=True)
class KvRange:
    """``[start, end)``, an empty ``end`` being the namespace's end; or all keys that begin with ``prefix``."""

    start: bytes = b""
    end: bytes = b""
    prefix: bytes = b""


def logical_range(namespace: str, within: KvRange, generation: int = 0) -> tuple[LogicalKey, LogicalKey]:
    """Return the same range in stored keys, of one generation of the namespace.

    Raises InvalidArgument for a range that runs backwards, KeyTooLong.
    """
    if within.end and within.start > within.end:
        problem = f"must not come before start, {shown(within.start)}"
        raise InvalidArgument("range.end", problem, shown(within.end))
    return kv_range(namespace, within.start, within.end, within.prefix, generation=generation)


def shown(key: bytes) -> str:
    r"""Return the beginning of a key as text, with ``\xNN`` for a byte that is not UTF-8."""
    return key[:KEY_SHOWN_MAX].decode("utf-8", "backslashreplace")
