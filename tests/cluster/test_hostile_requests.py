"""Every method of a real server, over random and hostile bytes: a precise refusal or an answer, and all well after it.

If a message asks for millions of objects, the refusal comes before one of them is made.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator
from importlib import import_module
from pkgutil import iter_modules
from typing import Any

import grpc
import pytest
from google.protobuf.descriptor import MethodDescriptor
from grpc_health.v1 import health_pb2
from grpc_reflection.v1alpha import reflection_pb2

from cortado.proto import message_class, streams_of, v1
from cortado.proto.v1 import calls_pb2, common_pb2, documents_pb2, kv_pb2, transactions_pb2
from cortado.store.server.config import MESSAGE_BYTES_MAX
from support.fronts import FRONTS
from support.server_process import ServerProcess, running_server
from support.wire import Wire

pytestmark = [pytest.mark.long, pytest.mark.process]

# All of the API: a service that is added is attacked from that day on.
MODULES: list[Any] = [
    *(import_module(f"{v1.__name__}.{each.name}") for each in iter_modules(v1.__path__) if each.name.endswith("_pb2")),
    health_pb2,
    reflection_pb2,
]
METHODS: dict[str, MethodDescriptor] = {
    method.full_name: method
    for module in MODULES
    for service in module.DESCRIPTOR.services_by_name.values()
    for method in service.methods
}
OPTIONS = [("grpc.max_send_message_length", -1), ("grpc.max_receive_message_length", -1)]
# The allowed answers to invented bytes. INTERNAL and UNKNOWN would be a defect.
PRECISE = {
    grpc.StatusCode.OK,
    grpc.StatusCode.INVALID_ARGUMENT,
    grpc.StatusCode.NOT_FOUND,
    grpc.StatusCode.FAILED_PRECONDITION,
    grpc.StatusCode.ALREADY_EXISTS,
    grpc.StatusCode.OUT_OF_RANGE,
    grpc.StatusCode.PERMISSION_DENIED,
    grpc.StatusCode.UNIMPLEMENTED,
    grpc.StatusCode.ABORTED,
}
# Bytes that arrived with another checksum than they were sent with get an error of their own.
DAMAGED = {"cortado.v1.Restores.Put": grpc.StatusCode.DATA_LOSS}
# A stream that goes on, as that of a watch, is ended by its caller.
GOES_ON = {grpc.StatusCode.DEADLINE_EXCEEDED}
STREAM_S = 0.5


@pytest.fixture(params=FRONTS, scope="module")
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    with running_server(tmp_path_factory.mktemp("hostile") / "data", "--front", request.param) as server:
        # A restore is begun in an empty cluster alone, and would refuse everything else.
        Wire(server.endpoint).kv.Put(kv_pb2.KvPutRequest(namespace="n", key=b"k"))
        yield server
        assert "Traceback" not in server.log, server.log
        assert "defect" not in server.log, server.log


@pytest.fixture(scope="module")
def channel(server: ServerProcess) -> Iterator[grpc.Channel]:
    with grpc.insecure_channel(server.endpoint, OPTIONS) as channel:
        yield channel


def outcome(channel: grpc.Channel, method: MethodDescriptor, message: bytes) -> tuple[grpc.StatusCode, str]:
    """How a call with this one message ended."""
    name = f"/{method.containing_service.full_name}/{method.name}"
    streams = streams_of(method)
    try:
        if streams.client:
            call: Any = channel.stream_stream(name)(iter([message]), timeout=STREAM_S)
            list(call)
        elif streams.server:
            list(channel.unary_stream(name)(message, timeout=STREAM_S))
        else:
            channel.unary_unary(name)(message, timeout=30)
    except grpc.RpcError as error:
        return error.code(), error.details() or ""
    return grpc.StatusCode.OK, ""


def check(channel: grpc.Channel, method: MethodDescriptor, message: bytes) -> tuple[grpc.StatusCode, str]:
    code, details = outcome(channel, method, message)
    allowed = PRECISE | (GOES_ON if streams_of(method).server else set()) | {DAMAGED.get(method.full_name)}
    assert code in allowed, f"{method.full_name} on {message[:60].hex()} ({len(message)} bytes): {code} {details}"
    return code, details


def varint(number: int) -> bytes:
    out = b""
    while number > 0x7F:
        out, number = out + bytes([number & 0x7F | 0x80]), number >> 7
    return out + bytes([number])


def hostile(method: MethodDescriptor) -> Iterator[bytes]:
    """8 MiB of as many items as that many bytes can ask for, of each field, and of none."""
    size = MESSAGE_BYTES_MAX - 64
    for each in method.input_type.fields:
        tag = varint(each.number << 3 | 2)
        yield (tag + b"\x00") * (size // (len(tag) + 1))
        yield tag + varint(size) + b"\x01" * size
        if each.message_type is not None:
            for inner in each.message_type.fields:
                item = varint(inner.number << 3 | 2) + b"\x00"
                body = item * (size // len(item))
                yield tag + varint(len(body)) + body
    yield b"\x78\x01" * (size // 2)
    yield b"\xff" * size
    yield b"\x0b" * (size // 2) + b"\x0c" * (size // 2)


def drawn(source: random.Random, method: MethodDescriptor) -> bytes:
    """Bytes that are nearly a message: fields of it with contents of chance, cut, doubled and with a bit turned."""
    out = b""
    for _ in range(source.randrange(6)):
        each = source.choice(list(method.input_type.fields) or [None])  # type: ignore[list-item]
        number = each.number if each is not None and source.random() < 0.9 else source.randrange(1, 40)
        body = source.choice([b"", b"n", b"db", source.randbytes(source.randrange(40)), b"\x0a\x01n\x12\x00"])
        kind = source.choice([2, 2, 2, 0, 1, 5])
        value = {2: varint(len(body)) + body, 0: varint(source.getrandbits(source.choice([1, 7, 32, 64])))}
        out += varint(number << 3 | kind) + value.get(kind, source.randbytes(8 if kind == 1 else 4))
    if out and source.random() < 0.3:
        place = source.randrange(len(out))
        out = out[:place] + bytes([out[place] ^ 1 << source.randrange(8)]) + out[place + 1 :]
    return out[: source.randrange(len(out) + 1)] if source.random() < 0.1 else out


# A node that is told to hand its leadership over, to rebuild itself or to forget its members obeys.
OBEYED = {"TransferLeader", "RemoveMember", "AddMember", "PromoteMember", "BumpEpoch", "RebuildReplica"}


@pytest.mark.parametrize("name", METHODS)
def test_every_method_answers_whatever_it_is_sent(channel: grpc.Channel, name: str) -> None:
    method, source = METHODS[name], random.Random(name)
    times = 15 if streams_of(method).server else 120
    for message in itertools.chain([b""], (drawn(source, method) for _ in range(times))):
        if method.name not in OBEYED:
            check(channel, method, message)


@pytest.mark.parametrize("name", METHODS)
def test_every_method_refuses_eight_mib_of_nothing_but_items(channel: grpc.Channel, name: str) -> None:
    method = METHODS[name]
    for message in hostile(method):
        code, details = check(channel, method, message)
        if code is grpc.StatusCode.INVALID_ARGUMENT and "must be at most" in details:
            assert "got" in details


def packed_pairs(**lengths: bytes) -> bytes:
    """A commit of one operation with these lengths, and nothing that they measure."""
    packed = common_pb2.KvPackedOperations(namespace="n", **lengths)
    operation = common_pb2.Operation(packed_pairs=packed)
    return transactions_pb2.CommitRequest(operations=[operation]).SerializeToString()


ATTACKS: dict[str, tuple[str, Callable[[], bytes], str]] = {
    "two million operations": (
        "cortado.v1.Transactions.Commit",
        lambda: b"\x1a\x00" * 2_000_000,
        "operations: must be at most 10000 (got more than 10000)",
    ),
    "as many as a few over the limit": (
        "cortado.v1.Transactions.Commit",
        lambda: b"\x1a\x00" * 10_001,
        "operations: must be at most 10000 (got 10001)",
    ),
    "two million indexes": (
        "cortado.v1.Tables.CreateTable",
        lambda: b"\x2a\x00" * 2_000_000,
        "request: has 4000000 bytes, the most is 1048576",
    ),
    "half a million indexes": (
        "cortado.v1.Tables.CreateTable",
        lambda: b"\x2a\x00" * 500_000,
        "indexes: must be at most 256 (got more than 256)",
    ),
    "two million keys": (
        "cortado.v1.Documents.MultiGet",
        lambda: b"\x12\x00" * 2_000_000,
        "keys: must be at most 10000 (got more than 10000)",
    ),
    "two million pairs, packed": (
        "cortado.v1.Transactions.Commit",
        lambda: packed_pairs(key_lengths=bytes(4 * 2_000_000)),
        "operations: a transaction may have 10000 operations (got 2000000)",
    ),
    "two million deletes, packed": (
        "cortado.v1.Transactions.Commit",
        lambda: packed_pairs(deletes=bytes(4 * 2_000_000)),
        "operations: must not be empty",
    ),
    "two million footprints": (
        "cortado.v1.Transactions.Commit",
        lambda: b"\x22\x00" * 2_000_000,
        "footprints: must be at most 21000 (got more than 21000)",
    ),
    "two million own writes": (
        "cortado.v1.KeyValue.Get",
        lambda: b"\x1a" + varint(4_000_000) + b"\x22\x00" * 2_000_000,
        "at.own_writes: must be at most 10000 (got more than 10000)",
    ),
    "four million calls on one stream": (
        "cortado.v1.Calls.Exchange",
        lambda: b"\x0a\x00" * 4_000_000,
        "calls: must be at most 4096 (got more than 4096)",
    ),
    "four million rows of a bulk load": (
        "cortado.v1.Documents.Bulk",
        lambda: documents_pb2.BulkRequest(
            chunk=documents_pb2.BulkChunk(json_rows=[""] * 4_000_000)
        ).SerializeToString(),
        "chunk.json_rows: must be at most 10000 (got more than 10000)",
    ),
    "a long name of a service": (
        "grpc.health.v1.Health.Check",
        lambda: health_pb2.HealthCheckRequest(service="s" * 5_000).SerializeToString(),
        "request: has 5003 bytes, the most is 4096",
    ),
}


@pytest.mark.parametrize("attack", ATTACKS)
def test_a_message_of_millions_is_refused_with_its_field_count_and_limit(channel: grpc.Channel, attack: str) -> None:
    name, message, said = ATTACKS[attack]
    assert outcome(channel, METHODS[name], message()) == (grpc.StatusCode.INVALID_ARGUMENT, said)


def test_a_call_on_the_shared_stream_is_bounded_as_one_of_its_own(channel: grpc.Channel) -> None:
    batch = calls_pb2.CallBatch()
    batch.calls.add(id=7, method="cortado.v1.Transactions/Commit", request=b"\x1a\x00" * 2_000_000)
    exchange = channel.stream_stream("/cortado.v1.Calls/Exchange")(iter([batch.SerializeToString()]), timeout=10)
    (reply,) = [each for message in exchange for each in calls_pb2.ReplyBatch.FromString(message).replies]
    assert reply.id == 7
    assert b"operations: must be at most 10000 (got more than 10000)" in reply.status


def test_the_server_is_well_afterwards(server: ServerProcess) -> None:
    wire = Wire(server.endpoint)
    wire.kv.Put(kv_pb2.KvPutRequest(namespace="n", key=b"k", value=b"v"))
    assert wire.kv.Get(kv_pb2.KvGetRequest(namespace="n", key=b"k")).pair.value == b"v"
    assert message_class(kv_pb2.KvGetRequest.DESCRIPTOR) is kv_pb2.KvGetRequest
