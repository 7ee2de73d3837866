"""How far a long command is, on standard error: a bar on a terminal, elsewhere a line now and then, or nothing."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from cortado.store.cli.render import count
from cortado.store.cli.terminal import one_line
from cortado.store.transfer.progress import Progress as Step
from cortado.store.transfer.progress import Report, silent

if TYPE_CHECKING:
    from rich.progress import Progress

LINE_EVERY_S: Final = 5.0


@contextmanager
def showing_progress(*, quiet: bool) -> Iterator[Report]:
    """Yield the function to call with each step."""
    if quiet:
        yield silent
    elif sys.stderr.isatty():
        with _bar() as bar:
            yield _Bar(bar)
    else:
        yield _Lines()


def _bar() -> Progress:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    return Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=None),
        TextColumn("{task.percentage:>3.0f}%"),
        TimeRemainingColumn(),
        TextColumn("{task.fields[rows]}"),
        console=Console(file=sys.stderr, highlight=False),
        transient=True,
        expand=True,
    )


class _Bar:
    """A bar that grows, with the number of rows behind it."""

    def __init__(self, bar: Progress) -> None:
        self._bar = bar
        self._task = bar.add_task("", total=None, rows="")

    def __call__(self, step: Step) -> None:
        # More may be done than was estimated.
        total = max(step.total, step.done) if step.total else None
        self._bar.update(
            self._task,
            description=one_line(step.what),
            total=total,
            completed=step.done,
            rows=_rows(step),
        )


class _Lines:
    """A line every few seconds, so that a log shows that something goes on."""

    def __init__(self) -> None:
        self._next_s = time.monotonic() + LINE_EVERY_S

    def __call__(self, step: Step) -> None:
        now_s = time.monotonic()
        if now_s < self._next_s:
            return
        self._next_s = now_s + LINE_EVERY_S
        share = f", {min(100, 100 * step.done // step.total)}%" if step.total else ""
        sys.stderr.write(f"{one_line(step.what)}: {_rows(step)}{share}\n")
        sys.stderr.flush()


def _rows(step: Step) -> str:
    bad = f", {step.bad:,} bad" if step.bad else ""
    return count(step.rows, "row") + bad
