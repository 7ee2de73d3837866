"""README's taste works as it stands there: the server, the command line, then Python."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from cortado import Client
from support.readme import taste
from support.server_process import running_server

pytestmark = pytest.mark.process


def test_it_is_started_and_hurt_by_commands_that_there_are() -> None:
    (_, start), _, (_, hurt), *_ = taste()
    assert [line.partition(" #")[0].rstrip() for line in (start + hurt).splitlines()] == [
        "make setup",
        ". .venv/bin/activate",
        "cortado cluster up",
        "cortado member list",
        "cortado cluster kill n1",
        "cortado -e 127.0.0.1:7622 get shop.orders ada 1",
    ]


def test_the_taste_runs_as_it_stands(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, (_, shell), _, (_, python), _ = taste()
    with running_server(tmp_path / "cortado-data") as server:
        # As an activated environment has it.
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        environment = {**os.environ, "PATH": path, "CORTADO_ENDPOINT": server.endpoint}
        command = ["bash", "-euo", "pipefail", "-c", shell]
        ran = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120)
        assert (ran.returncode, ran.stderr) == (0, "")
        order = {"customer": "ada", "number": 1, "day": "2026-03-01", "total": "12.50"}
        assert json.loads(ran.stdout.splitlines()[-1]) == order

        names: dict[str, Any] = {}
        exec(compile(python.replace("127.0.0.1:7621", server.endpoint), "README.md", "exec"), names)
        assert capsys.readouterr().out == "13.00 was 12.50\n"
        with Client(server.endpoint) as client:
            assert client.table("shop.orders").get(("ada", 1)).value["total"] == Decimal("13.00")
            assert [table.name for table in client.tables("shop")] == ["orders", "orders_copy"]
