"""Sequences that lie in buffers, end to end, and are cut into objects when they are first asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from threading import Lock
from typing import Final, TypeVar, overload

T = TypeVar("T")

_CUTTING: Final = Lock()


class CutLater(Sequence[T]):
    """``count`` elements, which ``cut`` makes at the first use. With tens of thousands, cutting is most of a large
    write's work in its turn, and mostly the thread that stores them asks first. From any thread."""

    __slots__ = ("__weakref__", "_count", "_cut", "_make")

    def __init__(self, count: int, cut: Callable[[], Sequence[T]]) -> None:
        self._count = count
        self._make: Callable[[], Sequence[T]] | None = cut
        self._cut: Sequence[T] | None = None

    @property
    def _all(self) -> Sequence[T]:
        make = self._make
        if self._cut is None and make is not None:
            # Two threads may both do it, and the first result is kept: callers compare elements by identity.
            made = make()
            with _CUTTING:
                if self._cut is None:
                    self._cut = made
                    # The buffers may go.
                    self._make = None
        assert self._cut is not None
        return self._cut

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, place: int) -> T: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[T]: ...
    def __getitem__(self, place: int | slice) -> T | Sequence[T]:
        return self._all[place]

    def __iter__(self) -> Iterator[T]:
        return iter(self._all)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]
