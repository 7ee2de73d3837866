"""Certificates from files, checked, and followed while they are renewed.

Three PEM files make a side of a connection: its certificate (with intermediate ones after it), the private key of that,
and one or more authorities for the other side's certificate. They serve both directions.

:meth:`TlsFiles.check` lets the certificate authenticate itself to its own authorities, in a handshake in memory, and
reads its names from that. So it accepts the same files as TLS itself, and every refusal names its file.

:class:`Certificates` looks at the files again before every handshake, on either side
(:mod:`cortado.store.ports.certificate_files`).

This module imports neither the server nor ``cryptography``: a client may use it.
"""

from __future__ import annotations

import ssl
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from cortado.errors import InvalidArgument
from cortado.store.peers.identity import Role, dns_name_of, identity_of, uri_of
from cortado.store.ports.certificate_files import (
    FollowedCertificate,
    check_period,
    day_of,
    handshake,
    load_chain,
    read_file,
)
from cortado.store.ports.sliced_tls import SlicedContext

# X509_V_FLAG_NO_CHECK_TIME. The dates are looked at afterwards, to be named.
_NO_CHECK_TIME: Final = 0x200000


@dataclass(frozen=True, slots=True)
class Material:
    """The files' content, checked. ``role`` and ``name`` are the certificate's. It ends at ``not_after_s``, the
    authority that lasts longest at ``authority_not_after_s``, both since 1970. ``contexts`` are for connections between
    nodes."""

    cert: bytes
    key: bytes
    ca: bytes
    role: str
    name: str
    not_after_s: float
    authority_not_after_s: float
    contexts: Contexts = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Contexts:
    """TLS contexts; each side shows its certificate.

    - ``serving``: a node that serves peers.
    - ``calling``: a node that dials a node and checks its name itself.
    - ``calling_host``: a node that dials an address; the other's certificate must be good for that.
    - ``looking``: a node that calls its own port for clients.
    - ``clients``: a node that serves clients with certificates.
    - ``anybody``: a node that serves clients without asking for certificates.
    """

    serving: ssl.SSLContext
    calling: ssl.SSLContext
    calling_host: ssl.SSLContext
    looking: ssl.SSLContext
    clients: ssl.SSLContext
    anybody: ssl.SSLContext


@dataclass(frozen=True, slots=True)
class TlsFiles:
    """Paths of PEM files."""

    cert: Path
    key: Path
    ca: Path

    def check(self, *, role: Role | None = "node", name: str = "", wall_s: Callable[[], float] = time.time) -> Material:
        """Read and check the files: each is readable PEM, the key is the certificate's, and the certificate comes from
        the authority and is valid now. It names a node or a client (``role``; None for either), and ``name`` if given.

        Raises InvalidArgument naming the file and the defect.
        """
        cert, key, ca = (read_file(path) for path in (self.cert, self.key, self.ca))
        shown = _shown_certificate(self)
        try:
            contexts = contexts_of(self)
        except OSError as problem:
            # Those of ssl are among them. They were good a moment ago.
            raise InvalidArgument(str(self.cert), "changed while it was read") from problem
        if (cert, key, ca) != tuple(read_file(path) for path in (self.cert, self.key, self.ca)):
            raise InvalidArgument(str(self.cert), "changed while it was read")
        not_after_s, authority_not_after_s = _check_dates(self, shown, wall_s())
        found_role, found_name = _check_names(self, shown, role, name)
        return Material(cert, key, ca, found_role, found_name, not_after_s, authority_not_after_s, contexts)


class Certificates(FollowedCertificate[Material]):
    """The newest good content of ``files``, for both sides of connections. From any thread.

    If ``node_id`` is given, only that node's certificate is accepted. Raises InvalidArgument if the files are not good
    at the start.
    """

    def __init__(self, files: TlsFiles, *, node_id: str = "", wall_s: Callable[[], float] = time.time) -> None:
        super().__init__((files.cert, files.key, files.ca), lambda: files.check(name=node_id, wall_s=wall_s))


