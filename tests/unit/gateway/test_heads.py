"""A head of a request has one form; bytes that two readers may read in two ways have none."""

from __future__ import annotations

import pytest

from cortado.store.gateway.heads import Framing, body_of

LINE = b"GET /subjects HTTP/1.1\r\nHost: localhost\r\n"


@pytest.mark.parametrize(
    ("more", "body"),
    [
        (b"", 0),
        (b"Content-Length: 0\r\n", 0),
        (b"content-length:17 \t\r\n", 17),
        (b"Transfer-Encoding: Chunked\r\n", Framing.CHUNKED),
        (b"X-Empty:\r\nX: caf\xe9\tau lait\r\n", 0),
        (b"X-Content-Length: 3\r\nX: content-length: 4\r\n", 0),
    ],
)
def test_a_head_says_how_long_its_body_is(more: bytes, body: int | Framing) -> None:
    assert body_of(LINE + more + b"\r\n") == body


@pytest.mark.parametrize(
    "head",
    [
        b"",
        b"\r\n",
        b"GET / HTTP/1.1\r\n\r\n",
        LINE,
        LINE.replace(b"\r\n", b"\n") + b"\n",
        LINE + b"\r\n\r\n",
        LINE + b"Host: localhost\r\n\r\n",
        LINE + b"X: a\rb\r\n\r\n",
        LINE + b"X: a\nb\r\n\r\n",
        LINE + b"X: a\x00b\r\n\r\n",
        LINE + b"X : a\r\n\r\n",
        LINE + b" X: a\r\n\r\n",
        LINE + b"X\r\n\r\n",
        LINE + b": a\r\n\r\n",
        LINE.replace(b"GET ", b"GET  ") + b"\r\n",
        LINE.replace(b"GET ", b" GET ") + b"\r\n",
        LINE.replace(b"/subjects", b"http://localhost/subjects") + b"\r\n",
        LINE.replace(b"/subjects", b"subjects") + b"\r\n",
        LINE.replace(b"/subjects", b"/sub jects") + b"\r\n",
        LINE.replace(b"1.1", b"1.2") + b"\r\n",
        LINE.replace(b"HTTP", b"http") + b"\r\n",
        LINE + b"Content-Length: 3\r\nContent-Length: 3\r\n\r\n",
        LINE + b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n",
        LINE + b"Content-Length: 3, 3\r\n\r\n",
        LINE + b"Content-Length: +3\r\n\r\n",
        LINE + b"Content-Length: 0x3\r\n\r\n",
        LINE + b"Content-Length:\r\n\r\n",
        LINE + b"Content-Length: " + b"9" * 19 + b"\r\n\r\n",
        LINE + b"Content-Length: \xb2\r\n\r\n",
        LINE + b"Transfer-Encoding: gzip, chunked\r\n\r\n",
        LINE + b"Transfer-Encoding: chunked, chunked\r\n\r\n",
        LINE + b"Transfer-Encoding: xchunked\r\n\r\n",
        LINE.replace(b"1.1", b"1.0") + b"Transfer-Encoding: chunked\r\n\r\n",
        LINE.replace(b"/subjects", b"/subjects#1") + b"\r\n",
        LINE + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n",
    ],
)
def test_what_is_no_head_has_no_body(head: bytes) -> None:
    assert body_of(head) is None
