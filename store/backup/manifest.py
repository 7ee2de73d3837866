"""The files of a backup's directory: ``manifest.json`` is written last, so a directory that has it has a whole backup.

::

    monday/
      manifest.json            cluster, timestamp, what it follows; of each part its range, its count, its digests
      part-00000.cortado       the versions of the first range of keys
      part-00001.cortado
      backup.checkpoint.json   what is to be read, as long as the backup is not done
      segment-00000001/        what was committed after it, where it is followed: a directory as this one

A backup that follows another one holds the changes since, and names the other by its id and its path from here. The
manifest has a digest of itself, over its other members as JSON with sorted names and without spaces, in every format.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final

from cortado.errors import DataLoss, InvalidArgument
from cortado.store.backup.part_file import FORMAT, PartHeader, check_format
from cortado.store.clock.timestamp import Timestamp
from cortado.store.transfer.directory import Directory
from cortado.store.transfer.files import JSON_BYTES_MAX, json_bytes, parse_written
from cortado.store.transfer.json_fields import Fields

MANIFEST: Final = "manifest.json"
CHECKPOINT: Final = "backup.checkpoint.json"
_MARK: Final = {MANIFEST: "cortado_backup", CHECKPOINT: "cortado_backup_under_way"}
_DIGEST: Final = "digest"
_PATH_BYTES_MAX: Final = 4_096
_SEGMENT: Final = re.compile(r"segment-([0-9]{8})")
SEGMENTS_MAX: Final = 100_000
"""The most segments of one backup: three days and a half under constant writes."""


@dataclass(frozen=True, slots=True)
class BaseBackup:
    """The backup that another one follows: its id, its timestamp, and its path from the other's directory."""

    backup_id: str
    timestamp: str
    path: str


@dataclass(frozen=True, slots=True)
class Shape:
    """Which versions a backup holds.

    Without ``since`` the state at ``timestamp``. With it the changes above, up to ``timestamp``: the newest version of
    each key or, with ``history``, all. A ``history`` that follows no backup also has the state at ``since``.

    ``roles_enabled``: roles were on in the cluster. No backup holds the roles themselves, so without roles at the
    target every caller could read the restored data.
    """

    cluster_id: str
    backup_id: str
    timestamp: str
    since: str | None
    history: bool
    base: BaseBackup | None
    roles_enabled: bool

    @property
    def at(self) -> Timestamp:
        return Timestamp.parse(self.timestamp)

    @property
    def after(self) -> Timestamp | None:
        """``since``, as a timestamp."""
        return None if self.since is None else Timestamp.parse(self.since)

    @property
    def with_start(self) -> bool:
        """Whether the state at ``since`` is in it."""
        return self.history and self.base is None


@dataclass(frozen=True, slots=True)
class RangeEntry:
    """Logical keys in ``[start, end)``, in hexadecimal; about so many ``keys`` of the state."""

    start: str
    end: str
    keys: int


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A backup under way: each range becomes a part."""

    shape: Shape
    ranges: tuple[RangeEntry, ...]

    def header(self, part: int) -> PartHeader:
        """Return the header of the part's file."""
        return PartHeader(self.shape.backup_id, part, self.ranges[part].start, self.ranges[part].end)


@dataclass(frozen=True, slots=True)
class PartEntry:
    """A part: the logical keys in ``[start, end)``, how many ``versions``, the digest of these, and of the file."""

    start: str
    end: str
    versions: int
    content: str
    bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Manifest:
    """A whole backup."""

    shape: Shape
    parts: tuple[PartEntry, ...]

    @property
    def versions(self) -> int:
        return sum(part.versions for part in self.parts)

    @property
    def bytes(self) -> int:
        return sum(part.bytes for part in self.parts)

    def header(self, part: int) -> PartHeader:
        """Return the header of the part's file."""
        return PartHeader(self.shape.backup_id, part, self.parts[part].start, self.parts[part].end)


def part_name(part: int) -> str:
    """Return the file of a part, from 0."""
    return f"part-{part:05}.cortado"


def segment_name(segment: int) -> str:
    """Return the directory of a segment, from 1."""
    return f"segment-{segment:08}"


def segment_of(name: str) -> int:
    """Return which segment a directory of that name is; 0 for none."""
    found = _SEGMENT.fullmatch(name)
    return int(found[1]) if found is not None else 0


