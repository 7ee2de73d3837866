"""Log files are read again in pieces beside the thread that appends: all that a start would read, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from cortado.errors import DataLoss, ResourceExhausted
from cortado.raft.log import LogRecord
from cortado.store.log_files.log_files import LogFiles
from cortado.store.log_files.segments import segment_name, segment_numbers
from cortado.store.log_files.verifying import LogPass, LogPiece, SegmentDamage
from support.log_disk import LogDisk, full_from
from support.log_histories import entry, hard_state, opened, read_back

PIECE_BYTES = 700


def two_groups(count: int = 12) -> tuple[LogDisk, LogFiles, list[LogRecord]]:
    """Return entries of two groups, one after the other; a third one was heard of once, and is idle."""
    disk = LogDisk()
    log_files, _ = opened(disk)
    appends = [[hard_state(1, 0), hard_state(2, 7), hard_state(9, 30, b"idle")]]
    appends += [[entry(1, index, b"a" * 700), entry(2, 7 + index, b"b" * 300)] for index in range(1, count)]
    for each in appends:
        log_files.append(each)
    return disk, log_files, [record for each in appends for record in each]


def pieces(log_files: LogFiles, size_bytes: int = PIECE_BYTES) -> Iterator[LogPiece]:
    reading = LogPass(log_files)
    while True:
        piece = reading.step(size_bytes)
        yield piece
        if piece.is_last:
            return


def damage(log_files: LogFiles) -> list[SegmentDamage]:
    return [each.damage for each in pieces(log_files) if each.damage is not None]


@pytest.mark.parametrize("size_bytes", [1, PIECE_BYTES, 5_000, 1 << 20])
def test_pieces_of_any_size_hold_every_record_of_every_group_once_and_in_order(size_bytes: int) -> None:
    disk, log_files, records = two_groups()
    found = list(pieces(log_files, size_bytes))
    appended = [record for piece in found for frame in piece.frames if frame.purpose == 2 for record in frame.records]
    assert appended == records
    assert sum(piece.bytes for piece in found) == sum(
        disk.size(segment_name(number)) if number < log_files.use().newest_segment else log_files.durable_end[1]
        for number in segment_numbers(disk)
    ) - sum(disk.size(segment_name(number)) - end for number, end in sealed_ends(disk, log_files))
    # A frame of some 1,100 bytes is read whole, for any size that is asked for.
    assert max(piece.bytes for piece in found) <= max(size_bytes, 1_300)


def sealed_ends(disk: LogDisk, log_files: LogFiles) -> list[tuple[int, int]]:
    """Return the end of the written part of each older segment, in frames of 32 bytes."""
    numbers = segment_numbers(disk)[:-1]
    contents = [bytes(disk.files[segment_name(number)]).rstrip(b"\0") for number in numbers]
    return [(number, -(-len(content) // 32) * 32) for number, content in zip(numbers, contents, strict=True)]


def test_every_bit_that_turns_is_found_with_its_segment_and_the_others_are_read_on() -> None:
    disk, log_files, _ = two_groups()
    assert damage(log_files) == []
    newest, durable_end = log_files.durable_end
    for number in segment_numbers(disk):
        file = disk.files[segment_name(number)]
        end = durable_end if number == newest else len(file)
        for place in range(0, end, 61):
            file[place] ^= 4
            [found] = damage(log_files)
            assert found.segment == number
            with pytest.raises(DataLoss):
                read_back(disk.killed())
            file[place] ^= 4


def test_what_is_being_written_is_no_damage() -> None:
    disk, log_files, _ = two_groups()
    newest, durable_end = log_files.durable_end
    disk.files[segment_name(newest)][durable_end : durable_end + 40] = b"half a frame" * 3 + b"1234"
    assert damage(log_files) == []


def test_a_missing_and_a_shortened_segment_are_damage() -> None:
    disk, log_files, _ = two_groups()
    whole = disk.files.pop(segment_name(2))
    assert [each.segment for each in damage(log_files)] == [2]
    disk.files[segment_name(2)] = whole[:-1]
    assert [each.segment for each in damage(log_files)] == [2]


def test_a_segment_that_is_shortened_between_two_pieces_is_damage() -> None:
    disk, log_files, _ = two_groups()
    reading = LogPass(log_files)
    assert reading.step(PIECE_BYTES).damage is None
    del disk.files[segment_name(1)][1_400:]
    found = [each.damage.segment for each in (reading.step(PIECE_BYTES) for _ in range(3)) if each.damage is not None]
    assert found == [1]


def test_a_frame_that_is_lost_before_the_durable_end_is_damage() -> None:
    disk, log_files, _ = two_groups()
    end = log_files.durable_end
    log_files.append([entry(1, 12, b"lost")])
    newest, durable_end = log_files.durable_end
    assert newest == end[0]
    disk.files[segment_name(newest)][end[1] : durable_end] = bytes(durable_end - end[1])
    assert [each.what.partition(": ")[2] for each in damage(log_files)] == [
        f"byte {end[1]}: it ends there, and was durable up to byte {durable_end}"
    ]


@pytest.mark.parametrize("dropped_before", ["a piece", "its file is opened"])
def test_a_segment_that_is_dropped_meanwhile_is_passed_over(
    dropped_before: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk, log_files, _ = two_groups()
    to_come = [PIECE_BYTES] * 3

    def reader() -> LogDisk:
        if not to_come and log_files.oldest_needed == 1:
            log_files.append([hard_state(1, 10), hard_state(2, 17)])
        return disk

    if dropped_before == "its file is opened":
        monkeypatch.setattr(log_files, "reader", reader)
    reading = LogPass(log_files)
    while to_come:
        assert reading.step(to_come.pop()).damage is None
    if dropped_before == "a piece":
        reader()
    piece = reading.step(PIECE_BYTES)
    assert log_files.oldest_needed > 2
    while not piece.is_last:
        assert piece.damage is None
        piece = reading.step(PIECE_BYTES)
    assert piece.damage is None


def test_an_idle_group_holds_back_no_segment_where_two_others_take_turns() -> None:
    disk, log_files, _ = two_groups(20)
    log_files.append([hard_state(1, 19), hard_state(2, 26)])
    assert segment_numbers(disk) == [log_files.use().newest_segment]
    state = read_back(disk.killed())
    assert state[9] == (hard_state(9, 30, b"idle"), [])
    assert (state[1][1], state[2][1]) == ([], [])


def test_a_segment_that_is_left_takes_nothing_more_and_goes_when_nothing_needs_it() -> None:
    disk, log_files, _ = two_groups(2)
    assert segment_numbers(disk) == [1]
    log_files.leave(1)
    assert segment_numbers(disk) == [1, 2]
    log_files.leave(1)
    assert segment_numbers(disk) == [1, 2]
    log_files.append([hard_state(1, 1), hard_state(2, 8)])
    assert segment_numbers(disk) == [2]
    assert [each.index for each in read_back(disk.killed())[2][1]] == []


def test_where_there_is_no_room_for_another_segment_it_is_left_later() -> None:
    disk, log_files, _ = two_groups(2)
    disk.strike = full_from(len(disk.steps), 1)
    with pytest.raises(ResourceExhausted):
        log_files.leave(1)
    log_files.append([entry(1, 2)])
    log_files.leave(1)
    assert segment_numbers(disk) == [1, 2]
    assert [each.index for each in read_back(disk.killed())[1][1]] == [1, 2]
