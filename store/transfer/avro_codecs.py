"""The codecs of Avro's container files: how a block's bytes are compressed.

Java's, Spark's and fastavro's files name one of these. The standard library has three; snappy and zstandard come with
pyarrow. A block does not tell its unpacked size, so that is bounded here.
"""

from __future__ import annotations

import bz2
import lzma
import zlib
from collections.abc import Callable
from typing import Any, Final, TypeAlias

from cortado.errors import InvalidArgument, Unsupported
from cortado.store.transfer.formats import Compression, pyarrow_for

BLOCK_BYTES_MAX: Final = 64 << 20
"""The bound on a block's rows, unpacked. Writers cut their blocks at some tens of KiB up to some MiB."""

_XZ_BYTES_MAX: Final = 128 << 20
"""The bound on the memory of unpacking, beside the block. Twenty bytes may ask for 1.5 GiB, and the highest preset
takes 65 MiB."""

Codec: TypeAlias = Callable[[bytes], bytes]

_DEFLATE_LEVEL: Final = 3
"""Little larger than the default's 6, and twice as fast."""
_NAME_OF: Final = {
    Compression.NONE: "null",
    Compression.DEFLATE: "deflate",
    Compression.SNAPPY: "snappy",
    Compression.ZSTD: "zstandard",
}


def compressor(compression: Compression) -> tuple[str, Codec]:
    """Return the codec's name in a file, and what compresses a block."""
    name = _NAME_OF[compression]
    match compression:
        case Compression.NONE:
            return name, lambda data: data
        case Compression.DEFLATE:
            return name, _deflate
        case Compression.SNAPPY:
            arrow = pyarrow_for("Avro compressed by snappy")
            return name, lambda data: _compressed(arrow, data, "snappy") + zlib.crc32(data).to_bytes(4)
        case _:
            arrow = pyarrow_for("Avro compressed by zstd")
            return name, lambda data: _compressed(arrow, data, "zstd")


def decompressor(name: str) -> Codec:
    """Return the function that unpacks a block, by the codec's name. Raises Unsupported.

    The function raises InvalidArgument if a block is damaged, or larger than :data:`BLOCK_BYTES_MAX`.
    """
    match name:
        case "null" | "":
            return lambda data: data
        case "deflate":
            return lambda data: _bounded(zlib.decompressobj(-15), data)
        case "bzip2":
            return lambda data: _bounded(bz2.BZ2Decompressor(), data)
        case "xz":
            return lambda data: _bounded(lzma.LZMADecompressor(memlimit=_XZ_BYTES_MAX), data)
        case "snappy":
            arrow = pyarrow_for("Avro compressed by snappy")
            return lambda data: _snappy(arrow, data)
        case "zstandard":
            arrow = pyarrow_for("Avro compressed by zstandard")
            return lambda data: _zstandard(arrow, data)
    known = "null, deflate, bzip2, xz, snappy, zstandard"
    raise Unsupported(f"an Avro file of the codec {name!r}", f"known are {known}")


def _deflate(data: bytes) -> bytes:
    # Raw: Avro's blocks have neither zlib's header nor its checksum.
    deflater = zlib.compressobj(_DEFLATE_LEVEL, wbits=-15)
    return deflater.compress(data) + deflater.flush()


def _bounded(inflater: Any, data: bytes) -> bytes:
    try:
        found: bytes = inflater.decompress(data, BLOCK_BYTES_MAX + 1)
    except (zlib.error, OSError, lzma.LZMAError, EOFError) as error:
        raise _damaged(error) from None
    if not inflater.eof and len(found) <= BLOCK_BYTES_MAX:
        raise _damaged("it ends too early")
    return _checked(found)


def _snappy(arrow: Any, data: bytes) -> bytes:
    body, checksum = data[:-4], data[-4:]
    size = shift = 0
    # Snappy begins with its unpacked size, as a varint.
    for byte in body[:5]:
        size |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            break
    _check_size(size)
    try:
        found: bytes = arrow.decompress(body, decompressed_size=size, codec="snappy", asbytes=True)
    except (OSError, ValueError) as error:
        raise _damaged(error) from None
    if zlib.crc32(found).to_bytes(4) != checksum:
        raise _damaged("its checksum is wrong")
    return found


def _zstandard(arrow: Any, data: bytes) -> bytes:
    try:
        with arrow.CompressedInputStream(arrow.BufferReader(data), "zstd") as stream:
            found: bytes = stream.read(BLOCK_BYTES_MAX + 1)
    except (OSError, ValueError) as error:
        raise _damaged(error) from None
    return _checked(found)


def _compressed(arrow: Any, data: bytes, codec: str) -> bytes:
    found: bytes = arrow.compress(data, codec=codec, asbytes=True)
    return found


def _checked(found: bytes) -> bytes:
    _check_size(len(found))
    return found


def _check_size(size: int) -> None:
    if size > BLOCK_BYTES_MAX:
        raise InvalidArgument("block", f"may become {BLOCK_BYTES_MAX} bytes, and becomes more")


def _damaged(why: object) -> InvalidArgument:
    return InvalidArgument("block", f"is damaged: {why}")
