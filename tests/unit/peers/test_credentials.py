"""Certificate files are checked before they are used, each fault is named with its file, and renewal is followed."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization

from cortado.errors import InvalidArgument
from cortado.store.peers import certificates as making
from cortado.store.peers.certificates import make_authority
from cortado.store.peers.credentials import Certificates, TlsFiles
from cortado.store.peers.identity import check_name, dns_name_of, identity_of
from support.certificates import DAYS, NOW, Certifier


@pytest.fixture
def certifier(tmp_path: Path) -> Certifier:
    return Certifier(tmp_path)


def refusal(files: TlsFiles, **wanted: str) -> tuple[str, str]:
    with pytest.raises(InvalidArgument) as refused:
        files.check(**wanted)  # type: ignore[arg-type]
    return Path(refused.value.field).name, refused.value.problem


def test_good_files_say_whose_they_are_and_until_when(certifier: Certifier) -> None:
    node = certifier.node("n1").check()
    assert (node.role, node.name) == ("node", "n1")
    assert node.not_after_s == int((NOW + timedelta(days=DAYS)).timestamp())
    client = certifier.client("app").check(role=None)
    assert (client.role, client.name) == ("client", "app")


@pytest.mark.parametrize("node_id", ["n1", "N1", "node_1.Example-x", "7"])
def test_a_node_id_survives_its_certificate(certifier: Certifier, node_id: str) -> None:
    assert certifier.node(node_id).check(name=node_id).name == node_id


@pytest.mark.parametrize("which", ["cert", "key", "ca"])
def test_a_file_that_cannot_be_read_is_named(certifier: Certifier, which: str) -> None:
    files = certifier.node("n1")
    getattr(files, which).unlink()
    assert refusal(files) == (getattr(files, which).name, "cannot be read: No such file or directory")


@pytest.mark.parametrize(
    ("which", "content", "problem"),
    [
        ("cert", b"", "holds no certificate in PEM form"),
        ("cert", b"-----BEGIN CERTIFICATE-----\nAAAA\n", "is damaged"),
        ("key", b"not a key", "holds no private key in PEM form"),
        ("ca", b"", "holds no certificate in PEM form"),
        ("ca", b"\xff\xfe\n", "holds no certificate in PEM form"),
        ("ca", bytes(2 << 20), "cannot be read: it has more than 1048576 bytes"),
    ],
)
def test_a_file_that_holds_something_else_is_named(
    certifier: Certifier, which: str, content: bytes, problem: str
) -> None:
    files = certifier.node("n1")
    getattr(files, which).write_bytes(content)
    name, said = refusal(files)
    assert name == getattr(files, which).name
    assert problem in said


def test_a_key_of_another_certificate_is_refused(certifier: Certifier) -> None:
    files = replace(certifier.node("n1"), key=certifier.node("n2").key)
    assert refusal(files) == ("n2.key", f"is not the key of {files.cert}")


def test_an_encrypted_key_is_refused_and_no_password_asked_for(certifier: Certifier) -> None:
    files = certifier.node("n1")
    key = serialization.load_pem_private_key(files.key.read_bytes(), None)
    files.key.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.BestAvailableEncryption(b"x")
        )
    )
    assert refusal(files) == ("n1.key", "is encrypted; the server needs a plain one")


def test_a_certificate_of_another_authority_is_refused(certifier: Certifier, tmp_path: Path) -> None:
    other = Certifier(tmp_path / "other")
    name, problem = refusal(replace(certifier.node("n1"), ca=other.ca))
    assert name == "n1.crt"
    assert problem.startswith(f"does not come from the authority in {other.ca}: ")


def test_one_authority_of_several_is_enough(certifier: Certifier, tmp_path: Path) -> None:
    both = tmp_path / "both.crt"
    both.write_bytes(Certifier(tmp_path / "other").ca.read_bytes() + certifier.ca.read_bytes())
    assert replace(certifier.node("n1"), ca=both).check().name == "n1"


def test_a_leaf_is_no_authority(certifier: Certifier) -> None:
    files = certifier.node("n1")
    assert refusal(replace(files, ca=files.cert)) == ("n1.crt", "holds no certificate of an authority")


def test_dates_are_looked_at_and_named(certifier: Certifier) -> None:
    files = certifier.node("n1")
    with pytest.raises(InvalidArgument, match=r"n1.crt: expired on 20\d\d-"):
        files.check(wall_s=lambda: (NOW + timedelta(days=DAYS + 1)).timestamp())
    with pytest.raises(InvalidArgument, match=r"n1.crt: is valid only from 20\d\d-.* on: is this host's clock right"):
        files.check(wall_s=lambda: (NOW - timedelta(days=1)).timestamp())


def test_an_authority_that_ended_before_its_certificate_is_named(tmp_path: Path) -> None:
    certifier = Certifier(tmp_path, now=NOW - timedelta(days=DAYS * 10 + 1))
    with pytest.raises(InvalidArgument, match=r"ca.crt: expired on 20\d\d-"):
        certifier.node("n1").check()


def test_a_clients_certificate_is_no_nodes_and_another_nodes_is_not_this_ones(certifier: Certifier) -> None:
    assert refusal(certifier.client("app")) == ("app.crt", "is that of client app, and not of node")
    assert refusal(certifier.node("n2"), name="n1") == ("n2.crt", "is that of node n2, and not of node n1")


def _signed(
    certifier: Certifier, change: Callable[[x509.CertificateBuilder, x509.Certificate], x509.CertificateBuilder]
) -> TlsFiles:
    """Return the files of n1 with a certificate that was built otherwise."""
    files = certifier.node("n1")
    old = x509.load_pem_x509_certificate(files.cert.read_bytes())
    builder = (
        x509.CertificateBuilder()
        .subject_name(old.subject)
        .issuer_name(old.issuer)
        .public_key(old.public_key())
        .serial_number(old.serial_number)
        .not_valid_before(old.not_valid_before_utc)
        .not_valid_after(old.not_valid_after_utc)
    )
    made = change(builder, old).sign(certifier.authority.key, hashes.SHA256())
    files.cert.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    return files


def test_a_certificate_without_names_of_ours_is_told_which_it_needs(certifier: Certifier) -> None:
    nameless = _signed(certifier, lambda builder, _: builder)
    assert refusal(nameless, name="n1") == (
        "n1.crt",
        "names neither one node nor one client: it needs the URI cortado:node:n1 as a subject alternative name",
    )

    def two_nodes(builder: x509.CertificateBuilder, _: x509.Certificate) -> x509.CertificateBuilder:
        uris = [x509.UniformResourceIdentifier(f"cortado:node:{name}") for name in ("n1", "n2")]
        return builder.add_extension(x509.SubjectAlternativeName(uris), critical=False)

    assert "names neither one node nor one client" in refusal(_signed(certifier, two_nodes))[1]

    def no_host(builder: x509.CertificateBuilder, _: x509.Certificate) -> x509.CertificateBuilder:
        uri = x509.UniformResourceIdentifier("cortado:node:n1")
        return builder.add_extension(x509.SubjectAlternativeName([uri]), critical=False)

    assert refusal(_signed(certifier, no_host)) == (
        "n1.crt",
        "needs the DNS name n1.node.cortado.internal as a subject alternative name: its peers ask for that",
    )


def test_a_nodes_certificate_must_be_good_for_serving(certifier: Certifier) -> None:
    def client_only(builder: x509.CertificateBuilder, old: x509.Certificate) -> x509.CertificateBuilder:
        names = old.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        usage = x509.ExtendedKeyUsage([x509.ExtendedKeyUsageOID.CLIENT_AUTH])
        return builder.add_extension(names, critical=False).add_extension(usage, critical=False)

    name, problem = refusal(_signed(certifier, client_only))
    assert name == "n1.crt"
    assert "purpose" in problem


def test_renewed_files_are_taken_and_wrong_ones_are_not(certifier: Certifier, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    files = certifier.node("n1")
    certificates = Certificates(files, node_id="n1")
    first = certificates.current()
    assert certificates.current() is first
    certifier.node("n1")
    second = certificates.current()
    assert second.cert != first.cert
    assert second.cert == files.cert.read_bytes()
    for wrong in (
        lambda: certifier.node("n1", now=NOW - timedelta(days=DAYS + 1)),
        lambda: certifier.node("n2", under="n1"),
        lambda: files.cert.write_bytes(b"half a cert"),
        lambda: files.cert.unlink(),
    ):
        caplog.clear()
        wrong()
        for _ in range(3):
            assert certificates.current() is second
        said = [each.getMessage() for each in caplog.records]
        assert len(said) == 1
        assert said[0].startswith(f"changed certificate files are not used, those read before are: {files.cert}: ")
    certifier.node("n1")
    assert certificates.current().cert == files.cert.read_bytes()


def test_files_that_are_wrong_at_the_start_are_refused(certifier: Certifier) -> None:
    with pytest.raises(InvalidArgument, match="is that of node n2, and not of node n1"):
        Certificates(certifier.node("n2"), node_id="n1")


def test_made_certificates_are_described_as_they_were_made(certifier: Certifier) -> None:
    files = certifier.node("n1", hosts=("db1.example.com", "10.0.0.1", "::1"))
    found = making.describe(files.cert.read_bytes(), "n1.crt")
    assert found.uris == ("cortado:node:n1",)
    assert found.hosts == ("n1.node.cortado.internal", "db1.example.com", "10.0.0.1", "::1")
    assert (found.subject, found.issuer, found.is_authority) == ("CN=n1", "CN=tests", False)
    assert found.not_before < NOW < found.not_after
    other = make_authority("tests", 1, NOW)
    assert making.describe(other.certificate, "ca").is_authority


def test_a_certificate_names_one_of_ours_or_nobody() -> None:
    assert identity_of(["spiffe://x", "cortado:node:n1"]) == ("node", "n1")
    assert identity_of(["cortado:client:app"]) == ("client", "app")
    for nobody in (
        [],
        ["cortado:node:"],
        ["cortado:node:a b"],
        ["CORTADO:node:n1"],
        ["cortado:node:n1", "cortado:node:n2"],
    ):
        assert identity_of(nobody) == ("", "")
    assert dns_name_of("n1") != dns_name_of("N1").lower()
    with pytest.raises(InvalidArgument, match=r"x: may have 64 characters"):
        check_name("n" * 65, "x")
