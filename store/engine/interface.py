"""The interface of an engine: ordered bytes in a few spaces, read in short transactions, written in one durable one.

::

    with engine.write() as txn:                 # one thread begins, writes and commits
        txn.put_many(Space.DATA, items)         # all items of a round ...
        txn.put(Space.META, b"applied", ...)    # ... and the place in the log
    # here it is durable, or an error says why it is not there at all

    with engine.read() as txn:                  # any thread; keep it short: a long reader stops LMDB from reusing pages
        page = txn.page(Space.DATA, start, end, max_items=2000)

Invariants: a read transaction sees exactly the commits before its begin; a write transaction is applied whole or not at
all; after ``write`` returns, a crash or power loss takes nothing of it away. Keys are 1 to 511 bytes, ordered as bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from enum import StrEnum
from typing import Final, NamedTuple, Protocol, TypeAlias

KEY_BYTES_MAX: Final = 511
"""LMDB's compiled-in limit."""
ABOVE_KEYS: Final = b"\xff" * (KEY_BYTES_MAX + 1)
"""Above every key."""
LAST_RESERVE_PART: Final = 4
"""A quarter of the reserve is kept from writes that free room, too: for the log, and for the leader's garbage
collection."""


class Space(StrEnum):
    """The sub-databases. Few, because each one more costs every commit that touches it."""

    DATA = "data"
    """Versions of logical keys (``cortado.store.mvcc``)."""
    META = "meta"
    """The node's own state: each group's applied state, and marks (it joined; a snapshot is being installed)."""
    REQUESTS = "requests"
    """Results of requests that carried an id, to be repeated instead of executed again."""
    CHANGES = "changes"
    """The index of changes by time: which keys each entry changed (``cortado.store.replica.feed.index``)."""


PointReader: TypeAlias = Callable[[bytes], tuple[bytes, bytes] | None]

Tree: TypeAlias = tuple[int, int, int, int, int]
"""The map's beginning, bytes a page, the last page that may be followed, the root's number, the depth (0: empty)."""


class Page(NamedTuple):
    """A run of neighbouring items as parallel lists; ``exhausted`` if no further item is in the range."""

    keys: list[bytes]
    values: list[bytes]
    exhausted: bool


class Disordered(NamedTuple):
    """The items of ``space`` in ``[start, end)`` share a leaf with keys that are out of their order."""

    space: Space
    start: bytes
    end: bytes


class MapUse(NamedTuple):
    """Bytes of pages in use (freed pages, which are used again, do not count), and the most that the map can hold."""

    used_bytes: int
    limit_bytes: int


class RoomLeft(NamedTuple):
    """Bytes that may still be written, by the map's limit and by the disk's, the reserve included; and the reserve."""

    left_bytes: int
    reserve_bytes: int

    @property
    def is_tight(self) -> bool:
        """Less than twice the reserve is left: writes will be refused soon."""
        return self.left_bytes < 2 * self.reserve_bytes


class LentMap(Protocol):
    """The map of an engine's file, as compiled code reads it (:mod:`cortado.store.engine.mapped`)."""

    def tree(self, space: Space) -> AbstractContextManager[Tree | None]:
        """Lend the tree of a space as the last commit left it, valid inside the scope alone; None if its record is of
        an unknown form. Raises Unavailable once the engine is closed."""


