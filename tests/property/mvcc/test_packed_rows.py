"""New rows by the kernel beside the ways through lists: keys, their order, versions, and several writes in an entry."""

from __future__ import annotations

import ctypes
import gc
import mmap
import random
import weakref
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Final

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from cortado.store.clock.timestamp import Timestamp
from cortado.store.keys.codec import encode_part
from cortado.store.keys.packing import join
from cortado.store.keys.types import KeyType, LogicalKey
from cortado.store.mvcc.evaluation import Cleared, Evaluation, Removal
from cortado.store.mvcc.mutations import Changes, Mutations
from cortado.store.mvcc.packed_rows import PackedRows, PackedWrite
from cortado.store.mvcc.row_maker import KeyColumn, KeysInOrder, RowMaker, Tails
from cortado.store.mvcc.versions import content_of, encode_versions, suffix_of
from cortado.store.replica.group_range import META_GROUP
from cortado.store.replica.write.batch import Batch
from support.kernels import row_kernel

HEAD: Final = b"\0\0\0\7"
KEYS = st.lists(st.binary(min_size=1, max_size=20).map(lambda each: each.replace(b"\0", b"\1") + b"\0"), min_size=1)
UNIQUE_KEYS = KEYS.map(lambda keys: list(dict.fromkeys(keys)))
SEEDS = st.integers(0, 2**32 - 1)
TS: Final = Timestamp(3, 1_000, 5)


def maker() -> RowMaker:
    return row_kernel().row_maker


def ends_of(pieces: Sequence[bytes]) -> NDArray[np.int64]:
    return np.cumsum([len(each) for each in pieces], dtype=np.int64)


def packed(keys: Sequence[bytes], bodies: Sequence[bytes]) -> PackedRows:
    ends = ends_of(keys)
    places = maker().order([b"".join(keys)], ends)
    assert places is not None
    laid = KeysInOrder(b"".join(keys), ends, places)
    return PackedRows(maker(), laid, HEAD, b"".join(bodies), ends_of(bodies))


def listed(keys: Sequence[bytes], bodies: Sequence[bytes]) -> Mutations:
    return Mutations([LogicalKey(key) for key in keys], [HEAD + body for body in bodies])


def in_pieces(rng: random.Random, keys: Sequence[bytes], bodies: Sequence[bytes], expires_ms: int = 0) -> PackedWrite:
    """Return a write in up to three pieces, which come in any order, and whose ranges do not overlap."""
    rows = sorted(zip(keys, bodies, strict=True))
    cuts = [0, *sorted(rng.choices(range(len(rows) + 1), k=2)), len(rows)]
    pieces = [rows[begin:end] for begin, end in pairwise(cuts) if begin < end]
    rng.shuffle(pieces)
    for piece in pieces:
        rng.shuffle(piece)
    made = [packed([key for key, _ in piece], [body for _, body in piece]) for piece in pieces]
    return PackedWrite(made, expires_ms)


def bodies_for(keys: Sequence[bytes], seed: int) -> list[bytes]:
    rng = random.Random(seed)
    return [rng.randbytes(rng.choice([1, 2, 3, 4, 7, 8, 9, 15, 16, 17, 300])) for _ in keys]


@given(KEYS)
def test_places_are_those_of_the_sorted_keys(keys: list[bytes]) -> None:
    places = maker().order([b"".join(keys)], ends_of(keys))
    if len(set(keys)) < len(keys):
        assert places is None
    else:
        assert places is not None
        assert [keys[row] for row in places.tolist()] == sorted(keys)


@pytest.mark.parametrize("common", [0, 1, 7, 8, 9, 300])
@pytest.mark.parametrize("rows", [1, 2, 3, 255, 256, 257, 1_000])
@pytest.mark.parametrize("alike", [0, 8, 20])
def test_long_keys_that_differ_late_are_sorted(common: int, rows: int, alike: int) -> None:
    """Behind their common beginning many are ``alike`` in more bytes than are compared as a word."""
    rng = random.Random(rows)
    keys = [
        b"c" * common + bytes([rng.randrange(3)]) * alike + row.to_bytes(2) + b"d" * rng.randrange(9)
        for row in rng.sample(range(5_000), rows)
    ]
    places = maker().order([b"".join(keys)], ends_of(keys))
    assert places is not None
    assert [keys[row] for row in places.tolist()] == sorted(keys)
    assert maker().order([b"".join(keys), keys[0]], ends_of([*keys, keys[0]])) is None, "one comes twice"


