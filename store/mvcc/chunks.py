"""From a page of engine items to the rows that a reader sees: the vectorised heart of a scan.

A page holds every version of its keys, newest first, visible or not. Of each key, the first version that is not above
the read timestamp counts, and is a row unless it is a delete. In most pages every version is one, which a few passes in
C can tell, and then there is nothing to select. A timestamp is compared as it is stored: inverted, so *visible* means
that the suffix is not below the reader's.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import compress, islice
from operator import and_, eq, itemgetter, ne
from typing import Final

import numpy as np
from numpy.typing import NDArray

from cortado.store.clock.timestamp import TIMESTAMP_BYTES
from cortado.store.keys.types import LogicalKey
from cortado.store.mvcc.reader import ScanChunk, logical_of, suffix_from
from cortado.store.mvcc.versions import PUT_KIND

payload_of: Final[Callable[[bytes], bytes]] = itemgetter(slice(1, -4))
kind_of: Final[Callable[[bytes], int]] = itemgetter(0)

_WORD_BYTES: Final = 8


def select_rows(
    engine_keys: list[bytes],
    engine_values: list[bytes],
    read_suffix: bytes,
    *,
    reverse: bool,
    resume: LogicalKey | None,
) -> ScanChunk:
    """Rows of a page given in ascending order of its engine keys; handed out descending if ``reverse``."""
    payloads = list(map(payload_of, engine_values))
    # A delete has no payload, and few puts have none.
    if not (all(payloads) and _all_count(engine_keys, read_suffix)):
        live = _live(engine_keys, engine_values, read_suffix)
        engine_keys = list(compress(engine_keys, live))
        payloads = list(compress(payloads, live))
    if reverse:
        engine_keys.reverse()
        payloads.reverse()
    return ScanChunk.of_stored(engine_keys, payloads, resume)


def _all_count(engine_keys: list[bytes], read_suffix: bytes) -> bool:
    """Whether every item is visible, and each of another key."""
    if not engine_keys:
        return True
    joined = b"".join(engine_keys)
    length = len(engine_keys[0])
    if len(joined) == length * len(engine_keys) and max(map(len, engine_keys)) == length:
        return _all_count_of_one_length(np.frombuffer(joined, np.uint8).reshape(-1, length), read_suffix)
    keys = list(map(logical_of, engine_keys))
    return min(map(suffix_from, engine_keys)) >= read_suffix and True not in map(eq, keys, islice(keys, 1, None))


def _all_count_of_one_length(keys: NDArray[np.uint8], read_suffix: bytes) -> bool:
    """:func:`_all_count`, a row of bytes for each key: compared eight bytes at a time."""
    logical_end = keys.shape[1] - TIMESTAMP_BYTES
    read_high = int.from_bytes(read_suffix[:_WORD_BYTES])
    high = _words(keys, logical_end)
    lowest = int(high.min())
    if lowest < read_high:
        return False
    if lowest == read_high:
        # The same epoch and millisecond: the logical part decides.
        low = np.ascontiguousarray(keys[high == read_high, logical_end + _WORD_BYTES :]).view(">u4")
        if int(low.min()) < int.from_bytes(read_suffix[_WORD_BYTES:]):
            return False
    if logical_end < _WORD_BYTES:
        return not (keys[1:, :logical_end] == keys[:-1, :logical_end]).all(axis=1).any()
    last_words = _words(keys, logical_end - _WORD_BYTES)
    alike = np.flatnonzero(last_words[1:] == last_words[:-1])
    return not (alike.size and (keys[alike, :logical_end] == keys[alike + 1, :logical_end]).all(axis=1).any())


def _words(keys: NDArray[np.uint8], start: int) -> NDArray[np.uint64]:
    """Eight bytes of each key from ``start``, as numbers in the order of the bytes."""
    words: NDArray[np.uint64] = np.ascontiguousarray(keys[:, start : start + _WORD_BYTES]).view(">u8")[:, 0]
    return words


def _live(engine_keys: list[bytes], engine_values: list[bytes], read_suffix: bytes) -> list[bool]:
    """Whether each item is its key's newest visible version, and a put."""
    visible = list(map(read_suffix.__le__, map(suffix_from, engine_keys)))
    keys = list(map(logical_of, compress(engine_keys, visible)))
    newest = [True, *map(ne, islice(keys, 1, None), keys)]
    puts = map(PUT_KIND.__eq__, map(kind_of, compress(engine_values, visible)))
    live_of_visible = map(and_, newest, puts)
    return [is_visible and next(live_of_visible) for is_visible in visible]
