"""Watches, synchronous."""

from __future__ import annotations

from types import TracebackType
from typing import Generic, Self, TypeVar

from cortado.store.client.blocking.drive import run
from cortado.store.client.blocking.forward import forwards
from cortado.store.client.watch import AsyncWatch, Event
from cortado.store.clock.timestamp import Timestamp

K = TypeVar("K")
V = TypeVar("V")


@forwards(AsyncWatch)
class Watch(Generic[K, V]):
    """An iterator of events, without end but for ``until``. For one consumer; close it, or use it as a context manager.

    Another thread may close it: a caller that waits for an event then finds the end.
    """

    def __init__(self, core: AsyncWatch[K, V]) -> None:
        self._core = core

    @property
    def resolved(self) -> Timestamp | None:
        return self._core.resolved

    @property
    def lag_ms(self) -> int:
        return self._core.lag_ms

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Event[K, V]:
        while (event := self._core._ready()) is None:
            if not run(self._core._fill()):
                raise StopIteration
        return event

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        run(self._core.close())
