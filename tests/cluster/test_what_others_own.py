"""Every method of the API against the table of rights (docs/security.md), called by an owner of other things.

Requests are filled by the names of their fields, so a new method is called without a change here, and fails if the
table does not have it. Methods with a range are called with open, empty, reversed and prefix ranges.
"""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import grpc
import pytest
from google.protobuf.descriptor import FieldDescriptor, MethodDescriptor
from google.protobuf.message import Message

from cortado.proto import message_class, streams_of, v1
from cortado.proto.bounds import is_repeated
from cortado.proto.v1 import collection_pb2, common_pb2, kv_pb2
from cortado.store.client import Client, Index
from cortado.store.client.blocking.drive import run
from support.server_process import running_server

pytestmark = pytest.mark.process

PAGE: Final = Path(__file__).parents[2] / "docs" / "security.md"
PACKAGE: Final = "cortado.v1."
CALL_S: Final = 10.0
SCHEMA: Final = '{"type": "record", "name": "R", "fields": [{"name": "id", "type": "long"}]}'
PAIRS: Final = {b"a": b"secret", b"b": b"secret"}
OWNED: Final = {"alice": ("database:shop", "namespace:carts"), "mallory": ("database:mine", "namespace:mine")}
ID: Final = bytes(range(16))
UNKNOWN_ID: Final = bytes(range(1, 17))
DENIED, UNKNOWN, OWN, CUT, SAME = "denied", "unknown", "its own", "cut", "the same"


def _methods() -> dict[str, MethodDescriptor]:
    found: dict[str, MethodDescriptor] = {}
    for module in pkgutil.iter_modules(v1.__path__):
        if module.name.endswith("_pb2"):
            for service in importlib.import_module(f"{v1.__name__}.{module.name}").DESCRIPTOR.services_by_name.values():
                found |= {f"{service.full_name}/{each.name}".removeprefix(PACKAGE): each for each in service.methods}
    return found


def _table() -> dict[str, str]:
    """Return the outcome of each method for callers that do not own the thing."""
    section = PAGE.read_text().partition("## Whose is what")[2].partition("\n## ")[0]
    found: dict[str, str] = {}
    for line in section.splitlines():
        cells = [each.strip() for each in line.strip("|").split("|")]
        if not line.startswith("|") or len(cells) != 4:
            continue
        for service, methods in re.findall(r"`(\w+)/([\w, ]+)`", cells[3]):
            for method in methods.split(", "):
                assert f"{service}/{method}" not in found, f"{service}/{method} is in the table twice"
                found[f"{service}/{method}"] = cells[2]
    return found


METHODS: Final = _methods()
TABLE: Final = _table()


def test_the_table_has_every_method_once_and_no_other() -> None:
    assert set(METHODS) == set(TABLE)
    assert set(TABLE.values()) == {DENIED, UNKNOWN, OWN, CUT, SAME}


# --- a world of two principals ---------------------------------------------------------------------------------


