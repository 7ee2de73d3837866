"""Chunks that the kernel packs beside the way through lists: equal items, entries, replies and errors."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cortado.errors import CortadoError
from cortado.schema.documents import encode_document
from cortado.schema.parse import parse_schema
from cortado.store.catalog.declare import IndexDeclaration, alter_table
from cortado.store.clock.timestamp import Timestamp
from cortado.store.mvcc.evaluation import Evaluation
from cortado.store.mvcc.expiry import Expiry
from cortado.store.mvcc.packed_rows import PackedWrite
from cortado.store.mvcc.row_maker import RowMaker
from cortado.store.replica.group_range import META_GROUP
from cortado.store.replica.write.batch import Batch
from cortado.store.replica.write.log_entry import command_bytes
from cortado.store.tables.bulk import evaluate_bulk
from cortado.store.tables.chunk import prepare_chunk
from cortado.store.tables.operations import AvroRows, BulkChunk, BulkMode, JsonRows
from cortado.store.tables.packed_chunk import PACK_FROM, PackedChunk, pack_chunk
from support.avro_random import SchemaMaker, ValueMaker, damaged
from support.kernels import row_kernel
from support.table_world import DATABASE, TableWorld, avro_rows, index

SEEDS = st.integers(0, 2**32 - 1)
AT: Final = Timestamp(0, 5_000, 7)
TEXTS: Final = ["", "a", "a\0", "\0\0b", "ä\0ö", "日本語", "0123456789abcdef", "0123456\0abcdef", "\x01\xff"]

Make = Callable[[random.Random, int], Any]

LAID: Final[dict[str, tuple[Any, Make]]] = {
    "long": ("long", lambda rng, row: rng.choice([row, -row, row << 40, -(2**63) + row, 2**63 - 1 - row])),
    "int": ("int", lambda rng, row: rng.choice([row, -row, 2**31 - 1 - row])),
    "string": ("string", lambda rng, row: f"{rng.choice(TEXTS)}{row}{rng.choice(TEXTS)}"),
    "bytes": ("bytes", lambda rng, row: b"%d" % row + rng.randbytes(rng.randrange(12)).replace(b"\5", b"\0")),
    "boolean": ("boolean", lambda rng, _: rng.random() < 0.5),
    "double": ("double", lambda rng, row: rng.choice([row / 3, -row / 7, 0.0, -0.0, float("nan"), float("-inf")])),
    "float": ("float", lambda rng, row: rng.choice([row / 4, -row / 4, 0.0, -0.0])),
    "date": ({"type": "int", "logicalType": "date"}, lambda rng, row: date(1970, 1, 1) + timedelta(row * 7 - 900)),
    "millis": (
        {"type": "long", "logicalType": "timestamp-millis"},
        lambda rng, row: datetime(1969, 12, 31, tzinfo=UTC) + timedelta(milliseconds=row * 99_999),
    ),
    "micros": (
        {"type": "long", "logicalType": "timestamp-micros"},
        lambda rng, row: datetime(1969, 12, 31, tzinfo=UTC) + timedelta(microseconds=row),
    ),
    "uuid": (
        {"type": "fixed", "name": "U", "size": 16, "logicalType": "uuid"},
        lambda rng, row: UUID(int=rng.getrandbits(100) << 20 | row),
    ),
}
"""Types of keys that the kernel lays: a declaration, and a value for a row."""
LEFT: Final[dict[str, tuple[Any, Make]]] = {
    "text of a uuid": ({"type": "string", "logicalType": "uuid"}, lambda rng, row: UUID(int=row)),
    "enum": ({"type": "enum", "name": "E", "symbols": ["B", "A"]}, lambda rng, row: rng.choice("AB")),
    "decimal": ({"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 0}, lambda rng, row: Decimal(row)),
}
"""Types of keys that are left to the other way."""
UNIQUE: Final = ["long", "int", "string", "bytes", "date", "millis", "micros", "uuid"]


def maker() -> RowMaker:
    return row_kernel().row_maker


class Made:
    """A table with a random schema and key, and rows for it."""

    def __init__(self, rng: random.Random, kinds: list[str], rows: int, indexed: Sequence[str] = ()) -> None:
        self.rng = rng
        known = LAID | LEFT
        declared = SchemaMaker(rng, recursive=False).record(2)
        if indexed and rng.random() < 0.7:
            # Most random records have a field that the kernel does not know.
            declared["fields"] = []
        types = [known[kind][0] for kind in kinds]
        # A name is declared once.
        types = [each | {"name": f"N{place}"} if "name" in each else each for place, each in enumerate(types)]
        of_key = [{"name": f"k{place}", "type": each} for place, each in enumerate(types)]
        self.fields = [*declared["fields"], *of_key]
        self.nullable = {f"i{place}": rng.random() < 0.5 for place in range(len(indexed))}
        for place, kind in enumerate(indexed):
            type_ = LAID[kind][0] | {"name": f"I{place}"} if "name" in LAID[kind][0] else LAID[kind][0]
            self.fields.append({"name": f"i{place}", "type": ["null", type_] if self.nullable[f"i{place}"] else type_})
        rng.shuffle(self.fields)
        self.schema = {"type": "record", "name": "T", "fields": self.fields}
        self.schema_id = 0
        """The schema that wrote the rows, if it is not the newest."""
        self.world = TableWorld()
        key = [f"k{place}{rng.choice(['', ' desc'])}" for place in range(len(kinds))]
        self.world.create("t", self.schema, rng.sample(key, len(key)), self.indexes(len(kinds), len(indexed)))
        self.parsed = parse_schema(json.dumps(self.schema))
        self.values = ValueMaker(rng)
        numbers = list(range(1, rows + 1))
        if rng.random() < 0.7:
            rng.shuffle(numbers)
        sample = [self.values.value(self.parsed.record) for _ in range(8)]
        self.bodies = [
            self.body(
                rng.choice(sample)
                | {f"k{place}": known[kind][1](rng, row) for place, kind in enumerate(kinds)}
                | {f"i{place}": self.indexed(f"i{place}", kind, row) for place, kind in enumerate(indexed)}
            )
            for row in numbers
        ]

    def indexes(self, keys: int, fields: int) -> list[IndexDeclaration]:
        """Return up to three indexes of these fields, and of the key's."""
        if not fields:
            return []
        paths = [*(f"k{place}" for place in range(keys)), *(f"i{place}" for place in range(fields))]
        return [
            index(
                f"by_{number}",
                *(path + self.rng.choice(["", " desc"]) for path in self.rng.sample(paths, self.rng.randint(1, 2))),
                unique=self.rng.random() < 0.4,
            )
            for number in range(self.rng.randint(1, 3))
        ]

    def indexed(self, field: str, kind: str, row: int) -> object:
        """Return a value of an indexed field: mostly another one for each row."""
        if self.nullable[field] and self.rng.random() < 0.3:
            return None
        return LAID[kind][1](self.rng, row % 50 if self.rng.random() < 0.001 else row)

    def body(self, document: dict[str, Any]) -> bytes:
        return encode_document(self.parsed, document)

    def chunk(
        self, mode: BulkMode = BulkMode.UPSERT, since: Timestamp | None = None, expiry: Expiry | None = None
    ) -> BulkChunk:
        rows = avro_rows(self.schema_id or self.world.view("t").newest_id, self.bodies)
        return BulkChunk(DATABASE, "t", rows, mode, since, expiry)

    def expire(self, ttl_ms: int) -> None:
        """Let rows of the table that are written from now on expire."""
        self.world.store.write(lambda reader, _: alter_table(self.world.catalog(reader), DATABASE, "t", ttl_ms=ttl_ms))


