"""A strict parser takes every head that the rule takes, and sees the same request in it: h11 is the dumb twin."""

from __future__ import annotations

import h11
from hypothesis import given
from hypothesis import strategies as st

from cortado.store.gateway.heads import Framing, body_of

LINES = (b"GET / HTTP/1.1", b"PUT /a%2Fb?c=d HTTP/1.1", b"GET * HTTP/1.0", b"get /\xff HTTP/1.1", b"GET  / HTTP/1.1")
FIELDS = (
    *(b"Host: localhost", b"host:localhost", b"X: y", b"X:", b"X : y", b" X: y", b"X: \x01", b"X: caf\xe9", b"X: a\tb"),
    *(
        b"Content-Length: 3",
        b"Content-Length: 03",
        b"content-length:\t4 ",
        b"Content-Length: +3",
        b"Content-Length: 3, 3",
    ),
    *(b"Transfer-Encoding: chunked", b"transfer-encoding: CHUNKED ", b"Transfer-Encoding: gzip, chunked"),
)
ENDS = (b"\r\n", b"\r\n", b"\r\n", b"\n", b"\r", b"\r\n\r\n", b"\r\n ")

line = st.tuples(st.sampled_from(FIELDS), st.sampled_from(ENDS)).map(b"".join)
mutation = st.tuples(st.integers(0, 200), st.binary(max_size=2))


@given(
    st.sampled_from(LINES),
    st.lists(line, max_size=5),
    st.lists(mutation, max_size=1),
    st.booleans(),
)
def test_what_is_a_head_is_one_to_h11_and_means_the_same(
    request: bytes, lines: list[bytes], mutations: list[tuple[int, bytes]], with_host: bool
) -> None:
    head = request + b"\r\n" + (b"Host: a\r\n" if with_host else b"") + b"".join(lines) + b"\r\n"
    for place, put in mutations:
        head = head[:place] + put + head[place + len(put) :]
    body = body_of(head)
    if body is None:
        return
    connection = h11.Connection(h11.SERVER)
    connection.receive_data(head)
    seen = connection.next_event()
    assert isinstance(seen, h11.Request), head
    headers = dict(seen.headers)
    assert bytes(seen.target) == head.split(b" ")[1]
    if body is Framing.CHUNKED:
        assert headers[b"transfer-encoding"].lower() == b"chunked"
    else:
        assert int(headers.get(b"content-length", b"0")) == body
        assert b"transfer-encoding" not in headers
    assert connection.trailing_data == (b"", False), "nothing of it is left for another request"