@dataclass
class World:
    """Alice owns one thing of each kind; mallory owns another database and namespace."""

    endpoint: str
    admin: Client
    alice: Client
    mallory: Client
    tokens: dict[str, str]
    transaction_id: bytes
    job_id: int
    kept: dict[str, object] = field(default_factory=dict)

    def state(self) -> dict[str, object]:
        """Return everything that alice owns."""
        return {
            "rows": [each.value["id"] for each in self.alice.table("shop.orders").scan()],
            "pairs": {each.key: each.value for each in self.alice.kv("carts").scan()},
            "leases": [
                (each.hold_id, each.timestamp, each.consumer)
                for each in self.admin.admin.gc.holds()
                if each.principal == "alice"
            ],
            "transactions": [
                (each.transaction_id, each.state)
                for each in self.admin.large_transactions.list()
                if each.principal == "alice"
            ],
            "jobs": [(each.job_id, each.state, each.target) for each in self.admin.admin.jobs.list()],
            "databases": self.admin.databases(),
            "principals": [(each.name, each.grants) for each in self.admin.admin.auth.principals()],
        }

    def call(self, name: str, request: Message, principal: str = "mallory") -> tuple[str, str, list[Any]]:
        """Return code, message and replies of a call, after its first reply."""
        method = METHODS[name]
        metadata = (("authorization", f"Bearer {self.tokens[principal]}"),) if principal else ()
        path, streams = f"/{PACKAGE}{name}", streams_of(method)
        with grpc.insecure_channel(self.endpoint) as channel:
            opened = channel.stream_stream if streams[0] else channel.unary_stream
            call: Any = opened(
                path,
                request_serializer=message_class(method.input_type).SerializeToString,
                response_deserializer=message_class(method.output_type).FromString,
            )(iter([request]) if streams[0] else request, metadata=metadata, timeout=CALL_S)
            replies = []
            try:
                for reply in call:
                    replies.append(reply)
                    if name.startswith("Watch/"):
                        break
            except grpc.RpcError as error:
                return error.code().name, error.details() or "", replies
            finally:
                call.cancel()
        return "OK", "", replies


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with running_server(tmp_path_factory.mktemp("owned") / "data") as server:
        with Client(server.endpoint) as anybody:
            for name in ("shop.orders", "mine.rows"):
                anybody.create_database(name.partition(".")[0])
                anybody.schemas.register(name, SCHEMA)
                anybody.create_table(name, key=["id"])
                anybody.table(name).put({"id": 1})
            for namespace in ("carts", "mine"):
                for key, value in PAIRS.items():
                    anybody.kv(namespace).put(key, value if namespace == "carts" else b"mine")
            anybody.create_index("shop.orders", Index("by_id", ["id"]))
            tokens = {}
            for name, resources in OWNED.items():
                token = anybody.admin.auth.create(name).token
                assert token is not None
                tokens[name] = token.text
                for resource in resources:
                    anybody.admin.auth.grant(name, "owner", resource)
            root = anybody.admin.auth.enable("root").token
            assert root is not None
        with (
            Client(server.endpoint, token=root.text) as admin,
            Client(server.endpoint, token=tokens["alice"]) as alice,
            Client(server.endpoint, token=tokens["mallory"]) as mallory,
        ):
            begun = alice.large_transactions.begin(["shop.orders"], ttl_s=600)
            alice.admin.gc.advance_consumer("feed", begun.start)
            (job,) = admin.admin.jobs.list()
            tokens["root"] = root.text
            made = World(
                server.endpoint, admin, alice, mallory, tokens, bytes.fromhex(begun.transaction_id), job.job_id
            )
            acquire = collection_pb2.AcquireLeaseRequest(lease_id=ID, ttl_ms=600_000)
            assert made.call("Collection/AcquireLease", acquire, "alice")[0] == "OK"
            made.kept = made.state()
            yield made


# --- requests about alice's things ----------------------------------------------------------------------------

_VALUES: Final[dict[str, object]] = {
    "namespace": "carts",
    "database": "shop",
    "name": "orders",
    "new_name": "orders2",
    "as_name": "orders3",
    "subject": "shop.orders",
    "principal": "alice",
    "role": "reader",
    "resource": "table:shop.orders",
    "target": "database:shop",
    "key": b"a",
    "lease_id": ID,
    "schema": SCHEMA,
}


def _filled(world: World, name: str) -> Message:
    """Return a request that names alice's things in every field that names anything."""
    request = message_class(METHODS[name].input_type)()
    _fill(request, {**_VALUES, "transaction_id": world.transaction_id, "job_id": world.job_id, "table": "orders"})
    return request


def _fill(message: Any, values: dict[str, object]) -> None:
    for each in message.DESCRIPTOR.fields:
        if each.type == FieldDescriptor.TYPE_MESSAGE:
            if each.name in ("at", "range", "ranges", "pair_ranges", "chunk") or each.message_type.name == "Timestamp":
                continue
            if is_repeated(each):
                if each.name in ("operations", "tables"):
                    _fill(getattr(message, each.name).add(), values)
            elif each.containing_oneof is None or message.WhichOneof(each.containing_oneof.name) is None:
                getattr(message, each.name).SetInParent()
                _fill(getattr(message, each.name), values)
        elif each.name in values and not is_repeated(each):
            value = values[each.name]
            if each.cpp_type == _CPP_TYPES[type(value)] and (each.type == FieldDescriptor.TYPE_BYTES) == isinstance(
                value, bytes
            ):
                setattr(message, each.name, value)


