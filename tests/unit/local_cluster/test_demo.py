"""The demo's tables: filled once, gone on with, and never filled over tables and rows of the user."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from cortado.errors import InvalidArgument
from cortado.store.cli import demo as told
from cortado.store.cli.app import run
from cortado.store.cli.failures import INTERRUPTED, USAGE
from cortado.store.client import Client
from cortado.store.local_cluster import demo
from cortado.store.local_cluster.files import ClusterFiles, NodePlan, NodeRun, Plan, Run
from cortado.store.local_cluster.processes import ProcessId
from cortado.store.transfer.progress import silent
from support.memory_engine import MemoryEngine
from support.served_node import served_node

AIRLINES = "nyc.airlines"
NAMES = {"AA": "American", "DL": "Delta", "UA": "United"}


@pytest.fixture
def endpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Yield the address of a node for a demo of three airlines."""
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / "airlines.csv").write_text("carrier,name\n" + "".join(f"{c},{name}\n" for c, name in NAMES.items()))
    monkeypatch.setattr(demo, "data_folder", lambda: folder)
    monkeypatch.setattr(demo, "TABLES", (replace(demo.TABLES[0], rows=len(NAMES)),))
    with served_node(MemoryEngine()) as served:
        yield served.endpoint


@pytest.fixture
def client(endpoint: str) -> Iterator[Client]:
    with Client(endpoint) as made:
        yield made


def filled(client: Client) -> list[tuple[str, int]]:
    return [(table.full_name, rows) for table, rows in demo.fill(client, silent)]


def test_rows_that_are_there_stay_and_those_that_lack_come_back(client: Client) -> None:
    assert filled(client) == [(AIRLINES, 3)]
    airlines = client.table(AIRLINES)
    airlines.put({"carrier": "UA", "name": "mine"})
    airlines.delete("AA")
    assert filled(client) == [(AIRLINES, 3)]
    names = {each.value["carrier"]: each.value["name"] for each in airlines.scan()}
    assert names == NAMES | {"UA": "mine"}


def test_rows_of_the_user_are_counted_and_stay(client: Client) -> None:
    filled(client)
    airlines = client.table(AIRLINES)
    airlines.delete("AA")
    for carrier in ("UA", "YY", "ZZ"):
        airlines.put({"carrier": carrier, "name": f"my {carrier}"})
    assert filled(client) == [(AIRLINES, 4)]
    names = {each.value["carrier"]: each.value["name"] for each in airlines.scan()}
    assert names == {"DL": "Delta", "UA": "my UA", "YY": "my YY", "ZZ": "my ZZ"}


OTHER = {"type": "record", "name": "Airline", "fields": [{"name": "carrier", "type": "string"}]}


@pytest.mark.parametrize(("key", "schema"), [("name", demo.TABLES[0].schema), ("carrier", json.dumps(OTHER))])
def test_another_table_of_the_name_is_refused_before_anything_is_made(
    client: Client, monkeypatch: pytest.MonkeyPatch, key: str, schema: str
) -> None:
    monkeypatch.setattr(demo, "TABLES", (demo.DemoTable("planes", ("tailnum",), 1), *demo.TABLES))
    client.create_database("nyc")
    client.schemas.register(AIRLINES, schema)
    client.create_table(AIRLINES, [key])
    with pytest.raises(InvalidArgument, match=r"nyc\.airlines is another table there: drop it, or use another --dir"):
        filled(client)
    assert [each.full_name for each in client.tables()] == [AIRLINES]


def test_a_cluster_that_is_up_is_filled_and_an_interrupt_says_that_it_runs_on(
    endpoint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    files = ClusterFiles(tmp_path / "it's here")
    files.directory.mkdir(mode=0o700)
    files.write_plan(Plan((NodePlan("n1", endpoint, "127.0.0.1:1", True, True),)))
    files.write_run(Run(ProcessId.of(os.getpid()), {"n1": NodeRun()}, True))
    command = ["dev", "up", "--demo", "--dir", str(files.directory)]
    with monkeypatch.context() as broken:

        def interrupted(*_: object, **__: object) -> None:
            raise KeyboardInterrupt

        broken.setattr(demo, "run_import", interrupted)
        assert run(command) == INTERRUPTED
    down = f"cortado dev down --dir {shlex.quote(str(files.directory))}"
    assert f"the cluster runs on: the same command goes on with the load, {down} stops it" in capsys.readouterr().err
    assert run(command) == 0
    shown = capsys.readouterr()
    assert f"{AIRLINES}: 3 rows\n" in shown.out
    assert f"  {down}\n" in shown.out
    assert "is up already" in shown.err


def test_a_demo_in_the_foreground_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    directory = tmp_path / "cluster"
    assert run(["dev", "up", "--demo", "--foreground", "--dir", str(directory)]) == USAGE
    assert "--foreground: must not be given together with --demo" in capsys.readouterr().err
    assert not directory.exists()


def test_the_advice_quotes_paths_and_names_the_extra_of_the_console(tmp_path: Path) -> None:
    files = ClusterFiles(tmp_path / "a b")
    for name in ("ca.crt", "local.crt", "local.key"):
        files.tls.mkdir(parents=True, exist_ok=True)
        (files.tls / name).touch()
    plan = Plan((NodePlan("n1", "127.0.0.1:1", "127.0.0.1:2"),), has_tls=True)
    advice = list(told._advice(files, plan))
    exported = next(line for line in advice if "CORTADO_TLS_CA" in line)
    assert shlex.split(exported)[1] == f"CORTADO_TLS_CA={files.tls / 'ca.crt'}"
    assert "needs the extra [gateway]" in advice[advice.index("  cortado gateway") - 1]