def some(seed: int) -> Made:
    """Return a table with one to three parts in its key, one of them unique, mostly all laid by the kernel."""
    rng = random.Random(seed)
    kinds = [rng.choice(UNIQUE), *rng.choices(list(LAID), k=rng.randrange(3))]
    return Made(rng, kinds, rng.choice([PACK_FROM, 65, 200, 257, 600]))


def some_indexed(seed: int) -> Made:
    """Return such a table with indexes, mostly all laid by the kernel."""
    rng = random.Random(seed)
    kinds = [rng.choice(UNIQUE), *rng.choices(list(LAID), k=rng.randrange(2))]
    return Made(rng, kinds, rng.choice([PACK_FROM, 65, 200, 257]), rng.choices(UNIQUE, k=rng.randint(1, 3)))


WIDER: Final = {"int": "long", "float": "double", "string": "bytes"}
"""Types that a newer version may have in the place of others."""


def some_older(seed: int) -> Made:
    """Return such a table with indexes, and rows that an older version of its schema wrote."""
    made = some_indexed(seed)
    rng, kept = made.rng, made.fields
    if rng.random() < 0.7:
        kept = [each for each in made.fields if each["name"][0] in "ki"]
    newer: list[dict[str, Any]] = []
    for each in kept:
        is_plain = isinstance(each["type"], str) and each["name"][0] in "ki" and rng.random() < 0.5
        newer.append(each | {"type": WIDER.get(each["type"], each["type"])} if is_plain else each)
    newer.append({"name": "added", "type": "string", "default": "none\0"})
    newer.append({"name": "perhaps", "type": ["null", "long"], "default": None})
    rng.shuffle(newer)
    table = made.world.view("t").table
    key = [part.path + " desc" * part.descending for part in table.key]
    indexes = [
        index(each.name, *(part.path + " desc" * part.descending for part in each.parts), unique=each.unique)
        for each in table.indexes
    ]
    indexes += [index("by_added", "added", "perhaps")] if rng.random() < 0.5 else []
    made.world = TableWorld()
    made.schema_id = made.world.register("t", made.schema)
    made.world.create("t", made.schema | {"fields": newer}, key, indexes)
    return made


