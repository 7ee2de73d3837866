"""Over a real port: a principal with the right to create cannot fill a bound for all others."""

from __future__ import annotations

from pathlib import Path

import pytest

from cortado.errors import ResourceExhausted
from cortado.store.catalog import declare, dropped, registry
from cortado.store.client import Client
from support.memory_engine import MemoryEngine
from support.served_node import served_node

SCHEMA = '{"type": "record", "name": "Row", "fields": [{"name": "id", "type": "long"}]}'


def fill(client: Client, database: str, what: str) -> int:
    """Return how many of these the client may make, until it is refused."""
    for number in range(20):
        name = f"{database}.{what}{number}"
        try:
            if what == "subject":
                client.schemas.register(name, SCHEMA)
            elif what == "table":
                client.create_table(name, ["id"], subject=f"{database}.rows")
            else:
                client.truncate_table(f"{database}.table0")
        except ResourceExhausted as refused:
            assert refused.message().startswith(f"principal {database} has ")
            return number
    raise AssertionError(f"{database} was never refused")


def test_owners_of_a_database_share_what_there_may_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module, name in ((declare, "TABLES_MAX"), (dropped, "DROPPED_MAX"), (registry, "SUBJECTS_MAX")):
        monkeypatch.setattr(module, name, 12)
    with served_node(MemoryEngine(), tmp_path) as served:
        with Client(served.endpoint) as anybody:
            token = anybody.admin.auth.enable("root").token
        assert token is not None
        found: dict[str, list[int]] = {}
        with Client(served.endpoint, token=token.text) as admin:
            for name in ("mallory", "alice"):
                admin.create_database(name)
                issued = admin.admin.auth.create(name)
                assert issued.token is not None
                admin.admin.auth.grant(name, "owner", f"database:{name}")
                with Client(served.endpoint, token=issued.token.text, timeout_s=2) as client:
                    client.schemas.register(f"{name}.rows", SCHEMA)
                    found[name] = [fill(client, name, each) for each in ("subject", "table", "dropped")]
            assert {each.full_name.partition(".")[0] for each in admin.tables()} == {"mallory", "alice"}
        assert found == {"mallory": [5, 6, 6], "alice": [2, 3, 3]}
