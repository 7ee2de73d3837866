"""What a command changes, worked out to the last byte before it is replicated."""

from __future__ import annotations

from dataclasses import dataclass, field

from cortado.store.keys.types import LogicalKey


@dataclass(slots=True)
class Mutations:
    """Parallel lists: logical keys and their new payloads, None for a delete. A key appears at most once."""

    keys: list[LogicalKey] = field(default_factory=list)
    payloads: list[bytes | None] = field(default_factory=list)

    def put(self, key: LogicalKey, payload: bytes) -> None:
        self.keys.append(key)
        self.payloads.append(payload)

    def delete(self, key: LogicalKey) -> None:
        self.keys.append(key)
        self.payloads.append(None)

    def __len__(self) -> int:
        return len(self.keys)

    @property
    def size_bytes(self) -> int:
        """Of all keys and payloads."""
        return sum(map(len, self.keys)) + sum(map(len, filter(None, self.payloads)))

    @property
    def bounds(self) -> tuple[LogicalKey, LogicalKey] | None:
        """The first and the last key in their order, where they are known."""
        return None
