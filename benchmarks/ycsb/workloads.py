"""The six workloads: their mixes, and how their records are drawn."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

TABLE: Final = "ycsb.usertable"
FIELDS: Final = tuple(f"field{number}" for number in range(10))
FIELD_BYTES: Final = 100
SCAN_ROWS_MAX: Final = 100
"""A scan asks for 1 to this many records."""

SCHEMA: Final[dict[str, Any]] = {
    "type": "record",
    "name": "User",
    "fields": [{"name": "id", "type": "string"}, *({"name": name, "type": "bytes"} for name in FIELDS)],
}

Operation = Literal["read", "update", "insert", "scan", "modify"]


@dataclass(frozen=True, slots=True)
class Workload:
    """``mix`` is the share of each operation; ``draws`` picks their records."""

    name: str
    title: str
    mix: Mapping[Operation, float]
    draws: Literal["zipfian", "latest"] = "zipfian"


WORKLOADS: Final = (
    Workload("a", "A, half reads, half updates", {"read": 0.5, "update": 0.5}),
    Workload("b", "B, 95% reads, 5% updates", {"read": 0.95, "update": 0.05}),
    Workload("c", "C, reads", {"read": 1.0}),
    Workload("d", "D, 95% reads of the latest, 5% inserts", {"read": 0.95, "insert": 0.05}, "latest"),
    Workload("e", "E, 95% short scans, 5% inserts", {"scan": 0.95, "insert": 0.05}),
    Workload("f", "F, half reads, half reads that are followed by an update", {"read": 0.5, "modify": 0.5}),
)
