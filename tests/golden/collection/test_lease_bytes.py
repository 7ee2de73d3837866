"""The bytes of leases on disk. A change here is a change of format: see docs/formats/collection.md."""

from __future__ import annotations

from dataclasses import replace

from cortado.store.auth.owners import own_id, tag_of
from cortado.store.clock.timestamp import Timestamp
from cortado.store.collection.leases import LEASES_KEY, Lease, acquire, encode_lease, lease_key
from support.dict_reader import DictStore


def test_keys() -> None:
    lease_id = bytes(range(16))
    assert (
        lease_key(lease_id) == b"m" + b"\x30lease\x00\x01" + b"\x30000102030405060708090a0b0c0d0e0f\x00\x01" + b"\x01"
    )
    assert LEASES_KEY == b"m" + b"\x30leases\x00\x01" + b"\x01"


def test_values() -> None:
    of = Lease(bytes(16), Timestamp(1, 2, 3), 60_000, "a job", Timestamp(1, 9, 0))
    encoded = encode_lease(of)
    assert encoded.hex() == "0a0c" + "0001000000000002" + "00000003" + "10e0d403" + "1a05" + b"a job".hex()
    assert encode_lease(replace(of, consumer="me")).hex() == encoded.hex() + "2202" + b"me".hex()
    assert encode_lease(replace(of, owner="it")).hex() == encoded.hex() + "2a02" + b"it".hex()
    assert encode_lease(replace(of, principal="etl")).hex() == encoded.hex() + "3203" + b"etl".hex()


def test_the_list() -> None:
    store = DictStore()
    for lease_id in (b"b" * 16, b"a" * 16):
        store.write(acquire(lease_id, Timestamp(0, 7, 1), 60_000, ""))
    version = store.snapshot().get(LEASES_KEY)
    assert version is not None
    ts = bytes.fromhex("000000000000000700000001")
    nobody = bytes(8)
    assert version.payload == ts + b"a" * 16 + nobody + ts + b"b" * 16 + nobody


def test_what_principals_name() -> None:
    """The item under another principal's id, and in the list: made of the names of its principal."""
    assert own_id("", b"a" * 16) == b"a" * 16
    assert own_id("etl", b"a" * 16).hex() == "3347959c2b9ef0e486c30d12c8b937b2"
    assert tag_of("etl").hex() == "1169d7dbdd3d51f6"
