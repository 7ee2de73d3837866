"""The files as one process sees them: groups come back, segments come and go, refusals leave no trace, failures are
final."""

from __future__ import annotations

import pytest

from cortado.errors import Internal, ResourceExhausted, Unavailable
from cortado.store.engine.failures import StorageFailed
from cortado.store.log_files.log_files import FIRST_SEGMENT_BYTES, SCARCE_SEGMENT_BYTES, LogFiles
from cortado.store.log_files.segments import segment_name, segment_numbers
from cortado.store.log_files.walk import walk
from support.log_disk import LogDisk, fail_at, full_from
from support.log_histories import SCRIPT, SMALL, entry, hard_state, opened, read_back, states_of, truncate


def test_each_append_is_one_write_and_one_sync() -> None:
    disk = LogDisk()
    log_files, _ = opened(disk)
    disk.steps.clear()
    for records in SCRIPT[:3]:
        log_files.append(records)
    name = segment_name(1)
    assert disk.steps == [f"write {name}", f"sync {name}"] * 3


def test_groups_come_back_and_are_given_once() -> None:
    disk = LogDisk()
    log_files, found = opened(disk)
    assert found == {}
    for records, state in zip(SCRIPT, states_of(SCRIPT)[1:], strict=True):
        log_files.append(records)
        assert read_back(disk.killed()) == state
    log_files, found = opened(disk)
    assert found == states_of(SCRIPT)[-1] and log_files.take_groups() == {}


def test_nothing_to_append_writes_nothing() -> None:
    disk = LogDisk()
    log_files, _ = opened(disk)
    count = len(disk.steps)
    log_files.append([])
    assert len(disk.steps) == count


def test_an_append_writes_alone_unless_it_begins_a_segment() -> None:
    disk = LogDisk()
    log_files, _ = opened(disk)
    log_files.append([hard_state(1, 0)])
    index = 0
    while log_files.writes_alone([record := entry(1, index + 1, bytes(900))]):
        index += 1
        steps = len(disk.steps)
        log_files.append([record])
        assert len(disk.steps) == steps + 2
    assert index > 2 and segment_numbers(disk) == [1]
    log_files.append([record])
    assert segment_numbers(disk) == [1, 2]
    assert log_files.writes_alone([entry(1, index + 2, bytes(900))])


@pytest.mark.parametrize("kind", ["create", "write"])
def test_an_append_does_not_write_alone_while_a_refused_one_is_to_be_mended(kind: str) -> None:
    disk = LogDisk()
    log_files, _ = opened(disk)
    log_files.append([hard_state(1, 0)])
    index = 1
    while kind == "create" and log_files.writes_alone([entry(1, index, bytes(900))]):
        log_files.append([entry(1, index, bytes(900))])
        index += 1
    small = [entry(1, index, b"small")]
    if kind == "create":
        # The segment is made, and its beginning is refused; then it can't be removed.
        disk.strike = full_from(len(disk.steps), 3, ("write", "remove"))
    else:
        disk.strike = full_from(len(disk.steps), 1)
    with pytest.raises(ResourceExhausted):
        log_files.append([entry(1, index, bytes(900))])
    assert not log_files.writes_alone(small)
    disk.strike = lambda *_: None
    log_files.append(small)
    assert log_files.writes_alone([entry(1, index + 1, b"small")])


def test_an_append_does_not_write_alone_while_a_segment_is_to_be_removed() -> None:
    disk = LogDisk()
    log_files, _ = opened(disk)
    log_files.append([hard_state(1, 0)])
    for index in range(1, 11):
        log_files.append([entry(1, index, bytes(900))])
    disk.strike = full_from(0, 1_000_000, ("remove",))
    log_files.append([hard_state(1, 10)])
    assert segment_numbers(disk)[0] < log_files.oldest_needed
    assert not log_files.writes_alone([entry(1, 11)])
    disk.strike = lambda *_: None
    log_files.append([entry(1, 11)])
    assert log_files.writes_alone([entry(1, 12)])


