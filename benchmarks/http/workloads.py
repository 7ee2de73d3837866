"""The calls of both ways, and their rows: a hundred sensors with a hundred readings each, and as many pairs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

DATABASE: Final = "bench"
TABLE: Final = "bench.readings"
NAMESPACE: Final = "bench"
SENSORS: Final = 100
READINGS: Final = 100
"""Readings of each sensor: a page has them all."""
VALUE_BYTES: Final = 200
CALLERS: Final = (1, 64)
SCHEMA: Final = """{"type": "record", "name": "Reading", "fields": [
    {"name": "sensor", "type": "string"}, {"name": "id", "type": "long"},
    {"name": "at", "type": {"type": "long", "logicalType": "timestamp-micros"}},
    {"name": "value", "type": "double"}, {"name": "low", "type": ["null", "double"]},
    {"name": "high", "type": ["null", "double"]}, {"name": "count", "type": "int"},
    {"name": "unit", "type": "string"}, {"name": "ok", "type": "boolean"}, {"name": "note", "type": ["null", "string"]}
]}"""


@dataclass(frozen=True, slots=True)
class Workload:
    """``name`` is the name on the command line."""

    name: str
    title: str


WORKLOADS: Final = (
    Workload("document", "a document by its key"),
    Workload("page", f"a page of {READINGS} documents by a prefix"),
    Workload("pair", f"a pair by its key, {VALUE_BYTES} bytes"),
    Workload("put", "put of a document, synced"),
)


def sensor(number: int) -> str:
    return f"sensor-{number:03}"


def pair_key(number: int) -> bytes:
    return b"pair-%08d" % number


def reading(of: int, number: int, value: float) -> dict[str, Any]:
    """Return a document in its JSON form."""
    return {
        "sensor": sensor(of),
        "id": number,
        "at": f"2026-03-01T10:{number // 60:02}:{number % 60:02}Z",
        "value": value,
        "low": None if number % 3 == 0 else number / 11,
        "high": number / 5,
        "count": number,
        "unit": "celsius",
        "ok": number % 2 == 0,
        "note": None if number % 4 else f"note {number}",
    }
