"""Rules of transactions (ADR 34) that one commit does not show, switched off: the thing that each guards against
happens.

With all rules on, the same scenarios pass. The other rules are switched off in the simulation, and named in the tests
of this folder.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final

import pytest

from cortado.errors import CortadoError, InvalidArgument
from cortado.proto.v1 import kv_pb2, transactions_pb2
from cortado.store.client.stubs import Stubs
from cortado.store.client.transaction_view import TransactionView
from cortado.store.clock.timestamp import Timestamp
from cortado.store.host.host import Host
from cortado.store.kv.stage import PairStage
from cortado.store.mvcc.transacting import Origin
from cortado.store.replica.read.read_timestamps import ReadPoints
from cortado.store.replica.write.request_table.table import RequestTable
from cortado.store.server import transactions_service
from cortado.store.server.kv_service import KeyValueService
from cortado.store.server.transactions_service import TransactionsService
from cortado.store.tables.stage import RowStage
from cortado.store.transactions.commit import Staged, evaluate_commit
from cortado.store.transactions.operations import Commit, Committed
from support.dict_reader import DictReader, DictStore
from support.nodes import run, running_node
from support.table_world import TableWorld
from support.transaction_twin import Asked, new_world, to_operation

NAMESPACE: Final = "accounts"


class Side:
    """Transactions beside each other on one node, as clients have them."""

    def __init__(self, node: Host) -> None:
        self.node = node
        self._pairs = KeyValueService(node)
        self._transactions = TransactionsService(node)
        self._ids = 0

    def request_id(self) -> bytes:
        self._ids += 1
        return bytes(self.node.process.clock.now()) + self._ids.to_bytes(8)

    async def put(self, key: bytes, value: int) -> None:
        await self._pairs.put(kv_pb2.KvPutRequest(namespace=NAMESPACE, key=key, value=str(value).encode()))

    async def get(self, key: bytes, view: TransactionView | None = None) -> int:
        request = kv_pb2.KvGetRequest(namespace=NAMESPACE, key=key)
        if view is None:
            reply = await self._pairs.get(request)
        else:
            async with view.reading(request) as observe:
                reply = await self._pairs.get(request)
                observe(reply)
        assert isinstance(reply, kv_pb2.KvGetResponse)
        return int(reply.pair.value)

    async def commit(self, request: transactions_pb2.CommitRequest) -> bytes:
        reply = await self._transactions.commit(request)
        # Its header is of the answer, and not of the commit.
        return transactions_pb2.CommitResponse.FromString(reply).etag.encode()


def writes(view: TransactionView, key: bytes, value: int) -> None:
    put = kv_pb2.KvPutRequest(namespace=NAMESPACE, key=key, value=str(value).encode())
    view.write(Stubs.kv.Put, put)


def request_of(view: TransactionView) -> transactions_pb2.CommitRequest:
    request = view.commit_request()
    assert request is not None
    return request


# --- scenarios -------------------------------------------------------------------------------------------------


async def told_once(side: Side) -> None:
    """A commit that lost its answer is sent again: it does not conflict with itself, and gets the first answer."""
    view = TransactionView("snapshot")
    await side.put(b"a", 1)
    writes(view, b"a", await side.get(b"a", view) + 1)
    request = request_of(view)
    request.request_id = side.request_id()
    first = await side.commit(request)
    await side.put(b"a", 7)
    await side.node.meta.reads.applied_to(side.node.meta.read_ts())
    assert await side.commit(request) == first
    assert await side.get(b"a") == 7


async def refused_without_an_id(side: Side) -> None:
    view = TransactionView("snapshot")
    await side.put(b"a", 1)
    writes(view, b"a", await side.get(b"a", view) + 1)
    with pytest.raises(InvalidArgument, match="request_id: must be set together with start"):
        await side.commit(request_of(view))
    assert await side.get(b"a") == 1


async def reads_one_state(side: Side) -> None:
    """Money that is moved between two reads is seen once, and not twice or never."""
    for key in (b"a", b"b"):
        await side.put(key, 50)
    view = TransactionView("snapshot")
    seen = await side.get(b"a", view)
    writes(view, b"mine", 3)
    await side.put(b"a", 0)
    await side.put(b"b", 100)
    await side.put(b"mine", 9)
    assert seen + await side.get(b"b", view) == 100
    assert await side.get(b"mine", view) == 3


def world_with_a_counter() -> tuple[TableWorld, Timestamp]:
    world = new_world(DictStore())
    document = {"owner": "a", "number": 0, "code": None, "serial": None, "count": 1, "place": None}
    commit_to(world, None, ("put", document, None), ("pair put", b"x", (1).to_bytes(8), None))
    return world, world.store.now


def commit_to(world: TableWorld, start: Timestamp | None, *asked: Asked) -> list[int]:
    operations = [to_operation(world, each) for each in asked]
    _, done = world.store.write(
        lambda reader, ts: evaluate_commit(reader, ts, world.catalog(reader), Commit(operations, start))
    )
    assert isinstance(done.reply, Committed)
    return list(done.reply.sums)


async def adds_count_all(_side: Side) -> None:
    """Two transactions that began together add to a field and to a counter: each add counts on top of the one
    before."""
    world, start = world_with_a_counter()
    adds = ("add", ("a", 0), "count", 1, None, None), ("pair add", b"x", 1, None, None)
    assert [commit_to(world, start, *adds) for _ in range(3)] == [[2, 2], [3, 3], [4, 4]]
    assert world.check("things", 3) == []


# --- the switches ----------------------------------------------------------------------------------------------

Switch = Callable[[pytest.MonkeyPatch], None]


def forget_what_was_answered(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(RequestTable, "find", lambda _self, _request_id: None)


def take_commits_without_an_id(patch: pytest.MonkeyPatch) -> None:
    begun = transactions_service.begun

    def any_of(request: transactions_pb2.CommitRequest, limits: Any) -> Any:
        named = transactions_pb2.CommitRequest()
        named.CopyFrom(request)
        named.request_id = b"any"
        return begun(named, limits)

    patch.setattr(transactions_service, "begun", any_of)


def ask_for_the_newest(patch: pytest.MonkeyPatch) -> None:
    begin_reading = TransactionView.begin_reading

    def without_a_time(self: TransactionView, request: Any, is_begun: bool) -> Callable[[Any], None]:
        observe = begin_reading(self, request, is_begun)
        request.at.ClearField("timestamp")
        return observe

    patch.setattr(TransactionView, "begin_reading", without_a_time)


def answer_with_the_newest(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ReadPoints, "resolve", lambda self, _at: self.newest())


def add_to_what_was_read(patch: pytest.MonkeyPatch) -> None:
    for stage in (RowStage, PairStage):
        begin = stage.__init__

        def as_it_began(self: Any, origin: Origin, *more: Any, begin: Any = begin) -> None:
            begin(self, origin, *more)
            if isinstance(origin.reader, DictReader) and origin.start is not None:
                self._reader = DictReader(origin.reader._store, origin.start)

        patch.setattr(stage, "__init__", as_it_began)


def take_adds_for_writes(patch: pytest.MonkeyPatch) -> None:
    check_written = Staged.check_written

    def check_all(self: Staged) -> None:
        self.written.update(dict.fromkeys(self.added, 0))
        check_written(self)

    patch.setattr(Staged, "check_written", check_all)


@dataclass(frozen=True)
class Rule:
    switch_off: Switch
    scenario: Callable[[Side], Awaitable[None]]


RULES: Final = {
    "T8: a commit that is repeated has one effect": Rule(forget_what_was_answered, told_once),
    "T8: who has begun says a request id": Rule(take_commits_without_an_id, refused_without_an_id),
    "T10: reads ask for the start": Rule(ask_for_the_newest, reads_one_state),
    "T10: reads are answered at the start": Rule(answer_with_the_newest, reads_one_state),
    "T12: adds are to the newest value": Rule(add_to_what_was_read, adds_count_all),
    "T12: adds conflict with nothing": Rule(take_adds_for_writes, adds_count_all),
}


def play(rule: Rule) -> None:
    async def scenario() -> None:
        async with running_node() as node:
            await rule.scenario(Side(node))

    run(scenario)


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
def test_with_all_rules_of_transactions_each_scenario_holds(rule: Rule) -> None:
    play(rule)


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
def test_a_rule_of_transactions_that_is_switched_off_is_missed(rule: Rule, monkeypatch: pytest.MonkeyPatch) -> None:
    rule.switch_off(monkeypatch)
    with pytest.raises((AssertionError, CortadoError, pytest.fail.Exception)):
        play(rule)
