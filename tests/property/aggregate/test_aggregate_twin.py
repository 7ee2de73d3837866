"""Aggregates over columns, cut anywhere and merged by a client, against a dumb interpreter."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any
from uuid import UUID

import fastavro
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cortado.proto.v1 import common_pb2, documents_pb2
from cortado.schema.columnar.decode import decode_rows
from cortado.schema.parse import parse_document_schema
from cortado.store.aggregate import reduce
from cortado.store.aggregate.bind import Aggregate, Aggregation, Kind, bind_aggregates
from cortado.store.aggregate.partial import PartialGroups, piece_of
from cortado.store.client.aggregate_text import AggregateQuery, parse_aggregates
from cortado.store.client.aggregates import Groups, aggregates_to_proto
from cortado.store.mvcc.walks import ColumnKernel
from support.aggregate_twin import aggregate_by_hand, same
from support.kernels import column_kernels


def _decimal(precision: int, size: int = 0, name: str = "") -> dict[str, Any]:
    logical = {"logicalType": "decimal", "precision": precision, "scale": 2}
    return {"type": "fixed", "size": size, "name": name, **logical} if size else {"type": "bytes", **logical}


def _type(type_: str, logical: str) -> dict[str, Any]:
    return {"type": type_, "logicalType": logical}


ADDRESS = {"type": "record", "name": "Address", "fields": [
    {"name": "city", "type": ["null", "string"]}, {"name": "zip", "type": "int"}]}  # fmt: skip
INSTANTS = [datetime(1, 1, 1, tzinfo=UTC), datetime(1970, 1, 1, tzinfo=UTC), datetime(2013, 1, 1, 5, tzinfo=UTC)]
REALS = [0.0, -0.0, 1.5, -2.25, float("inf"), float("-inf"), float("nan")]
TEXTS = ["", "a", "a\0", "ab", "abcdefg", "abcdefgh", "abcdefghi", "é", "\U0001f600"]
TEXTS += ["x" * 64 + end for end in ("", "x", "y", "x" * 9)]
DIGITS = [Decimal("0.00"), Decimal("1.50"), Decimal("-1.50"), Decimal("0.01")]
LONG = Decimal("9" * 36 + ".99")
CENTURY = [Decimal(10) ** 60, -(Decimal(10) ** 60), Decimal("1.23")]

# By field: its type, and the values that documents have.
FIELDS: dict[str, tuple[Any, list[Any]]] = {
    "flag": ("boolean", [True, False]),
    "count": ("int", [0, 1, -1, 7, 2**31 - 1, -(2**31)]),
    "total": ("long", [0, 1, -1, 10**6, 2**53 + 1, 2**58, -(2**58)]),
    "small": ("float", REALS),
    "ratio": ("double", [*REALS, 1e15, 0.1]),
    "name": ("string", TEXTS),
    "colour": ({"type": "enum", "name": "Colour", "symbols": ["RED", "GREEN", "BLUE"]}, ["RED", "GREEN", "BLUE"]),
    "raw": ("bytes", [b"", b"\x00", b"\x00\x00", b"\x7f", b"\x80", b"\xff" * 9, b"\xff" * 8]),
    "code": ({"type": "fixed", "size": 2, "name": "Code"}, [b"\x00\x00", b"\xff\xff", b"ab"]),
    "price": (_decimal(9), DIGITS),
    "cost": (_decimal(9, 7, "Cost"), DIGITS),
    "worth": (_decimal(38), [*DIGITS, Decimal("123456789012345678901234567890.12"), -LONG / 10**9]),
    "huge": (_decimal(70), [*DIGITS, *CENTURY]),
    "id": (_type("string", "uuid"), [UUID(int=0), UUID(int=2**128 - 1), UUID(int=2**127)]),
    "day": (_type("int", "date"), [date(1, 1, 1), date(1970, 1, 1), date(9999, 12, 31)]),
    "at": (_type("long", "timestamp-micros"), INSTANTS),
    "at_ms": (_type("long", "timestamp-millis"), INSTANTS),
    "at_ns": (_type("long", "timestamp-nanos"), [0, 5, -(10**17)]),
    "local": (_type("long", "local-timestamp-micros"), [each.replace(tzinfo=None) for each in INSTANTS]),
    "clock": (_type("int", "time-millis"), [time(0), time(23, 59, 59)]),
    "address": (ADDRESS, [{"city": city, "zip": place} for city in (None, "Oslo") for place in (1, 2)]),
    "tags": ({"type": "array", "items": "string"}, [[], ["a"]]),
    "either": (["null", "int", "string"], [None, 1, "a"]),
    "nothing": ("null", [None]),
}  # fmt: skip
NEVER_NULL = {"count", "flag", "either", "nothing"}
SCHEMA = {"type": "record", "name": "Row", "fields": [
    {"name": name, "type": type_ if name in NEVER_NULL else ["null", type_]} for name, (type_, _) in FIELDS.items()
]}  # fmt: skip
PARSED = parse_document_schema(json.dumps(SCHEMA))
AVRO = fastavro.parse_schema(SCHEMA)
SCALES = {"price": 2, "cost": 2, "worth": 2, "huge": 2}

ANY = [*FIELDS, "address.city", "address.zip"]
ORDERED = [name for name in ANY if name not in ("address", "tags", "either", "nothing")]
SUMMED = ["count", "total", "small", "ratio", "price", "cost", "worth", "address.zip"]
ASKED = st.one_of(
    st.just(("count", "")),
    st.tuples(st.just("count"), st.sampled_from(ANY)),
    st.tuples(st.sampled_from(["min", "max"]), st.sampled_from(ORDERED)),
    st.tuples(st.sampled_from(["sum", "avg"]), st.sampled_from(SUMMED)),
)
DOCUMENTS = st.fixed_dictionaries(
    {name: st.sampled_from(values if name in NEVER_NULL else [None, *values]) for name, (_, values) in FIELDS.items()}
)


@given(
    st.lists(DOCUMENTS, max_size=16),
    st.lists(ASKED, min_size=1, max_size=6, unique=True),
    st.lists(st.sampled_from(ORDERED), max_size=3, unique=True),
    st.data(),
)
def test_aggregates_are_those_of_the_dumb_interpreter_wherever_rows_are_cut(
    documents: list[dict[str, Any]], asked: list[tuple[str, str]], group_by: list[str], data: st.DataObject
) -> None:
    cuts = sorted(data.draw(st.lists(st.integers(0, len(documents)), max_size=3)))
    leaves = data.draw(st.lists(st.booleans(), min_size=len(cuts) + 1, max_size=len(cuts) + 1))
    pieces = [documents[start:end] for start, end in zip([0, *cuts], [*cuts, len(documents)], strict=True)]
    check(pieces, asked, group_by, leaves)


def check(
    pieces: Sequence[list[dict[str, Any]]],
    asked: Sequence[tuple[str, str]],
    group_by: Sequence[str],
    leaves: Sequence[bool],
) -> None:
    text = ", ".join(f"{kind}({path or '*'})" for kind, path in asked)
    query = parse_aggregates(text, list(group_by))
    assert [(each.kind, each.field) for each in query.aggregates] == list(asked)
    bound = bind_aggregates(PARSED, group_by, [Aggregate(Kind(kind), path) for kind, path in asked], "shop.rows")
    theirs = aggregate_by_hand([each for piece in pieces for each in piece], asked, group_by, SCALES)
    for kernel in column_kernels():
        groups = Groups(query)
        for reply in _replies(bound, pieces, leaves, kernel):
            groups._add(reply)
        ours = {tuple(row[name] for name in group_by): [row[f"{kind}({path or '*'})"] for kind, path in asked]
                for row in groups.rows()}  # fmt: skip
        assert {_shown(key) for key in ours} == {_shown(key) for key in theirs}
        by_key = {_shown(key): values for key, values in theirs.items()}
        for key, values in ours.items():
            for (kind, path), mine, dumb in zip(asked, values, by_key[_shown(key)], strict=True):
                assert same(mine, dumb), (kind, path, key, mine, dumb)


def _shown(key: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return a key by which NaN equals itself, 1 is no True, and there is no second zero."""
    return tuple((type(each), str(each) if isinstance(each, float) else each) for each in key)


