"""A key that has turned stands out of its order: a search for the next page may pass others. So no copy is made."""

from __future__ import annotations

from pathlib import Path

import pytest

from cortado.errors import DataLoss
from cortado.store.engine.interface import Space
from cortado.store.process.snapshot_settings import SnapshotSettings
from cortado.store.replica.group_range import META_GROUP
from cortado.store.replica.snapshots.file_writer import SnapshotWriter
from support.engines import open_lmdb
from support.flips import flipped
from support.snapshots import MemorySnapshotFiles, fill


@pytest.mark.parametrize("slice_items", [3, 7])
@pytest.mark.parametrize("bit", [2, 6], ids=["above all", "below all"])
def test_a_stray_ends_the_copy_though_no_member_has_it_whole(tmp_path: Path, bit: int, slice_items: int) -> None:
    """Each key in turn is moved by a bit of its first letter: to behind all others, or before them."""
    settings = SnapshotSettings(slice_items=slice_items, reserve_bytes=0)
    engine = open_lmdb(tmp_path / "data")
    fill(engine, index=50, rows=60)
    with engine.read() as txn:
        keys = txn.page(Space.DATA, b"\x00", b"\xff", max_items=1_000).keys
    for key in keys[1:-1]:
        stray = bytes([key[0] ^ 1 << bit]) + key[1:]
        with flipped(engine.path / "engine" / "data.mdb", key, bit):
            writer = SnapshotWriter(engine, MemorySnapshotFiles(), "out-1", META_GROUP, settings, {(Space.DATA, stray)})
            writer.begin()
            with pytest.raises(DataLoss):
                while not writer.step():
                    pass
            writer.close()
            assert writer.damaged
    engine.close()
