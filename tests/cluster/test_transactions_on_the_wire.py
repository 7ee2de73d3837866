"""A transaction over documents and pairs with nothing but raw stubs: what its reads see, what its commit finds."""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from cortado import errors
from cortado.proto.v1 import cluster_pb2, common_pb2, documents_pb2, kv_pb2, tables_pb2, transactions_pb2
from support.server_process import running_server
from support.wire import (
    Wire,
    delete_document,
    int_key,
    json_document,
    put_document,
    put_pair,
    refused,
    table_name,
    timestamp_of,
    update_document,
)

pytestmark = pytest.mark.process

Operation = common_pb2.Operation
JSON = common_pb2.DOCUMENT_FORMAT_JSON
SERIALIZABLE = transactions_pb2.ISOLATION_SERIALIZABLE
ABSENT, PRESENT = common_pb2.Condition(absent=True), common_pb2.Condition(present=True)
_NUMBERS = itertools.count(1)


@pytest.fixture(scope="module")
def wire(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Wire]:
    with running_server(tmp_path_factory.mktemp("transactions") / "data") as server:
        wire = Wire(server.endpoint)
        wire.tables.CreateDatabase(tables_pb2.CreateDatabaseRequest(database="shop"))
        yield wire
        assert "Traceback" not in server.log, server.log


@pytest.fixture
def items(wire: Wire) -> str:
    """A table of its own: ids 0 to 9, the number left of each, and a unique name."""
    name = f"items{next(_NUMBERS)}"
    wire.register(
        f"shop.{name}",
        {"name": "id", "type": "long"},
        {"name": "left", "type": "long"},
        {"name": "few", "type": "int", "default": 7},
        {"name": "maybe", "type": ["null", "long"], "default": None},
        {"name": "name", "type": ["null", "string"], "default": None},
    )
    wire.create_table(
        "shop",
        name,
        ["id"],
        tables_pb2.Index(name="by_left", parts=[tables_pb2.KeyPart(path="left")]),
        tables_pb2.Index(name="by_name", parts=[tables_pb2.KeyPart(path="name")], unique=True),
    )
    wire.commit(*(put_document(f"shop.{name}", {"id": i, "left": 10 * i, "name": f"n{i}"}) for i in range(10)))
    return f"shop.{name}"


@pytest.fixture
def namespace() -> str:
    return f"ns{next(_NUMBERS)}"


class Reads:
    """A transaction's reads: all of them at the timestamp of the first, with its own writes, keeping footprints."""

    def __init__(self, wire: Wire, *own_writes: Operation) -> None:
        self._wire = wire
        self._start: common_pb2.Timestamp | None = None
        self.own = list(own_writes)
        self.footprints: list[bytes] = []

    @property
    def start(self) -> common_pb2.Timestamp:
        assert self._start is not None, "nothing was read yet"
        return self._start

    @property
    def at(self) -> common_pb2.ReadAt:
        return common_pb2.ReadAt(timestamp=self._start, own_writes=self.own, footprint=True)

    def _take(self, reply: Any) -> Any:
        self._start = self._start or reply.header.timestamp
        assert reply.header.timestamp == self._start
        self.footprints.append(reply.footprint)
        return reply

    def document(self, table: str, key: int) -> Any:
        request = documents_pb2.GetDocumentRequest(table=table_name(table), key=int_key(key), at=self.at, format=JSON)
        found = self._take(self._wire.documents.Get(request)).found
        return json.loads(found.document.json) if found.HasField("document") else None

    def documents(self, table: str, *keys: int) -> list[Any]:
        request = documents_pb2.MultiGetRequest(
            table=table_name(table), keys=[int_key(key) for key in keys], at=self.at, format=JSON
        )
        found = self._take(self._wire.documents.MultiGet(request)).found
        return [json.loads(each.document.json) if each.HasField("document") else None for each in found]

    def scan(self, table: str, **fields: Any) -> list[Any]:
        request = documents_pb2.ScanRequest(table=table_name(table), at=self.at, format=JSON, **fields)
        return [json.loads(row) for reply in self._wire.documents.Scan(request) for row in self._take(reply).json_rows]

    def pair(self, namespace: str, key: bytes) -> bytes | None:
        reply = self._take(self._wire.kv.Get(kv_pb2.KvGetRequest(namespace=namespace, key=key, at=self.at)))
        return bytes(reply.pair.value) if reply.HasField("pair") else None

    def pairs(self, namespace: str, **fields: Any) -> list[bytes]:
        request = kv_pb2.KvScanRequest(namespace=namespace, at=self.at, **fields)
        return [pair.key for reply in self._wire.kv.Scan(request) for pair in self._take(reply).pairs]

    def commit(self, *more: Operation, **fields: Any) -> Any:
        """Serializable, with all footprints, unless ``fields`` say otherwise."""
        fields = {
            "start": self.start,
            "isolation": SERIALIZABLE,
            "footprints": self.footprints,
            "request_id": request_id(self._wire),
            **fields,
        }
        return self._wire.commit(*self.own, *more, **fields)


