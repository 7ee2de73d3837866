"""Columns by the compiled walk beside the columnar codec: the same arrays for all bodies that it accepts, none that the
codec refuses, and no byte read outside the bodies."""

from __future__ import annotations

import ctypes
import json
import mmap
import random
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cortado.errors import CortadoError, InvalidSchema
from cortado.schema.columnar.column import BytesColumn, Column, FlatColumn
from cortado.schema.columnar.decode import decode_rows
from cortado.schema.documents import encode_document
from cortado.schema.model import Record, Schema, Union
from cortado.schema.parse import parse_schema
from cortado.store.mvcc.packed import PackedPayloads
from cortado.store.mvcc.walks import ColumnKernel, Walked
from cortado.store.tables.columns import decode_group
from cortado.store.tables.walked import walked_columns
from support.avro_random import PLAIN, Evolution, SchemaMaker, ValueMaker, damaged
from support.kernels import row_kernel

SEEDS = st.integers(0, 2**32 - 1)
ROWS = [1, 2, 9, 255, 256, 257, 600]
WIDE = re.compile(r'"precision": ?(19|30|38)')


class KnownMaker(SchemaMaker):
    """Schemas of the types that the walk knows."""

    def type(self, depth: int) -> Any:
        pick = self.rng.random()
        if pick < 0.5 or depth <= 0:
            return self.leaf()
        return self.nullable(depth) if pick < 0.8 else self.record(depth)

    def record(self, depth: int) -> dict[str, Any]:
        made = super().record(depth)
        made["fields"] = made["fields"] or [{"name": "f", "type": "int"}]
        return made

    def leaf(self) -> Any:
        pick = self.rng.random()
        if pick < 0.4:
            return self.rng.choice(PLAIN[1:])
        if pick < 0.5:
            decimal = {"logicalType": "decimal", "precision": self.rng.choice([1, 9, 18, 19, 38]), "scale": 0}
            return {"type": "fixed", "name": self.name("D"), "size": 17, **decimal}
        made = super().leaf()
        return "long" if made == "null" else made


def kernel() -> ColumnKernel:
    from cortado.store.mvcc.kernel.walking import CompiledColumns

    row_kernel()
    return CompiledColumns()


def payloads_of(bodies: Sequence[bytes]) -> PackedPayloads:
    ends = np.cumsum(np.fromiter(map(len, bodies), np.int64, len(bodies)))
    return PackedPayloads(b"", 0, b"".join(bodies), ends, kernel())


def leaves(record: Record, prefix: str = "") -> Iterator[str]:
    for field in record.fields:
        inner = field.type.nullable if isinstance(field.type, Union) else field.type
        yield from leaves(inner, f"{prefix}{field.name}.") if isinstance(inner, Record) else [prefix + field.name]


def made(seed: int, rows: int) -> tuple[random.Random, Schema, list[bytes], list[str]]:
    rng = random.Random(seed)
    schema = parse_schema(json.dumps(KnownMaker(rng, recursive=False).document()))
    values = ValueMaker(rng)
    known = [encode_document(schema, values.value(schema.record)) for _ in range(min(rows, 40))]
    paths = list(leaves(schema.record))
    return rng, schema, [rng.choice(known) for _ in range(rows)], rng.sample(paths, rng.randint(1, len(paths)))


def assert_same(found: Mapping[str, Column], expected: Mapping[str, Column]) -> None:
    assert found.keys() == expected.keys()
    for path, column in found.items():
        other = expected[path]
        assert type(column) is type(other)
        assert (column.type, column.length) == (other.type, other.length), path
        validity = None if other.validity is None or other.validity.all() else other.validity
        assert (column.validity is None) == (validity is None), path
        if validity is not None:
            np.testing.assert_array_equal(column.validity, validity)
        if isinstance(column, FlatColumn):
            assert isinstance(other, FlatColumn)
            assert column.values.dtype == other.values.dtype
            assert column.values.tobytes() == other.values.tobytes(), path
        else:
            assert isinstance(column, BytesColumn) and isinstance(other, BytesColumn)
            np.testing.assert_array_equal(column.offsets, other.offsets)
            assert column.data.tobytes() == other.data.tobytes(), path


def by_codec(schema: Schema, bodies: Sequence[bytes], paths: Collection[str]) -> tuple[Mapping[str, Column], bool]:
    decoded = decode_rows(schema, b"".join(bodies), np.fromiter(map(len, bodies), np.int64), columns=paths)
    return decoded.columns, not decoded.errors


@given(SEEDS, st.sampled_from(ROWS))
@settings(max_examples=150)
def test_a_walk_makes_the_columns_that_the_codec_makes(seed: int, rows: int) -> None:
    _, schema, bodies, paths = made(seed, rows)
    found = walked_columns(payloads_of(bodies), schema, paths)
    if found is None:
        assert WIDE.search(schema.text), "only digits that 64 bits do not hold are left to the codec"
    else:
        assert_same(found, by_codec(schema, bodies, paths)[0])


