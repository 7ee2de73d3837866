"""A disk's errors are told as DataLoss, with file and byte: never other data, and never less of it in silence."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import pytest

from cortado.errors import DataLoss
from cortado.store.log_files.frames import Purpose, Tail, encode_body, encode_frame, judge_tail
from cortado.store.log_files.log_files import LogFiles
from cortado.store.log_files.segments import encode_beginning, encode_header, segment_name, segment_numbers
from cortado.store.log_files.walk import walk
from support.log_disk import Crashed, LogDisk, crash_at
from support.log_histories import (
    SCRIPT,
    SMALL,
    Append,
    drawn_history,
    entry,
    hard_state,
    opened,
    read_back,
    states_of,
    truncate,
)

THREE_SEGMENTS = SCRIPT[:15]


def written(history: Sequence[Append] = THREE_SEGMENTS, disk: LogDisk | None = None) -> LogDisk:
    disk = LogDisk() if disk is None else disk
    log_files = LogFiles.open(disk, segment_bytes_max=SMALL)
    for records in history:
        log_files.append(records)
    return disk


def is_refused(disk: LogDisk) -> bool:
    """Return whether opening it raises DataLoss, naming a file and the remedy, and changes nothing."""
    before = disk.killed()
    try:
        opened(disk)
    except DataLoss as damage:
        assert "log file 00000000000000" in damage.what and "join again" in damage.detail
        assert disk.files == before.files and disk.steps == []
        return True
    return False


def found_by_walk(disk: LogDisk) -> bool:
    return any(found.is_damage for found in walk(disk))


SMALL_HISTORY = [
    [hard_state(1, 0)],
    [entry(1, 1, bytes(300))],
    [entry(1, 2, b"a" * 40), hard_state(1, 0, b"v")],
    [entry(1, 3, bytes(508))],
]


@pytest.mark.slow
def test_every_single_bit_that_flips_is_found() -> None:
    disk = written(SMALL_HISTORY)
    [name] = disk.files
    del disk.files[name][1_536:], disk.durable[name][1_536:]
    # Shortened, so that there are fewer bits; the header says so too.
    disk.put(name, 0, encode_header(1, 1_536))
    assert opened(disk.killed())[1] == states_of(SMALL_HISTORY)[-1]
    missed = []
    for place in range(1_536):
        for bit in range(8):
            image = disk.killed()
            image.files[name][place] ^= 1 << bit
            if not is_refused(image) or not found_by_walk(image):
                missed.append((place, bit))
    assert missed == []


def test_a_byte_that_changes_in_any_segment_is_found() -> None:
    disk = written()
    assert len(disk.files) >= 3
    for name, content in disk.files.items():
        for place in range(0, len(content), 7):
            image = disk.killed()
            image.files[name][place] ^= 0xA5
            assert is_refused(image), (name, place)


@pytest.mark.slow
def test_a_last_frame_that_was_written_whole_is_not_cut_however_it_rots() -> None:
    """Also one that is all zeros but for a bit, and one whose length says more than was written."""
    for payload in (b"", b"\0", bytes(200), bytes(507) + b"\1"):
        disk = written([[hard_state(1, 0)], [entry(1, 1, payload)]])
        [name] = disk.files
        written_end = len(disk.files[name].rstrip(b"\0"))
        for place, bit in itertools.product(range(64, written_end), range(8)):
            image = disk.killed()
            image.files[name][place] ^= 1 << bit
            assert is_refused(image), (payload, place, bit)


def writes_of(history: Sequence[Append]) -> list[int]:
    disk = written(history)
    return [number for number, step in enumerate(disk.steps) if step.startswith("write")]


def test_a_write_that_the_disk_dropped_is_found_unless_it_was_the_last() -> None:
    writes, states = writes_of(THREE_SEGMENTS), states_of(THREE_SEGMENTS)
    found = 0
    for number in writes:
        disk = written(disk=LogDisk(drop=lambda write, number=number: write == number))
        image = disk.killed()
        if is_refused(image):
            found += 1
            continue
        # The damage is in a segment that is gone by now; or in the last frame, which only the layer above can miss.
        assert opened(image)[1] == states[-1 if number != writes[-1] else -2], disk.steps[number]
    assert found > 5


@pytest.mark.parametrize(
    "history",
    [
        THREE_SEGMENTS,
        SCRIPT[:7],
        [[hard_state(1, 0)], [entry(1, 1, b"i" * 1_400)], [entry(1, 2)]],
        [[hard_state(1, 0)], [entry(1, 1, b"i" * 1_400)], [entry(1, 2, b"j" * 1_400)]],
    ],
)
def test_a_sector_that_reads_as_zeros_is_found_unless_nothing_stands_behind_it(history: Sequence[Append]) -> None:
    """In the last frame it can't be found: a crash leaves the same."""
    disk = written(history)
    newest = max(disk.files)
    last_offset = max(found.offset for found in walk(disk) if found.segment == int(newest))
    looked_at = 0
    for name, content in disk.files.items():
        written_end = len(content.rstrip(b"\0"))
        for start in range(0, written_end, 512):
            if name == newest and (start >= last_offset or start + 512 >= written_end):
                continue
            image = disk.killed()
            image.put(name, start, bytes(512))
            assert is_refused(image), (name, start)
            looked_at += 1
    assert looked_at > 2