def request_id(wire: Wire) -> bytes:
    now = wire.cluster.Clock(cluster_pb2.ClockRequest()).now
    return bytes(timestamp_of(now)) + os.urandom(8)


def ids(rows: list[Any]) -> list[int]:
    return [row["id"] for row in rows]


def add(table: str, key: int, field: str, delta: int, **bounds: int) -> Operation:
    database, _, name = table.partition(".")
    message = common_pb2.DocumentAdd(
        database=database, table=name, key=int_key(key), field=field, delta=delta, **bounds
    )
    return Operation(add=message)


def add_pair(namespace: str, key: bytes, delta: int, **bounds: int) -> Operation:
    return Operation(add_pair=common_pb2.KvAdd(namespace=namespace, key=key, delta=delta, **bounds))


def check(table: str, key: int, condition: common_pb2.Condition) -> Operation:
    database, _, name = table.partition(".")
    return Operation(
        check=common_pb2.DocumentCheck(database=database, table=name, key=int_key(key), condition=condition)
    )


def check_pair(namespace: str, key: bytes, condition: common_pb2.Condition) -> Operation:
    return Operation(check_pair=common_pb2.KvCheck(namespace=namespace, key=key, condition=condition))


def delete_pair(namespace: str, key: bytes) -> Operation:
    return Operation(delete_pair=common_pb2.KvDelete(namespace=namespace, key=key))


# --- its reads ----------------------------------------------------------------------------------------------------


def test_documents_and_pairs_are_written_at_one_timestamp(wire: Wire, items: str, namespace: str) -> None:
    reads = Reads(wire)
    left = reads.document(items, 3)["left"]
    assert reads.pair(namespace, b"log") is None
    reads.own = [update_document(items, int_key(3), {"left": left - 1}), put_pair(namespace, b"log", b"3")]
    done = reads.commit()
    after = Reads(wire)
    assert (after.document(items, 3)["left"], after.pair(namespace, b"log")) == (29, b"3")
    at = common_pb2.ReadAt(timestamp=done.header.timestamp)
    found = wire.documents.Get(documents_pb2.GetDocumentRequest(table=table_name(items), key=int_key(3), at=at))
    pair = wire.kv.Get(kv_pb2.KvGetRequest(namespace=namespace, key=b"log", at=at)).pair
    assert found.found.etag == pair.etag == done.etag


