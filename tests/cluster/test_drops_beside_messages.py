"""Messages of puts, commits and reads, with drops of their namespace and table between the calls, from several callers.

Each acknowledged write and drop has a timestamp. So their order is known, and a dictionary tells the state at each
time: before each drop, behind it, and at each read. No write of a new life is lost, and none of an old one comes
back."""

from __future__ import annotations

import json
import os
import random
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from cortado.errors import AlreadyExists, CortadoError, NotFound, ResourceExhausted
from cortado.proto.v1 import calls_pb2, common_pb2, documents_pb2, kv_pb2, tables_pb2, transactions_pb2
from cortado.store.client import Client
from cortado.store.clock.timestamp import Timestamp
from cortado.store.server.convert import timestamp_value
from cortado.store.wire.rpc_errors import from_status
from support.message_callers import COMMIT, KV, Stream
from support.server_process import running_server

pytestmark = [pytest.mark.long, pytest.mark.process]

SEED = int(os.environ.get("DROPS_SEED", "1"))
CALLERS, MESSAGES = 4, 50
KEYS = 30
SCHEMA = {
    "type": "record",
    "name": "R",
    "fields": [{"name": "id", "type": "string"}, {"name": "v", "type": "string"}],
}
PAIRS, ROWS = "pairs", "rows"
TABLES = "cortado.v1.Tables/"
DROPS: dict[str, Any] = {
    KV + "DropNamespace": kv_pb2.DropNamespaceResponse,
    TABLES + "DropTable": tables_pb2.DropTableResponse,
    TABLES + "TruncateTable": tables_pb2.TruncateTableResponse,
}
"""The reply of each method that drops."""
REFUSALS = (NotFound, AlreadyExists, ResourceExhausted)
"""There is no table, or there is one; the namespace changed while it was to be dropped."""


@dataclass
class Event:
    """An acknowledged call: ``values`` were written, or read, at ``ts``; a drop has none."""

    ts: Timestamp
    of: str
    kind: str
    values: Mapping[str, str | None]


class Caller(threading.Thread):
    def __init__(self, endpoint: str, number: int, begun: Timestamp) -> None:
        super().__init__(daemon=True)
        self._stream = Stream(endpoint)
        self._name, self._begun = number, bytes(begun)
        self._random = random.Random(f"{SEED}/{number}")
        self._values = 0
        self.events: list[Event] = []
        self.problem: BaseException | None = None

    def run(self) -> None:
        try:
            for _ in range(MESSAGES):
                self._message()
        except BaseException as problem:
            self.problem = problem
        finally:
            self._stream.close()

    def _message(self) -> None:
        asked = {self._stream.number(): self._call() for _ in range(self._random.choice((2, 8, 30, 80)))}
        self._stream.send(
            [
                calls_pb2.Call(id=number, method=method, request=request.SerializeToString())
                for number, (method, request, _, _) in asked.items()
            ]
        )
        assert self._stream.wait(asked)
        for number, (method, _, of, values) in asked.items():
            reply = self._stream.replies.pop(number)
            if reply.status:
                refusal: CortadoError = from_status(reply.status)
                assert isinstance(refusal, REFUSALS), refusal
                assert of == ROWS or method == KV + "DropNamespace", refusal
            else:
                self._answered(method, reply.reply, of, values)

    def _call(self) -> tuple[str, Any, str, dict[str, str | None]]:
        """Return a method, a request, the written state, and the values."""
        source, own = self._random, self._begun + self._random.randbytes(8)
        self._values += 1
        key, value = f"k{source.randrange(KEYS)}", f"{self._name}-{self._values}"
        pair = {"namespace": "n", "key": key.encode()}
        chosen = source.random()
        if chosen < 0.3:
            return KV + "Put", kv_pb2.KvPutRequest(**pair, value=value.encode(), request_id=own), PAIRS, {key: value}
        if chosen < 0.5:
            commit = transactions_pb2.CommitRequest(request_id=own)
            values = {f"k{source.randrange(KEYS)}": source.choice((value, None)) for _ in range(source.randrange(1, 5))}
            for each, put in values.items():
                pair = {"namespace": "n", "key": each.encode()}
                if put is None:
                    commit.operations.add(delete_pair=common_pb2.KvDelete(**pair))
                else:
                    commit.operations.add(put_pair=common_pb2.KvPut(**pair, value=put.encode()))
            return COMMIT, commit, PAIRS, values
        if chosen < 0.8:
            document = common_pb2.Document(json=json.dumps({"id": key, "v": value}))
            table = documents_pb2.TableName(database="d", table="t")
            put_row = documents_pb2.PutDocumentRequest(table=table, document=document, request_id=own)
            return "cortado.v1.Documents/Put", put_row, ROWS, {key: value}
        if chosen < 0.96:
            keys = [f"k{number}" for number in source.sample(range(KEYS), source.choice((2, 10, 20)))]
            read = kv_pb2.KvMultiGetRequest(namespace="n", keys=[each.encode() for each in keys])
            return KV + "MultiGet", read, PAIRS, dict.fromkeys(keys)
        name = {"database": "d", "name": "t"}
        kinds: Sequence[tuple[str, Any, str]] = [
            (KV + "DropNamespace", kv_pb2.DropNamespaceRequest(namespace="n", request_id=own), PAIRS),
            (TABLES + "DropTable", tables_pb2.DropTableRequest(**name, request_id=own), ROWS),
            (TABLES + "TruncateTable", tables_pb2.TruncateTableRequest(**name, request_id=own), ROWS),
            (TABLES + "CreateTable", new_table(own), ROWS),
            (TABLES + "CreateTable", new_table(own), ROWS),
        ]
        return *source.choice(kinds), {}

    def _answered(self, method: str, reply: bytes, of: str, values: dict[str, str | None]) -> None:
        if method == KV + "MultiGet":
            found = kv_pb2.KvMultiGetResponse.FromString(reply)
            read = {pair.key.decode(): pair.value.decode() if pair.etag else None for pair in found.pairs}
            self.events.append(Event(timestamp_value(found.header.timestamp), of, "read", read))
        elif values:
            # Puts and commits have their etag in one place.
            etag = kv_pb2.KvPutResponse.FromString(reply).etag
            self.events.append(Event(Timestamp.parse(etag), of, "write", values))
        elif method in DROPS:
            ts = timestamp_value(DROPS[method].FromString(reply).dropped.dropped)
            self.events.append(Event(ts, of, "drop", {}))