class ReadTransaction(Protocol):
    """One state of all spaces. Everything handed out is a copy, and stays good after the end."""

    def get(self, space: Space, key: bytes) -> bytes | None: ...

    def seek(self, space: Space, key: bytes) -> tuple[bytes, bytes] | None:
        """Return the first item at or after ``key``, in one seek."""

    def seek_many(
        self, space: Space, keys: Iterable[bytes], *, max_bytes: int | None = None
    ) -> list[tuple[bytes, bytes] | None]:
        """:meth:`seek` for each, in the order asked; for the first keys alone, up to the one whose item reaches
        ``max_bytes`` of keys and values."""

    def page(
        self,
        space: Space,
        start: bytes,
        end: bytes,
        *,
        reverse: bool = False,
        max_items: int,
        max_bytes: int = 1 << 20,
    ) -> Page:
        """Return items of ``[start, end)``, from the start upwards or, reversed, from the end downwards.

        Stops after ``max_items``, or with the item that reaches ``max_bytes`` of keys and values, and takes one item at
        least. Items behind that are not read.
        """

    def firsts(
        self, space: Space, start: bytes, end: bytes, tail: bytes, *, max_items: int, max_bytes: int = 1 << 20
    ) -> Page:
        """Return items as :meth:`page` does, ascending, but at most two of each run of keys that differ in their last
        ``len(tail)`` bytes alone: the first and, if that ends below ``tail``, the first of the run that does not. If
        ``exhausted`` is False, there may be no more items even so.

        One search for each of them, whatever the length of the runs. (If keys are out of order, a search may find lower
        keys: then the result does not ascend.)
        """

    def keys(self, space: Space, start: bytes, end: bytes, *, max_items: int) -> tuple[list[bytes], bool]:
        """Return keys alone as :meth:`page` does, ascending: values are not read. The flag is ``exhausted``."""

    def walk(self, space: Space, start: bytes, *, reverse: bool = False) -> Iterator[tuple[bytes, Callable[[], bytes]]]:
        """Yield items in the order in which they stand, each with a function that reads its value while it is the last
        one given: from the first item at or after ``start`` upwards, or from the one before that downwards.

        In a sound tree that is the order of the keys. In a damaged one, with a turned bit in a key, it is not: this
        searches once and goes on from item to item, and so meets also items that searches pass by.
        """


class WriteTransaction(ReadTransaction, Protocol):
    """The one writer; it reads its own writes. Lives and ends on the thread that began it."""

    def put(self, space: Space, key: bytes, value: bytes) -> None: ...

    def put_many(self, space: Space, items: Iterable[tuple[bytes, bytes]]) -> None:
        """Put all; give them in key order if that is cheap, since neighbours share pages."""

    def delete(self, space: Space, key: bytes) -> bool:
        """Delete a key. Returns whether it was there."""

    def delete_range(self, space: Space, start: bytes, end: bytes, *, max_items: int | None = None) -> int:
        """Delete the items of ``[start, end)``, at most ``max_items`` from the start; returns how many."""

    def delete_places(self, space: Space, start: bytes, places: Iterable[int]) -> None:
        """Delete items by their places in :meth:`walk` from ``start``, the first being 0: also those that a search for
        their keys would pass by. ``places`` ascend."""


class Engine(Protocol):
    """Raises DataLoss if the tree itself is damaged, Unavailable once closed."""

    @property
    def disordered(self) -> Sequence[Disordered]:
        """Return the ranges in which keys were out of order at the open: a search for others there may go wrong."""

    @property
    def mapped(self) -> LentMap | str:
        """Return the map of its file, to be read by compiled code; or why there is none."""

    def read(self) -> AbstractContextManager[ReadTransaction]:
        """A short transaction, on any thread."""

    def point_reader(self, space: Space) -> PointReader:
        """Return a function that does :meth:`ReadTransaction.seek` in a transaction of its own: the fastest read there
        is."""

    def write(self) -> AbstractContextManager[WriteTransaction]:
        """Commits durably at the end of the block, on the same thread; an exception in the block undoes everything.

        Raises ResourceExhausted if the map or the disk is full: nothing was applied, reads go on, and it may be tried
        again. Raises :class:`~cortado.store.engine.failures.StorageFailed` if the disk failed: the process must end,
        since it is unknown which writes are durable.
        """

    def admit(self, size_bytes: int, *, behind_bytes: int = 0, frees: bool = False) -> None:
        """Raise ResourceExhausted unless ``size_bytes`` more leave the reserve untouched; for a write that ``frees``
        room, only the last part of it (``LAST_RESERVE_PART``). ``behind_bytes`` were admitted before and are not stored
        yet. Cheap: ask for each write."""

    def room(self) -> RoomLeft:
        """Looks at the disk: not for each write."""

    def use(self) -> MapUse: ...

    def disk_free_bytes(self) -> int: ...

    def close(self) -> None: ...