def entry_of(evaluation: Evaluation) -> bytes:
    """Return the bytes of an entry with this command alone."""
    batch = Batch(META_GROUP.segment)
    items = batch.add(AT, evaluation, command_bytes(evaluation))
    keys = [key for key, _ in items]
    entry = batch.entry(3, 2)
    assert sorted(keys) == [key for key, _ in entry.items]
    return entry.encode()


def told(made: Made, chunk: BulkChunk, prepared: PackedChunk | None) -> object:
    """Return the entry, the reply and the size of the chunk's evaluation, or its refusal."""
    try:
        evaluation = evaluate_bulk(made.world.store.snapshot(), AT, made.world.catalog(), chunk, prepared)
    except CortadoError as refusal:
        return type(refusal), str(refusal)
    return entry_of(evaluation), repr(evaluation.reply), command_bytes(evaluation)


def packed_of(made: Made, chunk: BulkChunk) -> PackedChunk | None:
    try:
        return pack_chunk(made.world.catalog(), chunk, maker())
    except CortadoError:
        return None


def assert_alike(made: Made, chunk: BulkChunk) -> bool:
    """Compare both ways; return whether the kernel packed the chunk."""
    packed = packed_of(made, chunk)
    by_lists = told(made, chunk, None)
    assert told(made, chunk, packed) == by_lists
    if packed is not None:
        prepared = prepare_chunk(made.world.catalog(), chunk)
        assert not prepared.errors, "the kernel takes a chunk of which every row is good"
    return packed is not None


@given(SEEDS)
@settings(max_examples=60)
def test_a_packed_chunk_makes_the_bytes_that_lists_make(seed: int) -> None:
    made = some(seed)
    assert_alike(made, made.chunk())


@pytest.mark.parametrize("kind", LAID)
def test_each_type_of_key_is_laid_by_the_kernel(kind: str) -> None:
    """Else the tests beside this one would compare a way with itself."""
    rng = random.Random(kind)
    made = Made(rng, ["long", kind], 300)
    made.schema["fields"] = made.fields = [each for each in made.fields if each["name"].startswith("k")]
    made.world = TableWorld()
    made.world.create("t", made.schema, ["k1 desc", "k0"])
    made.parsed = parse_schema(json.dumps(made.schema))
    made.bodies = [made.body({"k0": row, "k1": LAID[kind][1](rng, row)}) for row in rng.sample(range(999), 300)]
    assert assert_alike(made, made.chunk())


def is_used(made: Made, chunk: BulkChunk) -> bool:
    """Compare both ways; return whether the chunk was packed, and written as it was packed."""
    if not assert_alike(made, chunk):
        return False
    given_ = packed_of(made, chunk)
    evaluation = evaluate_bulk(made.world.store.snapshot(), AT, made.world.catalog(), chunk, given_)
    return isinstance(evaluation.mutations, PackedWrite)


@given(SEEDS, st.sampled_from([BulkMode.UPSERT, BulkMode.INSERT]), st.booleans(), st.sampled_from([0, 0, 1, 3]))
@settings(max_examples=120)
def test_rows_and_entries_of_a_table_with_indexes_are_the_bytes_that_lists_make(
    seed: int, mode: BulkMode, is_job: bool, stored: int
) -> None:
    made = some_indexed(seed)
    made.expire(made.rng.choice([0, 0, 77_000]))
    expiry = made.rng.choice([None, None, Expiry(), Expiry(5_000), Expiry(at_ms=9_000_000)])
    chunk, all_bodies = made.chunk(mode, made.world.store.now if is_job else None, expiry), made.bodies
    made.bodies = made.rng.sample(all_bodies, stored)
    if stored:
        made.world.bulk_rows(made.chunk())
    made.bodies = all_bodies
    if made.rng.random() < 0.1:
        made.bodies[9] = made.bodies[3]
    if made.rng.random() < 0.1:
        made.bodies[7] = damaged(made.rng, made.bodies[7])
    assert_alike(made, chunk)
    assert_alike(made, made.chunk(mode))


