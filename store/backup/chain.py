"""The state of a backup's directory: empty, the beginning of a backup, or all of it; and the chain of backups that it
follows."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from cortado.errors import DataLoss, InvalidArgument
from cortado.store.backup.manifest import (
    CHECKPOINT,
    MANIFEST,
    SEGMENTS_MAX,
    Checkpoint,
    Manifest,
    part_name,
    read_checkpoint,
    read_manifest,
    segment_name,
    segment_of,
)
from cortado.store.backup.part_file import PartReader, read_end
from cortado.store.backup.runs import Run
from cortado.store.backup.streams import READ_AT_ONCE, Streams
from cortado.store.clock.timestamp import Timestamp
from cortado.store.transfer.directory import Directory, Where, directory_at
from cortado.store.transfer.files import PARTIAL

CHAIN_MAX: Final = 1_000 + SEGMENTS_MAX
"""Backups that follow each other, and segments."""


@dataclass(frozen=True, slots=True)
class Empty:
    """Nothing is there, perhaps not even the directory."""


Found: TypeAlias = Empty | Checkpoint | Manifest


def look(directory: Directory) -> Found:
    """Return the state of the directory. Raises InvalidArgument if it holds other files, DataLoss, Unsupported."""
    names = directory.names() or []
    if MANIFEST in names:
        return read_manifest(directory)
    if CHECKPOINT in names:
        return read_checkpoint(directory)
    # A first checkpoint that was cut off.
    if [name for name in names if name != CHECKPOINT + PARTIAL]:
        problem = f"holds something that is no backup ({names[0]}), and is left alone: give an empty directory"
        raise InvalidArgument("DIR", problem, str(directory))
    return Empty()


def whole_backup(directory: Directory) -> Manifest:
    """Return the backup in a directory. Raises InvalidArgument if there is no backup, or an unfinished one."""
    found = look(directory)
    if isinstance(found, Manifest):
        return found
    problem = "holds no backup" if isinstance(found, Empty) else "holds a backup that is not done: take it first"
    raise InvalidArgument("DIR", problem, str(directory))


@dataclass(frozen=True, slots=True)
class Backup:
    """A whole backup, or a segment of one that is followed; and where it is."""

    directory: Directory
    manifest: Manifest

    @property
    def segment(self) -> int:
        """Which segment it is, from 1; 0: a backup of its own."""
        shape = self.manifest.shape
        is_segment = shape.history and shape.base is not None
        return segment_of(posixpath.basename(str(self.directory))) if is_segment else 0

    def name(self, part: int) -> str:
        """Return a part's file, for people."""
        return f"{self.directory}/{part_name(part)}"

    def runs(self, part: int) -> Iterator[Run]:
        """Yield the versions of a part, each byte verified by the end. Raises DataLoss, naming the file, and
        InvalidArgument if a link leads elsewhere."""
        reader = PartReader(self.directory, part_name(part), self.manifest.header(part))
        yield from reader.runs()
        self._check(part, reader.found)

    def check(self, part: int) -> None:
        """Verifies a part. Raises as :meth:`runs`."""
        self._check(part, read_end(self.directory, part_name(part), self.manifest.header(part)))

    def _check(self, part: int, found: object) -> None:
        entry = self.manifest.parts[part]
        said = (entry.versions, entry.content, entry.bytes, entry.sha256)
        if found is None or said != tuple(getattr(found, name) for name in ("versions", "content", "bytes", "sha256")):
            raise DataLoss(self.name(part), f"it is not the part that {MANIFEST} says")


def last_segment(directory: Directory, manifest: Manifest) -> Backup:
    """Return the last segment of the backup there; the backup itself, if it has no segments. A segment that was cut
    off, and so has no manifest, does not count."""
    for number in sorted(map(segment_of, directory.names() or []), reverse=True):
        if number > SEGMENTS_MAX:
            problem = f"holds {segment_name(number)}, and has at most {SEGMENTS_MAX} segments"
            raise InvalidArgument("DIR", problem, str(directory))
        place = directory.at(segment_name(number))
        if number and MANIFEST in (place.names() or []):
            return Backup(place, read_manifest(place))
    return Backup(directory, manifest)


def chain_of(where: Where) -> list[Backup]:
    """Return the backup there with its segments, behind those that it follows; the first one first.

    Raises InvalidArgument if one is not there, or is another than the one that was followed; DataLoss.
    """
    directory = directory_at(where)
    last = last_segment(directory, whole_backup(directory))
    numbers = range(1, last.segment)
    places = [directory.at(segment_name(number)) for number in numbers]
    # An object store takes its time for each, and there may be tens of thousands.
    segments = Streams(READ_AT_ONCE, "reading of segments").run(lambda number: look(places[number - 1]), numbers)
    return behind(last, dict(zip(map(str, places), segments, strict=True)))


def behind(last: Backup, known: Mapping[str, Found]) -> list[Backup]:
    """Return ``last`` behind the backups that it follows; some of those are ``known`` by their place. Raises as
    :func:`chain_of`."""
    chain, seen = [last], {last.manifest.shape.backup_id}
    while (base := chain[-1].manifest.shape.base) is not None:
        follower, follower_place = chain[-1].manifest.shape, str(chain[-1].directory)
        place = chain[-1].directory.at(base.path)
        if len(chain) >= CHAIN_MAX:
            raise InvalidArgument("DIR", f"follows more than {CHAIN_MAX} backups", str(last.directory))
        found = known.get(str(place)) or look(place)
        if not isinstance(found, Manifest):
            problem = f"follows the backup {base.backup_id} of {base.timestamp}, which is not in {place}"
            raise InvalidArgument("DIR", problem, follower_place)
        shape = found.shape
        expected = base.backup_id, base.timestamp, follower.cluster_id, follower.since
        if shape.backup_id in seen:
            problem = f"is of a backup that follows itself, by way of {place}"
            raise InvalidArgument("DIR", problem, follower_place)
        seen.add(shape.backup_id)
        if (shape.backup_id, shape.timestamp, shape.cluster_id, shape.timestamp) != expected:
            problem = f"follows the backup {base.backup_id} of {base.timestamp}; in {place} is {shape.backup_id}"
            raise InvalidArgument("DIR", problem, follower_place)
        chain.append(Backup(place, found))
    return chain[::-1]


def readable_from(chain: Sequence[Backup]) -> Timestamp:
    """Return the oldest time at which a restored chain can be read."""
    oldest = chain[-1].manifest.shape.at
    for each in reversed(chain):
        shape = each.manifest.shape
        if not shape.history or shape.after is None:
            break
        oldest = shape.after
    return oldest