def test_segments_begin_small_and_double_up_to_the_largest() -> None:
    disk = LogDisk()
    log_files = LogFiles.open(disk, segment_bytes_max=4 << 20)
    log_files.append([hard_state(1, 0)])
    for index in range(1, 60):
        log_files.append([entry(1, index, bytes(200_000))])
    sizes = [disk.size(segment_name(number)) for number in segment_numbers(disk)]
    assert sizes[0] == FIRST_SEGMENT_BYTES == 1 << 20
    assert sizes[:4] == [1 << 20, 2 << 20, 4 << 20, 4 << 20]
    log_files.append([entry(1, 60, bytes(9 << 20))])
    assert (9 << 20) < disk.size(segment_name(segment_numbers(disk)[-1])) < (9 << 20) + (1 << 17)
    use = log_files.use()
    assert use.segments == len(disk.files) and use.size_bytes == sum(map(len, disk.files.values()))
    assert (use.oldest_segment, use.newest_segment) == (1, use.segments)
    assert 0 <= use.free_bytes < 8_192


def test_segments_are_small_while_room_is_scarce() -> None:
    disk = LogDisk()
    log_files = LogFiles.open(disk)
    log_files.append([hard_state(1, 0)])
    for index in range(1, 200):
        log_files.is_room_scarce = index > 100
        log_files.append([entry(1, index, bytes(200_000))])
    sizes = [disk.size(segment_name(number)) for number in segment_numbers(disk)]
    assert max(sizes) == 16 << 20 and sizes[-1] == SCARCE_SEGMENT_BYTES


def test_a_segment_goes_with_the_append_that_needs_nothing_of_it_any_more() -> None:
    disk = LogDisk()
    log_files, _ = opened(disk)
    log_files.append([hard_state(1, 0), hard_state(2, 0)])
    for index in range(1, 21):
        log_files.append([entry(1, index, bytes(900))])
    numbers = segment_numbers(disk)
    assert len(numbers) > 5
    log_files.append([hard_state(1, 19)])
    assert segment_numbers(disk) == [numbers[-1]]
    assert read_back(disk.killed())[1] == (hard_state(1, 19), [entry(1, 20, bytes(900))])


def test_an_idle_group_holds_back_no_old_segment() -> None:
    disk = LogDisk()
    log_files, _ = opened(disk)
    log_files.append([hard_state(1, 0), hard_state(7, 30, b"idle")])
    for index in range(1, 40):
        log_files.append([entry(1, index, bytes(900)), hard_state(1, index - 1)])
    assert segment_numbers(disk)[0] > 5 and len(disk.files) <= 2
    assert read_back(disk)[7] == (hard_state(7, 30, b"idle"), [])


def test_a_group_that_needs_an_entry_holds_back_its_segment_and_those_behind_it() -> None:
    disk = LogDisk()
    log_files, _ = opened(disk)
    log_files.append([hard_state(1, 0), hard_state(2, 0), entry(2, 1, b"needed")])
    for index in range(1, 21):
        log_files.append([entry(1, index, bytes(900)), hard_state(1, index)])
    assert segment_numbers(disk)[0] == 1
    log_files.append([truncate(2, 1)])
    assert len(segment_numbers(disk)) == 1
    assert read_back(disk)[2] == (hard_state(2, 0), [])


@pytest.mark.parametrize("is_reopened", [False, True])
def test_what_was_replaced_later_holds_back_no_segment(is_reopened: bool) -> None:
    disk = LogDisk()
    log_files, _ = opened(disk)
    log_files.append([hard_state(1, 0)])
    for index in range(1, 11):
        log_files.append([entry(1, index, bytes(900))])
    assert len(segment_numbers(disk)) > 2
    if is_reopened:
        log_files, _ = opened(disk)
    log_files.append([entry(1, 1, b"another", 2)])
    assert len(segment_numbers(disk)) == 1
    assert read_back(disk)[1] == (hard_state(1, 0), [entry(1, 1, b"another", 2)])


