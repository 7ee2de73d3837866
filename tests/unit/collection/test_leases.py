"""A lease is at its own entry's timestamp or an older one, is acquired once however often that is asked, and ends."""

from __future__ import annotations

import pytest

from cortado.errors import (
    AlreadyExists,
    DataLoss,
    InvalidArgument,
    ResourceExhausted,
    SnapshotTooOld,
    TimestampInFuture,
)
from cortado.store.clock.timestamp import Timestamp
from cortado.store.collection import leases
from cortado.store.collection.leases import (
    Lease,
    acquire,
    check_lease,
    check_lease_id,
    end,
    end_as_seen,
    find_lease,
    leases_of,
    move,
    oldest_lease,
)
from cortado.store.keys.types import LogicalKey
from cortado.store.mvcc.mutations import Mutations
from cortado.store.mvcc.safepoints import SAFEPOINTS_KEY, Safepoints
from support.dict_reader import DictReader, DictStore

ONE, OTHER = bytes(16), bytes([1] * 16)
TTL_MS = 60_000


def acquired(store: DictStore, lease_id: bytes, ts: Timestamp | None = None, label: str = "a job") -> Lease:
    _, evaluation = store.write(acquire(lease_id, ts, TTL_MS, label))
    assert isinstance(evaluation.reply, Lease)
    return evaluation.reply


def test_without_a_timestamp_it_is_at_that_of_its_own_entry() -> None:
    store = DictStore()
    lease = acquired(store, ONE)
    assert lease == Lease(ONE, store.now, TTL_MS, "a job", store.now)
    assert find_lease(store.snapshot(), ONE) == lease


def test_it_may_be_at_an_earlier_one_and_the_oldest_comes_first() -> None:
    store = DictStore()
    early = store.tick()
    later = acquired(store, ONE)
    older = acquired(store, OTHER, early)
    assert (older.ts, older.acquired_ts) == (early, store.now)
    assert leases_of(store.snapshot()) == [older, later]


def test_a_timestamp_above_what_is_committed_is_refused() -> None:
    store = DictStore()
    with pytest.raises(TimestampInFuture) as refused:
        acquired(store, ONE, store.now.next().next())
    assert refused.value.field == "at"
    assert leases_of(store.snapshot()) == []


@pytest.mark.parametrize("is_of_a_table", [False, True])
def test_one_below_a_safepoint_is_refused_with_both_and_one_at_it_is_not(is_of_a_table: bool) -> None:
    store = DictStore()
    below = store.tick()
    safepoint = store.tick()
    mutations = Mutations()
    early = Timestamp(0, 1, 0)
    # That something keeps its old versions for longer does not count.
    of_all = Safepoints(early, {7: safepoint}) if is_of_a_table else Safepoints(safepoint, {7: early})
    mutations.put(SAFEPOINTS_KEY, of_all.encode())
    store.apply(mutations, store.tick())
    with pytest.raises(SnapshotTooOld) as refused:
        acquired(store, ONE, below)
    assert (refused.value.read_ts, refused.value.safepoint) == (str(below), str(safepoint))
    assert acquired(store, ONE, safepoint).ts == safepoint


def test_acquiring_again_has_the_first_answer_and_changes_nothing() -> None:
    store = DictStore()
    lease = acquired(store, ONE)
    for ts in (None, lease.ts):
        _, again = store.write(acquire(ONE, ts, TTL_MS, "a job"))
        assert (again.reply, len(again.mutations)) == (lease, 0)


def test_several_end_at_once_and_only_those_that_there_are() -> None:
    store = DictStore()
    acquired(store, ONE)
    kept = acquired(store, OTHER)
    _, ended = store.write(end(ONE, bytes([2] * 16), ONE))
    assert (ended.reply, leases_of(store.snapshot())) == ((ONE,), [kept])


@pytest.mark.parametrize(("ts", "ttl_ms", "label"), [(Timestamp(0, 1, 0), TTL_MS, "a job"), (None, 1_000, "a job")])
def test_an_id_names_one_lease(ts: Timestamp | None, ttl_ms: int, label: str) -> None:
    store = DictStore()
    acquired(store, ONE)
    with pytest.raises(AlreadyExists) as refused:
        store.write(acquire(ONE, ts, ttl_ms, label))
    assert (refused.value.kind, refused.value.name) == ("lease", ONE.hex())


def test_there_are_no_more_than_so_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leases, "LEASES_MAX", 2)
    store = DictStore()
    first = acquired(store, ONE)
    acquired(store, OTHER)
    with pytest.raises(ResourceExhausted) as refused:
        acquired(store, bytes([2] * 16))
    assert (refused.value.resource, refused.value.limit) == ("holds", 2)
    assert acquired(store, ONE) == first  # It is one of them.
    store.write(end(ONE))
    acquired(store, bytes([2] * 16))


