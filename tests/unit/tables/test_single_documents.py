"""One document at a time: put, get, update, delete, their conditions and refusals."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from cortado.errors import (
    ConditionFailed,
    InvalidArgument,
    InvalidDocument,
    KeyTooLong,
    NotFound,
    TooLarge,
    UniqueViolation,
)
from cortado.schema.compatibility import CompatibilityMode
from cortado.store.catalog.registry import set_compatibility
from cortado.store.clock.timestamp import Timestamp
from cortado.store.mvcc.evaluation import Absent, EtagIs, Present
from cortado.store.mvcc.expiry import NEVER, Expiry
from cortado.store.tables import read
from cortado.store.tables.operations import AvroDocument, Delete, JsonDocument, Put, PutMode, Update, Updated
from support.orders import ORDER, ORDER_V2, address, create_orders, order
from support.table_world import DATABASE, TableWorld


@pytest.fixture
def world() -> TableWorld:
    world = TableWorld()
    create_orders(world)
    return world


def test_a_document_is_read_as_it_was_put(world: TableWorld) -> None:
    document = order("ann", 1, code="x", amount=2.5, address=address("Rome"), tags=["a", "b"])
    ts = world.put("orders", document)
    assert world.get("orders", "ann", 1) == document
    row = read.get(world.store.snapshot(), world.view("orders"), ("ann", 1))
    assert row is not None
    assert (row.ts, row.etag) == (ts, str(ts))
    assert world.get("orders", "ann", 2) is None
    assert world.check("orders") == []


def test_many_documents_are_read_in_the_order_asked(world: TableWorld) -> None:
    for number in range(3):
        world.put("orders", order("ann", number))
    keys = [("ann", 2), ("bob", 1), ("ann", 0), ("ann", 2)]
    found = read.get_many(world.store.snapshot(), world.view("orders"), keys)
    view = world.view("orders")
    assert [row and read.document_of(view, row)["number"] for row in found] == [2, None, 0, 2]
    with pytest.raises(InvalidArgument, match=r"keys\[1\]"):
        read.get_many(world.store.snapshot(), view, [("ann", 1), ("ann",)])


def test_insert_refuses_what_exists_and_replace_what_does_not(world: TableWorld) -> None:
    with pytest.raises(ConditionFailed) as absent:
        world.put("orders", order("ann", 1), PutMode.REPLACE)
    assert (absent.value.expected, absent.value.actual) == ("present", "absent")
    assert absent.value.key == "shop.orders('ann', 1)"
    ts = world.put("orders", order("ann", 1), PutMode.INSERT)
    with pytest.raises(ConditionFailed) as present:
        world.put("orders", order("ann", 1), PutMode.INSERT)
    assert (present.value.expected, present.value.actual) == ("absent", str(ts))
    world.put("orders", order("ann", 1, amount=1.0), PutMode.REPLACE)
    assert world.check("orders") == []


def test_a_stale_etag_is_refused_and_changes_nothing(world: TableWorld) -> None:
    old = world.put("orders", order("ann", 1))
    new = world.put("orders", order("ann", 1, amount=1.0), condition=EtagIs(old))
    for write in (
        lambda: world.put("orders", order("ann", 1, amount=9.0), condition=EtagIs(old)),
        lambda: world.update("orders", ("ann", 1), {"amount": 9.0}, EtagIs(old)),
        lambda: world.delete("orders", ("ann", 1), EtagIs(old)),
    ):
        with pytest.raises(ConditionFailed) as refused:
            write()
        assert (refused.value.expected, refused.value.actual) == (str(old), str(new))
    assert world.get("orders", "ann", 1) == order("ann", 1, amount=1.0)


def test_conditions_of_an_update_come_before_the_document_is_missed(world: TableWorld) -> None:
    with pytest.raises(NotFound, match=r"no document shop\.orders\('ann', 1\)"):
        world.update("orders", ("ann", 1), {"amount": 1.0})
    with pytest.raises(ConditionFailed):
        world.update("orders", ("ann", 1), {"amount": 1.0}, Present())


def test_delete_says_whether_there_was_a_document(world: TableWorld) -> None:
    world.put("orders", order("ann", 1, code="x"))
    assert world.delete("orders", ("ann", 1)).existed is True
    assert world.delete("orders", ("ann", 1)).existed is False
    assert world.delete("orders", ("ann", 1), Absent()).existed is False
    assert world.get("orders", "ann", 1) is None
    assert world.check("orders") == []


def test_reads_at_an_earlier_time_see_the_document_as_it_was(world: TableWorld) -> None:
    first = world.put("orders", order("ann", 1))
    second = world.put("orders", order("ann", 1, amount=1.0))
    world.delete("orders", ("ann", 1))
    assert world.get("orders", "ann", 1, at=first) == order("ann", 1)
    assert world.get("orders", "ann", 1, at=second) == order("ann", 1, amount=1.0)
    assert world.get("orders", "ann", 1) is None


def test_an_update_changes_the_named_fields_and_no_others(world: TableWorld) -> None:
    world.put("orders", order("ann", 1, code="x", address=address("Rome", "1"), tags=["a"]))
    reply = world.update("orders", ("ann", 1), {"address.city": "Oslo", "amount": 2.0})
    changed = order("ann", 1, code="x", address=address("Oslo", "1"), tags=["a"], amount=2.0)
    assert read.document_of(world.view("orders"), reply.row) == changed
    assert world.get("orders", "ann", 1) == changed
    assert world.check("orders") == []


def test_an_update_may_change_nothing_but_when_the_document_expires(world: TableWorld) -> None:
    """The row and all of its entries are written anew: they disappear together."""
    document = order("ann", 1, code="x", tags=["a"])
    world.put("orders", document)
    put_at = world.store.now
    ts, done = world.run(Update(DATABASE, "orders", ("ann", 1), {}, expiry=Expiry(5)))
    mutations = done.mutations
    assert sorted(mutations.keys) == sorted(key for key, _ in world.store.snapshot(put_at).scan(b"t", b"u"))
    assert len(mutations.keys) > 1
    assert mutations.expiries == dict.fromkeys(mutations.keys, ts.wall_ms + 5)
    assert isinstance(done.reply, Updated)
    assert (done.reply.row.ts, done.reply.row.expires_ms) == (ts, ts.wall_ms + 5)
    assert world.get("orders", "ann", 1) == document
    assert world.check("orders") == []
    world.store.now = Timestamp(0, ts.wall_ms + 5, 0)
    assert world.get("orders", "ann", 1) is None
    assert world.scan("orders", index="by_code") == []
    assert world.get("orders", "ann", 1, at=put_at) == document
    with pytest.raises(NotFound):
        world.run(Update(DATABASE, "orders", ("ann", 1), {}, expiry=NEVER))


def test_an_update_takes_json_values(world: TableWorld) -> None:
    world.put("orders", order("ann", 1))
    world.update("orders", ("ann", 1), {"address": {"city": "Rome"}, "amount": "NaN", "status": "paid"}, json=True)
    changed = world.get("orders", "ann", 1)
    assert changed is not None
    assert (changed["address"], changed["status"]) == (address("Rome"), "paid")
    assert changed["amount"] != changed["amount"]
    assert world.check("orders") == []


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({}, InvalidArgument, "changes: must name at least one field, or the expiry must be said"),
        ({"number": 2}, InvalidArgument, "number: holds number, a part of the primary key of table shop.orders"),
        ({"nothing": 2}, NotFound, "no field nothing of table shop.orders"),
        ({"address.street": "x"}, NotFound, "no field address.street of table shop.orders"),
        ({"tags.first": "x"}, NotFound, r"no field tags.first of table shop.orders \(tags is not a record\)"),
        ({"address.city": "x"}, InvalidArgument, "address.city: cannot be set, since address is null"),
        ({"address": None, "address.city": "x"}, InvalidArgument, "address.city: is changed twice: address holds it"),
        ({"amount": "much"}, InvalidDocument, "amount"),
        ({"address": {"city": 7}}, InvalidDocument, r"address\.city"),
        ({"address": {"city": "x", "town": "x"}}, InvalidDocument, "town"),
    ],
)
def test_a_bad_update_names_the_field(
    world: TableWorld, changes: dict[str, object], error: type[Exception], message: str
) -> None:
    world.put("orders", order("ann", 1))
    before = world.store.now
    for as_json in (False, True):
        with pytest.raises(error, match=message):
            world.update("orders", ("ann", 1), changes, json=as_json)
    assert world.get("orders", "ann", 1) == world.get("orders", "ann", 1, at=before)


def test_a_unique_value_belongs_to_one_row(world: TableWorld) -> None:
    world.put("orders", order("ann", 1, code="x"))
    with pytest.raises(UniqueViolation) as refused:
        world.put("orders", order("bob", 2, code="x"))
    error = refused.value
    assert (error.index, error.values) == ("by_code", "('x')")
    assert (error.key, error.existing_key) == ("shop.orders('bob', 2)", "shop.orders('ann', 1)")
    world.put("orders", order("ann", 1, code="x", amount=1.0))
    world.delete("orders", ("ann", 1))
    world.put("orders", order("bob", 2, code="x"))
    assert world.check("orders") == []


def test_nulls_do_not_collide_in_a_unique_index(world: TableWorld) -> None:
    world.put("orders", order("ann", 1, code=None))
    world.put("orders", order("bob", 1, code=None))
    assert [each["customer"] for each in world.scan("orders", index="by_code")] == ["ann", "bob"]
    assert world.check("orders") == []


def test_rows_of_an_older_schema_keep_their_entries(world: TableWorld) -> None:
    world.put("orders", order("ann", 1, code="x"))
    newest = world.register("orders", ORDER_V2)
    assert world.get("orders", "ann", 1, schema_id=newest) == {**order("ann", 1, code="x"), "note": "none"}
    with pytest.raises(UniqueViolation):
        world.put("orders", {**order("bob", 1, code="x"), "note": "new"})
    old_id = world.catalog().subject("shop.orders").versions[0].schema_id
    world.put("orders", order("ann", 1, code="y"), schema_id=old_id)
    world.update("orders", ("ann", 1), {"note": "later"})
    assert world.get("orders", "ann", 1) == {**order("ann", 1, code="y"), "note": "later"}
    assert world.check("orders") == []


def test_rows_that_the_newest_schema_cannot_read_can_be_replaced_and_deleted(world: TableWorld) -> None:
    for number in range(3):
        world.put("orders", order("ann", number, code=f"c{number}", address=address("Rome")))
    world.store.write(
        lambda reader, ts: set_compatibility(world.catalog(reader), "shop.orders", CompatibilityMode.NONE)
    )
    fields = [*ORDER["fields"], {"name": "must", "type": "string"}]  # type: ignore[misc]
    world.register("orders", {**ORDER, "fields": fields})
    with pytest.raises(InvalidDocument, match="must: the document has no such field"):
        world.update("orders", ("ann", 0), {"must": "x"})
    world.put("orders", {**order("ann", 0, code="new"), "must": "x"})
    assert world.delete("orders", ("ann", 1)).existed
    assert [each["code"] for each in world.scan("orders", index="by_code")] == ["c2", "new"]
    assert world.check("orders") == []


def test_a_document_may_come_as_json(world: TableWorld) -> None:
    world.run(Put(DATABASE, "orders", JsonDocument('{"customer": "ann", "number": 1, "address": {"city": "Rome"}}')))
    assert world.get("orders", "ann", 1) == order("ann", 1, address=address("Rome"))
    view = world.view("orders")
    row = read.get(world.store.snapshot(), view, ("ann", 1))
    assert row is not None
    assert read.json_of(view, row) == (
        '{"customer": "ann", "number": 1, "code": null, "amount": 0.0, "status": "open", '
        '"address": {"city": "Rome", "zip": null}, "tags": []}'
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "document: must be JSON: .* at column 2"),
        ("[1]", "document: must be a JSON object"),
        ('{"customer": "a", "customer": "b", "number": 1}', "document: .* the key 'customer' stands there twice"),
        ('{"customer": "a", "number": NaN}', "document: must be JSON: NaN is no JSON number"),
        ('{"customer": "a", "number": ' + "9" * 5000 + "}", "document: .* an integer has thousands of digits"),
        ("[" * 100_000, "document: must be JSON of at most 512 objects and arrays in one another"),
        ('{"customer": "a"}', "number"),
        ('{"customer": "a", "number": "1"}', "number"),
    ],
)
def test_bad_json_is_one_precise_error(world: TableWorld, text: str, message: str) -> None:
    with pytest.raises(InvalidDocument, match=message):
        world.run(Put(DATABASE, "orders", JsonDocument(text)))


def test_bad_avro_is_refused(world: TableWorld) -> None:
    schema_id = world.view("orders").newest_id
    good = world.avro("orders", order("ann", 1)).body
    for body in (b"", good[:-1], good + b"\0", b"\xff" * 40):
        with pytest.raises(InvalidDocument):
            world.run(Put(DATABASE, "orders", AvroDocument(schema_id, body)))


def test_a_document_must_follow_the_tables_subject(world: TableWorld) -> None:
    other = world.register("other", ORDER_V2)
    body = world.avro("orders", order("ann", 1)).body
    with pytest.raises(InvalidArgument, match=r"document\.schema_id: is not a version of subject shop\.orders"):
        world.run(Put(DATABASE, "orders", AvroDocument(other, body)))
    with pytest.raises(NotFound, match="no schema with id 99"):
        world.run(Put(DATABASE, "orders", AvroDocument(99, body)))


def test_unknown_names_are_not_found(world: TableWorld) -> None:
    for operation in (
        Put("none", "orders", JsonDocument("{}")),
        Update("none", "orders", ("a", 1), {"amount": 1.0}),
        Delete("none", "orders", ("a", 1)),
    ):
        with pytest.raises(NotFound, match="no database none"):
            world.run(operation)
    with pytest.raises(NotFound, match=r"no table shop\.none"):
        world.run(Delete(DATABASE, "none", ("a", 1)))


def test_a_key_must_be_whole_and_of_its_types(world: TableWorld) -> None:
    with pytest.raises(InvalidArgument, match=r"key: table shop.orders has a key of 2 parts \(customer, number\)"):
        world.get("orders", "ann")
    with pytest.raises(InvalidArgument, match="number: must be an int"):
        world.get("orders", "ann", "1")
    with pytest.raises(InvalidArgument, match="number: a part of the primary key cannot be null"):
        world.get("orders", "ann", None)


def test_sizes_are_bounded(world: TableWorld) -> None:
    with pytest.raises(KeyTooLong, match=r"primary key of table shop\.orders") as too_long:
        world.put("orders", order("a" * 490, 1))
    assert too_long.value.limit == 499
    with pytest.raises(KeyTooLong, match=r"index by_code of table shop\.orders"):
        world.put("orders", order("ann", 1, code="c" * 490))
    schema_id = world.view("orders").newest_id
    with pytest.raises(TooLarge, match="1048576") as too_large:
        world.run(Put(DATABASE, "orders", AvroDocument(schema_id, bytes((1 << 20) + 1))))
    assert too_large.value.length == (1 << 20) + 1


def test_a_nullable_key_part_must_not_be_null(world: TableWorld) -> None:
    fields = [{"name": "id", "type": ["null", "long"]}, {"name": "x", "type": "int"}]
    world.create("loose", {"type": "record", "name": "Loose", "fields": fields}, ["id"])
    world.put("loose", {"id": 1, "x": 2})
    with pytest.raises(InvalidDocument, match=r"id: .* primary key of table shop\.loose and cannot be null"):
        world.put("loose", {"id": None, "x": 2})


def test_keys_are_made_of_all_key_types(world: TableWorld) -> None:
    fields = [
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "local", "type": {"type": "long", "logicalType": "local-timestamp-micros"}},
        {"name": "ratio", "type": ["null", "float"]},
        {"name": "state", "type": {"type": "enum", "name": "State", "symbols": ["on", "off"]}},
    ]
    world.create("events", {"type": "record", "name": "Event", "fields": fields}, ["at", "local"], [])
    at, local = datetime(2013, 1, 1, 10, tzinfo=UTC), datetime(1969, 12, 31, 23, 59, 59, 999999)
    document = {"at": at, "local": local, "ratio": 0.5, "state": "on"}
    world.put("events", document)
    assert world.get("events", 1_357_034_400_000_000, -1) == document
    assert world.check("events") == []
