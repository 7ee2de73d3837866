"""Transactions of hostile or mistaken callers: one precise error each, nothing half done, and the server well
afterwards."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from struct import pack
from typing import Any

import pytest

from cortado import errors
from cortado.proto.internal import footprint_pb2
from cortado.proto.v1 import cluster_pb2, common_pb2, documents_pb2, kv_pb2, tables_pb2, transactions_pb2
from cortado.store.keys.keyspace import kv_key, kv_range
from cortado.store.keys.packing import join
from cortado.store.transactions.footprint import FORMAT
from support.server_process import ServerProcess, running_server, wait_until
from support.wire import (
    Wire,
    delete_document,
    int_key,
    put_document,
    put_pair,
    refused,
    table_name,
    timestamp_of,
    update_document,
)

pytestmark = pytest.mark.process

Operation = common_pb2.Operation
Timestamp = common_pb2.Timestamp
RECENT_ENTRIES = 4


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """It keeps the changes of four entries in memory: what began before them is searched for."""
    folder = tmp_path_factory.mktemp("hostile")
    with running_server(folder / "data", "--limit.watch-recent-entries-max", str(RECENT_ENTRIES)) as server:
        yield server
        assert "Traceback" not in server.log, server.log
        assert "defect" not in server.log, server.log


@pytest.fixture(scope="module")
def wire(server: ServerProcess) -> Wire:
    wire = Wire(server.endpoint)
    wire.tables.CreateDatabase(tables_pb2.CreateDatabaseRequest(database="db"))
    wire.register("db.t", {"name": "a", "type": "long"}, {"name": "b", "type": "string"})
    index = tables_pb2.Index(name="by_b", parts=[tables_pb2.KeyPart(path="b")], unique=True)
    wire.create_table("db", "t", ["a"], index)
    wire.commit(put_document("db.t", {"a": 1, "b": "one"}), put_pair("n", b"k", b"v"))
    return wire


@pytest.fixture(autouse=True)
def well_afterwards(wire: Wire) -> Iterator[None]:
    yield
    assert wire.cluster.Status(cluster_pb2.StatusRequest()).state == "serving"
    wire.commit(put_pair("well", b"k", b"v"), update_document("db.t", int_key(1), {"b": "one"}))
    for reply in wire.tables.CheckTable(tables_pb2.CheckTableRequest(database="db", name="t")):
        assert not reply.problems


def now(wire: Wire) -> common_pb2.Timestamp:
    return wire.kv.Get(kv_pb2.KvGetRequest(namespace="n", key=b"k")).header.timestamp  # type: ignore[no-any-return]


def request_id(wire: Wire) -> bytes:
    return bytes(timestamp_of(wire.cluster.Clock(cluster_pb2.ClockRequest()).now)) + os.urandom(8)


def footprint(
    of: Sequence[bytes] = (), ranges: Sequence[tuple[bytes, bytes]] = (), version: int = FORMAT, **fields: bytes
) -> bytes:
    """As a read returns it, but for ``fields``."""
    joined, key_lengths = join(of)
    bounds, bound_lengths = join([bound for each in ranges for bound in each])
    message = footprint_pb2.Footprint(
        format=version, keys=joined, key_lengths=key_lengths, bounds=bounds, bound_lengths=bound_lengths
    )
    message.MergeFrom(footprint_pb2.Footprint(**fields))
    return message.SerializeToString()


def commit(wire: Wire, *operations: Operation, **fields: Any) -> Any:
    """Commit a transaction that began now, unless ``fields`` say otherwise."""
    fields = {"start": now(wire), "request_id": request_id(wire), **fields}
    return wire.commit(*(operations or [put_pair("n", b"new", b"v")]), **fields)


def last_index(wire: Wire) -> int:
    return int(wire.cluster.Status(cluster_pb2.StatusRequest()).last_index)


# --- starts and footprints -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Refused:
    fields: Callable[[], dict[str, Any]]
    kind: type[errors.CortadoError]
    message: str


def started(**parts: int) -> Callable[[], dict[str, Any]]:
    return lambda: {"start": Timestamp(**parts)}


def footprints(*encoded: Callable[[], bytes]) -> Callable[[], dict[str, Any]]:
    return lambda: {"footprints": [each() for each in encoded]}


NONE = "footprints[0]: is no footprint that a read returned"
K, M = kv_key("n", b"k"), b"m\x01\x02"
REFUSED: dict[str, Refused] = {
    "a start in the future": Refused(
        started(wall_ms=1 << 47), errors.TimestampInFuture, "start: is a timestamp that no"
    ),
    "a start of the next epoch": Refused(started(epoch=1), errors.TimestampInFuture, "start: is a timestamp that no"),
    "a start of no epoch": Refused(
        started(epoch=70_000), errors.InvalidArgument, "start.epoch: must be between 0 and 65535 (got 70000)"
    ),
    "a start of no wall time": Refused(
        started(wall_ms=1 << 50), errors.InvalidArgument, "start.wall_ms: must be between"
    ),
    "an isolation of its own": Refused(
        lambda: {"isolation": 7}, errors.InvalidArgument, "isolation: is not known to this server (got 7)"
    ),
    "a request id of two bytes": Refused(
        lambda: {"request_id": b"xx"}, errors.InvalidArgument, "request_id: must have 20 bytes"
    ),
    "an empty footprint": Refused(footprints(lambda: b""), errors.InvalidArgument, "footprints[0]: has format 0"),
    "garbage for a footprint": Refused(footprints(lambda: b"\xff\xfe garbage"), errors.InvalidArgument, NONE),
    "a footprint of another format": Refused(
        footprints(lambda: footprint([K]), lambda: footprint([K], version=9)),
        errors.InvalidArgument,
        "footprints[1]: has format 9, this server knows 2",
    ),
    "lengths that contradict the keys": Refused(
        footprints(lambda: footprint([K], keys=K + b"more")), errors.InvalidArgument, NONE
    ),
    "lengths of three bytes": Refused(footprints(lambda: footprint(key_lengths=b"abc")), errors.InvalidArgument, NONE),
    "half a range": Refused(
        footprints(lambda: footprint(bounds=K, bound_lengths=pack("<I", len(K)))), errors.InvalidArgument, NONE
    ),
    "a range backwards": Refused(
        footprints(lambda: footprint(ranges=[(kv_key("n", b"z"), K)])), errors.InvalidArgument, NONE
    ),
    "a range over all spaces": Refused(footprints(lambda: footprint(ranges=[(K, b"u")])), errors.InvalidArgument, NONE),
    "a range of the cluster's state": Refused(
        footprints(lambda: footprint(ranges=[(M, b"n")])), errors.InvalidArgument, NONE
    ),
    "a key of the cluster's state": Refused(footprints(lambda: footprint([M])), errors.InvalidArgument, NONE),
    "a key that is too long": Refused(footprints(lambda: footprint([K + bytes(600)])), errors.InvalidArgument, NONE),
    "no key": Refused(footprints(lambda: footprint([b""])), errors.InvalidArgument, NONE),
    "a million keys": Refused(
        footprints(lambda: footprint([b"k"] * 1_000_000)),
        errors.TooLarge,
        "footprints[0]: a transaction may rest on 20000 keys (got 1000000)",
    ),
    "half a million ranges": Refused(
        footprints(lambda: footprint(ranges=[(b"k", b"k")] * 500_000)),
        errors.TooLarge,
        "footprints[0]: a transaction may rest on 1000 ranges (got 500000)",
    ),
    "too many keys in many footprints": Refused(
        lambda: {"footprints": [footprint([kv_key("n", b"%d-%d" % (f, i)) for i in range(9_000)]) for f in range(3)]},
        errors.TooLarge,
        "footprints: a transaction may rest on 20000 keys (got 27000)",
    ),
    "a footprint without a start": Refused(
        lambda: {"start": None, "footprints": [footprint([K])]},
        errors.InvalidArgument,
        "footprints: must be empty without a start",
    ),
}


@pytest.mark.parametrize("what", REFUSED)
def test_a_start_or_a_footprint_of_nobodys_is_refused(wire: Wire, what: str) -> None:
    case = REFUSED[what]
    fields, before = case.fields(), last_index(wire)
    error = refused(lambda: commit(wire, **fields))
    assert isinstance(error, case.kind), repr(error)
    assert case.message in error.message()
    assert last_index(wire) == before


def test_a_start_at_the_beginning_of_time_conflicts_with_what_is_there_and_with_nothing_else(wire: Wire) -> None:
    for start in (Timestamp(), Timestamp(wall_ms=1)):
        error = refused(lambda start=start: commit(wire, put_pair("n", b"k", b"x"), start=start))
        assert isinstance(error, errors.WriteConflict)
        assert commit(wire, put_pair("nobody-was-here", b"%d" % start.wall_ms), start=start).etag


def test_a_footprint_many_times_is_that_footprint(wire: Wire) -> None:
    start = now(wire)
    one = footprint([K] * 100, [kv_range("n")] * 100)
    assert commit(wire, put_pair("other", b"k"), start=start, footprints=[one] * 200).etag
    wire.commit(put_pair("n", b"k", b"v"))
    error = refused(lambda: commit(wire, put_pair("other", b"k"), start=start, footprints=[one] * 200))
    assert isinstance(error, errors.WriteConflict)


# --- commits older than memory -------------------------------------------------------------------------------------


def forget(wire: Wire) -> None:
    """Everything that was written before is in memory no more: neither kept there, nor waiting to be applied."""
    for i in range(2 * RECENT_ENTRIES):
        wire.commit(put_pair("filler", b"%d" % i))
    written = last_index(wire)
    wait_until(
        lambda: wire.cluster.Status(cluster_pb2.StatusRequest()).applied_index >= written, "what was written is applied"
    )


@pytest.mark.parametrize("change", ["", "put", "delete", "beside"])
@pytest.mark.parametrize("rests_on", ["a range", "a few keys", "many keys", "many ranges"])
@pytest.mark.parametrize("count", [1, 150])
def test_what_memory_does_not_reach_back_to_is_searched(wire: Wire, change: str, rests_on: str, count: int) -> None:
    names = [b"%05d" % i for i in range(900)]
    namespace = f"searched{random.getrandbits(40)}"
    wire.commit(*(put_pair(namespace, each, b"v") for each in names))
    start = now(wire)
    keys = [kv_key(namespace, each) for each in names]
    rests = {
        "a range": footprint(ranges=[(keys[0], kv_range(namespace)[1])]),
        "a few keys": footprint(keys[-5:]),
        "many keys": footprint(keys),
        "many ranges": footprint(
            ranges=[(each, kv_key(namespace, name + b"\0")) for each, name in zip(keys, names, strict=True)]
        ),
    }[rests_on]
    touched = common_pb2.KvDelete(namespace=namespace, key=names[-1])
    changed = {
        "put": put_pair(namespace, names[-1], b"w"),
        "delete": Operation(delete_pair=touched),
        "beside": put_pair(namespace + "x", names[-1], b"w"),
    }
    other = wire.commit(changed[change]) if change else None
    forget(wire)
    writes = [put_pair("mine", b"%d" % i, namespace.encode()) for i in range(count)]
    request = {"start": start, "footprints": [rests], "isolation": transactions_pb2.ISOLATION_SERIALIZABLE}
    if change in ("put", "delete"):
        assert other is not None
        error = refused(lambda: commit(wire, *writes, **request))
        assert isinstance(error, errors.WriteConflict)
        assert error.kind == ("range" if "range" in rests_on else "read")
        assert error.conflict_ts == other.etag
        assert names[-1].decode() in error.key
    else:
        assert commit(wire, *writes, **request).etag


def test_keys_that_are_written_are_searched_however_they_came(wire: Wire) -> None:
    start = now(wire)
    names = [b"%05d" % i for i in range(500)]
    other = wire.commit(put_pair("packed", names[-1], b"theirs"))
    forget(wire)
    error = refused(lambda: commit(wire, packed("packed", names, [b"ours"] * 500), start=start))
    assert isinstance(error, errors.WriteConflict)
    assert (error.kind, error.conflict_ts) == ("write", other.etag)
    assert commit(wire, packed("packed", names[:-1], [b"ours"] * 499), start=start).etag


# --- operations ----------------------------------------------------------------------------------------------------


def packed(
    namespace: str, names: Sequence[bytes], given: Sequence[bytes], removed: Sequence[int] = (), **fields: bytes
) -> Operation:
    joined_keys, key_lengths = join(names)
    joined_values, value_lengths = join(given)
    message = common_pb2.KvPackedOperations(
        namespace=namespace,
        keys=joined_keys,
        key_lengths=key_lengths,
        values=joined_values,
        value_lengths=value_lengths,
        deletes=pack(f"<{len(removed)}I", *removed),
    )
    message.MergeFrom(common_pb2.KvPackedOperations(**fields))
    return Operation(packed_pairs=message)


PACKED: dict[str, tuple[Callable[[], Operation], str]] = {
    "lengths that say more": (
        lambda: packed("n", [b"a"], [b"v"], key_lengths=pack("<I", 7)),
        "operations[1].packed_pairs.keys: there are 1 bytes, and the lengths say 7",
    ),
    "lengths that say four billion": (
        lambda: packed("n", [b"a"], [b"v"], value_lengths=pack("<I", (1 << 32) - 1)),
        "operations[1].packed_pairs.values: there are 1 bytes, and the lengths say 4294967295",
    ),
    "half a length": (
        lambda: packed("n", [b"a"], [b"v"], key_lengths=b"\1\0"),
        "operations[1].packed_pairs.keys: 2 bytes of lengths are not a multiple of 4",
    ),
    "a value too many": (
        lambda: packed("n", [b"a"], [b"v", b"w"]),
        "operations[1].packed_pairs.value_lengths: are of 2 values, and there are 1 keys",
    ),
    "deletes that fall": (
        lambda: packed("n", [b"a", b"b"], [b"", b""], [1, 0]),
        "operations[1].packed_pairs.deletes: must rise: 0 follows 1",
    ),
    "a delete twice": (
        lambda: packed("n", [b"a", b"b"], [b"", b""], [1, 1]),
        "operations[1].packed_pairs.deletes: must rise: 1 follows 1",
    ),
    "a delete of nobody": (
        lambda: packed("n", [b"a"], [b""], [1]),
        "operations[1].packed_pairs.deletes: names an operation that is not there: there are 1 (got 1)",
    ),
    "a delete with a value": (
        lambda: packed("n", [b"a"], [b"v"], [0]),
        "operations[1].packed_pairs.deletes: names an operation that has a value (got 0)",
    ),
    "half a place": (
        lambda: packed("n", [b"a"], [b""], deletes=b"\0\0"),
        "operations[1].packed_pairs.deletes: must have 4 bytes a place (got 2 bytes)",
    ),
    "an empty key among them": (
        lambda: packed("n", [b"a", b"", b"c"], [b"1", b"2", b"3"]),
        "operations[2].key: must not be empty",
    ),
    "a value too large among them": (
        lambda: packed("n", [b"a", b"b"], [b"", bytes((1 << 20) + 1)]),
        "operations[2].value: must have at most 1048576 bytes (got 1048577 bytes)",
    ),
    "no namespace": (lambda: packed("", [b"a"], [b"v"]), "operations[1].namespace: must not be empty"),
}


@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize("what", PACKED)
def test_packed_pairs_that_contradict_themselves_are_refused(wire: Wire, what: str, own: bool) -> None:
    make, message = PACKED[what]
    operations = [put_pair("n", b"half"), make()]
    before = last_index(wire)
    if own:
        error = refused(lambda: get(wire, operations))
        message = f"at.own_writes{message.removeprefix('operations')}"
    else:
        error = refused(lambda: wire.commit(*operations))
    assert isinstance(error, errors.InvalidArgument), repr(error)
    assert message in error.message()
    assert last_index(wire) == before


def odd_operations(count: int, seed: int) -> list[Operation]:
    """Return operations of every kind and of odd sizes; all of them together are allowed."""
    source, operations = random.Random(seed), []
    for i in range(count):
        size = source.choice([0, 1, 3, 17, 100, 391])
        operations.append(
            [
                put_pair("odd", b"%d" % source.randrange(3_000) + b"x" * size, source.randbytes(size)),
                Operation(delete_pair=common_pb2.KvDelete(namespace="odd", key=b"%d" % source.randrange(3_000))),
                Operation(add_pair=common_pb2.KvAdd(namespace="counts", key=b"%d" % source.randrange(9), delta=1)),
                put_document("db.t", {"a": 1_000 + i, "b": f"{seed} {i} " + "y" * size}),
                delete_document("db.t", int_key(1_000 + source.randrange(count))),
            ][source.randrange(5)]
        )
    return operations


@pytest.mark.parametrize("count", [1, 99, 101, 2_500, 10_000])
def test_operations_of_odd_sizes_are_all_seen_and_all_done(wire: Wire, count: int) -> None:
    operations = odd_operations(count, count)
    expected: dict[int, str] = {}
    for each in operations:
        if each.HasField("put"):
            row = each.put.document.json
            expected[int(row.split(":")[1].split(",")[0])] = row
        if each.HasField("delete"):
            expected.pop(each.delete.key.parts[0].int64, None)
    own = common_pb2.ReadAt(own_writes=operations)
    seen = documents(wire, own)
    wire.commit(*operations)
    assert documents(wire, common_pb2.ReadAt()) == seen
    assert seen == sorted(expected)
    wire.commit(*(delete_document("db.t", int_key(a)) for a in seen) if seen else [put_pair("n", b"none")])


def documents(wire: Wire, at: common_pb2.ReadAt) -> list[int]:
    """The keys of all documents but the first, by way of the index and of the rows."""
    found = []
    for index in ("", "by_b"):
        request = documents_pb2.ScanRequest(
            table=table_name("db.t"), index=index, columns=["a"], at=at, format=common_pb2.DOCUMENT_FORMAT_JSON
        )
        rows = [row for reply in wire.documents.Scan(request) for row in reply.json_rows]
        found.append(sorted(int(row.strip("{} ").split(":")[1]) for row in rows))
    assert found[0] == found[1]
    return [a for a in found[0] if a != 1]


def test_an_error_far_into_a_large_commit_names_its_operation(wire: Wire) -> None:
    operations = [put_pair("n", b"%d" % i) for i in range(450)]
    operations[333] = put_pair("n", b"")
    error = refused(lambda: wire.commit(*operations))
    assert error.message() == "operations[333].key: must not be empty"
    operations[333] = Operation()
    assert refused(lambda: wire.commit(*operations)).message().startswith("operations[333]: must set one")
    operations[333] = put_document("db.t", {"a": 9, "b": "one"})
    error = refused(lambda: wire.commit(*operations))
    assert isinstance(error, errors.UniqueViolation)
    assert error.row == 333


def test_bytes_beyond_the_limit_are_refused_as_they_are_met(wire: Wire) -> None:
    large = [put_pair("n", b"%d" % i, bytes(1_000_000)) for i in range(6)]
    for call in (lambda: wire.commit(*large), lambda: get(wire, large)):
        error = refused(call)
        assert isinstance(error, errors.TooLarge)
        assert "a transaction may write 4194304 bytes" in error.message()
        assert "more at operation 4" in error.message()


# --- own writes ----------------------------------------------------------------------------------------------------


def get(wire: Wire, own_writes: Sequence[Operation]) -> Any:
    at = common_pb2.ReadAt(own_writes=own_writes, footprint=True)
    return wire.kv.Get(kv_pb2.KvGetRequest(namespace="n", key=b"k", at=at), timeout=30)


def kv_check(key: bytes) -> Operation:
    condition = common_pb2.Condition(absent=True)
    return Operation(check_pair=common_pb2.KvCheck(namespace="n", key=key, condition=condition))


OWN: dict[str, tuple[list[Operation], type[errors.CortadoError], str]] = {
    "of an unknown table": ([put_document("db.nix", {"a": 1})], errors.NotFound, "no table db.nix"),
    "of an unknown database": ([delete_document("nix.t", int_key(1))], errors.NotFound, "no database nix"),
    "that violate uniqueness": (
        [put_document("db.t", {"a": 2, "b": "one"})],
        errors.UniqueViolation,
        "of row db.t(2) already belongs to row db.t(1)",
    ),
    "that violate it among themselves": (
        [put_document("db.t", {"a": 2, "b": "two"}), put_document("db.t", {"a": 3, "b": "two"})],
        errors.UniqueViolation,
        "of row db.t(3) already belongs to row db.t(2)",
    ),
    "with a condition that fails": ([put_pair("n", b"x"), kv_check(b"k")], errors.ConditionFailed, "expected absent"),
    "with a condition that an own write makes fail": (
        [put_pair("n", b"own"), kv_check(b"own")],
        errors.ConditionFailed,
        "n/own: expected absent, found 0.0.0",
    ),
    "of a document that is not there": (
        [update_document("db.t", int_key(77), {"b": "x"})],
        errors.NotFound,
        "no document",
    ),
    "of a document that does not fit": (
        [put_pair("n", b"x"), put_document("db.t", {"a": "1", "b": "x"})],
        errors.InvalidDocument,
        "a: ",
    ),
    "that do nothing": (
        [put_pair("n", b"x"), Operation()],
        errors.InvalidArgument,
        "at.own_writes[1]: must set one of",
    ),
    "without a namespace": (
        [put_pair("", b"x")],
        errors.InvalidArgument,
        "at.own_writes[0].namespace: must not be empty",
    ),
    "too many": (
        [packed("n", [b"x"] * 9_999, [b""] * 9_999), put_pair("n", b"a"), put_pair("n", b"b")],
        errors.TooLarge,
        "at.own_writes: a transaction may have 10000 operations (got 10001)",
    ),
    "none at all, packed": ([packed("n", [], [])], errors.InvalidArgument, "at.own_writes: must not be empty"),
}


@pytest.mark.parametrize("what", OWN)
def test_own_writes_that_would_be_refused_are_refused_in_a_read(wire: Wire, what: str) -> None:
    own_writes, kind, message = OWN[what]
    before = last_index(wire)
    at = common_pb2.ReadAt(own_writes=own_writes)
    reads: list[Callable[[], Any]] = [
        lambda: wire.kv.Get(kv_pb2.KvGetRequest(namespace="n", key=b"k", at=at)),
        lambda: wire.kv.Scan(kv_pb2.KvScanRequest(namespace="n", at=at)),
        lambda: wire.kv.ScanPage(kv_pb2.KvScanRequest(namespace="n", at=at)),
        lambda: wire.documents.Get(documents_pb2.GetDocumentRequest(table=table_name("db.t"), key=int_key(1), at=at)),
        lambda: wire.documents.MultiGet(
            documents_pb2.MultiGetRequest(table=table_name("db.t"), keys=[int_key(1)], at=at)
        ),
        lambda: wire.documents.Scan(documents_pb2.ScanRequest(table=table_name("db.t"), at=at)),
    ]
    for read in reads:
        error = refused(read)
        assert isinstance(error, kind), repr(error)
        assert message in error.message()
    assert last_index(wire) == before


def test_own_writes_are_seen_where_nothing_can_be_written(wire: Wire) -> None:
    """A condition on its own writes holds as it will at the commit."""
    written = put_pair("n", b"own", b"v")
    etag = get(wire, [written])
    assert etag.pair.value == b"v"
    condition = common_pb2.Condition(etag="0.0.0")
    check = Operation(check_pair=common_pb2.KvCheck(namespace="n", key=b"own", condition=condition))
    at = common_pb2.ReadAt(own_writes=[written, check])
    assert wire.kv.Get(kv_pb2.KvGetRequest(namespace="n", key=b"own", at=at)).pair.etag == "0.0.0"
    assert wire.commit(written, check).etag
    assert isinstance(refused(lambda: wire.commit(check)), errors.ConditionFailed)


@pytest.mark.parametrize("other", [[], [put_pair("n", b"b")], [put_pair("n", b"a"), put_pair("n", b"b")]])
def test_a_page_token_is_good_for_its_own_writes_alone(wire: Wire, other: list[Operation]) -> None:
    wire.commit(*(put_pair("n", b"p%d" % i) for i in range(5)))
    wire.commit(*(put_document("db.t", {"a": 500 + i, "b": f"page {i}"}) for i in range(5)))
    mine = [put_pair("n", b"a")]

    def pairs(own: list[Operation], token: bytes = b"") -> Any:
        at = common_pb2.ReadAt(own_writes=own)
        return wire.kv.ScanPage(kv_pb2.KvScanRequest(namespace="n", page_size=2, page_token=token, at=at))

    def rows(own: list[Operation], token: bytes = b"") -> Any:
        at = common_pb2.ReadAt(own_writes=own)
        request = documents_pb2.ScanRequest(table=table_name("db.t"), page_size=2, page_token=token, at=at)
        return list(wire.documents.Scan(request))[-1]

    for page in (pairs, rows):
        token = page(mine).next_page_token
        assert page(mine, token).next_page_token
        error = refused(lambda page=page, token=token: page(other, token))
        assert isinstance(error, errors.InvalidPageToken)
