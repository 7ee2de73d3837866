"""A look at LMDB's data file before LMDB maps it.

LMDB trusts its file: a page that the newest meta page counts and the file does not have is a SIGBUS at its first touch,
and the process is gone without a word. So the two meta pages are read here by ordinary reads, and the file's length is
held against the last page that they speak of. Damage *inside* the file is found by the checksums of what is stored.

Layout of a meta page (LMDB 0.9, data version 1, 64 bit; integers in the machine's order)::

    page header 16 | magic 4 | version 4 | address 8 | map size 8 | free db 48 | main db 48 | last page 8 | txn id 8

and of a db record, whose page counts are numbers of branch, leaf and overflow pages::

    page size (the free db's only) 4 | flags 2 | depth 2 | branch 8 | leaf 8 | overflow 8 | entries 8 | root 8
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

MAGIC: Final = 0xBEEFC0DE
DATA_VERSION: Final = 1
META_FLAG: Final = 0x08

_HEADER: Final = struct.Struct("=QHHHH")  # page number, padding, flags, lower, upper
_DB: Final = struct.Struct("=IHHQQQQQ")
_META: Final = struct.Struct("=IIQQ48s48sQQ")


class DamagedDataFile(Exception):
    """Says what is wrong with the file, for a person."""


@dataclass(frozen=True, slots=True)
class Meta:
    """What one meta page says: sizes in bytes, pages by number. ``free_list_pages`` hold the list of free pages."""

    page_size: int
    last_page: int
    transaction_id: int
    free_list_pages: int

    @property
    def file_bytes_min(self) -> int:
        """A file that is shorter lacks pages."""
        return (self.last_page + 1) * self.page_size


def newest_meta(path: Path) -> Meta:
    """The meta page that LMDB will use. Raises DamagedDataFile; OSError where the file can't be read."""
    with path.open("rb") as file:
        first = _read_meta(file, 0)
        second = _read_meta(file, first.page_size)
    if second.page_size != first.page_size:
        raise DamagedDataFile(
            f"its two meta pages disagree on the page size ({first.page_size} and {second.page_size} bytes)"
        )
    return second if second.transaction_id > first.transaction_id else first


def check_data_file(path: Path) -> Meta:
    """Raise DamagedDataFile unless LMDB may map the file. The meta page that counts, otherwise."""
    meta = newest_meta(path)
    length = path.stat().st_size
    if length < meta.file_bytes_min:
        raise DamagedDataFile(f"it is truncated: {length} bytes, but its last page ends at byte {meta.file_bytes_min}")
    return meta


def _read_meta(file: BinaryIO, offset: int) -> Meta:
    file.seek(offset)
    page = file.read(_HEADER.size + _META.size)
    if len(page) < _HEADER.size + _META.size:
        raise DamagedDataFile(f"it is truncated: the meta page at byte {offset} is cut off")
    _, _, flags, _, _ = _HEADER.unpack_from(page)
    magic, version, _, _, free, _, last_page, transaction_id = _META.unpack_from(page, _HEADER.size)
    if magic != MAGIC or not flags & META_FLAG:
        raise DamagedDataFile(f"no LMDB meta page at byte {offset}: overwritten, or of another kind of machine")
    if version != DATA_VERSION:
        raise DamagedDataFile(f"LMDB data version {version}; this build reads {DATA_VERSION}")
    page_size, _, _, branch, leaf, overflow, _, _ = _DB.unpack(free)
    if not 512 <= page_size <= 0x10000 or page_size & (page_size - 1):
        raise DamagedDataFile(f"the meta page at byte {offset} has the impossible page size {page_size}")
    return Meta(page_size, last_page, transaction_id, branch + leaf + overflow)
