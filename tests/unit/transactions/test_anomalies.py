"""The anomalies by their names, one story each: the required and the permitted outcomes under either isolation.

Names as in Adya's *Weak Consistency* (1999: G0 to G2) and in Berenson et al., *A Critique of ANSI SQL Isolation Levels*
(1995). ``both`` runs a story under each isolation; the others name in their titles the difference between the two.
"""

from __future__ import annotations

from typing import TypeAlias

import pytest

from cortado.errors import OutOfBounds, UniqueViolation, WriteConflict
from cortado.store.clock.timestamp import Timestamp
from cortado.store.kv.operations import KvAdd, KvDelete, KvPut
from cortado.store.kv.operations import get as get_pair
from cortado.store.kv.ranges import KvRange
from cortado.store.kv.scan import KvScanRequest, begin_scan, read_slice
from cortado.store.mvcc.transacting import Origin
from cortado.store.transactions.commit import Staged, evaluate_commit
from cortado.store.transactions.footprint import join_footprints
from cortado.store.transactions.operations import Commit, Committed, Isolation, OnPairs, Operation
from cortado.store.transactions.reading import TransactionReads
from support.table_world import EngineStore, TableWorld
from support.transaction_twin import NAMESPACE, TABLE, new_world, to_operation

SNAPSHOT, SERIALIZABLE = Isolation.SNAPSHOT, Isolation.SERIALIZABLE
both = pytest.mark.parametrize("isolation", [SNAPSHOT, SERIALIZABLE])

Pairs: TypeAlias = dict[str, str]


class Bench:
    """Transactions side by side over one store, as a client runs them: one timestamp to read at, one commit."""

    def __init__(self) -> None:
        self.world: TableWorld = new_world(EngineStore())

    def begin(self, isolation: Isolation = SNAPSHOT) -> Txn:
        return Txn(self.world, isolation, self.world.store.now)

    def blind(self) -> Txn:
        """Return a transaction that reads nothing, and so begins nowhere."""
        return Txn(self.world, SNAPSHOT, None)

    def has(self, **pairs: str) -> None:
        txn = self.blind()
        for key, value in pairs.items():
            txn.put(key, value)
        txn.commit()

    def pairs(self, at: Timestamp | None = None) -> Pairs:
        return Txn(self.world, SNAPSHOT, self.world.store.now if at is None else at).scan()


class Txn:
    """One of them."""

    def __init__(self, world: TableWorld, isolation: Isolation, start: Timestamp | None) -> None:
        self._world = world
        self._isolation = isolation
        self._start = start
        self._operations: list[Operation] = []
        self._footprints: list[bytes] = []

    def get(self, key: str, *, validate: bool = False) -> str | None:
        reads = self._reads()
        pair = get_pair(reads.snapshot(self._at), NAMESPACE, key.encode())
        self._note(reads, validate=validate)
        return None if pair is None else pair.value.decode()

    def scan(self, prefix: str = "", limit: int = 0) -> Pairs:
        reads = self._reads()
        request = KvScanRequest(NAMESPACE, KvRange(prefix=prefix.encode()), limit=limit)
        found = read_slice(reads, begin_scan(request, self._at, 0))
        self._note(reads)
        return {pair.key.decode(): pair.value.decode() for pair in found.pairs}

    def put(self, key: str, value: str) -> None:
        self._operations.append(OnPairs(NAMESPACE, KvPut(key.encode(), value.encode())))

    def delete(self, key: str) -> None:
        self._operations.append(OnPairs(NAMESPACE, KvDelete(key.encode())))

    def count(self, key: str, delta: int, low: int | None = None, high: int | None = None) -> None:
        self._operations.append(OnPairs(NAMESPACE, KvAdd(key.encode(), delta, low, high)))

    def put_document(self, owner: str, **fields: object) -> None:
        document = {"owner": owner, "number": 0, "code": None, "serial": None, "count": 0, "place": None, **fields}
        self._operations.append(to_operation(self._world, ("put", document, None)))

    def commit(self) -> Committed:
        is_serializable = self._isolation is SERIALIZABLE
        footprint = join_footprints(self._footprints)
        commit = Commit(self._operations, self._start, self._isolation, footprint)
        if not self._operations:
            return Committed(self._at)
        assert is_serializable or not footprint.ranges
        _, done = self._world.store.write(
            lambda reader, ts: evaluate_commit(reader, ts, self._world.catalog(reader), commit)
        )
        assert isinstance(done.reply, Committed)
        return done.reply

    @property
    def _at(self) -> Timestamp:
        assert self._start is not None, "who reads has begun"
        return self._start

    def _reads(self) -> TransactionReads:
        staged = Staged(Origin(self._world.store.snapshot(self._at)), self._world.catalog())
        staged.run(self._operations)
        return TransactionReads(self._world.store, staged.mutations(), staged.added)

    def _note(self, reads: TransactionReads, *, validate: bool = False) -> None:
        if validate or self._isolation is SERIALIZABLE:
            self._footprints.append(reads.take_footprint().encode())


