"""The settings of the command line: flags win over the environment, that over the context, that over the default."""

from __future__ import annotations

import json
import stat
from itertools import product
from pathlib import Path

import pytest

from cortado.errors import CortadoError
from cortado.store.cli.app import run
from cortado.store.cli.session import Given, Session

FILE = """\
# my clusters
current = "prod"

[contexts.prod]  # the real one
endpoints = ["db1:7621", "db2:7621"]
tls-ca = "ca.crt"
timeout = 5
output = "json"

[contexts.dev]
endpoints = ["127.0.0.1:7621"]
"""


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "config.toml"
    path.write_text(FILE)
    path.chmod(0o600)
    monkeypatch.setenv("CORTADO_CONFIG", str(path))
    return path


def shown(capsys: pytest.CaptureFixture[str], *arguments: str, expect: int = 0) -> str:
    assert run(arguments) == expect
    answer = capsys.readouterr()
    return answer.err if expect else answer.out


@pytest.mark.parametrize(("flag", "variable", "context"), list(product([False, True], repeat=3)))
def test_flags_win_over_the_environment_over_the_context_over_the_default(
    file: Path, flag: bool, variable: bool, context: bool
) -> None:
    given = Given(endpoint="a:1", timeout=1.0) if flag else Given()
    environment = {"CORTADO_ENDPOINTS": "b:2,c:3", "CORTADO_TIMEOUT": "2"} if variable else {}
    environment |= {"CORTADO_CONFIG": str(file)} if context else {"XDG_CONFIG_HOME": str(file.parent / "none")}
    session = Session.resolve(given, environment)
    places = {each.setting.name: each.place for each in session.found}
    if flag:
        assert (session.endpoint, session.timeout_s) == ("a:1", 1.0)
        assert (places["endpoints"], places["timeout"]) == ("--endpoint", "--timeout")
    elif variable:
        assert (session.endpoint, session.timeout_s) == ("b:2,c:3", 2.0)
        assert (places["endpoints"], places["timeout"]) == ("CORTADO_ENDPOINTS", "CORTADO_TIMEOUT")
    elif context:
        assert (session.endpoint, session.timeout_s) == ("db1:7621,db2:7621", 5.0)
        assert (places["endpoints"], places["timeout"]) == (f"{file}:5", f"{file}:7")
    else:
        assert (session.endpoint, session.timeout_s) == ("127.0.0.1:7621", 10.0)
        assert (places["endpoints"], places["timeout"]) == ("", "")
    assert session.tls_ca == (str(file.parent / "ca.crt") if context else None), "each setting by itself"
    assert session.as_json is context


def test_a_context_is_named_by_the_flag_the_environment_or_the_file(file: Path) -> None:
    environment = {"CORTADO_CONFIG": str(file)}
    assert Session.resolve(Given(), environment).context.name == "prod"
    by_variable = environment | {"CORTADO_CONTEXT": "dev"}
    assert Session.resolve(Given(), by_variable).endpoint == "127.0.0.1:7621"
    assert Session.resolve(Given(context="prod"), by_variable).endpoint == "db1:7621,db2:7621"
    assert Session.resolve(Given(context="none"), by_variable).context.name == ""


