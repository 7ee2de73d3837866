"""Certificates for a cluster of one's own: an authority, nodes, clients.

::

    authority  ca.crt, ca.key        signs the others; its key need not be on any node
       ├── node     n1.crt, n1.key    cortado:node:n1, its host names and addresses; server and client
       ├── client   app.crt, app.key  cortado:client:app; client only
       └── gateway  gw.crt, gw.key    its host names and addresses; server only

Keys are EC P-256, unencrypted PEM. Certificates of another authority serve as well, as long as they carry the same
names (:mod:`cortado.store.peers.identity`). Time comes in by the door; keys and serial numbers are drawn by
``cryptography``.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from cortado.errors import InvalidArgument
from cortado.store.peers.identity import check_name, dns_name_of, uri_of

DAYS_MAX: Final = 36_500
# Hosts whose clocks are a little behind the maker's take a certificate at once.
_BACKDATED: Final = timedelta(minutes=5)
_COMMON_NAME_MAX: Final = 64


@dataclass(frozen=True, slots=True)
class Pair:
    """A certificate and its private key, both PEM."""

    certificate: bytes
    key: bytes


@dataclass(frozen=True, slots=True)
class Authority:
    """What signs. Made by :func:`load_authority`."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey


@dataclass(frozen=True, slots=True)
class Description:
    """A certificate's content, for people. ``hosts`` are DNS names and addresses."""

    subject: str
    issuer: str
    serial: str
    not_before: datetime
    not_after: datetime
    is_authority: bool
    uris: tuple[str, ...]
    hosts: tuple[str, ...]


def make_authority(name: str, days: int, now: datetime) -> Pair:
    """Return a new authority. Raises InvalidArgument."""
    if not 0 < len(name) <= _COMMON_NAME_MAX or not name.isprintable():
        raise InvalidArgument("name", f"must have 1 to {_COMMON_NAME_MAX} printable characters", repr(name[:80]))
    key = ec.generate_private_key(ec.SECP256R1())
    subject = _common_name(name)
    builder = (
        _builder(subject, subject, key, days, now)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_key_usage(signs_certificates=True), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )
    return _pair(builder.sign(key, hashes.SHA256()), key)


def make_node(authority: Authority, node_id: str, hosts: Sequence[str], days: int, now: datetime) -> Pair:
    """Return a certificate for one node, to be served under ``hosts`` (names or addresses). Raises InvalidArgument."""
    check_name(node_id, "node id")
    names: list[x509.GeneralName] = [
        x509.UniformResourceIdentifier(uri_of("node", node_id)),
        x509.DNSName(dns_name_of(node_id)),
        *_hosts(hosts, "the node"),
    ]
    usages = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
    return _make_leaf(authority, node_id, names, usages, days, now)


def make_client(authority: Authority, name: str, days: int, now: datetime) -> Pair:
    """Return a certificate for one client. Raises InvalidArgument."""
    check_name(name, "client name")
    names = [x509.UniformResourceIdentifier(uri_of("client", name))]
    return _make_leaf(authority, name, names, [ExtendedKeyUsageOID.CLIENT_AUTH], days, now)


def make_gateway(authority: Authority, name: str, hosts: Sequence[str], days: int, now: datetime) -> Pair:
    """Return a certificate for an HTTP gateway, to be served under ``hosts``. It is no client's: a gateway calls its
    cluster with another one. Raises InvalidArgument."""
    check_name(name, "gateway name")
    names = _hosts(hosts, "the gateway")
    return _make_leaf(authority, name, names, [ExtendedKeyUsageOID.SERVER_AUTH], days, now)


