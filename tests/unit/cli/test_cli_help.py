"""Every command and option is explained: in its help, with an example, and in docs/cli/."""

from __future__ import annotations

import json
import re
import runpy
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from cortado.store.cli import failures
from cortado.store.cli.app import run
from cortado.store.cli.headings import HEADINGS
from cortado.store.cli.session import GLOBAL_PANEL, global_options
from cortado.store.settings.gateway import GATEWAY_SETTINGS
from cortado.store.settings.server import SETTINGS
from support.commands import ROOT, commands, found

REPOSITORY = Path(__file__).parents[3]
PAGES = {path.name: path.read_text() for path in sorted((REPOSITORY / "docs" / "cli").glob("*.md"))}
DOCS = "\n".join(PAGES.values())
# These commands take all settings as options, on a page of their own.
TAKES_SETTINGS = {"cortado server", "cortado gateway", "cortado config show"}
SETTING_FLAGS = {each.flag for each in (*SETTINGS, *GATEWAY_SETTINGS)}


COMMANDS = dict(commands())


def section_of(command: str) -> str:
    found = re.search(rf"^### `{re.escape(command)}`$(.*?)(?=^##)", DOCS + "\n##", re.M | re.S)
    assert found, f"docs/cli/ has no section ### `{command}`"
    return found[1]


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_and_option_is_documented(command: str) -> None:
    section = section_of(command)
    for parameter in COMMANDS[command].params:
        is_global = getattr(parameter, "panel", None) == GLOBAL_PANEL
        if parameter.name == "help" or is_global or getattr(parameter, "hidden", False):
            continue
        if parameter.param_type_name == "argument":
            shown = parameter.declared_metavar
            assert f"`{shown}`" in section, f"{command} {shown} is not in docs/cli/"
        if command in TAKES_SETTINGS and set(parameter.opts) <= SETTING_FLAGS:
            continue
        for option in parameter.opts if parameter.param_type_name == "option" else ():
            assert f"`{option}" in section, f"{command} {option} is not in docs/cli/"
    documented = set(re.findall(r"^\| `(-[\w-]+|--[\w-]+)", section, re.M)) | set(re.findall(r", `(--[\w-]+)", section))
    params = COMMANDS[command].params
    offered = {option for parameter in params for option in (*parameter.opts, *parameter.secondary_opts)}
    assert documented <= offered, f"docs/cli/ documents what {command} has not: {documented - offered}"


def test_the_global_options_are_documented() -> None:
    for parameter in ROOT.params:
        for option in parameter.opts:
            assert f"`{option}" in PAGES["README.md"], f"{option} is not in docs/cli/README.md"


def test_the_pages_say_what_the_help_says() -> None:
    written = runpy.run_path(str(REPOSITORY / "tools" / "cli_pages.py"))["updated"](PAGES)
    assert written.keys() == PAGES.keys()
    assert [name for name, text in written.items() if text != PAGES[name]] == [], "run make cli-pages"


def test_no_page_is_too_long_to_read() -> None:
    assert {name: text.count("\n") for name, text in PAGES.items() if text.count("\n") > 550} == {}


def test_help_says_once_that_an_option_is_required(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["table", "create", "--help"]) == 0
    assert capsys.readouterr().out.count("[required]") == 1


def test_no_command_is_documented_that_is_not_there() -> None:
    documented = set(re.findall(r"^### `(cortado[^`]*)`$", DOCS, re.M))
    assert documented == set(COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_commands_help_ends_with_an_example_of_itself(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    words = command.split()[1:]
    assert run([*words, "--help"]) == 0
    shown = capsys.readouterr().out
    assert "Examples:" in shown
    assert command in shown.split("Examples:")[1]


def test_help_at_the_top_fits_on_a_screen_under_five_headings(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert run(["--help"]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert len(shown) <= 50
    assert [line for line in shown if re.fullmatch(r"[A-Z]\w+:", line)] == [f"{name}:" for name in HEADINGS]
    assert list(HEADINGS) == ["Run", "Data", "Define", "Operate", "Repair"]
    for line in (line for lines in HEADINGS.values() for line in lines):
        # Neither names nor text are wrapped.
        assert [each for each in shown if re.fullmatch(rf"  {line.names} +{re.escape(line.help)}", each)], line.names
    assert shown[-4].strip() == "Example:"
    example = shown[-3].strip()
    assert example.startswith("cortado ")
    for words in example.split(" && "):
        found(words.split()[1:], words)


@pytest.mark.parametrize(("columns", "widest"), [(100, 100), (300, 120)])
def test_help_is_as_wide_as_the_terminal_up_to_lines_that_are_easy_to_read(
    columns: int, widest: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    assert run(["put", "--help"]) == 0
    assert widest - 10 < max(map(len, capsys.readouterr().out.splitlines())) <= widest


def test_the_global_options_are_explained_by_a_command_of_their_own(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["options", "-o", "json"]) == 0
    shown = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [each["option"] for each in shown] == [max(each.opts, key=len) for each in global_options()]
    assert all(each["meaning"] for each in shown)
    assert run(["kv", "get", "--help"]) == 0
    assert "see cortado options" in capsys.readouterr().out


@pytest.mark.parametrize("command", COMMANDS)
def test_a_paragraph_of_help_wraps_where_the_terminal_ends_and_nowhere_else(command: str) -> None:
    assert all("\n" not in each for each in COMMANDS[command].help.split("\n\n"))


@pytest.mark.parametrize("command", COMMANDS)
def test_every_example_parses(command: str) -> None:
    """The examples' options and arguments are ones that the command takes."""
    for line in COMMANDS[command].declared.examples:
        for words in shell_commands(line):
            if words[0] == "cortado":
                name = max((each for each in COMMANDS if " ".join(words).startswith(each)), key=len)
                COMMANDS[name].make_context(name, words[len(name.split()) :])


def shell_commands(line: str) -> Iterator[list[str]]:
    """Yield the words of each command of a pipe, without redirections."""
    command: list[str] = []
    words = iter(shlex.split(line))
    for word in words:
        if word in ("<", ">"):
            next(words)
        elif word == "|":
            yield command
            command = []
        else:
            command.append(word)
    yield command


def test_the_client_side_needs_nothing_of_the_server() -> None:
    code = (
        "import sys; from cortado.store.cli.app import build; build();"
        "print({'lmdb', 'numpy', 'pyarrow', 'uvloop', 'cortado.store.server'} & set(sys.modules))"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd="/")
    assert shown.stdout.strip() == "set()"


def test_a_server_without_its_extra_names_the_command_that_installs_it() -> None:
    code = "import sys; sys.modules['lmdb'] = None; from cortado.store.cli.app import run; sys.exit(run(['server']))"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd="/")
    assert shown.returncode == failures.USAGE
    assert shown.stderr.count("\n") == 1
    assert "a server without the extra [server]" in shown.stderr
    assert "pip install 'cortadodb[server]'" in shown.stderr
