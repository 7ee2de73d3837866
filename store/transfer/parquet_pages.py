"""How many rows of a Parquet file may be read at once, told from the headers of its pages before one is unpacked.

::

    row group ── column chunk ── [dictionary page] data page data page ...       each: header │ compressed bytes

A file of some kilobytes may hold a text of gigabytes: compressed, or in a dictionary that each row refers to. A page's
header says how large the page becomes, and pyarrow allocates that. So pages are bounded, and batches have as many rows
as fit into :data:`BATCH_BYTES` if each row is the largest of its page.

Headers are structs of Thrift's compact protocol. Source: apache/parquet-format, ``parquet.thrift``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, BinaryIO, Final

from cortado.errors import InvalidArgument
from cortado.store.transfer.formats import pyarrow_for

PAGE_BYTES_MAX: Final = 64 << 20
"""The bound on one page, unpacked. Writers cut pages at a megabyte."""
PAGES_BYTES_MAX: Final = 512 << 20
"""The bound on one page of each column together; they are in memory at a time."""
BATCH_BYTES: Final = 64 << 20
BATCH_ROWS: Final = 10_000

_HEADER_BYTES: Final = 512
_HEADER_BYTES_MAX: Final = 1 << 20
_NESTED_MAX: Final = 8
_DICTIONARY_PAGE: Final = 2
_DELTA_BYTE_ARRAY: Final = 7
_SMALL_BYTES: Final = 4 << 10
_LENGTH_BYTES: Final = 4
_WIDTHS: Final = {"BOOLEAN": 1, "INT32": 4, "INT64": 8, "INT96": 12, "FLOAT": 4, "DOUBLE": 8, "BYTE_ARRAY": 8}
_CODECS: Final = {"SNAPPY": "snappy", "GZIP": "gzip", "BROTLI": "brotli", "ZSTD": "zstd", "LZ4": "lz4_raw"}

# Thrift's types of fields.
_TRUE, _FALSE, _BYTE, _I16, _I32, _I64, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = range(1, 13)


@dataclass(frozen=True, slots=True)
class Page:
    """``bytes`` unpacked, ``packed_bytes`` in the file from ``offset`` on."""

    kind: int
    bytes: int
    packed_bytes: int
    values: int
    encoding: int
    offset: int
    rows: int | None
    """How many rows begin in it, if its header says so."""


def batch_rows(opened: Any, group: int, file: BinaryIO, name: str) -> int:
    """Return how many rows of a row group to read at once. Raises InvalidArgument for pages over the limits, or
    damaged."""
    row_group, file_bytes = opened.metadata.row_group(group), file.seek(0, 2)
    row_bytes = pages_bytes = 0
    for place in range(row_group.num_columns):
        column = _Column(row_group.column(place), opened.schema.column(place), file, file_bytes, name)
        of_row, of_page = column.largest()
        row_bytes, pages_bytes = row_bytes + of_row, pages_bytes + of_page
    if pages_bytes > PAGES_BYTES_MAX:
        problem = f"has a row group whose columns have pages of {pages_bytes} bytes at a time"
        raise InvalidArgument("file", f"{problem}; the limit is {PAGES_BYTES_MAX}: write smaller pages", name)
    return max(1, min(BATCH_ROWS, BATCH_BYTES // max(row_bytes, 1)))


class _Column:
    """A column's pages in one row group."""

    def __init__(self, chunk: Any, schema: Any, file: BinaryIO, file_bytes: int, name: str) -> None:
        self._chunk = chunk
        self._file = file
        self._name = name
        self._path: str = chunk.path_in_schema
        self._level_bits = int(schema.max_repetition_level).bit_length()
        self._width: int = max(_WIDTHS.get(chunk.physical_type, 0), schema.length)
        begin: int = chunk.data_page_offset
        if chunk.has_dictionary_page and 0 < chunk.dictionary_page_offset < begin:
            begin = chunk.dictionary_page_offset
        self._offset, self._end = begin, begin + chunk.total_compressed_size
        if not 0 <= begin <= self._end <= file_bytes:
            raise self._wrong(f"lies at bytes {begin} to {self._end} of {file_bytes}")

    def largest(self) -> tuple[int, int]:
        """Return the bytes of the largest row that its pages allow, and of the largest page."""
        row_bytes = page_bytes = in_dictionary = row_so_far = 0
        while self._offset < self._end:
            page = self._page()
            size = page.bytes + page.values * self._width
            self._check(size, "page")
            page_bytes = max(page_bytes, size)
            if page.kind == _DICTIONARY_PAGE:
                in_dictionary = self._longest(page)
            elif self._level_bits:
                rows, size = self._rows(page), size + page.values * in_dictionary
                # A row may go on over pages in which none begins.
                row_so_far = 0 if rows else row_so_far + size
                self._check(row_so_far, "row")
                row_bytes = max(row_bytes, size // max(rows, 1))
            else:
                # Each value may repeat most of the one before it, or be the longest of the dictionary.
                shared = page.bytes if page.encoding == _DELTA_BYTE_ARRAY else in_dictionary
                row_bytes = max(row_bytes, size // max(page.values, 1) + shared)
        return row_bytes, page_bytes

    def _longest(self, page: Page) -> int:
        """Return the bytes of the longest value in a dictionary, or at least as many."""
        if self._chunk.physical_type != "BYTE_ARRAY":
            return self._width
        most = page.bytes - _LENGTH_BYTES * page.values
        data = None if most <= _SMALL_BYTES else self._unpacked(page)
        if data is None:
            return max(0, most)
        at = longest = 0
        while at < len(data):
            length = int.from_bytes(data[at : at + _LENGTH_BYTES], "little")
            longest = max(longest, length)
            at += _LENGTH_BYTES + length
        return min(longest, most)

    def _rows(self, page: Page) -> int:
        """Return how many rows begin in a page of a repeated column: its first levels say so. 1 if they can't be
        read."""
        if page.rows is not None:
            return page.rows
        data = self._unpacked(page)
        if data is None:
            return 1
        levels_bytes = int.from_bytes(data[:_LENGTH_BYTES], "little")
        try:
            return _zeros(data[_LENGTH_BYTES : _LENGTH_BYTES + levels_bytes], self._level_bits, page.values)
        except (IndexError, ValueError):
            raise self._wrong(f"has no levels at byte {page.offset}") from None

    def _unpacked(self, page: Page) -> bytes | None:
        """None if its codec is not known here, or its bytes are damaged: pyarrow says that when it reads them."""
        self._file.seek(page.offset)
        data, codec = self._file.read(page.packed_bytes), self._chunk.compression
        if codec == "UNCOMPRESSED" or codec not in _CODECS:
            return data if codec == "UNCOMPRESSED" else None
        try:
            found: bytes = pyarrow_for("Parquet").decompress(data, page.bytes, codec=_CODECS[codec], asbytes=True)
        except (OSError, ValueError):
            return None
        return found

    def _check(self, size_bytes: int, what: str) -> None:
        if size_bytes > PAGE_BYTES_MAX:
            problem = f"has a {what} of the column {self._path} that becomes {size_bytes} bytes"
            advice = "no document holds so large a value, or write smaller pages"
            raise InvalidArgument("file", f"{problem}; the limit is {PAGE_BYTES_MAX}: {advice}", self._name)

    def _page(self) -> Page:
        """Return the next page, and pass over its bytes."""
        size_bytes = _HEADER_BYTES
        while True:
            self._file.seek(self._offset)
            data = self._file.read(size_bytes)
            try:
                reader = _Thrift(data)
                fields = reader.struct(_NESTED_MAX)
                break
            except IndexError:
                if len(data) < size_bytes or size_bytes >= _HEADER_BYTES_MAX:
                    raise self._wrong(f"has no page at byte {self._offset}") from None
                size_bytes *= 8
            except ValueError:
                raise self._wrong(f"has no page at byte {self._offset}") from None
        about: dict[int, Any] = next((fields[each] for each in (5, 7, 8) if isinstance(fields.get(each), dict)), {})
        encoding = about.get(4, 0) if 8 in fields else about.get(2, 0)
        numbers = [fields.get(1), fields.get(2), fields.get(3), about.get(1, 0), encoding]
        if not all(isinstance(each, int) and each >= 0 for each in numbers):
            raise self._wrong(f"has no page at byte {self._offset}")
        kind, unpacked, packed, values, encoding = numbers
        rows = about.get(3) if 8 in fields else None
        page = Page(kind, unpacked, packed, values, encoding, self._offset + reader.at, rows)
        self._offset = page.offset + packed
        return page

    def _wrong(self, problem: str) -> InvalidArgument:
        return InvalidArgument("file", f"is damaged: the column {self._path} {problem}", self._name)


def _zeros(data: bytes, bits: int, count: int) -> int:
    """Return how many of ``count`` levels of so many ``bits`` are 0: runs of one level, and packed ones. Raises
    IndexError and ValueError for data that has no levels."""
    import numpy as np

    reader, zeros = _Thrift(data), 0
    while count > 0:
        head = reader.varint()
        if head & 1:
            many, size_bytes = (head >> 1) * 8, (head >> 1) * bits
            packed = np.frombuffer(data[reader.at : reader.at + size_bytes], np.uint8)
            levels = np.unpackbits(packed, bitorder="little").reshape(many, bits)[:count]
            zeros += int(np.count_nonzero(~levels.any(axis=1)))
        else:
            many, size_bytes = head >> 1, (bits + 7) // 8
            zeros += 0 if any(data[reader.at : reader.at + size_bytes]) else min(many, count)
        reader.skip(size_bytes)
        if not many:
            raise ValueError("a run of no levels")
        count -= many
    return zeros


class _Thrift:
    """Reads structs of whole numbers and structs; other fields are passed over. Raises IndexError at the end of the
    data, ValueError for data that is no struct."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.at = 0

    def struct(self, nested_max: int) -> dict[int, Any]:
        if not nested_max:
            raise ValueError("nested too deeply")
        fields: dict[int, Any] = {}
        number = 0
        while head := self._byte():
            number = number + (head >> 4) if head >> 4 else self._whole()
            fields[number] = self._value(head & 0x0F, nested_max)
        return fields

    def _value(self, kind: int, nested_max: int, *, is_item: bool = False) -> Any:
        if kind in (_TRUE, _FALSE):
            # In a list it is a byte, in a struct the type says it.
            return self._byte() if is_item else kind == _TRUE
        if kind in (_I16, _I32, _I64):
            return self._whole()
        if kind == _STRUCT:
            return self.struct(nested_max - 1)
        if kind in (_LIST, _SET):
            self._list(nested_max - 1)
        elif kind in (_BYTE, _DOUBLE, _BINARY):
            self.skip({_BYTE: 1, _DOUBLE: 8}.get(kind) or self.varint())
        else:
            raise ValueError(f"a field of type {kind}")
        return None

    def _list(self, nested_max: int) -> None:
        head = self._byte()
        count = head >> 4 if head >> 4 < 15 else self.varint()
        if not nested_max or count > len(self._data):
            raise ValueError("a list of so many items")
        for _ in range(count):
            self._value(head & 0x0F, nested_max, is_item=True)

    def _byte(self) -> int:
        found = self._data[self.at]
        self.at += 1
        return found

    def skip(self, size_bytes: int) -> None:
        self.at += size_bytes
        if self.at > len(self._data):
            raise IndexError

    def varint(self) -> int:
        found = 0
        for shift in range(0, 70, 7):
            byte = self._byte()
            found |= (byte & 0x7F) << shift
            if byte < 0x80:
                return found
        raise ValueError("a number of more than ten bytes")

    def _whole(self) -> int:
        found = self.varint()
        return (found >> 1) ^ -(found & 1)
