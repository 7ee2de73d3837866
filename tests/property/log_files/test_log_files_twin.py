"""Drawn histories against a twin that forgets nothing, with reopens, crashes and full disks between."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cortado.errors import ResourceExhausted
from cortado.store.log_files import frames
from cortado.store.log_files.frames import Tail, body_at, encode_frame, frame_end, judge_tail, stored_bytes
from support.examples import examples
from support.log_disk import LogDisk, full_from
from support.log_histories import drawn_history, opened, states_of

EVENTS = st.sampled_from(["go on", "go on", "go on", "reopen", "kill", "power loss", "full"])


@settings(max_examples=examples(150), deadline=None)
@given(st.integers(0, 1 << 32), st.lists(EVENTS, min_size=1, max_size=40), st.data())
def test_log_files_hold_what_the_twin_holds(seed: int, events: list[str], data: st.DataObject) -> None:
    history = drawn_history(seed, len(events))
    states, disk = states_of(history), LogDisk(part_bytes=data.draw(st.sampled_from([0, 512, 4_096])))
    log_files, _ = opened(disk)
    for place, (event, records) in enumerate(zip(events, history, strict=True)):
        if event in ("kill", "power loss", "reopen"):
            disk = disk.killed() if event != "power loss" else disk.after_power_loss()
            log_files, found = opened(disk)
            assert found == states[place]
        if event == "full":
            disk.strike = full_from(len(disk.steps) + data.draw(st.integers(0, 3)), data.draw(st.integers(1, 4)))
        for _ in range(6):
            try:
                log_files.append(records)
                break
            except ResourceExhausted:
                assert opened(disk.killed())[1] == states[place]
        disk.strike = None
    assert opened(disk)[1] == states[-1]
    assert len(disk.files) <= 2 + sum(len(entries) for _, entries in states[-1].values())


@given(st.integers(0, 1 << 40), st.integers(0, 63), st.binary(max_size=40), st.integers(0, 60), st.integers(0, 20))
def test_a_frame_is_read_as_it_was_written_wherever_it_stands(
    segment: int, place: int, start: bytes, zeros: int, times: int
) -> None:
    offset, body = 32 * place, b"\2" + (start + bytes(zeros)) * times + bytes(8)
    content = bytes(offset) + encode_frame(segment, offset, body)
    assert len(content) == offset + stored_bytes(offset, len(body)) == frame_end(content, segment, offset)
    assert len(content) % 32 == 0
    assert body_at(content + bytes(64), segment, offset) == body
    assert body_at(content, segment + 1, offset) is None
    assert body_at(bytes(32) + content, segment, offset + 32) is None


@given(st.integers(0, 1 << 40), st.integers(0, 1 << 20), st.integers(500, 1 << 16), st.randoms(use_true_random=False))
def test_a_large_frame_is_cut_as_a_small_one(segment: int, place: int, body_bytes: int, random: Random) -> None:
    offset, body = 32 * place, random.randbytes(body_bytes)
    stored = []
    for large_bytes in (500, 1 << 30):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(frames, "_LARGE_BODY_BYTES", large_bytes)
            stored.append(encode_frame(segment, offset, body))
    assert stored[0] == stored[1]


@given(st.integers(0, 63), st.binary(max_size=40), st.integers(0, 100), st.integers(1, 30), st.data())
def test_a_frame_of_which_any_sectors_are_missing_is_torn_and_whole_it_is_damage(
    place: int, start: bytes, zeros: int, times: int, data: st.DataObject
) -> None:
    offset, body = 32 * place, (start + bytes(zeros)) * times + bytes(9)
    content = bytearray(bytes(offset) + encode_frame(1, offset, body) + bytes(1_024))
    sectors = range(offset // 512, -(-(len(content) - 1_024) // 512))
    lost = data.draw(st.sets(st.sampled_from(sectors), min_size=1))
    torn = bytearray(content)
    for sector in lost:
        begin = max(offset, sector * 512)
        end = min(len(content) - 1_024, sector * 512 + 512)
        torn[begin:end] = bytes(end - begin)
    expected = Tail.CLEAN if lost == set(sectors) else Tail.TORN
    assert judge_tail(bytes(torn), 1, offset)[0] is expected and body_at(bytes(torn), 1, offset) is None
    flipped = data.draw(st.integers(offset, len(content) - 1_025))
    content[flipped] ^= 1 << data.draw(st.integers(0, 7))
    assert judge_tail(bytes(content), 1, offset)[0] is Tail.DAMAGED and body_at(bytes(content), 1, offset) is None
