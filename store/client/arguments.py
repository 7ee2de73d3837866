"""Checks of an application's arguments, before they become a message.

A type checker finds a wrong type earlier. Without one, protobuf would raise its own errors, which name no field of
ours. Text that is no Unicode (half a surrogate pair) would fail only when it is encoded.
"""

from __future__ import annotations

from collections.abc import AsyncIterable, Callable, Iterable, Mapping, Sequence
from typing import Any, Final, TypeVar

from cortado.errors import InvalidArgument

TIMEOUT_S_MAX: Final = 24 * 3600.0

V = TypeVar("V")


def text(value: object, field: str) -> str:
    """Return ``value`` if it is a str that UTF-8 can carry. Raises InvalidArgument naming ``field``."""
    if not isinstance(value, str):
        raise InvalidArgument(field, "must be a str", type(value).__name__)
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise InvalidArgument(field, f"must be valid Unicode: {error.reason}", repr(value[:80])) from None
    return value


def optional_text(value: object, field: str) -> str:
    """Return :func:`text` of the value; empty for None."""
    return "" if value is None else text(value, field)


def texts(values: object, field: str) -> list[str]:
    """Return several texts. Raises InvalidArgument naming ``field``, also for a single text in their place."""
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        raise InvalidArgument(field, "must be a list of texts", type(values).__name__)
    return [text(value, f"{field}[{i}]") for i, value in enumerate(values)]


def hexadecimal(value: object, field: str, size_bytes: int) -> bytes:
    """Return the ``size_bytes`` bytes that ``value`` shows. Raises InvalidArgument naming ``field``."""
    try:
        encoded = bytes.fromhex(text(value, field))
    except ValueError:
        encoded = b""
    if len(encoded) != size_bytes:
        raise InvalidArgument(field, f"must be {2 * size_bytes} hexadecimal digits", shown(value))
    return encoded


def whole(value: object, field: str, low: int, high: int) -> int:
    """Return ``value`` if it is an int (no bool) from ``low`` to ``high``. Raises InvalidArgument naming ``field``."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise InvalidArgument(field, "must be an int", f"{type(value).__name__} {value!r:.80}")
    if not low <= value <= high:
        shown = str(value) if value.bit_length() < 1_000 else f"an integer of {value.bit_length()} bits"
        raise InvalidArgument(field, f"must be between {low} and {high}", shown)
    return value


def flag(value: object, field: str) -> bool:
    """Return ``value`` if it is True or False: a text such as "false" would count as true. Raises InvalidArgument."""
    if not isinstance(value, bool):
        raise InvalidArgument(field, "must be True or False", type(value).__name__)
    return value


def callback(value: Callable[..., None] | None, field: str) -> Callable[..., None] | None:
    """Return ``value`` if it can be called or is None. Raises InvalidArgument naming ``field``."""
    if value is not None and not callable(value):
        raise InvalidArgument(field, "must be a function, or None", type(value).__name__)
    return value


def shown(value: object) -> str:
    """Return ``value`` as an error shows it, cut if it is long."""
    try:
        text = repr(value)
    except ValueError:  # Python does not write out integers of more than some thousand digits.
        return "an integer of thousands of digits"
    return text if len(text) <= 80 else f"{text[:77]}..."


def typed(value: object) -> str:
    """Return the value as :func:`shown`, with its type unless the text begins with it: Decimal('1.5')."""
    name, found = type(value).__name__, shown(value)
    return found if found.startswith(f"{name}(") else f"{name} {found}"


def iterable(values: V, field: str) -> V:
    """Return ``values`` if they can be iterated and are no text. Raises InvalidArgument naming ``field``."""
    if isinstance(values, str | bytes | bytearray | Mapping) or not isinstance(values, Iterable | AsyncIterable):
        raise InvalidArgument(field, "must be several, such as a list", type(values).__name__)
    return values


def sequence(values: Iterable[Any], field: str) -> Sequence[Any]:
    """Return ``values`` as a list if they can be iterated and are no text. Raises InvalidArgument naming ``field``."""
    return list(iterable(values, field))


def check_timeout(timeout_s: float) -> float:
    """Return ``timeout_s`` if it is above 0 and at most a day. Raises InvalidArgument."""
    is_number = isinstance(timeout_s, int | float) and not isinstance(timeout_s, bool)
    if not is_number or not 0 < timeout_s <= TIMEOUT_S_MAX:
        raise InvalidArgument("timeout_s", f"must be above 0 and at most {TIMEOUT_S_MAX:.0f} seconds", shown(timeout_s))
    return float(timeout_s)
