"""A walk through all trees of LMDB's data file before LMDB maps it, by ordinary reads.

LMDB trusts its pages: a wrong pointer in one is a crash of the whole process, at a read or a write that meets it, or
two owners of one page, which destroy each other's data. So its assumptions are proved here::

    meta page ─┬─ main ──── 'data', 'log', ... ──── branch pages ──── leaf pages ──── runs of overflow pages
               └─ free list: pages that no tree uses

- each page is the one, of the kind and at the depth that its parent expects, within the file, with one owner (a page
  that was free ever since it was counted may be past the file's end);
- its items are whole, packed and in order, between the bounds that its parent sets;
- each tree has as many pages and entries as its record says;
- no page is free twice, or free and in use.

A few keys of a leaf may stray if items have checksums that cover their keys: a bit of a key has turned. LMDB does not
crash on it, but its searches go wrong within that page. So the page's bounds are reported, and no read within them may
answer that a key is missing, until they are repaired.

The content of values is not checked: they have checksums. Nor can a walk see a key that was changed and still stands in
order, or pages that go bad once they were looked at.

Pages are read in the order of the file, some thousands at a time, since trees jump about in it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import pairwise
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from cortado.store.engine.data_file import DB_RECORD_BYTES, DamagedDataFile, DbRecord, Meta
from cortado.store.engine.page_nodes import (
    HEADER_BYTES,
    NODE_BIG_DATA,
    NODE_SUB_DATABASE,
    Integers,
    KeyOrder,
    PageKind,
    Pages,
    TreePages,
)

Read: TypeAlias = Callable[[int, int], bytes]
"""Bytes at (offset, length), fewer only at the file's end."""

NO_PAGE: Final = (1 << 64) - 1
DEPTH_MAX: Final = 32
META_PAGES: Final = 2
FREE_LIST_FLAGS: Final = 0x08

_BATCH_PAGES: Final = 256
# Some ten thousand pages below them, to be read in the order of the file.
_BRANCH_PAGES: Final = 64
_OVERFLOW_HEADER: Final = np.dtype([("number", "u8"), ("padding", "u2"), ("flags", "u2"), ("pages", "u4")])


@dataclass(frozen=True, slots=True)
class Checked:
    """The checked part: pages of trees, overflow runs by their first. ``complete`` if that was all of them.
    ``disordered``: leaves on which keys stray, as the name of their tree and their bounds ``[low, high)``, empty for no
    bound."""

    pages: int
    complete: bool
    disordered: Sequence[tuple[bytes, bytes, bytes]] = ()


class Role(Enum):
    """The contents of a tree's leaves."""

    MAIN = "records of named trees"
    NAMED = "keys and values"
    CHECKED = "keys and values, with checksums of both"
    FREE_LIST = "lists of free pages by transaction"


_ORDER: Final = {Role.FREE_LIST: KeyOrder.NUMBERS, Role.CHECKED: KeyOrder.FEW_STRAY}


