"""The commands in docs/operations.md exist, and its example of a configuration is one."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from cortado.store.server.settings import configuration, gathered
from support.commands import found

PAGE = (Path(__file__).parents[3] / "docs" / "operations.md").read_text()
LINES = [
    line
    for block in re.findall(r"^```sh$(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    for line in block.strip().splitlines()
    if line.startswith("cortado ")
]
INLINE = re.findall(r"`(cortado [a-z-]+[^`]*)`", PAGE)
FILES = re.findall(r"^```toml$(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("line", LINES)
def test_every_command_in_a_block_parses(line: str) -> None:
    # The shell's: whether it waits for the command.
    node, words = found(shlex.split(line.removesuffix(" &"), comments=True)[1:], line)
    node.make_context(line, words)


@pytest.mark.parametrize("line", INLINE)
def test_every_command_that_is_named_exists(line: str) -> None:
    node, words = found(line.split()[1:], line)
    offered = {option for parameter in node.params for option in parameter.opts}
    assert {word for word in words if word.startswith("--")} <= offered


def test_the_example_of_a_file_is_a_configuration(tmp_path: Path) -> None:
    first, joining = FILES
    for name in ("db1.crt", "db1.key", "ca.crt"):
        (tmp_path / name).touch()
    file = tmp_path / "cortado.toml"
    file.write_text((joining + first).replace("/etc/cortado", str(tmp_path)))
    config = configuration(gathered({}, file))
    assert config.node_id == "db1"
    assert len(config.join) == 3


def test_the_unit_does_not_restart_what_no_restart_cures() -> None:
    unit = re.search(r"^```ini$(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    assert unit is not None
    assert "RestartPreventExitStatus=2 8 78" in unit[1]