def test_every_read_of_documents_sees_the_own_writes(wire: Wire, items: str) -> None:
    reads = Reads(
        wire,
        put_document(items, {"id": 4, "left": 1, "name": "four"}),
        put_document(items, {"id": 20, "left": 35, "name": "new"}),
        delete_document(items, int_key(2)),
        update_document(items, int_key(9), {"left": -5}),
        put_document(items, {"id": 21, "left": 36}),
        delete_document(items, int_key(21)),
    )
    assert reads.document(items, 4)["left"] == 1
    assert reads.document(items, 2) is reads.document(items, 21) is None
    assert [each and each["left"] for each in reads.documents(items, 20, 2, 9, 5)] == [35, None, -5, 50]
    assert ids(reads.scan(items)) == [0, 1, 3, 4, 5, 6, 7, 8, 9, 20]
    assert ids(reads.scan(items, reverse=True)) == [20, 9, 8, 7, 6, 5, 4, 3, 1, 0]
    assert ids(reads.scan(items, index="by_left")) == [9, 0, 4, 1, 3, 20, 5, 6, 7, 8]
    assert ids(reads.scan(items, index="by_left", reverse=True, limit=5)) == [8, 7, 6, 5, 20]
    assert ids(reads.scan(items, filter="left < 36", limit=4)) == [0, 1, 3, 4]
    one = common_pb2.Key(parts=[common_pb2.Value(string="four")])
    assert ids(reads.scan(items, index="by_name", range=common_pb2.KeyRange(prefix=one))) == [4]
    gone = common_pb2.Key(parts=[common_pb2.Value(string="n4")])
    assert reads.scan(items, index="by_name", range=common_pb2.KeyRange(prefix=gone)) == []
    # Other readers do not see it.
    assert ids(Reads(wire).scan(items)) == list(range(10))


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("index", ["", "by_left"])
def test_pages_with_tokens_are_those_of_a_scan_at_once(wire: Wire, items: str, index: str, reverse: bool) -> None:
    reads = Reads(wire, *(put_document(items, {"id": i, "left": 7 * i % 50}) for i in range(5, 30, 2)))
    reads.own.append(delete_document(items, int_key(6)))
    whole = ids(reads.scan(items, index=index, reverse=reverse))
    assert len(whole) == 19
    paged: list[int] = []
    token = b""
    for _ in range(20):
        request = documents_pb2.ScanRequest(
            table=table_name(items),
            index=index,
            reverse=reverse,
            page_size=3,
            page_token=token,
            at=reads.at,
            format=JSON,
        )
        replies = list(wire.documents.Scan(request))
        paged += [json.loads(row)["id"] for reply in replies for row in reply.json_rows]
        token = replies[-1].next_page_token
        if not token:
            break
    assert paged == whole


def test_every_read_of_pairs_sees_the_own_writes(wire: Wire, namespace: str) -> None:
    wire.commit(*(put_pair(namespace, b"%d" % i, b"old") for i in range(6)))
    reads = Reads(
        wire, put_pair(namespace, b"25", b"new"), delete_pair(namespace, b"3"), put_pair(namespace, b"4", b"x")
    )
    assert [reads.pair(namespace, key) for key in (b"25", b"3", b"4", b"5")] == [b"new", None, b"x", b"old"]
    assert reads.pairs(namespace) == [b"0", b"1", b"2", b"25", b"4", b"5"]
    assert reads.pairs(namespace, reverse=True, limit=3) == [b"5", b"4", b"25"]
    assert reads.pairs(namespace, range=kv_pb2.KvRange(prefix=b"2")) == [b"2", b"25"]
    pages: list[list[bytes]] = []
    token = b""
    while token or not pages:
        request = kv_pb2.KvScanRequest(namespace=namespace, page_size=2, page_token=token, at=reads.at)
        reply = wire.kv.ScanPage(request)
        pages.append([pair.key for pair in reply.pairs])
        token = reply.next_page_token
    assert pages == [[b"0", b"1"], [b"2", b"25"], [b"4", b"5"]]


def test_an_add_among_the_own_writes_shows_the_sum_at_the_start(wire: Wire, items: str, namespace: str) -> None:
    reads = Reads(wire, add(items, 3, "left", -4), add(items, 3, "left", -1), add_pair(namespace, b"n", 5))
    assert reads.document(items, 3)["left"] == 25
    assert reads.pair(namespace, b"n") == (5).to_bytes(8)
    assert ids(reads.scan(items, filter="left = 25")) == [3]


def test_a_read_of_a_transaction_stays_at_its_time_whatever_others_write(wire: Wire, items: str) -> None:
    reads = Reads(wire)
    reads.document(items, 1)
    wire.commit(update_document(items, int_key(1), {"left": 999}), delete_document(items, int_key(2)))
    reads.own.append(update_document(items, int_key(3), {"left": 1}))
    assert [each["left"] for each in reads.documents(items, 1, 2, 3)] == [10, 20, 1]
    assert ids(reads.scan(items)) == list(range(10))


# --- conflicts ----------------------------------------------------------------------------------------------------


def conflict(call: Callable[[], Any]) -> errors.WriteConflict:
    error = refused(call)
    assert isinstance(error, errors.WriteConflict), repr(error)
    return error


def test_a_key_that_was_written_since_is_a_conflict_of_writes(wire: Wire, items: str, namespace: str) -> None:
    reads = Reads(wire)
    reads.document(items, 1)
    other = wire.commit(update_document(items, int_key(1), {"left": 11}), put_pair(namespace, b"k", b"theirs"))
    own = update_document(items, int_key(1), {"left": 12}), put_pair(namespace, b"k", b"ours")
    for each in own:
        error = conflict(lambda each=each: reads.commit(each, isolation=0, footprints=[]))
        assert (error.kind, error.start_ts) == ("write", str(timestamp_of(reads.start)))
        assert error.conflict_ts == other.etag
        assert ("k" if each is own[1] else "1") in error.key
    assert Reads(wire).pair(namespace, b"k") == b"theirs"


