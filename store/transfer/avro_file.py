r"""Avro's object container files, written and read: the format that Java's Avro, Spark, fastavro and others exchange.

::

    "Obj" 1 │ head: metadata (avro.schema, avro.codec, ...) and sync marker │ block │ block │ ...

    block = number of rows │ rows end to end, compressed │ sync marker

Head and blocks are Avro records themselves, of schemas that the specification gives: fastavro reads and writes them.
The rows in a block have no lengths, so only a reader with their schema finds their ends. The sync marker, sixteen bytes
that each file chooses, shows damage. Ours is made from the file's name and content: the same export gives the same
bytes. Source: Apache Avro specification 1.12, *Object Container Files*.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, BinaryIO, Final, cast

import fastavro

from cortado.errors import InvalidArgument
from cortado.schema.model import Schema
from cortado.schema.parse import parse_schema
from cortado.store.transfer.avro_codecs import BLOCK_BYTES_MAX, decompressor
from cortado.store.transfer.avro_codecs import compressor as compressor_of
from cortado.store.transfer.files import Sink
from cortado.store.transfer.formats import Compression

MAGIC: Final = b"Obj\x01"
SYNC_BYTES: Final = 16
BLOCK_BYTES: Final = 256 << 10
"""The bytes of rows after which a block is closed."""

_METADATA_BYTES_MAX: Final = 4 << 20
_ROWS_MAX: Final = 1 << 20
"""The most rows of a block: the end of each row is remembered."""
_NUMBERS_BYTES: Final = 20
"""The most bytes of a block's two numbers."""
_SYNC: Final = {"type": "fixed", "name": "Sync", "size": SYNC_BYTES}


def _record(name: str, **types: Any) -> Any:
    fields = [{"name": each, "type": kind} for each, kind in types.items()]
    return fastavro.parse_schema({"type": "record", "name": name, "fields": fields})


_HEAD: Final = _record("Head", metadata={"type": "map", "values": "bytes"}, sync=_SYNC)
_BLOCK: Final = _record("Block", rows="long", data="bytes", sync=_SYNC)


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
        sink.write(MAGIC)
        self._write(_HEAD, {"metadata": {key: value.encode() for key, value in entries.items()}, "sync": self._sync})

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
        self._write(_BLOCK, {"rows": self._rows, "data": data, "sync": self._sync})
        self._rows = self._bytes = 0
        self._bodies = []

    def _write(self, schema: Any, record: dict[str, Any]) -> None:
        fastavro.schemaless_writer(cast(Any, self._sink), schema, record)


@dataclass(frozen=True, slots=True)
class Block:
    """``rows`` rows end to end in ``data``; ``first`` is the first one's number in the file, from 1."""

    first: int
    rows: int
    data: bytes


class Container:
    """A container to read, from its beginning. ``schema`` is what its rows were written with.

    Raises InvalidArgument for a file of another kind, InvalidSchema for a schema that is refused, Unsupported for a
    codec.
    """

    def __init__(self, file: BinaryIO, name: str) -> None:
        self._file = file
        self._name = name
        self._begun, self._left, self._place = b"", 0, ""
        if file.read(len(MAGIC)) != MAGIC:
            raise self._wrong("is no Avro container file: it does not begin with Obj and 1")
        head = self._record(_HEAD, _METADATA_BYTES_MAX, "in its head")
        self.metadata: dict[str, bytes] = head["metadata"]
        self._sync: bytes = head["sync"]
        declared = self.metadata.get("avro.schema")
        if declared is None:
            raise self._wrong("has no avro.schema in its head")
        try:
            self.schema: Schema = parse_schema(declared.decode())
        except UnicodeDecodeError:
            raise self._wrong("has a schema that is no UTF-8") from None
        self.codec = self.metadata.get("avro.codec", b"null").decode("ascii", "replace")
        self._decompress = decompressor(self.codec)

    def blocks(self, rows_skipped: int = 0) -> Iterator[Block]:
        """Yield the blocks in their order, but for those that hold only the first ``rows_skipped`` rows."""
        first = 1
        while self._first_byte():
            block = self._record(_BLOCK, BLOCK_BYTES_MAX + _NUMBERS_BYTES + SYNC_BYTES, f"at row {first}, in a block")
            rows: int = block["rows"]
            if not 0 <= rows <= _ROWS_MAX:
                raise self._wrong(f"is damaged at row {first}: a block of {rows} rows")
            last = first + rows - 1
            if block["sync"] != self._sync:
                raise self._wrong(f"is damaged: no sync marker behind the block of rows {first} to {last}")
            if last > rows_skipped:
                yield self._block(first, rows, block["data"])
            first += rows

    def read(self, size: int) -> bytes:
        """For fastavro: the next bytes of the record that it reads, all of them or an error."""
        if not 0 <= size <= self._left:
            raise self._wrong(f"is damaged or too large {self._place}: {size} bytes are to follow, {self._left} may")
        self._left -= size
        begun, self._begun = self._begun[:size], self._begun[size:]
        data = begun + self._file.read(size - len(begun))
        if len(data) < size:
            raise self._wrong("is cut off: it ends in the middle of a block")
        return data

    def _record(self, schema: Any, limit: int, place: str) -> dict[str, Any]:
        """Return the record that follows, of at most ``limit`` bytes."""
        self._left, self._place = limit, place
        try:
            return cast("dict[str, Any]", fastavro.schemaless_reader(cast(Any, self), schema, None))
        except (ValueError, IndexError, OverflowError, EOFError) as error:
            raise self._wrong(f"is damaged {place}: {error}") from None

    def _first_byte(self) -> bool:
        """Return whether another block follows: fastavro would take a number that is cut off for the end of the
        file."""
        self._begun = self._file.read(1)
        return bool(self._begun)

    def _block(self, first: int, rows: int, data: bytes) -> Block:
        try:
            return Block(first, rows, self._decompress(data))
        except InvalidArgument as error:
            raise self._wrong(f"at rows {first} to {first + rows - 1}, the block {error.problem}") from None

    def _wrong(self, problem: str) -> InvalidArgument:
        return InvalidArgument("file", problem, self._name)