def _replies(
    bound: Aggregation, pieces: Sequence[list[dict[str, Any]]], leaves: Sequence[bool], kernel: ColumnKernel | None
) -> Iterator[documents_pb2.AggregateResponse]:
    partial = PartialGroups(bound)
    partial.kernel = kernel
    for piece, leave in zip(pieces, leaves, strict=True):
        if piece:
            bodies, lengths = encode(piece)
            columns = decode_rows(PARSED, bodies, lengths, columns=bound.paths).columns
            partial.add(piece_of(bound, columns, len(piece), kernel))
        if leave:
            yield reply_of(bound, partial)
    yield reply_of(bound, partial)


def reply_of(bound: Aggregation, partial: PartialGroups) -> documents_pb2.AggregateResponse:
    bodies, lengths = partial.take()
    return documents_pb2.AggregateResponse(
        groups=common_pb2.RowBatch(bodies=bodies, lengths=lengths.astype("<u4").tobytes()),
        groups_schema=bound.groups_schema.text,
        result_schema=bound.result_schema.text,
    )


def encode(documents: Sequence[dict[str, Any]]) -> tuple[bytes, np.ndarray[Any, Any]]:
    bodies = []
    for document in documents:
        out = io.BytesIO()
        fastavro.schemaless_writer(out, AVRO, document)
        bodies.append(out.getvalue())
    return b"".join(bodies), np.array([len(body) for body in bodies], np.uint32)


