"""Appends to log files, and the records that must be there afterwards: a dumb twin, and histories of several groups."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from cortado.raft.log import LogRecord, RecordKind
from cortado.store.log_files.files import LogDirectory
from cortado.store.log_files.log_files import LogFiles

SMALL = 4_096
Append = Sequence[LogRecord]
State = dict[int, tuple[LogRecord | None, list[LogRecord]]]


def entry(group_id: int, index: int, payload: bytes = b"x", term: int = 1) -> LogRecord:
    return LogRecord(RecordKind.ENTRY, group_id, index, term, payload)


def truncate(group_id: int, index: int) -> LogRecord:
    return LogRecord(RecordKind.TRUNCATE, group_id, index, 0)


def hard_state(group_id: int, base: int, payload: bytes = b"voted", term: int = 1) -> LogRecord:
    return LogRecord(RecordKind.HARD_STATE, group_id, base, term, payload)


@dataclass(slots=True)
class Twin:
    """A dict of dicts that forgets nothing."""

    hard: dict[int, LogRecord] = field(default_factory=dict)
    entries: dict[int, dict[int, LogRecord]] = field(default_factory=dict)

    def append(self, records: Iterable[LogRecord]) -> None:
        for record in records:
            held = self.entries.setdefault(record.group_id, {})
            if record.kind is RecordKind.HARD_STATE:
                self.hard[record.group_id] = record
                gone = [index for index in held if index <= record.index]
            else:
                gone = [index for index in held if index >= record.index]
            for index in gone:
                del held[index]
            if record.kind is RecordKind.ENTRY:
                held[record.index] = record

    def state(self) -> State:
        return {
            group_id: (self.hard[group_id], [held[index] for index in sorted(held)])
            for group_id, held in self.entries.items()
        }

    def last(self, group_id: int) -> int:
        return max((self.hard[group_id].index, *self.entries[group_id]))


def states_of(history: Sequence[Append]) -> list[State]:
    """Return the states after no append, after the first, and so on."""
    twin = Twin()
    states = [twin.state()]
    for records in history:
        twin.append(records)
        states.append(twin.state())
    return states


def opened(files: LogDirectory, segment_bytes_max: int = SMALL) -> tuple[LogFiles, State]:
    log_files = LogFiles.open(files, segment_bytes_max=segment_bytes_max)
    groups = log_files.take_groups()
    return log_files, {group_id: (group.hard_state, group.entries) for group_id, group in groups.items()}


def read_back(files: LogDirectory) -> State:
    log_files, state = opened(files)
    log_files.close()
    return state


SCRIPT: list[Append] = [
    [hard_state(1, 2), hard_state(2, 0)],
    [entry(1, 3), entry(1, 4, b"y" * 100), entry(2, 1)],
    [entry(1, 5, bytes(1_100))],
    [entry(2, 2, b"z" * 700)],
    [hard_state(1, 2, b"another", 2), truncate(1, 5)],
    [entry(1, 5, b"\0" * 507 + b"\1"), entry(1, 6, bytes(508))],
    [entry(1, 4, b"replaced" * 30, 2)],
    [hard_state(3, 7, b"n" * 60), entry(2, 3, bytes(600))],
    [entry(3, 8, b"large" * 1_100)],
    [hard_state(1, 4), hard_state(2, 3)],
    [entry(1, 5, b"w" * 900, 2), entry(2, 4)],
    [hard_state(1, 50, b"reset", 3), entry(1, 51, b"v" * 470, 3)],
    [entry(1, index, b"u" * 300, 3) for index in range(52, 58)],
    [truncate(1, 55), hard_state(3, 8)],
    [hard_state(2, 4), entry(1, 55, b"t" * 2_000, 4)],
    [entry(2, 5), hard_state(1, 55, b"end", 4)],
    [entry(2, 6, b"s" * 1_900)],
    [entry(1, 56, b"last", 4)],
]
"""Three groups; sectors of zeros; a frame that is larger than a segment; truncations, replacements, a reset."""


def drawn_history(seed: int, appends: int) -> list[Append]:
    """Draw a valid history, from a seed."""
    draw, twin = random.Random(seed), Twin()
    history: list[Append] = []
    for _ in range(appends):
        records = [record for _ in range(draw.randint(1, 4)) for record in _drawn_records(draw, twin)]
        history.append(records)
    return history


def _drawn_records(draw: random.Random, twin: Twin) -> list[LogRecord]:
    group_id = draw.randint(1, 3)
    payload = draw.choice((b"", bytes(draw.randint(0, 1_200)), draw.randbytes(draw.randint(1, 1_200)), b"p" * 40))
    if group_id not in twin.hard:
        records = [hard_state(group_id, draw.randint(0, 9), payload[:80])]
    else:
        base, last = twin.hard[group_id].index, twin.last(group_id)
        what = draw.choice(("append", "append", "append", "hard state", "base", "truncate", "replace", "reset"))
        match what:
            case "append":
                records = [entry(group_id, last + 1 + place, payload) for place in range(draw.randint(1, 3))]
            case "hard state":
                records = [hard_state(group_id, base, payload[:80])]
            case "base":
                records = [hard_state(group_id, draw.randint(base, last), payload[:80])]
            case "truncate":
                records = [truncate(group_id, draw.randint(base + 1, last + 2))]
            case "replace":
                records = [entry(group_id, draw.randint(base + 1, last + 1), payload)]
            case _:
                records = [hard_state(group_id, last + draw.randint(0, 5), payload[:80])]
    twin.append(records)
    return records
