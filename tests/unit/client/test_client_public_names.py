"""The names that an application types and sees: names from ``cortado`` itself, and a client's printed form."""

from __future__ import annotations

import ast
import asyncio
import builtins
import inspect
from collections.abc import Iterator

import pytest

import cortado
from cortado import AsyncClient, Client
from cortado.errors import InvalidArgument

FOREIGN = {
    *dir(builtins),
    "ssl",
    "Any",
    "Self",
    "Literal",
    "Unpack",
    "Final",
    "Callable",
    "Awaitable",
    "Iterator",
    "AsyncIterator",
} | {
    *("Iterable", "Sequence", "Mapping", "TracebackType", "datetime", "date", "timedelta", "Decimal", "UUID", "Path"),
    *("pa", "pd", "pl", "T", "D", "K", "V", "R", "AvroType", "CortadoError"),
}
"""Python's names, Arrow's and the data frames', and variables of types."""
OPAQUE = {"Backups", "AsyncBackups", "Schema", "Environment"}
"""Types that have modules of their own, :mod:`cortado.store.backup` for example."""


def signatures(cls: type) -> Iterator[tuple[str, str]]:
    """Yield where a public signature or a public field has an annotation, and its text."""
    for name, member in inspect.getmembers(cls):
        function = inspect.unwrap(member.fget if isinstance(member, property) else member)
        if inspect.isfunction(function) and (not name.startswith("_") or (name == "__init__" and cls in CLIENTS)):
            yield from ((f"{cls.__name__}.{name}", str(each)) for each in function.__annotations__.values())
    for name, annotation in getattr(cls, "__annotations__", {}).items():
        if not name.startswith("_"):
            yield f"{cls.__name__}.{name}", str(getattr(annotation, "__forward_arg__", annotation))


def names_in(annotation: str) -> set[str]:
    """Return the names in the text of an annotation; of ``pa.Table``, ``pa``."""
    return {each.id for each in ast.walk(ast.parse(annotation, mode="eval")) if isinstance(each, ast.Name)}


CLIENTS = [cortado.Client, cortado.AsyncClient]


def test_cortado_exports_every_type_that_a_public_signature_names() -> None:
    seen, ahead, missing = set(CLIENTS), [*CLIENTS], set[str]()
    while ahead:
        for where, annotation in signatures(ahead.pop()):
            for name in names_in(annotation) - FOREIGN:
                found = getattr(cortado, name, None)
                if found is None:
                    missing.add(f"{name}, of {where}")
                elif inspect.isclass(found) and name not in OPAQUE and found not in seen:
                    seen.add(found)
                    ahead.append(found)
    assert missing == set()
    assert cortado.TableDescriptor in seen, "the walk reaches what the values hold"


@pytest.mark.parametrize("name", [each for each in cortado.__all__ if each != "__version__"])
def test_every_public_name_is_had_from_cortado(name: str) -> None:
    found = getattr(cortado, name)
    assert not inspect.isclass(found) or found.__name__ == name


def test_a_shell_completes_every_public_name() -> None:
    assert set(cortado.__all__) <= set(dir(cortado))


def test_a_client_and_its_parts_say_what_they_are() -> None:
    with Client("127.0.0.1:1,127.0.0.1:2", timeout_s=2.5) as client:
        assert repr(client) == "Client('127.0.0.1:1,127.0.0.1:2', timeout_s=2.5)"
        assert repr(client.with_timeout(5)) == "Client('127.0.0.1:1,127.0.0.1:2', timeout_s=5)"
        assert repr(client.kv("sessions")) == "KeyValue('sessions')"
        assert repr(client.table("shop.orders")) == "Table('shop.orders')"


def test_an_asyncio_client_says_so() -> None:
    async def shown() -> str:
        async with AsyncClient("127.0.0.1:1") as client:
            return f"{client!r} {client.kv('a')!r}"

    assert asyncio.run(shown()) == "AsyncClient('127.0.0.1:1', timeout_s=10) AsyncKeyValue('a')"


def test_a_scan_of_no_columns_is_refused_and_not_one_of_all() -> None:
    with Client("127.0.0.1:1") as client, pytest.raises(InvalidArgument, match="columns: must name a field or more"):
        list(client.table("shop.orders").scan(columns=[]))
