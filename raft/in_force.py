"""A value that entries of the log replace: in force from such an entry on, until the entry is taken back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic, TypeVar

_T = TypeVar("_T")


class InForce(Generic[_T]):
    """One value for each place in the window of the log. ``base`` is the one at the window's begin, and ``newest`` the
    one at its end."""

    __slots__ = ("_changes", "base", "newest")

    def __init__(self, base: _T) -> None:
        self.base = self.newest = base
        self._changes: list[tuple[int, _T]] = []

    @property
    def places(self) -> Sequence[int]:
        """Indexes of the entries in the window that replace it, ascending."""
        return [index for index, _ in self._changes]

    def at(self, index: int) -> _T:
        """Return the value in force at ``index``."""
        return next((value for at, value in reversed(self._changes) if at <= index), self.base)

    def put(self, index: int, value: _T) -> None:
        """The entry at ``index``, the log's last one, replaces it."""
        self._changes.append((index, value))
        self.newest = value

    def truncate(self, index: int) -> None:
        """The entries from ``index`` on are gone."""
        while self._changes and self._changes[-1][0] >= index:
            self._changes.pop()
        self._end()

    def begin(self, index: int, base: _T) -> None:
        """The window begins after ``index``, with ``base``."""
        self.base = base
        self._changes = [each for each in self._changes if each[0] > index]
        self._end()

    def _end(self) -> None:
        self.newest = self._changes[-1][1] if self._changes else self.base