def test_the_file_is_where_xdg_says(tmp_path: Path) -> None:
    path = tmp_path / "cortado" / "config.toml"
    path.parent.mkdir()
    path.write_text(FILE)
    path.chmod(0o644)
    assert Session.resolve(Given(), {"XDG_CONFIG_HOME": str(tmp_path)}).context.name == "prod"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("currnt = 'a'", "currnt in {file}:1: is nothing that this file has; did you mean current?"),
        ("\ncurrent = 'pro'\n[contexts.prod]", "current in {file}:2: is no context; there are prod"),
        ("current = 5", "current in {file}:1: must be the name of a context"),
        ("contexts = 5", "contexts in {file}:1: must be a table for each"),
        ("[contexts]\nprod = 5", "contexts.prod in {file}:2: must be a table of settings"),
        ("[contexts.'a b']", "contexts.a b in {file}:1: must be at most 64 letters"),
        ("[contexts.none]", "contexts.none in {file}:1: must be at most 64 letters"),
        (
            "current='p'\n[contexts.p]\nendpoint = ['a:1']",
            "endpoint in {file}:3: is no setting; did you mean endpoints?",
        ),
        ("current='p'\n[contexts.p]\nendpoints = ['a']", "endpoints in {file}:3: must look like host:port"),
        ("current='p'\n[contexts.p]\nendpoints = [5]", "endpoints in {file}:3: must be a list of texts"),
        ("current='p'\n[contexts.p]\noutput = 'xml'", "output in {file}:3: must be table or json (got 'xml')"),
        ("current='p'\n[contexts.p]\ntimeout = 'x'", "timeout in {file}:3: must be a number of seconds"),
        ("current='p'\n[contexts.p]\ntimeout = 0", "timeout in {file}:3: must be above 0 and at most 86400"),
        ("current =", "CORTADO_CONFIG: is not TOML"),
    ],
)
def test_what_is_wrong_in_the_file_is_named_with_its_line(file: Path, text: str, message: str) -> None:
    file.write_text(text)
    with pytest.raises(CortadoError) as refused:
        Session.resolve(Given(), {"CORTADO_CONFIG": str(file)})
    assert refused.value.message().startswith(message.format(file=file))


@pytest.mark.parametrize("mode", [0o620, 0o602, 0o666])
def test_a_file_that_others_may_write_is_refused(file: Path, mode: int) -> None:
    file.chmod(mode)
    with pytest.raises(CortadoError, match=rf"may be written by others.*chmod go-w .*\(got mode {mode:o}\)"):
        Session.resolve(Given(), {"CORTADO_CONFIG": str(file)})


@pytest.mark.parametrize(
    ("environment", "message"),
    [
        ({"CORTADO_ENDPOINT": "a:1"}, "CORTADO_ENDPOINT: is no setting; did you mean CORTADO_ENDPOINTS? (got 'a:1')"),
        ({"CORTADO_ENDPOINTS": "a"}, "CORTADO_ENDPOINTS: must look like host:port"),
        ({"CORTADO_TIMEOUT": "soon"}, "CORTADO_TIMEOUT: must be a number of seconds (got 'soon')"),
        ({"CORTADO_OUTPUT": "xml"}, "CORTADO_OUTPUT: must be table or json"),
        ({"CORTADO_CONTEXT": "x"}, "no context x: there is no file"),
        ({"CORTADO_CONFIG": "/nonexistent/c"}, "CORTADO_CONFIG: cannot be read: No such file"),
    ],
    ids=str,
)
def test_what_is_wrong_in_the_environment_is_named(environment: dict[str, str], message: str) -> None:
    with pytest.raises(CortadoError) as refused:
        Session.resolve(Given(), {"XDG_CONFIG_HOME": "/nonexistent"} | environment)
    assert message in refused.value.message()


def test_other_peoples_variables_are_no_business_of_ours() -> None:
    environment = {"CORTADO_PORT": "tcp://10.0.0.1:7621", "CORTADO_SERVICE_HOST": "x", "CORTADO_SERVER_LISTEN": "a:1"}
    assert Session.resolve(Given(), environment | {"XDG_CONFIG_HOME": "/nonexistent"}).endpoint == "127.0.0.1:7621"


