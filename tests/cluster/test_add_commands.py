"""``cortado add`` and ``cortado kv add``: sums, and the bounds that they stay within."""

from __future__ import annotations

import json

import pytest

from support.command_line import CommandLine
from support.server_process import ServerProcess

pytestmark = pytest.mark.process

REFUSED = 2
NOT_FOUND = 3
CONFLICT = 4


@pytest.fixture
def cli(
    server: ServerProcess, capfdbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch
) -> CommandLine:
    return CommandLine(server.endpoint, capfdbinary, monkeypatch)


def test_adds_show_their_sums_and_stay_within_bounds(cli: CommandLine, database: str) -> None:
    table, left = f"{database}.items", ["--field", "left"]
    fields = [{"name": "id", "type": "long"}, {"name": "left", "type": "int"}, {"name": "name", "type": "string"}]
    schema = {"type": "record", "name": "Item", "fields": fields}
    cli("schema", "register", table, "-", stdin=json.dumps(schema).encode())
    cli("table", "create", table, "--key", "id")
    cli("put", table, '{"id": 1, "left": 5, "name": "tea"}')
    assert cli("add", table, "1", *left) == b"6\n"
    assert cli.json("add", table, "1", *left, "--by", "-2", "--min", "0") == [{"sum": 4}]
    cli("add", table, "1", *left, "--by", "5", "--max", "8", expect=CONFLICT)
    assert "at most 8" in cli.err
    cli("add", table, "1", "--field", "name", expect=REFUSED)
    cli("add", table, "1", expect=REFUSED)
    assert "Missing option '--field'" in cli.err
    cli("add", table, "2", *left, expect=NOT_FOUND)
    assert cli.json("get", table, "1") == [{"id": 1, "left": 4, "name": "tea"}]
    assert cli("kv", "add", database, "seats", "--by", "7", "--max", "10") == b"7\n"
    assert cli.json("kv", "add", database, "seats", "--by=-3", "--min", "0") == [{"sum": 4}]
    cli("kv", "add", database, "seats", "--by", "-5", "--min", "0", expect=CONFLICT)
    cli("kv", "add", database, "seats", "--min", "2", "--max", "1", expect=REFUSED)
    cli("kv", "add", database, "seats", "--by", "much", expect=REFUSED)
