"""Sizes in bytes and counts: their units, and texts of them for people."""

from __future__ import annotations

from typing import Final

UNITS: Final = {"": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}


def size_text(number: int) -> str:
    """``80 B``, ``1.5 KiB``, ``76.8 GiB``, ``512 GiB``."""
    if number < 1024:
        return f"{number} B"
    *smaller, largest = ("KiB", "MiB", "GiB", "TiB")
    size = number / 1024
    for unit in smaller:
        if size < 1023.5:
            return f"{_figures(size)} {unit}"
        size /= 1024
    return f"{_figures(size)} {largest}"


def count_text(number: int, *, is_estimated: bool = False) -> str:
    """``1,234``, or ``~1,234,567`` if that is an estimate."""
    return f"{'~' if is_estimated else ''}{number:,}"


def _figures(size: float) -> str:
    return f"{size:.1f}" if size < 99.95 else f"{size:.0f}"
