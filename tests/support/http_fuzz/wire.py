"""Requests as bytes, and answers read by the letter: every answer of a gateway is HTTP/1.1, and of a declared form."""

from __future__ import annotations

import json
import re
import socket
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from cortado.store.gateway.limits import HEAD_BYTES_MAX
from cortado.store.gateway.registry import ROOTS
from support.gateways import Declared

STREAM: Final = "text/event-stream"
STREAM_BYTES: Final = 2_000
"""The bytes that are read of an answer that may have no end."""
PROBLEM: Final = {"type", "title", "status", "reason", "detail"}
CODES: Final = {
    *(400, 404, 405, 406, 409, 413, 415, 422),
    *(40401, 40402, 40403, 40404, 40405, 40406, 40407, 40408),
    *(42201, 42202, 42203, 42204, 42205, 42206, 42208, 42209),
}
"""The codes of the registry: those that no defect has."""

_STATUS: Final = re.compile(rb"HTTP/1\.1 ([1-5][0-9]{2}) [A-Za-z'\- ]+")
_HEADER: Final = re.compile(rb"([!#$%&'*+\-.^_`|~0-9A-Za-z]+): ([^\x00-\x08\x0a-\x1f\x7f]*)")
_CONNECTION_S: Final = 20.0


@dataclass(frozen=True)
class Sent:
    """A request. ``target`` and header values are as they go over the wire."""

    method: str
    target: str
    headers: Sequence[tuple[str, str]] = ()
    body: bytes = b""
    chunked: bool = False

    def encoded(self) -> bytes:
        lines = [f"{self.method} {self.target} HTTP/1.1", "Host: localhost", *(f"{n}: {v}" for n, v in self.headers)]
        if self.chunked:
            lines.append("Transfer-Encoding: chunked")
        elif self.body or self.method in ("PUT", "POST", "PATCH"):
            lines.append(f"Content-Length: {len(self.body)}")
        head = "\r\n".join(lines).encode("latin-1", "replace") + b"\r\n\r\n"
        if not self.chunked:
            return head + self.body
        pieces = [self.body[i : i + 1_000] for i in range(0, len(self.body), 1_000)]
        return head + b"".join(b"%x\r\n%s\r\n" % (len(each), each) for each in pieces) + b"0\r\n\r\n"


@dataclass
class Answer:
    status: int
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""

    @property
    def media_type(self) -> str:
        return self.headers.get("content-type", "").partition(";")[0]

    def json(self) -> Any:
        return json.loads(self.body)


class Wire:
    """A connection to a gateway that is made anew if it has ended."""

    def __init__(self, host: str, port: int) -> None:
        self._address = (host, port)
        self._connection: socket.socket | None = None
        self._unread = b""

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
        self._connection, self._unread = None, b""

    def call(self, sent: Sent) -> Answer:
        """Return the answer to a well-formed request. Its status is 0 only if the request is refused before it is read,
        and so lost."""
        data = sent.encoded()
        answer = self.exchange(data, is_head=sent.method == "HEAD")
        assert answer.status or len(data) > HEAD_BYTES_MAX, "no answer"
        return answer

    def exchange(self, data: bytes, *, is_head: bool = False, half: bool = False) -> Answer:
        """Return the answer to some bytes, with status 0 if the connection ends instead. ``half``: nothing more will be
        sent, so that a part of a request is not waited for."""
        if self._connection is None:
            self._connection = socket.create_connection(self._address, _CONNECTION_S)
        try:
            self._connection.sendall(data)
            if half:
                self._connection.shutdown(socket.SHUT_WR)
        except ConnectionError:
            pass  # It was refused before all of it was sent; the answer may be there.
        try:
            answer = self._answer(is_head=is_head)
        except ConnectionError:
            answer = Answer(0)
        if half or not answer.status or answer.headers.get("connection") == "close" or answer.media_type == STREAM:
            self.close()
        return answer

    def _answer(self, *, is_head: bool) -> Answer:
        while b"\r\n\r\n" not in self._unread:
            if not self._receive():
                assert not self._unread, f"half of a head: {self._unread[:200]!r}"
                return Answer(0)
        head, _, self._unread = self._unread.partition(b"\r\n\r\n")
        line, *lines = head.split(b"\r\n")
        found = _STATUS.fullmatch(line)
        assert found, f"no status line: {line!r}"
        status, headers = int(found[1]), _headers(lines)
        if status < 200:
            return self._answer(is_head=is_head)
        answer = Answer(status, headers)
        if is_head or status == 304:
            return answer
        if headers.get("transfer-encoding") == "chunked":
            assert "content-length" not in headers
            answer.body = self._chunks(answer)
        else:
            answer.body = self._exactly(int(headers["content-length"]))
        return answer

    def _chunks(self, answer: Answer) -> bytes:
        body = b""
        while answer.media_type != STREAM or len(body) < STREAM_BYTES:
            while b"\r\n" not in self._unread:
                assert self._receive(), "half of a chunk"
            size, _, self._unread = self._unread.partition(b"\r\n")
            assert re.fullmatch(rb"[0-9a-f]+", size), f"no size: {size!r}"
            piece = self._exactly(int(size, 16))
            assert self._exactly(2) == b"\r\n"
            body += piece
            if not piece or (answer.media_type == STREAM and b"event: resolved" in body):
                break
        return body

    def _exactly(self, size: int) -> bytes:
        while len(self._unread) < size:
            assert self._receive(), f"{len(self._unread)} of {size} bytes"
        taken, self._unread = self._unread[:size], self._unread[size:]
        return taken

    def _receive(self) -> bool:
        assert self._connection is not None
        data = self._connection.recv(65_536)
        self._unread += data
        return bool(data)


def _headers(lines: Sequence[bytes]) -> dict[str, str]:
    headers: dict[str, str] = {}
    for each in lines:
        found = _HEADER.fullmatch(each)
        assert found, f"no header: {each!r}"
        name = found[1].decode().lower()
        assert name not in ("content-length", "content-type") or name not in headers, f"{name} twice"
        headers[name] = found[2].decode("latin-1")
    return headers


def check_answer(answer: Answer, target: str, declared: Declared | None, method: str) -> None:
    """Fail if an answer is not one that the operation has, or an error has no form."""
    if answer.status < 400:
        assert declared is not None
        types = declared.answers.get(str(answer.status))
        assert types is not None, f"{answer.status} is not in the document"
        assert not types or answer.media_type in types
        return
    assert answer.status in (501, 503, 504, 505) or answer.status < 500, "a defect"
    assert "content-type" in answer.headers
    if method == "HEAD" or answer.media_type == "text/html":
        return
    told = answer.json()
    if set(told) == {"error_code", "message"}:
        code = told["error_code"]
        assert answer.status == (code if code < 1_000 else code // 100)
        assert code in CODES or code == answer.status
        assert target.startswith((*ROOTS, "/"))
        return
    assert told.keys() >= PROBLEM and told["status"] == answer.status and told["reason"] and told["detail"]
    assert answer.media_type in ("application/problem+json", "application/json")
    assert ("code" in told and "message" in told) == (answer.media_type == "application/json")


def route_of(served: Sequence[Declared], method: str, target: str) -> Declared | None:
    """Return the document's operation that a request is for."""
    path = target.partition("?")[0]
    found = [each for each in served if each.method == method.replace("HEAD", "GET") and each.route.fullmatch(path)]
    # A pattern that ends with a verb, or is literal, goes before a pattern that takes the rest of a path.
    return min(found, key=lambda each: each.route.pattern.count("("), default=None)
