"""Flip single bits of data that LMDB has stored, while it is open or when it is stopped: one page cache serves both."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def places_of(data_file: Path, found: bytes) -> list[int]:
    """Return the places of ``found`` in the file, in free pages, too."""
    return _places_in(data_file.read_bytes(), found)


def _places_in(content: bytes, found: bytes) -> list[int]:
    places, place = [], -1
    while (place := content.find(found, place + 1)) >= 0:
        places.append(place)
    return places


def flip_bit(data_file: Path, places: list[int], bit: int) -> None:
    """Flip bit ``bit`` of the bytes that begin at each of ``places``."""
    descriptor = os.open(data_file, os.O_RDWR)
    try:
        for place in places:
            at = place + bit // 8
            os.pwrite(descriptor, bytes([os.pread(descriptor, 1, at)[0] ^ 1 << bit % 8]), at)
    finally:
        os.close(descriptor)


PAGE_BYTES = 4_096
_LEAF_FLAG = 0x02


def leaf_places_of(data_file: Path, found: bytes) -> list[int]:
    """Return as :func:`places_of`, without the copies on branch pages: a leaf page says so in its flags."""
    # Read once: a server may be writing.
    content = data_file.read_bytes()
    return [
        place for place in _places_in(content, found) if content[place // PAGE_BYTES * PAGE_BYTES + 10] & _LEAF_FLAG
    ]


@contextmanager
def flipped(data_file: Path, found: bytes, bit: int) -> Iterator[None]:
    """Flip bit ``bit`` of every copy of ``found`` on a leaf page, and turn it back at the end."""
    places = leaf_places_of(data_file, found)
    assert places, found
    flip_bit(data_file, places, bit)
    try:
        yield
    finally:
        flip_bit(data_file, places, bit)