@given(SEEDS, st.booleans())
@settings(max_examples=120)
def test_rows_of_an_older_version_are_the_bytes_that_lists_make(seed: int, is_damaged: bool) -> None:
    made = some_older(seed)
    if is_damaged:
        made.bodies[7] = damaged(made.rng, made.bodies[7])
    assert_alike(made, made.chunk())


@pytest.mark.parametrize("wider", WIDER)
def test_rows_of_an_older_version_are_packed_with_wider_fields_and_defaults(wider: str) -> None:
    rng = random.Random(wider)
    fields = [{"name": "k0", "type": "long"}, {"name": "n", "type": wider}, {"name": "gone", "type": "string"}]
    made = of_fields(fields, [{"k0": row, "n": LAID[wider][1](rng, row), "gone": "x"} for row in range(100)])
    later = [{"name": "added", "type": "string", "default": "yes"}, {"name": "n", "type": WIDER[wider]}, fields[0]]
    made.world = TableWorld()
    made.schema_id = made.world.register("t", made.schema)
    indexes = [index("by_n", "n desc", "added"), index("by_added", "added", "k0", unique=True)]
    made.world.create("t", made.schema | {"fields": later}, ["k0"], indexes)
    assert is_used(made, made.chunk())


@pytest.mark.parametrize("is_unique", [False, True])
@pytest.mark.parametrize("nulls", [0, 1, 50, 100])
@pytest.mark.parametrize("kind", UNIQUE)
def test_each_type_of_indexed_field_is_laid_by_the_kernel(kind: str, nulls: int, is_unique: bool) -> None:
    """Else the tests beside this one would compare a way with itself."""
    rng = random.Random(kind)
    fields = [{"name": "k0", "type": "string"}, {"name": "n", "type": ["null", LAID[kind][0]], "default": None}]
    documents: list[dict[str, Any]] = [
        {"k0": f"{row}\0", "n": None if row < nulls else LAID[kind][1](rng, row)} for row in range(100)
    ]
    rng.shuffle(documents)
    made = of_fields(fields, documents, [index("a", "n", unique=is_unique), index("b", "n desc", "k0")])
    assert is_used(made, made.chunk())
    made.world.bulk_rows(made.chunk())
    other = of_fields(fields, [{"k0": f"x{row}", "n": documents[row]["n"]} for row in range(100)])
    made.bodies = other.bodies
    assert is_used(made, made.chunk()) == (not is_unique or nulls == 100), "other rows have the same unique values"


def test_a_unique_value_that_comes_twice_is_judged_alike() -> None:
    fields = [{"name": "k0", "type": "long"}, {"name": "n", "type": ["null", "int"], "default": None}]
    for values, is_written in (([*range(99), None], True), ([*range(98), None, None], True), ([*range(99), 5], False)):
        documents = [{"k0": row, "n": value} for row, value in enumerate(values)]
        made = of_fields(fields, documents, [index("by_n", "n", unique=True)])
        assert is_used(made, made.chunk()) == is_written


def test_an_entry_at_its_bound_and_beyond_is_refused_alike() -> None:
    fields = [{"name": "k0", "type": "long"}, {"name": "s", "type": "string"}]
    for size, is_written in ((477, True), (478, False)):
        made = of_fields(fields, [{"k0": row, "s": "x" * size} for row in range(100)], [index("by_s", "s")])
        assert is_used(made, made.chunk()) == is_written, size


@pytest.mark.parametrize("indexes", [[], [index("by_n", "n"), index("one_n", "n", unique=True)]], ids=len)
def test_rows_that_expire_are_packed(indexes: list[IndexDeclaration]) -> None:
    fields = [{"name": "k0", "type": "long"}, {"name": "n", "type": "int"}]
    made = of_fields(fields, [{"k0": row, "n": row} for row in range(100)], indexes)
    for ttl_ms, expiry in ((0, Expiry(9)), (9, None), (9, Expiry()), (9, Expiry(at_ms=1 << 40))):
        made.expire(ttl_ms)
        chunk = made.chunk(expiry=expiry)
        assert is_used(made, chunk)
        evaluation = evaluate_bulk(made.world.store.snapshot(), AT, made.world.catalog(), chunk, packed_of(made, chunk))
        assert bool(evaluation.mutations.expiries) == (expiry != Expiry())


