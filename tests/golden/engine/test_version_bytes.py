"""The bytes of versions and of a data directory's files are on disk: these goldens pin them.

A change here is a change of format: raise the data directory's version, and say so in ``docs/formats/``. Then
``python tests/golden/engine/test_version_bytes.py > tests/golden/engine/versions.txt`` writes the file anew.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import google_crc32c
import lmdb

from cortado.store.clock.timestamp import LARGEST, ZERO, Timestamp
from cortado.store.engine.data_directory import Identity
from cortado.store.engine.interface import Space
from cortado.store.engine.lmdb_engine import LmdbEngine
from cortado.store.keys.dump import dump
from cortado.store.keys.keyspace import kv_key, row_key
from cortado.store.keys.types import KeyPart, KeyType
from cortado.store.mvcc.mutations import Mutations
from cortado.store.mvcc.store import VersionStore
from cortado.store.mvcc.versions import RESET, RESIDUE, encode_version, encode_versions

GOLDEN = Path(__file__).with_name("versions.txt")

KEYS = (
    kv_key("sessions", b"user/1"),
    row_key(
        0x30007, (KeyPart("carrier", KeyType.STRING), KeyPart("flight", KeyType.INT64, descending=True)), ["UA", 1545]
    ),
)
TIMESTAMPS = (ZERO, Timestamp(0, 1_763_643_600_000, 2), Timestamp(1, 1_763_643_600_000, 0), LARGEST)
PAYLOADS = (b"", b"payload", None)
EXPIRES_MS = 1_763_643_660_000


def lines() -> Iterator[str]:
    for key in KEYS:
        for ts in TIMESTAMPS:
            for payload in PAYLOADS:
                [(engine_key, engine_value)] = encode_versions([key], [payload], ts)
                yield f"{dump(engine_key)} = {'deleted' if payload is None else payload}"
                yield f"  {engine_key.hex()}"
                yield f"  {engine_value.hex()}"
            engine_key, engine_value = encode_version(key, b"payload", ts, EXPIRES_MS)
            yield f"{dump(engine_key)} = {b'payload'} until {EXPIRES_MS}"
            yield f"  {engine_key.hex()}"
            yield f"  {engine_value.hex()}"


def test_the_bytes_of_versions_are_the_golden_ones() -> None:
    assert list(lines()) == GOLDEN.read_text().splitlines()


def test_newer_versions_come_first() -> None:
    engine_keys = [encode_versions([KEYS[0]], [b""], ts)[0][0] for ts in TIMESTAMPS]
    assert engine_keys == sorted(engine_keys, reverse=True)


def test_the_checksums_constants_are_what_they_are_said_to_be() -> None:
    for text in (b"", b"a", b"any bytes at all", bytes(1_000)):
        checksum = google_crc32c.value(text)
        assert google_crc32c.value(text + checksum.to_bytes(4, "little")) == RESIDUE
    assert google_crc32c.extend(RESIDUE, RESET) == google_crc32c.value(b"") == 0


def test_the_files_of_a_data_directory_are_the_golden_ones(tmp_path: Path) -> None:
    path = tmp_path / "data"
    LmdbEngine.open(path, new_identity=lambda: Identity("3f2a", "n1", "9c41"), map_bytes=1 << 24).close()
    assert (path / "FORMAT").read_bytes() == b"cortado-data 12\n"
    identity = b'{\n  "cluster_id": "3f2a",\n  "node_id": "n1",\n  "storage_id": "9c41",\n  "crc32c": "cccd6804"\n}\n'
    assert (path / "identity.json").read_bytes() == identity


def test_the_engines_spaces_are_named_sub_databases(tmp_path: Path) -> None:
    engine = LmdbEngine.open(tmp_path, new_identity=lambda: Identity("c", "n", "s"), map_bytes=1 << 24)
    with engine.write() as txn:
        VersionStore(engine).apply(txn, Mutations([KEYS[0]], [b"payload"]), TIMESTAMPS[1])
        for space in (Space.META, Space.REQUESTS, Space.CHANGES):
            txn.put(space, b"key", space.encode())
    engine.close()
    with lmdb.open(str(tmp_path / "engine"), max_dbs=8, readonly=True) as environment:
        found = {name: environment.open_db(name, create=False) for name in (b"data", b"meta", b"requests", b"changes")}
        with environment.begin() as txn:
            assert [txn.get(b"key", db=found[name]) for name in (b"meta", b"requests", b"changes")] == [
                b"meta",
                b"requests",
                b"changes",
            ]
            stored = list(txn.cursor(found[b"data"]))
            assert stored == encode_versions([KEYS[0]], [b"payload"], TIMESTAMPS[1])


if __name__ == "__main__":
    sys.stdout.writelines(line + "\n" for line in lines())
