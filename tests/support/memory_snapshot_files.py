"""The twin of snapshot files in memory: a crash takes all bytes that were not synced."""

from __future__ import annotations

from dataclasses import dataclass, field

from cortado.errors import NotFound, ResourceExhausted
from cortado.store.process.snapshot_files import NAME, RETRY_DELAY_MS


@dataclass(slots=True)
class _File:
    data: bytearray = field(default_factory=bytearray)
    synced_bytes: int | None = None
    """None while its name is not durable either."""


class MemorySnapshotFiles:
    """``limit_bytes`` bounds all files together."""

    def __init__(self, *, limit_bytes: int = 1 << 30) -> None:
        self.limit_bytes = limit_bytes
        self._files: dict[str, _File] = {}

    def names(self) -> list[str]:
        return sorted(self._files)

    def write(self, name: str, offset: int, data: bytes) -> None:
        if NAME.fullmatch(name) is None:
            raise NotFound("snapshot", repr(name))
        if offset == 0:
            self._files.pop(name, None)
        if len(data) > self.free_bytes():
            raise ResourceExhausted(f"there is no room for the snapshot {name}", RETRY_DELAY_MS, "disk")
        file = self._files.setdefault(name, _File()) if offset == 0 else self._file(name)
        file.data[offset : offset + len(data)] = data
        if file.synced_bytes is not None:
            file.synced_bytes = min(file.synced_bytes, offset)

    def read(self, name: str, offset: int, length: int) -> bytes:
        return bytes(self._file(name).data[offset : offset + length])

    def size(self, name: str) -> int:
        return len(self._file(name).data)

    def sync(self, name: str) -> None:
        file = self._file(name)
        file.synced_bytes = len(file.data)

    def remove(self, name: str) -> None:
        self._files.pop(name, None)

    def free_bytes(self) -> int:
        return self.limit_bytes - sum(len(file.data) for file in self._files.values())

    def crash(self) -> None:
        """Cut the power: bytes that were not synced are gone."""
        self._files = {
            name: _File(file.data[: file.synced_bytes], file.synced_bytes)
            for name, file in self._files.items()
            if file.synced_bytes is not None
        }

    def damage(self, name: str, offset: int) -> None:
        """Flip a bit of the byte at ``offset``, as a bad disk does."""
        self._file(name).data[offset] ^= 0x10

    def _file(self, name: str) -> _File:
        file = self._files.get(name)
        if file is None:
            raise NotFound("snapshot", name)
        return file