def refused(txn: Txn, kind: str) -> None:
    """Check that its commit conflicts, with an object that it used in this way."""
    with pytest.raises(WriteConflict) as conflict:
        txn.commit()
    assert conflict.value.kind == kind


@pytest.fixture
def bench() -> Bench:
    return Bench()


# --- dirty writes and reads: never ---------------------------------------------------------------------------------


@both
def test_g0_dirty_write_two_transactions_never_mix_what_they_write(bench: Bench, isolation: Isolation) -> None:
    bench.has(x="0", y="0")
    one, two = bench.begin(isolation), bench.begin(isolation)
    one.put("x", "1")
    two.put("x", "2")
    two.put("y", "2")
    one.put("y", "1")
    one.commit()
    refused(two, "write")
    assert bench.pairs() == {"x": "1", "y": "1"}


@both
def test_g1a_aborted_read_what_is_not_committed_is_seen_by_nobody(bench: Bench, isolation: Isolation) -> None:
    bench.has(x="0")
    one, two = bench.begin(isolation), bench.begin(isolation)
    one.put("x", "1")
    assert one.get("x") == "1"
    assert two.get("x") == "0"
    bench.has(x="9")
    refused(one, "read" if isolation is SERIALIZABLE else "write")
    assert bench.begin(isolation).get("x") == "9"
    assert two.get("x") == "0"


@both
def test_g1b_intermediate_read_only_the_last_of_its_writes_is_ever_seen(bench: Bench, isolation: Isolation) -> None:
    before = bench.world.store.now
    one = bench.begin(isolation)
    one.put("x", "1")
    one.delete("x")
    one.put("x", "2")
    ts = one.commit().ts
    assert (bench.pairs(before), bench.pairs(ts)) == ({}, {"x": "2"})


def test_g1c_circular_flow_neither_sees_the_other_and_under_serializable_one_is_refused(bench: Bench) -> None:
    for isolation in (SNAPSHOT, SERIALIZABLE):
        bench.has(x="0", y="0")
        one, two = bench.begin(isolation), bench.begin(isolation)
        one.put("x", "1")
        two.put("y", "2")
        assert (one.get("y"), two.get("x")) == ("0", "0")
        one.commit()
        if isolation is SERIALIZABLE:
            refused(two, "read")
        else:
            two.commit()


@both
def test_observed_transaction_vanishes_never_what_was_seen_stays(bench: Bench, isolation: Isolation) -> None:
    bench.has(x="1", y="1")
    reader = bench.begin(isolation)
    assert reader.get("x") == "1"
    bench.has(x="2", y="2")
    assert (reader.get("y"), reader.scan()) == ("1", {"x": "1", "y": "1"})


# --- updates -------------------------------------------------------------------------------------------------------


@both
def test_p4_lost_update_the_second_of_two_updates_is_refused(bench: Bench, isolation: Isolation) -> None:
    bench.has(x="100")
    one, two = bench.begin(isolation), bench.begin(isolation)
    for txn, delta in ((one, 20), (two, 30)):
        txn.put("x", str(int(txn.get("x") or "") + delta))
    one.commit()
    refused(two, "read" if isolation is SERIALIZABLE else "write")
    assert bench.pairs() == {"x": "120"}


@both
def test_an_update_of_what_another_deleted_is_refused_and_so_is_the_other_way_round(
    bench: Bench, isolation: Isolation
) -> None:
    for first, second in ((None, "1"), ("1", None)):
        bench.has(x="0")
        one, two = bench.begin(isolation), bench.begin(isolation)
        for txn, value in ((one, first), (two, second)):
            if value is None:
                txn.delete("x")
            else:
                txn.put("x", value)
        one.commit()
        refused(two, "write")


