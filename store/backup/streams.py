"""Parts that are read or put at once, each in a thread of its own, until one of them fails."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from threading import Event
from typing import Final, TypeVar

from cortado.errors import Cancelled, InvalidArgument

T = TypeVar("T")

STREAMS: Final = 2
STREAMS_MAX: Final = 4
READ_AT_ONCE: Final = 8
"""Files, where the cluster has no part in it."""


def transferring(streams: int, what: str) -> Streams:
    """Parts that the cluster takes or gives. Raises InvalidArgument for a number that is out of bounds."""
    if not 1 <= streams <= STREAMS_MAX:
        raise InvalidArgument("streams", f"must be between 1 and {STREAMS_MAX}", str(streams))
    return Streams(streams, what)


class Streams:
    """Does something for each part, ``streams`` at once."""

    def __init__(self, streams: int, what: str) -> None:
        self._streams = streams
        self._what = what
        self._is_ending = Event()

    def run(self, work: Callable[[int], T], parts: Iterable[int]) -> list[T]:
        """Return the results of ``work`` for each of ``parts``. Raises the first error of a part."""
        with ThreadPoolExecutor(max_workers=self._streams, thread_name_prefix=self._what) as pool:
            begun = [pool.submit(work, part) for part in parts]
            try:
                done, _ = wait(begun, return_when=FIRST_EXCEPTION)
                for each in done:
                    each.result()
                return [each.result() for each in begun]
            except BaseException:
                self._is_ending.set()
                pool.shutdown(wait=False, cancel_futures=True)
                raise

    def check(self) -> None:
        """Raises Cancelled once another part has failed, or the command was interrupted."""
        if self._is_ending.is_set():
            raise Cancelled(problem=f"the {self._what} ended before this part did")
