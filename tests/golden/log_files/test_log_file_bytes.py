"""The bytes of log files are on disk: these goldens pin them.

A change here is a change of format: raise the log files' version, and say so in ``docs/formats/log-files.md``. Then
``PYTHONPATH=tests python tests/golden/log_files/test_log_file_bytes.py > tests/golden/log_files/log_files.txt`` writes
the file anew.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from cortado.raft.log import LogRecord, RecordKind
from cortado.store.log_files.segments import segment_numbers
from cortado.store.log_files.walk import walk
from support.log_disk import LogDisk
from support.log_histories import opened

GOLDEN = Path(__file__).with_name("log_files.txt")
HISTORY = [
    [LogRecord(RecordKind.HARD_STATE, 1, 2, 1, b"hard state"), LogRecord(RecordKind.HARD_STATE, 7, 0, 0, b"idle")],
    [LogRecord(RecordKind.ENTRY, 1, 3, 1, b"an entry"), LogRecord(RecordKind.ENTRY, 1, 4, 1, b"")],
    [LogRecord(RecordKind.ENTRY, 1, 5, 2, b"sectors" * 100)],
    [LogRecord(RecordKind.TRUNCATE, 1, 4, 0)],
    [LogRecord(RecordKind.ENTRY, 1, 4, 3, b"next segment" + bytes(3_000))],
]


def written() -> LogDisk:
    disk = LogDisk()
    log_files, _ = opened(disk)
    for records in HISTORY:
        log_files.append(records)
    return disk


def lines() -> Iterator[str]:
    """The appended records, and each file's bytes in lines of 32; lines of zeros are left out."""
    disk = written()
    for found in walk(disk):
        record = found.record
        assert record is not None
        place = f"segment {found.segment} byte {found.offset}:{' state:' if found.is_state else ''}"
        payload = f"{len(record.payload)} bytes {record.payload[:12]!r}"
        yield f"{place} {record.kind.name} group {record.group_id} index {record.index} term {record.term}, {payload}"
    for name, content in sorted(disk.files.items()):
        yield f"{name}, {len(content)} bytes"
        for start in range(0, len(content), 32):
            if any(line := content[start : start + 32]):
                yield f"{start:5} {line.hex()}"


def test_the_bytes_of_log_files_are_the_golden_ones() -> None:
    assert list(lines()) == GOLDEN.read_text().splitlines()


def test_the_golden_has_all_kinds_of_records_and_frames() -> None:
    disk = written()
    assert segment_numbers(disk) == [1, 2]
    assert {found.record.kind for found in walk(disk) if found.record is not None} == set(RecordKind)


if __name__ == "__main__":
    sys.stdout.writelines(f"{line}\n" for line in lines())
