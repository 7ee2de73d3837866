"""``cortado table drop`` and related commands: their questions and answers, for people and for scripts."""

from __future__ import annotations

import json

import pytest

from cortado.store.client import Client, Index
from support.command_line import CommandLine
from support.server_process import ServerProcess

pytestmark = pytest.mark.process

ITEM = {"type": "record", "name": "Item", "fields": [{"name": "id", "type": "long"}]}
REFUSED = 2
NOT_FOUND = 3
CONFLICT = 4


@pytest.fixture
def cli(
    server: ServerProcess, capfdbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch
) -> CommandLine:
    return CommandLine(server.endpoint, capfdbinary, monkeypatch)


@pytest.fixture
def name(client: Client, database: str) -> str:
    full_name = f"{database}.items"
    client.schemas.register(full_name, json.dumps(ITEM))
    client.create_table(full_name, ["id"], indexes=[Index("by_id", ["id"])])
    client.table(full_name).put({"id": 1})
    return full_name


def test_nothing_is_dropped_without_a_yes(cli: CommandLine, client: Client, name: str) -> None:
    database = name.partition(".")[0]
    for command in (["table", "drop", name], ["table", "truncate", name], ["db", "drop", database, "--cascade"]):
        cli(*command, expect=REFUSED)
        assert "--yes" in cli.err
        cli(*command, expect=130, stdin=b"n\n")
        cli(*command, "--dry-run")
        assert cli.out.startswith(b"would ")
    assert [each.value for each in client.table(name).scan()] == [{"id": 1}]
    cli("table", "drop", name, stdin=b"y\n")
    assert client.tables(database) == []


def test_a_table_goes_is_listed_and_comes_back(cli: CommandLine, client: Client, name: str) -> None:
    before = str(client.now())
    (record,) = cli.json("table", "drop", name, "--yes")
    assert (record["kind"], record["name"], record["is_clearing"]) == ("table", name, False)
    assert record in cli.json("table", "list", "--dropped", name.partition(".")[0])
    listed = cli("table", "list", "--dropped").decode()
    assert name in listed and "can be undropped" in listed
    assert cli.json("get", name, "1", "--at", before) == [{"id": 1}]
    assert [each["table"] for each in cli.json("table", "list", name.partition(".")[0], "--at", before)] == [name]
    assert cli.json("table", "describe", name, "--at", before)[0]["table_id"] == record["table_id"]
    assert cli.json("scan", name, "1", "--index", "by_id", "--at", before) == [{"id": 1}]
    assert cli.json("table", "split", name, "1", "--at", before)[0]["rows"] == 1
    assert cli.json("table", "verify-indexes", name, "--at", before)[0]["rows"] == 1
    assert cli.json("export", name, "-", "--at", before, "--quiet") == [{"id": 1}]
    cli("get", name, "1", expect=NOT_FOUND)
    cli("table", "drop", name, "--yes", expect=NOT_FOUND)
    assert cli.json("table", "undrop", name)[0]["table_id"] == record["table_id"]
    cli("table", "undrop", name, expect=NOT_FOUND)
    assert cli.json("get", name, "1") == [{"id": 1}]


def test_a_taken_name_is_refused_and_another_one_works(cli: CommandLine, client: Client, name: str) -> None:
    (record,) = cli.json("table", "truncate", name, "--yes")
    cli("table", "undrop", name, expect=REFUSED)
    assert "--as: must be given" in cli.err
    number = str(record["number"])
    assert cli.json("table", "undrop", name, "--as", "before", "--number", number)[0]["table_id"] == record["table_id"]
    cli("table", "rename", f"{name.partition('.')[0]}.before", "items", expect=CONFLICT)
    assert cli.json("table", "rename", name, "empty")[0]["table"].endswith(".empty")
    cli("table", "alter", f"{name.partition('.')[0]}.empty", "--retention", "36h")
    assert b"old versions of" in cli.out and b"36h" in cli.out
    for wrong in ("7", "7w", "-1", "", "1.5d"):
        cli("table", "alter", f"{name.partition('.')[0]}.empty", "--retention", wrong, expect=REFUSED)


def test_a_database_goes_with_its_tables_and_comes_back(cli: CommandLine, client: Client, name: str) -> None:
    database = name.partition(".")[0]
    cli("db", "drop", database, "--yes", expect=REFUSED)
    assert "--cascade" in cli.err
    (dropped,) = cli.json("db", "drop", database, "--cascade", "--yes")
    assert dropped["tables"] == [name]
    assert database not in client.databases()
    (back,) = cli.json("db", "undrop", database, "--as", f"{database}x", "--number", str(dropped["number"]))
    assert back == {"database": f"{database}x", "tables": [f"{database}x.items"], "cleared": []}
    cli("db", "undrop", database, expect=NOT_FOUND)
    assert cli.json("get", f"{database}x.items", "1") == [{"id": 1}]
