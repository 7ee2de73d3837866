"""Random Avro schemas, documents that fit them, changes to schemas, and damage to bodies, all from one seed.

Plain ``random`` rather than a strategy of many draws: a seed replays a failure just as well, and thousands of values
cost milliseconds.
"""

from __future__ import annotations

import json
import random
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

from cortado.schema.model import Array, AvroType, Enum, Fixed, Kind, LogicalKind, Map, Primitive, Record, Union
from cortado.schema.names import branch_name
from cortado.schema.union_branches import ambiguous_branches
from cortado.schema.values import Branch, Duration

PLAIN = ["null", "boolean", "int", "long", "float", "double", "bytes", "string"]
LOGICAL: list[dict[str, Any]] = [
    {"type": "int", "logicalType": "date"},
    {"type": "int", "logicalType": "time-millis"},
    {"type": "long", "logicalType": "time-micros"},
    {"type": "long", "logicalType": "timestamp-millis"},
    {"type": "long", "logicalType": "timestamp-micros"},
    {"type": "long", "logicalType": "local-timestamp-millis"},
    {"type": "long", "logicalType": "local-timestamp-micros"},
    {"type": "string", "logicalType": "uuid"},
    {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2},
    {"type": "bytes", "logicalType": "decimal", "precision": 30, "scale": 0},
]
EXOTIC: list[dict[str, Any]] = [
    {"type": "long", "logicalType": "timestamp-nanos"},
    {"type": "long", "logicalType": "local-timestamp-nanos"},
]
TEXTS = ["", "a", "carrier", "äöü", "日本語", "a" * 70, "𝄞 clef", "0123456789abcdef" * 3, "x\x00y"]


class SchemaMaker:
    """Makes schema declarations. ``exotic`` adds types that fastavro lacks: durations, nanoseconds, UUIDs in a
    fixed."""

    def __init__(self, rng: random.Random, *, exotic: bool = True, recursive: bool = True) -> None:
        self.rng = rng
        self.exotic = exotic
        self.recursive = recursive
        self.names = 0
        self.open: list[str] = []

    def document(self) -> dict[str, Any]:
        return self.record(3)

    def name(self, kind: str) -> str:
        self.names += 1
        return f"{kind}{self.names}"

    def record(self, depth: int) -> dict[str, Any]:
        name = self.name("R")
        self.open.append(name)
        fields = [
            {"name": f"f{i}", "type": self.type(depth - 1)} for i in range(self.rng.randint(0 if depth < 3 else 1, 5))
        ]
        self.open.pop()
        return {"type": "record", "name": name, "fields": fields}

    def type(self, depth: int) -> Any:
        pick = self.rng.random()
        if pick < 0.4 or depth <= 0:
            return self.leaf()
        if pick < 0.55:
            return self.nullable(depth)
        if pick < 0.7:
            return {"type": "array", "items": self.type(depth - 1)}
        if pick < 0.78:
            return {"type": "map", "values": self.type(depth - 1)}
        if pick < 0.9:
            return self.record(depth)
        return self.union(depth)

    def leaf(self) -> Any:
        pick = self.rng.random()
        if pick < 0.55:
            return self.rng.choice(PLAIN)
        if pick < 0.75:
            return dict(self.rng.choice(LOGICAL + (EXOTIC if self.exotic else [])))
        if pick < 0.87:
            return {"type": "enum", "name": self.name("E"), "symbols": ["A", "B", "C"][: self.rng.randint(1, 3)]}
        return self.fixed()

    def fixed(self) -> dict[str, Any]:
        made: dict[str, Any] = {"type": "fixed", "name": self.name("F"), "size": self.rng.choice([1, 3, 16, 70])}
        pick = self.rng.random()
        if pick < 0.3:
            made |= {"size": 8, "logicalType": "decimal", "precision": 12, "scale": 3}
        elif pick < 0.5 and self.exotic:
            made |= {"size": 16, "logicalType": "uuid"}
        elif pick < 0.65 and self.exotic:
            made |= {"size": 12, "logicalType": "duration"}
        return made

    def nullable(self, depth: int) -> Any:
        if self.recursive and self.open and self.rng.random() < 0.15:
            inner: Any = self.rng.choice(self.open)
        else:
            inner = self.type(depth - 1)
        if inner == "null" or isinstance(inner, list):
            inner = "long"
        return ["null", inner] if self.rng.random() < 0.7 else [inner, "null"]

    def union(self, depth: int) -> Any:
        branches: list[Any] = self.rng.sample(PLAIN, self.rng.randint(1, 4))
        named = [self.record, lambda _: self.fixed()]
        branches += [self.rng.choice(named)(depth - 1) for _ in range(self.rng.randint(0, 2))]
        if self.rng.random() < 0.3:
            branches.append({"type": "array", "items": self.type(depth - 2)})
        self.rng.shuffle(branches)
        return branches