def new_table(request_id: bytes) -> tables_pb2.CreateTableRequest:
    key = [tables_pb2.KeyPart(path="id")]
    return tables_pb2.CreateTableRequest(database="d", name="t", subject="d.t", key=key, request_id=request_id)


def stored(client: Client, of: str, at: Timestamp) -> dict[str, str]:
    if of == PAIRS:
        return {pair.key.decode(): pair.value.decode() for pair in client.kv("n").scan(at=at)}
    try:
        return {row.value["id"]: row.value["v"] for row in client.table("d.t").scan(at=at)}
    except NotFound:
        return {}


def check(client: Client, events: Sequence[Event]) -> None:
    states: dict[str, dict[str, str]] = {PAIRS: {}, ROWS: {}}
    for event in sorted(events, key=lambda each: (each.ts, each.kind == "read")):
        state = states[event.of]
        match event.kind:
            case "read":
                assert {key: state.get(key) for key in event.values} == event.values, event
            case "write":
                state.update({key: value for key, value in event.values.items() if value is not None})
                for key in [key for key, value in event.values.items() if value is None]:
                    state.pop(key, None)
            case _:
                assert stored(client, event.of, event.ts.previous()) == state, event
                assert stored(client, event.of, event.ts) == {}, event
                state.clear()
    for of, state in states.items():
        assert stored(client, of, client.now()) == state


def test_no_write_of_a_new_life_is_lost_and_none_of_an_old_one_comes_back(tmp_path: Path) -> None:
    """``DROPS_SEED`` draws the calls."""
    with running_server(tmp_path / "data") as server, Client(server.endpoint, timeout_s=60) as client:
        client.create_database("d")
        client.schemas.register("d.t", json.dumps(SCHEMA))
        client.create_table("d.t", ["id"])
        begun = client.now()
        callers = [Caller(server.endpoint, number, begun) for number in range(CALLERS)]
        for caller in callers:
            caller.start()
        for caller in callers:
            caller.join(240)
        assert [caller.problem for caller in callers] == [None] * CALLERS, f"DROPS_SEED={SEED}"
        events = [event for caller in callers for event in caller.events]
        assert {(each.of, each.kind) for each in events} >= {(PAIRS, "read"), (PAIRS, "drop"), (ROWS, "drop")}
        check(client, events)