def test_a_deleted_key_counts_as_written(wire: Wire, items: str, namespace: str) -> None:
    wire.commit(put_pair(namespace, b"k", b"v"))
    reads = Reads(wire)
    reads.document(items, 1)
    wire.commit(delete_document(items, int_key(1)), delete_pair(namespace, b"k"))
    for each in (put_document(items, {"id": 1, "left": 3}), put_pair(namespace, b"k", b"v")):
        assert conflict(lambda each=each: reads.commit(each, isolation=0, footprints=[])).kind == "write"


@pytest.mark.parametrize("isolation", [0, SERIALIZABLE])
def test_a_read_key_is_a_conflict_where_its_footprint_comes_along(
    wire: Wire, items: str, namespace: str, isolation: int
) -> None:
    reads = Reads(wire, put_pair(namespace, b"result", b"1"))
    reads.documents(items, 5, 77)
    other = wire.commit(put_document(items, {"id": 77, "left": 0}))
    error = conflict(lambda: reads.commit(isolation=isolation))
    assert (error.kind, error.conflict_ts) == ("read", other.etag)
    assert "77" in error.key
    if isolation == 0:
        # Write skew is permitted if nothing is validated.
        assert reads.commit(isolation=isolation, footprints=[]).etag


@pytest.mark.parametrize("change", ["put", "delete", "move"])
def test_a_phantom_in_a_range_is_a_conflict(wire: Wire, items: str, namespace: str, change: str) -> None:
    reads = Reads(wire, put_pair(namespace, b"result", b"1"))
    few = common_pb2.KeyRange(end=int_key(25))
    assert ids(reads.scan(items, index="by_left", range=few)) == [0, 1, 2]
    operation = {
        "put": put_document(items, {"id": 50, "left": 24}),
        "delete": delete_document(items, int_key(1)),
        "move": update_document(items, int_key(2), {"left": 500}),
    }[change]
    other = wire.commit(operation)
    error = conflict(reads.commit)
    assert error.kind in ("read", "range")
    assert error.conflict_ts == other.etag


def test_a_row_that_the_filter_left_out_is_part_of_what_was_read(wire: Wire, items: str, namespace: str) -> None:
    reads = Reads(wire, put_pair(namespace, b"result", b"1"))
    found = reads.scan(items, index="by_left", range=common_pb2.KeyRange(end=int_key(35)), filter="few = 8")
    assert found == []
    wire.commit(update_document(items, int_key(2), {"few": 8}))
    assert conflict(reads.commit).kind == "read"


def test_what_lies_behind_the_last_row_of_a_limit_is_no_conflict(wire: Wire, items: str, namespace: str) -> None:
    reads = Reads(wire, put_pair(namespace, b"result", b"1"))
    assert ids(reads.scan(items, limit=3)) == [0, 1, 2]
    assert ids(reads.scan(items, index="by_left", reverse=True, limit=2)) == [9, 8]
    wire.commit(put_document(items, {"id": 3, "left": 31}), put_document(items, {"id": 44, "left": 44}))
    assert reads.commit().etag


def test_what_it_has_not_touched_is_no_conflict(wire: Wire, items: str, namespace: str) -> None:
    reads = Reads(wire, put_pair(namespace, b"mine", b"1"))
    reads.document(items, 1)
    reads.pairs(namespace, range=kv_pb2.KvRange(start=b"a", end=b"n"))
    wire.commit(update_document(items, int_key(2), {"left": 3}), put_pair(namespace, b"other", b"1"))
    assert reads.commit().etag


def test_own_writes_in_a_range_that_was_read_are_no_conflict(wire: Wire, items: str) -> None:
    reads = Reads(wire)
    reads.scan(items)
    reads.own.append(put_document(items, {"id": 30, "left": 3}))
    reads.scan(items, index="by_left")
    assert reads.commit().etag