@pytest.mark.parametrize(
    ("records", "problem"),
    [
        ([entry(1, 5)], "ENTRY 5 of group 1 follows 3"),
        ([entry(1, 2)], "not behind 2"),
        ([truncate(1, 2)], "TRUNCATE 2 of group 1 is not behind 2"),
        ([hard_state(1, 1)], "goes back behind 2"),
        ([entry(4, 1)], "before any hard state"),
    ],
)
def test_records_that_do_not_follow_are_a_defect_and_are_not_written(records: list, problem: str) -> None:
    disk = LogDisk()
    log_files, _ = opened(disk)
    log_files.append([hard_state(1, 2), entry(1, 3)])
    count = len(disk.steps)
    with pytest.raises(Internal, match=problem):
        log_files.append(records)
    assert len(disk.steps) == count
    log_files.append([entry(1, 4)])
    assert read_back(disk)[1] == (hard_state(1, 2), [entry(1, 3), entry(1, 4)])


def test_where_there_is_no_room_for_a_usual_segment_a_small_one_is_made() -> None:
    disk = LogDisk()
    log_files = LogFiles.open(disk)
    log_files.append([hard_state(1, 0), entry(1, 1, bytes(900_000))])
    disk.strike = full_from(len(disk.steps), 1)
    log_files.append([entry(1, 2, bytes(200_000))])
    assert disk.size(segment_name(2)) < 220_000
    # Writes that free space find room too.
    disk.strike = full_from(len(disk.steps), 1)
    log_files.append([hard_state(1, 2, bytes(10_000))])
    assert len(disk.files) == 1
    assert read_back(disk)[1] == (hard_state(1, 2, bytes(10_000)), [])


def test_a_refused_append_can_be_tried_again_in_the_same_place() -> None:
    disk = LogDisk(part_bytes=1_024)
    log_files, _ = opened(disk)
    log_files.append([hard_state(1, 0)])
    disk.strike = full_from(len(disk.steps), 1)
    with pytest.raises(ResourceExhausted):
        log_files.append([entry(1, 1, b"r" * 2_000)])
    log_files.append([entry(1, 1, b"s")])
    assert segment_numbers(disk) == [1]
    assert read_back(disk)[1] == (hard_state(1, 0), [entry(1, 1, b"s")])


def test_after_a_failed_sync_nothing_is_ever_written_or_synced_again() -> None:
    disk = LogDisk()
    log_files, _ = opened(disk)
    disk.strike = fail_at(len(disk.steps) + 1)
    with pytest.raises(StorageFailed):
        log_files.append([hard_state(1, 0)])
    count = len(disk.steps)
    for _ in range(3):
        with pytest.raises(StorageFailed):
            log_files.append([hard_state(1, 0)])
    log_files.close()
    with pytest.raises(StorageFailed):
        log_files.append([hard_state(1, 0)])
    assert len(disk.steps) == count


def test_a_sync_that_finds_no_room_is_a_failure_too() -> None:
    disk = LogDisk()
    log_files, _ = opened(disk)
    disk.strike = full_from(len(disk.steps), 9, kinds=("sync",))
    with pytest.raises(StorageFailed, match="full"):
        log_files.append([hard_state(1, 0)])
    disk.strike = None
    with pytest.raises(StorageFailed, match="full"):
        log_files.append([hard_state(1, 0)])


def test_closed_log_files_say_so() -> None:
    log_files, _ = opened(LogDisk())
    log_files.close()
    with pytest.raises(Unavailable, match="closed"):
        log_files.append([hard_state(1, 0)])


def test_files_of_other_names_are_left_alone() -> None:
    disk = LogDisk()
    disk.create("lost+found", 10)
    log_files, _ = opened(disk)
    log_files.append(SCRIPT[0])
    assert read_back(disk) == states_of(SCRIPT)[1]
    assert "lost+found" in disk.files and not [found for found in walk(disk) if found.is_damage]


def test_the_walk_of_a_torn_end_tells_it_and_calls_it_no_damage() -> None:
    disk = LogDisk()
    log_files, _ = opened(disk)
    log_files.append([hard_state(1, 0)])
    log_files.append([entry(1, 1, bytes(2_000))])
    sectors = len(disk.files[segment_name(1)].rstrip(b"\0")) // 512
    disk.put(segment_name(1), sectors * 512 - 512, bytes(512))
    [*_, last] = walk(disk)
    assert "tore" in last.text and not last.is_damage and last.offset == 160
    assert read_back(disk)[1] == (hard_state(1, 0), [])


def test_small_segments_are_what_these_tests_use() -> None:
    disk = LogDisk()
    opened(disk)
    assert disk.size(segment_name(1)) == SMALL
