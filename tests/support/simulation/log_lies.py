"""Disks that do not keep the log files that they were given.

===========================  ==========================================================================================
rotten log                   a bit turns, anywhere in a file that is needed
log write lost               a write was acknowledged and is not there, others behind it are
log write misdirected        the same, and it stands in another place
log file lost                a file is gone
end of the log lost          the last append was acknowledged and is not there, nor anything behind it
===========================  ==========================================================================================

The first four show: each start says ``DATA_LOSS``, and the replica is replaced. The last one leaves the same files as a
crash before the append, so no start can tell, unless the data says that more was applied. The promise of its lost part
is therefore a matter of the others: nothing is lost that a majority holds without this replica, as long as the replica
said nothing of its vote there. :meth:`LogLies.lose_end` strikes only under that condition.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from cortado.errors import DataLoss
from cortado.raft.records import decode_hard_state
from cortado.store.log_files.recovery import StoredGroup, read_groups
from support.simulation.log_disk import SECTOR_BYTES, LogDisk, Write

Files = dict[str, bytearray]


class LogLies:
    """``source`` is used for nothing else."""

    def __init__(self, source: random.Random) -> None:
        self._random = source
        self._ways: Final[dict[str, Callable[[LogDisk], bool]]] = {
            "rotten log": self._rot,
            "log write lost": self._lose,
            "log write misdirected": self._misdirect,
            "log file lost": self._remove,
        }

    def strike(self, disk: LogDisk) -> str:
        """Damage the log on ``disk`` and return the kind of damage, empty if the log holds too little for the drawn
        kind."""
        way = self._random.choice(sorted(self._ways))
        return way if self._ways[way](disk) else ""

    def _rot(self, disk: LogDisk) -> bool:
        name = self._random.choice(sorted(disk.durable))
        content = disk.durable[name]
        is_in_records = self._random.random() < 0.8
        end = max((each.offset + len(each.data) for each in disk.written if each.name == name), default=0)
        content[self._random.randrange(end if is_in_records and end else len(content))] ^= 1 << self._random.randrange(
            8
        )
        return True

    def _lose(self, disk: LogDisk) -> bool:
        return self._lost_write(disk) is not None

    def _misdirect(self, disk: LogDisk) -> bool:
        write = self._lost_write(disk)
        if write is None:
            return False
        content = disk.durable[self._random.choice(sorted(disk.durable))]
        last_offset = len(content) - len(write.data)
        within = write.offset % SECTOR_BYTES
        if last_offset < within:
            return True
        offset = self._random.randrange(within, last_offset + 1, SECTOR_BYTES)
        content[offset : offset + len(write.data)] = write.data
        return True

    def _lost_write(self, disk: LogDisk) -> Write | None:
        """Put zeros in the place of a write. Never the last one: see above."""
        writes = [each for each in disk.written[:-1] if _stands(disk.durable, each) and any(each.data)]
        if not writes:
            return None
        write = self._random.choice(writes)
        disk.durable[write.name][write.offset : write.offset + len(write.data)] = bytes(len(write.data))
        return write

    def _remove(self, disk: LogDisk) -> bool:
        """Remove a file, but not one that is only just made: a crash in the middle of that leaves the same."""
        names = sorted(disk.durable)
        if sum(each.name == names[-1] for each in disk.written) < 2:
            names.pop()
        if not names:
            return False
        del disk.durable[self._random.choice(names)]
        return True

    def lose_end(self, disk: LogDisk, others: Sequence[LogDisk], majority: int) -> Mapping[int, list[int]]:
        """Lose the last append of a disk after its process has ended. Returns the indexes of the lost entries by group,
        at least one; or none if that would break a promise of a ``majority`` of ``others`` and this one."""
        write = disk.written[-1]
        if not _stands(disk.durable, write) or write.offset == 0:
            return {}
        shortened = {name: bytearray(content) for name, content in disk.durable.items()}
        shortened[write.name][write.offset : write.offset + len(write.data)] = bytes(len(write.data))
        whole, left = _groups(disk.durable), _groups(shortened)
        if not whole or whole.keys() != left.keys() or any(_vote(whole[each]) != _vote(left[each]) for each in whole):
            return {}
        held = [_groups(other.durable) for other in others]
        lost: dict[int, list[int]] = {}
        for group_id, group in whole.items():
            kept = {each.index: each.term for each in left[group_id].entries}
            for each in [each for each in group.entries if kept.get(each.index) != each.term]:
                if sum(_holds(other.get(group_id), each.index, each.term) for other in held) < majority:
                    return {}
                lost.setdefault(group_id, []).append(each.index)
        if not lost:
            return {}
        disk.durable[write.name][:] = shortened[write.name]
        disk.kept[write.name][:] = shortened[write.name]
        disk.written.pop()
        disk.has_lost_end = True
        return lost


def _stands(files: Files, write: Write) -> bool:
    content = files.get(write.name, b"")
    return content[write.offset : write.offset + len(write.data)] == write.data


def _groups(files: Files) -> Mapping[int, StoredGroup]:
    try:
        return read_groups(LogDisk.holding(files))
    except DataLoss:
        return {}


def _vote(group: StoredGroup) -> tuple[int, str]:
    assert group.hard_state is not None
    state = decode_hard_state(group.hard_state.group_id, group.hard_state.payload)
    return state.term, state.voted_for


def _holds(group: StoredGroup | None, index: int, term: int) -> bool:
    """Return whether the entry is in the log, or was applied before it begins."""
    if group is None or group.hard_state is None:
        return False
    return group.hard_state.index >= index or any((each.index, each.term) == (index, term) for each in group.entries)