def test_a_refusal_is_final_where_it_could_be_seen_and_a_conflict_where_not(wire: Wire, items: str) -> None:
    reads = Reads(wire)
    reads.document(items, 1)
    taken = put_document(items, {"id": 40, "left": 1, "name": "n5"})
    late = put_document(items, {"id": 41, "left": 1, "name": "late"})
    assert isinstance(refused(lambda: reads.commit(taken)), errors.UniqueViolation)
    assert isinstance(refused(lambda: reads.commit(check(items, 5, ABSENT))), errors.ConditionFailed)
    wire.commit(put_document(items, {"id": 42, "left": 1, "name": "late"}))
    assert conflict(lambda: reads.commit(late)).kind == "write"
    assert conflict(lambda: reads.commit(check(items, 42, ABSENT))).kind == "write"
    for _ in range(2):
        assert isinstance(refused(lambda: reads.commit(taken)), errors.UniqueViolation)


# --- one effect ----------------------------------------------------------------------------------------------------


def test_a_start_needs_a_request_id(wire: Wire, items: str, namespace: str) -> None:
    reads = Reads(wire, put_pair(namespace, b"k", b"v"))
    reads.document(items, 1)
    error = refused(lambda: reads.commit(request_id=b""))
    assert isinstance(error, errors.InvalidArgument)
    assert error.field == "request_id"
    assert reads.pair(namespace, b"x") is None


def test_a_retried_commit_has_one_effect_and_the_same_reply(wire: Wire, items: str, namespace: str) -> None:
    reads = Reads(wire, add(items, 1, "left", 5), add_pair(namespace, b"n", 2))
    reads.document(items, 2)
    once = request_id(wire)
    first = reads.commit(request_id=once)
    again = [reads.commit(request_id=once) for _ in range(3)]
    assert list(first.sums) == [15, 2]
    assert again == [first] * 3
    assert Reads(wire).document(items, 1)["left"] == 15
    # After any later write: the retry is recognised before it would conflict with that write.
    wire.commit(update_document(items, int_key(2), {"left": 0}))
    assert reads.commit(request_id=once) == first
    error = refused(lambda: reads.commit(put_pair(namespace, b"other"), request_id=once))
    assert isinstance(error, errors.InvalidArgument)
    assert error.field == "request_id"


def test_operations_count_in_their_order_and_a_key_may_come_many_times(wire: Wire, items: str, namespace: str) -> None:
    done = wire.commit(
        put_pair(namespace, b"k", b"1"),
        check_pair(namespace, b"k", common_pb2.Condition(value=b"1")),
        delete_pair(namespace, b"k"),
        check_pair(namespace, b"k", ABSENT),
        add_pair(namespace, b"k", 7),
        add_pair(namespace, b"k", -2),
        put_document(items, {"id": 60, "left": 1, "name": "a"}),
        update_document(items, int_key(60), {"name": "b"}),
        put_document(items, {"id": 61, "left": 1, "name": "a"}),
        delete_document(items, int_key(60)),
        check(items, 60, ABSENT),
        check(items, 61, PRESENT),
        add(items, 61, "few", 1),
    )
    assert list(done.sums) == [7, 5, 8]
    after = Reads(wire)
    assert after.pair(namespace, b"k") == (5).to_bytes(8)
    assert [each and each["name"] for each in after.documents(items, 60, 61)] == [None, "a"]
    (problems,) = {
        len(reply.problems)
        for reply in wire.tables.CheckTable(tables_pb2.CheckTableRequest(database="shop", name=items.split(".")[1]))
    }
    assert problems == 0


# --- adds and checks -----------------------------------------------------------------------------------------------

