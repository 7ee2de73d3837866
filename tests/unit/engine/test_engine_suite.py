"""The common behaviour of every engine: pages, seeks, and transactions that are whole or not at all."""

from __future__ import annotations

import threading
import tracemalloc

import pytest

from cortado.errors import Unavailable
from cortado.store.engine.interface import Engine, Page, Space

LAST = b"\xff"


def key(number: int) -> bytes:
    return b"k%06d" % number


def fill(engine: Engine, count: int, value: bytes = b"value") -> None:
    with engine.write() as txn:
        txn.put_many(Space.DATA, [(key(number), value + key(number)) for number in range(count)])


def page(engine: Engine, start: bytes, end: bytes, *, reverse: bool = False, max_items: int = 10_000) -> Page:
    with engine.read() as txn:
        return txn.page(Space.DATA, start, end, reverse=reverse, max_items=max_items)


def test_what_is_committed_is_read(engine: Engine) -> None:
    with engine.write() as txn:
        txn.put(Space.META, b"applied", b"7")
        assert txn.get(Space.META, b"applied") == b"7"
    with engine.read() as reader:
        assert reader.get(Space.META, b"applied") == b"7"
        assert reader.get(Space.DATA, b"applied") is None
        assert reader.get(Space.META, b"other") is None


def test_an_exception_in_the_block_undoes_everything(engine: Engine) -> None:
    fill(engine, 3)
    with pytest.raises(ZeroDivisionError), engine.write() as txn:
        txn.put(Space.DATA, key(0), b"changed")
        txn.delete(Space.DATA, key(1))
        txn.put(Space.META, b"applied", b"8")
        raise ZeroDivisionError
    assert page(engine, b"", LAST).values == [b"value" + key(number) for number in range(3)]
    with engine.read() as reader:
        assert reader.get(Space.META, b"applied") is None


def test_a_reader_keeps_the_state_it_began_with(engine: Engine) -> None:
    fill(engine, 2)
    with engine.read() as reader:
        with engine.write() as txn:
            txn.put(Space.DATA, key(0), b"changed")
            txn.delete(Space.DATA, key(1))
        assert reader.get(Space.DATA, key(0)) == b"value" + key(0)
        assert reader.page(Space.DATA, b"", LAST, max_items=10).keys == [key(0), key(1)]
    assert page(engine, b"", LAST).keys == [key(0)]


def test_a_seek_finds_the_first_item_at_or_after(engine: Engine) -> None:
    with engine.write() as txn:
        txn.put_many(Space.DATA, [(b"b", b"1"), (b"d", b"2")])
    asked = {b"a": (b"b", b"1"), b"b": (b"b", b"1"), b"c": (b"d", b"2"), b"e": None, b"d" * 600: None}
    seek = engine.point_reader(Space.DATA)
    assert {at: seek(at) for at in asked} == asked
    with engine.read() as reader:
        assert {at: reader.seek(Space.DATA, at) for at in asked} == asked
        assert reader.seek_many(Space.DATA, list(asked)) == list(asked.values())
        assert reader.seek(Space.META, b"a") is None


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("count", [0, 1, 15, 16, 17, 200, 3_000])
def test_a_page_is_the_range_in_order(engine: Engine, count: int, reverse: bool) -> None:
    fill(engine, count)
    numbers = [number for number in range(count) if 3 <= number < count - 3]
    found = page(engine, key(3), key(max(0, count - 3)), reverse=reverse)
    assert found.keys == [key(number) for number in (numbers[::-1] if reverse else numbers)]
    assert found.values == [b"value" + each for each in found.keys]
    assert found.exhausted


@pytest.mark.parametrize("reverse", [False, True])
def test_pages_of_any_size_make_up_the_range(engine: Engine, reverse: bool) -> None:
    fill(engine, 700)
    for max_items in (1, 16, 17, 255, 1_000):
        start, end, found = key(10), key(690), []
        while True:
            part = page(engine, start, end, reverse=reverse, max_items=max_items)
            assert len(part.keys) <= max_items
            found += part.keys
            if part.exhausted:
                break
            start, end = (start, part.keys[-1]) if reverse else (part.keys[-1] + b"\0", end)
        assert found == sorted([key(number) for number in range(10, 690)], reverse=reverse)


