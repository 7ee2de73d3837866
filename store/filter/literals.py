"""Literals of a filter: from their spelling to exact values.

===================================  =================================================================
``12``, ``-1.5``, ``6.02e23``        a number, exact; at most 100 characters, exponent within ±400
``double 'NaN'``                     a double that a number cannot spell: NaN, Infinity, -Infinity
``'it''s'``                          a string; ``''`` is one quote
``x'00ff'``                          bytes
``date '2013-01-01'``                a date
``time '05:00:00'``                  a time of day, with up to nine digits of a second's fraction
``timestamp '2013-01-01T05:00:00Z'`` an instant: RFC 3339 with ``Z`` or an offset; without one, local
``decimal '1.50'``                   the same as the number
``uuid '...'``                       a UUID
===================================  =================================================================

Times are held in nanoseconds, so that each field can compare in its own unit without loss.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date
from decimal import Decimal
from typing import Final
from uuid import UUID

from cortado.rfc3339 import Impossible, WrongForm, parse_date, parse_moment, parse_time_of_day
from cortado.store.filter.expression import Literal, LiteralKind
from cortado.store.filter.tokens import fail

NUMBER_LENGTH_MAX: Final = 100
EXPONENT_MAX: Final = 400

_NUMBER = re.compile(r"[+-]?[0-9]+(?:\.[0-9]+)?(?:[eE]([+-]?[0-9]+))?")
_EPOCH_ORDINAL: Final = date(1970, 1, 1).toordinal()


class Malformed(ValueError):
    """The problem of a literal's text. Never leaves this package."""


def number(text: str) -> Decimal:
    """Return an exact number. Raises Malformed."""
    match = _NUMBER.fullmatch(text)
    if match is None:
        raise Malformed("must look like 12, -1.5 or 6.02e23")
    if len(text) > NUMBER_LENGTH_MAX:
        raise Malformed(f"must have at most {NUMBER_LENGTH_MAX} characters")
    # An exponent of a billion is nine characters here and a gigabyte as an integer.
    if match[1] is not None and abs(int(match[1])) > EXPONENT_MAX:
        raise Malformed(f"must have an exponent between -{EXPONENT_MAX} and {EXPONENT_MAX}")
    return Decimal(text)


def double(text: str) -> float:
    """Return a double by name or number. Raises Malformed."""
    if text.lower() in ("nan", "infinity", "+infinity", "-infinity"):
        return float(text)
    value = float(number(text))
    if value in (float("inf"), float("-inf")):
        raise Malformed("is beyond the range of a double")
    return value


def days(text: str) -> int:
    """Days since 1970 of ``YYYY-MM-DD``. Raises Malformed."""
    try:
        return parse_date(text).toordinal() - _EPOCH_ORDINAL
    except WrongForm:
        raise Malformed("must look like 2013-01-01") from None
    except Impossible as impossible:
        raise Malformed(f"is no date: {impossible}") from None


def time_of_day_ns(text: str) -> int:
    """Nanoseconds since midnight of ``HH:MM[:SS[.fraction]]``. Raises Malformed."""
    try:
        return parse_time_of_day(text).ns
    except WrongForm:
        raise Malformed("must look like 05:00:00 or 05:00:00.25") from None
    except Impossible as impossible:
        raise Malformed(f"is no time of day: {impossible}") from None


def timestamp_ns(text: str) -> tuple[int, bool]:
    """Nanoseconds since 1970, and whether a zone was given. Raises Malformed."""
    try:
        parsed = parse_moment(text)
    except WrongForm:
        problem = "must look like 2013-01-01T05:00:00Z, or without the Z if the field is local"
        raise Malformed(problem) from None
    except Impossible as impossible:
        raise Malformed(f"is no moment: {impossible}") from None
    return parsed.ns, parsed.moment.tzinfo is not None


def hexadecimal(text: str) -> bytes:
    """Bytes from pairs of hexadecimal digits. Raises Malformed."""
    try:
        # fromhex forgives spaces; a key's bytes should be read one way only.
        if " " in text or not text.isascii():
            raise ValueError
        return bytes.fromhex(text)
    except ValueError as malformed:
        raise Malformed("must be pairs of hexadecimal digits, such as x'00ff'") from malformed


def uuid(text: str) -> UUID:
    """Return a UUID of 32 digits in groups of 8-4-4-4-12. Raises Malformed."""
    if re.fullmatch(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}", text) is None:
        raise Malformed("must look like 123e4567-e89b-12d3-a456-426614174000")
    return UUID(text)


def _timestamp_literal(text: str, position: int) -> Literal:
    value, zoned = timestamp_ns(text)
    return Literal(LiteralKind.TIMESTAMP if zoned else LiteralKind.LOCAL_TIMESTAMP, value, position)


TYPED: Final[dict[str, Callable[[str, int], Literal]]] = {
    "date": lambda text, position: Literal(LiteralKind.DATE, days(text), position),
    "time": lambda text, position: Literal(LiteralKind.TIME, time_of_day_ns(text), position),
    "timestamp": _timestamp_literal,
    "decimal": lambda text, position: Literal(LiteralKind.NUMBER, number(text), position),
    "double": lambda text, position: Literal(LiteralKind.DOUBLE, double(text), position),
    "uuid": lambda text, position: Literal(LiteralKind.UUID, uuid(text), position),
}
"""The literal that a word before a string makes of it: ``date '2013-01-01'``."""


def typed_literal(word: str, text: str, position: int) -> Literal:
    """Return the literal of ``word 'text'``. Raises InvalidFilter at ``position``."""
    try:
        return TYPED[word](text, position)
    except Malformed as malformed:
        fail(position, f"{word} {text[:60]!r} {malformed}")


def number_literal(text: str, position: int) -> Literal:
    """Raises InvalidFilter at ``position``."""
    try:
        return Literal(LiteralKind.NUMBER, number(text), position)
    except Malformed as malformed:
        fail(position, f"the number {text[:60]} {malformed}")


def bytes_literal(text: str, position: int) -> Literal:
    """Raises InvalidFilter at ``position``."""
    try:
        return Literal(LiteralKind.BYTES, hexadecimal(text), position)
    except Malformed as malformed:
        fail(position, f"the bytes x'{text[:60]}' {malformed}")
