"""A crash at every step of a history: acknowledged records are there; the append under way, whole or not at all."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest

from cortado.errors import ResourceExhausted
from cortado.store.engine.failures import StorageFailed
from cortado.store.log_files.log_files import LogFiles
from support.log_disk import Crashed, LogDisk, crash_at, fail_at, full_from
from support.log_histories import SCRIPT, SMALL, Append, Twin, drawn_history, entry, hard_state, opened, states_of

MORE = b"after the crash"


def run(disk: LogDisk, history: Sequence[Append]) -> int:
    """Append until something ends it; how many were acknowledged."""
    acknowledged = 0
    try:
        log_files = LogFiles.open(disk, segment_bytes_max=SMALL)
        for records in history:
            log_files.append(records)
            acknowledged += 1
    except (Crashed, StorageFailed):
        pass
    return acknowledged


def steps_of(history: Sequence[Append]) -> list[str]:
    disk = LogDisk()
    assert run(disk, history) == len(history)
    return disk.steps


def with_half_created(disk: LogDisk, next_step: str) -> Iterator[LogDisk]:
    """Yield ``disk``, and the remains of a crash within the next creation."""
    kind, name = next_step.split()
    for size in (0, 512, SMALL) if kind == "create" else ():
        half = disk.killed()
        half.files[name], half.durable[name] = bytearray(size), bytearray(size)
        yield half
    yield disk


def check(image: LogDisk, history: Sequence[Append], acknowledged: int) -> None:
    """Check that the readable records are right, stay, and can be added to."""
    states = states_of(history)
    log_files, found = opened(image)
    assert found in states[acknowledged : acknowledged + 2]
    # Unneeded files are gone, in whatever state the crash left them.
    assert len(image.files) == log_files.use().segments
    # Records that were read are durable now, though the process that wrote them was killed before it synced.
    assert opened(image.after_power_loss())[1] == found
    count = states.index(found, acknowledged)
    twin = Twin()
    for records in history[:count]:
        twin.append(records)
    if twin.hard:
        group_id = min(twin.hard)
        more = [entry(group_id, twin.last(group_id) + 1, MORE * 50)]
        twin.append(more)
        log_files.append(more)
        assert opened(image.after_power_loss())[1] == twin.state()


def crash_everywhere(history: Sequence[Append]) -> int:
    """Returns how many images were looked at."""
    steps, looked_at = steps_of(history), 0
    for number in range(len(steps) + 1):
        disk = LogDisk(strike=crash_at(number))
        acknowledged = run(disk, history)
        for image in disk.images():
            for each in with_half_created(image, [*steps, "none 0"][number]):
                check(each, history, acknowledged)
                looked_at += 1
    return looked_at


def test_what_is_acknowledged_outlives_a_crash_at_every_step() -> None:
    steps = steps_of(SCRIPT)
    assert {step.split()[0] for step in steps} == {"create", "write", "sync", "remove"}
    assert crash_everywhere(SCRIPT) > 300


@pytest.mark.parametrize("seed", range(6))
def test_what_is_acknowledged_outlives_a_crash_at_every_step_of_drawn_histories(seed: int) -> None:
    crash_everywhere(drawn_history(seed, 12))


def test_a_crash_at_every_step_of_a_recovery_loses_nothing() -> None:
    steps = steps_of(SCRIPT)
    looked_at = 0
    for number in range(len(steps)):
        disk = LogDisk(strike=crash_at(number))
        acknowledged = run(disk, SCRIPT)
        states = states_of(SCRIPT)[acknowledged : acknowledged + 2]
        for image in disk.images(all_of=8):
            counting = image.killed()
            opened(counting)
            for recovery_step in range(len(counting.steps)):
                again = image.killed()
                again.strike = crash_at(recovery_step)
                with pytest.raises(Crashed):
                    opened(again)
                for last in again.images(all_of=8):
                    assert opened(last)[1] in states
                    looked_at += 1
    assert looked_at > 1_000


def test_a_failure_at_every_step_is_final_and_loses_nothing() -> None:
    for number, step in enumerate(steps_of(SCRIPT)):
        disk = LogDisk(strike=fail_at(number))
        log_files = None
        acknowledged = 0
        try:
            log_files = LogFiles.open(disk, segment_bytes_max=SMALL)
            for records in SCRIPT:
                log_files.append(records)
                acknowledged += 1
        except StorageFailed as failure:
            assert step in str(failure)
        if log_files is not None:
            assert acknowledged < len(SCRIPT)
            count = len(disk.steps)
            for _ in range(2):
                with pytest.raises(StorageFailed, match="Input/output error"):
                    log_files.append(SCRIPT[acknowledged])
            # Never synced again, nor anything else.
            assert len(disk.steps) == count
        for image in disk.images():
            check(image, SCRIPT, acknowledged)


def crashing_when_full(number: int, count: int, written: int) -> None:
    """Fill the disk for ``count`` steps from ``number`` on; refused writes are done in part. Then crash, or make room
    again."""
    disk, refused, states = LogDisk(), 0, states_of(SCRIPT)
    disk.part_bytes = written
    disk.strike = full_from(number, count)
    try:
        log_files = LogFiles.open(disk, segment_bytes_max=SMALL)
    except ResourceExhausted:
        for image in disk.images():
            assert opened(image)[1] == {}
        return
    for place, records in enumerate(SCRIPT):
        for _ in range(count + 1):
            try:
                log_files.append(records)
                break
            except ResourceExhausted:
                refused += 1
                for image in disk.images(all_of=8):
                    assert opened(image)[1] == states[place]
        else:
            raise AssertionError("it never took the append")
    assert opened(disk.after_power_loss())[1] == states[-1]


@pytest.mark.parametrize("count", [1, 2, 3, 5])
@pytest.mark.parametrize("written", [0, 512, 1_024])
def test_a_full_disk_at_every_step_refuses_and_goes_on(count: int, written: int) -> None:
    for number in range(len(steps_of(SCRIPT))):
        crashing_when_full(number, count, written)


def test_a_crash_in_an_append_after_a_refused_one_finds_no_remains_of_that() -> None:
    """The remains of the refused write may reach the disk, in any sector, until zeros in their place are synced."""
    first, refused, retried = [hard_state(1, 0)], [entry(1, 1, b"r" * 2_000)], [entry(1, 1, b"s" * 1_400)]
    for part_bytes in (512, 1_024, 2_048):
        for number in range(3, 9):
            disk = LogDisk(part_bytes=part_bytes)
            log_files, _ = opened(disk)
            log_files.append(first)
            disk.strike = full_from(len(disk.steps), 1)
            with pytest.raises(ResourceExhausted):
                log_files.append(refused)
            disk.strike = crash_at(len(disk.steps) + number - 3)
            acknowledged = 1
            try:
                log_files.append(retried)
                acknowledged = 2
            except Crashed:
                pass
            for image in disk.images(all_of=1_024):
                check(image, [first, retried], acknowledged)


def test_nothing_is_appended_to_a_segment_whose_successor_has_taken_its_state() -> None:
    disk = LogDisk()
    log_files, _ = opened(disk)
    history: list[Append] = [[hard_state(1, 0)], [entry(1, 1, bytes(2_500))]]
    for records in history:
        log_files.append(records)
    # Creating the next one takes a creation, a write and a sync; then the end is written behind the current one.
    disk.strike = full_from(len(disk.steps) + 3, 1)
    with pytest.raises(ResourceExhausted):
        log_files.append([entry(1, 2, bytes(2_000))])
    assert [step.split()[0] for step in disk.steps[-4:]] == ["create", "write", "sync", "write"]
    for image in disk.images():
        check(image, history, 2)
    history.append([entry(1, 2, b"small"), hard_state(1, 0, b"newer")])
    log_files.append(history[-1])
    for image in disk.images():
        check(image, history, 3)


def test_a_creation_that_was_refused_and_not_taken_back_is_taken_back_before_anything_else() -> None:
    disk = LogDisk(part_bytes=4_096)
    log_files, _ = opened(disk)
    history: list[Append] = [[hard_state(1, 0, bytes(1_200))], [entry(1, 1, bytes(1_500))]]
    for records in history:
        log_files.append(records)
    # The first write into the new segment, and its removal.
    disk.strike = full_from(len(disk.steps) + 1, 2)
    with pytest.raises(ResourceExhausted):
        log_files.append([entry(1, 2, bytes(2_000))])
    assert len(disk.files) == 2
    disk.strike = full_from(len(disk.steps), 1)
    history.append([hard_state(1, 0, b"newer")])
    with pytest.raises(ResourceExhausted):
        log_files.append(history[-1])
    disk.strike = None
    log_files.append(history[-1])
    assert len(disk.files) == 1
    for image in disk.images():
        check(image, history, 3)
