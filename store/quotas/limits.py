"""The most that a quota may let through, or let be stored: the same for setting and for keeping one."""

from __future__ import annotations

from typing import Final

CALLS_PER_SECOND_MAX: Final = 10**9
BYTES_PER_SECOND_MAX: Final = 1 << 40
STORED_BYTES_MAX: Final = 1 << 60