@both
def test_a_key_that_was_deleted_and_put_as_it_was_has_changed_all_the_same(bench: Bench, isolation: Isolation) -> None:
    bench.has(x="0")
    txn = bench.begin(isolation)
    txn.put("x", "1")
    gone = bench.blind()
    gone.delete("x")
    gone.commit()
    bench.has(x="0")
    refused(txn, "write")


def test_blind_writes_of_those_who_have_read_nothing_all_happen_each_as_a_whole(bench: Bench) -> None:
    one, two = bench.blind(), bench.blind()
    for txn, value in ((one, "1"), (two, "2")):
        txn.put("x", value)
        txn.put("y", value)
    seen = [bench.pairs(txn.commit().ts) for txn in (two, one)]
    assert seen == [{"x": "2", "y": "2"}, {"x": "1", "y": "1"}]


@both
def test_blind_writes_of_those_who_have_begun_are_conflicts(bench: Bench, isolation: Isolation) -> None:
    one, two = bench.begin(isolation), bench.begin(isolation)
    one.put("x", "1")
    two.put("x", "2")
    two.commit()
    refused(one, "write")


# --- skews ---------------------------------------------------------------------------------------------------------


@both
def test_g_single_read_skew_all_reads_are_of_one_state(bench: Bench, isolation: Isolation) -> None:
    bench.has(x="50", y="50")
    reader = bench.begin(isolation)
    assert reader.get("x") == "50"
    moving = bench.begin(isolation)
    moving.put("x", "25")
    moving.put("y", "75")
    moving.commit()
    assert (reader.get("y"), reader.scan()) == ("50", {"x": "50", "y": "50"})
    # It writes nothing, so there is nothing to refuse.
    reader.commit()


def on_call(bench: Bench, isolation: Isolation, *, validate: bool = False) -> tuple[Txn, Txn]:
    """Return two transactions: two doctors see that the other one is on call, and go home."""
    bench.has(x="on", y="on")
    one, two = bench.begin(isolation), bench.begin(isolation)
    for txn, other, mine in ((one, "y", "x"), (two, "x", "y")):
        assert txn.get(other, validate=validate) == "on"
        txn.put(mine, "off")
    one.commit()
    return one, two


def test_g2_item_write_skew_is_permitted_under_snapshot_and_refused_under_serializable(bench: Bench) -> None:
    _, two = on_call(bench, SNAPSHOT)
    two.commit()
    assert bench.pairs() == {"x": "off", "y": "off"}
    _, two = on_call(bench, SERIALIZABLE)
    refused(two, "read")


def test_write_skew_is_refused_under_snapshot_where_what_was_read_is_validated(bench: Bench) -> None:
    _, two = on_call(bench, SNAPSHOT, validate=True)
    refused(two, "read")


def test_g2_phantom_is_permitted_under_snapshot_and_refused_under_serializable(bench: Bench) -> None:
    for isolation, prefix in ((SNAPSHOT, "a"), (SERIALIZABLE, "b")):
        one, two = bench.begin(isolation), bench.begin(isolation)
        for txn, key in ((one, prefix + "1"), (two, prefix + "2")):
            assert txn.scan(prefix) == {}
            txn.put(key, "the only one")
        one.commit()
        if isolation is SERIALIZABLE:
            refused(two, "range")
        else:
            two.commit()


def test_a_phantom_behind_the_limit_of_a_scan_is_none(bench: Bench) -> None:
    bench.has(a1="", a2="")
    for key, is_refused in (("a3", False), ("a0", True)):
        txn = bench.begin(SERIALIZABLE)
        assert txn.scan("a", limit=1) == {"a1": ""}
        txn.put("other", "")
        bench.has(**{key: ""})
        if is_refused:
            refused(txn, "range")
        else:
            txn.commit()


def test_a_scan_is_refused_where_one_of_its_keys_was_deleted(bench: Bench) -> None:
    bench.has(a1="", a2="")
    txn = bench.begin(SERIALIZABLE)
    assert len(txn.scan("a")) == 2
    txn.put("count", "2")
    gone = bench.blind()
    gone.delete("a1")
    gone.commit()
    refused(txn, "range")


@both
def test_long_fork_two_readers_never_see_two_writes_in_different_orders(bench: Bench, isolation: Isolation) -> None:
    starts = [bench.world.store.now]
    for key in ("x", "y"):
        writer = bench.begin(isolation)
        writer.put(key, "1")
        starts.append(writer.commit().ts)
    seen = [set(bench.pairs(at)) for at in starts]
    assert seen == [set(), {"x"}, {"x", "y"}]