@given(SEEDS, st.sampled_from(ROWS))
@settings(max_examples=200)
def test_a_walk_accepts_no_body_that_the_codec_refuses(seed: int, rows: int) -> None:
    rng, schema, bodies, paths = made(seed, rows)
    place = rng.randrange(rows)
    bodies[place] = damaged(rng, bodies[place])
    found = walked_columns(payloads_of(bodies), schema, paths)
    expected, is_sound = by_codec(schema, bodies, paths)
    if found is not None:
        assert is_sound, bodies[place].hex()
        assert_same(found, expected)


def told(view: Any, payloads: PackedPayloads, reader: Schema) -> str:
    """Return the values of a group of rows, or the error raised."""
    try:
        columns = decode_group(view, 1, payloads, reader, [field.name for field in reader.record.fields])
    except CortadoError as error:
        return f"{type(error).__name__}: {error}"
    return repr({path: (column.type, column.to_pylist()) for path, column in columns.items()})


@given(SEEDS)
@settings(max_examples=150)
def test_rows_of_an_older_schema_read_alike_with_the_walk_and_without(seed: int) -> None:
    rng = random.Random(seed)
    declaration = KnownMaker(rng, recursive=False).record(1)
    changed = {**declaration, "fields": Evolution(rng).fields(declaration["fields"])}
    writer = parse_schema(json.dumps(declaration))
    try:
        reader = parse_schema(json.dumps(changed))
    except InvalidSchema:
        return
    values = ValueMaker(rng)
    bodies = [encode_document(writer, values.value(writer.record)) for _ in range(9)]
    if rng.random() < 0.3:
        bodies[4] = damaged(rng, bodies[4])
    view = SimpleNamespace(stored_schema=lambda _: writer, table=SimpleNamespace(full_name="shop.rows"))
    ends, heads = np.cumsum(np.fromiter(map(len, bodies), np.int64, len(bodies))), b"\0\0\0\1" * len(bodies)
    by_walk, alone = (PackedPayloads(heads, 4, b"".join(bodies), ends, each) for each in (kernel(), None))
    assert told(view, by_walk, reader) == told(view, alone, reader)


NUMBERS = [0, 1, -1, 31, 32, 40, 63, 64, -64, -65, 8191, 8192, 2**20, 2**31 - 1, 2**31, -(2**31), -(2**31) - 1]
NUMBERS += [2**20 - 1, -(2**20), 2**41, -(2**41), 2**55 - 1, 2**55, 2**62, 2**63 - 1, -(2**63)]


def varint(value: int) -> bytes:
    left, out = (value << 1) ^ (value >> 63), bytearray()
    while left > 0x7F:
        out.append(left & 0x7F | 0x80)
        left >>= 7
    out.append(left)
    return bytes(out)


TEXTS = [b"", b"a", b"abcdefgh", b"abcdefghi", "é".encode(), "abcdefgé".encode(), "ab𝄞".encode(), b"\xed\xa0\x80"]
TEXTS += [b"\xc0\x80", b"\xe0\x80\x80", b"\xf0\x80\x80\x80", b"\xf4\x90\x80\x80", b"abc\xc3", b"12345678\x80", b"\xff"]
TEXTS += [b"\xf4\x8f\xbf\xbf", b"\xed\x9f\xbf", b"\xe0\xa0\x80", b"\xf0\x90\x80\x80", b"\xf5\x80\x80\x80", b"\xc2\x80"]
UUIDS = [b"0123abcd-0123-ABCD-0123-0123456789ab", b"0123abcd-0123-ABCD-0123-0123456789a", b"0123abcd_0123-ABCD-0123-01"]
UUIDS += [b"0123abcg-0123-ABCD-0123-0123456789ab", b"0123abcd0-123-ABCD-0123-0123456789ab"]
DECIMALS = [b"", b"\x00", b"\x80", b"\x00" * 20 + b"\x05", b"\xff" * 20 + b"\xfb", b"\x00\x80", b"\xff\x7f"]
DECIMALS += [
    (sign * unscaled).to_bytes(size, signed=True)
    for size in (5, 9, 20)
    for sign in (1, -1)
    for unscaled in (10**9 - 1, 10**9)
]
INTEGERS = [*map(varint, NUMBERS), b"\x80\x00", *(b"\xff" * 9 + bytes([last]) for last in (1, 2, 0xFF))]
ENUMS = [
    {"type": "enum", "name": "E", "symbols": [f"S{number}" for number in range(symbols)]} for symbols in (1, 33, 41, 65)
]


def logical(type_: str, kind: str, **more: Any) -> dict[str, Any]:
    return {"type": type_, "logicalType": kind, **more}


def sized(values: Sequence[bytes]) -> list[bytes]:
    return [varint(len(each)) + each for each in values]


