"""Transactions through the client, against a real server: their reads, and their refusals."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest

from cortado.errors import (
    ConditionFailed,
    InvalidArgument,
    NotFound,
    OutOfBounds,
    TransactionAborted,
    UniqueViolation,
    Unsupported,
    WriteConflict,
)
from cortado.store.client import AsyncTransaction, Client, Delete, Index, Put, Table, Transaction
from support.cluster import Cluster
from support.faces import FACES, open_client, run_core
from support.server_process import ServerProcess

pytestmark = pytest.mark.process

ITEM = {
    "type": "record",
    "name": "Item",
    "fields": [
        {"name": "id", "type": "string"},
        {"name": "left", "type": "long"},
        {"name": "shelf", "type": ["null", "string"], "default": None},
    ],
}


@pytest.fixture(params=FACES)
def client(server: ServerProcess, request: pytest.FixtureRequest) -> Iterator[Client]:
    with open_client(request.param, server.endpoint, timeout_s=10) as opened:
        yield opened


@pytest.fixture
def items(client: Client, database: str) -> Table:
    """3 of tea and 5 of milk; nothing else is on their shelves."""
    name = f"{database}.items"
    client.schemas.register(name, ITEM)
    client.create_table(name, ["id"], indexes=[Index("by_left", ["left"]), Index("by_shelf", ["shelf"], unique=True)])
    table = client.table(name)
    table.put({"id": "milk", "left": 5, "shelf": "cold"})
    table.put({"id": "tea", "left": 3, "shelf": "dry"})
    return table


def ids(documents: Iterator[object]) -> list[str]:
    return [document.value["id"] for document in documents]


# --- its reads -------------------------------------------------------------------------------------------------


def test_own_writes_are_seen_by_gets_scans_index_scans_and_filters_and_by_nobody_else(
    client: Client, items: Table
) -> None:
    with client.transaction() as txn:
        own = txn.table(items.full_name)
        own.put({"id": "cake", "left": 1})
        own.update("tea", {"left": 0})
        own.delete("milk")
        assert own.get("tea").value["left"] == 0
        assert own.get("milk") is None
        assert [found and found.value["left"] for found in own.get_many(["cake", "milk", "tea"])] == [1, None, 0]
        assert ids(own.scan()) == ["cake", "tea"]
        assert ids(own.scan(index="by_left")) == ["tea", "cake"]
        assert ids(own.scan(index="by_left", prefix=0)) == ["tea"]
        assert ids(own.scan(filter="left = 0")) == ["tea"]
        assert ids(own.scan(reverse=True, limit=1)) == ["tea"]
        assert own.aggregate("count(*) as n, max(left) as most") == [{"n": 2, "most": 1}]
        assert own.count(index="by_left", prefix=0) == 1
        assert [row for batch in own.scan_arrow(columns=["id"]) for row in batch.column(0).to_pylist()] == [
            "cake",
            "tea",
        ]
        assert ids(items.scan()) == ["milk", "tea"]
    assert ids(items.scan(index="by_left")) == ["tea", "cake"]
    assert items.get("cake").etag == items.get("tea").etag == txn.etag == str(txn.timestamp)


def test_own_writes_of_pairs_are_seen_and_committed_with_those_of_documents(
    client: Client, items: Table, database: str
) -> None:
    log = client.kv(database)
    log.put(b"1", b"old")
    with client.transaction() as txn:
        own = txn.kv(database)
        assert own.get(b"1").value == b"old"
        assert own.put(b"2", b"new") is None
        assert own.delete(b"1") is None
        assert own.batch([Put(b"3", b"c"), Put(b"4", b"d"), Delete(b"4")]) is None
        assert own.add(b"count", 7) is None
        assert [pair.key for pair in own.scan()] == [b"2", b"3", b"count"]
        assert [pair.key for pair in own.scan(limit=2)] == [b"2", b"3"]
        assert own.get(b"count").value == (7).to_bytes(8)
        assert [pair and pair.key for pair in own.get_many([b"3", b"1", b"2"])] == [b"3", None, b"2"]
        assert txn.table(items.full_name).update("tea", {"left": 2}) is None
        assert txn.table(items.full_name).add("milk", "left", -1) is None
        assert log.get(b"2") is None
    assert txn.sums == [7, 4]
    assert log.get(b"2").etag == items.get("tea").etag == txn.etag
    assert [pair.key for pair in log.scan()] == [b"2", b"3", b"count"]


def test_all_reads_are_at_the_time_of_the_first_one(client: Client, items: Table, database: str) -> None:
    with client.transaction() as txn:
        assert ids(txn.table(items.full_name).scan(limit=1)) == ["milk"]
        items.put({"id": "cake", "left": 1})
        client.kv(database).put(b"k", b"v")
        assert ids(txn.table(items.full_name).scan()) == ["milk", "tea"]
        assert txn.kv(database).get(b"k") is None
    assert txn.etag == ""


def test_rows_may_be_changed_while_they_are_gone_through(client: Client, items: Table) -> None:
    with client.transaction() as txn:
        own = txn.table(items.full_name)
        for document in own.scan():
            own.update(document.value["id"], {"left": document.value["left"] * 10})
            assert own.get(document.value["id"]).value["left"] == document.value["left"] * 10
    assert [document.value["left"] for document in items.scan()] == [50, 30]


def test_what_it_wrote_itself_has_an_etag_that_its_conditions_may_name(client: Client, items: Table) -> None:
    with client.transaction() as txn:
        own = txn.table(items.full_name)
        own.put({"id": "cake", "left": 1}, if_absent=True)
        own.update("cake", {"left": 2}, if_etag=own.get("cake").etag)
    assert items.get("cake").value["left"] == 2


# --- its refusals ---------------------------------------------------------------------------------------------


def test_a_lost_update_is_refused(client: Client, items: Table) -> None:
    with pytest.raises(WriteConflict) as refused, client.transaction() as txn:
        own = txn.table(items.full_name)
        left = own.get("tea").value["left"]
        items.update("tea", {"left": 100})
        own.update("tea", {"left": left - 1})
    assert refused.value.kind == "write"
    assert items.get("tea").value["left"] == 100


def test_a_delete_that_came_between_counts(client: Client, database: str) -> None:
    pairs = client.kv(database)
    pairs.put(b"k", b"1")
    with pytest.raises(WriteConflict), client.transaction() as txn:
        own = txn.kv(database)
        assert own.get(b"k").value == b"1"
        pairs.delete(b"k")
        own.put(b"k", b"2")
    assert pairs.get(b"k") is None


@pytest.mark.parametrize("isolation", ["snapshot", "serializable"])
def test_write_skew_is_permitted_under_snapshot_and_refused_under_serializable(
    client: Client, items: Table, isolation: str
) -> None:
    """Each takes one where the two together have enough."""

    def take(own: Table, key: str) -> None:
        if sum(document.value["left"] for document in own.scan()) >= 8:
            own.update(key, {"left": 0})

    one = client.transaction(isolation=isolation)  # type: ignore[arg-type]
    other = client.transaction(isolation=isolation)  # type: ignore[arg-type]
    take(one.table(items.full_name), "tea")
    take(other.table(items.full_name), "milk")
    one.commit()
    if isolation == "snapshot":
        other.commit()
        return
    with pytest.raises(WriteConflict) as refused:
        other.commit()
    assert refused.value.kind == "range"
    assert items.get("milk").value["left"] == 5


def test_what_is_validated_must_be_unchanged_also_under_snapshot(client: Client, items: Table, database: str) -> None:
    for validate in (False, True):
        txn = client.transaction()
        assert txn.table(items.full_name).get("tea", validate=validate) is not None
        assert txn.kv(database).get(b"limit", validate=validate) is None
        txn.kv(database).put(f"{validate}".encode(), b"")
        items.add("tea", "left", 1)
        if not validate:
            txn.commit()
            continue
        with pytest.raises(WriteConflict) as refused:
            txn.commit()
        assert refused.value.kind == "read"
    assert [pair.key for pair in client.kv(database).scan()] == [b"False"]


@pytest.mark.parametrize("read", ["scan", "index", "filter", "count", "pairs"])
def test_a_phantom_is_refused_under_serializable(client: Client, items: Table, database: str, read: str) -> None:
    with pytest.raises(WriteConflict), client.transaction(isolation="serializable") as txn:
        own = txn.table(items.full_name)
        match read:
            case "scan":
                assert ids(own.scan("a", "d")) == []
            case "index":
                assert ids(own.scan(index="by_left", prefix=1)) == []
            case "filter":
                assert ids(own.scan(filter="left = 1")) == []
            case "count":
                assert own.count(filter="left = 1") == 0
            case "pairs":
                assert list(txn.kv(database).scan(prefix=b"c")) == []
        items.put({"id": "cake", "left": 1})
        client.kv(database).put(b"cake", b"1")
        txn.kv(database).put(b"free", b"")


def test_a_row_behind_the_last_one_of_a_limited_scan_is_no_phantom(client: Client, items: Table, database: str) -> None:
    with client.transaction(isolation="serializable") as txn:
        assert ids(txn.table(items.full_name).scan(limit=1)) == ["milk"]
        items.update("tea", {"left": 9})
        txn.kv(database).put(b"done", b"")
    assert client.kv(database).get(b"done") is not None


def test_a_transaction_that_only_reads_conflicts_with_nobody(client: Client, items: Table) -> None:
    with client.transaction(isolation="serializable") as txn:
        assert txn.table(items.full_name).get("tea").value["left"] == 3
        items.update("tea", {"left": 9})
        assert txn.table(items.full_name).get("tea").value["left"] == 3
    assert (txn.etag, txn.timestamp, txn.sums) == ("", None, [])


def test_a_check_must_hold_at_the_commit(client: Client, items: Table, database: str) -> None:
    with client.transaction() as txn:
        txn.table(items.full_name).require("tea", if_etag=items.get("tea").etag)
        txn.table(items.full_name).require("cake", if_absent=True)
        txn.kv(database).require(b"k", if_absent=True)
        txn.kv(database).put(b"k", b"1")
    with pytest.raises(ConditionFailed), client.transaction() as txn:
        txn.kv(database).require(b"k", if_value=b"2")
        txn.kv(database).put(b"l", b"")
    assert client.kv(database).get(b"l") is None
    items.require("tea", if_present=True)
    with pytest.raises(ConditionFailed):
        items.require("tea", if_absent=True)
    with pytest.raises(InvalidArgument, match="condition: must be one of"):
        items.require("tea")


def test_an_exception_rolls_back_and_goes_on(client: Client, items: Table) -> None:
    with pytest.raises(ZeroDivisionError), client.transaction() as txn:
        txn.table(items.full_name).delete("tea")
        raise ZeroDivisionError
    assert items.get("tea") is not None
    with client.transaction() as txn:
        txn.table(items.full_name).delete("tea")
        txn.rollback()
    assert items.get("tea") is not None


def test_what_it_could_have_seen_refuses_it_for_good(client: Client, items: Table) -> None:
    with pytest.raises(UniqueViolation), client.transaction() as txn:
        own = txn.table(items.full_name)
        own.get("tea")
        own.put({"id": "cake", "left": 1, "shelf": "dry"})
    with pytest.raises(WriteConflict), client.transaction() as txn:
        own = txn.table(items.full_name)
        own.get("tea")
        items.put({"id": "bread", "left": 1, "shelf": "box"})
        own.put({"id": "cake", "left": 1, "shelf": "box"})
    with pytest.raises(NotFound), client.transaction() as txn:
        txn.table(items.full_name).update("cake", {"left": 2})
    with client.transaction() as txn:
        own = txn.table(items.full_name)
        own.update("tea", {"shelf": None})
        own.put({"id": "cake", "left": 1, "shelf": "dry"})
    assert ids(items.scan(index="by_shelf", prefix="dry")) == ["cake"]


# --- run --------------------------------------------------------------------------------------------------------


def test_a_function_runs_until_nobody_was_faster(client: Client, items: Table) -> None:
    seen: list[int] = []

    async def take(txn: AsyncTransaction) -> int:
        own = txn.table(items.full_name)
        left: int = (await own.get("tea")).value["left"]
        seen.append(left)
        if len(seen) < 4:
            # Another caller writes in the middle of it.
            await run_in_its_face.table(items.full_name).add("tea", "left", 10)
        await own.update("tea", {"left": left - 1})
        return left - 1

    run_in_its_face = client._core
    assert run_core(client, run_in_its_face.run(take)) == 32
    assert seen == [3, 13, 23, 33]
    assert items.get("tea").value["left"] == 32


def test_threads_that_run_functions_lose_no_update(server: ServerProcess, items: Table) -> None:
    with Client(server.endpoint, timeout_s=20) as shared, ThreadPoolExecutor(4) as threads:

        def increment(_: int) -> None:
            def once(txn: Transaction) -> None:
                own = txn.table(items.full_name)
                own.update("tea", {"left": own.get("tea").value["left"] + 1})

            while True:
                try:
                    return shared.run(once)
                except WriteConflict:
                    continue  # The budget of retries is used up.

        list(threads.map(increment, range(40)))
    assert items.get("tea").value["left"] == 43


def test_money_that_is_moved_by_transactions_is_the_same_amount_in_every_snapshot(
    server: ServerProcess, items: Table, database: str
) -> None:
    """Between a table and a namespace, by several threads, while another one looks."""

    with Client(server.endpoint, timeout_s=20) as shared, ThreadPoolExecutor(4) as threads:
        table, pairs = shared.table(items.full_name), shared.kv(database)
        pairs.put(b"purse", (1_000).to_bytes(8))
        total = 1_000 + sum(document.value["left"] for document in table.scan())

        def move(number: int) -> None:
            def once(txn: Transaction) -> None:
                own, purse = txn.table(items.full_name), txn.kv(database)
                key = "tea" if number % 2 else "milk"
                own.update(key, {"left": own.get(key).value["left"] + number})
                held = int.from_bytes(purse.get(b"purse").value)
                purse.put(b"purse", (held - number).to_bytes(8))

            with suppress(WriteConflict):  # The budget of retries is used up, and nothing was moved.
                shared.run(once)

        def look(_: int) -> int:
            view = shared.snapshot()
            held = int.from_bytes(view.kv(database).get(b"purse").value)
            return held + sum(document.value["left"] for document in view.table(items.full_name).scan())

        moving = [threads.submit(move, number) for number in range(30)]
        looking = [threads.submit(look, number) for number in range(30)]
        for each in moving:
            each.result()
        assert {each.result() for each in looking} == {total}
        assert look(0) == total


# --- adds -------------------------------------------------------------------------------------------------------


def test_two_hundred_adds_at_once_stay_within_the_bound_and_none_is_refused_but_by_it(
    client: Client, items: Table, database: str
) -> None:
    counter = client.kv(database)
    assert counter.add(b"left", 150) == 150
    items.update("tea", {"left": 150})

    def take(number: int) -> list[int]:
        taken = []
        for add in (
            lambda: counter.add(b"left", -1, min=0),
            lambda: items.add("tea", "left", -1, min=0),
        ):
            try:
                taken.append(add())
            except OutOfBounds as refused:
                assert refused.expected == "at least 0"
                taken.append(-1)
        return taken

    with ThreadPoolExecutor(32) as threads:
        ended = list(threads.map(take, range(200)))
    for sums in zip(*ended, strict=True):
        assert sorted(sums) == [-1] * 50 + list(range(150))
    assert items.get("tea").value["left"] == 0


def test_an_add_of_a_transaction_conflicts_with_no_other_add(client: Client, items: Table) -> None:
    with client.transaction() as txn:
        own = txn.table(items.full_name)
        own.add("tea", "left", -1, min=0)
        assert own.get("tea").value["left"] == 2
        assert items.add("tea", "left", 10) == 13
        assert own.get("tea").value["left"] == 2
    assert txn.sums == [12]


def test_an_add_names_what_it_cannot_add_to(client: Client, items: Table, database: str) -> None:
    with pytest.raises(NotFound):
        items.add("cake", "left", 1)
    with pytest.raises(InvalidArgument):
        items.add("tea", "shelf", 1)
    client.kv(database).put(b"text", b"text")
    with pytest.raises(InvalidArgument):
        client.kv(database).add(b"text", 1)
    for wrong in ({"delta": 1.5}, {"delta": 1, "min": "0"}, {"delta": 1, "min": 3, "max": 2}):
        with pytest.raises(InvalidArgument):
            client.kv(database).add(b"n", **wrong)  # type: ignore[arg-type]


# --- snapshots --------------------------------------------------------------------------------------------------


def test_a_snapshot_shows_one_state_from_its_first_read_on(client: Client, items: Table, database: str) -> None:
    view = client.snapshot()
    assert ids(view.table(items.full_name).scan(limit=1)) == ["milk"]
    items.delete("milk")
    client.kv(database).put(b"k", b"v")
    assert ids(view.table(items.full_name).scan()) == ["milk", "tea"]
    assert view.table(items.full_name).get("milk") is not None
    assert view.kv(database).get(b"k") is None
    assert view.now() == view.now()
    assert view.now() < client.now()
    with pytest.raises(Unsupported, match="writing through a view of the past"):
        view.kv(database).put(b"k", b"v")


@pytest.mark.parametrize("first", ["check", "split", "now", "scan"])
def test_whatever_reads_first_fixes_the_time_of_a_snapshot(client: Client, items: Table, first: str) -> None:
    view = client.snapshot()
    match first:
        case "check":
            ts = view.verify_indexes(items.full_name).ts
        case "split":
            ts = view.table(items.full_name).split(2)[0]
        case "now":
            ts = view.now()
        case "scan":
            assert ids(view.table(items.full_name).scan()) == ["milk", "tea"]
            ts = view.now()
    items.delete("tea")
    assert view.now() == ts
    assert view.verify_indexes(items.full_name).rows_checked == 2
    assert ids(view.table(items.full_name).scan()) == ["milk", "tea"]


def test_a_stale_snapshot_stays_at_the_time_that_its_first_read_got(
    client: Client, items: Table, database: str
) -> None:
    client.kv(database).put(b"k", b"0")
    view = client.snapshot(stale_ms=1)
    then = view.now()
    assert then <= client.now()
    for number in (b"1", b"2"):
        client.kv(database).put(b"k", number)
        assert view.now() == then
        assert view.kv(database).get(b"k") == client.at(then).kv(database).get(b"k")
        assert list(view.table(items.full_name).scan()) == list(client.at(then).table(items.full_name).scan())


# --- several nodes ----------------------------------------------------------------------------------------------


def test_a_transaction_outlives_the_leader_that_it_began_at(three_nodes: Cluster) -> None:
    with Client(three_nodes.endpoints, timeout_s=20, read_from="any") as several:
        pairs = several.kv("outlived")
        pairs.put(b"a", b"1")
        for isolation in ("snapshot", "serializable"):
            with several.transaction(isolation=isolation) as txn:  # type: ignore[arg-type]
                own = txn.kv("outlived")
                value = own.get(b"a").value
                own.put(b"b", value)
                before = three_nodes.leader()
                three_nodes.kill(before)
                assert [pair.value for pair in own.scan(b"a", b"c")] == [value, value]
                own.add(b"count", 1)
            three_nodes.start(before)
            three_nodes.wait_converged()
        assert txn.sums == [2]
        refusals = (WriteConflict, TransactionAborted)
        with pytest.raises(refusals) as refused, several.transaction(isolation="serializable") as txn:
            own = txn.kv("outlived")
            assert own.get(b"a") is not None
            pairs.put(b"a", b"2")
            three_nodes.kill(three_nodes.leader())
            own.put(b"b", b"3")
        # If the killed node may have the commit, the next refusal is not final: the client asks for the outcome.
        assert isinstance(refused.value, WriteConflict) or refused.value.cause == "settled"
        assert pairs.get(b"b").value == b"1"