@pytest.mark.parametrize("reverse", [False, True])
def test_an_empty_or_inverted_range_has_no_items(engine: Engine, reverse: bool) -> None:
    fill(engine, 50)
    for start, end in ((key(7), key(7)), (key(30), key(5)), (b"x", b"z"), (b"a", b"b")):
        assert page(engine, start, end, reverse=reverse) == Page([], [], True)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("value_bytes", [0, 50, 1_000, 60_000])
def test_a_page_stops_with_the_item_that_reaches_its_bytes(engine: Engine, value_bytes: int, reverse: bool) -> None:
    fill(engine, 1_000, b"v" * value_bytes)
    item_bytes = value_bytes + 2 * len(key(0))
    for wanted in (1, 2, 15, 16, 17, 18, 200, 999):
        for max_bytes in (wanted * item_bytes, wanted * item_bytes - item_bytes + 1):
            with engine.read() as txn:
                found = txn.page(Space.DATA, b"", LAST, reverse=reverse, max_items=1_000, max_bytes=max_bytes)
            assert (len(found.keys), found.exhausted) == (wanted, False)


@pytest.mark.parametrize("reverse", [False, True])
def test_a_page_reads_no_value_behind_its_last(engine: Engine, reverse: bool) -> None:
    fill(engine, 24, bytes(1 << 20))
    tracemalloc.start()
    try:
        with engine.read() as txn:
            found = txn.page(Space.DATA, b"", LAST, reverse=reverse, max_items=1_000, max_bytes=2 << 20)
        assert len(found.keys) == 2
        assert tracemalloc.get_traced_memory()[1] < 3 << 20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("reverse", [False, True])
def test_a_page_ends_with_the_range_where_its_last_item_reaches_a_bound(engine: Engine, reverse: bool) -> None:
    fill(engine, 40, b"v" * 1_000)
    item_bytes = 1_000 + 2 * len(key(0))
    for count in (1, 16, 17, 20):
        start, end = (key(40 - count), LAST) if count % 2 else (key(3), key(3 + count))
        for max_items, max_bytes in ((count, 1 << 20), (100, count * item_bytes)):
            with engine.read() as txn:
                found = txn.page(Space.DATA, start, end, reverse=reverse, max_items=max_items, max_bytes=max_bytes)
            assert (len(found.keys), found.exhausted) == (count, True)


def test_a_page_has_one_item_at_least(engine: Engine) -> None:
    fill(engine, 3, b"v" * 100_000)
    for max_items, max_bytes in ((0, 1), (1, 0), (1, -5), (100, 1)):
        with engine.read() as txn:
            found = txn.page(Space.DATA, b"", LAST, max_items=max_items, max_bytes=max_bytes)
        assert (found.keys, found.exhausted) == ([key(0)], False)


def test_seeks_of_many_stop_with_the_item_that_reaches_their_bytes(engine: Engine) -> None:
    fill(engine, 30, b"v" * 60_000)
    asked = [b"a", key(5), LAST, key(6), key(7), key(8)]
    whole = [key(0), key(5), None, key(6), key(7), key(8)]
    with engine.read() as txn:
        for max_bytes, count in (
            (1, 1),
            (60_015, 2),
            (120_028, 2),
            (120_029, 4),
            (180_000, 4),
            (1 << 20, 6),
            (None, 6),
        ):
            found = txn.seek_many(Space.DATA, asked, max_bytes=max_bytes)
            assert [None if item is None else item[0] for item in found] == whole[:count]


