"""A token that was given in the place of another argument is in no error."""

from __future__ import annotations

from pathlib import Path

import pytest

from cortado.errors import InvalidArgument
from cortado.store.cli.app import run
from cortado.store.client import Client

TOKEN = "ctd_0123456789abcdef_" + "s" * 43


@pytest.mark.parametrize(
    "arguments",
    [
        ["--token-file", TOKEN, "status"],
        ["--token-file", f"/run/{TOKEN}", "status", "-o", "json"],
        ["--tls-ca", TOKEN, "status"],
        ["--endpoint", TOKEN, "status"],
        ["--context", TOKEN, "status"],
        ["--output", TOKEN, "status"],
        ["status", TOKEN],
        [TOKEN],
        ["context", "set", "here", "--token-file", TOKEN],
    ],
)
def test_an_option_that_is_given_a_token_does_not_repeat_it(
    arguments: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("CORTADO_CONFIG", str(tmp_path / "config.toml"))
    (tmp_path / "config.toml").touch(mode=0o600)
    assert run(arguments) != 0
    shown = "".join(capsys.readouterr())
    assert shown
    assert TOKEN[8:] not in shown


@pytest.mark.parametrize("variable", ["CORTADO_TOKEN_FILE", "CORTADO_TOKN", "CORTADO_TLS_CA", "CORTADO_CONFIG"])
def test_a_variable_that_holds_a_token_does_not_repeat_it(
    variable: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, TOKEN)
    assert run(["status"]) != 0
    assert TOKEN[8:] not in "".join(capsys.readouterr())


def test_a_context_that_names_a_token_does_not_repeat_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "config.toml"
    file.write_text(f'current = "here"\n[contexts.here]\ntoken-file = "{TOKEN}"\n')
    file.chmod(0o600)
    monkeypatch.setenv("CORTADO_CONFIG", str(file))
    for arguments in (["status"], ["config", "show"], ["context", "show"], ["doctor"]):
        run(arguments)
        assert TOKEN[8:] not in "".join(capsys.readouterr())


def test_the_client_does_not_repeat_a_path_that_is_a_token() -> None:
    with pytest.raises(InvalidArgument, match="is a path that is itself a token") as refused:
        Client("127.0.0.1:1", token=Path(TOKEN))
    assert TOKEN[8:] not in refused.value.message()
