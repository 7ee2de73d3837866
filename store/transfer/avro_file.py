r"""Avro's object container files, written and read: what Java's Avro, Spark, fastavro and others exchange.

::

    "Obj" 1 │ metadata: avro.schema, avro.codec, ... │ sync marker │ block │ block │ ...

    block =  number of rows │ number of bytes │ rows end to end, compressed │ sync marker

Rows stand in a block without their lengths, so only whoever knows the schema finds where one ends. The sync marker,
sixteen bytes that each file chooses, shows damage; ours is made of what names the file, so that the same export gives
the same bytes. Source: Apache Avro specification 1.12, *Object Container Files*.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import BinaryIO, Final

from cortado.errors import InvalidArgument
from cortado.schema.model import Schema
from cortado.schema.parse import parse_schema
from cortado.schema.varint import append_long
from cortado.store.transfer.avro_codecs import BLOCK_BYTES_MAX, decompressor
from cortado.store.transfer.avro_codecs import compressor as compressor_of
from cortado.store.transfer.files import Sink
from cortado.store.transfer.formats import Compression

MAGIC: Final = b"Obj\x01"
SYNC_BYTES: Final = 16
BLOCK_BYTES: Final = 256 << 10
"""Of rows, after which a block is closed."""

_METADATA_BYTES_MAX: Final = 4 << 20
_ROWS_MAX: Final = 1 << 32


class ContainerWriter:
    """Writes a container. ``name`` tells its sync marker from another file's."""

    def __init__(
        self, sink: Sink, schema_text: str, compression: Compression, *, name: str, metadata: Mapping[str, str]
    ) -> None:
        codec, self._compress = compressor_of(compression)
        self._sink = sink
        self._sync = hashlib.sha256(f"{name}\n{sorted(metadata.items())}\n{schema_text}".encode()).digest()[:SYNC_BYTES]
        self._rows = 0
        self._bodies: list[bytes] = []
        self._bytes = 0
        entries = {"avro.schema": schema_text, "avro.codec": codec, **metadata}
        header = bytearray(MAGIC)
        append_long(header, len(entries))
        for key, value in entries.items():
            for text in (key.encode(), value.encode()):
                append_long(header, len(text))
                header += text
        append_long(header, 0)
        sink.write(bytes(header + self._sync))

    def add(self, bodies: bytes, rows: int) -> None:
        """Rows end to end. They stay together in one block."""
        self._rows += rows
        self._bodies.append(bodies)
        self._bytes += len(bodies)
        if self._bytes >= BLOCK_BYTES:
            self._end_block()

    def close(self) -> None:
        """Writes the last block; the sink stays open."""
        if self._rows:
            self._end_block()

    def _end_block(self) -> None:
        data = self._compress(b"".join(self._bodies))
        block = bytearray()
        append_long(block, self._rows)
        append_long(block, len(data))
        self._sink.write(bytes(block) + data + self._sync)
        self._rows = self._bytes = 0
        self._bodies = []


@dataclass(frozen=True, slots=True)
class Block:
    """``rows`` rows end to end in ``data``; ``first`` is the first one's number in the file, from 1."""

    first: int
    rows: int
    data: bytes


class Container:
    """A container to read, from its beginning. ``schema`` is what its rows were written with.

    Raises InvalidArgument for a file that is none, InvalidSchema for a schema that is refused, Unsupported for a codec.
    """

    def __init__(self, file: BinaryIO, name: str) -> None:
        self._file = file
        self._name = name
        if file.read(len(MAGIC)) != MAGIC:
            raise self._wrong("is no Avro container file: it does not begin with Obj and 1")
        self.metadata = self._read_metadata()
        declared = self.metadata.get("avro.schema")
        if declared is None:
            raise self._wrong("has no avro.schema in its head")
        try:
            self.schema: Schema = parse_schema(declared.decode())
        except UnicodeDecodeError:
            raise self._wrong("has a schema that is no UTF-8") from None
        self.codec = self.metadata.get("avro.codec", b"null").decode("ascii", "replace")
        self._decompress = decompressor(self.codec)
        self._sync = self._read(SYNC_BYTES)

    def blocks(self, rows_skipped: int = 0) -> Iterator[Block]:
        """The blocks in their order, but for those that hold only the first ``rows_skipped`` rows."""
        first = 1
        while (rows := self._read_count()) is not None:
            size = self._read_long()
            if not 0 <= size <= BLOCK_BYTES_MAX or not 0 <= rows <= _ROWS_MAX:
                raise self._wrong(f"is damaged at row {first}: a block of {rows} rows and {size} bytes")
            if first + rows - 1 > rows_skipped:
                yield self._block(first, rows, self._read(size))
            elif self._file.seekable():
                self._file.seek(size, 1)
            else:
                self._read(size)
            if self._read(SYNC_BYTES) != self._sync:
                raise self._wrong(f"is damaged: no sync marker behind the block of rows {first} to {first + rows - 1}")
            first += rows

    def _block(self, first: int, rows: int, data: bytes) -> Block:
        try:
            return Block(first, rows, self._decompress(data))
        except InvalidArgument as error:
            raise self._wrong(f"at rows {first} to {first + rows - 1}, the block {error.problem}") from None

    def _read_metadata(self) -> dict[str, bytes]:
        found: dict[str, bytes] = {}
        left = _METADATA_BYTES_MAX
        while count := self._read_long():
            if count < 0:
                # Its size in bytes follows, for whoever wants to skip it.
                self._read_long()
            for _ in range(abs(count)):
                key, value = (self._read_sized(left) for _ in range(2))
                left -= len(key) + len(value)
                found[key.decode("utf-8", "replace")] = value
        return found

    def _read_sized(self, limit: int) -> bytes:
        size = self._read_long()
        if not 0 <= size <= limit:
            raise self._wrong(f"has {size} bytes in its head, the limit is {_METADATA_BYTES_MAX}")
        return self._read(size)

    def _read_count(self) -> int | None:
        """The next block's number of rows; None at the end of the file."""
        byte = self._file.read(1)
        return None if not byte else self._read_long(byte)

    def _read_long(self, first: bytes = b"") -> int:
        value = shift = 0
        while True:
            byte = (first or self._read(1))[0]
            first = b""
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return (value >> 1) ^ -(value & 1)
            if shift > 63:
                raise self._wrong("is damaged: a number takes more than ten bytes")

    def _read(self, size: int) -> bytes:
        data = self._file.read(size)
        if len(data) < size:
            raise self._wrong("is cut off: it ends in the middle of a block")
        return data

    def _wrong(self, problem: str) -> InvalidArgument:
        return InvalidArgument("file", problem, self._name)
