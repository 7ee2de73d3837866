"""Scans of the key-value API go on where they stopped, at the time they began, and only there."""

from __future__ import annotations

import pytest

from cortado.errors import InvalidArgument, InvalidPageToken
from cortado.store.kv.operations import KvPut, evaluate_put
from cortado.store.kv.ranges import KvRange
from cortado.store.kv.scan import KvScanRequest, begin_scan, read_slice, resume_scan
from cortado.store.mvcc.paging import PageToken, encode_token
from support.dict_reader import DictStore


@pytest.fixture
def store() -> DictStore:
    store = DictStore()
    for i in range(10):
        put(store, b"%d" % i, b"value %d" % i)
    return store


def put(store: DictStore, key: bytes, value: bytes, namespace: str = "ns") -> None:
    store.write(lambda reader, ts: evaluate_put(reader, ts, namespace, KvPut(key, value)))


def test_a_scan_ends_with_its_range(store: DictStore) -> None:
    page = read_slice(store, begin_scan(KvScanRequest("ns", KvRange(b"3", b"6")), store.now, 0))
    assert [(pair.key, pair.value) for pair in page.pairs] == [(b"%d" % i, b"value %d" % i) for i in (3, 4, 5)]
    assert page.rest is None


def test_a_scan_ends_with_its_limit_over_all_pages(store: DictStore) -> None:
    request = KvScanRequest("ns", limit=7, reverse=True)
    page = read_slice(store, begin_scan(request, store.now, 0), rows_max=3)
    seen = [pair.key for pair in page.pairs]
    while page.rest is not None:
        page = read_slice(store, resume_scan(request, page.rest.page_token(), 0), rows_max=3)
        seen += [pair.key for pair in page.pairs]
    assert seen == [b"%d" % i for i in range(9, 2, -1)]


def test_all_pages_read_at_the_first_one_s_time(store: DictStore) -> None:
    request = KvScanRequest("ns")
    page = read_slice(store, begin_scan(request, store.now, 0), rows_max=5)
    put(store, b"7", b"changed later")
    assert page.rest is not None
    rest = read_slice(store, resume_scan(request, page.rest.page_token(), 0))
    assert [pair.value for pair in rest.pairs] == [b"value %d" % i for i in range(5, 10)]


def test_keys_only_leaves_the_values_out(store: DictStore) -> None:
    page = read_slice(store, begin_scan(KvScanRequest("ns", keys_only=True), store.now, 0))
    assert {pair.value for pair in page.pairs} == {b""}
    assert len(page.pairs) == 10


def test_a_token_is_good_for_its_own_request_only(store: DictStore) -> None:
    request = KvScanRequest("ns", KvRange(b"2", b"8"))
    rest = read_slice(store, begin_scan(request, store.now, 0), rows_max=2).rest
    assert rest is not None
    for other in (
        KvScanRequest("other", KvRange(b"2", b"8")),
        KvScanRequest("ns", KvRange(b"2", b"9")),
        KvScanRequest("ns", KvRange(b"2", b"8"), reverse=True),
        KvScanRequest("ns", KvRange(b"2", b"8"), limit=1),
        KvScanRequest("ns", KvRange(b"2", b"8"), at="0.5.0"),
    ):
        with pytest.raises(InvalidPageToken):
            resume_scan(other, rest.page_token(), 0)


def test_a_forged_token_does_not_reach_another_namespace(store: DictStore) -> None:
    put(store, b"secret", b"", "other")
    elsewhere = begin_scan(KvScanRequest("other"), store.now, 0)
    request = KvScanRequest("ns")
    forged = encode_token(PageToken(store.now, elsewhere.start), request.shape())
    with pytest.raises(InvalidPageToken):
        resume_scan(request, forged, 0)


def test_a_bad_range_is_refused_before_anything_is_read() -> None:
    for within in (KvRange(b"b", b"a"), KvRange(b"a", b"", b"a"), KvRange(b"", b"b", b"a"), KvRange(b"x" * 500)):
        with pytest.raises(InvalidArgument):
            begin_scan(KvScanRequest("ns", within), DictStore().now, 0)