@given(
    UNIQUE_KEYS,
    SEEDS,
    st.builds(Timestamp, st.integers(0, 9), st.integers(0, 1 << 47), st.integers(0, 9)),
    st.sampled_from([0, 1, 1 << 47]),
)
def test_packed_rows_are_the_changes_that_lists_are(
    keys: list[bytes], seed: int, ts: Timestamp, expires_ms: int
) -> None:
    bodies = bodies_for(keys, seed)
    rows, mutations = in_pieces(random.Random(seed), keys, bodies, expires_ms), listed(keys, bodies)
    if expires_ms:
        mutations.expiries = dict.fromkeys(mutations.keys, expires_ms)
    in_order = sorted(zip(mutations.keys, mutations.payloads, strict=True))
    assert list(zip(rows.keys, rows.payloads, strict=True)) == in_order
    assert (len(rows), rows.size_bytes, rows.expiries) == (len(keys), mutations.size_bytes, mutations.expiries)
    assert rows.bounds == (min(keys), max(keys))
    pieces, items = rows.at(ts)
    assert list(items) == sorted(encode_versions(mutations.keys, mutations.payloads, ts, mutations.expiries))
    for made in pieces:
        assert (made.keys, made.key_lengths) == join([key for key, _ in made.items])
        assert (made.values, made.value_lengths) == join([value for _, value in made.items])


@given(st.lists(UNIQUE_KEYS, min_size=1, max_size=4), SEEDS, st.booleans(), st.booleans())
@settings(max_examples=150)
def test_writes_that_share_an_entry_make_the_entry_that_lists_make(
    writes: list[list[bytes]], seed: int, has_others: bool, removes: bool
) -> None:
    rng, batches = random.Random(seed), (Batch(META_GROUP.segment), Batch(META_GROUP.segment))
    are_apart = rng.random() < 0.5
    for place, keys in enumerate(writes):
        if are_apart:
            keys = [bytes([9 - place]) + key for key in keys]
        bodies = bodies_for(keys, seed + place)
        ts = Timestamp(3, 1_000, place)
        cleared = [Cleared(b"s", b"t", 1)] if removes and place == 0 else []
        removal = Removal(cleared=cleared) if cleared else None
        changes: tuple[Changes, Changes] = (in_pieces(rng, keys, bodies), listed(keys, bodies))
        for batch, each in zip(batches, changes, strict=True):
            items = batch.add(ts, Evaluation(each, None, removal=removal), 100)
            assert {key: batch.layer.newest.get(key) for key in each.keys} == dict(zip(each.keys, items, strict=True))
    if has_others:
        for batch in batches:
            batch.add(Timestamp(3, 1_001, 0), Evaluation(Mutations([LogicalKey(b"\x05")], [None]), None), 10)
    ours, theirs = (batch.entry(4, 5) for batch in batches)
    assert ours == theirs
    assert ours.encode() == theirs.encode()
    assert batches[0].entry(4, 5) == theirs, "a batch that the log had no room for is asked again"


def test_an_entry_of_packed_rows_alone_is_cut_by_the_thread_that_stores_it() -> None:
    batch = Batch(META_GROUP.segment)
    for place in range(2):
        keys = [b"%d%04d\0" % (place, row) for row in range(100)]
        batch.add(Timestamp(3, 1_000, place), Evaluation(PackedWrite([packed(keys, [b"v"] * 100)]), None), 100)
    entry = batch.entry(4, 5)
    assert entry.encode()
    assert getattr(entry.items, "_cut", 0) is None


