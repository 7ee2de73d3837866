"""A stored value that is no message is damage, and the error names it."""

from __future__ import annotations

import pytest

from cortado.errors import DataLoss
from cortado.proto.internal import staging_pb2
from cortado.store.mvcc.stored_messages import decode_stored, encode_stored


def test_a_message_comes_back_and_other_bytes_are_damage() -> None:
    stored = staging_pb2.StoredApplication(version=7)
    encoded = encode_stored(stored)
    assert decode_stored(staging_pb2.StoredApplication, encoded, "large transaction") == stored
    with pytest.raises(DataLoss, match=r"damaged data: large transaction .a value is no StoredApplication"):
        decode_stored(staging_pb2.StoredApplication, encoded + b"\xff", "large transaction")
