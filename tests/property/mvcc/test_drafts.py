"""Versions that were made ahead of their timestamp are those that are encoded at it, in the order of their keys."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cortado.errors import Internal
from cortado.store.clock.timestamp import Timestamp
from cortado.store.keys.packing import join
from cortado.store.keys.types import LogicalKey
from cortado.store.mvcc.drafts import DRAFT_FROM, Draft, drafted
from cortado.store.mvcc.evaluation import Evaluation
from cortado.store.mvcc.mutations import Mutations
from cortado.store.mvcc.versions import Item, encode_versions
from cortado.store.replica.group_range import META_GROUP
from cortado.store.replica.write.batch import Batch

KEYS = st.lists(st.binary(max_size=40).map(lambda each: each.replace(b"\0", b"\xff") + b"\0"), min_size=1, unique=True)
PAYLOADS = st.none() | st.just(b"") | st.binary(max_size=40)
TIMESTAMPS = st.builds(Timestamp, st.integers(0, 9), st.integers(0, 1 << 47), st.integers(0, 9))


@given(KEYS, st.data(), TIMESTAMPS, TIMESTAMPS)
def test_at_any_time_they_are_what_is_encoded_then(
    keys: list[bytes], data: st.DataObject, first: Timestamp, second: Timestamp
) -> None:
    payloads = data.draw(st.lists(PAYLOADS, min_size=len(keys), max_size=len(keys)))
    expiries = data.draw(st.dictionaries(st.sampled_from(list(map(LogicalKey, keys))), st.integers(1, 1 << 47)))
    mutations = Mutations([LogicalKey(key) for key in keys], payloads, expiries)
    draft = Draft(mutations)
    assert dict(zip(draft.keys, draft.payloads, strict=True)) == dict(zip(keys, payloads, strict=True))
    assert (draft.size_bytes, draft.bounds) == (mutations.size_bytes, (min(keys), max(keys)))
    for ts in (first, second):
        made = draft.at(ts)
        assert made.items == sorted(encode_versions(mutations.keys, payloads, ts, expiries))
        assert made.items == encode_versions(draft.keys, draft.payloads, ts, expiries), "in the order of the keys"
        assert (made.keys, made.key_lengths) == join([key for key, _ in made.items])
        assert (made.values, made.value_lengths) == join([value for _, value in made.items])


def test_payloads_of_a_mebibyte_and_of_nothing_are_drafted_together() -> None:
    sizes = [0, 1, 3, 1 << 20, 70_000, 1]
    mutations = Mutations([LogicalKey(b"%d" % each) for each in range(len(sizes))], [bytes(size) for size in sizes])
    ts = Timestamp(1, 2, 3)
    assert Draft(mutations).at(ts).items == encode_versions(mutations.keys, mutations.payloads, ts)


def test_few_are_left_as_they_are() -> None:
    few = Mutations([LogicalKey(b"%04d" % each) for each in range(DRAFT_FROM - 1)], [b""] * (DRAFT_FROM - 1))
    assert drafted(few) is few
    few.put(LogicalKey(b"one more"), b"")
    assert isinstance(drafted(few), Draft)


def test_a_key_that_begins_another_is_a_defect_since_a_timestamp_would_decide_their_order() -> None:
    with pytest.raises(Internal, match="beginning of another"):
        Draft(Mutations([LogicalKey(b"ab"), LogicalKey(b"a")], [b"", b""]))


def test_in_its_turn_nothing_is_cut_and_whoever_asks_is_given_the_same_objects() -> None:
    mutations = Mutations([LogicalKey(b"%04d" % each) for each in range(100)], [b"v"] * 100)
    batch = Batch(META_GROUP.segment)
    batch.add(Timestamp(1, 2, 3), Evaluation(Draft(mutations), None), 1_000)
    entry = batch.entry(1, 1)
    assert entry.encode()
    assert batch.drafted is not None
    items = batch.drafted.items
    assert entry.items is items
    assert items._cut is None, "the thread that stores them cuts them"
    assert len(items) == 100
    assert items._cut is None
    barrier = Barrier(4)

    def cut(_number: int) -> list[Item]:
        barrier.wait(10)
        return list(items)

    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(cut, range(4)))
    assert all(mine is theirs for each in found for mine, theirs in zip(each, items, strict=True))
    assert items[7] is found[0][7]
    assert items[7:9] == found[0][7:9]
