"""Test the compiled kernel on this machine: on a tree of one page, and on two bodies.

All compiled functions are called here: so none is compiled later.
"""

from __future__ import annotations

from struct import pack, pack_into
from typing import Final

import numpy as np

from cortado.store.clock.timestamp import Timestamp
from cortado.store.engine.interface import Tree
from cortado.store.engine.page_nodes import HEADER_BYTES, PageKind
from cortado.store.keys.types import LogicalKey
from cortado.store.mvcc.kernel.machine import REGISTER, crc
from cortado.store.mvcc.kernel.scanning import RowKernel
from cortado.store.mvcc.kernel.walking import CompiledColumns
from cortado.store.mvcc.row_maker import KeyColumn, RowMaker
from cortado.store.mvcc.slices import Slice
from cortado.store.mvcc.versions import Item, content_of, encode_version, suffix_of
from cortado.store.mvcc.walks import NUMBER, TEXT, Program, Slot, Walked

_CHECKED: Final = b"123456789"
_CRC_OF_IT: Final = 0xE3069283
_PAGE_BYTES: Final = 4_096
_NUMBER: Final = 2
_IN_ORDER: Final = ((1, (1, 3)), (0, (0, 1)), (2, (3, 4)))
"""Rows in the order of their keys, and the places of their bodies."""
_START, _END = LogicalKey(b"a"), LogicalKey(b"z")


def check_kernel(kernel: RowKernel) -> None:
    """Raise ValueError if the kernel does not work here."""
    checked = np.frombuffer(_CHECKED, np.uint8)
    if int(crc(REGISTER, checked.ctypes.data, len(checked))) ^ 0xFFFFFFFF != _CRC_OF_IT:
        raise ValueError("its checksums are wrong")
    early, late = Timestamp(0, 1, 0), Timestamp(0, 2, 0)
    items = [
        encode_version(LogicalKey(b"key 1"), b"new", late),
        encode_version(LogicalKey(b"key 1"), b"old", early),
        encode_version(LogicalKey(b"key 2"), None, late),
        encode_version(LogicalKey(b"key 2"), b"was", early),
        encode_version(LogicalKey(b"key 3"), b"is", early),
    ]
    held = np.frombuffer(_page(items), np.uint8).copy()
    tree = held.ctypes.data - _NUMBER * _PAGE_BYTES, _PAGE_BYTES, _NUMBER, _NUMBER, 1
    expected = {early: [b"old", b"was", b"is"], late: [b"new", b"is"]}
    for ts, rows in expected.items():
        if _rows(kernel, tree, ts, reverse=False) != rows or _rows(kernel, tree, ts, reverse=True) != rows[::-1]:
            raise ValueError("it reads other rows than were written")
    held[-30] ^= 1
    if _rows(kernel, tree, early, reverse=False) is not None or _columns(b"\x07abc\x00", [5]) is not None:
        raise ValueError("it does not notice damage")
    if _texts(b"k,a\0\xffb\0\1k,123456789\0\1", [8, 21]) != (b"a\0b123456789", [3, 9]) or _texts(b"k,a\0\2", [5]):
        raise ValueError("it cuts other texts out of keys")
    repeated = np.array([7, 5, 7], np.int64)
    grouped = CompiledColumns().group([Walked(repeated, None, None)], 3)
    if grouped is None or [each.tolist() for each in grouped] != [[0, 1, 0], [0, 1]]:
        raise ValueError("it groups other rows")
    if _columns(b"\x06abc\x00\x02d\x02\x09", [5, 9]) != [b"abcd", [0, 3, 4], [0, -5], [False, True]]:
        raise ValueError("it makes other columns than were written")
    _check_new_rows(kernel.row_maker)


def _check_new_rows(maker: RowMaker) -> None:
    values, texts = np.array([[1], [1], [0]], np.uint8), np.frombuffer(b"b\0a", np.uint8)
    parts = [KeyColumn(7, values, is_descending=True), KeyColumn(9, texts, np.array([0, 2, 3, 3]))]
    keys = maker.lay_keys(b"k", parts, 3)
    expected = [b"k\xf8\xfe\x09b\0\xff\0\1", b"k\xf8\xfe\x09a\0\1", b"k\xf8\xff\x09\0\1"]
    if keys is None or keys.joined != b"".join(expected) or keys.places.tolist() != [1, 0, 2]:
        raise ValueError("it lays other keys, or in another order")
    ends, ts = np.array([1, 3, 4], np.int64), Timestamp(0, 1, 2)
    items = [encode_version(LogicalKey(expected[row]), b"head" + b"abbc"[slice(*at)], ts) for row, at in _IN_ORDER]
    made = maker.encode_puts(keys, suffix_of(ts), content_of(b"head"), b"abbc", ends)
    if list(map(bytes, made)) != [b"".join([item[side] for item in items]) for side in (0, 1)]:
        raise ValueError("it makes other versions of new rows")
    is_repeated = maker.lay_keys(b"k", [KeyColumn(7, values)], 3) is None
    if not is_repeated or maker.gather(b"abbc", ends, keys.places) != b"bbac":
        raise ValueError("it puts rows into another order")


def _texts(keys: bytes, ends: list[int]) -> tuple[bytes, list[int]] | None:
    found = CompiledColumns().texts(keys, np.array(ends, np.int64), 2)
    return None if found is None else (found[0], found[1].tolist())


def _columns(bodies: bytes, ends: list[int]) -> list[object] | None:
    """Return the columns of a string, and of a number that may be null."""
    operations = np.array([TEXT, -1, 0, 0, 0, 0, NUMBER, 1, 1, -9, 9, 0], np.int64)
    program = Program(operations, (Slot(None, is_nullable=False), Slot(np.dtype(np.int64), is_nullable=True)))
    found = CompiledColumns().walk(program, bodies, np.array(ends, np.int64))
    if found is None:
        return None
    texts, numbers = found
    assert texts.offsets is not None and numbers.validity is not None
    return [texts.values.tobytes(), texts.offsets.tolist(), numbers.values.tolist(), numbers.validity.tolist()]


def _rows(kernel: RowKernel, tree: Tree, ts: Timestamp, *, reverse: bool) -> list[bytes] | None:
    suffix = suffix_of(ts)
    chunk = kernel.read_tree(tree, Slice(_START, _END, suffix, suffix, reverse, 10, 1_000))
    return None if chunk is None else list(chunk.payloads)


def _page(items: list[Item]) -> bytes:
    """Return a leaf page as LMDB would write it: nodes from its end downwards."""
    page = bytearray(_PAGE_BYTES)
    upper = _PAGE_BYTES
    for place, (key, value) in enumerate(items):
        node = pack("<IHH", len(value), 0, len(key)) + key + value
        upper -= len(node) + len(node) % 2
        page[upper : upper + len(node)] = node
        pack_into("<H", page, HEADER_BYTES + 2 * place, upper)
    pack_into("<QHHHH", page, 0, _NUMBER, 0, PageKind.LEAF, HEADER_BYTES + 2 * len(items), upper)
    return bytes(page)
