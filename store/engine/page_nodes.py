"""The tree pages of LMDB's data file, many at once: whether each fits its place in the tree.

A batch of pages of one kind is laid end to end and its nodes are checked together, as arrays: a leaf page costs a few
microseconds, most of them for reading it.

Layout of a page (LMDB 0.9, data version 1, 64 bit; integers in the machine's order; offsets from the page's start)::

    page number 8 | padding 2 | flags 2 | lower 2 | upper 2 | a pointer for each node 2 | ... free ... | nodes
                                          └ end of the pointers, └ start of the nodes

    leaf node    data size 4 (low half first) | flags 2 | key size 2 | key | data, or the number of an overflow page 8
    branch node  child page 6 (the flags are its high bits)  | key size 2 | key

Nodes are packed: padded to even sizes they cover ``[upper, page size)`` without a gap. Keys ascend. The first key of a
branch page has no meaning; each other one is at most the first key under its child, and above all keys before it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum, IntEnum
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from cortado.store.engine.data_file import DamagedDataFile

Integers: TypeAlias = NDArray[np.int64]
Booleans: TypeAlias = NDArray[np.bool_]

HEADER_BYTES: Final = 16
KEY_BYTES_MAX: Final = 511
NODE_BIG_DATA: Final = 0x01
NODE_SUB_DATABASE: Final = 0x02

_NODE_HEADER_BYTES: Final = 8
_PAGE_NUMBER_BYTES: Final = 8
_FREE_LIST_KEY_BYTES: Final = 8
_STRAYS_MAX: Final = 4
"""On one leaf. More is no bit that has turned: then it is another page, or an old one."""


class PageKind(IntEnum):
    """As in a page's flags, which hold nothing else at rest."""

    BRANCH = 0x01
    LEAF = 0x02
    OVERFLOW = 0x04


class KeyOrder(Enum):
    """The order that a tree's keys must have."""

    NUMBERS = "integers in the machine's order"
    BYTES = "bytes"
    FEW_STRAY = "bytes; on a leaf a few may stray, where a bit has turned: their checksums tell"


@dataclass(frozen=True, slots=True)
class Pages:
    """Pages to check: numbers, and for each the bounds ``[low, high)`` of its keys, empty for no bound."""

    numbers: Integers
    lows: list[bytes]
    highs: list[bytes]

    def __len__(self) -> int:
        return len(self.lows)

    def part(self, start: int, end: int) -> Pages:
        return Pages(self.numbers[start:end], self.lows[start:end], self.highs[start:end])

    def sorted(self) -> Pages:
        """In the order of the file."""
        order = np.argsort(self.numbers)
        positions = order.tolist()
        return Pages(self.numbers[order], [self.lows[p] for p in positions], [self.highs[p] for p in positions])


