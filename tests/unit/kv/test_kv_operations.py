"""The key-value API's writes: their changes, and refusals that change nothing."""

from __future__ import annotations

import pytest

from cortado.errors import ConditionFailed, CortadoError, InvalidArgument, KeyTooLong, TooLarge
from cortado.store.clock.timestamp import Timestamp
from cortado.store.kv.operations import (
    KvDelete,
    KvDeleted,
    KvLimits,
    KvPut,
    KvRangeDeleted,
    KvWritten,
    evaluate_delete,
    evaluate_delete_range,
    evaluate_put,
    get,
)
from cortado.store.kv.ranges import KvRange
from cortado.store.mvcc.evaluation import Absent, Condition, EtagIs, Evaluation, Present, ValueIs, parse_etag
from cortado.store.transactions.operations import Committed
from support.dict_reader import DictStore
from support.pair_commits import evaluate_pairs


class Kv:
    """A namespace of a dictionary store."""

    def __init__(self) -> None:
        self.store = DictStore()

    def put(self, key: bytes, value: bytes = b"v", condition: Condition | None = None, **more: KvLimits) -> Timestamp:
        ts, evaluation = self.store.write(lambda r, ts: evaluate_put(r, ts, "ns", KvPut(key, value, condition), **more))
        assert evaluation.reply == KvWritten(ts)
        return ts

    def delete(self, key: bytes, condition: Condition | None = None) -> Evaluation:
        return self.store.write(lambda r, _: evaluate_delete(r, "ns", KvDelete(key, condition)))[1]

    def delete_range(self, within: KvRange, **more: KvLimits) -> Evaluation:
        return self.store.write(lambda r, _: evaluate_delete_range(r, "ns", within, **more))[1]

    def batch(self, *operations: KvPut | KvDelete) -> Timestamp:
        ts, evaluation = self.store.write(lambda r, ts: evaluate_pairs(r, ts, "ns", operations))
        assert evaluation.reply == Committed(ts)
        return ts

    def value(self, key: bytes, namespace: str = "ns") -> bytes | None:
        pair = get(self.store.snapshot(), namespace, key)
        return None if pair is None else pair.value


@pytest.fixture
def kv() -> Kv:
    return Kv()


def test_a_pair_is_read_back_with_the_commit_s_timestamp_as_etag(kv: Kv) -> None:
    etag = kv.put(b"a", b"")
    pair = get(kv.store.snapshot(), "ns", b"a")
    assert pair is not None
    assert (pair.key, pair.value, pair.etag) == (b"a", b"", etag)


def test_namespaces_do_not_see_each_other(kv: Kv) -> None:
    kv.put(b"a")
    assert kv.value(b"a", "other") is None
    assert kv.delete_range(KvRange()).reply == KvRangeDeleted(1)


def test_a_delete_says_whether_there_was_something(kv: Kv) -> None:
    kv.put(b"a")
    assert kv.delete(b"a").reply == KvDeleted(existed=True)
    again = kv.delete(b"a")
    assert again.reply == KvDeleted(existed=False)
    assert len(again.mutations) == 0
    assert kv.value(b"a") is None


@pytest.mark.parametrize("write", ["put", "delete", "batch"])
def test_conditions_hold_or_nothing_changes(kv: Kv, write: str) -> None:
    etag = kv.put(b"there", b"old")

    def attempt(key: bytes, condition: Condition) -> None:
        if write == "put":
            kv.put(key, b"new", condition)
        elif write == "delete":
            kv.delete(key, condition)
        else:
            kv.batch(KvPut(b"other", b"new"), KvPut(key, b"new", condition))

    refused: list[tuple[bytes, Condition, str]] = [
        (b"there", Absent(), str(etag)),
        (b"missing", Present(), "absent"),
        (b"missing", EtagIs(etag), "absent"),
        (b"there", EtagIs(etag.next()), str(etag)),
        (b"there", ValueIs(b"other"), f"another value of 3 bytes at {etag}"),
        (b"missing", ValueIs(b""), "absent"),
    ]
    for key, condition, actual in refused:
        with pytest.raises(ConditionFailed) as failed:
            attempt(key, condition)
        assert failed.value.actual == actual
        assert failed.value.row == (1 if write == "batch" else 0)
        assert key.decode() in failed.value.key
    assert kv.value(b"there") == b"old"
    assert kv.value(b"missing") is None
    assert kv.value(b"other") is None


def test_conditions_that_hold_let_the_write_through(kv: Kv) -> None:
    etag = kv.put(b"a", b"1", Absent())
    kv.put(b"a", b"2", parse_etag(str(etag)))
    kv.put(b"a", b"3", ValueIs(b"2"))
    kv.put(b"a", b"4", Present())
    assert kv.value(b"a") == b"4"
    kv.delete(b"a", ValueIs(b"4"))
    assert kv.value(b"a") is None


def test_a_malformed_etag_is_bad_input() -> None:
    with pytest.raises(InvalidArgument) as refused:
        parse_etag("yesterday")
    assert refused.value.field == "condition.etag"


