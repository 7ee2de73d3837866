"""How large a transaction may be.

A server may be told to take smaller ones, and not larger ones: a commit is one entry of the log, and if others keep
changing its footprint, it is evaluated in the append itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

OPERATIONS_MAX: Final = 10_000
BYTES_MAX: Final = 4 << 20
"""The most bytes of documents, keys and values that one commit writes."""
KEYS_MAX: Final = 20_000
RANGES_MAX: Final = 1_000
"""The bounds of a footprint."""


@dataclass(frozen=True, slots=True)
class TransactionLimits:
    """The limits of one server; beyond it, a commit is refused with TooLarge, which says the limit."""

    operations_max: int = OPERATIONS_MAX
    bytes_max: int = BYTES_MAX
    footprint_keys_max: int = KEYS_MAX
    footprint_ranges_max: int = RANGES_MAX


LARGEST: Final = TransactionLimits()
