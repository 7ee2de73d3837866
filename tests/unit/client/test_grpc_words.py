"""gRPC's errors for calls that no Cortado server ended: told in our words, not in gRPC's."""

from __future__ import annotations

import grpc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cortado.store.client.retry import failure_of


class Ended(grpc.RpcError):
    """A call that ended without an answer of a Cortado server."""

    def __init__(self, code: grpc.StatusCode, words: str) -> None:
        self._code, self._words = code, words

    def code(self) -> grpc.StatusCode:
        return self._code

    def details(self) -> str:
        return self._words

    def trailing_metadata(self) -> None:
        return None


UNAVAILABLE, INTERNAL, UNKNOWN = grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.INTERNAL, grpc.StatusCode.UNKNOWN
_ALL = "failed to connect to all addresses; last error: "


@pytest.mark.parametrize(
    ("code", "words", "told", "sent"),
    [
        (UNAVAILABLE, _ALL + "UNKNOWN: ipv4:127.0.0.1:1: connect: Connection refused (111)", "nothing listens", False),
        (UNAVAILABLE, _ALL + "UNKNOWN: ipv4:10.0.0.9:1: connect: No route to host (113)", "host cannot be", False),
        (UNAVAILABLE, _ALL + "UNKNOWN: ipv4:10.0.0.9:1: connect: Network is unreachable (101)", "network", False),
        (UNAVAILABLE, _ALL + "UNAVAILABLE: ipv4:10.0.0.9:1: Timeout occurred: FD Shutdown", "not answer", False),
        (UNAVAILABLE, _ALL + "UNKNOWN: ipv4:10.0.0.9:1: something new", "no connection could be made", False),
        (
            UNAVAILABLE,
            "errors resolving n1.test:1: [field:hostname lookup error:address lookup failed for n1.test:1: Domain name "
            "not found]",
            "there is no such host",
            False,
        ),
        (UNAVAILABLE, "DNS resolution failed for x:1: C-ares status is not ARES_SUCCESS", "looked up", False),
        (UNAVAILABLE, "ping timeout", "does not answer any more", True),
        (UNAVAILABLE, "keepalive watchdog timeout", "does not answer any more", True),
        (UNAVAILABLE, "recvmsg:Connection reset by peer", "closed the connection", True),
        (UNAVAILABLE, "recvmsg:Connection timed out", "its host does not answer", True),
        (UNAVAILABLE, "sendmsg: Broken pipe (32)", "closed the connection", True),
        (UNAVAILABLE, "GOAWAY received; Error code: 2; Debug Text: Cancelling all calls", "ended the connec", True),
        (UNAVAILABLE, "Received http2 header with status: 502", "is no Cortado server", True),
        (UNKNOWN, "Stream removed", "the connection broke", True),
        (INTERNAL, "Received RST_STREAM with error code 2", "the connection broke", True),
        (grpc.StatusCode.CANCELLED, "Cancelled on the server side", "the server dropped the call", True),
        (grpc.StatusCode.UNIMPLEMENTED, "Method not found!", "it has no such method", False),
        (grpc.StatusCode.RESOURCE_EXHAUSTED, "Too many pending requests for this connection", "too many calls", False),
        (
            grpc.StatusCode.RESOURCE_EXHAUSTED,
            "SERVER: Received message larger than max (9000000 vs. 8388608)",
            "request: has 9000000 bytes, a message may have 8388608: send less at a time",
            True,
        ),
        (UNAVAILABLE, "", "the connection broke", True),
        (grpc.StatusCode.DATA_LOSS, "bad", "the call ended with DATA_LOSS, and no reason of Cortado's", True),
        (grpc.StatusCode.DEADLINE_EXCEEDED, _ALL + "anything", "no answer within the deadline", False),
    ],
)
def test_what_grpc_says_is_told_in_our_words(code: grpc.StatusCode, words: str, told: str, sent: bool) -> None:
    failure = failure_of(Ended(code, words))
    assert told in failure.error.message()
    assert failure.sent is sent
    assert not words or words not in failure.error.message()


@given(
    code=st.sampled_from([code for code in grpc.StatusCode if code is not grpc.StatusCode.OK]),
    prefix=st.sampled_from(["", _ALL, "errors resolving ", "DNS resolution failed ", "GOAWAY ", "Socket closed: "]),
    words=st.text(st.characters(categories=["Lu"]), min_size=8),
)
def test_none_of_its_words_reach_who_reads_the_error(code: grpc.StatusCode, prefix: str, words: str) -> None:
    error = failure_of(Ended(code, prefix + words)).error
    assert words not in str(error)
    assert words not in repr(error)
