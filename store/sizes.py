"""Sizes in bytes: their units, and a text of one for people."""

from __future__ import annotations

from typing import Final

UNITS: Final = {"": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}


def size_text(number: int) -> str:
    """``80 B``, ``1.5 KiB``, ``76.8 GiB``."""
    if number < 1024:
        return f"{number} B"
    power = min(4, (number.bit_length() - 1) // 10)
    return f"{number / (1 << 10 * power):.1f} {('KiB', 'MiB', 'GiB', 'TiB')[power - 1]}"
