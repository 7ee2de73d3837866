"""Avro's container files: others read ours, we read theirs, and damage is found and named."""

from __future__ import annotations

import bz2
import io
import json
import lzma
import tracemalloc
import zlib
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

import avro.datafile
import avro.io
import avro.schema
import fastavro
import pytest

from cortado.errors import CortadoError, InvalidArgument, Unsupported
from cortado.schema.documents import decode_document, encode_document
from cortado.schema.parse import parse_schema
from cortado.schema.skipping import ends_of
from cortado.schema.varint import append_long
from cortado.store.transfer import avro_codecs
from cortado.store.transfer.avro_file import Container, ContainerWriter
from cortado.store.transfer.formats import Compression

DECLARATION = {
    "type": "record",
    "name": "Row",
    "namespace": "shop",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "name", "type": ["null", "string"], "default": None},
        {"name": "tags", "type": {"type": "array", "items": "string"}},
    ],
}
ROWS = [{"id": n, "name": None if n % 3 else f"n{n}", "tags": ["a"] * (n % 4)} for n in range(500)]


def written(compression: Compression, rows: list[dict[str, Any]] = ROWS) -> bytes:
    schema = parse_schema(json.dumps(DECLARATION))
    sink = io.BytesIO()
    writer = ContainerWriter(sink, schema.text, compression, name="a", metadata={"cortado.table": "shop.rows"})
    for start in range(0, len(rows), 100):
        bodies = [encode_document(schema, row) for row in rows[start : start + 100]]
        writer.add(b"".join(bodies), len(bodies))
    writer.close()
    return sink.getvalue()


def read(data: bytes, rows_skipped: int = 0) -> list[dict[str, Any]]:
    container = Container(io.BytesIO(data), "rows.avro")
    found = []
    for block in container.blocks(rows_skipped):
        ends = ends_of(container.schema, block.data, 0, block.rows)
        starts = [0, *ends[:-1]]
        found += [decode_document(container.schema, block.data[a:b]) for a, b in zip(starts, ends, strict=True)]
        assert ends[-1] == len(block.data)
    return found


@pytest.mark.parametrize("compression", [Compression.NONE, Compression.DEFLATE])
def test_fastavro_and_apache_avro_read_what_we_write(compression: Compression, tmp_path: Path) -> None:
    data = written(compression)
    assert list(fastavro.reader(io.BytesIO(data))) == ROWS
    path = tmp_path / "rows.avro"
    path.write_bytes(data)
    with avro.datafile.DataFileReader(path.open("rb"), avro.io.DatumReader()) as reader:
        assert list(reader) == ROWS


@pytest.mark.parametrize("codec", ["null", "deflate", "bzip2", "xz"])
def test_what_fastavro_writes_is_read(codec: str) -> None:
    out = io.BytesIO()
    fastavro.writer(out, fastavro.parse_schema(DECLARATION), ROWS, codec=codec, sync_interval=1_000)
    assert read(out.getvalue()) == ROWS


def test_what_apache_avro_writes_is_read(tmp_path: Path) -> None:
    path = tmp_path / "rows.avro"
    schema = avro.schema.parse(json.dumps(DECLARATION))
    with avro.datafile.DataFileWriter(path.open("wb"), avro.io.DatumWriter(), schema, codec="deflate") as writer:
        for row in ROWS:
            writer.append(row)
    assert read(path.read_bytes()) == ROWS


@pytest.mark.parametrize("compression", [Compression.NONE, Compression.DEFLATE])
def test_the_same_rows_are_the_same_bytes(compression: Compression) -> None:
    assert written(compression) == written(compression)


@pytest.mark.parametrize("compression", [Compression.SNAPPY, Compression.ZSTD])
def test_codecs_of_pyarrow_are_written_and_read(compression: Compression) -> None:
    pytest.importorskip("pyarrow")
    assert read(written(compression)) == ROWS


def test_a_snappy_block_ends_with_its_checksum() -> None:
    pyarrow = pytest.importorskip("pyarrow")
    _, compress = avro_codecs.compressor(Compression.SNAPPY)
    block = compress(b"abc" * 50)
    assert block[-4:] == zlib.crc32(b"abc" * 50).to_bytes(4)
    assert pyarrow.decompress(block[:-4], 150, "snappy", asbytes=True) == b"abc" * 50
    with pytest.raises(InvalidArgument, match="checksum"):
        avro_codecs.decompressor("snappy")(block[:-1] + b"\x00")


def test_whole_blocks_are_skipped_without_reading_them() -> None:
    assert read(written(Compression.DEFLATE), 500) == []
    # Blocks go whole, so the output begins at or before the row behind the skipped ones.
    rows = read(written(Compression.NONE), 499)
    assert rows[-1] == ROWS[-1]


def test_a_file_without_rows_is_whole() -> None:
    data = written(Compression.DEFLATE, [])
    assert read(data) == []
    assert list(fastavro.reader(io.BytesIO(data))) == []


