"""Documents as dataclasses and TypedDicts: values that fit a schema, the errors for others, and both directions."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time
from decimal import Decimal
from enum import Enum, StrEnum
from typing import Annotated, Any, Literal, NewType, NotRequired, TypedDict
from uuid import UUID

import pytest

from cortado.errors import InvalidArgument, InvalidDocument
from cortado.schema.documents import decode_document, encode_document
from cortado.schema.model import Schema
from cortado.schema.parse import parse_document_schema
from cortado.schema.values import Branch
from cortado.store.client.document_types import DocumentType, to_mapping, to_plain


def schema(*fields: Any) -> Schema:
    declared = [each if isinstance(each, dict) else {"name": each[0], "type": each[1]} for each in fields]
    return parse_document_schema(json.dumps({"type": "record", "name": "Flight", "fields": declared}))


def logical(base: str, kind: str, **rest: Any) -> dict[str, Any]:
    return {"type": base, "logicalType": kind, **rest}


AIRPORT = {"type": "record", "name": "Airport", "fields": [{"name": "code", "type": "string"}]}
STATE = {"type": "enum", "name": "State", "symbols": ["ON_TIME", "LATE"]}


class State(Enum):
    ON_TIME = 1
    LATE = 2


class Spoken(StrEnum):
    PUNCTUAL = "ON_TIME"
    TARDY = "LATE"
    GONE = "GONE"


@dataclass(frozen=True)
class Airport:
    code: str


class AirportDict(TypedDict):
    code: str


def both_ways(cls: type[Any], its: Schema, instance: Any) -> Any:
    """Return the instance, written and read again."""
    documents = DocumentType(cls, its)
    body = encode_document(its, documents.to_document(instance))
    return documents.from_document(decode_document(its, body))


def made(hint: Any) -> type[Any]:
    return dataclasses.make_dataclass("Flight", [("value", hint)])


FLIGHT_ID = NewType("FLIGHT_ID", int)
UNION = ["null", AIRPORT, {"type": "record", "name": "Gate", "fields": [{"name": "number", "type": "int"}]}]


SIGNALS = [{"type": "enum", "name": name, "symbols": ["RED", "GREEN"]} for name in ("Lamp", "Flag")]
BYTES = ["bytes", {"type": "fixed", "name": "Byte", "size": 1}, {"type": "array", "items": STATE}]


@dataclass
class Gate:
    number: int


class Lamp(Enum):
    RED = "RED"
    GREEN = "GREEN"


class Flag(Enum):
    RED = "RED"
    GREEN = "GREEN"


@pytest.mark.parametrize(
    ("avro", "hint", "value"),
    [
        ("boolean", bool, True),
        ("long", int, 1 << 40),
        ("int", float, 3),
        ("long", FLIGHT_ID, 7),
        ("double", Annotated[float, "miles"], 0.5),
        ("string", str, "x"),
        ("bytes", bytes, b"x"),
        (["null", "string"], str | None, None),
        (["null", "string"], Annotated[str, "x"] | None, "y"),
        (["int", "string"], int | str, "y"),
        (logical("bytes", "decimal", precision=6, scale=2), Decimal, Decimal("1.50")),
        (logical("int", "date"), date, date(2020, 2, 29)),
        (logical("int", "time-millis"), time, time(1, 2)),
        (logical("long", "timestamp-micros"), datetime, datetime(2020, 1, 1, tzinfo=UTC)),
        (logical("long", "local-timestamp-micros"), datetime, datetime(2020, 1, 1)),
        (logical("long", "timestamp-nanos"), int, 5),
        (logical("string", "uuid"), UUID, UUID(int=5)),
        (STATE, State, State.LATE),
        (STATE, Spoken, Spoken.TARDY),
        (STATE, Literal["ON_TIME", "LATE"], "LATE"),
        (STATE, str, "ON_TIME"),
        ({"type": "array", "items": "int"}, list[int], [1, 2]),
        ({"type": "array", "items": "int"}, tuple[int, ...], (1, 2)),
        ({"type": "array", "items": STATE}, list[State], [State.LATE, State.ON_TIME]),
        ({"type": "array", "items": AIRPORT}, tuple[Airport, ...], (Airport("JFK"),)),
        ({"type": "map", "values": ["null", AIRPORT]}, dict[str, Airport | None], {"a": Airport("b"), "c": None}),
        (AIRPORT, Airport, Airport("JFK")),
        (AIRPORT, AirportDict, {"code": "JFK"}),
        (AIRPORT, dict[str, Any], {"code": "JFK"}),
        (AIRPORT, Any, {"code": "JFK"}),
        (["null", AIRPORT], Airport | None, Airport("JFK")),
        (UNION, Airport | Gate | None, Gate(3)),
        (UNION, Gate | Airport | None, Airport("LGA")),
        (["null", STATE, {"type": "array", "items": AIRPORT}], State | list[Airport] | None, [Airport("x")]),
        (["null", STATE, {"type": "array", "items": AIRPORT}], State | list[Airport] | None, State.LATE),
        (SIGNALS, Lamp | Flag, Flag.RED),
        (SIGNALS, Flag | Lamp, Lamp.GREEN),
        (SIGNALS, Lamp | str, Lamp.RED),
        (SIGNALS, Lamp | str, Branch("Flag", "RED")),
        (BYTES, bytes | tuple[State, ...], Branch("Byte", b"x")),
        (BYTES, bytes | tuple[State, ...], (State.LATE,)),
    ],
)
def test_values_of_every_kind_come_back_as_they_were(avro: Any, hint: Any, value: Any) -> None:
    cls = made(hint)
    assert both_ways(cls, schema(("value", avro)), cls(value)) == cls(value)
    as_dict = TypedDict("as_dict", {"value": hint})  # type: ignore[misc]  # noqa: UP013
    assert both_ways(as_dict, schema(("value", avro)), {"value": value}) == {"value": value}


@pytest.mark.parametrize(
    ("avro", "hint", "problem"),
    [
        ("long", str, r"Flight\.value: must admit int, as the schema says long \(got str\)"),
        ("boolean", int, "must admit bool"),
        ("double", int, "must admit float"),
        (["null", "string"], str, r"must admit None, as the schema says \[null, string\] \(got str\)"),
        (logical("long", "timestamp-micros"), date, "must admit datetime, as the schema says timestamp-micros"),
        (logical("bytes", "decimal", precision=6, scale=2), float, "must admit Decimal, as the schema says decimal"),
        (STATE, Literal["LATE"], r"must admit an Enum for \w+, a Literal of ON_TIME, LATE, or str"),
        ({"type": "array", "items": "int"}, list[str], r"Flight\.value\[\]: must admit int"),
        ({"type": "array", "items": "int"}, tuple[int, int], "must admit a list"),
        ({"type": "map", "values": "int"}, dict[str, bytes], r"Flight\.value\{\}: must admit int"),
        ({"type": "map", "values": "int"}, dict[int, int], "must have str keys"),
        (AIRPORT, made(str), r"Flight\.value\.value: is no field of the schema's Airport, and has no default"),
        (UNION, Airport | None, "must admit a dataclass or a TypedDict for Gate"),
        (SIGNALS, Lamp, "must admit an Enum for Flag, a Literal of RED, GREEN, or str"),
        ("long", "Nowhere", "has an annotation that cannot be resolved: name 'Nowhere' is not defined"),
    ],
)
def test_what_does_not_fit_is_told_with_path_schema_and_class(avro: Any, hint: Any, problem: str) -> None:
    with pytest.raises(InvalidArgument, match=problem):
        DocumentType(made(hint), schema(("value", avro)))


def test_everything_that_does_not_fit_is_told_at_once() -> None:
    @dataclass
    class Flight:
        number: str
        gone: int
        state: int

    with pytest.raises(InvalidArgument, match=r"Flight\.number") as raised:
        DocumentType(Flight, schema(("number", "long"), ("state", STATE)))
    assert [note.partition(":")[0] for note in raised.value.__notes__] == [
        "also document_type Flight.gone",
        "also document_type Flight.state",
    ]


@pytest.mark.parametrize("cls", [int, dict, Any, Airport("x")])
def test_a_document_type_is_a_dataclass_or_a_typed_dict(cls: Any) -> None:
    with pytest.raises(InvalidArgument, match="must be a dataclass or a TypedDict"):
        DocumentType(cls, schema(("value", "int")))


def test_fields_that_only_the_schema_has_are_not_seen_and_written_as_their_default() -> None:
    its = schema(("number", "long"), {"name": "alliance", "type": "string", "default": "none"})
    number = dataclasses.make_dataclass("Flight", [("number", int)])
    documents = DocumentType(number, its)
    assert documents.from_document({"number": 1, "alliance": "Star"}) == number(1)
    body = encode_document(its, documents.to_document(number(1)))
    assert decode_document(its, body) == {"number": 1, "alliance": "none"}


def test_a_field_without_a_default_that_the_class_lacks_is_refused_when_it_is_written() -> None:
    its = schema(("number", "long"), ("carrier", "string"))
    number = dataclasses.make_dataclass("Flight", [("number", int)])
    documents = DocumentType(number, its)
    assert documents.from_document({"number": 1, "carrier": "UA"}) == number(1)
    with pytest.raises(InvalidDocument, match="carrier"):
        encode_document(its, documents.to_document(number(1)))


def test_fields_that_only_the_class_has_keep_their_default_and_refuse_anything_else() -> None:
    @dataclass
    class Flight:
        number: int
        seen: bool = False
        notes: list[str] = field(default_factory=list)
        cached: int = field(default=0, init=False)

    its = schema(("number", "long"))
    assert both_ways(Flight, its, Flight(1)) == Flight(1)
    with pytest.raises(InvalidDocument, match="notes"):
        both_ways(Flight, its, Flight(1, notes=["x"]))


def test_keys_that_only_the_typed_dict_has_may_be_missing() -> None:
    class Flight(TypedDict):
        number: int
        seen: NotRequired[bool]

    class Strict(TypedDict):
        number: int
        seen: bool

    its = schema(("number", "long"))
    assert both_ways(Flight, its, {"number": 1}) == {"number": 1}
    with pytest.raises(InvalidArgument, match="and not NotRequired"):
        DocumentType(Strict, its)


def test_a_field_may_be_called_otherwise_than_in_the_schema() -> None:
    @dataclass
    class Flight:
        origin: str = field(metadata={"field": "from"})

    its = schema(("from", "string"))
    assert DocumentType(Flight, its).to_document(Flight("JFK")) == {"from": "JFK"}
    assert both_ways(Flight, its, Flight("JFK")) == Flight("JFK")


@dataclass
class Node:
    value: int
    next: Node | None = None


def test_records_that_hold_themselves_are_instances_all_the_way_down() -> None:
    text = {"type": "record", "name": "Node", "fields": [{"name": "value", "type": "int"}]}
    text["fields"].append({"name": "next", "type": ["null", "Node"], "default": None})  # type: ignore[attr-defined]
    its = parse_document_schema(json.dumps(text))
    assert both_ways(Node, its, Node(1, Node(2, Node(3)))) == Node(1, Node(2, Node(3)))


def test_an_instance_of_something_else_is_refused_and_a_wrong_value_with_its_path() -> None:
    its = schema(("at", AIRPORT))
    cls = dataclasses.make_dataclass("Flight", [("at", Airport)])
    documents = DocumentType(cls, its)
    for wrong in ({"at": {"code": "JFK"}}, Airport("JFK"), None):
        with pytest.raises(InvalidDocument, match="must be of Flight"):
            documents.to_document(wrong)
    with pytest.raises(InvalidDocument, match=r"at\.code"):
        encode_document(its, documents.to_document(cls(Airport(3))))  # type: ignore[arg-type]
    with pytest.raises(InvalidDocument, match="at"):
        encode_document(its, documents.to_document(cls("JFK")))


def test_instances_are_taken_where_no_type_was_named_and_values_at_paths_become_plain() -> None:
    its = schema(("at", AIRPORT), ("state", STATE))
    cls = dataclasses.make_dataclass("Flight", [("at", Airport), ("state", State)])
    assert to_mapping(cls(Airport("JFK"), State.LATE), its) == {"at": {"code": "JFK"}, "state": "LATE"}
    assert to_mapping({"at": 1}, its) == {"at": 1}
    assert to_plain({"a": [Airport("JFK")], "b": State.LATE, "c": (1, Spoken.TARDY)}) == {
        "a": [{"code": "JFK"}],
        "b": "LATE",
        "c": [1, "LATE"],
    }
