"""Proving that a backup is whole: every byte of it, and of those that it follows."""

from __future__ import annotations

from dataclasses import dataclass

from cortado.store.backup.chain import Backup, chain_of
from cortado.store.backup.directory import Where
from cortado.store.transfer.progress import Progress, Report, silent


@dataclass(frozen=True, slots=True)
class Checked:
    """What was verified."""

    backups: int
    versions: int
    bytes: int


def check_backup(where: Where, report: Report = silent) -> Checked:
    """Verifies a backup and those that it follows. Raises DataLoss that names the file,
    InvalidArgument, Unsupported."""
    return check_chain(chain_of(where), report)


def check_chain(chain: list[Backup], report: Report = silent) -> Checked:
    """As :func:`check_backup`."""
    versions, size_bytes, total = 0, 0, sum(each.manifest.bytes for each in chain)
    for backup in chain:
        for number, part in enumerate(backup.manifest.parts):
            backup.check(number)
            versions += part.versions
            size_bytes += part.bytes
            report(Progress(backup.name(number), versions, done=size_bytes, total=total))
    return Checked(len(chain), versions, size_bytes)
