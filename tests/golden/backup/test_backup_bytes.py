"""The bytes of a backup's files. A change here is a change of format: see docs/formats/backup.md."""

from __future__ import annotations

import hashlib
import zlib
from pathlib import Path

from cortado.store.backup.manifest import MANIFEST, part_name
from cortado.store.backup.runs import encode_stored
from cortado.store.clock.timestamp import Timestamp
from cortado.store.keys.types import LogicalKey
from cortado.store.mvcc.versions import encode_version
from cortado.store.replica.features.restoring import RESTORE_KEY, RESTORED_KEY, RestoreState
from support.backups import shape, small_run, write_backup

HEADER = b'{"backup_id": "aa", "end": "6b306d", "part": 0, "start": "6b"}'
RUN = bytes.fromhex(
    "00000002" + "0000000e" + "00000005"  # two versions, 14 bytes of keys, 5 of values
    "0007" + "0007" + "00000004" + "00000001"  # the lengths of keys, and of values
    "000000000000000700000000" + "000000000000000500000000"  # 0.7.0, 0.5.0
) + (b"k\x30n\0\1\x2c\0" * 2) + b"PteaD"  # fmt: skip


def _frame(tag: bytes, body: bytes) -> bytes:
    head = tag + len(body).to_bytes(4) + body
    return head + zlib.crc32(head).to_bytes(4)


def test_run() -> None:
    key = LogicalKey(b"k\x30n\0\1\x2c\0")
    stored = [encode_version(key, b"tea", Timestamp(0, 7, 0)), encode_version(key, None, Timestamp(0, 5, 0))]
    assert encode_stored([key for key, _ in stored], [value for _, value in stored]) == RUN


def test_part(tmp_path: Path) -> None:
    run = small_run(b"a")
    manifest = write_backup(tmp_path / "b", shape(), [[run]])
    body = run.encode()
    packed = zlib.compress(body, 1)
    how, packed = (b"\1", packed) if len(packed) < len(body) else (b"\0", body)
    prefix = b"cortado backup\0\0" + bytes.fromhex("00000004")
    before = prefix + zlib.crc32(prefix).to_bytes(4) + _frame(b"H", HEADER)
    before += _frame(b"R", how + len(body).to_bytes(4) + packed)
    key = run.keys[0]
    columns = (len(key).to_bytes(2), bytes.fromhex("00000004"), bytes(Timestamp(0, 7, 0)), key, b"Ptea")
    content = hashlib.sha256(b"".join(hashlib.sha256(each).digest() for each in columns)).digest()
    ending = (1).to_bytes(4) + (1).to_bytes(8) + content + hashlib.sha256(before).digest()
    written = (tmp_path / "b" / part_name(0)).read_bytes()
    assert written == before + _frame(b"E", ending)
    assert manifest.parts[0].content == content.hex()
    assert manifest.parts[0].sha256 == hashlib.sha256(written).hexdigest()


def test_manifest(tmp_path: Path) -> None:
    write_backup(tmp_path / "b", shape(roles_enabled=True), [[]])
    said = (tmp_path / "b" / MANIFEST).read_text()
    empty, file = hashlib.sha256(), hashlib.sha256((tmp_path / "b" / part_name(0)).read_bytes())
    for _ in range(5):
        empty.update(hashlib.sha256().digest())
    size_bytes = (tmp_path / "b" / part_name(0)).stat().st_size
    assert said.startswith(
        '{\n "cortado_backup": 4,\n'
        f' "cluster_id": "{"11" * 16}",\n'
        ' "backup_id": "aa",\n "timestamp": "0.9.0",\n "since": null,\n "history": false,\n "base": null,\n'
        ' "roles_enabled": true,\n'
        ' "parts": [\n  {\n   "start": "6b",\n   "end": "6b306d",\n   "versions": 0,\n'
        f'   "content": "{empty.hexdigest()}",\n   "bytes": {size_bytes},\n'
        f'   "sha256": "{file.hexdigest()}"\n  }}\n ],\n'
        ' "digest": "'
    )


def test_the_state_of_a_restore() -> None:
    assert RESTORE_KEY == b"m" + b"\x30restore\x00\x01" + b"\x01"
    assert RESTORED_KEY == b"m" + b"\x30restored\x00\x01" + b"\x01"
    state = RestoreState("aa", Timestamp(0, 9, 1), Timestamp(0, 7, 0), 12, 0b1000_0000_0101, is_abandoned=True)
    encoded = state.encode()
    assert encoded.hex() == (
        "0a02" + b"aa".hex() + "120c" + "000000000000000900000001" + "1a0c" + "000000000000000700000000" + "200c"
        "2a02" + "0508" + "3001"
    )
    assert RestoreState.decode(encoded) == state
    assert state.parts_done == [0, 2, 11]
