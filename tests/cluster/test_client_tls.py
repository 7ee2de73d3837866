"""The client over TLS: both sides prove their identity, and a wrong file or certificate is named."""

from __future__ import annotations

import os
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from cortado.errors import InvalidArgument, PermissionDenied, Unauthenticated, Unavailable
from cortado.store.client import Client, Tls
from cortado.store.peers.credentials import TlsFiles
from support.certificates import Certifier
from support.cluster import cortado
from support.faces import FACES, open_client
from support.server_process import ServerProcess, peer_address_of, running_server

pytestmark = pytest.mark.process


@pytest.fixture(scope="module")
def certifier(tmp_path_factory: pytest.TempPathFactory) -> Certifier:
    return Certifier(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def encrypted(certifier: Certifier, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    files = certifier.node("n1")
    options = ("--tls-ca", str(files.ca), "--tls-cert", str(files.cert), "--tls-key", str(files.key))
    with running_server(tmp_path_factory.mktemp("tls") / "data", "--node-id", "n1", *options) as running:
        yield running


@pytest.fixture
def tls(certifier: Certifier) -> Tls:
    files = certifier.client("app")
    return Tls(files.ca, files.cert, files.key)


@pytest.fixture(params=FACES)
def face(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.mark.parametrize("coalesce", [False, True])
def test_calls_streams_and_merged_calls_are_encrypted(
    encrypted: ServerProcess, tls: Tls, coalesce: bool, face: str
) -> None:
    with open_client(face, encrypted.endpoint, tls=tls, coalesce=coalesce) as client:
        kv = client.kv("n")
        threads = [threading.Thread(target=lambda n=n: kv.put(b"%d" % n, b"v")) for n in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sum(1 for _ in kv.scan()) == 8


def test_a_client_without_tls_gets_nowhere(encrypted: ServerProcess, face: str) -> None:
    wanted = f"{encrypted.endpoint}: it closed the connection: .*wants TLS"
    with open_client(face, encrypted.endpoint, timeout_s=1) as client, pytest.raises(Unavailable, match=wanted):
        client.status()


def test_a_server_of_another_authority_is_not_believed(encrypted: ServerProcess, tmp_path: Path, face: str) -> None:
    files = Certifier(tmp_path / "foreign").client("app")
    with (
        open_client(face, encrypted.endpoint, timeout_s=1, tls=Tls(files.ca, files.cert, files.key)) as client,
        pytest.raises(
            Unavailable, match=r"cannot reach .*: its certificate does not come from the authority in tls-ca"
        ),
    ):
        client.status()


def test_a_client_without_a_certificate_is_not_let_in(
    encrypted: ServerProcess, certifier: Certifier, face: str
) -> None:
    with (
        open_client(face, encrypted.endpoint, timeout_s=1, tls=Tls(certifier.ca)) as client,
        pytest.raises(Unavailable, match="does not accept the client's certificate"),
    ):
        client.kv("n").put(b"k", b"v")


def test_a_server_of_another_host_is_not_believed(certifier: Certifier, tls: Tls, tmp_path: Path, face: str) -> None:
    files = certifier.node("n1", under="elsewhere", hosts=("n1.test",))
    options = ("--tls-ca", str(files.ca), "--tls-cert", str(files.cert), "--tls-key", str(files.key))
    with (
        running_server(tmp_path / "data", "--node-id", "n1", *options) as server,
        open_client(face, server.endpoint, timeout_s=1, tls=tls) as client,
        pytest.raises(Unavailable, match="its certificate is not for that host"),
    ):
        client.status()


def test_renewed_files_are_read_with_the_next_connection(
    encrypted: ServerProcess, certifier: Certifier, tmp_path: Path
) -> None:
    foreign, own = Certifier(tmp_path / "foreign").client("app"), certifier.client("app")
    for each in ("ca", "cert", "key"):
        (tmp_path / each).write_bytes(Path(getattr(foreign, each)).read_bytes())
    files = Tls(tmp_path / "ca", tmp_path / "cert", tmp_path / "key")
    with open_client("async", encrypted.endpoint, timeout_s=1, tls=files) as client:
        with pytest.raises(Unavailable, match="authority"):
            client.status()
        for each in ("ca", "cert", "key"):
            (tmp_path / each).write_bytes(Path(getattr(own, each)).read_bytes())
        client.status()


def test_a_certificates_name_is_a_principal_and_a_nodes_is_none(
    encrypted: ServerProcess, certifier: Certifier, tls: Tls
) -> None:
    def with_certificate(files: TlsFiles, token: str | None = None) -> Client:
        return Client(encrypted.endpoint, tls=Tls(files.ca, files.cert, files.key), token=token)

    with Client(encrypted.endpoint, tls=tls) as app:
        app.admin.auth.enable("app", kind="certificate")
        try:
            known = app.admin.auth.who_am_i().principal
            assert known is not None
            assert (known.name, known.kind) == ("app", "certificate")
            for files in (certifier.node("n1"), certifier.node("app"), certifier.client("App"), certifier.client("o")):
                with with_certificate(files) as other, pytest.raises(Unauthenticated):
                    other.kv("n").get(b"k")
            app.admin.auth.create("o", kind="certificate")
            app.admin.auth.grant("o", "reader", "namespace:n")
            token = app.admin.auth.create("by-token").token
            assert token is not None
            with with_certificate(certifier.client("o")) as other:
                other.kv("n").get(b"k")
            # A token in the call counts, and not the certificate that it comes with.
            with with_certificate(certifier.client("app"), token.text) as other, pytest.raises(PermissionDenied):
                other.kv("n").get(b"k")
        finally:
            app.admin.auth.disable()


def test_where_no_certificates_are_asked_for_tokens_alone_let_in_and_nobody_while_roles_are_off(
    certifier: Certifier, tmp_path: Path
) -> None:
    node, own = certifier.node("n1"), certifier.client("app")
    options = ("--node-id", "n1", "--tls-ca", str(node.ca), "--tls-cert", str(node.cert), "--tls-key", str(node.key))
    with_own = Tls(own.ca, own.cert, own.key)
    with running_server(tmp_path / "data", *options) as server, Client(server.endpoint, tls=with_own) as client:
        client.admin.auth.create("app", kind="certificate")
        client.admin.auth.grant("app", "admin", "cluster")
        root = client.admin.auth.enable("root").token
    assert root is not None
    with running_server(tmp_path / "data", *options, "--client-certificates", "none") as server:
        for coalesce in (False, True):
            with Client(server.endpoint, tls=Tls(node.ca), token=root.text, coalesce=coalesce) as client:
                client.kv("n").put(b"k", b"v")
                assert len(list(client.kv("n").scan())) == 1
            # No side checks a certificate, even if the other could show one.
            for tls in (Tls(node.ca), with_own):
                with Client(server.endpoint, tls=tls, coalesce=coalesce) as client:
                    for call in (lambda kv: kv.get(b"k"), lambda kv: list(kv.scan())):
                        with pytest.raises(Unauthenticated):
                            call(client.kv("n"))
        # The port for peers still asks for certificates.
        asking = ssl.create_default_context(cafile=str(node.ca))
        asking.check_hostname = False
        host, _, port = peer_address_of(server.endpoint).rpartition(":")
        with (
            socket.create_connection((host, int(port)), timeout=10) as plain,
            asking.wrap_socket(plain) as connection,
            suppress(ssl.SSLError),
        ):
            assert connection.recv(1) == b""
        with Client(server.endpoint, tls=Tls(node.ca), token=root.text) as client:
            client.admin.auth.disable()
            with pytest.raises(Unauthenticated, match="roles are off"):
                client.kv("n").get(b"k")
        with Client(server.endpoint, tls=Tls(node.ca)) as client, pytest.raises(Unauthenticated, match="roles are off"):
            list(client.kv("n").scan())


def test_a_server_without_tls_is_not_spoken_to_in_the_open(server: ServerProcess, tls: Tls, face: str) -> None:
    with (
        open_client(face, server.endpoint, timeout_s=1, tls=tls) as client,
        pytest.raises(Unavailable, match="not speak TLS"),
    ):
        client.status()


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"ca": "missing.pem"}, "tls.ca"),
        ({"ca": "{ca}", "cert": "missing.pem", "key": "{ca}"}, "tls.cert"),
        ({"ca": "{ca}", "cert": "{ca}", "key": "{text}"}, "tls.key"),
        ({"ca": "{ca}", "cert": "{ca}"}, "tls"),
        ({"ca": "{ca}", "key": "{ca}"}, "tls"),
        ({"ca": 5}, "tls.ca"),
    ],
)
def test_files_that_cannot_be_used_are_named(
    certifier: Certifier, tmp_path: Path, given: dict[str, object], field: str
) -> None:
    (tmp_path / "text").write_text("no certificate")
    paths = {
        name: value.format(ca=certifier.ca, text=tmp_path / "text") if isinstance(value, str) else value
        for name, value in given.items()
    }
    with pytest.raises(InvalidArgument) as raised:
        Client("127.0.0.1:1", tls=Tls(**paths))  # type: ignore[arg-type]
    assert raised.value.field == field


