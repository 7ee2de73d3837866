"""A snapshot file carries all of a state and nothing else; and no damage to its bytes passes."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cortado.errors import DataLoss
from cortado.store.engine.interface import Engine, Space
from cortado.store.mvcc.reader import logical_of, suffix_from
from cortado.store.mvcc.versions import encode_version, timestamp_of
from cortado.store.process.snapshot_settings import SnapshotSettings
from cortado.store.replica.group_range import META_GROUP
from cortado.store.replica.snapshots.file_format import Block, decode_block, encode_block, open_frame
from cortado.store.replica.snapshots.file_reader import Verification, WholeFile
from cortado.store.replica.snapshots.file_writer import SnapshotWriter
from cortado.store.replica.snapshots.installation import Installation
from support.memory_engine import MemoryEngine
from support.memory_snapshot_files import MemorySnapshotFiles
from support.snapshots import CLUSTER, GROUP, MEMBERS, contents, fill, ts_of

items = st.dictionaries(st.binary(min_size=1, max_size=511), st.binary(max_size=300), min_size=1, max_size=40)


@given(space=st.sampled_from([Space.DATA, Space.REQUESTS, Space.META]), held=items)
def test_a_block_reads_back(space: Space, held: dict[bytes, bytes]) -> None:
    block = Block(space, list(held), list(held.values()))
    _, body = open_frame(encode_block(block), 0)
    assert decode_block(body) == block


@given(st.binary(max_size=200))
def test_no_bytes_make_a_block_reader_fail_otherwise_than_by_data_loss(body: bytes) -> None:
    try:
        decode_block(body)
    except DataLoss:
        return


def copied(engine: Engine, bounds: SnapshotSettings) -> MemorySnapshotFiles:
    files = MemorySnapshotFiles()
    writer = SnapshotWriter(engine, files, "in-1", META_GROUP, bounds)
    writer.write_header("1", CLUSTER, writer.begin(), MEMBERS)
    while not writer.step():
        pass
    writer.close()
    return files


def verified(files: MemorySnapshotFiles, slice_bytes: int) -> WholeFile:
    verification = Verification(files, "in-1", META_GROUP, cluster_id=CLUSTER, slice_bytes=slice_bytes)
    while (whole := verification.step()) is None:
        pass
    return whole


@settings(max_examples=60, deadline=None)
@given(
    rows=st.integers(0, 120),
    old_rows=st.integers(0, 120),
    value_bytes=st.integers(0, 900),
    slice_bytes=st.integers(1, 6_000),
    slice_items=st.integers(1, 64),
    transaction_bytes=st.integers(1, 9_000),
    transaction_items=st.integers(1, 90),
)
def test_a_copy_installed_over_any_state_equals_what_was_copied(
    rows: int,
    old_rows: int,
    value_bytes: int,
    slice_bytes: int,
    slice_items: int,
    transaction_bytes: int,
    transaction_items: int,
) -> None:
    bounds = SnapshotSettings(
        slice_bytes=slice_bytes,
        slice_items=slice_items,
        transaction_bytes=transaction_bytes,
        transaction_items=transaction_items,
        reserve_bytes=0,
    )
    sender, receiver = MemoryEngine(), MemoryEngine()
    state = fill(sender, index=70, rows=rows, value_bytes=value_bytes)
    fill(receiver, index=30, rows=old_rows)
    with receiver.write() as txn:
        changed = [GROUP.to_bytes(4) + bytes(ts_of(number)) for number in range(old_rows)]
        txn.put_many(Space.CHANGES, [(each, b"of another state") for each in changed])
    files = copied(sender, bounds)
    installation = Installation(receiver, files, verified(files, slice_bytes), META_GROUP, bounds)
    installation.mark()
    while not installation.clear():
        pass
    while not installation.load():
        pass
    assert installation.finish([]) == state
    assert contents(receiver) == contents(sender)
    with receiver.read() as txn:
        assert txn.keys(Space.CHANGES, b"", b"\xff", max_items=1) == ([], True)


@pytest.mark.parametrize("seed", range(4))
def test_no_flipped_bit_and_no_missing_end_passes(seed: int) -> None:
    source = random.Random(seed)
    engine = MemoryEngine()
    fill(engine, index=70, rows=30)
    files = copied(engine, SnapshotSettings(slice_bytes=400, slice_items=5, reserve_bytes=0))
    whole = files.read("in-1", 0, 1 << 30)
    for place in range(0, len(whole), 3):
        damaged = bytearray(whole)
        damaged[place] ^= 1 << source.randrange(8)
        files.write("in-1", 0, bytes(damaged))
        with pytest.raises(DataLoss):
            verified(files, 1_000)
    for length in range(0, len(whole), 7):
        files.write("in-1", 0, whole[:length])
        with pytest.raises(DataLoss):
            verified(files, 1_000)
    files.write("in-1", 0, whole + b"\x00")
    with pytest.raises(DataLoss):
        verified(files, 1_000)


def test_frames_that_are_each_right_but_not_together_do_not_pass() -> None:
    engine = MemoryEngine()
    fill(engine, index=70, rows=30)
    bounds = SnapshotSettings(slice_bytes=400, slice_items=5, reserve_bytes=0)
    files = copied(engine, bounds)
    whole = files.read("in-1", 0, 1 << 30)
    ends = frame_ends(whole)
    first, second, third = ends[0], ends[1], ends[2]
    wrong = [
        whole[:first] + whole[second:],
        whole[:first] + whole[first:second] + whole[first:],
        whole[:first] + whole[second:third] + whole[first:second] + whole[third:],
    ]
    # A block of another file, of the same keys.
    other_engine = MemoryEngine()
    fill(other_engine, index=70, rows=30, value_bytes=50)
    with other_engine.write() as txn:
        key, _ = txn.seek(Space.DATA, b"k") or (b"", b"")
        txn.put(Space.DATA, key, encode_version_of(key))
    other = copied(other_engine, bounds).read("in-1", 0, 1 << 30)
    assert frame_ends(other)[:2] == ends[:2]
    wrong.append(whole[:first] + other[first:second] + whole[second:])
    for each in wrong:
        files.write("in-1", 0, each)
        with pytest.raises(DataLoss):
            verified(files, 1_000)


def encode_version_of(engine_key: bytes) -> bytes:
    """Return another value of 50 bytes under this key."""
    key, ts = logical_of(engine_key), timestamp_of(suffix_from(engine_key))
    return encode_version(key, b"x" * 50, ts)[1]


def frame_ends(whole: bytes) -> list[int]:
    """Return the end of the header and of each frame after it."""
    ends: list[int] = []
    place = 18
    while place < len(whole):
        place += 5 + int.from_bytes(whole[place + 1 : place + 5]) + 4
        ends.append(place)
    return ends
