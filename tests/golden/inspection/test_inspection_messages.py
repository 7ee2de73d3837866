"""Stored keys, a log and versions as people and scripts see them: a change here affects scripts that read them.

``python tests/golden/inspection/test_inspection_messages.py > tests/golden/inspection/inspection.txt`` writes the file
anew (with ``tests`` on the path).
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from datetime import date
from decimal import Decimal
from pathlib import Path
from uuid import UUID

from google.protobuf.text_format import MessageToString

from cortado.proto.v1 import inspect_pb2 as pb
from cortado.store.clock.timestamp import Timestamp
from cortado.store.keys.codec import encode_part
from cortado.store.keys.decoded import KeyNames, decode_key, log_file_key
from cortado.store.keys.keyspace import index_prefix, kv_key, meta_key, row_prefix
from cortado.store.keys.types import KeyType, KeyValue
from cortado.store.mvcc.versions import suffix_of
from cortado.store.replica.snapshots.marker import applied_key, marker_key, reset_key
from support.inspected import REQUEST_ID, Replica

GOLDEN = Path(__file__).with_name("inspection.txt")
NAMES = KeyNames({7: "shop.orders"}, {(7, 2): "by_day"})
TS = Timestamp(0, 1_763_643_600_000, 2)
VALUES: tuple[tuple[KeyValue, KeyType, bool], ...] = (
    (None, KeyType.INT64, False),
    (True, KeyType.BOOL, False),
    (-5, KeyType.INT64, True),
    (1.5, KeyType.FLOAT64, False),
    (Decimal("12.50"), KeyType.DECIMAL, False),
    (1_763_643_600_000_000, KeyType.TIMESTAMP, True),
    (date(2013, 1, 31), KeyType.DATE, False),
    (UUID(int=5), KeyType.UUID, False),
    (b"\x00\xff", KeyType.BYTES, False),
    ("a\nb", KeyType.STRING, False),
)
PARTS = b"".join(encode_part(value, key_type, descending) for value, key_type, descending in VALUES)
KEYS = (
    kv_key("sessions", b"user/1"),
    kv_key("sessions", b"user/1") + suffix_of(TS),
    row_prefix(0x30007) + PARTS,
    row_prefix(0x30008) + encode_part("UA", KeyType.STRING) + suffix_of(TS),
    index_prefix(0x30007, 2) + PARTS + suffix_of(TS),
    index_prefix(0x30007, 3) + encode_part("UA", KeyType.STRING),
    meta_key("table", "shop", "orders"),
    meta_key("schema", 5) + suffix_of(TS),
    log_file_key(12, 4_096),
    (1).to_bytes(4) + REQUEST_ID,
    applied_key(1),
    marker_key(1),
    reset_key(1),
    b"joined",
    b"",
    b"k",
    b"t\x00\x00\x00\x07x",
    kv_key("sessions", b"user/1")[:-1],
    b"\xff" * 20,
)


def lines() -> Iterator[str]:
    for key in KEYS:
        found = decode_key(key)
        yield f"{key.hex() or '(empty)'}"
        yield f"  {found.kind}: {found.text(NAMES)}"
    replica = Replica("n1")
    yield from MessageToString(replica.read_log(pb.ReadLogRequest())).splitlines()
    for request in (
        pb.ReadVersionsRequest(row=pb.RowTarget(database="shop", table="rows")),
        pb.ReadVersionsRequest(index=pb.IndexTarget(database="shop", table="rows", index="by_n")),
        pb.ReadVersionsRequest(key=b"m"),
        pb.ReadVersionsRequest(kv=pb.KvTarget(namespace="sessions", key=b"user-0010")),
    ):
        yield from MessageToString(replica.read_versions(request)).splitlines()
    for space in pb.StoredSpace.values():
        verify = pb.VerifyRangeRequest(space=space, up_to=pb.VerifyRangeRequest().up_to)
        verify.up_to.wall_ms = 1 << 40
        yield from MessageToString(replica.verify_range(verify)).splitlines()


def test_keys_logs_and_versions_are_shown_so() -> None:
    assert list(lines()) == GOLDEN.read_text().splitlines()


if __name__ == "__main__":
    sys.stdout.writelines(f"{line}\n" for line in lines())
