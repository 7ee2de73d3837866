"""A folder of log files in memory that crashes, tears, loses, strays, fills up and fails, as a test asks.

Written and durable are two things here, as on a disk with a cache: ``sync`` makes the one the other. A crash of the
machine keeps any subset of the sectors that were written since; a process that is killed loses nothing. Each change is
a step with a number and a name, and a :class:`Fault` strikes at one of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import product
from math import prod
from types import MappingProxyType
from typing import Final

from cortado.errors import DataLoss, ResourceExhausted
from cortado.store.engine.failures import StorageFailed, disk_full

SECTOR: Final = 512
NOTHING_KEPT: Final[Mapping[tuple[str, int], bytes]] = MappingProxyType({})


class Crashed(Exception):
    """The process is gone; :meth:`LogDisk.images` has the disks that it may leave."""


@dataclass(slots=True)
class LogDisk:
    """A :class:`~cortado.store.log_files.files.LogDirectory`. ``files`` is the content that a process reads;
    ``durable`` is the least that a loss of power leaves of it."""

    files: dict[str, bytearray] = field(default_factory=dict)
    durable: dict[str, bytearray] = field(default_factory=dict)
    strike: Callable[[int, str, LogDisk], None] | None = None
    """Called before each step with its number and name, such as ``write 0000000000000001``. It may raise."""
    drop: Callable[[int], bool] | None = None
    """Whether the disk claims to do this write, and does not."""
    stray: Callable[[int], tuple[str, int] | None] | None = None
    """The file and offset where the disk puts this write instead."""
    part_bytes: int = 0
    """How much of a write is done that finds no room: at most this number of bytes, to the end of a sector."""
    steps: list[str] = field(default_factory=list)
    past: dict[tuple[str, int], list[bytes]] = field(default_factory=dict)
    """The content of each sector before each write since its last sync: a disk may have written any of it."""

    def _step(self, name: str) -> int:
        self.steps.append(name)
        if self.strike is not None:
            self.strike(len(self.steps) - 1, name, self)
        return len(self.steps) - 1

    # --- the port --------------------------------------------------------------------------------------------------

    def names(self) -> list[str]:
        return list(self.files)

    def create(self, name: str, size_bytes: int) -> None:
        self._step(f"create {name}")
        assert name not in self.files
        self.files[name] = bytearray(size_bytes)
        self.durable[name] = bytearray(size_bytes)

    def write(self, name: str, offset: int, data: bytes) -> None:
        try:
            number = self._step(f"write {name}")
        except ResourceExhausted:
            # Whole sectors, and never all of it.
            end = min(offset + self.part_bytes, offset + len(data) - 1) // SECTOR * SECTOR
            self.put(name, offset, data[: max(0, end - offset)])
            raise
        if self.drop is not None and self.drop(number):
            return
        place = None if self.stray is None else self.stray(number)
        if place is not None:
            name, offset = place
        self.put(name, offset, data)

    def put(self, name: str, offset: int, data: bytes) -> None:
        file = self.files[name]
        assert offset + len(data) <= len(file), "a write behind the end of a preallocated file"
        for start in range(offset - offset % SECTOR, offset + len(data), SECTOR):
            self.past.setdefault((name, start), []).append(bytes(file[start : start + SECTOR]))
        file[offset : offset + len(data)] = data

    def sync(self, name: str) -> None:
        self._step(f"sync {name}")
        self.durable[name] = bytearray(self.files[name])
        self.past = {sector: past for sector, past in self.past.items() if sector[0] != name}

    def read(self, name: str, offset: int, size: int) -> bytes:
        if name not in self.files:
            raise DataLoss(name, "not there")
        return bytes(self.files[name][offset : offset + size])

    def size(self, name: str) -> int:
        if name not in self.files:
            raise DataLoss(f"the log file {name}", "it is not there")
        return len(self.files[name])

    def remove(self, name: str) -> None:
        self._step(f"remove {name}")
        del self.files[name], self.durable[name]
        self.past = {sector: past for sector, past in self.past.items() if sector[0] != name}

    def reader(self) -> LogDisk:
        return self

    def close(self) -> None:
        pass

    # --- remains of a crash ----------------------------------------------------------------------------------------

    def killed(self) -> LogDisk:
        """End the process but not the machine: its writes are there, and are not durable by that."""
        past = {sector: list(past) for sector, past in self.past.items()}
        return LogDisk(copied(self.files), copied(self.durable), past=past)

    def dirty_sectors(self) -> dict[tuple[str, int], list[bytes]]:
        """Return the possible contents of each sector after a loss of power: first the synced one, last the last one
        written. Sectors with only one possible content are left out."""
        found = {}
        for (name, start), past in sorted(self.past.items()):
            first, last = (bytes(each[name][start : start + SECTOR]) for each in (self.durable, self.files))
            different = [each for each in dict.fromkeys([first, *past]) if each != last] + [last]
            if len(different) > 1:
                found[name, start] = different
        return found

    def after_power_loss(self, kept: Mapping[tuple[str, int], bytes] = NOTHING_KEPT) -> LogDisk:
        """Return the disk after a loss of power: the sectors in ``kept`` hold these bytes, the others their synced
        ones."""
        files = copied(self.durable)
        for (name, start), content in kept.items():
            files[name][start : start + SECTOR] = content
        return LogDisk(files, copied(files))

    def images(self, all_of: int = 64) -> list[LogDisk]:
        """Return the disks that a crash at this moment may leave: that of a killed process, and every choice for the
        dirty sectors. If there are more than ``all_of`` of these: the oldest, the newest, and each sector or beginning
        the other way."""
        dirty = self.dirty_sectors()
        if prod(map(len, dirty.values())) <= all_of:
            chosen = [dict(zip(dirty, contents, strict=True)) for contents in product(*dirty.values())]
        else:
            oldest = {sector: contents[0] for sector, contents in dirty.items()}
            newest = {sector: contents[-1] for sector, contents in dirty.items()}
            chosen = [oldest, newest]
            for place, (sector, contents) in enumerate(dirty.items()):
                beginning = dict(list(newest.items())[:place])
                chosen.append(oldest | beginning)
                chosen += [each | {sector: content} for content in contents for each in (oldest, newest)]
        return [self.killed(), *map(self.after_power_loss, chosen)]


def copied(files: dict[str, bytearray]) -> dict[str, bytearray]:
    return {name: bytearray(content) for name, content in files.items()}


# --- faults --------------------------------------------------------------------------------------------------------


def crash_at(number: int) -> Callable[[int, str, LogDisk], None]:
    """Return a strike before step ``number``, and before all that follow it."""

    def strike(step: int, name: str, disk: LogDisk) -> None:
        if step >= number:
            raise Crashed(name)

    return strike


def fail_at(number: int) -> Callable[[int, str, LogDisk], None]:
    def strike(step: int, name: str, disk: LogDisk) -> None:
        if step == number:
            raise StorageFailed(f"{name}: Input/output error")

    return strike


def full_from(number: int, count: int, kinds: tuple[str, ...] = ("create", "write", "remove")) -> Callable[..., None]:
    """Return a strike: ``count`` steps from ``number`` on find no room; syncs do."""

    def strike(step: int, name: str, disk: LogDisk) -> None:
        if number <= step < number + count and name.split()[0] in kinds:
            raise disk_full(0, name)

    return strike