@pytest.mark.parametrize(
    ("damage", "problem"),
    [
        (lambda data: b"PK" + data[2:], "no Avro container"),
        (lambda data: b"", "no Avro container"),
        (lambda data: data[:-3], "cut off"),
        (lambda data: data[: len(data) // 2], "cut off"),
        (lambda data: data[:-1] + bytes([data[-1] ^ 1]), "no sync marker"),
        (lambda data: data.replace(b'"long"', b'"lomg"'), "long"),
    ],
)
def test_damage_is_named(damage: Any, problem: str) -> None:
    with pytest.raises(InvalidArgument) as caught:
        read(damage(written(Compression.NONE)))
    assert problem in str(caught.value) or "lomg" in str(caught.value)


def test_a_block_that_would_become_too_large_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(avro_codecs, "BLOCK_BYTES_MAX", 10_000)
    for name, data in (("deflate", _deflated(bytes(20_000))), ("bzip2", bz2.compress(bytes(20_000)))):
        with pytest.raises(InvalidArgument, match="10000"):
            avro_codecs.decompressor(name)(data)


def test_an_unknown_codec_is_named() -> None:
    data = written(Compression.NONE).replace(b"\x08null", b"\x08lzma")
    with pytest.raises(Unsupported, match="lzma"):
        read(data)


def _deflated(data: bytes) -> bytes:
    deflater = zlib.compressobj(wbits=-15)
    return deflater.compress(data) + deflater.flush()


# --- files made to do harm -----------------------------------------------------------------------------------------


def number(value: int) -> bytes:
    out = bytearray()
    append_long(out, value)
    return bytes(out)


def head(**metadata: bytes) -> bytes:
    out = bytearray(b"Obj\x01" + number(len(metadata)))
    for key, value in metadata.items():
        name = key.replace("_", ".").encode()
        out += number(len(name)) + name + number(len(value)) + value
    return bytes(out + number(0) + b"s" * 16)


SOUND = head(avro_schema=b'"long"', avro_codec=b"null")


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"Obj\x01" + number(-1), "cut off"),
        (b"Obj\x01" + number(1) + number(1 << 40), "too large in its head"),
        (b"Obj\x01" + number(1) + number(-5) + b"x" * 100, "too large in its head"),
        (b"Obj\x01" + number(1 << 62), "cut off"),
        (head(x=bytes(5 << 20)), "too large in its head"),
        (head(a=b"b"), "no avro.schema"),
        (head(avro_schema=b"\xff"), "no UTF-8"),
        (b"Obj\x01" + number(1) + number(2) + b"\xff\xfe" + number(0) + number(0) + b"s" * 16, "damaged in its head"),
        (SOUND[:-1], "cut off"),
        (SOUND + b"\x80", "cut off"),
        (SOUND + number(1), "cut off"),
        (SOUND + number(1) + number(1 << 40), "too large at row 1, in a block"),
        (SOUND + number(1) + number(-1) + b"x" * 100, "too large at row 1, in a block"),
        (SOUND + number(-1) + number(0) + b"s" * 16, "a block of -1 rows"),
        (SOUND + number(1 << 40) + number(0) + b"s" * 16, "rows"),
        (SOUND + number((1 << 20) + 1) + number(0) + b"s" * 16, "a block of 1048577 rows"),
        (SOUND + number(1) + number(1) + b"\x02" + b"t" * 16, "no sync marker"),
        (SOUND + b"\xff" * 400, "cut off"),
    ],
)
def test_a_hostile_file_is_refused_by_what_is_wrong_in_it(data: bytes, problem: str) -> None:
    with pytest.raises(InvalidArgument, match=problem):
        for block in Container(io.BytesIO(data), "rows.avro").blocks():
            ends_of(parse_schema('"long"'), block.data, 0, block.rows)


@pytest.mark.parametrize("codec", ["deflate", "bzip2", "xz", "snappy", "zstandard"])
def test_a_small_block_that_would_fill_the_memory_is_refused_before_it_does(
    codec: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Small, so that the block's full size can be four times of it.
    most = 4 << 20
    monkeypatch.setattr(avro_codecs, "BLOCK_BYTES_MAX", most)
    whole = bytes(4 * most)
    match codec:
        case "deflate":
            bomb = _deflated(whole)
        case "bzip2":
            bomb = bz2.compress(whole, 1)
        case "xz":
            bomb = lzma.compress(whole, preset=0)
        case _:
            arrow = pytest.importorskip("pyarrow")
            bomb = arrow.compress(whole, codec="zstd" if codec == "zstandard" else codec, asbytes=True) + bytes(4)
    data = head(avro_schema=b'"long"', avro_codec=codec.encode()) + number(1) + number(len(bomb)) + bomb + b"s" * 16
    tracemalloc.start()
    with pytest.raises(InvalidArgument, match=f"at rows 1 to 1, the block may become {most} bytes"):
        list(Container(io.BytesIO(data), "rows.avro").blocks())
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 2.5 * most


def test_a_block_that_asks_for_the_memory_of_its_unpacking_is_refused() -> None:
    filters = [{"id": lzma.FILTER_LZMA2, "preset": 0, "dict_size": 1 << 29}]
    bomb = lzma.compress(b"\2", filters=filters)
    data = head(avro_schema=b'"long"', avro_codec=b"xz") + number(1) + number(len(bomb)) + bomb + b"s" * 16
    with pytest.raises(InvalidArgument, match="at rows 1 to 1, the block is damaged: Memory usage limit exceeded"):
        list(Container(io.BytesIO(data), "rows.avro").blocks())


def test_random_damage_is_an_error_of_ours_or_reads_on() -> None:
    whole = written(Compression.DEFLATE)
    random = Random(7)
    for _ in range(3_000):
        data = bytearray(whole[: random.choice([len(whole), random.randrange(len(whole))])])
        for _ in range(random.randrange(1, 4)):
            if data:
                data[random.randrange(len(data))] = random.randrange(256)
        with suppress(CortadoError):
            read(bytes(data))
