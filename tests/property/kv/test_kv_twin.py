"""The key-value API against a dictionary that does the same by hand."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from cortado.errors import ConditionFailed
from cortado.store.kv.operations import (
    KvDelete,
    KvPut,
    KvRangeDeleted,
    evaluate_delete_range,
    get,
)
from cortado.store.kv.ranges import KvRange
from cortado.store.kv.scan import KvScanRequest, begin_scan, read_slice, resume_scan
from cortado.store.mvcc.evaluation import Absent, Condition, Present, ValueIs
from support.dict_reader import DictStore
from support.pair_commits import evaluate_pairs

KEYS = st.lists(st.sampled_from([b"\x00", b"\x01", b"a", b"b", b"\xfe", b"\xff"]), min_size=1, max_size=3).map(b"".join)
BOUNDS = st.one_of(st.just(b""), KEYS)
VALUES = st.sampled_from([b"", b"1", b"2"])
CONDITIONS: st.SearchStrategy[Condition | None] = st.one_of(
    st.none(), st.none(), st.just(Absent()), st.just(Present()), VALUES.map(ValueIs)
)
OPERATIONS: st.SearchStrategy[KvPut | KvDelete] = st.one_of(
    st.builds(KvPut, KEYS, VALUES, CONDITIONS), st.builds(KvDelete, KEYS, CONDITIONS)
)
BATCHES = st.lists(OPERATIONS, min_size=1, max_size=4, unique_by=lambda each: each.key)


def ranges(start: bytes, end: bytes, by_prefix: bool) -> KvRange:
    if by_prefix:
        return KvRange(prefix=start)
    return KvRange(*sorted((start, end))) if end else KvRange(start)


RANGES = st.builds(ranges, BOUNDS, BOUNDS, st.booleans())


def within(key: bytes, asked: KvRange) -> bool:
    return key.startswith(asked.prefix) and asked.start <= key and (not asked.end or key < asked.end)


def holds(condition: Condition | None, value: bytes | None) -> bool:
    match condition:
        case Absent():
            return value is None
        case Present():
            return value is not None
        case ValueIs(wanted):
            return value == wanted
        case _:
            return True


def apply_batch(twin: dict[bytes, bytes], batch: list[KvPut | KvDelete]) -> bool:
    after = dict(twin)
    for each in batch:
        if not holds(each.condition, after.get(each.key)):
            return False
        if isinstance(each, KvPut):
            after[each.key] = each.value
        else:
            after.pop(each.key, None)
    twin.clear()
    twin.update(after)
    return True


@given(st.lists(st.one_of(BATCHES, RANGES), max_size=12))
def test_batches_and_range_deletes_do_what_a_dictionary_does(steps: list[list[KvPut | KvDelete] | KvRange]) -> None:
    store, twin = DictStore(), dict[bytes, bytes]()
    for step in steps:
        if isinstance(step, KvRange):
            gone = [key for key in twin if within(key, step)]
            _, evaluation = store.write(lambda reader, _, step=step: evaluate_delete_range(reader, "ns", step))
            assert evaluation.reply == KvRangeDeleted(len(gone))
            for key in gone:
                del twin[key]
        else:
            try:
                store.write(lambda reader, ts, step=step: evaluate_pairs(reader, ts, "ns", step))
                happened = True
            except ConditionFailed:
                happened = False
            assert happened == apply_batch(twin, step)
        for key in twin:
            pair = get(store.snapshot(), "ns", key)
            assert pair is not None
            assert pair.value == twin[key]


@given(st.dictionaries(KEYS, VALUES, max_size=20), RANGES, st.booleans(), st.integers(0, 8), st.integers(1, 4))
def test_pages_put_together_are_the_sorted_range(
    pairs: dict[bytes, bytes], asked: KvRange, reverse: bool, limit: int, page_size: int
) -> None:
    store = DictStore()
    for namespace in ("a", "ns", "z"):
        for key, value in pairs.items():
            puts = [KvPut(key, value)]
            store.write(lambda reader, ts, to=namespace, puts=puts: evaluate_pairs(reader, ts, to, puts))
    request = KvScanRequest("ns", asked, reverse=reverse, limit=limit)
    page = read_slice(store, begin_scan(request, store.now, 0), rows_max=page_size)
    found = page.pairs
    while page.rest is not None:
        page = read_slice(store, resume_scan(request, page.rest.page_token(), 0), rows_max=page_size)
        found = found + page.pairs
    expected = sorted((key for key in pairs if within(key, asked)), reverse=reverse)
    assert [(pair.key, pair.value) for pair in found] == [(key, pairs[key]) for key in expected[: limit or None]]
