"""Small backups in a directory, made without a cluster."""

from __future__ import annotations

from pathlib import Path

from cortado.store.backup.manifest import (
    BaseBackup,
    Checkpoint,
    Manifest,
    PartEntry,
    RangeEntry,
    Shape,
    part_name,
    write_manifest,
)
from cortado.store.backup.part_file import PartWriter
from cortado.store.backup.runs import Run
from cortado.store.clock.timestamp import Timestamp
from cortado.store.keys.keyspace import kv_key
from cortado.store.transfer.directory import Directory, LocalDirectory

CLUSTER = "11" * 16
RANGES = (("6b", "6b306d"), ("6b306d", "6c"))


def small_run(*names: bytes, wall_ms: int = 7, value: bytes = b"Ptea") -> Run:
    """Return pairs of one namespace, all at one timestamp."""
    keys = [kv_key("n", name) for name in sorted(names)]
    return Run(keys, [bytes(Timestamp(0, wall_ms, 0))] * len(keys), [value] * len(keys))


def shape(
    backup_id: str = "aa", ts: str = "0.9.0", base: BaseBackup | None = None, *, roles_enabled: bool = False
) -> Shape:
    """Return the shape of a backup of one state, or of the changes since ``base``."""
    since = None if base is None else base.timestamp
    return Shape(CLUSTER, backup_id, ts, since, False, base, roles_enabled)


def write_backup(directory: Path | Directory, of: Shape, runs: list[list[Run]]) -> Manifest:
    """Write a whole backup: ``runs`` of each part."""
    place = LocalDirectory(directory) if isinstance(directory, Path) else directory
    place.make()
    checkpoint = Checkpoint(of, tuple(RangeEntry(start, end, 1) for start, end in RANGES[: len(runs)]))
    parts = []
    for number, each in enumerate(runs):
        with place.writing(part_name(number)) as file:
            writer = PartWriter(file, checkpoint.header(number))
            for run in each:
                writer.add(run.encode())
            end = writer.end()
        start, stop = RANGES[number]
        parts.append(PartEntry(start, stop, end.versions, end.content, end.bytes, end.sha256))
    manifest = Manifest(of, tuple(parts))
    write_manifest(place, manifest)
    return manifest