class TreePages:
    """A batch of pages of one kind, checked: making one raises DamagedDataFile if it is not sound.

    ``raw`` holds the pages end to end. Per page: ``counts`` of nodes, ``firsts`` of their positions. Per node: its
    ``page`` (position in the batch), ``start`` (in ``raw``), ``flags``, ``key_bytes``, ``data_bytes`` or ``children``.

    ``order`` is the order that keys must have. If a few may stray, ``disordered`` has the bounds of the pages on which
    some do.
    """

    def __init__(self, raw: bytes, pages: Pages, page_size: int, kind: PageKind, tree: str, *, order: KeyOrder) -> None:
        self.raw = raw
        self.pages = pages
        self._page_size = page_size
        self._kind = kind
        self._tree = tree
        self.disordered: list[tuple[bytes, bytes]] = []
        self._halves: NDArray[np.uint16] = np.frombuffer(raw, dtype=np.uint16)
        self._check_headers()
        self._find_nodes()
        self._check_packed()
        if order is KeyOrder.NUMBERS:
            self._check_numbers_ascend()
        else:
            self._check_keys(order)

    def keys(self) -> list[bytes]:
        begins = self.start + _NODE_HEADER_BYTES
        raw = self.raw
        pairs = zip(begins.tolist(), (begins + self.key_bytes).tolist(), strict=True)
        return [raw[begin:end] for begin, end in pairs]

    def data_starts(self) -> Integers:
        return self.start + _NODE_HEADER_BYTES + self.key_bytes

    def child_pages(self) -> Pages:
        """Return the pages under these branch pages, each with the bounds that the keys here set."""
        keys = self.keys()
        lows: list[bytes] = []
        highs: list[bytes] = []
        begins, counts = self.firsts.tolist(), self.counts.tolist()
        for begin, count, low, high in zip(begins, counts, self.pages.lows, self.pages.highs, strict=True):
            between = keys[begin + 1 : begin + count]
            lows += [low, *between]
            highs += [*between, high]
        return Pages(self.children, lows, highs)

    def refuse(self, page: int, problem: str) -> None:
        """Raise for the page at that position of the batch."""
        raise DamagedDataFile(
            f"page {self.pages.numbers[page]}, a {self._kind.name.lower()} page of {self._tree}: {problem}"
        )

    def refuse_nodes(self, bad: Booleans, problem: str) -> None:
        """Raise for the first node that is ``bad``."""
        if bad.any():
            node = int(np.argmax(bad))
            page = int(self.page[node])
            self.refuse(page, f"item {node - int(self.firsts[page])}: {problem}")

    def _check_headers(self) -> None:
        numbers = np.frombuffer(self.raw, dtype=np.uint64).reshape(len(self.pages), -1)[:, 0]
        for page in np.flatnonzero(numbers != self.pages.numbers.astype(np.uint64))[:1].tolist():
            self.refuse(page, f"it is not there; in its place is what says that it is page {numbers[page]}")
        halves = self._halves.reshape(len(self.pages), -1)
        flags = halves[:, 5]
        for page in np.flatnonzero(flags != self._kind)[:1].tolist():
            self.refuse(page, f"its flags are {flags[page]:#06x}, not {self._kind:#06x}")
        lower = halves[:, 6].astype(np.int64)
        upper = halves[:, 7].astype(np.int64)
        bad = (lower <= HEADER_BYTES) | (lower > upper) | (upper >= self._page_size) | ((lower | upper) & 1 != 0)
        for page in np.flatnonzero(bad)[:1].tolist():
            self.refuse(page, f"its free space cannot be bytes {lower[page]} to {upper[page]}")
        self._upper = upper
        self.counts: Integers = (lower - HEADER_BYTES) >> 1
        self.firsts: Integers = np.cumsum(self.counts) - self.counts

    def _find_nodes(self) -> None:
        halves_a_page = self._page_size // 2
        self.page: Integers = np.repeat(np.arange(len(self.pages)), self.counts)
        bases = np.arange(len(self.pages)) * halves_a_page
        # The pointers of a page follow each other, from its ninth half-word.
        pointers = np.arange(self.page.size) + np.repeat(bases + HEADER_BYTES // 2 - self.firsts, self.counts)
        self._offset: Integers = self._halves[pointers].astype(np.int64)
        bad = (self._offset < self._upper[self.page]) | (self._offset > self._page_size - _NODE_HEADER_BYTES)
        self.refuse_nodes(bad | (self._offset & 1 != 0), "its pointer leads out of the page's items")
        self.start: Integers = self.page * self._page_size + self._offset
        node = self.start >> 1
        low, high = self._halves[node].astype(np.int64), self._halves[node + 1].astype(np.int64)
        self.flags: NDArray[np.uint16] = self._halves[node + 2]
        self.key_bytes: Integers = self._halves[node + 3].astype(np.int64)
        self.data_bytes: Integers = low | high << 16
        if self._kind is PageKind.BRANCH:
            self.children: Integers = self.data_bytes | self.flags.astype(np.int64) << 32

    def _check_packed(self) -> None:
        """Check that nodes neither overlap nor leave gaps, so that LMDB may move them about.

        Each node ends at another's start or at the page's end, one starts at ``upper``, and their sizes add up to the
        bytes between. Chains from node to node reach the page's end, and the one from ``upper`` uses that sum up.
        """
        size = _NODE_HEADER_BYTES + self.key_bytes
        if self._kind is PageKind.LEAF:
            size += np.where(self.flags & NODE_BIG_DATA, _PAGE_NUMBER_BYTES, self.data_bytes)
        size += size & 1
        end = self._offset + size
        self.refuse_nodes(end > self._page_size, "it goes past the end of the page")
        starts = np.zeros((len(self.pages), self._page_size // 2 + 1), dtype=np.bool_)
        starts[:, -1] = True
        flat = starts.reshape(-1)
        row = self.page * starts.shape[1]
        flat[row + (self._offset >> 1)] = True
        self.refuse_nodes(~flat[row + (end >> 1)], "it overlaps another one, or its size is wrong")
        total = np.add.reduceat(size, self.firsts)
        bad = ~starts[np.arange(len(self.pages)), self._upper >> 1] | (total != self._page_size - self._upper)
        for page in np.flatnonzero(bad)[:1].tolist():
            self.refuse(
                page, f"its items overlap or leave gaps: {total[page]} bytes of them from {self._upper[page]} on"
            )
        meaningless = self._is_first() if self._kind is PageKind.BRANCH else False
        bad_key = (self.key_bytes > KEY_BYTES_MAX) | ((self.key_bytes == 0) & ~np.asarray(meaningless))
        self.refuse_nodes(bad_key, f"its key does not have 1 to {KEY_BYTES_MAX} bytes")

    def _is_first(self) -> Booleans:
        first = np.zeros(self.page.size, dtype=np.bool_)
        first[self.firsts] = True
        return first

    def _check_numbers_ascend(self) -> None:
        """Keys of the free list are transaction ids in the machine's order."""
        meaningless = self._is_first() & (self._kind is PageKind.BRANCH)
        self.refuse_nodes((self.key_bytes != _FREE_LIST_KEY_BYTES) & ~meaningless, "its key is no transaction id")
        numbers = self.numbers_at(np.where(meaningless, 0, self.start + _NODE_HEADER_BYTES))
        bad = np.zeros(self.page.size, dtype=np.bool_)
        bad[1:] = (numbers[1:] <= numbers[:-1]) & ~self._is_first()[1:] & ~meaningless[:-1]
        self.refuse_nodes(bad, "its key is not above the one before")

    def _check_keys(self, order: KeyOrder) -> None:
        """In their order, and within the bounds that the page above sets."""
        problems = self._out_of_order()
        for page, problem in self._out_of_bounds():
            problems.setdefault(page, problem)
        for page, problem in sorted(problems.items()):
            if self._kind is PageKind.BRANCH or order is not KeyOrder.FEW_STRAY or not self._is_in_order_but_few(page):
                self.refuse(page, problem)
            self.disordered.append((self.pages.lows[page], self.pages.highs[page]))

    def _out_of_order(self) -> dict[int, str]:
        """Pages on which a key is not above the one before, and what to say of each."""
        begin = self.start + _NODE_HEADER_BYTES
        after = ~self._is_first()
        if self._kind is PageKind.BRANCH:
            # The second key is a branch page's first.
            after[self.firsts[self.counts > 1] + 1] = False
        right = np.flatnonzero(after)
        left = right - 1
        below = _below(self.raw, begin[left], self.key_bytes[left], begin[right], self.key_bytes[right])
        found: dict[int, str] = {}
        for node in right[~below].tolist():
            page = int(self.page[node])
            found.setdefault(page, f"item {node - int(self.firsts[page])}: its key is not above the one before")
        return found

    def _out_of_bounds(self) -> Iterator[tuple[int, str]]:
        skipped = 1 if self._kind is PageKind.BRANCH else 0
        raw, begins = self.raw, self.start + _NODE_HEADER_BYTES
        having = np.flatnonzero(self.counts > skipped)
        firsts, lasts = self.firsts[having] + skipped, self.firsts[having] + self.counts[having] - 1
        first_begins, last_begins = begins[firsts].tolist(), begins[lasts].tolist()
        first_bytes, last_bytes = self.key_bytes[firsts].tolist(), self.key_bytes[lasts].tolist()
        for position, page in enumerate(having.tolist()):
            low, high = self.pages.lows[page], self.pages.highs[page]
            begin = first_begins[position]
            if raw[begin : begin + first_bytes[position]] < low:
                yield page, "its first key is below the bound of the page above it"
            begin = last_begins[position]
            if high and raw[begin : begin + last_bytes[position]] >= high:
                yield page, "its last key is not below the bound of the page above it"

    def _is_in_order_but_few(self, page: int) -> bool:
        """Return whether a few keys of a leaf, and not most of them, are all that stray."""
        first, count = int(self.firsts[page]), int(self.counts[page])
        low, high = self.pages.lows[page], self.pages.highs[page]
        # The longest run of keys that ascend, not all next to each other: of each length the lowest end so far.
        ends: list[bytes] = []
        for node in range(first, first + count):
            begin = int(self.start[node]) + _NODE_HEADER_BYTES
            key = self.raw[begin : begin + int(self.key_bytes[node])]
            if low <= key and (not high or key < high):
                place = bisect_left(ends, key)
                ends[place : place + 1] = [key]
        return count - len(ends) <= min(_STRAYS_MAX, len(ends))

    def numbers_at(self, positions: Integers) -> NDArray[np.uint64]:
        """Eight bytes each, wherever they stand."""
        everywhere: NDArray[np.uint64] = np.ndarray(
            (len(self.raw) - 7,), dtype=np.uint64, buffer=self.raw, strides=(1,)
        )
        return everywhere[positions]


def _below(raw: bytes, left: Integers, left_bytes: Integers, right: Integers, right_bytes: Integers) -> Booleans:
    """For each pair of keys in ``raw`` whether the left one sorts before the right one."""
    shorter = np.minimum(left_bytes, right_bytes).astype(np.int16)
    result = np.empty(shorter.size, dtype=np.bool_)
    if not result.size:
        return result
    order = np.argsort(shorter, kind="stable")
    lengths, begins = np.unique(shorter[order], return_index=True)
    for length, group in zip(lengths.tolist(), np.split(order, begins[1:]), strict=True):
        # Fixed-width strings of one width compare as bytes do, and in C.
        text: NDArray[np.bytes_] = np.ndarray((len(raw) - length + 1,), dtype=f"S{length}", buffer=raw, strides=(1,))
        from_left, from_right = text[left[group]], text[right[group]]
        below = from_left < from_right
        tied = np.flatnonzero(~below)
        tied = tied[from_left[tied] == from_right[tied]]
        below[tied] = left_bytes[group[tied]] < right_bytes[group[tied]]
        result[group] = below
    return result
