"""Batches on the wire: a packed one means what the same operations mean, and what contradicts itself is refused."""

from __future__ import annotations

import pytest

from cortado.errors import InvalidArgument, TooLarge
from cortado.proto.v1 import common_pb2, kv_pb2
from cortado.store.client.kv import Delete, Operation, Put, _pack
from cortado.store.clock.timestamp import Timestamp
from cortado.store.kv.batches import KvBatch
from cortado.store.mvcc.evaluation import Absent, EtagIs, Present, ValueIs
from cortado.store.packing import join
from cortado.store.server.kv_service import _batch


def pack(*values: bytes, **more: object) -> kv_pb2.KvPackedOperations:
    """Puts of ``values`` at the keys 0, 1, ..."""
    keys, key_lengths = join([b"%d" % i for i in range(len(values))])
    joined, value_lengths = join(values)
    fields = {"keys": keys, "key_lengths": key_lengths, "values": joined, "value_lengths": value_lengths, **more}
    return kv_pb2.KvPackedOperations(**fields)  # type: ignore[arg-type]


def test_what_the_client_packs_is_what_the_server_evaluates() -> None:
    operations: list[Operation] = [
        Put(b"a", b"1"),
        Put(b"b", b"", if_absent=True),
        Delete(b"c"),
        Put(b"d", b"4", if_value=b""),
        Delete(b"e", if_match="0.5.0"),
        Delete(b"f", if_present=True),
    ]
    request = kv_pb2.KvBatchRequest()
    _pack(operations, request.packed)
    assert _batch(request) == KvBatch(
        (b"a", b"b", b"c", b"d", b"e", b"f"),
        (b"1", b"", b"", b"4", b"", b""),
        {2, 4, 5},
        {1: Absent(), 3: ValueIs(b""), 4: EtagIs(Timestamp(0, 5, 0)), 5: Present()},
    )


def test_a_packed_batch_is_pinned_byte_for_byte() -> None:
    packed = kv_pb2.KvPackedOperations()
    _pack([Put(b"k1", b"value"), Delete(b"k2", if_present=True)], packed)
    assert packed.SerializeToString(deterministic=True).hex() == (
        "0a046b316b32120802000000020000001a0576616c7565220805000000000000002a01013206080112021001"
    )


def condition(place: int, **kind: object) -> kv_pb2.KvPackedCondition:
    return kv_pb2.KvPackedCondition(operation=place, condition=common_pb2.Condition(**kind))  # type: ignore[arg-type]


REFUSED = [
    (pack(), "operations"),
    (pack(b"1", key_lengths=b"\1\0\0"), "operations"),
    (pack(b"1", keys=b"12"), "packed.keys"),
    (pack(b"1", values=b""), "packed.values"),
    (pack(b"1", value_lengths=b"\1\0\0\0\0"), "packed.values"),
    (pack(b"1", value_lengths=b"\1\0\0\0" + bytes(4)), "packed.value_lengths"),
    (pack(b"1", value_lengths=b"", values=b""), "packed.value_lengths"),
    (pack(b"1", deletes=[0]), "packed.deletes"),
    (pack(b"", deletes=[1]), "packed.deletes"),
    (pack(b"1", conditions=[condition(1, absent=True)]), "packed.conditions"),
    (pack(b"1", conditions=[condition(0, absent=True), condition(0, present=True)]), "packed.conditions"),
    (pack(b"1", conditions=[condition(0, etag="x")]), "operations[0].condition.etag"),
]


@pytest.mark.parametrize(("packed", "field"), REFUSED)
def test_a_packed_batch_that_contradicts_itself_is_refused(packed: kv_pb2.KvPackedOperations, field: str) -> None:
    with pytest.raises(InvalidArgument) as refused:
        _batch(kv_pb2.KvBatchRequest(packed=packed))
    assert refused.value.field == field


def test_operations_come_in_one_way() -> None:
    with pytest.raises(InvalidArgument, match="packed"):
        _batch(kv_pb2.KvBatchRequest(packed=pack(b"1"), operations=[kv_pb2.KvOperation()]))


def test_too_many_packed_operations_are_refused_before_they_are_cut() -> None:
    with pytest.raises(TooLarge) as refused:
        _batch(kv_pb2.KvBatchRequest(packed=pack(key_lengths=bytes(4 * 10_001))))
    assert (refused.value.field, refused.value.length, refused.value.limit) == ("operations", 10_001, 10_000)
