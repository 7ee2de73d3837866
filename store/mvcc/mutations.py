"""The changes of a command: final keys and payloads, computed before they are replicated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from cortado.store.keys.types import LogicalKey
from cortado.store.mvcc.versions import EXPIRY_BYTES


class Changes(Protocol):
    """A write's logical keys and their new payloads, side by side, None for a delete. A key appears at most once.

    ``expiries`` has the wall time in milliseconds at which a put expires, of those that do."""

    @property
    def keys(self) -> Sequence[LogicalKey]: ...
    @property
    def payloads(self) -> Sequence[bytes | None]: ...
    @property
    def expiries(self) -> Mapping[LogicalKey, int]: ...
    @property
    def size_bytes(self) -> int:
        """Return the bytes of all keys, payloads and expiries."""

    @property
    def bounds(self) -> tuple[LogicalKey, LogicalKey] | None:
        """Return the first and the last key in their order, if they are known."""

    def __len__(self) -> int: ...


@dataclass(slots=True)
class Mutations:
    """:class:`Changes` in lists, to which more can be added."""

    keys: list[LogicalKey] = field(default_factory=list)
    payloads: list[bytes | None] = field(default_factory=list)
    expiries: dict[LogicalKey, int] = field(default_factory=dict)

    def put(self, key: LogicalKey, payload: bytes, expires_ms: int = 0) -> None:
        """``expires_ms`` 0: never."""
        self.keys.append(key)
        self.payloads.append(payload)
        if expires_ms:
            self.expiries[key] = expires_ms

    def delete(self, key: LogicalKey) -> None:
        self.keys.append(key)
        self.payloads.append(None)

    def __len__(self) -> int:
        return len(self.keys)

    @property
    def size_bytes(self) -> int:
        """Return the bytes of all keys, payloads and expiries."""
        of_expiries = EXPIRY_BYTES * len(self.expiries)
        return sum(map(len, self.keys)) + sum(map(len, filter(None, self.payloads))) + of_expiries

    @property
    def bounds(self) -> tuple[LogicalKey, LogicalKey] | None:
        """Return the first and the last key in their order, if they are known."""
        return None
