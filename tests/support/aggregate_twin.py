"""Aggregates by a dumb interpreter: documents in a list, groups in a dict, exact numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import ROUND_HALF_UP, Context, Decimal
from fractions import Fraction
from typing import Any

EXACT = Context(prec=400)


def aggregate_by_hand(
    documents: Sequence[dict[str, Any]],
    aggregates: Sequence[tuple[str, str]],
    group_by: Sequence[str],
    scales: dict[str, int],
) -> dict[tuple[Any, ...], list[Any]]:
    """Return the finished aggregates of each group. ``scales`` has the digits behind the point of fields that are
    decimals."""
    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for document in documents:
        key = tuple(plain(value_at(document, path)) for path in group_by)
        groups.setdefault(key, []).append(document)
    if not group_by and not groups:
        groups[()] = []
    return {
        key: [_aggregate(kind, path, members, scales) for kind, path in aggregates] for key, members in groups.items()
    }


def _aggregate(kind: str, path: str, members: Sequence[dict[str, Any]], scales: dict[str, int]) -> Any:
    if not path:
        return len(members)
    values = [value for value in (plain(value_at(each, path)) for each in members) if value is not None]
    if kind == "count":
        return len(values)
    if not values:
        return None
    if kind in ("min", "max"):
        return (min if kind == "min" else max)(values, key=order)
    if isinstance(values[0], float):
        total = sum(values)
        return total if kind == "sum" else total / len(values)
    exact = sum(map(Fraction, values), Fraction(0))
    if kind == "sum":
        return exact if path not in scales else _decimal(exact, scales[path])
    exact /= len(values)
    return float(exact) if path not in scales else _decimal(exact, scales[path] + 4)


def _decimal(exact: Fraction, scale: int) -> Decimal:
    quotient = EXACT.divide(Decimal(exact.numerator), Decimal(exact.denominator))
    return quotient.quantize(Decimal((0, (1,), -scale)), ROUND_HALF_UP, EXACT)


def value_at(document: Any, path: str) -> Any:
    """Return the value at a path, or None if a record on the way is null."""
    for name in path.split("."):
        document = None if document is None else document[name]
    return document


def plain(value: Any) -> Any:
    """Return the value with one NaN and one zero."""
    if isinstance(value, float):
        return math.nan if math.isnan(value) else value + 0.0
    return value


def order(value: Any) -> Any:
    """Return a sort key: NaN is above all, and text is in the order of its bytes."""
    if isinstance(value, float):
        return math.isnan(value), 0.0 if math.isnan(value) else value
    return value.encode() if isinstance(value, str) else value


def same(ours: Any, theirs: Any) -> bool:
    """Return whether two values are equal, of one type, and sums of doubles as near as their order allows."""
    if isinstance(ours, float) and isinstance(theirs, float):
        if math.isnan(ours) or math.isnan(theirs):
            return math.isnan(ours) and math.isnan(theirs)
        is_zero = ours == theirs == 0.0
        near = math.isclose(ours, theirs, rel_tol=1e-9, abs_tol=1e-9)
        return near and not (is_zero and math.copysign(1, ours) != math.copysign(1, theirs))
    return bool(ours == theirs)
