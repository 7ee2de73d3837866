"""The progress of a transfer, to be shown."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Progress:
    """``rows`` are done, ``bad`` of them refused; ``done`` of ``total`` is the share, in bytes, or in rows (about).

    ``total`` is 0 if it is unknown. ``what`` is the table or the file under way.
    """

    what: str
    rows: int
    bad: int = 0
    done: int = 0
    total: int = 0


Report: TypeAlias = Callable[[Progress], None]


def silent(_progress: Progress) -> None:
    """Shows nothing."""