def test_an_index_that_is_being_built_is_kept_alike() -> None:
    fields = [{"name": "k0", "type": "long"}, {"name": "n", "type": "int"}]
    for is_unique in (False, True):
        made = of_fields(fields, [{"k0": row, "n": row} for row in range(100)])
        made.world.bulk_rows(made.chunk())
        made.world.begin_index("t", index("by_n", "n", unique=is_unique))
        made.bodies = [made.body({"k0": 100 + row, "n": 50 + row}) for row in range(100)]
        assert is_used(made, made.chunk()), "no row has its entry yet"
        made.world.bulk_rows(made.chunk())
        made.bodies = [made.body({"k0": 200 + row, "n": 149 + row}) for row in range(100)]
        assert is_used(made, made.chunk()) == (not is_unique), "it cannot be built"


@given(SEEDS, st.sampled_from(list(LEFT)))
@settings(max_examples=20)
def test_a_chunk_with_another_type_of_key_goes_through_lists(seed: int, kind: str) -> None:
    made = Made(random.Random(seed), ["long", kind], PACK_FROM)
    assert not assert_alike(made, made.chunk())


@given(SEEDS)
@settings(max_examples=60)
def test_a_damaged_row_is_refused_alike(seed: int) -> None:
    made = some(seed)
    for _ in range(made.rng.choice([1, 1, 3])):
        place = made.rng.randrange(len(made.bodies))
        made.bodies[place] = damaged(made.rng, made.bodies[place])
    assert_alike(made, made.chunk())


@given(SEEDS)
@settings(max_examples=20)
def test_a_key_that_comes_twice_is_written_as_its_later_row(seed: int) -> None:
    made = some(seed)
    first, second = made.rng.sample(range(len(made.bodies)), 2)
    made.bodies[second] = made.bodies[first]
    assert not assert_alike(made, made.chunk())


@given(SEEDS, st.sampled_from([BulkMode.UPSERT, BulkMode.INSERT]), st.booleans(), st.integers(0, 3))
@settings(max_examples=60)
def test_rows_that_are_there_are_judged_alike(seed: int, mode: BulkMode, is_job: bool, stored: int) -> None:
    made = some(seed)
    since = made.world.store.now
    chunk = made.chunk(mode, since if is_job else None)
    all_bodies = made.bodies
    made.bodies = made.rng.sample(all_bodies, stored)
    if stored:
        made.world.bulk_rows(made.chunk())
    made.bodies = all_bodies
    assert_alike(made, chunk)


@pytest.mark.parametrize("sizes", [[3], [-1, 1], [0], [1 << 32], [1 << 31]], ids=str)
def test_lengths_that_do_not_fit_the_bodies_are_refused_alike(sizes: list[int]) -> None:
    made = some(7)
    rows = made.chunk().rows
    assert isinstance(rows, AvroRows)
    lengths = list(map(len, made.bodies))
    for place, size in enumerate(sizes):
        lengths[place] = size % (1 << 32) if abs(size) > 3 or size == 0 else lengths[place] + size
    packed = b"".join(each.to_bytes(4, "little") for each in lengths)
    for wrong in (packed, rows.lengths[:-4], rows.lengths[:-1], rows.lengths + bytes(4), rows.lengths * 200, b""):
        chunk = BulkChunk(DATABASE, "t", AvroRows(rows.schema_id, rows.bodies, wrong))
        assert_alike(made, chunk)


def test_a_key_and_a_row_at_their_bounds_and_beyond_are_refused_alike() -> None:
    for size, is_packed in ((490, True), (491, False), (245, True), (246, True), (1 << 19, False)):
        made = of_fields([{"name": "k0", "type": "string"}], [{"k0": str(row)} for row in range(100)])
        made.bodies[50] = made.body({"k0": "x" * size})
        assert assert_alike(made, made.chunk()) == is_packed, size
        made.bodies[50] = made.body({"k0": "\0" * size})
        assert assert_alike(made, made.chunk()) == (size == 245), size


