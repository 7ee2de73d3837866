"""The ends of calls and connections, in the client's terms and in words for people."""

from __future__ import annotations

import errno
import socket
import ssl

import pytest

from cortado.errors import (
    DeadlineExceeded,
    Internal,
    InvalidArgument,
    ResourceExhausted,
    TooLarge,
    Unavailable,
    Unsupported,
)
from cortado.store.client.link import ends
from cortado.store.client.retry import Failure

STATUSES = [
    (14, "x", Unavailable, "the connection broke", True),
    (1, "x", Unavailable, "the server dropped the call", True),
    (12, "Method not found!", Unsupported, "it has no such method", False),
    (8, "Too many pending requests for this connection", ResourceExhausted, "too many calls", False),
    (8, "SERVER: Received message larger than max (9 vs. 8)", TooLarge, "has 9 bytes, a message may have 8", True),
    (8, "x", ResourceExhausted, "too much for the connection", True),
    (3, "x", InvalidArgument, "was not taken", True),
    (4, "x", DeadlineExceeded, "no answer within the deadline", True),
    (15, "x", Internal, "the call ended with DATA_LOSS, and no reason of Cortado's", True),
    (99, "x", Internal, "the call ended with 99, and no reason of Cortado's", True),
]


@pytest.mark.parametrize(("code", "message", "kind", "told", "sent"), STATUSES)
def test_a_status_without_an_error_of_ours(code: int, message: str, kind: type, told: str, sent: bool) -> None:
    found = ends.of_trailers({b"grpc-status": str(code).encode(), b"grpc-message": message.encode()})
    assert found is not None
    assert isinstance(found.error, kind)
    assert told in found.error.message()
    assert found.sent is sent
    assert found.answered is isinstance(found.error, TooLarge)


@pytest.mark.parametrize("details", [b"", b"!", b"AAAA", b"\xff", b"A"])
def test_details_that_cannot_be_read_are_none(details: bytes) -> None:
    found = ends.of_trailers({b"grpc-status": b"14", b"grpc-status-details-bin": details})
    assert repr(found) == repr(Failure(Unavailable(ends.BROKEN), answered=False, sent=True))


def _verify(code: int) -> ssl.SSLCertVerificationError:
    error = ssl.SSLCertVerificationError(1, "x")
    error.verify_code = code
    return error


def _tls(reason: str) -> ssl.SSLError:
    error = ssl.SSLError(1, "x")
    error.reason = reason
    return error


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (OSError(errno.ECONNREFUSED, "x"), "nothing listens there"),
        (OSError(errno.ENETUNREACH, "x"), "its network cannot be reached from here"),
        (OSError(errno.EHOSTUNREACH, "x"), "its host cannot be reached from here"),
        (OSError(errno.ETIMEDOUT, "x"), "its host does not answer"),
        (TimeoutError(), "its host does not answer"),
        (OSError(errno.ECONNRESET, "x"), ends.CLOSED),
        (OSError(errno.EPIPE, "x"), ends.CLOSED),
        (OSError(errno.EIO, "x"), "the connection broke"),
        (socket.gaierror(socket.EAI_NONAME, "x"), "there is no such host"),
        (socket.gaierror(socket.EAI_AGAIN, "x"), "its host's name cannot be looked up"),
        (_verify(10), "its certificate has expired"),
        (_verify(62), "its certificate is not for that host"),
        (_verify(64), "its certificate is not for that host"),
        (_verify(20), "its certificate does not come from the authority in tls-ca, or has expired"),
        (_tls("WRONG_VERSION_NUMBER"), "it does not speak TLS"),
        (_tls("TLSV13_ALERT_CERTIFICATE_REQUIRED"), ends.CLOSED),
        (ssl.SSLEOFError(8, "x"), ends.CLOSED),
    ],
)
def test_why_there_is_no_connection_is_told_in_our_words(error: Exception, told: str) -> None:
    assert ends.unreached(error) == told
