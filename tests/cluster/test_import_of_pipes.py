"""An import reads a pipe, such as ``<(command)``, once: looking into it first would take its rows."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cortado.store.client import Client
from support.command_line import CommandLine
from support.pipes import pipe_with
from support.server_process import ServerProcess

pytestmark = pytest.mark.process

SCHEMA = {"type": "record", "name": "Row", "fields": [{"name": "id", "type": "long"}, {"name": "v", "type": "string"}]}
ROWS = [{"id": n, "v": f"v{n}"} for n in range(90)]


@pytest.mark.parametrize("format", ["jsonl", "csv", "avro"])
def test_rows_and_schema_come_from_pipes(
    server: ServerProcess,
    client: Client,
    database: str,
    format: str,
    tmp_path: Path,
    capsysbinary: pytest.CaptureFixture[bytes],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    cortado = CommandLine(server.endpoint, capsysbinary, monkeypatch)
    table, copy, file = f"{database}.rows", f"{database}.copy", f"rows.{format}"
    client.schemas.register(table, SCHEMA)
    client.create_table(table, ["id"])
    client.table(table).put_many(ROWS)
    cortado("export", table, file)
    content = Path(file).read_bytes()
    with pipe_with(json.dumps(SCHEMA).encode()) as schema, pipe_with(content) as path:
        making = ["--create", "--key", "id", "--schema", str(schema)]
        [done] = cortado.json("import", copy, str(path), "--format", format, *making)
    assert (done["written"], done["refused"]) == (90, 0)
    assert [found.value for found in client.table(copy).scan()] == ROWS
    # Beside a file, whose progress is told in bytes.
    with pipe_with(content) as path:
        [done] = cortado.json("import", copy, file, str(path), "--format", format)
        assert (done["written"], done["refused"]) == (180, 0)
        cortado("import", copy, str(path), "--format", format, "--resume", expect=2)
    assert "--resume: needs files, not standard input, a pipe or --dry-run" in cortado.err
