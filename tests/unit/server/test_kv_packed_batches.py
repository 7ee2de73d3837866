"""Packed pairs on the wire: they mean the same operations, and contradictions are refused."""

from __future__ import annotations

from struct import pack as pack_places

import pytest

from cortado.errors import InvalidArgument
from cortado.proto.v1 import common_pb2
from cortado.store.catalog.catalog import Catalog, CatalogCache
from cortado.store.client.kv import Delete, Operation, Put, _packed
from cortado.store.clock.timestamp import Timestamp
from cortado.store.keys.packing import join
from cortado.store.kv.batches import KvBatch
from cortado.store.kv.operations import KvDelete, KvPut
from cortado.store.mvcc.evaluation import Absent, EtagIs, Present, ValueIs
from cortado.store.server.operation_messages import operation_count, operations_of, packed_pairs
from cortado.store.transactions.operations import OnPairs
from support.dict_reader import DictStore


def pack(*values: bytes, **more: object) -> common_pb2.KvPackedOperations:
    """Return puts of ``values`` at the keys 0, 1, ..."""
    keys, key_lengths = join([b"%d" % i for i in range(len(values))])
    joined, value_lengths = join(values)
    fields = {"keys": keys, "key_lengths": key_lengths, "values": joined, "value_lengths": value_lengths, **more}
    return common_pb2.KvPackedOperations(**fields)  # type: ignore[arg-type]


def places(*numbers: int) -> bytes:
    return pack_places(f"<{len(numbers)}I", *numbers)


def test_what_the_client_packs_is_what_the_server_evaluates() -> None:
    operations: list[Operation] = [
        Put(b"a", b"1"),
        Delete(b"c"),
        Put(b"b", b"", if_absent=True),
        Put(b"d", b"4", if_value=b""),
        Put(b"a", b"2"),
        Delete(b"e", if_etag="0.5.0"),
        Delete(b"f", if_present=True),
    ]
    messages = list(_packed("ns", operations))
    assert operation_count(messages) == len(operations)
    catalog = Catalog(DictStore().snapshot(), CatalogCache())
    assert list(operations_of(catalog, messages, "operations")) == [
        OnPairs("ns", KvBatch((b"a", b"c"), (b"1", b""), {1})),
        OnPairs("ns", KvPut(b"b", b"", Absent())),
        OnPairs("ns", KvPut(b"d", b"4", ValueIs(b""))),
        OnPairs("ns", KvBatch((b"a",), (b"2",))),
        OnPairs("ns", KvDelete(b"e", EtagIs(Timestamp(0, 5, 0)))),
        OnPairs("ns", KvDelete(b"f", Present())),
    ]


def test_packed_pairs_are_pinned_byte_for_byte() -> None:
    (operation,) = _packed("ns", [Put(b"k1", b"value"), Delete(b"k2")])
    assert operation.SerializeToString(deterministic=True).hex() == (
        "522b0a026e7312046b316b321a080200000002000000220576616c75652a080500000000000000320401000000"
    )


REFUSED = [
    (pack(b"1", key_lengths=b"\1\0\0"), "keys"),
    (pack(b"1", keys=b"12"), "keys"),
    (pack(b"1", values=b""), "values"),
    (pack(b"1", value_lengths=b"\1\0\0\0\0"), "values"),
    (pack(b"1", value_lengths=b"\1\0\0\0" + bytes(4)), "value_lengths"),
    (pack(b"1", value_lengths=b"", values=b""), "value_lengths"),
    (pack(b"1", deletes=places(0)), "deletes"),
    (pack(b"", deletes=places(1)), "deletes"),
    (pack(b"", b"", deletes=places(0, 0)), "deletes"),
    (pack(b"", b"", deletes=places(1, 0)), "deletes"),
    (pack(b"", deletes=b"\0\0\0"), "deletes"),
]


@pytest.mark.parametrize(("packed", "field"), REFUSED)
def test_packed_pairs_that_contradict_themselves_are_refused(packed: common_pb2.KvPackedOperations, field: str) -> None:
    with pytest.raises(InvalidArgument) as refused:
        packed_pairs(packed, "operations[3].packed_pairs")
    assert refused.value.field == f"operations[3].packed_pairs.{field}"


def test_packed_pairs_are_counted_before_they_are_cut() -> None:
    many = common_pb2.Operation(packed_pairs=pack(key_lengths=bytes(4 * 10_001)))
    assert operation_count([many, common_pb2.Operation()]) == 10_002
