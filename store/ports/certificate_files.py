"""Files of certificates, as every side of an encrypted connection reads them: refusals name the file at fault.

A certificate is tried in a handshake in memory before it is used. So what passes is what TLS itself takes.

:class:`FollowedCertificate` reads the files again when they change: renewing a certificate is replacing its files. New
files that do not pass are not used; the content read before stays, and the log says why, once. A connection that stands
is not touched.
"""

from __future__ import annotations

import logging
import ssl
import threading
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, Generic, Protocol, TypeVar

from cortado.errors import InvalidArgument
from cortado.store.files.regular_files import read_regular

_LOG: Final = logging.getLogger(__name__)

FILE_BYTES_MAX: Final = 1 << 20


class Loaded(Protocol):
    """The checked content of a certificate's files. The certificate ends at ``not_after_s``, in seconds since 1970."""

    @property
    def not_after_s(self) -> float: ...


_Loaded = TypeVar("_Loaded", bound=Loaded)


class FollowedCertificate(Generic[_Loaded]):
    """The newest good content of ``files``, the certificate first, as ``load`` reads and checks them. From any thread.

    ``load`` raises InvalidArgument naming the file at fault: so does this class if they are not good at the start.
    """

    def __init__(self, files: Sequence[Path], load: Callable[[], _Loaded]) -> None:
        self._files = files
        self._load = load
        self._lock = threading.Lock()
        self._signatures = self._look()
        self._loaded = load()

    def current(self) -> _Loaded:
        """Return the content of the files, or their last good content."""
        with self._lock:
            signatures = self._look()
            if signatures != self._signatures:
                # Remembered even if loading fails: files that are wrong are read once, not at every handshake.
                self._signatures = signatures
                self._reload()
            return self._loaded

    def _reload(self) -> None:
        try:
            self._loaded = self._load()
        except InvalidArgument as problem:
            _LOG.warning("changed certificate files are not used, those read before are: %s", problem)
        else:
            _LOG.info("certificate %s renewed, valid until %s", self._files[0], day_of(self._loaded.not_after_s))

    def _look(self) -> list[object]:
        """Changes when a file does."""
        return [_file_signature(path) for path in self._files]


def read_file(path: Path) -> bytes:
    """Return the content of a file. Raises InvalidArgument naming it."""
    try:
        return read_regular(path, FILE_BYTES_MAX, follows_links=True)
    except OSError as problem:
        raise InvalidArgument(str(path), f"cannot be read: {problem.strerror}") from problem


def load_chain(context: ssl.SSLContext, cert: Path, key: Path) -> None:
    """Let ``context`` show a certificate. Raises InvalidArgument naming the file at fault."""
    try:
        # Without a password of ours, OpenSSL would ask for one on the terminal.
        context.load_cert_chain(cert, key, password=lambda: "")
    except ssl.SSLError as problem:
        if problem.reason == "KEY_VALUES_MISMATCH":
            raise InvalidArgument(str(key), f"is not the key of {cert}") from problem
        if b"BEGIN CERTIFICATE" not in read_file(cert):
            raise InvalidArgument(str(cert), "holds no certificate in PEM form") from problem
        if b"PRIVATE KEY-----" not in read_file(key):
            raise InvalidArgument(str(key), "holds no private key in PEM form") from problem
        if b"ENCRYPTED" in read_file(key):
            raise InvalidArgument(str(key), "is encrypted; the server needs a plain one") from problem
        reason = f"or its key {key} is damaged: {problem.reason or problem}"
        raise InvalidArgument(str(cert), reason) from problem
    except OSError as problem:
        raise InvalidArgument(str(cert), f"cannot be read: {problem.strerror}") from problem


def handshake(client: ssl.SSLContext, server: ssl.SSLContext) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return each side's view of the other's certificate after a handshake in memory, the client's first. Empty if it
    did not verify one. Raises ssl.SSLError."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = [
        client.wrap_bio(to_client, to_server, server_side=False),
        server.wrap_bio(to_server, to_client, server_side=True),
    ]
    waiting = list(ends)
    while waiting:
        for end in list(waiting):
            try:
                end.do_handshake()
            except ssl.SSLWantReadError:
                continue
            waiting.remove(end)
    return ends[0].getpeercert() or {}, ends[1].getpeercert() or {}


def check_period(cert: Path, shown: Mapping[str, Any], now_s: float) -> float:
    """Return the end of this file's certificate, in seconds since 1970. Raises InvalidArgument if it is not valid."""
    not_before_s, not_after_s = (ssl.cert_time_to_seconds(shown[name]) for name in ("notBefore", "notAfter"))
    if now_s > not_after_s:
        raise InvalidArgument(str(cert), f"expired on {day_of(not_after_s)}")
    if now_s < not_before_s:
        raise InvalidArgument(str(cert), f"is valid only from {day_of(not_before_s)} on: is this host's clock right?")
    return not_after_s


def day_of(seconds: float) -> str:
    """Seconds since 1970 as a time for people."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M UTC")


def _file_signature(path: Path) -> object:
    try:
        stat = path.stat()
    except OSError as problem:
        return problem.errno
    return stat.st_mtime_ns, stat.st_size, stat.st_ino