def test_a_batch_is_all_or_nothing_and_one_etag(kv: Kv) -> None:
    kv.put(b"gone")
    etag = kv.batch(KvPut(b"a", b"1"), KvDelete(b"gone"), KvPut(b"b", b"2"), KvDelete(b"never"))
    assert [kv.value(key) for key in (b"a", b"b", b"gone")] == [b"1", b"2", None]
    pair = get(kv.store.snapshot(), "ns", b"b")
    assert pair is not None
    assert pair.etag == etag
    assert b"never" not in b"".join(kv.store.versions), "a delete of what is absent writes nothing"


def test_a_batch_with_one_bad_operation_changes_nothing(kv: Kv) -> None:
    bad: list[tuple[list[KvPut | KvDelete], str]] = [
        ([KvPut(b"a", b"1"), KvPut(b"", b"1")], "operations[1].key"),
        ([KvPut(b"a", b"1"), KvPut(b"b", b"x" * ((1 << 20) + 1))], "operations[1].value"),
        ([KvPut(b"%d" % i, bytes(1 << 20)) for i in range(5)], "operations"),
        ([KvPut(b"%d" % i, b"") for i in range(10_001)], "operations"),
        ([], "operations"),
    ]
    for operations, field in bad:
        with pytest.raises(InvalidArgument) as refused:
            kv.batch(*operations)
        assert refused.value.field == field
    assert not kv.store.versions


def test_ten_thousand_operations_of_four_mebibytes_are_a_batch(kv: Kv) -> None:
    kv.batch(*[KvPut(b"%05d" % i, b"") for i in range(10_000)])
    kv.batch(*[KvPut(b"%d" % i, bytes((1 << 20) - 1)) for i in range(4)])


def test_limits_are_met_to_the_byte(kv: Kv) -> None:
    kv.put(b"a", bytes(1 << 20))
    with pytest.raises(TooLarge) as refused:
        kv.put(b"a", bytes((1 << 20) + 1))
    assert (refused.value.field, refused.value.length, refused.value.limit) == ("value", (1 << 20) + 1, 1 << 20)


def test_a_long_key_is_refused_by_its_encoded_length(kv: Kv) -> None:
    generation = bytes(4)
    longest = b"x" * (499 - len(b"k") - len(b"\x30ns\x00\x01") - len(generation) - len(b"\x2c\x00\x01"))
    kv.put(longest)
    for refuse in (
        lambda: kv.put(longest + b"x"),
        lambda: kv.put(longest[:-1] + b"\x00"),  # a zero takes two bytes
        lambda: kv.delete(longest + b"x"),
        lambda: kv.value(longest + b"x"),
    ):
        with pytest.raises(KeyTooLong) as refused:
            refuse()
        assert (refused.value.length, refused.value.limit) == (500, 499)


def test_bad_names_and_empty_keys_are_refused(kv: Kv) -> None:
    for refuse in (
        lambda: kv.value(b"a", "no spaces"),
        lambda: kv.value(b"a", ""),
        lambda: kv.put(b""),
        lambda: kv.delete(b""),
        lambda: kv.value(b""),
        lambda: kv.delete_range(KvRange(start=b"b", end=b"a")),
        lambda: kv.delete_range(KvRange(start=b"b", prefix=b"b")),
    ):
        with pytest.raises(InvalidArgument):
            refuse()


def test_a_range_is_deleted_whole(kv: Kv) -> None:
    for key in (b"a", b"b", b"b\x00", b"b\xff\xff", b"c", b"\xff", b"\xff\xff"):
        kv.put(key)
    assert kv.delete_range(KvRange(prefix=b"b")).reply == KvRangeDeleted(3)
    assert kv.delete_range(KvRange(start=b"b", end=b"b")).reply == KvRangeDeleted(0)
    assert kv.delete_range(KvRange(prefix=b"\xff")).reply == KvRangeDeleted(2)
    assert kv.delete_range(KvRange(start=b"a", end=b"c")).reply == KvRangeDeleted(1)
    assert kv.value(b"c") == b"v"


def test_a_range_over_the_limit_is_refused_and_keeps_every_key(kv: Kv) -> None:
    for i in range(11):
        kv.put(b"%02d" % i)
    by_count = KvLimits(delete_range_keys_max=10)
    for limits in (by_count, KvLimits(batch_bytes_max=50), KvLimits(delete_range_read_bytes_max=50)):
        with pytest.raises(TooLarge, match="nothing was deleted") as refused:
            kv.delete_range(KvRange(), limits=limits)
        assert refused.value.field == "range"
    assert kv.value(b"00") == b"v"
    assert kv.delete_range(KvRange(end=b"10"), limits=by_count).reply == KvRangeDeleted(10)


def test_a_refusal_s_message_is_short_whatever_the_key(kv: Kv) -> None:
    kv.put(b"k" * 400)
    for refuse in (
        lambda: kv.put(b"k" * 400, b"", Absent()),
        lambda: kv.batch(KvPut(b"k" * 400, b"", Absent())),
    ):
        with pytest.raises(CortadoError) as refused:
            refuse()
        assert len(str(refused.value)) < 300