def parse_text(declaration: Any) -> str:
    return json.dumps(declaration)


class ValueMaker:
    """Makes values of a type. ``plain`` leaves out forms of Cortado's documents alone: branches by name."""

    def __init__(self, rng: random.Random, *, plain: bool = False) -> None:
        self.rng = rng
        self.plain = plain

    def value(self, type_: AvroType, depth: int = 0) -> Any:
        rng = self.rng
        match type_:
            case Primitive(logical=logical) | Fixed(logical=logical) if logical is not None:
                return self.logical(type_)
            case Primitive(kind=kind):
                return self.primitive(kind)
            case Fixed(size=size):
                return rng.randbytes(size)
            case Enum(symbols=symbols):
                return rng.choice(symbols)
            case Array(items=items):
                return [self.value(items, depth + 1) for _ in range(self.count(depth))]
            case Map(values=values):
                return {f"k{i}": self.value(values, depth + 1) for i in range(self.count(depth))}
            case Record():
                return {each.name: self.value(each.type, depth + 1) for each in type_.fields}
            case Union():
                return self.union(type_, depth)

    def count(self, depth: int) -> int:
        return self.rng.choice([0, 1, 2, 3, 5]) if depth < 6 else 0

    def union(self, union: Union, depth: int) -> Any:
        choices = list(range(len(union.branches)))
        if depth > 6:
            null = [i for i in choices if union.branches[i] == Primitive(Kind.NULL)]
            choices = null or choices
        number = self.rng.choice(choices)
        branch = union.branches[number]
        value = self.value(branch, depth)
        if self.plain:
            return value
        # Named, so that the value is of this branch even if another would take it too.
        return Branch(branch_name(branch), value) if number in ambiguous_branches(union) or len(choices) > 2 else value

    def primitive(self, kind: Kind) -> Any:
        rng = self.rng
        match kind:
            case Kind.NULL:
                return None
            case Kind.BOOLEAN:
                return rng.random() < 0.5
            case Kind.INT:
                return rng.choice([0, -1, 1, 63, 64, -64, -65, 2**31 - 1, -(2**31), rng.randint(-100000, 100000)])
            case Kind.LONG:
                return rng.choice([0, -1, 2**63 - 1, -(2**63), 2**55, 2**56, -(2**62), rng.randint(-(2**40), 2**40)])
            case Kind.FLOAT:
                return rng.choice([0.0, -0.0, 1.5, -2.25, float("inf")])
            case Kind.DOUBLE:
                return rng.choice([0.0, 1e300, -2.5, rng.random()])
            case Kind.BYTES:
                return rng.randbytes(rng.choice([0, 1, 5, 40, 90]))
            case Kind.STRING:
                return rng.choice(TEXTS)

    def logical(self, type_: Primitive | Fixed) -> Any:
        rng = self.rng
        assert type_.logical is not None
        micros = rng.randint(-(10**15), 10**16)
        match type_.logical.kind:
            case LogicalKind.DECIMAL:
                digits = rng.choice([0, 1, type_.logical.precision // 2, type_.logical.precision])
                unscaled = rng.choice([1, -1]) * rng.randint(0, 10**digits - 1)
                return Decimal(unscaled).scaleb(-type_.logical.scale)
            case LogicalKind.UUID:
                return UUID(bytes=rng.randbytes(16))
            case LogicalKind.DATE:
                return rng.choice([date.min, date.max, date(1970, 1, 1) + timedelta(days=rng.randint(-9999, 9999))])
            case LogicalKind.TIME_MILLIS:
                return time(rng.randint(0, 23), 59, 1, rng.randint(0, 999) * 1000)
            case LogicalKind.TIME_MICROS:
                return time(rng.randint(0, 23), 0, 1, rng.randint(0, 999999))
            case LogicalKind.TIMESTAMP_MILLIS:
                return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=micros // 1000)
            case LogicalKind.TIMESTAMP_MICROS:
                return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=micros)
            case LogicalKind.LOCAL_TIMESTAMP_MILLIS:
                return datetime(1970, 1, 1) + timedelta(milliseconds=micros // 1000)
            case LogicalKind.LOCAL_TIMESTAMP_MICROS:
                return datetime(1970, 1, 1) + timedelta(microseconds=micros)
            case LogicalKind.DURATION:
                return Duration(rng.randint(0, 2**32 - 1), rng.randint(0, 99), rng.randint(0, 99))
            case _:
                return rng.randint(-(2**62), 2**62)


def damaged(rng: random.Random, body: bytes) -> bytes:
    """Return the body with a few bytes changed, cut off, put in or doubled."""
    out = bytearray(body)
    for _ in range(rng.randint(1, 3)):
        at = rng.randint(0, len(out))
        match rng.randint(0, 5):
            case 0:
                del out[at:]
            case 1:
                out[at:at] = rng.randbytes(rng.randint(1, 4))
            case 2:
                out[at:at] = rng.choice(
                    [b"\xff" * 9 + b"\x01", b"\xff" * 12, b"\x80" * 9 + b"\x02", b"\xfe\xff\xff\xff\x0f"]
                )
            case 3:
                del out[at : at + rng.randint(1, 3)]
            case _ if out:
                out[at % len(out)] = rng.choice([0, 1, 2, 3, 0x7F, 0x80, 0xFF, rng.randint(0, 255)])
            case _:
                out += b"\x00"
    return bytes(out)


DEFAULTS: list[tuple[Any, Any]] = [
    ("int", 7),
    ("string", "new"),
    ("double", 1.5),
    (["null", "long"], None),
    (["long", "null"], 5),
    ({"type": "array", "items": "int"}, [1, 2]),
    ({"type": "map", "values": "string"}, {"a": "b"}),
    ("null", None),
    (["null", "int", "string"], "x"),
]
PROMOTED = {"int": ["long", "float", "double"], "long": ["float", "double"], "float": ["double"], "string": ["bytes"]}


class Evolution:
    """Changes a schema's declaration as an application would over time; some changes cannot be read back."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.added = 0

    def type(self, type_: Any) -> Any:
        rng = self.rng
        if isinstance(type_, list):
            return self.union(type_)
        if isinstance(type_, str):
            if rng.random() < 0.25 and type_ in PROMOTED:
                return rng.choice(PROMOTED[type_])
            if rng.random() < 0.1 and type_ != "null":
                return rng.choice(
                    [["null", type_], [type_, "null"], [type_], ["null", "boolean", type_], ["boolean", type_]]
                )
            return "boolean" if rng.random() < 0.01 else type_
        changed = dict(type_)
        match type_["type"]:
            case "record":
                changed["fields"] = self.fields(type_["fields"])
            case "array":
                changed["items"] = self.type(type_["items"])
            case "map":
                changed["values"] = self.type(type_["values"])
            case "enum":
                self.enum(changed)
            case _:
                if rng.random() < 0.03:
                    changed.pop("logicalType", None)
        if rng.random() < 0.05:
            return ["null", changed]
        return changed

    def enum(self, changed: dict[str, Any]) -> None:
        pick = self.rng.random()
        if pick < 0.3:
            changed["symbols"] = ["Z", *changed["symbols"]]
        elif pick < 0.6 and len(changed["symbols"]) > 1:
            changed["symbols"] = changed["symbols"][1:][::-1]
            if self.rng.random() < 0.8:
                changed["default"] = changed["symbols"][0]

    def union(self, branches: list[Any]) -> Any:
        changed = [self.type(each) if isinstance(each, dict) else each for each in branches]
        flat: list[Any] = []
        for each in changed:
            flat += [one for one in each if one != "null"] if isinstance(each, list) else [each]
        pick = self.rng.random()
        if pick < 0.2:
            flat = flat[::-1]
        elif pick < 0.3 and len(flat) > 1:
            flat = flat[:-1]
        elif pick < 0.4:
            flat += [each for each in ["double", "string", "bytes"] if each not in flat][:1]
        elif pick < 0.43:
            return flat[0]
        return flat

    def fields(self, fields: list[dict[str, Any]]) -> list[dict[str, Any]]:
        rng = self.rng
        changed = []
        for field in fields:
            pick = rng.random()
            if pick < 0.1:
                continue
            one = {**field, "type": self.type(field["type"])}
            if pick < 0.2:
                self.added += 1
                one = {**one, "name": f"renamed{self.added}", "aliases": [field["name"]]}
            changed.append(one)
        while rng.random() < 0.3:
            self.added += 1
            kind, default = rng.choice(DEFAULTS)
            made = {"name": f"added{self.added}", "type": kind, "default": default}
            if rng.random() < 0.02:
                del made["default"]
            changed.append(made)
        if rng.random() < 0.3:
            rng.shuffle(changed)
        return changed