_CPP_TYPES: Final = {
    str: FieldDescriptor.CPPTYPE_STRING,
    bytes: FieldDescriptor.CPPTYPE_STRING,
    int: FieldDescriptor.CPPTYPE_UINT64,
}

_KV_RANGES: Final = [
    kv_pb2.KvRange(),
    kv_pb2.KvRange(start=b"a"),
    kv_pb2.KvRange(start=b"\0"),
    kv_pb2.KvRange(end=b"\xff\xff"),
    kv_pb2.KvRange(start=b"b", end=b"b"),
    kv_pb2.KvRange(start=b"b", end=b"a"),
    kv_pb2.KvRange(prefix=b"a"),
    kv_pb2.KvRange(prefix=b"\xff"),
    kv_pb2.KvRange(start=b"a", end=b"\0"),
]


def _key(*ids: int) -> common_pb2.Key:
    return common_pb2.Key(parts=[common_pb2.Value(int64=each) for each in ids])


_KEY_RANGES: Final = [
    common_pb2.KeyRange(),
    common_pb2.KeyRange(start=_key(1)),
    common_pb2.KeyRange(end=_key((1 << 63) - 1)),
    common_pb2.KeyRange(start=_key(2), end=_key(2)),
    common_pb2.KeyRange(start=_key(3), end=_key(1)),
    common_pb2.KeyRange(prefix=_key(1)),
    common_pb2.KeyRange(prefix=_key()),
]
_RANGES: Final[dict[str, Sequence[Any]]] = {"KvRange": _KV_RANGES, "KeyRange": _KEY_RANGES}
_BYTES_RANGES: Final = [(b"", b""), (b"a", b""), (b"", b"\xff"), (b"b", b"b"), (b"b", b"a")]


def _with_ranges(request: Any) -> list[Message]:
    """The request with each range that its kind may have; itself where it has none."""
    made: list[Message] = []
    for each in request.DESCRIPTOR.fields:
        kind = None if each.message_type is None else each.message_type.name
        for wanted in _RANGES.get(str(kind), ()):
            made.append(type(request)())
            made[-1].CopyFrom(request)
            if is_repeated(each):
                getattr(made[-1], each.name).add().CopyFrom(wanted)
            else:
                getattr(made[-1], each.name).CopyFrom(wanted)
    fields = request.DESCRIPTOR.fields_by_name
    if "start" in fields and fields["start"].type == FieldDescriptor.TYPE_BYTES:
        for start, end in _BYTES_RANGES:
            made.append(type(request)())
            made[-1].CopyFrom(request)
            made[-1].start, made[-1].end = start, end  # type: ignore[attr-defined]
    for each in request.DESCRIPTOR.fields:
        if each.message_type is not None and not is_repeated(each) and request.HasField(each.name):
            for inner in _with_ranges(getattr(request, each.name))[1:]:
                made.append(type(request)())
                made[-1].CopyFrom(request)
                getattr(made[-1], each.name).CopyFrom(inner)
    return [request, *made]


def test_ranges_are_found_in_whatever_takes_one() -> None:
    taking = {name for name, method in METHODS.items() if len(_with_ranges(message_class(method.input_type)())) > 1}
    assert taking >= {
        *("KeyValue/Scan", "KeyValue/ScanPage", "KeyValue/DeleteRange", "Watch/KeyValue", "Watch/Table"),
        *("Documents/Scan", "Documents/Aggregate", "Documents/Split", "Backups/Read", "Inspect/VerifyRange"),
    }


# --- the walk --------------------------------------------------------------------------------------------------


def _of(kind: str) -> list[str]:
    return sorted(name for name, each in TABLE.items() if each == kind)


@pytest.mark.parametrize("name", _of(DENIED))
def test_what_is_denied_to_others_is_denied_whatever_the_range(world: World, name: str) -> None:
    for request in _with_ranges(_filled(world, name)):
        code, message, replies = world.call(name, request)
        assert (code, replies) == ("PERMISSION_DENIED", []), (request, message)
    assert world.state() == world.kept


