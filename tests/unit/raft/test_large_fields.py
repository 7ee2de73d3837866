"""A field that is written beside its message has the bytes that the message would have written."""

from __future__ import annotations

import pytest

from cortado.proto.internal import raft_pb2 as pb
from cortado.raft.large_fields import large_field


@pytest.mark.parametrize("size", [0, 1, 127, 128, 16_383, 16_384, (1 << 21) - 1, 1 << 21])
def test_the_bytes_are_those_of_the_message(size: int) -> None:
    body = b"x" * size
    beside = b"".join(large_field(pb.StoredEntry.BODY_FIELD_NUMBER, body))
    assert beside == pb.StoredEntry(body=body).SerializeToString()