def of_fields(
    fields: list[dict[str, Any]], documents: list[dict[str, Any]], indexes: Sequence[IndexDeclaration] = ()
) -> Made:
    """Return a table of these fields alone, with the key k0."""
    made = Made(random.Random(1), ["long"], 2)
    made.schema["fields"] = made.fields = fields
    made.world = TableWorld()
    made.world.create("t", made.schema, ["k0"], indexes)
    made.parsed = parse_schema(json.dumps(made.schema))
    made.bodies = [made.body(each) for each in documents]
    return made


@pytest.mark.parametrize("kind", UNIQUE)
def test_a_null_in_the_key_is_refused_alike(kind: str) -> None:
    rng = random.Random(5)
    documents: list[dict[str, Any]] = [{"k0": LAID[kind][1](rng, row)} for row in range(100)]
    for null, is_packed in ((None, True), (0, False), (50, False), (99, False)):
        if null is not None:
            documents[null] = {"k0": None}
        made = of_fields([{"name": "k0", "type": ["null", LAID[kind][0]]}], documents)
        assert assert_alike(made, made.chunk()) == is_packed


def test_a_row_above_its_bound_is_refused_alike() -> None:
    made = of_fields(
        [{"name": "k0", "type": "long"}, {"name": "s", "type": "string"}], [{"k0": row, "s": ""} for row in range(100)]
    )
    for size, is_packed in (((1 << 20) - 5, True), ((1 << 20) - 4, False)):
        made.bodies[50] = b"\x82\x10" + varint(size) + b"x" * size
        assert len(made.bodies[50]) == size + 5
        assert assert_alike(made, made.chunk()) == is_packed


@pytest.mark.parametrize(("rows", "size"), [(10_001, 1), (PACK_FROM, 70_000)])
def test_a_chunk_above_its_bounds_is_refused_alike(rows: int, size: int) -> None:
    fields = [{"name": "k0", "type": "long"}, {"name": "s", "type": "string"}]
    made = of_fields(fields, [{"k0": row, "s": "x" * size} for row in range(rows)])
    assert not assert_alike(made, made.chunk())


def varint(size: int) -> bytes:
    """Return a length as Avro has it."""
    left, out = 2 * size, bytearray()
    while left > 0x7F:
        out.append(left & 0x7F | 0x80)
        left >>= 7
    return bytes([*out, left])


def test_only_plain_chunks_are_packed() -> None:
    made = of_fields([{"name": "k0", "type": "long"}], [{"k0": row} for row in range(PACK_FROM)])
    plain = made.chunk()
    rows = plain.rows
    assert assert_alike(made, plain)
    assert isinstance(rows, AvroRows)
    few = BulkChunk(DATABASE, "t", avro_rows(rows.schema_id, made.bodies[1:]))
    others = [
        few,
        BulkChunk(DATABASE, "t", JsonRows(["{}"] * PACK_FROM)),
        BulkChunk(DATABASE, "t", rows, BulkMode.REPLACE),
        BulkChunk(DATABASE, "t", rows, BulkMode.UPDATE, columns=("k0",)),
        BulkChunk(DATABASE, "t", rows, columns=("k0",)),
        BulkChunk(DATABASE, "t", AvroRows(rows.schema_id + 9, rows.bodies, rows.lengths)),
    ]
    for chunk in others:
        assert not assert_alike(made, chunk)


def test_a_table_with_a_new_index_or_another_newest_schema_takes_no_chunk_that_was_packed_before() -> None:
    fields = [{"name": "k0", "type": "long"}, {"name": "n", "type": "int"}]
    world = TableWorld()
    world.create("t", {"type": "record", "name": "T", "fields": fields}, ["k0"])
    documents = [{"k0": row, "n": row} for row in range(100)]
    chunk = BulkChunk(DATABASE, "t", world.rows("t", documents))
    packed = pack_chunk(world.catalog(), chunk, maker())
    assert packed is not None
    world.begin_index("t", index("by_n", "n"))
    evaluation = evaluate_bulk(world.store.snapshot(), AT, world.catalog(), chunk, packed)
    assert not isinstance(evaluation.mutations, PackedWrite), "it was packed without the index"
    packed = pack_chunk(world.catalog(), chunk, maker())
    assert packed is not None
    later = [*fields, {"name": "m", "type": ["null", "int"], "default": None}]
    world.register("t", {"type": "record", "name": "T", "fields": later})
    evaluation = evaluate_bulk(world.store.snapshot(), AT, world.catalog(), chunk, packed)
    assert not isinstance(evaluation.mutations, PackedWrite), "it was packed for another newest schema"
