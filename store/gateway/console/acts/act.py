"""An act: one row of :data:`cortado.store.gateway.console.acts.table.ACTS`, the source of its page and its form. Each
is one call of the public API, with its visitor's own rights."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypeAlias, TypeVar
from urllib.parse import quote

from cortado.errors import DeadlineExceeded, InvalidArgument
from cortado.store.clock.retentions import FORM, parse_retention
from cortado.store.keys.names import shown

if TYPE_CHECKING:
    from cortado.store.client import AsyncClient

T = TypeVar("T")
Texts: TypeAlias = Mapping[str, str]

WAITS_S: Final = 20.0
"""How long a page waits for work that grows with the data."""
_REMOVES: Final = ("cancel", "delete", "drop", "end", "remove", "revoke", "truncate")
_COUNT: Final = re.compile(r"[0-9]{1,18}")


@dataclass(frozen=True, slots=True)
class Input:
    """A field of an act's form. ``value`` is its first value, and ``choices`` all values that it may have."""

    name: str
    label: str
    kind: Literal["line", "lines", "choice", "flag"] = "line"
    hint: str = ""
    value: str = ""
    choices: tuple[str, ...] = ()
    required: bool = False


@dataclass(frozen=True, slots=True)
class Sight:
    """The target as an act's page shows it: ``facts`` by their names, and ``same``, which changes if the target
    becomes another one, so that a form says which one was seen. ``value`` goes into the inputs of these names."""

    facts: tuple[tuple[str, str], ...] = ()
    same: str = ""
    value: Texts | None = None


@dataclass(frozen=True, slots=True)
class Done:
    """The effect of an act, and the page that shows it. ``secret`` is shown this once. ``is_again``: its form was
    sent before, and had its effect then; ``had_secret``: the first answer showed it."""

    text: str
    where: str
    secret: str = ""
    is_again: bool = False
    had_secret: bool = False


@dataclass(frozen=True, slots=True)
class Act:
    """- ``target``: the parameters of the page that name the act's target;
    - ``says``: the effect, and which part of it cannot be taken back;
    - ``look``: reads the target as it is now; raises NotFound without a target to act on;
    - ``typed``: the part of ``target`` that must be typed, if the act is dangerous;
    - ``back``: the page that it belongs to.
    """

    name: str
    title: str
    verb: str
    says: str
    look: Callable[[AsyncClient, Texts], Awaitable[Sight]]
    do: Callable[[AsyncClient, Texts, Texts], Awaitable[Done]]
    back: Callable[[Texts], str]
    target: tuple[str, ...] = ()
    inputs: tuple[Input, ...] = ()
    typed: str = ""

    @property
    def removes(self) -> bool:
        """Whether it takes something away: it looks so wherever it stands."""
        return removes(self.name)


def removes(name: str) -> bool:
    """Return whether the act of this name takes something away, as its first word says."""
    return name.partition("-")[0] in _REMOVES


async def in_time(work: Awaitable[T], problem: str) -> T:
    """Return the result, if it comes while a page waits for it. Raises DeadlineExceeded with the ``problem``."""
    try:
        async with asyncio.timeout(WAITS_S):
            return await work
    except TimeoutError:
        raise DeadlineExceeded(problem, round(WAITS_S * 1000)) from None


async def nothing(_client: AsyncClient, _target: Texts) -> Sight:
    """Return the sight of an act that makes a new thing."""
    return Sight()


def optional(given: str) -> str | None:
    """Return the field's text; None if it was left empty."""
    return given.strip() or None


def listed(given: str) -> list[str]:
    """Return the parts between commas."""
    return [each.strip() for each in given.split(",") if each.strip()]


def span_ms(given: str, field: str, *, empty: int = 0) -> int:
    """Return a time such as 12h; ``empty`` for none. Raises InvalidArgument."""
    text = given.strip()
    found = empty if not text else parse_retention(text)
    if found is None or (found < 0 and text):
        raise InvalidArgument(field, "must be a time such as 90s, 30m, 12h or 7d, or empty", shown(given))
    return found


def retention_ms(given: str, field: str) -> int:
    """Return a retention such as 12h or ``all``; 0 for an empty one. Raises InvalidArgument."""
    text = given.strip()
    found = parse_retention(text) if text else 0
    if found is None:
        raise InvalidArgument(field, f"{FORM}, or empty", shown(given))
    return found


def number(given: str, field: str) -> int:
    """Return a whole number. Raises InvalidArgument."""
    if _COUNT.fullmatch(given) is None:
        raise InvalidArgument(field, "must be a whole number", shown(given))
    return int(given)


def table_path(full_name: str) -> str:
    """Return the path of a table's page."""
    return "/ui/data/" + "/".join(quote(each, safe="") for each in full_name.split(".", 1))
