"""Changes as Arrow record batches equal those of a watch, by column."""

from __future__ import annotations

import random
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest

from cortado.errors import InvalidArgument, NotFound
from cortado.store.client import Changed, Client, Deleted

pytestmark = pytest.mark.process

INNER = {"type": "record", "name": "Inner", "fields": [{"name": "of", "type": "string"}, {"name": "n", "type": "int"}]}
MONEY = {"type": "bytes", "logicalType": "decimal", "precision": 12, "scale": 2}
FIELDS: list[dict[str, Any]] = [
    {"name": "inner", "type": INNER},
    {"name": "id", "type": {"type": "string", "logicalType": "uuid"}},
    {"name": "day", "type": {"type": "int", "logicalType": "date"}},
    {"name": "at", "type": {"type": "long", "logicalType": "timestamp-micros"}},
    {"name": "price", "type": MONEY},
    {"name": "text", "type": ["null", "string"]},
    {"name": "flags", "type": {"type": "array", "items": "boolean"}},
]
KEY = ["inner.of", "id", "day", "at", "price"]


def schema(*more: dict[str, Any]) -> dict[str, Any]:
    return {"type": "record", "name": "R", "fields": [*FIELDS, *more]}


def row(draw: random.Random, **more: Any) -> dict[str, Any]:
    number = draw.randrange(6)
    return {
        "inner": {"of": f"o{number % 2}", "n": draw.randrange(9)},
        "id": UUID(int=number),
        "day": date(2020, 1, 1 + number),
        "at": datetime(2020, 1, 1, number, tzinfo=UTC),
        "price": Decimal(number) / 4,
        "text": draw.choice((None, "t")),
        "flags": [True] * number,
        **more,
    }


def key_of(document: dict[str, Any]) -> tuple[Any, ...]:
    return document["inner"]["of"], document["id"], document["day"], document["at"], document["price"]


def told_by_watch(table: Any, after: Any, until: Any) -> list[Any]:
    told = []
    with table.watch(after=after, until=until, with_previous=True) as watch:
        for event in watch:
            if isinstance(event, Changed):
                told.append(("put", key_of(event.value.value), event.value.value, event.ts, previous(event)))
            elif isinstance(event, Deleted):
                told.append(("delete", event.key, None, event.ts, previous(event)))
    return told


def previous(event: Any) -> Any:
    return None if event.previous is None else event.previous.value


def told_by_arrow(batches: list[pa.RecordBatch]) -> list[Any]:
    told = []
    for each in (each for batch in batches for each in batch.to_pylist()):
        op, stamp, moment, before = (each.pop(name) for name in ("_op", "_ts", "_commit_time", "_previous"))
        assert moment == datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=stamp["wall_ms"])
        told.append((op, as_key(each), each, stamp, before))
    return told


def as_key(each: dict[str, Any]) -> tuple[Any, ...]:
    of, id_, *rest = key_of(each)
    return of, as_uuid(id_), *rest


@pytest.mark.parametrize("batch_rows", [1, 7, 20_000])
def test_they_say_what_a_watch_says(client: Client, database: str, batch_rows: int) -> None:
    draw = random.Random(batch_rows)
    name = f"{database}.t"
    client.schemas.register(name, schema())
    client.create_table(name, KEY)
    began = client.now()
    table = client.table(name)
    for turn in range(40):
        if turn == 20:
            client.schemas.register(name, schema({"name": "late", "type": "long", "default": 5}))
        more = {} if turn < 21 else {"late": turn}
        if draw.random() < 0.3:
            table.delete(key_of(row(draw)))
        else:
            table.put_many([row(draw, **more)])
    until = client.now()
    table = client.table(name)
    wanted = told_by_watch(table, began, until)
    batches = list(table.changes_arrow(after=began, until=until, with_previous=True, batch_rows=batch_rows))
    assert len({str(batch.schema) for batch in batches}) == 1
    assert batch_rows > 1 or len(batches) > 5
    found = told_by_arrow(batches)
    assert [(op, key, (ts.epoch, ts.wall_ms, ts.logical)) for op, key, _, ts, _ in wanted] == [
        (op, key, (stamp["epoch"], stamp["wall_ms"], stamp["logical"])) for op, key, _, stamp, _ in found
    ]
    assert {op for op, *_ in found} == {"put", "delete"}
    for (op, _, document, _, before), (_, _, columns, _, was) in zip(wanted, found, strict=True):
        if op == "put":
            assert plain(columns) == plain(document)
        else:
            assert (columns["text"], columns["flags"], columns["late"], columns["inner"]["n"]) == (None,) * 4
        assert (None if was is None else plain(was)) == (None if before is None else plain(before))


def plain(document: dict[str, Any]) -> dict[str, Any]:
    return {**document, "id": as_uuid(document["id"])}


def as_uuid(id_: Any) -> UUID:
    return UUID(bytes=id_) if isinstance(id_, bytes) else UUID(str(id_))


def test_a_part_of_a_window_alone(client: Client, database: str) -> None:
    name = f"{database}.t"
    fields = [{"name": "id", "type": "long"}]
    client.schemas.register(name, {"type": "record", "name": "R", "fields": fields})
    client.create_table(name, ["id"])
    table = client.table(name)
    began = client.now()
    table.put_many({"id": number} for number in range(5_000))
    table.delete(7)
    window = table.window(after=began, parts=4)
    found = []
    for part in window.ranges:
        batches = table.changes_arrow(part.start, part.end, after=began, until=window.until)
        found.append([each for batch in batches for each in batch["id"].to_pylist()])
    assert [len(each) for each in found] == [part.changes for part in window.ranges]
    assert sorted(each for ids in found for each in ids) == sorted([*range(5_000), 7])
    assert list(table.changes_arrow(after=window.until, until=window.until)) == []


def test_what_is_asked_wrongly_is_refused(client: Client, database: str) -> None:
    name = f"{database}.t"
    fields = [{"name": "id", "type": "long"}, {"name": "_op", "type": "long"}]
    client.schemas.register(name, {"type": "record", "name": "R", "fields": fields})
    client.create_table(name, ["id"])
    table = client.table(name)
    with pytest.raises(InvalidArgument, match="_op"):
        list(table.changes_arrow(after=client.now(), until=client.now()))
    with pytest.raises(InvalidArgument, match="until"):
        list(table.changes_arrow(after=client.now(), until=None))
    with pytest.raises(NotFound):
        list(client.table(f"{database}.none").changes_arrow(after="0.0.0", until=client.now()))
