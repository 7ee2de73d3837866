"""Bounds on JSON, counted in its bytes before a parser makes objects.

Three bytes (``{},``) ask for an object: two million of them hold an interpreter for seconds. So the bytes are counted
first, as :mod:`cortado.proto.bounds` counts a message's:

- *items*: commas and opening brackets outside of texts. They are the members of objects, the items of arrays, and the
  objects and arrays themselves;
- *depth*: objects and arrays in one another.

Functions in C count the items. The depth is counted bracket by bracket, at most two for each item that is allowed, and
no further than to the first that is too deep: a method that takes pairs out from within would read the brackets once
for each depth. A closing bracket without an open one ends the count, since the parser stops there.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from cortado.errors import TooLarge

ITEMS_MAX: Final = 500_000
"""Fifty for each of 10,000 operations, the most of a transaction."""
DEPTH_MAX: Final = 256
"""A document has up to 64 containers in one another, and JSON an object more for each union's branch."""

TEXT_DEPTH_MAX: Final = 512
"""The same bound for any text of JSON. A schema of 64 containers in one another has some 260 of JSON's. A parser's own
bound depends on its Python: 3.11 takes nearly a thousand, and 3.13 ten thousand."""

_OPENING: Final = (b"[", b"{")
_COUNTED: Final = (b",", *_OPENING)
_SLICE_BYTES: Final = 256 << 10
"""Counted in one step; between two steps another thread may run."""
_OPENS: Final = frozenset(b"[{")
_NO_BRACKETS: Final = bytes(set(range(256)) - set(b"[]{}"))


def check_json_bounds(text: bytes, what: str) -> None:
    """Raises TooLarge naming ``what``, with the count and the limit."""
    # This count includes texts and is cheap. Only a text that exceeds it is counted exactly.
    may_be_large = sum(map(text.count, _COUNTED)) > ITEMS_MAX
    if not may_be_large and sum(map(text.count, _OPENING)) <= DEPTH_MAX:
        return
    count, brackets = 0, bytearray()
    for bare in _without_texts(text):
        count += sum(map(bare.count, _COUNTED))
        if count > ITEMS_MAX:
            problem = f"must hold at most {ITEMS_MAX} members, items, objects and arrays"
            raise TooLarge(what, problem, f"more than {ITEMS_MAX}", ITEMS_MAX + 1, ITEMS_MAX)
        brackets += bare.translate(None, _NO_BRACKETS)
    if _is_deeper(brackets, DEPTH_MAX):
        problem = f"must hold at most {DEPTH_MAX} objects and arrays in one another"
        raise TooLarge(what, problem, f"more than {DEPTH_MAX}", DEPTH_MAX + 1, DEPTH_MAX)


def is_too_deep(text: bytes) -> bool:
    """Return whether there are more than ``TEXT_DEPTH_MAX`` objects and arrays in one another."""
    if sum(map(text.count, _OPENING)) <= TEXT_DEPTH_MAX:
        return False
    brackets = bytearray().join(bare.translate(None, _NO_BRACKETS) for bare in _without_texts(text))
    return _is_deeper(brackets, TEXT_DEPTH_MAX)


def _without_texts(text: bytes) -> Iterator[bytes]:
    """Yield the bytes outside of texts, in pieces. Escapes are removed first, since an escaped quote ends no text."""
    plain = text.replace(b"\\\\", b"").replace(b'\\"', b"")
    is_within = False
    for begin in range(0, len(plain), _SLICE_BYTES):
        pieces = plain[begin : begin + _SLICE_BYTES].split(b'"')
        yield b"".join(pieces[is_within::2])
        is_within ^= len(pieces) % 2 == 0


def _is_deeper(brackets: bytearray, depth_max: int) -> bool:
    """Return whether the brackets are deeper than that, up to the first closing one without an open one."""
    depth = 0
    for each in brackets:
        depth += 1 if each in _OPENS else -1
        if not 0 <= depth <= depth_max:
            return depth > 0
    return False