def test_keys_alone_come_in_order_and_in_slices(engine: Engine) -> None:
    fill(engine, 100)
    with engine.read() as txn:
        assert txn.keys(Space.DATA, key(5), key(95), max_items=10) == ([key(n) for n in range(5, 15)], False)
        assert txn.keys(Space.DATA, key(90), key(95), max_items=10) == ([key(n) for n in range(90, 95)], True)
        assert txn.keys(Space.DATA, key(95), LAST, max_items=10) == ([key(n) for n in range(95, 100)], True)
        assert txn.keys(Space.DATA, b"x", LAST, max_items=10) == ([], True)
        assert txn.keys(Space.DATA, key(9), key(3), max_items=10) == ([], True)


def test_put_many_takes_any_order_and_overwrites(engine: Engine) -> None:
    fill(engine, 10)
    with engine.write() as txn:
        txn.put_many(Space.DATA, [(key(20), b"a"), (key(3), b"b"), (key(11), b"c"), (key(3), b"d")])
    found = page(engine, b"", LAST)
    assert found.keys == [key(number) for number in (*range(10), 11, 20)]
    assert found.values[3] == b"d"


def test_delete_says_whether_there_was_something(engine: Engine) -> None:
    fill(engine, 2)
    with engine.write() as txn:
        assert txn.delete(Space.DATA, key(0))
        assert not txn.delete(Space.DATA, key(0))
        assert not txn.delete(Space.REQUESTS, key(1))
    assert page(engine, b"", LAST).keys == [key(1)]


def test_delete_range_deletes_from_the_start_up_to_its_limit(engine: Engine) -> None:
    fill(engine, 10)
    with engine.write() as txn:
        assert txn.delete_range(Space.DATA, key(2), key(8), max_items=4) == 4
        assert txn.delete_range(Space.DATA, key(2), key(8), max_items=0) == 0
        assert txn.delete_range(Space.DATA, key(2), key(8)) == 2
        assert txn.delete_range(Space.DATA, key(9), LAST) == 1
        assert txn.delete_range(Space.DATA, key(5), key(1)) == 0
    assert page(engine, b"", LAST).keys == [key(0), key(1), key(8)]


def test_use_grows_with_the_data_and_is_below_the_limit(engine: Engine) -> None:
    before = engine.use()
    fill(engine, 1_000, b"v" * 1_000)
    after = engine.use()
    assert 1_000_000 < after.used_bytes - before.used_bytes < 3_000_000
    assert after.used_bytes < after.limit_bytes == before.limit_bytes
    with engine.write() as txn:
        txn.delete_range(Space.DATA, b"", LAST)
    assert engine.use().used_bytes < 200_000
    assert engine.disk_free_bytes() > 0


def test_a_closed_engine_says_that_it_is(engine: Engine) -> None:
    seek = engine.point_reader(Space.DATA)
    engine.close()
    with pytest.raises(Unavailable, match="closed"), engine.read():
        pass
    with pytest.raises(Unavailable, match="closed"), engine.write():
        pass
    with pytest.raises(Unavailable, match="closed"):
        seek(b"a")
    with pytest.raises(Unavailable, match="closed"):
        engine.use()


def test_readers_on_other_threads_see_whole_commits_only(engine: Engine) -> None:
    """A writer moves one amount between two keys; no reader may ever see another sum."""
    with engine.write() as txn:
        txn.put_many(Space.DATA, [(b"a", b"\x64"), (b"b", b"\0")])
    stop = threading.Event()
    wrong: list[int] = []

    def read() -> None:
        while not stop.is_set():
            with engine.read() as txn:
                total = sum(value[0] for value in txn.page(Space.DATA, b"", LAST, max_items=2).values)
            if total != 100:
                wrong.append(total)

    readers = [threading.Thread(target=read) for _ in range(2)]
    for reader in readers:
        reader.start()
    for amount in range(1, 101):
        with engine.write() as txn:
            txn.put(Space.DATA, b"a", bytes([100 - amount]))
            txn.put(Space.DATA, b"b", bytes([amount]))
    stop.set()
    for reader in readers:
        reader.join()
    assert not wrong