def write_manifest(directory: Directory, manifest: Manifest) -> None:
    """Writes it, whole or not at all."""
    _write(directory, MANIFEST, {**asdict(manifest.shape), "parts": [asdict(part) for part in manifest.parts]})


def write_checkpoint(directory: Directory, checkpoint: Checkpoint) -> None:
    """Writes it, whole or not at all."""
    _write(directory, CHECKPOINT, {**asdict(checkpoint.shape), "ranges": [asdict(each) for each in checkpoint.ranges]})


def read_manifest(directory: Directory) -> Manifest:
    """Raise DataLoss if it is not as it was written, InvalidArgument if it is no backup's, Unsupported."""
    fields = _read(directory, MANIFEST)
    manifest = Manifest(_shape(fields), fields.each("parts", _part))
    _check_ranges(fields, "parts", [(part.start, part.end) for part in manifest.parts])
    return manifest


def read_checkpoint(directory: Directory) -> Checkpoint:
    """As :func:`read_manifest`."""
    fields = _read(directory, CHECKPOINT)
    checkpoint = Checkpoint(_shape(fields), fields.each("ranges", _range))
    _check_ranges(fields, "ranges", [(each.start, each.end) for each in checkpoint.ranges])
    return checkpoint


def _write(directory: Directory, name: str, members: Mapping[str, Any]) -> None:
    value = {_MARK[name]: FORMAT, **members}
    with directory.writing(name) as file:
        file.write(json_bytes({**value, _DIGEST: _digest_of(value)}))


def _read(directory: Directory, name: str) -> Fields:
    path = f"{directory}/{name}"
    with directory.reading(name) as file:
        data = file.read(JSON_BYTES_MAX + 1)
    try:
        value = parse_written(data, name, path)
    except InvalidArgument as problem:
        raise DataLoss(path, problem.problem) from None
    mark = _MARK[name]
    if not isinstance(value, dict):
        raise DataLoss(path, "it is no object")
    digest = value.pop(_DIGEST, None)
    if type(value.get(mark)) is not int:
        # Another program's file of that name, an export's say; or one that lost its own mark.
        unmarked = f"must have {mark}: it is of no backup, or damaged"
        raise DataLoss(path, unmarked) if digest is not None else InvalidArgument(name, unmarked, path)
    if digest != _digest_of(value):
        raise DataLoss(path, "its digest is not that of what it says")
    check_format(value[mark], path)
    return Fields(value, name)


def _digest_of(value: Mapping[str, Any]) -> str:
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()


def _shape(fields: Fields) -> Shape:
    return Shape(
        fields.text("cluster_id"),
        fields.text("backup_id"),
        _timestamp(fields, "timestamp"),
        fields.maybe("since", lambda name: _timestamp(fields, name)),
        fields.flag("history"),
        fields.maybe("base", lambda name: _base(fields.inner(name))),
        fields.flag("roles_enabled"),
    )


def _base(fields: Fields) -> BaseBackup:
    path = fields.text("path")
    if not path.isprintable() or len(path.encode()) > _PATH_BYTES_MAX:
        fields.refuse("path", f"a path that prints, of at most {_PATH_BYTES_MAX} bytes")
    return BaseBackup(fields.text("backup_id"), _timestamp(fields, "timestamp"), path)


def _range(fields: Fields) -> RangeEntry:
    return RangeEntry(_hex(fields, "start"), _hex(fields, "end"), fields.whole("keys"))


def _part(fields: Fields) -> PartEntry:
    return PartEntry(
        _hex(fields, "start"),
        _hex(fields, "end"),
        fields.whole("versions"),
        fields.sha256("content"),
        fields.whole("bytes"),
        fields.sha256("sha256"),
    )


def _timestamp(fields: Fields, name: str) -> str:
    found = fields.text(name)
    try:
        Timestamp.parse(found)
    except InvalidArgument:
        fields.refuse(name, "a timestamp, as epoch.wall_ms.logical")
    return found


def _hex(fields: Fields, name: str) -> str:
    found = fields.text(name)
    try:
        if not bytes.fromhex(found):
            fields.refuse(name, "a key in hexadecimal")
    except ValueError:
        fields.refuse(name, "a key in hexadecimal")
    return found


def _check_ranges(fields: Fields, name: str, ranges: list[tuple[str, str]]) -> None:
    """Raises InvalidArgument if they do not ascend, so that a key might be in two."""
    before = ""
    for start, end in ranges:
        if not before <= start < end:
            fields.refuse(name, "ranges that ascend")
        before = end
