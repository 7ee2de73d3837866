"""The certificate that a gateway serves HTTPS with: two PEM files, checked at the start, and read again when renewed.

It is a server's and nothing else: callers show a token, and no certificate. Files that do not pass when they are
renewed are not used; what was loaded before stays, and the log says why, once.
"""

from __future__ import annotations

import logging
import ssl
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from cortado.errors import InvalidArgument
from cortado.store.certificate_files import check_period, file_signature, handshake, load_chain

_LOG: Final = logging.getLogger(__name__)

# X509_V_FLAG_NO_CHECK_TIME, and X509_V_FLAG_PARTIAL_CHAIN: the certificate vouches for itself, so that it can be read.
_AS_IT_IS: Final = 0x200000 | 0x80000


@dataclass(frozen=True, slots=True)
class ServedFiles:
    """Paths of PEM files: the certificate, with intermediate ones behind it, and its private key."""

    cert: Path
    key: Path

    def context(self, wall_s: Callable[[], float] = time.time) -> ssl.SSLContext:
        """What connections are served with. Raises InvalidArgument naming the file and what is wrong with it."""
        serving = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
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
        check_period(self.cert, shown, wall_s())
        return serving


class ServedCertificate:
    """The newest good content of ``files``. Raises InvalidArgument where they are not good at the start."""

    def __init__(self, files: ServedFiles, wall_s: Callable[[], float] = time.time) -> None:
        self._files = files
        self._wall_s = wall_s
        self._signature = self._look()
        self._context = files.context(wall_s)

    def current(self) -> ssl.SSLContext:
        """What the files hold, or held when they were last good."""
        signature = self._look()
        if signature != self._signature:
            # Remembered whatever comes of it: files that are wrong are read once, not at every handshake.
            self._signature = signature
            try:
                self._context = self._files.context(self._wall_s)
            except InvalidArgument as problem:
                _LOG.warning("a changed certificate is not used, the one read before is: %s", problem)
            else:
                _LOG.info("certificate %s renewed at %s", self._files.cert, datetime.now(UTC).isoformat("T", "seconds"))
        return self._context

    def _look(self) -> tuple[object, ...]:
        return file_signature(self._files.cert), file_signature(self._files.key)
