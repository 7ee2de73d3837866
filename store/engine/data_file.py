"""Reads LMDB's data file before LMDB maps it.

LMDB trusts its file: a page that a tree speaks of and the file does not have is a SIGBUS at its first touch, and the
process is gone without a word. So the two meta pages are read here by ordinary reads.
:mod:`~cortado.store.engine.page_check` walks the trees below them, and stored values have checksums.

Layout of a meta page (LMDB 0.9, data version 1, 64 bit; integers in the machine's order)::

    page header 16 | magic 4 | version 4 | address 8 | map size 8 | free db 48 | main db 48 | last page 8 | txn id 8

and of a db record, whose page counts are numbers of branch, leaf and overflow pages::

    page size (the free db's only) 4 | flags 2 | depth 2 | branch 8 | leaf 8 | overflow 8 | entries 8 | root 8
"""

from __future__ import annotations

import os
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

from cortado.store.files.regular_files import open_regular

MAGIC: Final = 0xBEEFC0DE
DATA_VERSION: Final = 1
META_FLAG: Final = 0x08

_HEADER: Final = struct.Struct("=QHHHH")  # page number, padding, flags, lower, upper
_DB: Final = struct.Struct("=IHHQQQQQ")
_META: Final = struct.Struct("=IIQQ48s48sQQ")
DB_RECORD_BYTES: Final = _DB.size


class DamagedDataFile(Exception):
    """The file is damaged; the text describes the damage for operators."""


@dataclass(frozen=True, slots=True)
class DbRecord:
    """The record of one tree: its flags, depth in pages, numbers of pages of each kind and of entries, and root."""

    page_size: int
    flags: int
    depth: int
    branch_pages: int
    leaf_pages: int
    overflow_pages: int
    entries: int
    root: int

    @classmethod
    def decode(cls, record: bytes) -> DbRecord:
        """Takes ``DB_RECORD_BYTES``."""
        return cls(*_DB.unpack(record))


@dataclass(frozen=True, slots=True)
class Meta:
    """One meta page: sizes in bytes, pages by number; the trees of free pages and of named sub-databases."""

    page_number: int
    last_page: int
    transaction_id: int
    free: DbRecord
    main: DbRecord

    @property
    def page_size(self) -> int:
        return self.free.page_size

    @property
    def free_list_pages(self) -> int:
        """Return how many pages hold the list of free pages."""
        return self.free.branch_pages + self.free.leaf_pages + self.free.overflow_pages


def newest_meta(path: Path) -> Meta:
    """Return the meta page that LMDB will use. Raises DamagedDataFile; OSError if the file can't be read."""
    first, second = _read_metas(path)
    return second if second.transaction_id > first.transaction_id else first


def check_metas(path: Path) -> Meta:
    """Return the meta page that LMDB will use, in a file at rest. Raises DamagedDataFile if the two do not fit
    together."""
    metas = _read_metas(path)
    for place, each in enumerate(metas):
        if each.page_number != place:
            raise DamagedDataFile(f"its meta page {place} says that it is page {each.page_number}")
    ids = [each.transaction_id for each in metas]
    newest = ids.index(max(ids))
    # Commits write the two in turn, even ones the first. A false number could bring an older state back.
    if max(ids) and (max(ids) - min(ids) != 1 or max(ids) % 2 != newest):
        raise DamagedDataFile(f"its two meta pages cannot be of transactions {ids[0]} and {ids[1]}")
    return metas[newest]


def _read_metas(path: Path) -> tuple[Meta, Meta]:
    with os.fdopen(open_regular(path), "rb") as file:
        first = _read_meta(file, 0)
        second = _read_meta(file, first.page_size)
    if second.page_size != first.page_size:
        raise DamagedDataFile(
            f"its two meta pages disagree on the page size ({first.page_size} and {second.page_size} bytes)"
        )
    return first, second


def _read_meta(file: BinaryIO, offset: int) -> Meta:
    file.seek(offset)
    page = file.read(_HEADER.size + _META.size)
    if len(page) < _HEADER.size + _META.size:
        raise DamagedDataFile(f"it is truncated: the meta page at byte {offset} is cut off")
    page_number, _, flags, _, _ = _HEADER.unpack_from(page)
    magic, version, _, _, free, main, last_page, transaction_id = _META.unpack_from(page, _HEADER.size)
    if magic != MAGIC or not flags & META_FLAG:
        raise DamagedDataFile(f"no LMDB meta page at byte {offset}: overwritten, or of another kind of machine")
    if version != DATA_VERSION:
        raise DamagedDataFile(f"LMDB data version {version}; this build reads {DATA_VERSION}")
    meta = Meta(page_number, last_page, transaction_id, DbRecord.decode(free), DbRecord.decode(main))
    page_size = meta.free.page_size
    if not 512 <= page_size <= 0x8000 or page_size & (page_size - 1):
        raise DamagedDataFile(f"the meta page at byte {offset} has the impossible page size {page_size}")
    return meta