EDGES: list[tuple[Any, list[bytes]]] = [
    ("int", INTEGERS),
    ("long", INTEGERS),
    (logical("int", "date"), INTEGERS),
    (logical("int", "time-millis"), INTEGERS),
    (logical("long", "timestamp-millis"), INTEGERS),
    (logical("long", "timestamp-micros"), INTEGERS),
    *((enum, INTEGERS) for enum in ENUMS),
    ("boolean", [b"\x00", b"\x01", b"\x02", b"\x80\x00"]),
    ("string", [*sized(TEXTS), b"\x01", b"\x04a", b"\x80\x00", b"\x82\x00a"]),
    (logical("string", "uuid"), sized(UUIDS)),
    (logical("bytes", "decimal", precision=9), sized(DECIMALS)),
    (logical("fixed", "decimal", precision=9, name="D", size=20), [each for each in DECIMALS if len(each) == 20]),
]


@pytest.mark.parametrize(("type_", "values"), EDGES, ids=range(len(EDGES)))
def test_each_value_at_an_edge_is_judged_as_the_codec_judges_it(type_: Any, values: list[bytes]) -> None:
    """Wanted and passed by, in union with null and without, with bodies behind it and with none."""
    for is_nullable in (False, True):
        fields = [{"name": "a", "type": ["null", type_] if is_nullable else type_}, {"name": "b", "type": "boolean"}]
        schema = parse_schema(json.dumps({"type": "record", "name": "R", "fields": fields}))
        for value in values:
            body = (b"\x02" if is_nullable else b"") + value + b"\x01"
            for bodies in ([body], [body, *[(b"\x02" if is_nullable else b"") + values[0] + b"\x01"] * 9]):
                for path in ("a", "b"):
                    found = walked_columns(payloads_of(bodies), schema, [path])
                    expected, is_sound = by_codec(schema, bodies, [path])
                    assert (found is not None) == is_sound, (value.hex(), path)
                    if found is not None:
                        assert_same(found, expected)


def test_no_byte_is_read_outside_the_bodies() -> None:
    """They lie between two unreadable pages: the process would end."""
    pages = mmap.mmap(-1, 3 * mmap.PAGESIZE)
    start = ctypes.addressof(ctypes.c_char.from_buffer(pages))
    protect = ctypes.CDLL(None, use_errno=True).mprotect
    for page in (0, 2):
        assert protect(ctypes.c_void_p(start + page * mmap.PAGESIZE), mmap.PAGESIZE, 0) == 0
    between = memoryview(pages)[mmap.PAGESIZE : 2 * mmap.PAGESIZE]
    refused = 0
    for seed in range(400):
        rng, schema, bodies, paths = made(seed, 3)
        bodies = [damaged(rng, body) if rng.random() < 0.7 else body for body in bodies]
        together = b"".join(bodies)
        for body in (together, together[: rng.randint(1, max(1, len(together)))]):
            if not 0 < len(body) <= mmap.PAGESIZE:
                continue
            ends = np.minimum(np.cumsum([len(each) for each in bodies]), len(body))
            for at in (0, mmap.PAGESIZE - len(body)):
                between[at : at + len(body)] = body
                held = PackedPayloads(b"", 0, between[at : at + len(body)], ends, kernel())  # type: ignore[arg-type]
                refused += walked_columns(held, schema, paths) is None
    assert refused > 400


UNKNOWN = [
    "null",
    {"type": "array", "items": "int"},
    {"type": "map", "values": "int"},
    ["null", "int", "string"],
    ["null", "R"],
    {"type": "record", "name": "Empty", "fields": []},
]


@pytest.mark.parametrize("type_", UNKNOWN, ids=str)
def test_what_the_walk_does_not_know_is_left_to_the_codec(type_: Any) -> None:
    fields = [{"name": "a", "type": "int"}, {"name": "b", "type": type_}]
    schema = parse_schema(json.dumps({"type": "record", "name": "R", "fields": fields}))
    assert walked_columns(payloads_of([b"\x02"]), schema, ["a"]) is None


def test_what_was_loaded_compiles_nothing_more() -> None:
    """Compiling holds the interpreter's lock for seconds: all of it is done ahead."""
    from cortado.store.mvcc.kernel import bodies, groups

    schema = parse_schema(json.dumps({"type": "record", "name": "R", "fields": [{"name": "a", "type": "string"}]}))
    assert walked_columns(payloads_of([b"\x02a"] * 300), schema, ["a"]) is not None
    assert kernel().group([Walked(np.zeros(3), None, np.ones(3, np.bool_))], 3) is not None
    assert [len(each.signatures) for each in (bodies.walk, bodies.gather, groups.group)] == [1, 1, 1]


def test_a_record_as_a_whole_is_left_to_the_codec() -> None:
    inner = {"type": "record", "name": "I", "fields": [{"name": "x", "type": "int"}]}
    schema = parse_schema(json.dumps({"type": "record", "name": "R", "fields": [{"name": "a", "type": inner}]}))
    assert walked_columns(payloads_of([b"\x02"]), schema, ["a"]) is None
    assert walked_columns(payloads_of([b"\x02"]), schema, ["a.x"]) is not None
