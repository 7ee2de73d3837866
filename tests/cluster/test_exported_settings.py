"""The settings of a table are part of its export."""

from __future__ import annotations

from pathlib import Path

import pytest

from cortado.store.client import Client, Index
from cortado.store.clock.retentions import KEEP_ALL
from cortado.store.transfer.manifest import KEPT_OF_INDEX, KEPT_OF_TABLE
from support.command_line import CommandLine
from support.server_process import ServerProcess

pytestmark = pytest.mark.process

FIELDS = [{"name": "id", "type": "long"}, {"name": "value", "type": "long"}]
SIMPLE = {"type": "record", "name": "Simple", "fields": FIELDS}


@pytest.fixture
def cortado(
    server: ServerProcess,
    capfdbinary: pytest.CaptureFixture[bytes],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> CommandLine:
    monkeypatch.chdir(tmp_path)
    return CommandLine(server.endpoint, capfdbinary, monkeypatch)


def test_a_table_keeps_its_settings_from_an_export_to_an_import(
    cortado: CommandLine, client: Client, database: str
) -> None:
    client.schemas.register(f"{database}.kept", SIMPLE)
    settings: list[dict[str, int]] = [
        {"retention_ms": 7_200_000, "ttl_ms": 86_400_000},
        {"retention_ms": KEEP_ALL, "ttl_ms": 0},
        {"retention_ms": 0, "ttl_ms": 1_000_000},
    ]
    for number, each in enumerate(settings):
        indexes = [Index("by_value", ["value desc"], unique=True)]
        client.create_table(f"{database}.t{number}", ["id"], subject=f"{database}.kept", indexes=indexes, **each)
        client.table(f"{database}.t{number}").put({"id": 1, "value": 2})
    copy = f"{database}-copy"
    cortado("export", database, "backup")
    cortado("import", copy, "backup")
    cortado("export", f"{database}.t0", "one/")
    cortado("import", f"{database}.again", "one/", "--create")
    copies = [f"{copy}.t{number}" for number in range(len(settings))]
    for name, of, each in zip([*copies, f"{database}.again"], (0, 1, 2, 0), [*settings, settings[0]], strict=True):
        before, found = client.describe(f"{database}.t{of}"), client.describe(name)
        # Its own name, and that of a subject which was named after its table.
        others = {"name"} if name.endswith("again") else set[str]()
        for field in {*KEPT_OF_TABLE} - others - {"indexes"}:
            assert getattr(found, field) == getattr(before, field), field
        for kept in KEPT_OF_INDEX:
            assert [getattr(index, kept) for index in found.indexes] == [
                getattr(index, kept) for index in before.indexes
            ]
        assert (found.retention_ms, found.ttl_ms) == (each["retention_ms"], each["ttl_ms"])