class Guarded:
    """Memory between two unreadable pages: the process ends at the first byte before or behind it."""

    def __init__(self, pages: int = 8) -> None:
        self.size = pages * mmap.PAGESIZE
        self._pages = mmap.mmap(-1, self.size + 2 * mmap.PAGESIZE)
        start = ctypes.addressof(ctypes.c_char.from_buffer(self._pages))
        protect = ctypes.CDLL(None, use_errno=True).mprotect
        for page in (start, start + mmap.PAGESIZE + self.size):
            assert protect(ctypes.c_void_p(page), mmap.PAGESIZE, 0) == 0

    def hold(self, array: NDArray[Any], *, at_end: bool) -> NDArray[Any]:
        """Return the same array in this memory, beside its beginning or its end."""
        begin = mmap.PAGESIZE + (self.size - array.nbytes if at_end else 0)
        held = np.frombuffer(self._pages, array.dtype, array.size, begin).reshape(array.shape)
        held[...] = array
        return held


def test_packed_rows_go_with_their_last_reference() -> None:
    """The buffers of a load must not wait for the cycle collector."""
    gc.disable()
    try:
        rows = packed([b"a\0", b"b\0"], [b"1", b"2"])
        drafted, gone = rows.at(TS), weakref.ref(rows)
        del rows
        assert gone() is None
        gone_items = weakref.ref(drafted.items)
        del drafted
        assert gone_items() is None
    finally:
        gc.enable()


def address(array: NDArray[Any]) -> int:
    place: int = array.__array_interface__["data"][0]
    return place


@pytest.mark.parametrize("at_end", [False, True])
def test_no_byte_is_touched_outside_of_the_arrays(at_end: bool) -> None:
    """Not one more than is written, and all inputs in one piece."""
    row_kernel()
    from cortado.store.mvcc.kernel import new_rows as compiled

    memory = [Guarded() for _ in range(11)]

    def held(place: int, array: NDArray[Any]) -> NDArray[Any]:
        return memory[place].hold(array, at_end=at_end)

    rng = random.Random(8)
    for rows in (1, 2, 3, 64, 200):
        for _ in range(20):
            texts = [
                rng.choice([b"", b"\0" * rng.randrange(30), rng.randbytes(rng.randrange(40))]) for _ in range(rows)
            ]
            fixed = np.frombuffer(rng.randbytes(rows * (width := rng.choice([1, 4, 8, 16]))), np.uint8)
            expected, mask = [], rng.choice([0, 255])
            validity = held(8, np.frombuffer(rng.randbytes(rows), np.uint8) & 1)
            tails, which = bodies_for(texts, rows), rng.randrange(3)
            tails = [tail[:30].replace(b"\0", b"\1") + b"\0" for tail in tails]
            for row, text in enumerate(texts):
                value = encode_part(text, KeyType.BYTES, mask == 255)
                number = bytes([0x31]) + fixed[row * width : (row + 1) * width].tobytes()
                has_tail = which == compiled.ALL_ROWS or (which == compiled.ROWS_WITH_NULL and not validity[row])
                expected.append(b"prefix" + value + (number if validity[row] else b"\5") + tails[row] * has_tail)
            offsets = held(0, np.array([0, *ends_of(texts)], np.int32))
            values, numbers = held(1, np.frombuffer(b"".join(texts), np.uint8)), held(2, fixed)
            parts = [0x2C, address(values), address(offsets), 0, mask, 0]
            parts += [0x31, address(numbers), 0, width, 0, address(validity)]
            tail_bytes, tail_ends = held(9, np.frombuffer(b"".join(tails), np.uint8)), held(10, ends_of(tails))
            prefix, told = held(3, np.frombuffer(b"prefix", np.uint8)), held(4, np.array(parts, np.int64))
            out = held(5, np.zeros(len(b"".join(expected)), np.uint8))
            ends = held(6, np.zeros(rows, np.int64))
            given_ = (address(prefix), 6, 499), (address(told), 2), (address(tail_bytes), address(tail_ends), which)
            assert compiled.lay_keys(*given_, rows, address(out), address(ends)) == compiled.DONE
            assert out.tobytes() == b"".join(expected)
            assert ends.tolist() == ends_of(expected).tolist()
            places, scratch = np.zeros(rows, np.int64), held(7, np.zeros(2 * rows, np.int64))
            if compiled.order_keys(address(out), address(ends), rows, address(places), address(scratch)) != 0:
                assert len(set(expected)) < rows
                continue
            assert [expected[row] for row in places.tolist()] == sorted(expected)
            bodies = bodies_for(expected, rows)[:rows]
            body_bytes = held(0, np.frombuffer(b"".join(bodies), np.uint8)) if len(b"".join(bodies)) < 30_000 else None
            if body_bytes is None:
                continue
            body_ends, order = held(1, ends_of(bodies)), held(2, places)
            constants = held(3, np.frombuffer(suffix_of(TS) + content_of(HEAD), np.uint8))
            items = sorted(encode_versions([LogicalKey(key) for key in expected], [HEAD + b for b in bodies], TS))
            keys_out = held(4, np.zeros(sum(len(key) for key, _ in items), np.uint8))
            values_out = held(7, np.zeros(sum(len(value) for _, value in items), np.uint8))
            compiled.encode_puts(
                (address(out), address(ends), address(order), rows),
                (address(constants), address(constants) + 12, 5),
                (address(body_bytes), address(body_ends)),
                (address(keys_out), address(values_out)),
            )
            assert keys_out.tobytes() == b"".join([key for key, _ in items])
            assert values_out.tobytes() == b"".join([value for _, value in items])
            gathered = held(4, np.zeros(len(body_bytes), np.uint8))
            compiled.gather(address(body_bytes), address(body_ends), address(order), rows, address(gathered))
            assert gathered.tobytes() == b"".join([bodies[row] for row in places.tolist()])


