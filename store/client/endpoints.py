"""Endpoints of a client, and the protection of its connections: checked before anything is opened."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

from cortado.errors import InvalidArgument
from cortado.store.client.arguments import shown, text, texts
from cortado.store.files.named_files import read_named

if TYPE_CHECKING:
    import ssl

Endpoints: TypeAlias = str | Sequence[str]
"""One endpoint (``host:port``), several in one text with commas between them, or a list."""

ENDPOINTS_MAX: Final = 100

_ENDPOINT = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+):([0-9]{1,5})")


def parse_endpoints(endpoints: Endpoints) -> tuple[str, ...]:
    """Return the endpoints, each once, in their order. Raises InvalidArgument."""
    if isinstance(endpoints, str):
        given = [each.strip() for each in text(endpoints, "endpoint").split(",")]
    else:
        given = texts(endpoints, "endpoint")
    if not 1 <= len(given) <= ENDPOINTS_MAX:
        raise InvalidArgument("endpoint", f"must be 1 to {ENDPOINTS_MAX} of host:port", f"{len(given)} endpoints")
    return tuple(dict.fromkeys(check_endpoint(each) for each in given))


def check_endpoint(endpoint: str) -> str:
    """Return ``endpoint`` if it looks like ``host:port``. Raises InvalidArgument."""
    if not is_endpoint(text(endpoint, "endpoint")):
        raise InvalidArgument("endpoint", "must look like host:port, such as 127.0.0.1:7621", endpoint)
    return endpoint


def is_endpoint(address: str) -> bool:
    """Whether ``address`` looks like ``host:port``."""
    match = _ENDPOINT.fullmatch(address)
    return match is not None and 0 < int(match[2]) < 65536


@dataclass(frozen=True, slots=True)
class TlsNames:
    """Names of a :class:`Tls`'s files in refusals: a variable, a flag or an option, if one names them."""

    ca: str = "tls.ca"
    cert: str = "tls.cert"
    key: str = "tls.key"


@dataclass(frozen=True, slots=True)
class Tls:
    """Files (PEM) for connections that are encrypted, with both sides identified.

    ``ca`` holds the authorities that a server's certificate must come from. ``cert`` and ``key`` are the client's own,
    for servers that ask for one; both or neither. They are read when a connection is made, so renewed files need no
    restart. A pipe, such as ``<(command)``, is read once. Refusals call them by ``names``.
    """

    ca: str | Path
    cert: str | Path | None = None
    key: str | Path | None = None
    names: TlsNames = field(default=TlsNames(), compare=False, repr=False)

    def authorities(self) -> str:
        """Return the text of ``ca``. Raises InvalidArgument naming the file that is missing, unreadable or no PEM."""
        return _pem(self.ca, self.names.ca).decode("ascii", "replace")

    def context(self) -> ssl.SSLContext:
        """Return the files' content, for a connection that speaks HTTP/2. Raises InvalidArgument naming the file that
        is missing, unreadable or no PEM."""
        import ssl

        if (self.cert is None) != (self.key is None):
            given = "cert" if self.key is None else "key"
            raise InvalidArgument("tls", "must have both cert and key, or neither", f"{given} alone")
        ca = self.authorities()
        key = b"" if self.key is None else _pem(self.key, self.names.key)
        cert = b"" if self.cert is None else _pem(self.cert, self.names.cert)
        made = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        made.minimum_version = ssl.TLSVersion.TLSv1_2
        # The files may hold an authority that another one has signed.
        made.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
        made.set_alpn_protocols(["h2"])
        try:
            made.load_verify_locations(cadata=ca)
        except ssl.SSLError:
            raise InvalidArgument(self.names.ca, "holds no certificate", str(self.ca)) from None
        if self.cert is not None and self.key is not None:
            if Path(self.cert).is_file() and Path(self.key).is_file():
                self._load_pair(made, self.cert, self.key)
            else:
                # OpenSSL reads files by itself, and a pipe has been read.
                with tempfile.NamedTemporaryFile() as file:
                    file.write(cert + b"\n" + key)
                    file.flush()
                    self._load_pair(made, file.name, file.name)
        return made

    def _load_pair(self, context: ssl.SSLContext, cert: str | Path, key: str | Path) -> None:
        """Load a certificate and its key. Raises InvalidArgument if they do not fit, or are encrypted."""
        import ssl

        try:
            # For an encrypted key OpenSSL would ask for the password on the terminal.
            context.load_cert_chain(cert, key, password=lambda: b"")
        except ssl.SSLError as error:
            if error.reason == "KEY_VALUES_MISMATCH":
                raise InvalidArgument(self.names.key, f"is not the key of {self.cert}", str(self.key)) from None
            problem = f"holds no certificate, or {self.key} no key"
            raise InvalidArgument(self.names.cert, problem, str(self.cert)) from None


_PEM_BYTES_MAX: Final = 1 << 20


def _pem(path: str | Path, field: str) -> bytes:
    if not isinstance(path, str | Path):
        raise InvalidArgument(field, "must be the path of a file", type(path).__name__)
    try:
        content = read_named(path, _PEM_BYTES_MAX)
    except OSError as error:
        raise InvalidArgument(field, f"cannot be read: {error.strerror}", str(path)) from None
    except ValueError:  # Half a surrogate pair, or a null character.
        raise InvalidArgument(field, "must be the path of a file", shown(str(path))) from None
    if b"-----BEGIN " not in content:
        raise InvalidArgument(field, "must be a PEM file", str(path))
    return content
