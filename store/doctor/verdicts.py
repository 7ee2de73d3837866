"""The verdict of a check: well, odd or wrong, and the remedy.

``fail`` is a defect that stops something or is about to; ``warn`` is one that would, if more came to it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class Verdict(StrEnum):
    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True, slots=True)
class Check:
    """``name`` is stable; ``found`` is the finding, ``advice`` the remedy if it is not well."""

    name: str
    verdict: Verdict
    found: str
    advice: str = ""


def check(name: str, *, fail: bool = False, warn: bool = False, found: str, advice: str) -> Check:
    """Return the check; ``advice`` is dropped if all is well."""
    verdict = Verdict.FAIL if fail else Verdict.WARN if warn else Verdict.OK
    return Check(name, verdict, found, advice if verdict is not Verdict.OK else "")


def worst_first(found: Iterable[Check]) -> list[Check]:
    """Return the same, those that fail before those that warn."""
    order = [Verdict.FAIL, Verdict.WARN, Verdict.OK]
    return sorted(found, key=lambda each: order.index(each.verdict))


def as_record(check: Check) -> dict[str, Any]:
    """For JSON."""
    return {"name": check.name, "verdict": check.verdict.value, "found": check.found, "advice": check.advice}