def test_arrays_that_do_not_fit_each_other_are_refused_before_the_kernel_sees_them() -> None:
    rows = maker()
    keys, text = b"abcd", np.frombuffer(b"abcd", np.uint8)
    for ends in ([], [3], [5], [-1, 4], [3, 2, 4]):
        with pytest.raises(ValueError, match="ends do not divide"):
            rows.order([keys], np.array(ends, np.int64))
        with pytest.raises(ValueError, match="ends do not divide"):
            rows.gather(keys, np.array(ends, np.int64), np.arange(len(ends)))
    for offsets in ([0, 4], [1, 2, 4], [0, 2, 3], [0, 5, 4]):
        with pytest.raises(ValueError, match="offsets of 4 bytes"):
            rows.lay_keys(b"k", [KeyColumn(1, text, np.array(offsets, np.int32))], 2)
    for shape in ((1, 4), (4,), (2, 0)):
        with pytest.raises(ValueError, match="a part of shape"):
            rows.lay_keys(b"k", [KeyColumn(1, np.zeros(shape, np.uint8))], 2)
    part = KeyColumn(1, np.zeros((2, 1), np.uint8))
    for ends in ([4], [1, 2, 4]):
        with pytest.raises(ValueError, match="tails for 2 rows"):
            rows.lay_keys(b"k", [part], 2, Tails(keys, np.array(ends, np.int64)))
    with pytest.raises(ValueError, match="ends do not divide"):
        rows.lay_keys(b"k", [part], 2, Tails(keys, np.array([3, 5], np.int64)))
    with pytest.raises(ValueError, match="a validity of shape"):
        rows.lay_keys(b"k", [KeyColumn(1, np.zeros((2, 1), np.uint8), validity=np.ones(3, np.bool_))], 2)
    laid = KeysInOrder(keys, np.array([2, 4]), np.array([0, 1]))
    for ends in ([4], [1, 2, 4]):
        with pytest.raises(ValueError, match="2 keys"):
            rows.encode_puts(laid, suffix_of(TS), HEAD, b"wxyz", np.array(ends))
    with pytest.raises(ValueError, match="2 keys"):
        rows.encode_puts(laid, suffix_of(TS)[1:], HEAD, b"wxyz", np.array([1, 4]))


def test_what_was_loaded_compiles_nothing_more() -> None:
    """Compiling holds the interpreter's lock for seconds: all of it is done ahead."""
    row_kernel()
    from cortado.store.mvcc.kernel import new_rows as compiled

    keys = [b"%d\0" % row for row in (3, 1, 2)]
    assert list(packed(keys, [b"a", b"b", b"c"]).at(TS).items)
    functions = (compiled.lay_keys, compiled.order_keys, compiled.encode_puts, compiled.gather)
    assert [len(each.signatures) for each in functions] == [1, 1, 1, 1]  # type: ignore[attr-defined]