def test_a_broken_file_does_not_stop_what_needs_no_server(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_text("[")
    assert "# All settings" not in shown(capsys, "config", "reference")
    assert "is not TOML" in shown(capsys, "status", expect=2)
    assert "is not TOML" in shown(capsys, "config", "show", "--client", expect=2)
    assert "listen" in shown(capsys, "config", "show")


def test_contexts_are_set_used_shown_listed_and_removed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "deep" / "config.toml"
    monkeypatch.setenv("CORTADO_CONFIG", str(path))
    monkeypatch.chdir(tmp_path)
    shown(capsys, "context", "set", "prod", "-e", "db1:7621,db2:7621", "--tls-ca", "ca.crt", "--timeout", "2.5")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    shown(capsys, "context", "set", "dev", "--endpoint", "127.0.0.1:1", "--default-output", "json")
    shown(capsys, "context", "use", "prod")
    assert "prod *" in shown(capsys, "context", "list")
    [prod, dev] = [json.loads(line) for line in shown(capsys, "context", "list", "-o", "json").splitlines()]
    assert prod == {
        "context": "prod",
        "current": True,
        "endpoints": "db1:7621,db2:7621",
        "tls-ca": str(tmp_path / "ca.crt"),
        "timeout": "2.5",
    }
    assert dev["output"] == "json"
    assert f"{path}:" in shown(capsys, "context", "show", "dev")
    shown(capsys, "context", "set", "prod", "--timeout", "3", "--unset", "tls-ca")
    assert json.loads(shown(capsys, "context", "show", "-o", "json"))["timeout"] == "3"
    assert "tls-ca" not in json.loads(shown(capsys, "context", "show", "-o", "json"))
    shown(capsys, "context", "remove", "prod")
    assert "current" not in path.read_text()
    assert "context" in shown(capsys, "context", "show", expect=3)
    shown(capsys, "context", "use", "none")
    assert "no context prod" in shown(capsys, "context", "use", "prod", expect=3)


def test_lines_that_are_not_changed_stay_as_they_are(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shown(capsys, "context", "set", "dev", "--timeout", "7")
    shown(capsys, "context", "use", "dev")
    expected = FILE.replace('current = "prod"', 'current = "dev"') + "timeout = 7\n"
    assert file.read_text() == expected
    shown(capsys, "context", "remove", "prod")
    assert file.read_text().startswith("# my clusters\n")
    assert "[contexts.dev]" in file.read_text()
    assert "prod" not in file.read_text()


@pytest.mark.parametrize(
    "text", ["contexts = {prod = {endpoints = ['a:1'], timeout = 5}}\n", "[contexts]\nprod = {timeout = 5}\n"]
)
def test_what_is_written_otherwise_is_changed_by_hand(
    file: Path, capsys: pytest.CaptureFixture[str], text: str
) -> None:
    file.write_text(text)
    assert "change it by hand" in shown(capsys, "context", "set", "prod", "--timeout", "7", expect=2)
    assert file.read_text() == text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["set", "a b", "-e", "a:1"], "NAME: must be at most 64 letters"),
        (["set", "none", "-e", "a:1"], "NAME: must be at most 64 letters"),
        (["set", "a", "-e", "nowhere"], "--endpoint: must look like host:port"),
        (["set", "a", "--timeout", "0"], "--timeout: must be above 0"),
        (["set", "a", "--unset", "colour"], "--unset: must be one of endpoints, tls-ca"),
        (["set", "a", "--tls-key", "-----BEGIN PRIVATE KEY-----\nMIIsecret"], "--tls-key: must be a path"),
    ],
)
def test_what_cannot_be_set_is_refused_and_nothing_written(
    file: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    said = shown(capsys, "context", *arguments, expect=2)
    assert message in said
    assert "MIIsecret" not in said
    assert file.read_text() == FILE


def test_where_each_value_came_from_is_shown_and_a_key_never(
    file: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    key = tmp_path / "ops.key"
    key.write_text("-----BEGIN PRIVATE KEY-----\nMIIsecret\n-----END PRIVATE KEY-----\n")
    shown(capsys, "context", "set", "prod", "--tls-key", str(key), "--unset", "output")
    monkeypatch.setenv("CORTADO_TIMEOUT", "2")
    found = {
        each["name"]: each
        for each in map(json.loads, shown(capsys, "config", "show", "--client", "-o", "json").splitlines())
    }
    assert (found["context"]["value"], found["context"]["place"]) == ("prod", f"{file}:2")
    assert (found["endpoints"]["origin"], found["endpoints"]["place"]) == ("context", f"{file}:5")
    assert (found["timeout"]["value"], found["timeout"]["origin"]) == ("2", "environment")
    assert found["timeout"]["place"] == "CORTADO_TIMEOUT"
    assert (found["tls-key"]["value"], found["tls-cert"]["origin"]) == (str(key), "default")
    everything = [
        shown(capsys, *words)
        for words in (["context", "show"], ["context", "list"], ["config", "show", "--client", "--meaning"])
    ]
    assert "MIIsecret" not in "".join(everything)
