"""The bytes of a snapshot file and of the marker are formats: a change here is a new format number."""

from __future__ import annotations

from pathlib import Path

import google_crc32c
import pytest

from cortado.errors import DataLoss
from cortado.raft.registry import Member, Roster
from cortado.store.engine.interface import Space
from cortado.store.keys.keyspace import kv_key
from cortado.store.mvcc.versions import encode_versions
from cortado.store.process.snapshot_settings import SnapshotSettings
from cortado.store.replica.apply.applied_state import AppliedState
from cortado.store.replica.group_range import META_GROUP
from cortado.store.replica.snapshots.file_reader import Verification
from cortado.store.replica.snapshots.file_writer import SnapshotWriter
from cortado.store.replica.snapshots.marker import Marker, applied_key, marker_key
from cortado.store.replica.write.request_table.records import Remembered, encode_remembered
from support.memory_engine import MemoryEngine
from support.memory_snapshot_files import MemorySnapshotFiles
from support.snapshots import ts_of

HERE = Path(__file__).parent
STATE = AppliedState(index=258, term=7, last_ts=ts_of(2), ceiling=ts_of(9), requests=1, request_bytes=41)
MEMBERS = Roster.of(
    voters=(
        Member("n1", "10.0.0.1:7622", "disk-1", "10.0.0.1:7621"),
        Member("n2", "10.0.0.2:7622", "disk-2", "10.0.0.2:7621"),
    ),
    learners=(Member("n3", "10.0.0.3:7622"),),
)


def written() -> MemorySnapshotFiles:
    """A state of two rows and a deleted one, and one remembered request, copied with small blocks."""
    engine, files = MemoryEngine(), MemorySnapshotFiles()
    keys = [kv_key("notes", name) for name in (b"a", b"b", b"c")]
    request_id = bytes(ts_of(1)) + b"\xab" * 8
    with engine.write() as txn:
        txn.put_many(Space.DATA, encode_versions(keys, [b"first", None, b""], ts_of(2)))
        key = META_GROUP.segment + request_id
        txn.put(Space.REQUESTS, key, encode_remembered(key, Remembered(b"\x11" * 16, ts_of(2), b"reply")))
        txn.put(Space.REQUESTS, (6).to_bytes(4) + request_id, b"another group's")
        txn.put(Space.META, applied_key(1), STATE.encode())
        txn.put(Space.META, applied_key(6), b"another group's")
    writer = SnapshotWriter(engine, files, "out-1", META_GROUP, SnapshotSettings(slice_items=2, reserve_bytes=0))
    writer.write_header("00feed00", "cluster-a", writer.begin(), MEMBERS)
    while not writer.step():
        pass
    writer.close()
    return files


def golden(name: str) -> bytes:
    return bytes.fromhex((HERE / name).read_text())


def test_a_snapshot_file_has_these_bytes() -> None:
    files = written()
    assert files.read("out-1", 0, 1 << 20).hex() == golden("file.hex").hex()


def test_a_snapshot_file_reads_back() -> None:
    files = MemorySnapshotFiles()
    files.write("in-1", 0, golden("file.hex"))
    verification = Verification(files, "in-1", META_GROUP, cluster_id="cluster-a", slice_bytes=1 << 20)
    whole = verification.step()
    assert whole is not None
    assert whole.state == STATE
    header = whole.header
    assert (header.snapshot_id, header.index, header.term, header.roster) == ("00feed00", 258, 7, MEMBERS)
    assert whole.blocks == 4


def test_a_snapshot_file_of_a_later_format_is_refused_by_its_number() -> None:
    files = MemorySnapshotFiles()
    bytes_ = golden("file.hex")
    files.write("in-1", 0, bytes_[:16] + b"\x00\x09" + bytes_[18:])
    verification = Verification(files, "in-1", META_GROUP, cluster_id="cluster-a", slice_bytes=1 << 20)
    with pytest.raises(DataLoss, match="format 9 is unknown, this version reads 8"):
        verification.step()


def test_a_marker_has_these_bytes() -> None:
    marker = Marker("00feed00", 258, 7)
    assert marker_key(5).hex() == b"installing\x00\x00\x00\x05".hex()
    assert marker.encode().hex() == golden("marker.hex").hex()
    assert Marker.decode(golden("marker.hex")) == marker


def test_a_damaged_marker_still_marks() -> None:
    encoded = golden("marker.hex")
    for place in range(len(encoded)):
        damaged = encoded[:place] + bytes([encoded[place] ^ 1]) + encoded[place + 1 :]
        assert Marker.decode(damaged) == Marker()
    assert Marker.decode(b"") == Marker()


def test_a_marker_of_a_later_format_stops_the_node() -> None:
    record = b"\x02" + golden("marker.hex")[1:-4]
    later = record + google_crc32c.value(record).to_bytes(4, "little")
    with pytest.raises(DataLoss, match="format 2 is unknown"):
        Marker.decode(later)
