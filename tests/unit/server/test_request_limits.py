"""The contents of a request: every method has limits, and they are looked at before anything is parsed."""

from __future__ import annotations

import pkgutil
from importlib import import_module
from typing import Any

import pytest
from google.protobuf.descriptor import MethodDescriptor

from cortado.errors import TooLarge
from cortado.proto import message_class, v1
from cortado.proto.bounds import FIELDS_MAX, is_repeated, repeated_fields
from cortado.proto.v1 import transactions_pb2
from cortado.store.server import rpc
from cortado.store.server.config import MESSAGE_BYTES_MAX
from cortado.store.server.request_limits import BYTES_MAX, ITEMS_MAX, SMALL_BYTES_MAX, bounds_of
from cortado.store.server.rpc import unary_methods

OBJECTS_MAX = 2_000_000
"""As keys' parts in the operations of a commit 1.3 million take some 60 ms to parse."""
"""That a parser makes without Python: a twentieth of a second."""

METHODS: dict[str, MethodDescriptor] = {
    method.full_name: method
    for module in (import_module(f"{v1.__name__}.{each.name}") for each in pkgutil.iter_modules(v1.__path__))
    if hasattr(module, "DESCRIPTOR")
    for service in module.DESCRIPTOR.services_by_name.values()
    for method in service.methods
}


def varint(number: int) -> bytes:
    out = b""
    while number > 0x7F:
        out, number = out + bytes([number & 0x7F | 0x80]), number >> 7
    return out + bytes([number])


def paths_to_repeated(descriptor: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the ways through a message's declaration to each of its repeated fields."""
    found = []
    for each in descriptor.fields:
        if is_repeated(each):
            found.append((*path, each))
        if each.message_type is not None:
            found += paths_to_repeated(each.message_type, (*path, each))
    return found


def hostile(path: tuple[Any, ...], size_bytes: int) -> bytes:
    """Return a message of about ``size_bytes``, filled with items of the field at the end of ``path``."""
    last = path[-1]
    if last.cpp_type in (last.CPPTYPE_MESSAGE, last.CPPTYPE_STRING):
        tag = varint(last.number << 3 | 2)
        body = (tag + b"\x00") * (size_bytes // (len(tag) + 1))
    else:
        body = varint(last.number << 3 | 2) + varint(size_bytes) + b"\x01" * size_bytes
    for each in reversed(path[:-1]):
        body = varint(each.number << 3 | 2) + varint(len(body)) + body
    return body


ATTACKS = [(name, path) for name, method in METHODS.items() for path in paths_to_repeated(method.input_type)]


def names(attack: tuple[str, tuple[Any, ...]]) -> str:
    return f"{attack[0].removeprefix('cortado.v1.')} {'.'.join(each.name for each in attack[1])}"


@pytest.mark.parametrize("attack", ATTACKS, ids=names)
def test_a_request_of_nothing_but_items_is_refused_by_its_field(attack: tuple[str, tuple[Any, ...]]) -> None:
    method, path = METHODS[attack[0]], attack[1]
    bytes_max = BYTES_MAX.get(attack[0], SMALL_BYTES_MAX)
    limit = ITEMS_MAX[path[-1].full_name]
    with pytest.raises(TooLarge) as refused:
        bounds_of(method).check(hostile(path, bytes_max - 100))
    assert refused.value.limit == limit
    assert [part.partition("[")[0] for part in refused.value.field.split(".")] == [each.name for each in path]


@pytest.mark.parametrize("name", METHODS)
def test_a_request_of_more_than_its_bytes_is_refused(name: str) -> None:
    bounds = bounds_of(METHODS[name])
    limit = BYTES_MAX.get(name, SMALL_BYTES_MAX)
    with pytest.raises(TooLarge, match=f"request: has {limit + 1} bytes, the most is {limit}"):
        bounds.check(bytes(limit + 1))


def test_the_tables_name_what_there_is_and_all_of_it() -> None:
    asked = set().union(*(repeated_fields(method.input_type) for method in METHODS.values()))
    assert set(ITEMS_MAX) == asked
    assert set(BYTES_MAX) <= set(METHODS)
    assert max(BYTES_MAX.values()) == MESSAGE_BYTES_MAX


@pytest.mark.parametrize("name", METHODS)
def test_no_request_becomes_more_objects_than_the_loop_can_bear(name: str) -> None:
    """The items alone are bounded: a bounded number of messages, however a request is filled."""
    bytes_max = BYTES_MAX.get(name, SMALL_BYTES_MAX)
    assert items_max(METHODS[name].input_type, bytes_max) <= OBJECTS_MAX
    assert bounds_of(METHODS[name]).fields_max <= FIELDS_MAX


def items_max(descriptor: Any, bytes_max: int) -> int:
    """Return how many items a message of ``bytes_max`` bytes may hold, by the limits and by two bytes an item."""
    most = 0
    for each in descriptor.fields:
        count = ITEMS_MAX[each.full_name] if is_repeated(each) else 1
        inside = items_max(each.message_type, bytes_max // count) if each.message_type is not None else 0
        most += (count if is_repeated(each) else 0) + count * inside
    return min(most, bytes_max // 2)


def test_a_method_looks_at_its_request_before_it_parses_it(monkeypatch: pytest.MonkeyPatch) -> None:
    parsed: list[bytes] = []

    class Servicer:
        def __getattr__(self, name: str) -> Any:
            return None

    class Parser:
        FromString = parsed.append

    real = rpc.message_class
    monkeypatch.setattr(rpc, "message_class", lambda each: Parser if each.name == "CommitRequest" else real(each))
    service = transactions_pb2.DESCRIPTOR.services_by_name["Transactions"]
    commit = unary_methods([(service, Servicer())])["cortado.v1.Transactions/Commit"]
    with pytest.raises(TooLarge, match="operations: must be at most 10000"):
        commit.parse(b"\x1a\x00" * 2_000_000)
    assert parsed == []
    commit.parse(b"\x1a\x00" * 10_000)
    assert list(map(len, parsed)) == [20_000]


def test_a_largest_honest_request_of_each_kind_passes() -> None:
    for name, method in METHODS.items():
        for path in paths_to_repeated(method.input_type):
            if len(path) > 1 or path[0].cpp_type != path[0].CPPTYPE_MESSAGE:
                continue
            request = message_class(method.input_type)()
            for _ in range(ITEMS_MAX[path[0].full_name]):
                getattr(request, path[0].name).add()
            bounds_of(METHODS[name]).check(request.SerializeToString())