def test_one_that_ended_is_no_more_and_ending_again_changes_nothing() -> None:
    store = DictStore()
    lease = acquired(store, ONE)
    _, ended = store.write(end(ONE))
    _, again = store.write(end(ONE))
    assert (ended.reply, again.reply, len(again.mutations)) == ((ONE,), (), 0)
    assert (find_lease(store.snapshot(), ONE), leases_of(store.snapshot())) == (None, [])
    assert leases_of(store.snapshot(lease.ts)) == [lease]


@pytest.mark.parametrize(
    ("ttl_ms", "label", "field"), [(999, "", "ttl_ms"), (600_001, "", "ttl_ms"), (1_000, "x" * 201, "label")]
)
def test_ttl_and_label_have_bounds(ttl_ms: int, label: str, field: str) -> None:
    check_lease(1_000, "x" * 200)
    check_lease(600_000, "")
    with pytest.raises(InvalidArgument) as refused:
        check_lease(ttl_ms, label)
    assert refused.value.field == field


@pytest.mark.parametrize("size", [0, 15, 17])
def test_an_id_has_sixteen_bytes(size: int) -> None:
    check_lease_id(ONE)
    with pytest.raises(InvalidArgument, match="must have 16 bytes"):
        check_lease_id(bytes(size))


@pytest.mark.parametrize("payload", [b"\xff", b"", b"\x0a\x01x"])
def test_a_malformed_value_is_data_loss(payload: bytes) -> None:
    store = DictStore()
    store.write(acquire(ONE, None, 60_000, ""))
    mutations = Mutations()
    mutations.put(leases.lease_key(ONE), payload)
    store.apply(mutations, store.tick())
    for read in (leases_of, oldest_lease):
        with pytest.raises(DataLoss):
            read(store.snapshot())


@pytest.mark.parametrize(("key", "payload"), [(leases.lease_key(ONE), None), (leases.LEASES_KEY, b"x")])
def test_a_list_that_does_not_fit_is_data_loss(key: LogicalKey, payload: bytes | None) -> None:
    store = DictStore()
    store.write(acquire(ONE, None, 60_000, ""))
    store.apply(Mutations([key], [payload]), store.tick())
    for read in (leases_of, oldest_lease):
        with pytest.raises(DataLoss, match="lease"):
            read(store.snapshot())


def test_leases_that_have_ended_are_not_passed_by(monkeypatch: pytest.MonkeyPatch) -> None:
    store = DictStore()
    for number in range(100):
        store.write(acquire(number.to_bytes(16), None, 60_000, ""))
        store.write(end(number.to_bytes(16)))
    monkeypatch.setattr(DictReader, "scan", None)
    assert leases_of(store.snapshot()) == []
    store.write(acquire(ONE, None, 60_000, ""))
    assert [each.lease_id for each in leases_of(store.snapshot())] == [ONE]


# --- consumers -----------------------------------------------------------------------------------------------------


def moved(store: DictStore, ts: Timestamp | None = None, consumer: str = "me", ttl_ms: int = 7 * 86_400_000) -> Lease:
    _, evaluation = store.write(move(ONE, ts, ttl_ms, "a stream", consumer))
    assert isinstance(evaluation.reply, Lease)
    return evaluation.reply


def test_a_consumers_lease_is_moved_to_and_fro_and_there_is_one() -> None:
    store = DictStore()
    first, second = store.tick(), store.tick()
    for ts in (second, first, second):
        lease = moved(store, ts)
        assert lease == Lease(ONE, ts, 7 * 86_400_000, "a stream", store.now, "me")
        assert leases_of(store.snapshot()) == [lease]
        assert oldest_lease(store.snapshot()) == lease


def test_a_consumers_lease_is_no_others() -> None:
    store = DictStore()
    ts = store.tick()
    moved(store, ts)
    with pytest.raises(AlreadyExists):
        moved(store, ts, consumer="another")
    with pytest.raises(AlreadyExists):
        acquired(store, ONE, ts)
    acquired(store, OTHER, ts)
    with pytest.raises(AlreadyExists):
        store.write(move(OTHER, ts, 60_000, "a job", "me"))


@pytest.mark.parametrize(
    ("ttl_ms", "consumer", "field"),
    [
        (999, "me", "ttl_ms"),
        (30 * 86_400_000 + 1, "me", "ttl_ms"),
        (1_000, "", "consumer"),
        (1_000, "x" * 101, "consumer"),
    ],
)
def test_a_consumers_lease_has_bounds(ttl_ms: int, consumer: str, field: str) -> None:
    with pytest.raises(InvalidArgument) as refused:
        move(ONE, None, ttl_ms, "", consumer)
    assert refused.value.field == field


def test_one_that_was_moved_since_it_was_seen_does_not_end() -> None:
    store = DictStore()
    seen, other = moved(store, store.tick()), acquired(store, OTHER)
    again = moved(store, store.tick())
    _, evaluation = store.write(end_as_seen(seen, other))
    assert evaluation.reply == (OTHER,)
    assert leases_of(store.snapshot()) == [again]
    store.write(end_as_seen(again))
    assert leases_of(store.snapshot()) == []
