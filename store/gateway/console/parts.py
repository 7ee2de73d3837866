"""Long lists, a part of them at a time: by a piece of their names, and from a place on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Generic, TypeVar
from urllib.parse import urlencode

from cortado.store.gateway.calls import Call
from cortado.store.gateway.operations import Parameter

T = TypeVar("T")

SHOWN_MAX: Final = 200
_PLACE_MAX: Final = 10_000_000
FIND: Final = (
    Parameter("find", "Only what has this in its name."),
    Parameter("from", "From this place of the list on.", kind="integer"),
)


@dataclass(frozen=True, slots=True)
class Part(Generic[T]):
    """``items`` from the place ``begin`` on, of ``count`` whose names have ``find`` in them. ``before`` and ``behind``
    are the queries of the parts beside it, empty where there is none."""

    items: Sequence[T]
    begin: int
    count: int
    find: str
    before: str = ""
    behind: str = ""


def part_of(call: Call, items: Sequence[T], name: Callable[[T], str]) -> Part[T]:
    """The part that the call asks for."""
    find, begin = (call.text("find") or "").strip(), call.number("from", 0, _PLACE_MAX) or 0
    found = [each for each in items if find in name(each)] if find else items

    if begin >= len(found):
        # Behind the end, as where the list became shorter: its last part.
        begin = max(len(found) - 1, 0) // SHOWN_MAX * SHOWN_MAX

    def query(place: int) -> str:
        return urlencode({**({"find": find} if find else {}), "from": place})

    before = query(max(begin - SHOWN_MAX, 0)) if begin else ""
    behind = query(begin + SHOWN_MAX) if begin + SHOWN_MAX < len(found) else ""
    return Part(found[begin : begin + SHOWN_MAX], begin, len(found), find, before, behind)
