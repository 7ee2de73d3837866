"""Meanings of gRPC's own messages, for readers of errors: none of the messages leave the client.

A call that a Cortado server ends carries the error itself. This file is about calls that ended otherwise: gRPC's core
says why in sentences of its own, with file names, which differ from version to version. They are searched for signs; a
message without a sign is told by its code. The words themselves are logged at DEBUG.
"""

from __future__ import annotations

import logging
import re
from typing import Final

import grpc

from cortado.errors import TooLarge

_LOG: Final = logging.getLogger(__name__)

# How gRPC's core words that no connection could be made, so that nothing was sent.
_NEVER_SENT: Final = ("failed to connect to all addresses", "DNS resolution failed", "errors resolving")
# How it words that a server took the call and did not begin it,
_NEVER_BEGUN: Final = "Too many pending requests"
# that the request was over a bound (a reply over one has words of its own, and was computed by then; older versions
# do not say which side received it, but it is never the client, which takes replies of any size),
_REQUEST_TOO_LARGE: Final = re.compile(
    r"(?<!CLIENT: )Received message larger than max(?: \((\d+) vs\.? (\d+)\))?|CLIENT: Sent message larger than max"
)
# and, under codes that say less, that the connection broke.
_BROKEN: Final = ("Stream removed", "RST_STREAM", "GOAWAY", "Socket closed", "Connection reset")

_CLOSED: Final = "it closed the connection: it stops, wants TLS, or does not accept the client's certificate"
# The first sign that is found counts.
_MEANINGS: Final = (
    ("Hostname Verification Check failed", "its certificate is not for that host"),
    ("certificate has expired", "its certificate has expired"),
    ("CERTIFICATE_VERIFY_FAILED", "its certificate does not come from the authority in tls-ca, or has expired"),
    ("WRONG_VERSION_NUMBER", "it does not speak TLS"),
    ("Connection refused", "nothing listens there"),
    ("Network is unreachable", "its network cannot be reached from here"),
    ("No route to host", "its host cannot be reached from here"),
    ("Connection timed out", "its host does not answer"),
    ("Timeout occurred", "its host does not answer"),
    ("keepalive watchdog timeout", "its host does not answer any more"),
    ("ping timeout", "its host does not answer any more"),
    ("timed out before receiving SETTINGS", "it took the connection, and says nothing"),
    ("Failed parsing HTTP/2", "what answers there is no Cortado server"),
    ("Received http2 header with status", "what answers there is no Cortado server"),
    ("invalid value for content-type", "what answers there is no Cortado server"),
    ("Domain name not found", "there is no such host"),
    ("address lookup failed", "its host's name cannot be looked up"),
    ("DNS resolution failed", "its host's name cannot be looked up"),
    ("errors resolving", "its host's name cannot be looked up"),
    ("GOAWAY", "it ended the connection"),
    ("Socket closed", _CLOSED),
    ("Connection reset", _CLOSED),
    ("Broken pipe", _CLOSED),
    ("End of TCP stream", _CLOSED),
    (_NEVER_BEGUN, "it has too many calls already"),
    ("Method not found", "it has no such method: it is of another version, or no Cortado server"),
)
_OF_CODE: Final = {
    grpc.StatusCode.UNAVAILABLE: "the connection broke",
    grpc.StatusCode.CANCELLED: "the server dropped the call",
    grpc.StatusCode.RESOURCE_EXHAUSTED: "the call was too much for the connection",
    grpc.StatusCode.UNIMPLEMENTED: "the server has no such method",
    grpc.StatusCode.INVALID_ARGUMENT: "the request was not taken",
    grpc.StatusCode.OUT_OF_RANGE: "the request was not taken",
}


def never_sent(words: str) -> bool:
    """Whether no connection could be made, so that nothing reached a server."""
    return words.startswith(_NEVER_SENT)


def never_begun(words: str) -> bool:
    """Whether a server took the call and did not begin it."""
    return _NEVER_BEGUN in words


def is_broken(words: str) -> bool:
    """Whether the connection broke, under any code."""
    return any(sign in words for sign in _BROKEN)


def too_large(words: str) -> TooLarge | None:
    """Return the error of a request that is over a bound, as the native front tells it; None if it is not."""
    found = _REQUEST_TOO_LARGE.search(words)
    if found is None:
        return None
    length, limit = (int(number or 0) for number in found.groups())
    problem = f"has {length} bytes, a message may have {limit}" if length else "is larger than a message may be"
    return TooLarge("request", f"{problem}: send less at a time", length=length, limit=limit)


def meaning(code: grpc.StatusCode, words: str) -> str:
    """Return why a call ended that no Cortado server ended, in our words."""
    _LOG.debug("a call ended with %s: %s", code.name, words)
    for sign, found in _MEANINGS:
        if sign in words:
            return found
    if never_sent(words):
        return "no connection could be made"
    if is_broken(words):
        return "the connection broke"
    return _OF_CODE.get(code, f"the call ended with {code.name}, and no reason of Cortado's")
