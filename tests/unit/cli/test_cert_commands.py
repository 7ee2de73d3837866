"""``cortado cert`` makes files that servers and clients take, keeps keys to their owner, and replaces nothing
unasked."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest

from cortado.store.cli.app import run
from cortado.store.peers.credentials import TlsFiles

pytestmark = pytest.mark.slow


@pytest.fixture
def certs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    """Return a directory with an authority."""
    directory = tmp_path / "certs"
    assert run(["cert", "ca", "--dir", str(directory)]) == 0
    assert capsys.readouterr().out == f"wrote {directory}/ca.crt and {directory}/ca.key\n"
    return directory


def files_of(certs: Path, name: str) -> TlsFiles:
    return TlsFiles(certs / f"{name}.crt", certs / f"{name}.key", certs / "ca.crt")


def test_what_is_made_is_what_servers_and_clients_take(certs: Path) -> None:
    assert run(["cert", "node", "n1", "--host", "127.0.0.1", "--host", "localhost", "--dir", str(certs)]) == 0
    assert run(["cert", "client", "app", "--dir", str(certs)]) == 0
    assert files_of(certs, "n1").check(name="n1").name == "n1"
    assert files_of(certs, "app").check(role="client").name == "app"


def test_keys_are_their_owners_alone(certs: Path) -> None:
    assert run(["cert", "client", "app", "--dir", str(certs)]) == 0
    for name in ("ca", "app"):
        assert stat.S_IMODE((certs / f"{name}.key").stat().st_mode) == 0o600
    assert sorted(each.name for each in certs.iterdir()) == ["app.crt", "app.key", "ca.crt", "ca.key"]


@pytest.mark.parametrize("there", ["app.crt", "app.key"])
def test_nothing_is_replaced_unasked(certs: Path, there: str, capsys: pytest.CaptureFixture[str]) -> None:
    (certs / there).write_text("mine")
    assert run(["cert", "client", "app", "--dir", str(certs)]) == 4
    assert capsys.readouterr().err == f"error: file {certs}/{there} already exists\n"
    assert (certs / there).read_text() == "mine"
    assert not (certs / "app.crt").exists() or not (certs / "app.key").exists()
    assert run(["cert", "client", "app", "--dir", str(certs), "--force"]) == 0
    assert files_of(certs, "app").check(role="client").name == "app"


def test_an_authority_elsewhere_signs(certs: Path, tmp_path: Path) -> None:
    signer = ["--ca-cert", str(certs / "ca.crt"), "--ca-key", str(certs / "ca.key")]
    assert run(["cert", "node", "n1", "--host", "h", "--dir", str(tmp_path / "new"), *signer]) == 0
    files = TlsFiles(tmp_path / "new" / "n1.crt", tmp_path / "new" / "n1.key", certs / "ca.crt")
    assert files.check().name == "n1"


def test_a_certificate_is_shown_with_whose_it_is(certs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(["cert", "node", "n1", "--host", "10.0.0.1", "--days", "7", "--dir", str(certs)])
    capsys.readouterr()
    assert run(["cert", "show", str(certs / "n1.crt"), "-o", "json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["state"] == "valid"
    assert shown["identities"] == ["cortado:node:n1"]
    assert shown["hosts"] == ["n1.node.cortado.internal", "10.0.0.1"]
    assert shown["issuer"] == "CN=Cortado CA"
    assert run(["cert", "show", str(certs / "n1.crt")]) == 0
    assert "cortado:node:n1" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["node", "n1"], "--host: at least one is needed"),
        (["node", "n 1", "--host", "h"], "node id: must consist of letters"),
        (["node", "n1", "--host", "h:1"], "--host: must be a host name or an IP address, without a port (got 'h:1')"),
        (["node", "n1", "--host", "h", "--days", "0"], "--days: must be a whole number, 1 or more (got '0')"),
        (["node", "n1", "--host", "h", "--days", "99999"], "--days: must be between 1 and 36500 (got 99999)"),
        (["client", ""], "client name: must consist of letters"),
        (["client", "app", "--ca-key", "none"], "--ca-key: cannot be read: No such file or directory (got none)"),
        (["ca", "--name", "", "--force"], "--name: must have 1 to 64 printable characters"),
        (["show", "none"], "FILE: cannot be read: No such file or directory (got none)"),
    ],
)
def test_wrong_input_is_one_line_and_makes_nothing(
    certs: Path, arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    before = {each.name: each.read_bytes() for each in certs.iterdir()}
    directory = [] if arguments[0] == "show" else ["--dir", str(certs)]
    assert run(["cert", *arguments, *directory]) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"error: {said}")
    assert error.count("\n") == 1
    assert {each.name: each.read_bytes() for each in certs.iterdir()} == before


def test_without_an_authority_it_is_said_how_to_make_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["cert", "client", "app", "--dir", str(tmp_path)]) == 2
    assert capsys.readouterr().err == (
        f"error: --ca-cert: there is no CA in {tmp_path}: create one with cortado cert ca\n"
    )


def test_keys_and_certificates_that_do_not_belong_together_are_named(
    certs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(["cert", "node", "n1", "--host", "h", "--dir", str(certs)])
    run(["cert", "show", str(certs / "n1.key")])
    assert f"{certs}/n1.key: holds no certificate in PEM form" in capsys.readouterr().err
    for options, said in (
        (["--ca-cert", "n1.crt", "--ca-key", "n1.key"], "n1.crt: is not the certificate of an authority"),
        (["--ca-key", "n1.key"], f"n1.key: is not the key of {certs}/ca.crt"),
        (["--ca-key", "n1.crt"], "n1.crt: holds no unencrypted private key in PEM form"),
    ):
        paths = [each if each.startswith("--") else str(certs / each) for each in options]
        assert run(["cert", "client", "app", "--dir", str(certs), *paths]) == 2
        assert said in capsys.readouterr().err
