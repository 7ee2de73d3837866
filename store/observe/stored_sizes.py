"""How much is stored, as it was measured last, for the metrics."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(slots=True)
class StoredSizes:
    """By name: how many rows, and how many bytes with indexes. ``tables`` are the largest ones alone."""

    tables: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    databases: Mapping[str, tuple[int, int]] = field(default_factory=dict)
