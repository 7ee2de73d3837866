"""Leases in any order of acquiring, repeating and ending agree with a dictionary of them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from cortado.errors import AlreadyExists, TimestampInFuture
from cortado.store.clock.timestamp import Timestamp
from cortado.store.collection.leases import Lease, acquire, end, find_lease, leases_of, oldest_lease
from support.dict_reader import DictStore

IDS = st.integers(0, 3).map(lambda number: bytes([number] * 16))
TIMES = st.none() | st.integers(-3, 3)
STEPS = st.lists(st.tuples(IDS, st.none() | st.tuples(TIMES, st.sampled_from(["a", "b"]))), max_size=30)


def _ago(ts: Timestamp, steps: int) -> Timestamp:
    return Timestamp(ts.epoch, ts.wall_ms, ts.logical - steps)


@given(STEPS)
def test_leases_are_what_a_dictionary_says(steps: list[tuple[bytes, tuple[int | None, str] | None]]) -> None:
    store, twin = DictStore(), dict[bytes, Lease]()
    store.now = Timestamp(0, 1_000, 10)
    for lease_id, asked in steps:
        if asked is None:
            _, ended = store.write(end(lease_id))
            assert ended.reply == (() if twin.pop(lease_id, None) is None else (lease_id,))
        else:
            _acquire(store, twin, lease_id, *asked)
        assert leases_of(store.snapshot()) == sorted(twin.values(), key=lambda lease: (lease.ts, lease.lease_id))
        first = min(twin.values(), key=lambda lease: (lease.ts, lease.lease_id), default=None)
        assert oldest_lease(store.snapshot()) == first
        assert find_lease(store.snapshot(), lease_id) == twin.get(lease_id)


def _acquire(store: DictStore, twin: dict[bytes, Lease], lease_id: bytes, ago: int | None, label: str) -> None:
    ts = None if ago is None else _ago(store.now, ago)
    known = twin.get(lease_id)
    try:
        commit_ts, acquired = store.write(acquire(lease_id, ts, 60_000, label))
    except AlreadyExists:
        assert known is not None
        assert known.label != label or ts not in (None, known.ts)
    except TimestampInFuture:
        assert ts is not None
        assert known is None
        assert ts > store.now
    else:
        new = Lease(lease_id, commit_ts if ts is None else ts, 60_000, label, commit_ts)
        assert acquired.reply == (known or new)
        twin.setdefault(lease_id, new)
