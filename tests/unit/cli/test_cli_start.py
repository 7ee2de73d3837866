"""A run pays at its start for the named command, and for the needs of that command alone."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from cortado.store.cli import commands as command_modules
from cortado.store.cli.headings import HEADINGS
from support.commands import commands

HEAVY = ("grpc", "google.protobuf", "rich", "asyncio", "ssl", "numpy", "pyarrow", "cortado.store.client.client")


def loaded_by(arguments: list[str], environment: str = "{}") -> set[str]:
    """Return the modules that a run has loaded at its end."""
    code = (
        f"import os, sys; os.environ.update({environment}); sys.argv[1:] = {arguments!r}\n"
        "from cortado.store.cli import main\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        "sys.stderr.write(' '.join(sys.modules))"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd="/")
    return set(shown.stderr.split())


def completing(words: str) -> set[str]:
    typed = {"_CORTADO_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}
    return loaded_by([], repr(typed))


@pytest.mark.parametrize("arguments", [["--version"], ["--help"], ["completion", "bash"]])
def test_what_asks_no_server_loads_no_client_and_no_rich(arguments: list[str]) -> None:
    assert not loaded_by(arguments) & set(HEAVY)


@pytest.mark.parametrize("words", ["cortado st", "cortado kv ", "cortado kv get --", "cortado debug mvcc "])
def test_completing_a_word_loads_no_client_and_no_rich(words: str) -> None:
    assert not completing(words) & set(HEAVY)


def test_completing_the_first_word_loads_no_command() -> None:
    assert not {each for each in completing("cortado st") if each.startswith("cortado.store.cli.commands.")}


def test_no_module_of_commands_loads_what_does_their_work() -> None:
    lines = [line for heading in HEADINGS.values() for line in heading]
    modules = {module for line in lines for of_command in line.modules.values() for module in of_command}
    code = "import sys, importlib\n" + "".join(
        f"importlib.import_module('cortado.store.cli.commands.{each}')\n" for each in sorted(modules)
    )
    code += f"print([each for each in {HEAVY!r} if each in sys.modules])"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd="/")
    assert shown.stdout.strip() == "[]"


def test_a_get_loads_what_a_get_needs() -> None:
    loaded = loaded_by(["kv", "get", "n", "k", "-e", "127.0.0.1:1", "--timeout", "0.1"])
    assert "cortado.store.client.client" in loaded
    parts = (
        "transfer.load",
        "transfer.export",
        "doctor",
        "local_cluster",
        "server",
        "cli.loading",
        "cli.commands.table",
    )
    found = {each for each in loaded for part in parts if each.startswith(f"cortado.store.{part}")}
    assert not found
    assert not loaded & {"rich", "numpy", "pyarrow", "fastavro"}
    assert {each for each in loaded if each.startswith("cortado.store.cli.commands.")} == {
        "cortado.store.cli.commands.kv"
    }


def test_each_command_at_the_top_is_in_one_line_of_the_help() -> None:
    lines = [line for heading in HEADINGS.values() for line in heading]
    shown = [name for line in lines for name in line.modules]
    assert sorted(shown) == sorted({name.split()[1] for name, _ in commands()})
    modules = {module for line in lines for of_command in line.modules.values() for module in of_command}
    assert modules == {path.stem for path in Path(command_modules.__path__[0]).glob("[a-z]*.py")}
