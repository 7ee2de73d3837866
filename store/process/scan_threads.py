"""The threads that run slices of scans, off the loop.

::

    all other scans     ──► one scan thread
    streamed scans      ──► the same, or stream threads of their own (:meth:`ScanThreads.widen`)
    a step among those  ──► work beside it on threads that would be idle (:meth:`ScanThreads.lend`)

Steps wait in line, first come first served. Work beside a step never does: it begins at once, is over when its step is,
and leaves its thread early if a step waits for one. So it keeps no other scan out.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import CancelledError, Executor, Future, ThreadPoolExecutor
from threading import Lock
from typing import Any, TypeVar

T = TypeVar("T")


class ScanThreads:
    """Run bounded slices of scans off the loop."""

    def __init__(self, run_scan: Executor | None) -> None:
        self._run_scan = run_scan or ThreadPoolExecutor(max_workers=1, thread_name_prefix="cortado-scan")
        self._streams = _Streams(self._run_scan, 1)

    async def scan(self, step: Callable[[], T]) -> T:
        """Run one bounded slice of a scan on the scan thread; slices of all scans alternate."""
        return await asyncio.get_running_loop().run_in_executor(self._run_scan, step)

    async def scan_stream(self, step: Callable[[], T]) -> T:
        """Run a slice as :meth:`scan`, of a scan that shares no state with others: it runs beside them if the kernel
        reads without the interpreter's lock."""
        return await self._streams.submit(step)

    def spare(self) -> int:
        """Return how many threads :meth:`lend` has for the step that calls this."""
        return self._streams.spare()

    def lend(self, most: int, work: Callable[[Callable[[], bool]], None]) -> Lent:
        """Run ``work`` on idle stream threads, ``most`` of them or fewer, beside the step that calls this.

        Streams with a step in line have equal shares of the threads. ``work`` is given a function that tells whether it
        may go on: not if a step waits for a thread. The step calls :meth:`Lent.join` before it ends.
        """
        return self._streams.lend(most, work)

    def widen(self, threads: int) -> None:
        """Run slices of streamed scans on ``threads`` threads from now on."""
        self._streams = _Streams(ThreadPoolExecutor(threads, "cortado-stream"), threads)

    def stop(self) -> None:
        """End the threads. Blocks until the slices that run have ended."""
        self._streams.stop()
        self._run_scan.shutdown(wait=True, cancel_futures=True)


class Lent:
    """Work that runs beside a step."""

    def __init__(self, futures: list[Future[None]]) -> None:
        self._futures = futures

    def __len__(self) -> int:
        return len(self._futures)

    def join(self) -> None:
        """Take back the work that has not begun, and wait for the rest. Raises its first exception, after all has
        ended."""
        begun = [each for each in self._futures if not each.cancel()]
        failures = [failure for each in begun if (failure := _failure(each)) is not None]
        if failures:
            raise failures[0]


def _failure(future: Future[None]) -> BaseException | None:
    try:
        return future.exception()
    except CancelledError:
        # The threads were stopped meanwhile, before it began.
        return None


class _Streams:
    """Some threads, and how many steps, and pieces of work beside them, run there or wait. From any thread."""

    def __init__(self, executor: Executor, threads: int) -> None:
        self._executor = executor
        self._threads = threads
        self.steps = self._lent = 0
        self._is_stopped = False
        self.lock = Lock()

    def submit(self, step: Callable[[], T]) -> asyncio.Future[T]:
        """Put ``step`` in line. It counts until it has ended on its thread, also if its caller has gone."""
        counted = _Counted(self)

        def run() -> T:
            counted.is_begun = True
            try:
                return step()
            finally:
                counted.end()

        try:
            future = asyncio.get_running_loop().run_in_executor(self._executor, run)
        except RuntimeError:
            counted.end()
            raise
        future.add_done_callback(counted.left)
        return future

    def spare(self) -> int:
        if self._is_stopped:
            return 0
        idle, share = self._threads - self.steps - self._lent, self._threads // max(1, self.steps) - 1
        return max(0, min(idle, share))

    def lend(self, most: int, work: Callable[[Callable[[], bool]], None]) -> Lent:
        with self.lock:
            futures = [self._executor.submit(work, self._may_go_on) for _ in range(min(most, self.spare()))]
            self._lent += len(futures)
        for each in futures:
            each.add_done_callback(self._work_ended)
        return Lent(futures)

    def stop(self) -> None:
        with self.lock:
            self._is_stopped = True
        self._executor.shutdown(wait=True, cancel_futures=True)

    def _may_go_on(self) -> bool:
        return self.steps + self._lent <= self._threads

    def _work_ended(self, _: object) -> None:
        with self.lock:
            self._lent -= 1


class _Counted:
    """One step among those of ``streams``, from when this is made."""

    def __init__(self, streams: _Streams) -> None:
        self._streams = streams
        self._has_ended = False
        self.is_begun = False
        with streams.lock:
            streams.steps += 1

    def left(self, future: asyncio.Future[Any]) -> None:
        """Its caller was answered, or has gone: then the step is taken out of the line, unless it has begun."""
        if future.cancelled() and not self.is_begun:
            self.end()

    def end(self) -> None:
        with self._streams.lock:
            # A step that begins in the moment in which its caller goes would end twice.
            self._streams.steps -= not self._has_ended
            self._has_ended = True
