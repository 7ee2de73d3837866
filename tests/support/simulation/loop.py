"""asyncio without a selector, without threads and without a clock: many loops over one virtual time.

::

    Scheduler   ready: FIFO of handles of all loops      timers: heap by (when, number)
       |
       +-- NodeLoop of n1, first life      a crash ends it: its handles never run again
       +-- NodeLoop of n1, second life
       +-- NodeLoop of n2                  a pause keeps its handles back, in their order
       `-- NodeLoop of the clients

Time stands still while anything is ready, and then jumps to the next timer. Work of threads elsewhere runs here in
place: ``run_in_executor`` is a call with a result that comes a little later. So a run is a function of its seed, on any
Python.

A loop has a clock of its own (``time``), that may drift: its timers are scaled to it.
"""

from __future__ import annotations

import asyncio
import contextvars
from asyncio.events import _set_running_loop
from collections import deque
from collections.abc import Callable, Coroutine
from contextlib import suppress
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Any, Final, TypeVar

if TYPE_CHECKING:
    from support.simulation.process import Life

T = TypeVar("T")

Callback = Callable[..., object]

_LATE_MS: Final = 0.001
# So often an abandoned task may wait for something more while it ends.
_ENDINGS_MAX: Final = 8


class Handle:
    """One callback in line; it has the interface of ``asyncio.Handle`` and ``asyncio.TimerHandle`` that asyncio's
    callers expect. ``callback`` is None if it was cancelled."""

    __slots__ = ("_when_s", "args", "callback", "context", "loop")

    def __init__(
        self,
        loop: NodeLoop,
        callback: Callback,
        args: tuple[Any, ...],
        context: contextvars.Context | None,
        when_s: float = 0.0,
    ) -> None:
        self.loop = loop
        self.callback: Callback | None = callback
        self.args = args
        self.context = context
        self._when_s = when_s

    def cancel(self) -> None:
        self.callback, self.args = None, ()

    def cancelled(self) -> bool:
        return self.callback is None

    def when(self) -> float:
        return self._when_s


class Scheduler:
    """Virtual time, in milliseconds since the beginning of the run, and everything that happens in it."""

    def __init__(self) -> None:
        self.now_ms = 0.0
        self.steps = 0
        self.after_step: Callable[[NodeLoop], None] = lambda _loop: None
        """Called behind each callback of a loop that has a life."""
        self._ready: deque[Handle] = deque()
        self._timers: list[tuple[float, int, Handle]] = []
        self._number = 0

    def call_at(self, when_ms: float, handle: Handle) -> None:
        self._number += 1
        heappush(self._timers, (when_ms, self._number, handle))

    def run_until(self, is_done: Callable[[], bool], *, until_ms: float) -> bool:
        """Run until ``is_done`` (asked after each instant of time) or ``until_ms``; False if time ran out."""
        timers = self._timers
        while True:
            self._run_ready()
            if is_done():
                return True
            while timers and timers[0][2].callback is None:
                heappop(timers)
            if not timers or timers[0][0] > until_ms:
                self.now_ms = max(self.now_ms, until_ms)
                return False
            when_ms, _, handle = heappop(timers)
            self.now_ms = max(self.now_ms, when_ms)
            self._ready.append(handle)

    def _run_ready(self) -> None:
        """Run the callbacks in line, and those that they add. Some ten thousand callbacks per run pass here."""
        ready, running = self._ready, None
        try:
            while ready:
                handle = ready.popleft()
                callback, loop = handle.callback, handle.loop
                if callback is None or loop.is_dead:
                    continue
                if loop.is_paused or loop.is_writing:
                    loop.backlog.append(handle)
                    continue
                self.steps += 1
                if loop is not running:
                    _set_running_loop(loop)
                    running = loop
                try:
                    if handle.context is None:
                        callback(*handle.args)
                    else:
                        handle.context.run(callback, *handle.args)
                except Exception as error:
                    loop.call_exception_handler({"message": "a callback raised", "exception": error})
                if loop.life is not None:
                    self.after_step(loop)
        finally:
            _set_running_loop(None)


