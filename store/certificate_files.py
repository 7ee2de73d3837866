"""Files of certificates, as every side of an encrypted connection reads them: refusals name the file at fault.

A certificate is tried in a handshake in memory before it is used. So what passes is what TLS itself takes.
"""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from cortado.errors import InvalidArgument

FILE_BYTES_MAX: Final = 1 << 20


def read_file(path: Path) -> bytes:
    """What it holds. Raises InvalidArgument naming it."""
    try:
        with path.open("rb") as file:
            content = file.read(FILE_BYTES_MAX + 1)
    except OSError as problem:
        raise InvalidArgument(str(path), f"cannot be read: {problem.strerror}") from problem
    if len(content) > FILE_BYTES_MAX:
        raise InvalidArgument(str(path), f"is larger than {FILE_BYTES_MAX} bytes, which no certificate is")
    return content


def file_signature(path: Path) -> object:
    """Changes when the file does."""
    try:
        stat = path.stat()
    except OSError as problem:
        return problem.errno
    return stat.st_mtime_ns, stat.st_size, stat.st_ino


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
    """What each side sees of the other's certificate after a handshake in memory, the client's view first. Empty where
    it did not verify one. Raises ssl.SSLError."""
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
    """When the certificate of this file ends, in seconds since 1970. Raises InvalidArgument where it is not valid."""
    not_before_s, not_after_s = (ssl.cert_time_to_seconds(shown[name]) for name in ("notBefore", "notAfter"))
    if now_s > not_after_s:
        raise InvalidArgument(str(cert), f"expired on {day_of(not_after_s)}")
    if now_s < not_before_s:
        raise InvalidArgument(str(cert), f"is valid only from {day_of(not_before_s)} on: is this host's clock right?")
    return not_after_s


def day_of(seconds: float) -> str:
    """Seconds since 1970 as a time for people."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M UTC")