ADDS: dict[str, tuple[Callable[[str], Operation], type[errors.CortadoError], str]] = {
    "below a bound": (
        lambda t: add(t, 1, "left", -11, min=0),
        errors.OutOfBounds,
        "would be -1, and must be at least 0",
    ),
    "above a bound": (
        lambda t: add(t, 1, "left", 1, max=10),
        errors.OutOfBounds,
        "would be 11, and must be at most 10",
    ),
    "above an int": (lambda t: add(t, 1, "few", 2**31), errors.OutOfBounds, "must be at most 2147483647"),
    "above a long": (lambda t: add(t, 1, "left", 2**63 - 1), errors.OutOfBounds, "at most 9223372036854775807"),
    "below a long": (
        lambda t: add(t, 0, "left", -(2**63), min=-5),
        errors.OutOfBounds,
        "would be -9223372036854775808, and must be at least -5",
    ),
    "bounds that leave nothing": (
        lambda t: add(t, 1, "left", 1, min=5, max=4),
        errors.InvalidArgument,
        "operations[0].add.min: must not be above max, 4 (got 5)",
    ),
    "bounds beyond the type": (
        lambda t: add(t, 1, "few", 1, min=2**40),
        errors.InvalidArgument,
        "operations[0].min: must not be above the max of 2147483647 (got 1099511627776)",
    ),
    "a null": (lambda t: add(t, 1, "maybe", 1), errors.InvalidArgument, "operations[0].field: maybe is null"),
    "a text": (lambda t: add(t, 1, "name", 1), errors.InvalidArgument, "operations[0].field: name of table"),
    "a field that is not there": (lambda t: add(t, 1, "nix", 1), errors.NotFound, "no field nix"),
    "no field": (lambda t: add(t, 1, "", 1), errors.CortadoError, "field"),
    "a part of the key": (lambda t: add(t, 1, "id", 1), errors.InvalidArgument, "id"),
    "a document that is not there": (lambda t: add(t, 99, "left", 1), errors.NotFound, "no document"),
    "a table that is not there": (lambda t: add("shop.nix", 1, "left", 1), errors.NotFound, "no table shop.nix"),
    "a document that must be there": (
        lambda t: check(t, 99, PRESENT),
        errors.ConditionFailed,
        "expected present, found absent",
    ),
    "an etag that is another's": (
        lambda t: check(t, 1, common_pb2.Condition(etag="0.1.0")),
        errors.ConditionFailed,
        "expected 0.1.0, found ",
    ),
    "a check of nothing": (
        lambda t: check(t, 1, common_pb2.Condition()),
        errors.CortadoError,
        "operations[0].check.condition: must",
    ),
    "a check of a value of a document": (
        lambda t: check(t, 1, common_pb2.Condition(value=b"x")),
        errors.InvalidArgument,
        "operations[0].check.condition.value: is a condition of the key-value API",
    ),
}


@pytest.mark.parametrize("what", ADDS)
def test_an_add_or_a_check_that_cannot_be_is_one_precise_error(wire: Wire, items: str, what: str) -> None:
    operation, kind, message = ADDS[what]
    before = wire.cluster.Status(cluster_pb2.StatusRequest()).last_index
    error = refused(lambda: wire.commit(operation(items), put_document(items, {"id": 70, "left": 0})))
    assert isinstance(error, kind), repr(error)
    assert message in error.message()
    assert wire.cluster.Status(cluster_pb2.StatusRequest()).last_index == before


def test_adds_reach_the_bounds_of_their_types(wire: Wire, items: str, namespace: str) -> None:
    done = wire.commit(
        add(items, 0, "left", 2**63 - 1),
        add(items, 1, "few", -(2**31) - 7),
        update_document(items, int_key(2), {"maybe": 3}),
        add(items, 2, "maybe", 4, min=7, max=7),
        add_pair(namespace, b"n", -(2**63)),
        add_pair(namespace, b"n", 2**63 - 1, max=-1),
    )
    assert list(done.sums) == [2**63 - 1, -(2**31), 7, -(2**63), -1]
    assert isinstance(refused(lambda: wire.commit(add_pair(namespace, b"n", -(2**63)))), errors.OutOfBounds)
    wire.commit(put_pair(namespace, b"text", b"no counter"))
    error = refused(lambda: wire.commit(put_pair(namespace, b"k"), add_pair(namespace, b"text", 1)))
    assert isinstance(error, errors.InvalidArgument)
    assert error.message().startswith("operations[1].key: holds 10 bytes, a counter has 8")
    assert Reads(wire).pair(namespace, b"k") is None


def test_an_add_is_no_conflict_with_other_writes(wire: Wire, items: str) -> None:
    reads = Reads(wire, add(items, 1, "left", 1, min=0))
    reads.document(items, 2)
    wire.commit(update_document(items, int_key(1), {"left": 100}))
    assert list(reads.commit().sums) == [101]
    # Unless its document was read, too.
    reads = Reads(wire, add(items, 1, "left", 1))
    assert reads.document(items, 1)["left"] == 102
    wire.commit(add(items, 1, "left", 1))
    assert conflict(reads.commit).kind == "read"
    again = json_document({"id": 1, "left": 0})
    wire.documents.Put(documents_pb2.PutDocumentRequest(table=table_name(items), document=again))