class NodeLoop(asyncio.AbstractEventLoop):
    """The loop of one process. ``rate`` is how fast its monotonic clock runs, ``offset_s`` its first reading.

    ``step_takes_s`` says how long a step on an executor takes; without it, none takes any time. ``on_problem`` hears of
    uncaught exceptions: defects of the code on the loop.
    """

    def __init__(
        self,
        scheduler: Scheduler,
        name: str,
        on_problem: Callable[[str], None],
        *,
        rate: float = 1.0,
        offset_s: float = 0.0,
        step_takes_s: Callable[[], float] | None = None,
    ) -> None:
        self.name = name
        self.is_dead = False
        self.is_paused = False
        self.is_writing = False
        """A callback waits for the disk, and the loop with it."""
        self.backlog: deque[Handle] = deque()
        self.life: Life | None = None
        """The life of a node's loop; None for a disk's."""
        self._scheduler = scheduler
        self._on_problem = on_problem
        self._rate = rate
        self._offset_s = offset_s
        self._step_takes_s = step_takes_s
        # Kept to the end of the run, so that no collector closes an abandoned coroutine in the middle of it.
        self._tasks: list[asyncio.Task[Any]] = []
        self._tasks_kept = 64

    # --- crashes and pauses ------------------------------------------------------------------------------------

    def kill(self) -> None:
        """Run nothing of this loop again. Tasks stay where they are."""
        self.is_dead = True
        self.backlog.clear()

    def pause(self) -> None:
        self.is_paused = True

    def resume(self) -> None:
        self.is_paused = False
        self._go_on()

    def write(self) -> None:
        """Begin to wait for the disk in the midst of a callback."""
        self.is_writing = True

    def wrote(self, callback: Callback, *args: Any) -> None:
        """Go on with ``callback``, the rest of the callback that waited, and then with all others."""
        self.is_writing = False
        self.backlog.appendleft(Handle(self, callback, args, None))
        self._go_on()

    def _go_on(self) -> None:
        if not (self.is_paused or self.is_writing or self.is_dead):
            self._scheduler._ready.extend(self.backlog)
            self.backlog.clear()

    def bury(self) -> None:
        """Tell, after the run, of tasks that failed unseen. Let go of abandoned ones without a word, whatever their
        ``finally`` blocks do."""
        for task in self._tasks:
            if task.done() and task._log_traceback:  # type: ignore[attr-defined]
                what = f"nobody asked how {task.get_name()} ended"
                self.call_exception_handler({"message": what, "exception": task.exception()})
        self.is_dead = True
        for task in self._tasks:
            if task.done():
                continue
            task._log_destroy_pending = False  # type: ignore[attr-defined]
            coroutine = task.get_coro()
            with suppress(BaseException):
                # Not close(): that leaves an asynchronous generator, which stands in the middle of a step, marked as
                # running for ever, and its aclose() fails.
                for _ in range(_ENDINGS_MAX):
                    coroutine.throw(asyncio.CancelledError())
        self._tasks.clear()

    # --- asyncio's interface of a loop -------------------------------------------------------------------------

    def time(self) -> float:
        return self._offset_s + self._scheduler.now_ms * self._rate / 1000

    def call_soon(  # type: ignore[override]
        self, callback: Callback, *args: Any, context: contextvars.Context | None = None
    ) -> Handle:
        handle = Handle(self, callback, args, context)
        if not self.is_dead:
            self._scheduler._ready.append(handle)
        return handle

    call_soon_threadsafe = call_soon  # type: ignore[assignment]

    def call_later(  # type: ignore[override]
        self, delay: float, callback: Callback, *args: Any, context: contextvars.Context | None = None
    ) -> Handle:
        return self.call_at(self.time() + delay, callback, *args, context=context)

    def call_at(  # type: ignore[override]
        self, when: float, callback: Callback, *args: Any, context: contextvars.Context | None = None
    ) -> Handle:
        handle = Handle(self, callback, args, context, when)
        if not self.is_dead:
            # A little late, as timers are: by rounding alone it could be early, and asked for again for ever.
            self._scheduler.call_at((when - self._offset_s) * 1000 / self._rate + _LATE_MS, handle)
        return handle

    def create_future(self) -> asyncio.Future[Any]:
        return asyncio.Future(loop=self)

    def create_task(  # type: ignore[override]
        self,
        coro: Coroutine[Any, Any, T],
        *,
        name: str | None = None,
        context: contextvars.Context | None = None,
    ) -> asyncio.Task[T]:
        task = asyncio.Task(coro, loop=self, name=name or "task", context=context)
        self._tasks.append(task)
        if len(self._tasks) > 2 * self._tasks_kept:
            self._tasks = [each for each in self._tasks if not each.done()]
            self._tasks_kept = max(64, len(self._tasks))
        return task

    def run_in_executor(self, executor: Any, func: Callable[..., T], *args: Any) -> asyncio.Future[T]:  # type: ignore[override]
        """Run ``func`` in place: there are no threads. The future ends at once, or when such a step would have
        ended."""
        future: asyncio.Future[T] = self.create_future()
        result: object = None
        problem: Exception | None = None
        try:
            result = func(*args)
        except Exception as error:
            problem = error
        if self._step_takes_s is None:
            _settle(future, result, problem)
        else:
            self.call_later(self._step_takes_s(), _settle, future, result, problem)
        return future

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        if not self.is_dead:
            error = context.get("exception")
            self._on_problem(f"{self.name}: {context.get('message')}: {error!r}{_where(error)}")

    def default_exception_handler(self, context: dict[str, Any]) -> None:
        self.call_exception_handler(context)

    def get_debug(self) -> bool:
        return False

    def is_running(self) -> bool:
        return not self.is_dead

    def is_closed(self) -> bool:
        return False

    def _timer_handle_cancelled(self, handle: object) -> None:
        """Do nothing: asyncio's own handles tell their loop; ours are skipped when they are due."""


def _settle(future: asyncio.Future[Any], result: object, problem: Exception | None) -> None:
    if future.done():
        return
    if problem is None:
        future.set_result(result)
    else:
        future.set_exception(problem)


def _where(error: object) -> str:
    """Return the innermost place of an exception, for a one-line report."""
    if not isinstance(error, BaseException) or error.__traceback__ is None:
        return ""
    trace = error.__traceback__
    while trace.tb_next is not None:
        trace = trace.tb_next
    return f" at {trace.tb_frame.f_code.co_filename}:{trace.tb_lineno}"
