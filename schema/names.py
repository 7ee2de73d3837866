"""Names in Avro: full names, namespaces, and how a type is called in a message.

A full name is a namespace and a simple name: ``org.example.Flight``. A name without dots takes the namespace of its
declaration, else of the nearest declaration around it; one with dots is full already, and its ``namespace`` is ignored.
Source: Apache Avro specification 1.12, *Names*.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, assert_never

from cortado.schema.limits import NAME_CHARACTERS_MAX
from cortado.schema.model import Array, AvroType, Enum, Fixed, Map, Primitive, Record, Union

_SIMPLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)

NAME_RULE = f"a name has letters, digits and _, begins with no digit, and has at most {NAME_CHARACTERS_MAX} characters"
_LISTED_MAX: Final = 10


def is_simple_name(text: str) -> bool:
    return len(text) <= NAME_CHARACTERS_MAX and _SIMPLE.fullmatch(text) is not None


def is_full_name(text: str) -> bool:
    """True for one or more simple names joined by dots."""
    return len(text) <= NAME_CHARACTERS_MAX and all(map(is_simple_name, text.split(".")))


def full_name(name: str, namespace: str) -> str:
    """``name`` as it is understood in ``namespace`` ("" for none)."""
    return name if "." in name or not namespace else f"{namespace}.{name}"


def namespace_of(name: str) -> str:
    """Return the namespace of a full name; "" if it has none."""
    return name.rpartition(".")[0]


def simple_name(name: str) -> str:
    """Return the last part of a full name."""
    return name.rpartition(".")[2]


def branch_name(avro_type: AvroType) -> str:
    """How a branch of a union is named: the full name of a named type, else the name of the type ("long", "array")."""
    match avro_type:
        case Primitive(kind=kind):
            return kind.value
        case Record(name=name) | Enum(name=name) | Fixed(name=name):
            return name
        case Array():
            return "array"
        case Map():
            return "map"
        case Union():
            return "union"
        case _:
            assert_never(avro_type)


def listed(names: Sequence[str], separator: str = ", ") -> str:
    """Return names for a message, cut short if there are very many."""
    shown = separator.join(names[:_LISTED_MAX])
    return shown if len(names) <= _LISTED_MAX else f"{shown} and {len(names) - _LISTED_MAX} more"


def describe_type(avro_type: AvroType) -> str:
    """Return a type in a few words for a message: ``long (timestamp-micros)``, ``record Flight``, ``null or
    double``."""
    match avro_type:
        case Primitive(kind=kind, logical=logical):
            base = kind.value
        case Fixed(name=name, size=size, logical=logical):
            base = f"fixed {name} of {size} bytes"
        case Record(name=name):
            return f"record {name}"
        case Enum(name=name):
            return f"enum {name}"
        case Array(items=items):
            return f"array of {describe_type(items)}"
        case Map(values=values):
            return f"map of {describe_type(values)}"
        case Union(branches=branches):
            return listed([describe_type(branch) for branch in branches], " or ")
        case _:
            assert_never(avro_type)
    if logical is None:
        return base
    numbers = f" {logical.precision},{logical.scale}" if logical.precision else ""
    return f"{base} ({logical.kind.value}{numbers})"