def test_an_authority_that_holds_no_certificate_is_named(tmp_path: Path) -> None:
    (tmp_path / "ca.crt").write_text("-----BEGIN CERTIFICATE-----\nnothing\n-----END CERTIFICATE-----\n")
    with pytest.raises(InvalidArgument, match=r"tls\.ca: holds no certificate"):
        Tls(tmp_path / "ca.crt").context()


def test_certificate_and_key_may_come_from_pipes(certifier: Certifier, tmp_path: Path) -> None:
    mine = certifier.client("mine")
    for name, file in (("cert", mine.cert), ("key", mine.key)):
        os.mkfifo(tmp_path / name)
        threading.Thread(target=(tmp_path / name).write_bytes, args=(file.read_bytes(),)).start()
    tls = Tls(mine.ca, tmp_path / "cert", tmp_path / "key")
    assert tls.context().cert_store_stats()["x509_ca"] == 1
    assert tls.context().cert_store_stats()["x509_ca"] == 1


def test_a_key_of_another_certificate_is_named(certifier: Certifier) -> None:
    mine, others = certifier.client("mine"), certifier.client("others")
    with pytest.raises(InvalidArgument, match=r"tls\.key: is not the key of .*mine\.crt \(got .*others\.key"):
        Client("127.0.0.1:1", tls=Tls(mine.ca, mine.cert, others.key))
    with pytest.raises(InvalidArgument, match=r"tls\.cert: holds no certificate, or .* no key"):
        Client("127.0.0.1:1", tls=Tls(mine.ca, mine.key, mine.cert))


def test_the_command_line_takes_certificates(
    encrypted: ServerProcess, certifier: Certifier, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = certifier.client("operator")
    options = ("--tls-ca", str(files.ca), "--tls-cert", str(files.cert), "--tls-key", str(files.key))
    assert "n1" in cortado("status", "--endpoint", encrypted.endpoint, *options)
    for option, path in zip(options[::2], options[1::2], strict=True):
        monkeypatch.setenv("CORTADO" + option[1:].upper().replace("-", "_"), path)
    assert "n1" in cortado("status", "--endpoint", encrypted.endpoint)