def check_pages(
    read: Read,
    file_bytes: int,
    meta: Meta,
    names: Collection[bytes],
    *,
    checked: Collection[bytes] = (),
    pages_max: int | None = None,
) -> Checked:
    """Raise DamagedDataFile, naming the page, unless LMDB may use the file that ``meta`` is the newest meta page of.

    The file must be at rest. ``names`` are those that its sub-databases may have; the items of ``checked`` ones have
    checksums that cover their keys. In a file of more than ``pages_max``
    pages all branch pages are looked at, and about that many leaf pages: others after another transaction. None:
    everything. Memory: a byte for each page.
    """
    pages = meta.last_page + 1
    one_in = 1 if pages_max is None else -(-pages // max(1, pages_max))
    checker = _Checker(read, file_bytes, meta, one_in)
    main = checker.tree("the list of sub-databases", meta.main, Role.MAIN)
    disordered: list[tuple[bytes, bytes, bytes]] = []
    for name, record in main.named:
        if name not in names:
            # LMDB would make an empty one of the true name, and everything in this one would be gone.
            raise DamagedDataFile(f"it has a sub-database of the unknown name {name!r}")
        role = Role.CHECKED if name in checked else Role.NAMED
        tree = checker.tree(f"sub-database {name.decode()!r}", record, role)
        disordered += [(name, low, high) for low, high in tree.disordered]
    free = checker.tree("the list of free pages", meta.free, Role.FREE_LIST)
    for transaction_id, numbers in free.free_lists:
        checker.free_pages(transaction_id, numbers)
    checker.check_end()
    return Checked(checker.pages_read, one_in == 1, disordered)


class _Tree:
    """One tree on the walk, with its counts so far."""

    def __init__(self, name: str, record: DbRecord, role: Role) -> None:
        self.name = name
        self.record = record
        self.role = role
        self.branch_pages = self.leaf_pages = self.overflow_pages = self.entries = 0
        self.complete = True
        self.named: list[tuple[bytes, DbRecord]] = []
        self.disordered: list[tuple[bytes, bytes]] = []
        self.free_lists: list[tuple[int, NDArray[np.uint64]]] = []

    def check_record(self, last_page: int) -> None:
        record = self.record
        expected = FREE_LIST_FLAGS if self.role is Role.FREE_LIST else 0
        if record.flags != expected:
            raise DamagedDataFile(f"{self.name} has the flags {record.flags:#06x}, not {expected:#06x}")
        if record.root == NO_PAGE:
            if record.depth:
                raise DamagedDataFile(f"{self.name} has no root page, yet {record.depth} levels")
        elif not META_PAGES <= record.root <= last_page:
            raise DamagedDataFile(f"{self.name} has page {record.root} as its root; pages go to {last_page}")
        elif not 1 <= record.depth <= DEPTH_MAX:
            raise DamagedDataFile(f"{self.name} cannot have {record.depth} levels")

    def check_counts(self) -> None:
        record = self.record
        counts = [
            ("branch pages", self.branch_pages, record.branch_pages),
            ("leaf pages", self.leaf_pages, record.leaf_pages),
        ]
        if self.complete:
            counts += [
                ("overflow pages", self.overflow_pages, record.overflow_pages),
                ("entries", self.entries, record.entries),
            ]
        for what, found, expected in counts:
            if found != expected:
                raise DamagedDataFile(f"{self.name} has {found} {what}, and its record says {expected}")


class _Checker:
    """The walk. It reads one in ``one_in`` groups of leaf pages."""

    def __init__(self, read: Read, file_bytes: int, meta: Meta, one_in: int) -> None:
        self._read = read
        self._page_size = meta.page_size
        self._last_page = meta.last_page
        self._file_pages = file_bytes // meta.page_size
        # Pages past the file's end are free, and each takes eight bytes of a list in the file.
        if not META_PAGES <= meta.last_page + 1 <= self._file_pages + file_bytes // 8:
            problem = f"it is truncated: {file_bytes} bytes, and its last page is said to be {meta.last_page}"
            raise DamagedDataFile(problem)
        self._transaction_id = meta.transaction_id
        self._one_in = one_in
        self._groups = meta.transaction_id
        self._used = np.zeros(meta.last_page + 1, dtype=np.bool_)
        self._used[:META_PAGES] = True
        self.pages_read = 0

    def tree(self, name: str, record: DbRecord, role: Role) -> _Tree:
        tree = _Tree(name, record, role)
        tree.check_record(self._last_page)
        if record.root != NO_PAGE:
            root = Pages(np.array([record.root], dtype=np.int64), [b""], [b""])
            self._claim(root.numbers, tree, "its record")
            self._descend(tree, root, 1)
        tree.check_counts()
        return tree

    def free_pages(self, transaction_id: int, numbers: NDArray[np.uint64]) -> None:
        what = f"the list of pages that transaction {transaction_id} freed"
        if np.any(numbers[1:] >= numbers[:-1]):
            raise DamagedDataFile(f"{what} is not in order")
        if numbers.size and not (numbers[-1] >= META_PAGES and numbers[0] <= self._last_page):
            raise DamagedDataFile(f"{what} goes from page {numbers[-1]} to {numbers[0]}; pages go to {self._last_page}")
        twice = numbers[self._used[numbers]]
        if twice.size:
            raise DamagedDataFile(f"{what} holds page {twice[0]}, which is in use or free already")
        self._used[numbers] = True

    def check_end(self) -> None:
        """Check that pages past the file's end are free: LMDB may never have written those."""
        missing = np.flatnonzero(~self._used[self._file_pages :])
        if missing.size:
            raise DamagedDataFile(
                f"it is truncated: page {self._file_pages + missing[0]} is past its end, and not free"
            )

    def _descend(self, tree: _Tree, pages: Pages, depth: int) -> None:
        if depth == tree.record.depth:
            tree.leaf_pages += len(pages)
            self._groups += 1
            if depth > 1 and tree.role in (Role.NAMED, Role.CHECKED) and self._groups % self._one_in:
                tree.complete = False
                return
            for batch in self._batches(tree, pages, PageKind.LEAF):
                self._leaves(tree, batch)
            return
        tree.branch_pages += len(pages)
        for start in range(0, len(pages), _BRANCH_PAGES):
            for batch in self._batches(tree, pages.part(start, start + _BRANCH_PAGES), PageKind.BRANCH):
                children = batch.child_pages()
                self._claim(children.numbers, tree, "its branch pages")
                self._descend(tree, children, depth + 1)

    def _leaves(self, tree: _Tree, leaves: TreePages) -> None:
        tree.entries += leaves.start.size
        if tree.role is Role.MAIN:
            leaves.refuse_nodes(leaves.flags != NODE_SUB_DATABASE, "it is no sub-database")
            leaves.refuse_nodes(leaves.data_bytes != DB_RECORD_BYTES, "it is no record of a sub-database")
            for key, start in zip(leaves.keys(), leaves.data_starts().tolist(), strict=True):
                tree.named.append((key, DbRecord.decode(leaves.raw[start : start + DB_RECORD_BYTES])))
            return
        leaves.refuse_nodes(leaves.flags > NODE_BIG_DATA, "its flags are not those of a value")
        big = np.flatnonzero(leaves.flags)
        if big.size:
            self._overflow(tree, leaves, big)
        if tree.role is Role.FREE_LIST:
            self._free_lists(tree, leaves)

    def _overflow(self, tree: _Tree, leaves: TreePages, big: Integers) -> None:
        """Values too large for a leaf, each in a run of pages with one header."""
        numbers = leaves.numbers_at(leaves.data_starts()[big])
        unknown = np.zeros(leaves.start.size, dtype=np.bool_)
        unknown[big] = (numbers < META_PAGES) | (numbers > self._last_page)
        leaves.refuse_nodes(unknown, "its value is on a page that does not exist")
        order = np.argsort(numbers)
        numbers, nodes = numbers[order].astype(np.int64), big[order]
        raw = b"".join([self._bytes(each * self._page_size, HEADER_BYTES) for each in numbers.tolist()])
        headers = np.frombuffer(raw, dtype=_OVERFLOW_HEADER)
        pages = headers["pages"].astype(np.int64)
        # More pages than it takes are in order: a value that was made smaller within a transaction keeps them.
        needed = (HEADER_BYTES - 1 + leaves.data_bytes[nodes]) // self._page_size + 1
        bad = (headers["number"] != numbers) | (headers["flags"] != PageKind.OVERFLOW) | (pages < needed)
        bad |= numbers + pages - 1 > self._last_page
        # Sorted, so a run that reaches into the next one is seen here, before runs are spelt out page by page.
        bad[:-1] |= numbers[:-1] + pages[:-1] > numbers[1:]
        for position in np.flatnonzero(bad)[:1].tolist():
            leaf = leaves.pages.numbers[leaves.page[nodes[position]]]
            raise DamagedDataFile(
                f"page {numbers[position]}: no overflow page of {tree.name} with the value that page {leaf} speaks of"
            )
        starts = np.repeat(numbers - (np.cumsum(pages) - pages), pages)
        self._claim(starts + np.arange(starts.size), tree, "its large values")
        tree.overflow_pages += int(pages.sum())
        self.pages_read += numbers.size

    def _free_lists(self, tree: _Tree, leaves: TreePages) -> None:
        ids = leaves.numbers_at(leaves.start + 8)
        leaves.refuse_nodes((ids < 1) | (ids > self._transaction_id), "it is of a transaction that has not been")
        leaves.refuse_nodes((leaves.data_bytes < 8) | (leaves.data_bytes % 8 != 0), "it is no list of pages")
        starts = leaves.data_starts()
        on_overflow = np.where(leaves.flags, leaves.numbers_at(np.minimum(starts, len(leaves.raw) - 8)), 0)
        for node, transaction_id in enumerate(ids.tolist()):
            start, length = int(starts[node]), int(leaves.data_bytes[node])
            data = leaves.raw[start : start + length]
            if leaves.flags[node]:
                data = self._bytes(int(on_overflow[node]) * self._page_size + HEADER_BYTES, length)
            numbers = np.frombuffer(data, dtype=np.uint64)
            count = int(numbers[0])
            if count >= numbers.size:
                leaves.refuse(int(leaves.page[node]), f"a list of {numbers.size - 1} pages is said to hold {count}")
            tree.free_lists.append((transaction_id, numbers[1 : count + 1]))

    def _batches(self, tree: _Tree, pages: Pages, kind: PageKind) -> Iterator[TreePages]:
        """Yield the pages in the order of the file, read and checked."""
        order = _ORDER.get(tree.role, KeyOrder.BYTES)
        pages = pages.sorted()
        for start in range(0, len(pages), _BATCH_PAGES):
            part = pages.part(start, start + _BATCH_PAGES)
            raw = self._load(part.numbers)
            self.pages_read += len(part)
            found = TreePages(raw, part, self._page_size, kind, tree.name, order=order)
            tree.disordered += found.disordered
            yield found

    def _claim(self, numbers: Integers, tree: _Tree, where: str) -> None:
        """Mark these pages as used. Raises DamagedDataFile if they can't be."""
        outside = numbers[(numbers < META_PAGES) | (numbers > self._last_page)]
        if outside.size:
            raise DamagedDataFile(
                f"{tree.name}: page {outside[0]}, known from {where}, is beyond the last one, {self._last_page}"
            )
        missing = numbers[numbers >= self._file_pages]
        if missing.size:
            raise DamagedDataFile(f"it is truncated: {tree.name} has page {missing[0]}, which is past the file's end")
        ordered = np.sort(numbers)
        twice = np.concatenate([numbers[self._used[numbers]], ordered[1:][ordered[1:] == ordered[:-1]]])
        if twice.size:
            raise DamagedDataFile(f"{tree.name}: page {twice[0]}, known from {where}, is in use elsewhere")
        self._used[numbers] = True

    def _load(self, numbers: Integers) -> bytes:
        """Pages in ascending order, end to end; neighbours by one read."""
        edges = [0, *(np.flatnonzero(np.diff(numbers) != 1) + 1).tolist(), numbers.size]
        size = self._page_size
        listed = numbers.tolist()
        return b"".join([self._bytes(listed[start] * size, (end - start) * size) for start, end in pairwise(edges)])

    def _bytes(self, offset: int, length: int) -> bytes:
        data = self._read(offset, length)
        if len(data) < length:
            raise DamagedDataFile(f"it is truncated: the {length} bytes from byte {offset} on are not all there")
        return data
