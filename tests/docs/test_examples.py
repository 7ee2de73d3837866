"""The examples of docs/cli/, each by itself: alternatives that a reader picks from, and no session.

They run in their order, on the data of ``cli_world.sh``. Commands that run for ever, or name other machines, are
compared with the command line by ``test_commands_exist.py``.
"""

from __future__ import annotations

import io
import os
import re
import shlex
from pathlib import Path

import pytest

from cortado.store.cli.app import run
from cortado.store.cli.headings import HEADINGS
from support.page_runner import PORTS, PageRunner, reader_environment
from support.pages import page
from support.ports import free_ports
from support.server_process import running_server

pytestmark = [pytest.mark.long, pytest.mark.process]

HERE = Path(__file__).parent
PAGES = [page(f"docs/cli/{name}.md") for name in ("README", *(heading.lower() for heading in HEADINGS))]
EXAMPLES = [
    line.partition("  #")[0].strip()
    for each in PAGES
    for block in each.blocks
    if block.language == "sh" and block.is_run
    for line in block.text.splitlines()
]

NOT_HERE = re.compile(
    r"cortado (server|gateway|dev|member (add|grow|promote|remove|rebuild|transfer-leader)|recover|cert .*/etc/"
    r"|logs|shell( -e .*)?$|backup restore|damage accept|watch .*(?<!now)(?<!now -o json)$|clock bump-epoch$)"
    r"|.*(10\.0\.0\.|127\.0\.0\.1:7622)|export CORTADO_TLS|.*(~/|jq |--dev |part-\*|s3://|--follow$)"
)
"""Runs until Ctrl-C, changes a cluster, speaks of other hosts or of damage, or writes into the reader's home."""

ENDS = (
    # The thing to create exists before the first example, or the expected one is absent.
    (r".* (db|table) create flights\S*( |$)|.*--mode insert|.*--if-(absent|etag)|cortado cert (ca|node)", 4),
    (r"cortado (kv )?get .*--at 2025-11-20|cortado table verify-indexes .*--at", 3),
    (r"cortado schema get --id 7|cortado hold end", 3),
    # The configuration's data directory is not there.
    (r"cortado doctor .*--config", 8),
    # No gateway runs beside the examples.
    (r"cortado health --gateway", 6),
)
"""Examples that end with another code than 0, since their condition does not hold here."""


def end_of(line: str) -> int:
    return next((code for pattern, code in ENDS if re.match(pattern, line)), 0)


def placed(line: str, directory: Path) -> str:
    """``line`` with its paths as they are here."""
    return (
        line.replace("/var/lib/cortado", str(directory / "stopped"))
        .replace("/etc/cortado.toml", str(directory / "etc-cortado.toml"))
        .replace("/var/log/cortado.log", str(directory / "log"))
    )


def test_every_example_ends_as_it_should(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    here = tmp_path / "here"
    with running_server(here.with_name("stopped-at-once")) as stopped:
        stopped.stop()
    (tmp_path / "log").write_text("")
    ports = free_ports(PORTS)
    with (
        running_server(tmp_path / "data", "--listen", f"127.0.0.1:{ports[0]}"),
        PageRunner(here, ports).running() as runner,
    ):
        runner.prepare(HERE / "cli_world.sh")
        (tmp_path / "stopped-at-once").rename(here / "stopped")
        (tmp_path / "log").rename(here / "log")
        for name in [name for name in os.environ if name.startswith("CORTADO_")]:
            monkeypatch.delenv(name)
        for name, value in {**reader_environment(here), **runner.endpoints()}.items():
            monkeypatch.setenv(name, value)
        monkeypatch.chdir(here)
        wrong = []
        for line in EXAMPLES:
            if NOT_HERE.match(line):
                continue
            typed = placed(line, here)
            expected = end_of(line)
            if re.search(r"[|<>;$(*]", typed):
                try:
                    runner.shell("docs/cli", typed, expected)
                except AssertionError as otherwise:
                    wrong.append(str(otherwise))
                continue
            monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"y\n")))
            ended = run(shlex.split(runner.here(typed))[1:])
            shown = capfd.readouterr()
            if ended != expected:
                wrong.append(f"{line}: {ended}, not {expected}: {shown.err.strip()}")
    assert not wrong, "\n".join(wrong)
