"""The certificate that a gateway serves HTTPS with: two PEM files, checked at the start, and read again when renewed
(:mod:`cortado.store.ports.certificate_files`).

It is a server's and nothing else: callers show a token, and no certificate.
"""

from __future__ import annotations

import ssl
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from cortado.errors import InvalidArgument
from cortado.store.ports.certificate_files import FollowedCertificate, check_period, handshake, load_chain
from cortado.store.ports.sliced_tls import SlicedContext

# X509_V_FLAG_NO_CHECK_TIME, and X509_V_FLAG_PARTIAL_CHAIN: the certificate vouches for itself, so that it can be read.
_AS_IT_IS: Final = 0x200000 | 0x80000


@dataclass(frozen=True, slots=True)
class Served:
    """The TLS context for new connections. The certificate ends at ``not_after_s``, in seconds since 1970."""

    context: ssl.SSLContext
    not_after_s: float


@dataclass(frozen=True, slots=True)
class ServedFiles:
    """Paths of PEM files: the certificate, with intermediate ones behind it, and its private key."""

    cert: Path
    key: Path

    def check(self, wall_s: Callable[[], float] = time.time) -> Served:
        """Read and check the files. Raises InvalidArgument naming the file and the defect."""
        serving = SlicedContext(ssl.PROTOCOL_TLS_SERVER)
        serving.minimum_version = ssl.TLSVersion.TLSv1_2
        serving.set_alpn_protocols(["http/1.1"])
        load_chain(serving, self.cert, self.key)
        reading = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        reading.check_hostname = False
        reading.verify_flags |= _AS_IT_IS
        try:
            reading.load_verify_locations(self.cert)
            shown = handshake(reading, serving)[0]
        except ssl.SSLCertVerificationError as problem:
            raise InvalidArgument(str(self.cert), f"is no server's: {problem.verify_message}") from problem
        except OSError as problem:
            raise InvalidArgument(str(self.cert), f"cannot be used: {problem.strerror or problem}") from problem
        return Served(serving, check_period(self.cert, shown, wall_s()))


class ServedCertificate(FollowedCertificate[Served]):
    """The newest good content of ``files``. Raises InvalidArgument if they are not good at the start."""

    def __init__(self, files: ServedFiles, wall_s: Callable[[], float] = time.time) -> None:
        super().__init__((files.cert, files.key), lambda: files.check(wall_s))
