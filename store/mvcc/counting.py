"""Addition within bounds: the result of an add, or its refusal."""

from __future__ import annotations

from typing import Final, NamedTuple

from cortado.errors import InvalidArgument, OutOfBounds

INT64_MIN: Final = -(1 << 63)
INT64_MAX: Final = (1 << 63) - 1


class Bounds(NamedTuple):
    """Both inclusive."""

    least: int
    most: int


INT64: Final = Bounds(INT64_MIN, INT64_MAX)
INT32: Final = Bounds(-(1 << 31), (1 << 31) - 1)


def add_within(
    value: int, delta: int, asked: tuple[int | None, int | None], type_bounds: Bounds, key: str, row: int = 0
) -> int:
    """``value + delta``, within the bounds that were ``asked`` for and those of its type.

    Raises OutOfBounds, which names the ``key``, the bound and the operation's place, ``row``; InvalidArgument for
    bounds that leave nothing.
    """
    least = type_bounds.least if asked[0] is None else max(asked[0], type_bounds.least)
    most = type_bounds.most if asked[1] is None else min(asked[1], type_bounds.most)
    if least > most:
        raise InvalidArgument("min", f"must not be above the max of {most}", str(least))
    total = value + delta
    if not least <= total <= most:
        expected = f"at least {least}" if total < least else f"at most {most}"
        raise OutOfBounds(key=key, expected=expected, actual=str(total), row=row)
    return total
