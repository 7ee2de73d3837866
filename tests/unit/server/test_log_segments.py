"""Log files are verified a segment at a time; beside a node that writes, all that is durable, and nothing else."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Iterable, Iterator

import pytest

from cortado.errors import InvalidArgument
from cortado.raft.log import Encoded, LogRecord
from cortado.raft.records import KIND_DATA, HardState, Record
from cortado.store.keys.decoded import NO_NAMES, decode_key, log_file_key
from cortado.store.log_files.log_files import LogFiles
from cortado.store.log_files.segments import segment_name
from cortado.store.log_files.walk import walk
from cortado.store.server.inspection.log_segments import LogSegments, Verified, verify_segment
from cortado.store.server.inspection.problems import CHECKSUM, SEQUENCE, Problems
from cortado.store.server.inspection.verify import go_on, go_through
from support.inspected import damage_log, flipped, log_disk
from support.log_disk import LogDisk

GROUP = 1


def hard_state(base: int = 0) -> LogRecord:
    return HardState(3, "n1", base, 1 if base else 0).log_record(GROUP)


def entry(index: int, size: int = 1_500, term: int = 1) -> LogRecord:
    return Record(KIND_DATA, Encoded(b"payload %03d" % index + bytes(size)), index, term).log_record(GROUP)


def many(entries: Iterable[LogRecord]) -> LogDisk:
    """Return a log of several segments."""
    return log_disk([hard_state()], *([each] for each in entries))


@pytest.fixture
def disk() -> LogDisk:
    made = many(map(entry, range(1, 11)))
    assert len(made.files) > 3
    return made


def pieces(log: LogSegments) -> Iterator[tuple[int, Problems]]:
    """Yield records and problems of one piece after another."""
    start = b""
    while True:
        found = Problems(lambda: NO_NAMES)
        piece = verified(log, start, b"", found)
        yield piece.records, found
        start = piece.resume
        if not start:
            return


def verified(log: LogSegments, start: bytes, end: bytes, found: Problems) -> Verified:
    return go_through(verify_segment(log, start, end, found))


def problems(log: LogSegments | LogDisk) -> list[tuple[int, str, str]]:
    """Return segment, kind and message of each."""
    segments = log if isinstance(log, LogSegments) else LogSegments(lambda: log)
    shown = [each for _, found in pieces(segments) for each in found.shown]
    return [(decode_key(each.key.key).log_segment or 0, each.kind, each.message) for each in shown]


def test_every_segment_is_a_piece_and_sound_ones_have_no_problems(disk: LogDisk) -> None:
    found = list(pieces(LogSegments(lambda: disk)))
    assert len(found) == len(disk.files)
    assert sum(records for records, _ in found) == sum(each.record is not None for each in walk(disk))
    assert problems(disk) == []


def test_a_large_segment_is_read_in_pieces_between_which_others_take_turns() -> None:
    disk = LogDisk()
    log_files = LogFiles.open(disk)
    for each in ([hard_state()], *([entry(index, 100_000)] for index in range(1, 9))):
        log_files.append(each)
    assert len(disk.files) == 1
    steps = verify_segment(LogSegments(lambda: disk, log_files), b"", b"", Problems(lambda: NO_NAMES))
    pauses, found = 0, None
    while found is None:
        found = go_on(steps)
        pauses += found is None
    assert (found.records, found.size_bytes) == (9, log_files.durable_end[1])
    assert pauses >= found.size_bytes // (256 << 10)


def test_every_bit_that_flips_in_a_segment_is_told_with_its_segment_and_a_byte_before_it(disk: LogDisk) -> None:
    name = segment_name(2)
    whole = bytes(disk.files[name])
    for place in range(0, len(whole), 37):
        disk.files[name][:] = flipped(whole, place)
        for each in (disk, LogSegments(lambda: disk, LogFiles.open(many(map(entry, range(1, 11)))))):
            assert {(segment, kind) for segment, kind, _ in problems(each)} == {(2, CHECKSUM)}, place
        segments = LogSegments(lambda: disk)
        [shown] = [each for _, found in pieces(segments) for each in found.shown]
        assert (decode_key(shown.key.key).offset or 0) <= place


def test_segments_that_are_missing_are_told(disk: LogDisk) -> None:
    del disk.files[segment_name(2)]
    assert {(segment, kind) for segment, kind, _ in problems(disk)} >= {(2, SEQUENCE)}
    assert "it is missing" in problems(disk)[0][2]
    assert problems(LogDisk())[0][2].startswith("damaged data: the log files (there are none")


def test_a_lost_end_or_beginning_of_a_stopped_log_is_told(disk: LogDisk) -> None:
    for lost in (min(disk.files), max(disk.files)):
        rest = LogDisk({name: bytearray(file) for name, file in disk.files.items() if name != lost})
        [(segment, kind, message)] = problems(rest)
        assert (segment, kind) == (int(max(rest.files)), SEQUENCE)
        assert f"the log file {lost} (it is missing" in message


@pytest.mark.parametrize(
    ("record", "kind", "message"),
    [
        (dataclasses.replace(entry(3), payload=flipped(entry(3).payload, 9)), CHECKSUM, "entry 3 of group 1"),
        (dataclasses.replace(entry(3), term=2), CHECKSUM, "it is of term 1, and its record says 2"),
        (dataclasses.replace(hard_state(), payload=b"\0" * 9), CHECKSUM, "the hard state of group 1"),
        (dataclasses.replace(hard_state(), index=2), CHECKSUM, "its base is 0 of term 0, and its record says 2"),
        (entry(3, term=0), SEQUENCE, "entry 3 of group 1 is of term 0, and follows one of term 1"),
    ],
    ids=["entry", "term", "hard state", "base", "falling term"],
)
def test_a_record_that_was_wrong_before_it_was_stored_is_told(record: LogRecord, kind: str, message: str) -> None:
    """The frame's checksums hold."""
    found = problems(log_disk([hard_state()], [entry(1, 5), entry(2, 5)], [record]))
    assert [each[:2] for each in found] == [(1, kind)]
    assert message in found[0][2]