@pytest.mark.parametrize("payload_bytes", range(267, 299, 3))
def test_a_length_that_changed_in_a_frame_up_to_a_sectors_end_does_not_claim_the_zeros_behind_it(
    payload_bytes: int,
) -> None:
    disk = written([[hard_state(1, 0)], [entry(1, 1, bytes(payload_bytes))]])
    [name] = disk.files
    assert len(disk.files[name].rstrip(b"\0")) == 512
    [*_, last] = walk(disk)
    for bit in range(32):
        image = disk.killed()
        image.files[name][last.offset + 4 + bit // 8] ^= 1 << bit % 8
        assert is_refused(image), bit


def test_a_head_that_changed_is_damage_also_where_other_sectors_are_missing() -> None:
    content = bytearray(encode_frame(1, 0, bytes(1_500)) + bytes(512))
    content[512:1_024] = bytes(512)
    assert judge_tail(bytes(content), 1, 0)[0] is Tail.TORN
    for place in range(16):
        changed = bytearray(content)
        changed[place] ^= 1
        assert judge_tail(bytes(changed), 1, 0)[0] is Tail.DAMAGED


@pytest.mark.parametrize("size", [400, 600, 1_000, 1_500])
@pytest.mark.parametrize("following", [10, 500, 1_000])
def test_a_dropped_write_of_whole_sectors_is_found_by_what_follows_it(size: int, following: int) -> None:
    """Zeros stand in its place, as of a frame whose beginning a crash left out. But the next one is there."""
    for before in range(0, 480, 32):
        history = [[hard_state(1, 0, bytes(before))], [entry(1, 1, b"d" * size)], [entry(1, 2, b"f" * following)]]
        disk = written(history, LogDisk(drop=lambda number: number == 5))
        assert disk.steps[5:9] == [f"{step} {segment_name(1)}" for step in ("write", "sync")] * 2
        assert is_refused(disk.killed()), before


def test_a_write_that_strays_is_found_wherever_it_goes() -> None:
    writes = writes_of(THREE_SEGMENTS)
    for number in writes:
        reference = written()
        targets = [
            (name, offset)
            for name, content in reference.files.items()
            for offset in (0, 32, 64, 512, 1_024, 2_048, len(content) - 1_536)
        ]
        for target in targets:
            disk = LogDisk(stray=lambda write, number=number, target=target: target if write == number else None)
            try:
                written(disk=disk)
            except (KeyError, AssertionError):
                # That file is not there yet, or ends before.
                continue
            except DataLoss as taken:
                assert "another process has written" in taken.detail
                continue
            image = disk.killed()
            if not is_refused(image):
                # The write went to its own place, or was all written over later, or is in a segment that is gone.
                assert opened(image)[1] == states_of(THREE_SEGMENTS)[-1], (number, disk.steps[number], target)


def test_the_last_frame_that_strays_behind_the_end_is_not_taken_for_a_torn_one() -> None:
    for history in (SMALL_HISTORY, [*SMALL_HISTORY, [entry(1, 4, b"q" * 1_000)]]):
        last = writes_of(history)[-1]
        for offset in range(1_536, SMALL - 1_536, 32):
            name = segment_name(1)
            disk = written(history, LogDisk(stray=lambda write, offset=offset, name=name, last=last: (
                (name, offset) if write == last else None)))  # fmt: skip
            assert is_refused(disk.killed()), offset


def test_a_segment_that_is_missing_is_found() -> None:
    disk = written()
    numbers = segment_numbers(disk)
    assert len(numbers) >= 3
    for number in numbers:
        image = disk.killed()
        del image.files[segment_name(number)]
        with pytest.raises(DataLoss, match=f"{number:016d}.*missing"):
            opened(image)
        assert is_refused(image)


def test_a_segment_that_lost_all_it_held_is_not_taken_for_one_that_was_never_finished() -> None:
    disk = written()
    newest = max(disk.files)
    disk.files[newest][:] = bytes(len(disk.files[newest]))
    with pytest.raises(DataLoss, match="its beginning is gone, but the segment before it was sealed"):
        opened(disk.killed())
    assert is_refused(disk.killed()) and found_by_walk(disk)


def test_entries_that_no_segment_holds_are_missed() -> None:
    """The rest fits together, though: the first frame says that there were more."""
    state = [hard_state(1, 3), truncate(1, 9)]
    for further, problem in (([], "entries 4 to 8 of group 1"), ([truncate(1, 7)], "entries 4 to 6 of group 1")):
        disk = LogDisk()
        disk.create(segment_name(5), SMALL)
        beginning = encode_beginning(5, SMALL, encode_body(Purpose.STATE, 5, state))
        disk.put(segment_name(5), 0, beginning)
        body = encode_body(Purpose.APPEND, 5, further)
        disk.put(segment_name(5), len(beginning), encode_frame(5, len(beginning), body))
        disk.steps.clear()
        with pytest.raises(DataLoss, match=f"log file {4:016d}.*missing, with the {problem}"):
            opened(disk.killed())
        assert is_refused(disk)


def at_the_first_append_to_a_new_segment() -> LogDisk:
    """Return the disk after a crash there: the segment before is sealed, and the new one has its first frame alone."""
    steps = written().steps
    number = steps.index(f"write {segment_name(2)}", steps.index(f"write {segment_name(2)}") + 1)
    disk = LogDisk(strike=crash_at(number))
    with pytest.raises(Crashed):
        written(disk=disk)
    return disk.killed()


def test_a_segments_last_frames_are_missed_by_the_one_behind_it() -> None:
    disk = at_the_first_append_to_a_new_segment()
    assert not is_refused(disk.killed())
    name = segment_name(1)
    written_end = len(disk.files[name].rstrip(b"\0"))
    [*_, last] = [found for found in walk(disk) if found.segment == 1]
    for start in range(last.offset, written_end, 32):
        image = disk.killed()
        image.put(name, start, bytes(written_end - start))
        # END alone: as if the crash had come before it was written.
        assert is_refused(image) == (start < written_end - 32), start


def test_a_segment_that_was_not_sealed_before_the_next_one_was_used_is_damage() -> None:
    disk = written()
    [*_, name, _] = sorted(disk.files)
    written_end = len(disk.files[name].rstrip(b"\0"))
    disk.put(name, written_end - 32, bytes(32))
    with pytest.raises(DataLoss, match=f"{name}.*it ends there, but other segments follow it"):
        opened(disk.killed())
    assert found_by_walk(disk)


def test_damage_in_an_old_segment_is_told_as_what_it_is() -> None:
    disk = written()
    disk.files[min(disk.files)][100] ^= 1
    with pytest.raises(DataLoss, match=f"{min(disk.files)}.*byte 64: no frame begins there|does not check"):
        opened(disk.killed())


def test_a_file_that_lost_its_end_is_found() -> None:
    disk = written()
    for name, content in disk.files.items():
        for size in {0, 1, 64, 100, 512, len(content) // 2, len(content) - 1}:
            image = disk.killed()
            del image.files[name][size:]
            assert is_refused(image) and found_by_walk(image), (name, size)


def test_a_segment_under_anothers_name_is_found() -> None:
    disk = written()
    for one, other in itertools.permutations(disk.files, 2):
        image = disk.killed()
        if len(image.files[one]) == len(image.files[other]):
            image.files[one] = bytearray(image.files[other])
            with pytest.raises(DataLoss, match=f"it is segment {int(other)} under another's name"):
                opened(image)


def test_another_version_is_refused_by_name() -> None:
    disk = written()
    name = max(disk.files)
    disk.files[name][17] = 2
    with pytest.raises(DataLoss, match="format 2 is unknown, this version reads 1"):
        opened(disk.killed())


def test_a_frame_that_is_whole_and_says_what_no_version_says_is_refused() -> None:
    disk = written(SMALL_HISTORY)
    [name] = disk.files
    end = -(-len(disk.files[name].rstrip(b"\0")) // 32) * 32
    for body in (b"", b"\1" + bytes(8), b"\7" + bytes(7) + b"\1", b"\2" + bytes(7) + b"\1" + b"\x09" + bytes(24)):
        image = disk.killed()
        frame = encode_frame(1, end, body)
        image.put(name, end, frame)
        assert is_refused(image), body


def test_entries_with_a_gap_between_them_are_refused() -> None:
    disk = written(SMALL_HISTORY)
    [name] = disk.files
    end = -(-len(disk.files[name].rstrip(b"\0")) // 32) * 32
    for records, problem in (
        ([entry(1, 5)], "ENTRY 5 of group 1 follows 3: entries between are missing"),
        ([entry(2, 1)], "ENTRY 1 of group 2 comes before any hard state"),
        ([hard_state(1, 9), entry(1, 11)], "ENTRY 11 of group 1 follows 9"),
        ([hard_state(1, 2), hard_state(1, 1)], "HARD_STATE 1 of group 1 goes back behind 2"),
    ):
        image = disk.killed()
        image.put(name, end, encode_frame(1, end, encode_body(Purpose.APPEND, 1, records)))
        with pytest.raises(DataLoss, match=f"byte {end}: {problem}"):
            opened(image)
    image = disk.killed()
    image.put(
        name,
        end,
        encode_frame(1, end, encode_body(Purpose.APPEND, 1, [hard_state(1, 9), entry(1, 10)])),
    )
    assert read_back(image)[1] == (hard_state(1, 9), [entry(1, 10)])


@pytest.mark.parametrize("seed", range(4))
def test_the_walk_finds_no_damage_where_there_is_none_and_all_records(seed: int) -> None:
    history = drawn_history(seed, 15)
    disk = written(history)
    found = list(walk(disk))
    assert not any(each.is_damage for each in found)
    records = [each.record for each in found if each.record is not None and not each.is_state]
    everything = [record for records in history for record in records]
    assert records == everything[len(everything) - len(records) :]
