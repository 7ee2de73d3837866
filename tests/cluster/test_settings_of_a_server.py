"""A server that is started by a file, by the environment or by flags shows the same settings, with their places."""

from __future__ import annotations

import io
import json
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest

from cortado.store.cli.app import run
from support.server_process import running_server

pytestmark = pytest.mark.process

WANTED = {"heartbeat-ms": "50", "election-ms": "350", "limit.writes-max": "77", "raft.retain-bytes": "1MiB"}


def settings(*options: str) -> dict[str, dict[str, str | None]]:
    """Return the settings of ``config show``, by name."""
    with redirect_stdout(io.StringIO()) as shown, redirect_stderr(io.StringIO()):
        assert run(["config", "show", *options, "-o", "json"]) == 0
    return {each["name"]: each for each in map(json.loads, shown.getvalue().splitlines())}


@pytest.mark.parametrize("by", ["file", "environment", "flags"])
def test_a_server_shows_the_same_however_it_was_told(tmp_path: Path, by: str, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "cortado.toml"
    options: tuple[str, ...] = ()
    places: dict[str, str]
    if by == "file":
        file.write_text(
            "heartbeat-ms = 50\nelection-ms = 350\nraft.retain-bytes = '1MiB'\n\n[limit]\nwrites-max = 77\n"
        )
        options = ("--config", str(file))
        lines = {"heartbeat-ms": 1, "election-ms": 2, "raft.retain-bytes": 3, "limit.writes-max": 6}
        places = {name: f"{file}:{line}" for name, line in lines.items()}
    elif by == "environment":
        places = {name: f"CORTADO_SERVER_{name.upper().replace('-', '_').replace('.', '_')}" for name in WANTED}
        for name, variable in places.items():
            monkeypatch.setenv(variable, WANTED[name])
    else:
        places = {name: f"--{name}" for name in WANTED}
        options = tuple(word for name in WANTED for word in (f"--{name}", WANTED[name]))
    planned = settings(*options)
    with running_server(tmp_path / "data", *options) as server:
        asked = settings("--endpoint", server.endpoint)
    for found in (planned, asked):
        assert {name: found[name]["value"] for name in WANTED} == WANTED
        assert {name: found[name]["place"] for name in WANTED} == places
        assert found["limit.reads-max"]["place"] == ""
        assert found["limit.reads-max"]["origin"] == "default"
    assert planned.keys() == asked.keys()
    assert asked["data-dir"]["place"] == "--data-dir"
    assert all(asked[name]["meaning"] == planned[name]["meaning"] for name in asked)


@pytest.mark.parametrize(
    ("environment", "text", "message"),
    [
        ({"CORTADO_SERVER_LISTN": "x"}, "", "CORTADO_SERVER_LISTN: is no setting; did you mean CORTADO_SERVER_LISTEN?"),
        ({}, "\nlisten = 5\n", "listen in {file}:2: must be text (got 5)"),
        ({}, "node-id = 'n1'\njoin = ['a:1']\ncluster-id = 'ü'", "cluster-id in {file}:3: must be at most 100 ASCII"),
        ({}, "tls-cert = 'x'", "--tls-key: must be given too"),
    ],
)
def test_a_wrong_setting_stops_the_start_with_one_line_and_no_directory(
    tmp_path: Path,
    environment: dict[str, str],
    text: str,
    message: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    file = tmp_path / "cortado.toml"
    file.write_text(text)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert run(["server", "--config", str(file), "--data-dir", str(tmp_path / "data")]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert message.format(file=file) in said
    assert not (tmp_path / "data").exists()
