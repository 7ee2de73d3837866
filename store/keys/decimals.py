"""A decimal of any scale as bytes whose order is the order of the numbers.

A number is written as ``± 0.DIGITS * 10^exponent`` with the first and the last digit not zero, so that ``1``, ``1.0``
and ``1.00`` are one value with one encoding::

    zero       02
    positive   03  exponent + 0x8000 (2 bytes, big-endian)  pairs of digits, each as its value + 1 (01 to 64)  00
    negative   01  the same, every byte inverted, the 00 included

A larger exponent is a larger number; with equal exponents the digits compare as text does, and the closing 00 is
below every pair, so that the shorter of two numbers that begin alike is the smaller.

Bounds: DIGITS_MAX significant digits, and an exponent between -EXPONENT_MAX and EXPONENT_MAX (0, or a magnitude of
1E-1001 and more, below 1E+1000). Both are far beyond what Avro writers use, and keep a hostile ``1E+999999999`` from
becoming a gigabyte of digits further up.
"""

from __future__ import annotations

import struct
from decimal import Decimal
from typing import Final

from cortado.errors import DataLoss, InvalidArgument

DIGITS_MAX: Final = 256
EXPONENT_MAX: Final = 1_000

NEGATIVE: Final = 0x01
ZERO: Final = 0x02
POSITIVE: Final = 0x03
END: Final = 0x00

_EXPONENT_BIAS: Final = 0x8000
_EXPONENT = struct.Struct(">H")
_HEAD_BYTES: Final = 1 + _EXPONENT.size
_INVERTED: Final = bytes(range(255, -1, -1))


def encode_decimal(value: Decimal, path: str) -> bytes:
    """Return the payload of a decimal part. Raises InvalidArgument for NaN, an infinity, and numbers beyond the
    bounds."""
    negative, digit_values, scale = value.as_tuple()
    if not isinstance(scale, int):
        raise InvalidArgument(path, "must be a finite decimal", str(value))
    digits = bytes(digit_values)
    # Not Decimal.normalize(): that rounds to the context's 28 digits.
    significant = digits.rstrip(b"\0")
    if not significant:
        return bytes((ZERO,))
    exponent = scale + len(digits)
    if len(significant) > DIGITS_MAX:
        raise InvalidArgument(
            path, f"must have at most {DIGITS_MAX} significant digits in a key", f"{len(significant)} digits"
        )
    if not -EXPONENT_MAX <= exponent <= EXPONENT_MAX:
        problem = f"must be 0, or at least 1E-{EXPONENT_MAX + 1} and below 1E+{EXPONENT_MAX} in magnitude"
        raise InvalidArgument(path, problem, f"{value:.3E}")
    if len(significant) % 2:
        significant += b"\0"
    pairs = bytes(10 * tens + ones + 1 for tens, ones in zip(significant[::2], significant[1::2], strict=True))
    magnitude = _EXPONENT.pack(exponent + _EXPONENT_BIAS) + pairs + bytes((END,))
    if negative:
        return bytes((NEGATIVE,)) + magnitude.translate(_INVERTED)
    return bytes((POSITIVE,)) + magnitude


def decode_decimal(payload: bytes) -> Decimal:
    """Return the value; whole numbers have no exponent. Raises DataLoss unless ``payload`` is an encoding to the
    letter."""
    if payload == bytes((ZERO,)):
        return Decimal(0)
    negative = payload[:1] == bytes((NEGATIVE,))
    magnitude = payload[1:].translate(_INVERTED) if negative else payload[1:]
    pairs = magnitude[_EXPONENT.size : -1]
    if not (negative or payload[:1] == bytes((POSITIVE,))) or not pairs or magnitude[-1] != END or min(pairs) == END:
        raise _damaged(payload)
    exponent = _EXPONENT.unpack_from(magnitude)[0] - _EXPONENT_BIAS
    digits = [digit for pair in pairs for digit in divmod(pair - 1, 10)]
    if digits[-1] == 0:
        digits.pop()
    canonical = digits[0] and digits[-1] and max(pairs) <= 100 and len(digits) <= DIGITS_MAX
    if not canonical or not -EXPONENT_MAX <= exponent <= EXPONENT_MAX:
        raise _damaged(payload)
    digits += [0] * (exponent - len(digits))
    return Decimal((int(negative), tuple(digits), exponent - len(digits)))


def end_of_decimal(encoded: bytes, start: int, *, inverted: bool) -> int:
    """Return the end of the payload that begins at ``start``; -1 if it has none. ``inverted`` in a descending part."""
    if start >= len(encoded):
        return -1
    marker = encoded[start] ^ 0xFF if inverted else encoded[start]
    if marker == ZERO:
        return start + 1
    end = END ^ 0xFF if inverted != (marker == NEGATIVE) else END
    found = encoded.find(bytes((end,)), start + _HEAD_BYTES)
    return found + 1 if found >= 0 else -1


def _damaged(payload: bytes) -> DataLoss:
    return DataLoss("key", f"not a decimal: {payload.hex()}")