def test_the_same_aggregate_asked_twice_is_worked_out_once() -> None:
    query: AggregateQuery = parse_aggregates("avg(count) as a, avg(count) as b, count(*)")
    assert len(aggregates_to_proto(query)) == 2


FIRST = {name: values[0] for name, (_, values) in FIELDS.items()}


@pytest.mark.parametrize("name", FIELDS)
def test_every_value_of_every_type_beside_every_other(name: str) -> None:
    values = FIELDS[name][1] if name in NEVER_NULL else [None, *FIELDS[name][1]]
    # Each pair of values is a group: by place of the one, and by whether the other is before or behind it.
    pairs = [
        [{**FIRST, "at_ns": number, name: value} for value in pair]
        for number, pair in enumerate((one, other) for one in values for other in values)
    ]
    paths = [path for path in ANY if path.split(".")[0] == name]
    asked = [("count", ""), *(("count", path) for path in paths)]
    asked += [(kind, path) for path in paths for kind in ("min", "max") if path in ORDERED]
    asked += [(kind, path) for path in paths for kind in ("sum", "avg") if path in SUMMED]
    together = [document for pair in pairs for document in pair]
    if name != "at_ns":
        check([together], asked, ["at_ns"], [True])
        check([[pair[0] for pair in pairs], [pair[1] for pair in pairs]], asked, ["at_ns"], [True, False])
    check([together], asked, [], [False])
    for path in paths:
        if path in ORDERED:
            check([together, together[:3]], asked, [path], [False, False])
            check([together, together[:3]], asked, [path, "code"] if path != "code" else ["code"], [True, False])


@pytest.mark.parametrize("factors", [(), (0, 0), (0, 0x9E3779B97F4A7C15)], ids=["none", "alike", "at last"])
def test_values_that_share_a_hash_are_told_apart(factors: tuple[int, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reduce, "_FACTORS", tuple(map(np.uint64, factors)))
    documents = [
        {**FIRST, "name": name, "total": total}
        for name in [None, *FIELDS["name"][1]]
        for total in [None, *FIELDS["total"][1]]
    ]
    for group_by in (["name"], ["total"], ["name", "total"], ["total", "ratio", "name"]):
        check(
            [documents, documents[::3], documents[5:]], [("count", ""), ("min", "name")], group_by, [True, False, False]
        )


@pytest.mark.parametrize("name", ["small", "ratio"])
def test_there_is_no_negative_zero(name: str) -> None:
    asked = [(kind, name) for kind in ("sum", "avg", "min", "max")]
    for group_by in ([], ["flag"], [name]):
        check([[{**FIRST, name: -0.0}], [{**FIRST, name: -0.0}] * 2], asked, group_by, [True, False])
