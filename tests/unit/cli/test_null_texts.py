"""The text \\N, which is null in the parts of an index, is a key like others at the command line."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from cortado.store.cli.app import run
from cortado.store.client import Client, Index
from support.memory_engine import MemoryEngine
from support.served_node import served_node

SCHEMA = {
    "type": "record",
    "name": "Item",
    "fields": [{"name": "id", "type": "string"}, {"name": "name", "type": ["null", "string"], "default": None}],
}
TEXT = "\\N"

Command = Callable[..., list[Any]]


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    with served_node(MemoryEngine()) as node:
        with Client(node.endpoint) as client:
            client.create_database("shop")
            client.schemas.register("shop.items", SCHEMA)
            client.create_table("shop.items", key=["id"], indexes=[Index("by_name", ["name"])])
        yield node.endpoint


@pytest.fixture
def command(endpoint: str, capsys: pytest.CaptureFixture[str]) -> Command:
    def said(*given: str, status: int = 0) -> list[Any]:
        assert run([*given, "-o", "json", "-e", endpoint]) == status, capsys.readouterr().err
        return [json.loads(line) for line in capsys.readouterr().out.splitlines()]

    return said


def test_it_is_written_read_listed_and_deleted(command: Command) -> None:
    for id_, name in ((TEXT, TEXT), ("plain", None)):
        command("put", "shop.items", json.dumps({"id": id_, "name": name}))
    assert command("get", "shop.items", TEXT) == [{"id": TEXT, "name": TEXT}]
    assert [each["id"] for each in command("scan", "shop.items", TEXT)] == [TEXT]
    assert [each["id"] for each in command("scan", "shop.items", "--start", TEXT, "--end", f"{TEXT}0")] == [TEXT]
    by_name = ("scan", "shop.items", "--index", "by_name")
    assert [each["id"] for each in command(*by_name, TEXT)] == ["plain"], "null"
    assert [each["id"] for each in command(*by_name, f"\\{TEXT}")] == [TEXT]
    assert [each["id"] for each in command(*by_name, "--start", f"\\{TEXT}")] == [TEXT]
    assert command("update", "shop.items", TEXT, "--set", 'name="n"') == [{"id": TEXT, "name": "n"}]
    assert command("delete", "shop.items", TEXT) == [{"existed": True}]
    command("get", "shop.items", TEXT, status=3)