def test_read_only_anomaly_is_permitted_under_snapshot_and_refused_under_serializable(bench: Bench) -> None:
    """Fekete, O'Neil and O'Neil, 2004: two that write are in an order, until a third looks."""
    for isolation in (SNAPSHOT, SERIALIZABLE):
        bench.has(savings="0", checking="0")
        withdrawing = bench.begin(isolation)
        assert (withdrawing.get("savings"), withdrawing.get("checking")) == ("0", "0")
        depositing = bench.begin(isolation)
        assert depositing.get("savings") == "0"
        depositing.put("savings", "20")
        depositing.commit()
        assert bench.begin(isolation).scan() == {"checking": "0", "savings": "20"}
        withdrawing.put("checking", "-11")
        if isolation is SERIALIZABLE:
            refused(withdrawing, "read")
        else:
            withdrawing.commit()


# --- the server's decisions at the commit --------------------------------------------------------------------------


@both
def test_unique_race_of_two_who_take_a_value_one_has_it_and_the_other_is_told_when_it_comes_again(
    bench: Bench, isolation: Isolation
) -> None:
    one, two = bench.begin(isolation), bench.begin(isolation)
    one.put_document("a", code="p")
    two.put_document("b", code="p")
    one.commit()
    # It could not know: begun again it does, and that is final.
    refused(two, "write")
    again = bench.begin(isolation)
    again.put_document("b", code="p")
    with pytest.raises(UniqueViolation):
        again.commit()


@both
def test_a_unique_value_that_its_owner_gave_up_meanwhile_is_free(bench: Bench, isolation: Isolation) -> None:
    setup = bench.blind()
    setup.put_document("a", code="p")
    setup.commit()
    txn, other = bench.begin(isolation), bench.begin(isolation)
    other.put_document("a", code="q")
    other.commit()
    txn.put_document("b", code="p")
    txn.commit()
    assert {each["owner"]: each["code"] for each in bench.world.scan(TABLE)} == {"a": "q", "b": "p"}


@both
def test_two_counters_that_are_added_to_at_once_both_count_and_nobody_is_refused(
    bench: Bench, isolation: Isolation
) -> None:
    one, two = bench.begin(isolation), bench.begin(isolation)
    for txn in (one, two):
        txn.count("x", 1)
        txn.count("y", -1)
    assert [list(txn.commit().sums) for txn in (one, two)] == [[1, -1], [2, -2]]


def test_a_counter_that_was_read_is_a_conflict_under_serializable_and_under_snapshot_it_is_not(bench: Bench) -> None:
    for isolation in (SNAPSHOT, SERIALIZABLE):
        one, two = bench.begin(isolation), bench.begin(isolation)
        for txn in (one, two):
            txn.count("x", 1)
            txn.get("other")
        one.commit()
        two.commit()
        one, two = bench.begin(isolation), bench.begin(isolation)
        two.scan("x", limit=1)
        for txn in (one, two):
            txn.count("x", 1)
        one.commit()
        if isolation is SERIALIZABLE:
            refused(two, "range")
        else:
            assert list(two.commit().sums) == [4]


@both
def test_a_counter_that_is_put_too_is_written_and_conflicts(bench: Bench, isolation: Isolation) -> None:
    one, two = bench.begin(isolation), bench.begin(isolation)
    one.count("x", 1)
    two.put("x", "\0" * 8)
    two.count("x", 5)
    one.commit()
    refused(two, "write")


@both
def test_bounds_of_a_counter_hold_whoever_comes_first(bench: Bench, isolation: Isolation) -> None:
    setup = bench.begin()
    setup.count("stock", 1)
    setup.commit()
    one, two = bench.begin(isolation), bench.begin(isolation)
    for txn in (one, two):
        txn.count("stock", -1, low=0)
    one.commit()
    # There was one left when it began: a conflict. Begun again it sees that there is none.
    refused(two, "write")
    again = bench.begin(isolation)
    again.count("stock", -1, low=0)
    with pytest.raises(OutOfBounds):
        again.commit()


@both
def test_a_transaction_without_writes_is_never_refused(bench: Bench, isolation: Isolation) -> None:
    reader = bench.begin(isolation)
    reader.scan()
    bench.has(x="1")
    reader.commit()
    assert reader.scan() == {}