def test_a_piece_begins_where_the_last_one_says_and_ends_where_it_is_told_to(disk: LogDisk) -> None:
    segments, found = LogSegments(lambda: disk), Problems(lambda: NO_NAMES)
    first = verified(segments, b"", log_file_key(3, 0), found)
    assert first.resume == log_file_key(2, 0)
    assert verified(segments, first.resume, log_file_key(3, 0), found).resume == b""
    with pytest.raises(InvalidArgument, match="start: must be empty or the resume of another reply"):
        verified(segments, b"\0\0\0\1h", b"", found)


# --- beside a node that writes -------------------------------------------------------------------------------------


def test_a_frame_that_is_being_written_is_no_damage() -> None:
    disk = LogDisk()
    log_files = LogFiles.open(disk)
    log_files.append([hard_state()])
    beside = LogSegments(lambda: disk, log_files)
    seen = list[list[tuple[int, str, str]]]()

    def strike(_number: int, step: str, _disk: LogDisk) -> None:
        if step.startswith("sync"):
            # The next frame is there in part: its middle sector is not.
            whole = bytes(disk.files[segment_name(1)])
            start = (log_files.durable_end[1] // 512 + 1) * 512
            disk.files[segment_name(1)][start : start + 512] = b"x" * 512
            seen.append(problems(beside))
            disk.files[segment_name(1)][:] = whole

    disk.strike = strike
    log_files.append([entry(1, 3_000)])
    disk.strike = None
    assert seen == [[]]
    assert problems(beside) == []
    damage_log(disk, 1, b"payload 001")
    assert [each[:2] for each in problems(beside)] == [(1, CHECKSUM)]


def test_what_was_durable_and_is_gone_is_told_also_where_it_looks_like_a_torn_frame() -> None:
    disk = LogDisk()
    log_files = LogFiles.open(disk)
    log_files.append([hard_state()])
    before = log_files.durable_end[1]
    log_files.append([entry(1, 3_000)])
    beside = LogSegments(lambda: disk, log_files)
    file = disk.files[segment_name(1)]
    file[before : log_files.durable_end[1]] = bytes(log_files.durable_end[1] - before)
    [(_, kind, message)] = problems(beside)
    assert (kind, message) == (CHECKSUM, f"it ends there, and was durable up to byte {log_files.durable_end[1]}")


def test_a_segment_that_is_dropped_meanwhile_is_passed_over() -> None:
    disk = LogDisk()
    log_files = LogFiles.open(disk, segment_bytes_max=1)
    log_files.append([hard_state()])
    for index in range(1, 11):
        log_files.append([entry(index)])
    beside, found = LogSegments(lambda: disk, log_files), Problems(lambda: NO_NAMES)
    first = verified(beside, b"", b"", found)
    log_files.append([hard_state(10)])
    rest = verified(beside, first.resume, b"", found)
    assert (found.is_empty, rest.resume) == (True, b"")
    assert rest.records > 0, "of the current one"


def test_a_segment_whose_file_is_gone_and_that_is_still_counted_is_passed_over() -> None:
    class Dropping(LogDisk):
        def remove(self, name: str) -> None:
            super().remove(name)
            seen.extend(problems(beside))
            removed.append(name)

    disk = Dropping()
    seen, removed = list[tuple[int, str, str]](), list[str]()
    log_files = LogFiles.open(disk, segment_bytes_max=1)
    beside = LogSegments(lambda: disk, log_files)
    log_files.append([hard_state()])
    for index in range(1, 11):
        log_files.append([entry(index)])
    log_files.append([hard_state(10)])
    assert len(removed) > 2
    assert seen == []


def test_no_moment_of_an_append_looks_like_damage_from_another_thread() -> None:
    """Segments are begun, sealed and dropped while one piece follows another."""
    disk = LogDisk()
    log_files = LogFiles.open(disk, segment_bytes_max=1)
    log_files.append([hard_state()])
    beside, stop = LogSegments(lambda: disk, log_files), threading.Event()
    seen = list[tuple[int, str, str]]()

    def verify() -> None:
        while not stop.is_set() and not seen:
            seen.extend(problems(beside))

    def strike(_number: int, _step: str, _disk: LogDisk) -> None:
        seen.extend(problems(beside))

    thread = threading.Thread(target=verify)
    thread.start()
    disk.strike = strike
    for index in range(1, 60):
        log_files.append([entry(index), *([hard_state(index)] if index % 7 == 0 else [])])
    stop.set()
    thread.join()
    assert seen == []
