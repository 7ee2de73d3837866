"""The names that an application types and sees: names from ``cortado`` itself, and a client's printed form."""

from __future__ import annotations

import asyncio

import pytest

import cortado
from cortado import AsyncClient, Client
from cortado.errors import InvalidArgument


@pytest.mark.parametrize("name", [each for each in cortado.__all__ if each != "__version__"])
def test_every_public_name_is_had_from_cortado(name: str) -> None:
    assert getattr(cortado, name).__name__ == name


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
