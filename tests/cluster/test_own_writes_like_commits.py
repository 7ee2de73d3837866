"""A read with own writes gives the result of their commit: the same refusal, word for word, or the same state.

Operations of chance over raw stubs, good ones and bad ones; all of them first as own writes of scans, then committed.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

import grpc
import pytest

from cortado.proto.v1 import common_pb2, documents_pb2, kv_pb2, tables_pb2
from cortado.store.keys.packing import join
from support.grpc_errors import from_rpc_error
from support.server_process import running_server
from support.wire import Wire, int_key, json_document, put_document, put_pair, table_name

pytestmark = pytest.mark.process

ROUNDS = 60
KEYS = 30
Operation = common_pb2.Operation
CONDITIONS = [
    common_pb2.Condition(absent=True),
    common_pb2.Condition(present=True),
    common_pb2.Condition(etag="0.0.0"),
    common_pb2.Condition(value=b"v"),
    common_pb2.Condition(),
]


@pytest.fixture(scope="module")
def wire(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Wire]:
    with running_server(tmp_path_factory.mktemp("own") / "data") as server:
        wire = Wire(server.endpoint)
        wire.tables.CreateDatabase(tables_pb2.CreateDatabaseRequest(database="db"))
        fields = [{"name": "a", "type": "long"}, {"name": "b", "type": "string"}, {"name": "c", "type": "int"}]
        wire.register("db.t", *fields)
        by_b = tables_pb2.Index(name="by_b", parts=[tables_pb2.KeyPart(path="b")], unique=True)
        by_c = tables_pb2.Index(name="by_c", parts=[tables_pb2.KeyPart(path="c")])
        wire.create_table("db", "t", ["a"], by_b, by_c)
        wire.commit(*(put_document("db.t", {"a": a, "b": f"b{a}", "c": a % 5}) for a in range(KEYS)))
        wire.commit(*(put_pair("n", b"%d" % key, bytes(8)) for key in range(KEYS)))
        yield wire
        assert "Traceback" not in server.log, server.log


def operation(source: random.Random) -> Operation:
    """Mostly one that can be done."""
    kind = source.choice(
        ["put", "update", "delete", "add", "check", "put_pair", "delete_pair", "add_pair", "check_pair", "packed_pairs"]
    )
    key = source.randrange(KEYS + 5)
    fields: dict[str, Any]
    if kind.endswith("pair"):
        fields = {
            "namespace": source.choice(["n"] * 30 + ["", "n o"]),
            "key": source.choice([b"%d" % key] * 30 + [b""]),
        }
    elif kind == "packed_pairs":
        keys, lengths = join([b"%d" % source.randrange(KEYS) for _ in range(3)])
        deletes = source.choice([b"\0\0\0\0\2\0\0\0"] * 9 + [b"\2\0\0\0\1\0\0\0"])
        fields = {
            "namespace": "n",
            "keys": keys,
            "key_lengths": lengths,
            "value_lengths": bytes(12),
            "deletes": deletes,
        }
    else:
        fields = {"database": "db", "table": source.choice(["t"] * 30 + ["nix"])}
        if kind != "put":
            fields["key"] = source.choice([int_key(key)] * 30 + [int_key()])
    match kind:
        case "put":
            row = {"a": key, "b": f"b{source.choice([key] * 4 + [1])}", "c": source.choice([1] * 30 + ["1"])}
            fields["document"] = json_document(row)
        case "update":
            fields["changes_json"] = source.choice(['{"c": 3}'] * 30 + ['{"b": "b1"}', '{"nix": 1}', "{"])
        case "add":
            fields |= {"field": source.choice(["c"] * 30 + ["b"]), "delta": source.choice([1] * 30 + [2**31])}
        case "put_pair":
            fields["value"] = source.choice([b"", bytes(8), b"v"])
        case "add_pair":
            fields |= {"delta": -1, "min": -(1 << source.choice([0, 40, 40, 40]))}
    is_check = kind.startswith("check")
    if is_check or (kind not in ("add", "add_pair", "packed_pairs") and source.random() < 0.05):
        fields["condition"] = source.choice([CONDITIONS[1]] * 20 + CONDITIONS if is_check else CONDITIONS)
    return Operation(**{kind: fields})


def state(wire: Wire, at: common_pb2.ReadAt) -> list[list[Any]]:
    """All rows by each way, and all pairs."""
    found: list[list[Any]] = []
    for index, reverse in (("", False), ("by_b", True), ("by_c", False)):
        request = documents_pb2.ScanRequest(
            table=table_name("db.t"), index=index, reverse=reverse, at=at, format=common_pb2.DOCUMENT_FORMAT_JSON
        )
        found.append([row for reply in wire.documents.Scan(request) for row in reply.json_rows])
    pairs = wire.kv.Scan(kv_pb2.KvScanRequest(namespace="n", at=at))
    found.append([(pair.key, pair.value) for reply in pairs for pair in reply.pairs])
    return found


def refusal(call: Callable[[], Any]) -> tuple[str, Any]:
    """Return the refusal, with the field as a commit names it; or an empty text, and the answer."""
    try:
        return "", call()
    except grpc.RpcError as error:
        told = from_rpc_error(error)
        return f"{told.reason} {told.message()}".replace("at.own_writes", "operations"), None


@pytest.mark.parametrize("seed", range(3))
def test_a_read_over_own_writes_says_what_their_commit_comes_to(wire: Wire, seed: int) -> None:
    source = random.Random(seed)
    refusals = set()
    for _ in range(ROUNDS):
        operations = [operation(source) for _ in range(source.choice([1, 2, 3, 5, 8, 13, 120]))]
        refused, seen = refusal(lambda operations=operations: state(wire, common_pb2.ReadAt(own_writes=operations)))
        assert refusal(lambda operations=operations: wire.commit(*operations))[0] == refused
        assert not refused or seen is None
        if not refused:
            assert state(wire, common_pb2.ReadAt()) == seen
        refusals.add(refused.split(" ")[0])
    assert refusals > {"", "CONDITION_FAILED", "NOT_FOUND", "INVALID_ARGUMENT"}
