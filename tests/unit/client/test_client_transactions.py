"""The messages of a transaction, their times, and its refusals: against a server with answers that are written here."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Iterator
from typing import Any

import grpc
import pytest

from cortado.errors import InvalidArgument, NotLeader, TooLarge, Unavailable, Unsupported
from cortado.proto.v1 import common_pb2, documents_pb2, kv_pb2, schemas_pb2, tables_pb2, transactions_pb2
from cortado.store.client import AsyncClient, Client, Put
from cortado.store.client.runtime import Environment
from cortado.store.clock.timestamp import Timestamp
from support.faces import FACES, open_client
from support.fake_server import FakeServer, break_off, header, refuse

ROW = {
    "type": "record",
    "name": "Row",
    "fields": [{"name": "id", "type": "long"}, {"name": "n", "type": "long", "default": 0}],
}
TABLE = tables_pb2.Table(
    table_id=1,
    database="d",
    name="t",
    subject="d.t",
    key=[tables_pb2.KeyPart(path="id", type=tables_pb2.KEY_TYPE_INT64)],
)
START = common_pb2.Timestamp(wall_ms=1_500)
KEY = common_pb2.Key(parts=[common_pb2.Value(int64=1)])


def committed(request: Any, context: Any) -> transactions_pb2.CommitResponse:
    return transactions_pb2.CommitResponse(header=header(2_000), etag="0.2000.0", sums=[7])


@pytest.fixture
def server() -> Iterator[FakeServer]:
    version = schemas_pb2.SchemaVersion(schema_id=1, subject="d.t", version=1, schema=json.dumps(ROW))
    with FakeServer().running() as running:
        running.handlers |= {
            "KeyValue.Get": lambda request, context: kv_pb2.KvGetResponse(
                header=header(1_500), footprint=b"of " + request.key if request.at.footprint else b""
            ),
            "KeyValue.Scan": lambda request, context: iter([kv_pb2.KvScanResponse(header=header(1_500))]),
            "KeyValue.ScanPage": lambda request, context: kv_pb2.KvScanResponse(
                header=header(1_500), next_page_token=b"the rest"
            ),
            "Tables.DescribeTable": lambda request, context: tables_pb2.DescribeTableResponse(
                header=header(), table=TABLE
            ),
            "Schemas.Get": lambda request, context: schemas_pb2.GetSchemaResponse(header=header(), version=version),
            "Documents.Get": lambda request, context: documents_pb2.GetDocumentResponse(header=header(1_500)),
            "Documents.MultiGet": lambda request, context: documents_pb2.MultiGetResponse(
                header=header(1_500), found=[documents_pb2.FoundDocument()]
            ),
            "Documents.Scan": lambda request, context: iter([documents_pb2.ScanResponse(header=header(1_500))]),
            "Transactions.Commit": committed,
        }
        yield running


@pytest.fixture(params=FACES)
def client(server: FakeServer, request: pytest.FixtureRequest) -> Iterator[Client]:
    with open_client(request.param, server.endpoint, timeout_s=5) as opened:
        yield opened


def commits(server: FakeServer) -> list[transactions_pb2.CommitRequest]:
    return server.calls("Transactions.Commit")


# --- reads ------------------------------------------------------------------------------------------------------


def test_the_first_read_says_no_time_and_the_others_say_that_of_its_answer(server: FakeServer, client: Client) -> None:
    with client.transaction() as txn:
        txn.kv("n").get(b"k")
        txn.kv("n").get(b"l")
        txn.table("d.t").get(1)
        txn.table("d.t").get_many([1, 2])
        list(txn.table("d.t").scan())
        list(txn.kv("n").scan())
    first, *others = [request.at for name, request in server.requests if "at" in request.DESCRIPTOR.fields_by_name]
    assert first.WhichOneof("kind") is None
    assert len(others) == 7, "the table is described, and the second key of get_many is asked for again"
    assert all(at == common_pb2.ReadAt(timestamp=START) for at in others)
    assert commits(server) == []


def test_a_scan_that_goes_on_asks_as_it_began(server: FakeServer, client: Client) -> None:
    with client.transaction() as txn:
        list(txn.kv("n").scan(limit=5))
    [page], [rest] = server.calls("KeyValue.ScanPage"), server.calls("KeyValue.Scan")
    assert (page.at, page.page_token) == (common_pb2.ReadAt(), b"")
    assert (rest.at, rest.page_token) == (common_pb2.ReadAt(), b"the rest")


def test_own_writes_go_with_the_reads_that_they_concern_alone(server: FakeServer, client: Client) -> None:
    with client.transaction() as txn:
        txn.kv("n").put(b"k", b"v")
        txn.kv("n").require(b"l", if_absent=True)
        txn.table("d.t").delete(1)
        txn.kv("m").get(b"k")
        txn.kv("n").get(b"k")
        txn.table("d.t").get(1)
        txn.rollback()
    put = common_pb2.Operation(put_pair=common_pb2.KvPut(namespace="n", key=b"k", value=b"v"))
    delete = common_pb2.Operation(delete=common_pb2.DocumentDelete(database="d", table="t", key=KEY))
    assert [list(request.at.own_writes) for request in server.calls("KeyValue.Get")] == [[], [put]]
    assert [list(request.at.own_writes) for request in server.calls("Documents.Get")] == [[delete]]


def test_footprints_are_asked_for_where_they_are_validated_and_go_back_once(server: FakeServer, client: Client) -> None:
    with client.transaction(isolation="serializable") as txn:
        for key in (b"a", b"b", b"a"):
            txn.kv("n").get(key)
        txn.kv("n").put(b"c", b"")
    with client.transaction() as txn:
        txn.kv("n").get(b"a")
        txn.kv("n").get(b"b", validate=True)
        txn.kv("n").put(b"c", b"")
    serializable, snapshot = commits(server)
    assert (serializable.isolation, list(serializable.footprints)) == (
        transactions_pb2.ISOLATION_SERIALIZABLE,
        [b"of a", b"of b"],
    )
    assert (snapshot.isolation, list(snapshot.footprints)) == (transactions_pb2.ISOLATION_SNAPSHOT, [b"of b"])
    assert [request.at.footprint for request in server.calls("KeyValue.Get")] == [True] * 3 + [False, True]


def test_the_first_read_goes_to_the_leader_also_where_others_may_go_anywhere(server: FakeServer) -> None:
    with Client(server.endpoint, read_from="any", timeout_s=5) as client:
        connection = client._core._connection
        for read_at, may in ((common_pb2.ReadAt(), False), (common_pb2.ReadAt(footprint=True), False)):
            assert connection._may_go_anywhere(kv_pb2.KvGetRequest(at=read_at)) is may
        assert connection._may_go_anywhere(kv_pb2.KvGetRequest(at=common_pb2.ReadAt(timestamp=START)))


# --- the commit -------------------------------------------------------------------------------------------------


def test_what_was_written_is_sent_at_once_in_its_order_under_an_id(server: FakeServer, client: Client) -> None:
    with client.transaction() as txn:
        own, pairs = txn.table("d.t"), txn.kv("n")
        own.get(1)
        assert own.put({"id": 1}, if_absent=True) is None
        assert own.put({"id": 1}, if_present=True) is None
        assert own.put({"id": 1}, if_etag="0.1.0") is None
        assert own.update(1, {"n": 2}, if_etag="0.2.0") is None
        assert own.add(1, "n", 3, min=0) is None
        assert own.require(1, if_present=True) is None
        assert own.delete(1, if_etag="0.3.0") is None
        assert pairs.put(b"k", b"v", if_value=b"u") is None
        assert pairs.batch([Put(b"k", b"v"), Put(b"l", b"v")]) is None
        assert pairs.add(b"c", -4, max=9) is None
        assert pairs.require(b"k", if_etag="0.1.0") is None
        assert pairs.delete(b"k", if_present=True) is None
        assert (txn.etag, txn.timestamp, txn.sums) == ("", None, [])
    [request] = commits(server)
    assert request.start == START
    assert len(request.request_id) == 20
    kinds = [each.WhichOneof("operation") for each in request.operations]
    documents = ["put", "put", "put", "update", "add", "check", "delete"]
    assert kinds == [*documents, "put_pair", "packed_pairs", "add_pair", "check_pair", "delete_pair"]
    conditions = [each.put.condition.WhichOneof("kind") for each in request.operations[:3]]
    assert conditions == ["absent", "present", "etag"]
    assert request.operations[11].delete_pair.condition.present
    assert (request.operations[4].add.delta, request.operations[4].add.min) == (3, 0)
    assert not request.operations[4].add.HasField("max")
    assert request.operations[3].update.condition.etag == "0.2.0"
    assert request.operations[6].delete.condition.etag == "0.3.0"
    assert request.operations[7].put_pair.condition.value == b"u"
    assert (txn.etag, txn.timestamp, txn.sums) == ("0.2000.0", Timestamp(0, 2_000, 0), [7])


def test_a_put_asks_for_its_schema_as_any_read_asks(server: FakeServer, client: Client) -> None:
    left = [Unavailable("no leader yet", 1), NotLeader(), None, None]
    answer = server.handlers["Schemas.Get"]

    def get(request: Any, context: grpc.ServicerContext) -> Any:
        refusal = left.pop(0)
        if refusal is not None:
            refuse(context, refusal)
        return answer(request, context)

    server.handlers["Schemas.Get"] = get
    with client.transaction() as txn:
        txn.table("d.t").put({"id": 1})
    assert len(commits(server)) == 1


def test_a_put_of_a_client_that_has_not_called_before_asks_for_its_schema_until_the_deadline() -> None:
    now_s = 0.0

    def sleep(seconds: float) -> None:
        nonlocal now_s
        now_s += seconds

    server = FakeServer()

    def describe(request: Any, context: grpc.ServicerContext) -> Any:
        threading.Thread(target=server.stop).start()
        break_off(context)

    server.handlers["Tables.DescribeTable"] = describe
    server.handlers["Schemas.Get"] = describe
    environment = Environment(monotonic_s=lambda: now_s, sleep_s=sleep)
    with server.running(), Client(server.endpoint, timeout_s=30, environment=environment) as client:
        with pytest.raises(Unavailable), client.transaction() as txn:
            txn.table("d.t").put({"id": 1})
        assert now_s > 25


def test_without_a_read_it_is_a_batch_on_the_newest_state(server: FakeServer, client: Client) -> None:
    txn = client.transaction(isolation="serializable")
    txn.kv("n").put(b"k", b"v")
    assert txn.commit() == "0.2000.0"
    [request] = commits(server)
    assert not request.HasField("start")


def test_nothing_written_sends_nothing(server: FakeServer, client: Client) -> None:
    for isolation in ("snapshot", "serializable"):
        with client.transaction(isolation=isolation) as txn:  # type: ignore[arg-type]
            txn.kv("n").get(b"k")
        assert txn.etag == ""
    assert commits(server) == []


def test_an_exception_sends_nothing_and_goes_on(server: FakeServer, client: Client) -> None:
    with pytest.raises(KeyError), client.transaction() as txn:
        txn.kv("n").put(b"k", b"v")
        raise KeyError
    with pytest.raises(Unsupported, match="after its end is not supported: it was rolled back"):
        txn.kv("n").put(b"k", b"v")
    assert commits(server) == []


def test_an_add_outside_of_a_transaction_is_a_commit_of_its_own(server: FakeServer, client: Client) -> None:
    assert client.kv("n").add(b"k", 7) == 7
    assert client.table("d.t").add(1, "n", 7, max=7) == 7
    pair, document = commits(server)
    assert pair.operations[0] == common_pb2.Operation(add_pair=common_pb2.KvAdd(namespace="n", key=b"k", delta=7))
    assert document.operations[0] == common_pb2.Operation(
        add=common_pb2.DocumentAdd(database="d", table="t", key=KEY, field="n", delta=7, max=7)
    )
    assert not pair.HasField("start")


# --- misuse -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("use", "what"),
    [
        (lambda client, txn: txn.kv("n").delete_range(prefix=b"k"), "KeyValue/DeleteRange in a transaction"),
        (lambda client, txn: txn.kv("n").watch(), "watching in a transaction"),
        (lambda client, txn: txn.table("d.t").watch(), "watching in a transaction"),
        (lambda client, txn: txn.table("d.t").split(2), "Split in a transaction"),
        (lambda client, txn: txn.table("d.t").put_many([{"id": 1}]), "writing in a transaction"),
        (lambda client, txn: txn.kv("n").get(b"k", at=Timestamp(0, 1, 0)), "another time in a transaction"),
        (lambda client, txn: txn.__enter__(), "nesting a transaction in itself"),
        (lambda client, txn: client.kv("n").get(b"k", validate=True), "outside of a transaction"),
        (lambda client, txn: client.table("d.t").get(1, validate=True), "outside of a transaction"),
        (lambda client, txn: client.snapshot().transaction(), "a transaction through a view of the past"),
        (lambda client, txn: client.snapshot().snapshot(), "a snapshot through a view of the past"),
    ],
)
def test_what_a_transaction_is_not_for_is_unsupported_by_name(
    client: Client, use: Callable[[Client, Any], Any], what: str
) -> None:
    with client.transaction() as txn, pytest.raises(Unsupported, match=f"{what} is not supported"):
        use(client, txn)


@pytest.mark.parametrize(
    ("use", "field"),
    [
        (lambda client: client.transaction(isolation="best"), "isolation"),
        (lambda client: client.transaction(isolation=None), "isolation"),
        (lambda client: client.transaction().table(client.table("d.t")), "table"),
        (lambda client: client.transaction().kv(client.kv("n")), "namespace"),
        (lambda client: client.transaction().kv("n").get(b"k", validate="yes"), "validate"),
        (lambda client: client.transaction().kv("n").require(b"k"), "condition"),
        (lambda client: client.transaction().table("d.t").put({"id": 1}, if_absent=True, if_etag="0.1.0"), "condition"),
        (lambda client: client.transaction().table("d.t").update(1, {"n": 2}, if_etag="no"), "if_etag"),
        (lambda client: client.transaction().kv("n").delete(b"k", if_etag="no"), "if_etag"),
        (lambda client: client.snapshot(stale_ms=0), "stale_ms"),
        (lambda client: client.run(None), "fn"),
        (lambda client: client.run(print, attempts=0), "attempts"),
    ],
)
def test_a_bad_argument_is_named(client: Client, use: Callable[[Client], Any], field: str) -> None:
    with pytest.raises(InvalidArgument) as refused:
        use(client)
    assert refused.value.field == field


@pytest.mark.parametrize("end", ["commit", "rollback"])
def test_nothing_goes_on_after_the_end(server: FakeServer, client: Client, end: str) -> None:
    with client.transaction() as txn:
        txn.kv("n").put(b"k", b"v")
        getattr(txn, end)()
    how = {"commit": "it was committed", "rollback": "it was rolled back"}[end]
    uses: list[Callable[[], Any]] = [
        txn.commit,
        txn.rollback,
        txn.__enter__,
        lambda: txn.kv("n").get(b"k"),
        lambda: txn.kv("n").put(b"k", b"v"),
        lambda: list(txn.table("d.t").scan()),
    ]
    for use in uses:
        with pytest.raises(Unsupported, match=f"using a transaction after its end is not supported: {how}"):
            use()
    assert len(commits(server)) == (end == "commit")


def test_a_second_thread_is_refused_while_the_first_one_waits(server: FakeServer) -> None:
    asked, answer = threading.Event(), threading.Event()

    def slow(request: Any, context: grpc.ServicerContext) -> kv_pb2.KvGetResponse:
        asked.set()
        assert answer.wait(10)
        return kv_pb2.KvGetResponse(header=header(1_500))

    server.handlers["KeyValue.Get"] = slow
    with Client(server.endpoint, timeout_s=10) as client, client.transaction() as txn:
        first = threading.Thread(target=lambda: txn.kv("n").get(b"k"))
        first.start()
        assert asked.wait(10)
        for use in (lambda: txn.kv("n").get(b"k"), lambda: txn.kv("n").put(b"k", b"v"), txn.commit):
            with pytest.raises(Unsupported, match="from two threads or tasks at once"):
                use()
        answer.set()
        first.join()
        txn.kv("n").get(b"k")


def test_two_tasks_at_once_are_refused(server: FakeServer) -> None:
    async def both() -> list[Any]:
        async with AsyncClient(server.endpoint, timeout_s=5) as client, client.transaction() as txn:
            reads = [txn.kv("n").get(b"k"), txn.kv("n").get(b"l")]
            return await asyncio.gather(*reads, return_exceptions=True)

    first, second = asyncio.run(both())
    assert first is None
    assert isinstance(second, Unsupported)


# --- bounds -----------------------------------------------------------------------------------------------------


def test_what_no_server_would_take_is_not_kept(server: FakeServer, client: Client) -> None:
    with client.transaction() as txn:
        pairs = txn.kv("n")
        pairs.batch([Put(b"%d" % number, b"") for number in range(9_999)])
        pairs.put(b"k", b"v")
        with pytest.raises(TooLarge, match="operations: a transaction may have 10000 operations"):
            pairs.put(b"l", b"v")
    assert [len(request.operations) for request in commits(server)] == [2]
    with client.transaction() as txn:
        for _ in range(8):
            txn.kv("n").put(b"k", bytes(1_000_000))
        with pytest.raises(TooLarge, match="transaction: a transaction may have 8388608 bytes"):
            txn.kv("n").put(b"k", bytes(1_000_000))
        txn.rollback()


def test_a_footprint_that_comes_again_takes_no_room(server: FakeServer, client: Client) -> None:
    server.handlers["KeyValue.Get"] = lambda request, context: kv_pb2.KvGetResponse(
        header=header(1_500), footprint=bytes(1_000_000)
    )
    with client.transaction(isolation="serializable") as txn:
        txn.kv("n").put(b"k", b"v")
        for _ in range(10):
            txn.kv("n").get(b"l")
    assert [len(request.footprints) for request in commits(server)] == [1]


def test_a_read_that_could_not_be_validated_lets_nothing_be_committed(server: FakeServer, client: Client) -> None:
    answers = iter(range(100))
    server.handlers["KeyValue.Get"] = lambda request, context: kv_pb2.KvGetResponse(
        header=header(1_500), footprint=bytes([next(answers)]) * 1_000_000
    )
    with pytest.raises(TooLarge), client.transaction(isolation="serializable") as txn:
        txn.kv("n").put(b"k", b"v")
        for _ in range(8):
            txn.kv("n").get(b"l")
        with pytest.raises(TooLarge):
            txn.kv("n").get(b"l")
    assert commits(server) == []


def test_conditions_that_exclude_each_other_are_named_as_they_were_given(client: Client) -> None:
    with pytest.raises(InvalidArgument, match=r"^condition: must be one alone \(got if_absent, if_etag\)$"):
        client.transaction().table("d.t").put({"id": 1}, if_absent=True, if_etag="0.1.0")