def load_authority(certificate: bytes, key: bytes, *, certificate_name: str, key_name: str) -> Authority:
    """Return the authority of two PEM files. Raises InvalidArgument with the name of the one that does not fit."""
    loaded = load_certificate(certificate, certificate_name)
    try:
        basic = loaded.extensions.get_extension_for_class(x509.BasicConstraints).value
    except x509.ExtensionNotFound:
        basic = x509.BasicConstraints(ca=False, path_length=None)
    if not basic.ca:
        raise InvalidArgument(certificate_name, "is not the certificate of an authority")
    try:
        private = serialization.load_pem_private_key(key, password=None)
    except (ValueError, TypeError) as error:
        raise InvalidArgument(key_name, "holds no unencrypted private key in PEM form") from error
    if not isinstance(private, ec.EllipticCurvePrivateKey):
        raise InvalidArgument(key_name, "is not an EC key")
    if _public_bytes(private.public_key()) != _public_bytes(loaded.public_key()):
        raise InvalidArgument(key_name, f"is not the key of {certificate_name}")
    return Authority(loaded, private)


def load_certificate(certificate: bytes, name: str) -> x509.Certificate:
    """Return the first certificate of a PEM file. Raises InvalidArgument with its ``name``."""
    try:
        return x509.load_pem_x509_certificate(certificate)
    except ValueError as error:
        raise InvalidArgument(name, "holds no certificate in PEM form") from error


def describe(certificate: bytes, name: str) -> Description:
    """Describe the first certificate of a PEM file. Raises InvalidArgument with the file's ``name``."""
    loaded = load_certificate(certificate, name)
    try:
        extensions = loaded.extensions
    except (ValueError, x509.DuplicateExtension) as error:
        raise InvalidArgument(name, f"holds a certificate whose extensions are malformed: {error}") from error
    uris: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    is_authority = False
    for each in extensions:
        if isinstance(each.value, x509.SubjectAlternativeName):
            uris = tuple(each.value.get_values_for_type(x509.UniformResourceIdentifier))
            addresses = each.value.get_values_for_type(x509.IPAddress)
            hosts = (*each.value.get_values_for_type(x509.DNSName), *map(str, addresses))
        elif isinstance(each.value, x509.BasicConstraints):
            is_authority = each.value.ca
    return Description(
        subject=loaded.subject.rfc4514_string(),
        issuer=loaded.issuer.rfc4514_string(),
        serial=f"{loaded.serial_number:x}",
        not_before=loaded.not_valid_before_utc,
        not_after=loaded.not_valid_after_utc,
        is_authority=is_authority,
        uris=uris,
        hosts=hosts,
    )


def _make_leaf(
    authority: Authority,
    name: str,
    names: Sequence[x509.GeneralName],
    usages: Sequence[x509.ObjectIdentifier],
    days: int,
    now: datetime,
) -> Pair:
    key = ec.generate_private_key(ec.SECP256R1())
    issuer = authority.certificate
    builder = (
        _builder(_common_name(name), issuer.subject, key, days, now)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_key_usage(signs_certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage(usages), critical=False)
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(authority.key.public_key()),
            critical=False,
        )
    )
    return _pair(builder.sign(authority.key, hashes.SHA256()), key)


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, days: int, now: datetime
) -> x509.CertificateBuilder:
    if not 1 <= days <= DAYS_MAX:
        raise InvalidArgument("days", f"must be between 1 and {DAYS_MAX}", str(days))
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _BACKDATED)
        .not_valid_after(now + timedelta(days=days))
    )


def _key_usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )


def _common_name(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _hosts(hosts: Sequence[str], whose: str) -> list[x509.GeneralName]:
    if not hosts:
        problem = f"at least one is needed: the names or addresses under which clients reach {whose}"
        raise InvalidArgument("host", problem)
    return [_host(each) for each in hosts]


def _host(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host.strip("[]")))
    except ValueError:
        pass
    labels = host.split(".")
    if len(host) > 253 or not all(_is_label(each) for each in labels):
        raise InvalidArgument("host", "must be a host name or an IP address, without a port", repr(host[:80]))
    return x509.DNSName(host)


def _is_label(label: str) -> bool:
    plain = label.replace("-", "").replace("_", "")
    return 0 < len(label) <= 63 and plain.isascii() and plain.isalnum() and not label.startswith("-")


def _public_bytes(key: object) -> bytes:
    encoded: bytes = key.public_bytes(  # type: ignore[attr-defined]
        serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    return encoded


def _pair(certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> Pair:
    return Pair(
        certificate.public_bytes(serialization.Encoding.PEM),
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()),
    )
