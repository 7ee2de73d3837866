"""Read all stored data again and again, to find damage before a reader meets or misses it.

::

    start ──► the walk: as fast as it goes, for walk_ms at most, before anything is served
                │ goes on where that ended
                ▼
              the patrol: all within patrol_ms, in short slices on the scan thread, then the log files, which a start
                          has read whole; then from the beginning again

Checksums alone do not protect a read: if a bit of a key has turned, a search passes the row by, and an absent row has
no checksum. Only a pass over everything, in stored order, meets the row at its wrong place
(:mod:`cortado.store.mvcc.verifying`).

The patrol never takes more than a fifth of the scan thread's time. If that is not enough for ``patrol_ms``, a pass
takes longer, and :attr:`Patrol.progress` says how long.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, Protocol, TypeVar

from cortado.errors import DataLoss
from cortado.store.engine.interface import Engine
from cortado.store.log_files.log_files import LogFiles
from cortado.store.log_files.verifying import LogPass, LogPiece, SegmentDamage
from cortado.store.mvcc.damage import Damage
from cortado.store.mvcc.verifying import Piece, VerifyingPass

T = TypeVar("T")

_LOG: Final = logging.getLogger(__name__)

SLICE_ITEMS: Final = 512
SLICE_BYTES: Final = 256 << 10
WALK_ITEMS: Final = 4_000
WALK_BYTES: Final = 1 << 20
REST: Final = 4.0
"""The rest after a slice, at least, in multiples of the slice's time."""
_UNREADABLE_WAIT_MS: Final = 1_000.0


class RunScan(Protocol):
    def __call__(self, step: Callable[[], T]) -> Awaitable[T]: ...


@dataclass(frozen=True, slots=True)
class PatrolProgress:
    """The pass under way: bytes read, of about how many, and how long it has lasted. ``passes`` are over since the
    start, the last one after ``last_pass_ms``; ``damaged`` places were found by all of them."""

    read_bytes: int
    expected_bytes: int
    running_ms: float
    passes: int
    last_pass_ms: float | None
    damaged: int

    @property
    def fraction(self) -> float:
        """Return how much of the pass is done, as far as known: 0 to 1."""
        return min(1.0, self.read_bytes / self.expected_bytes) if self.expected_bytes else 0.0


class Patrol:
    """The patrol of both stores: :meth:`walk` before the node serves, then :meth:`start`; :meth:`stop` before the scan
    thread ends. All methods run on the loop. One patrol reads the data of all groups, and each replica takes the finds
    of its own range."""

    def __init__(
        self,
        engine: Engine,
        log_files: LogFiles,
        *,
        pass_ms: float,
        run_scan: RunScan,
        is_readable: Callable[[], bool],
        on_damage: Callable[[Damage], None],
        on_log_damage: Callable[[SegmentDamage], None],
        monotonic_ms: Callable[[], float],
    ) -> None:
        """``on_damage`` and ``on_log_damage`` hear of each find, on the scan thread. Nothing is read while not
        ``is_readable``."""
        self._engine = engine
        self._log_files = log_files
        self._pass_ms = pass_ms
        self._run_scan = run_scan
        self._is_readable = is_readable
        self._on_damage = on_damage
        self._on_log_damage = on_log_damage
        self._monotonic_ms = monotonic_ms
        self._task: asyncio.Task[None] | None = None
        self._passes = self._damaged = 0
        self._last_pass_ms: float | None = None
        self._begin_pass()

    def _begin_pass(self) -> None:
        self._pass = VerifyingPass(self._engine)
        # Begun when the data is through.
        self._log_pass: LogPass | None = None
        self._began_ms = self._monotonic_ms()
        self._read_bytes = 0
        self._expected_bytes = self._engine.use().used_bytes + self._log_files.use().size_bytes

    @property
    def progress(self) -> PatrolProgress:
        running_ms = self._monotonic_ms() - self._began_ms
        return PatrolProgress(
            self._read_bytes, self._expected_bytes, running_ms, self._passes, self._last_pass_ms, self._damaged
        )

    async def walk(self, walk_ms: float) -> None:
        """Verify as much as possible in ``walk_ms``."""
        due_ms = self._monotonic_ms() + walk_ms
        is_over = False
        while not is_over and self._is_readable() and self._monotonic_ms() < due_ms:
            is_over = await self._step(WALK_ITEMS, WALK_BYTES)
        part = "all of it" if is_over else f"about {self.progress.fraction:.0%}; the rest follows while it serves"
        read_bytes = self._read_bytes
        _LOG.info("verified %d stored bytes, %s: %d places damaged", read_bytes, part, self._damaged)
        if is_over:
            self._end_pass()

    def start(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._patrol())

    async def stop(self) -> None:
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    async def _patrol(self) -> None:
        while True:
            began_ms, before_bytes = self._monotonic_ms(), self._read_bytes
            wait_ms, is_over = _UNREADABLE_WAIT_MS, False
            if self._is_readable():
                if self._log_pass is not None:
                    is_over = await self._log_step(self._log_pass)
                elif await self._step(SLICE_ITEMS, SLICE_BYTES):
                    self._log_pass = LogPass(self._log_files)
                took_ms, slice_bytes = self._monotonic_ms() - began_ms, self._read_bytes - before_bytes
                wait_ms = self._pace(took_ms, slice_bytes, is_over)
            if is_over:
                self._end_pass()
            await asyncio.sleep(wait_ms / 1000)
            if is_over:
                self._began_ms = self._monotonic_ms()

    def _pace(self, took_ms: float, slice_bytes: int, is_over: bool) -> float:
        """Return how long to wait after a slice, so that the pass takes its time."""
        if is_over:
            return max(self._began_ms + self._pass_ms - self._monotonic_ms(), REST * took_ms)
        part = slice_bytes / max(self._expected_bytes, slice_bytes, 1)
        return max(self._pass_ms * part - took_ms, REST * took_ms)

    async def _step(self, items_max: int, bytes_max: int) -> bool:
        """Verify the next piece. Returns whether it was the last."""
        under_way = self._pass

        def step() -> Piece:
            try:
                piece = under_way.step(items_max, bytes_max)
            except DataLoss as broken:
                # Nothing behind it can be read in order, so the pass ends here.
                piece = Piece(0, 0, [Damage.of_tree(broken)], is_last=True)
            # Bad items in a state that is being replaced under our hands are no damage of it.
            if self._is_readable():
                for each in piece.damage:
                    _LOG.critical("stored data is damaged: %s", each.what)
                    self._on_damage(each)
            return piece

        piece = await self._run_scan(step)
        self._read_bytes += piece.bytes
        self._damaged += len(piece.damage)
        return piece.is_last

    async def _log_step(self, under_way: LogPass) -> bool:
        """Verify the log's next piece. Returns whether it was the last."""

        def step() -> LogPiece:
            piece = under_way.step(SLICE_BYTES)
            if piece.damage is not None:
                _LOG.critical("a log file is damaged: %s", piece.damage.what)
                self._on_log_damage(piece.damage)
            return piece

        piece = await self._run_scan(step)
        self._read_bytes += piece.bytes
        self._damaged += piece.damage is not None
        return piece.is_last

    def _end_pass(self) -> None:
        self._passes += 1
        self._last_pass_ms = self._monotonic_ms() - self._began_ms
        self._begin_pass()
