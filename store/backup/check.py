"""Proving that a backup is whole: every byte of it, and of those that it follows."""

from __future__ import annotations

from dataclasses import dataclass
from threading import Lock

from cortado.store.backup.chain import Backup, chain_of
from cortado.store.backup.streams import READ_AT_ONCE, Streams
from cortado.store.transfer.directory import Where
from cortado.store.transfer.progress import Progress, Report, silent


@dataclass(frozen=True, slots=True)
class Checked:
    """The counts of a verification."""

    backups: int
    versions: int
    bytes: int


def check_backup(where: Where, report: Report = silent) -> Checked:
    """Verifies a backup and those that it follows. Raises DataLoss that names the file,
    InvalidArgument, Unsupported."""
    return check_chain(chain_of(where), report)


def check_chain(chain: list[Backup], report: Report = silent) -> Checked:
    """As :func:`check_backup`."""
    parts = [(backup, number) for backup in chain for number in range(len(backup.manifest.parts))]
    streams = Streams(READ_AT_ONCE, "check")
    lock, done, total = Lock(), [0, 0], sum(each.manifest.bytes for each in chain)

    def check(place: int) -> None:
        backup, number = parts[place]
        backup.check(number)
        entry = backup.manifest.parts[number]
        with lock:
            streams.check()
            done[:] = done[0] + entry.versions, done[1] + entry.bytes
            report(Progress(backup.name(number), done[0], done=done[1], total=total))

    streams.run(check, range(len(parts)))
    return Checked(len(chain), *done)