def contexts_of(files: TlsFiles) -> Contexts:
    """Return the TLS contexts between nodes. Raises OSError, ssl.SSLError for files that were not checked."""

    def context(
        protocol: int, *, check_hostname: bool = False, kind: type[ssl.SSLContext] = ssl.SSLContext
    ) -> ssl.SSLContext:
        made = kind(protocol)
        made.minimum_version = ssl.TLSVersion.TLSv1_3
        made.check_hostname = check_hostname
        made.verify_mode = ssl.CERT_REQUIRED
        # Without a password of ours, OpenSSL would ask for one on the terminal.
        made.load_cert_chain(files.cert, files.key, password=lambda: "")
        made.load_verify_locations(files.ca)
        return made

    looking = context(ssl.PROTOCOL_TLS_CLIENT)
    looking.set_alpn_protocols(["h2"])
    return Contexts(
        serving=context(ssl.PROTOCOL_TLS_SERVER, kind=SlicedContext),
        calling=context(ssl.PROTOCOL_TLS_CLIENT),
        calling_host=context(ssl.PROTOCOL_TLS_CLIENT, check_hostname=True),
        looking=looking,
        clients=_of_http2(context(ssl.PROTOCOL_TLS_SERVER, kind=SlicedContext), ssl.CERT_REQUIRED),
        anybody=_of_http2(context(ssl.PROTOCOL_TLS_SERVER, kind=SlicedContext), ssl.CERT_NONE),
    )


def _of_http2(context: ssl.SSLContext, asks: ssl.VerifyMode) -> ssl.SSLContext:
    """Return the context as RFC 9113 §9.2 requires it."""
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.options |= ssl.OP_NO_RENEGOTIATION
    context.verify_mode = asks
    context.set_alpn_protocols(["h2"])
    return context


def _shown_certificate(files: TlsFiles) -> dict[str, Any]:
    """Return the certificate as a server of the same authority sees it. Raises InvalidArgument naming the file."""
    server, client = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    client.check_hostname = False
    client.verify_mode = ssl.CERT_NONE
    server.verify_mode = ssl.CERT_REQUIRED
    server.verify_flags |= _NO_CHECK_TIME
    for context in (server, client):
        load_chain(context, files.cert, files.key)
    try:
        server.load_verify_locations(files.ca)
    except ssl.SSLError as problem:
        raise InvalidArgument(str(files.ca), "holds no certificate in PEM form") from problem
    except OSError as problem:
        raise InvalidArgument(str(files.ca), f"cannot be read: {problem.strerror}") from problem
    if not server.get_ca_certs():
        raise InvalidArgument(str(files.ca), "holds no certificate of an authority")
    try:
        shown = handshake(client, server)[1]
        if shown_identity(shown)[0] == "node":
            # It serves, too, which other purposes than calling must allow.
            client.load_verify_locations(files.ca)
            client.verify_mode = ssl.CERT_REQUIRED
            client.verify_flags |= _NO_CHECK_TIME
            handshake(client, server)
    except ssl.SSLCertVerificationError as problem:
        reason = f"does not come from the authority in {files.ca}: {problem.verify_message}"
        raise InvalidArgument(str(files.cert), reason) from problem
    except ssl.SSLError as problem:
        raise InvalidArgument(str(files.cert), f"cannot be used: {problem.reason}") from problem
    return {**shown, "authorities": server.get_ca_certs()}


def _check_dates(files: TlsFiles, shown: dict[str, Any], now_s: float) -> tuple[float, float]:
    """Return the ends of the certificate, and of the authority that lasts longest. Raises InvalidArgument."""
    not_after_s = check_period(files.cert, shown, now_s)
    ends_s = [ssl.cert_time_to_seconds(authority["notAfter"]) for authority in shown["authorities"]]
    if now_s > max(ends_s):
        raise InvalidArgument(str(files.ca), f"expired on {day_of(max(ends_s))}")
    return not_after_s, max(ends_s)


def _check_names(files: TlsFiles, shown: dict[str, Any], role: Role | None, name: str) -> tuple[str, str]:
    found_role, found_name = shown_identity(shown)
    if not found_role:
        wanted = uri_of(role or "client", name or "NAME")
        problem = f"names neither one node nor one client: it needs the URI {wanted} as a subject alternative name"
        raise InvalidArgument(str(files.cert), problem)
    if role not in (None, found_role) or name not in ("", found_name):
        problem = f"is that of {found_role} {found_name}, and not of {role or found_role} {name}".rstrip()
        raise InvalidArgument(str(files.cert), problem)
    if found_role == "node" and ("DNS", dns_name_of(found_name)) not in shown["subjectAltName"]:
        problem = f"needs the DNS name {dns_name_of(found_name)} as a subject alternative name: its peers ask for that"
        raise InvalidArgument(str(files.cert), problem)
    return found_role, found_name


def shown_identity(shown: Mapping[str, Any]) -> tuple[str, str]:
    """Role and name in a certificate, as ``ssl`` shows it: see :func:`~cortado.store.peers.identity.identity_of`."""
    return identity_of(value for kind, value in shown.get("subjectAltName", ()) if kind == "URI")