@pytest.mark.parametrize("name", _of(UNKNOWN))
def test_what_is_unknown_to_others_is_answered_as_what_does_not_exist(world: World, name: str) -> None:
    answers = []
    for job_id, transaction_id in ((world.job_id, world.transaction_id), (999, UNKNOWN_ID)):
        request: Any = _filled(world, name)
        if "job_id" in request.DESCRIPTOR.fields_by_name:
            request.job_id = job_id
        else:
            request.transaction_id = transaction_id
        code, message, replies = world.call(name, request)
        assert replies == []
        answers.append((code, message.replace(transaction_id.hex(), "ID").replace(str(job_id), "N")))
    assert answers[0] == answers[1]
    assert answers[0][0] == "NOT_FOUND"
    assert world.state() == world.kept


@pytest.mark.parametrize("name", _of(OWN))
def test_what_has_the_same_name_is_the_callers_own(world: World, name: str) -> None:
    """So a lease is acquired that is not alice's, and one is neither kept nor ended that is not there."""
    request: Any = _filled(world, name)
    if name == "Transactions/Settle":
        request.request_id = run(world.mallory._core._connection.new_request_id(CALL_S))
    code, message, _ = world.call(name, request)
    assert code in ("OK", "NOT_FOUND", "FAILED_PRECONDITION"), message
    assert world.state() == world.kept


@pytest.mark.parametrize("name", [*_of(CUT), *_of(SAME)])
def test_what_everybody_may_ask_tells_nothing_of_what_others_own(world: World, name: str) -> None:
    if name == "Calls/Exchange":
        return
    code, message, replies = world.call(name, message_class(METHODS[name].input_type)())
    assert code == "OK", message
    told = b"".join(each.SerializeToString() for each in replies)
    assert replies
    for secret in (b"carts", b"shop", b"orders", b"alice"):
        assert secret not in told


@pytest.mark.parametrize("name", sorted({*METHODS} - {"Calls/Exchange"}))
def test_a_caller_that_is_not_known_is_told_nothing(world: World, name: str) -> None:
    assert world.call(name, _filled(world, name), principal="")[::2] == ("UNAUTHENTICATED", [])


@pytest.mark.parametrize("name", sorted({*METHODS} - {"Calls/Exchange"}))
def test_names_that_are_none_are_refused_and_are_no_defect(world: World, name: str) -> None:
    request = message_class(METHODS[name].input_type)()
    for text in ("NAME", "table:NAME", "a.b.c", ".", ":", "", "\u00e4\0", "x" * 5_000):
        for principal in ("mallory", "alice"):
            _fill(request, {each: text if isinstance(value, str) else text.encode() for each, value in _VALUES.items()})
            code, message, _ = world.call(name, request, principal)
            assert code not in ("INTERNAL", "UNKNOWN"), (text, message)
    assert world.state() == world.kept


@pytest.mark.parametrize("name", ["KeyValue/Scan", "KeyValue/ScanPage", "Watch/KeyValue", "KeyValue/DeleteRange"])
def test_a_range_of_a_namespace_ends_with_it(world: World, name: str) -> None:
    """Namespaces lie side by side in the order of their names."""
    before = world.alice.kv("carts").scan()
    for request in _with_ranges(_filled(world, name)):
        request.namespace = "mine"  # type: ignore[attr-defined]
        _, _, replies = world.call(name, request)
        assert b"secret" not in b"".join(each.SerializeToString() for each in replies)
    assert {each.key: each.value for each in before} == PAIRS
    assert world.state() == world.kept


def test_the_page_of_another_namespace_is_none_of_this_one(world: World) -> None:
    page = kv_pb2.KvScanRequest(namespace="carts", page_size=1)
    *_, last = world.call("KeyValue/Scan", page, "alice")[2]
    assert last.next_page_token
    for namespace, expected in (("carts", "PERMISSION_DENIED"), ("mine", "INVALID_ARGUMENT")):
        page.namespace, page.page_token = namespace, last.next_page_token
        assert world.call("KeyValue/Scan", page)[::2] == (expected, [])
