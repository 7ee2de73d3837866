"""``cortado gateway`` in a process of its own, and calls to it byte by byte."""

from __future__ import annotations

import json
import socket
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from support.server_process import CORTADO, wait_until

WAIT_S = 30.0


@dataclass
class GatewayProcess:
    """``address`` is its address."""

    process: subprocess.Popen[bytes]
    host: str
    port: int
    log: Path

    @property
    def url(self) -> str:
        return f"http://{self.host}:{self.port}"

    def connect(self, receive_bytes: int = 0) -> socket.socket:
        """Open a connection that takes ``receive_bytes`` before its reader does."""
        connection = socket.socket()
        if receive_bytes:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
        connection.settimeout(WAIT_S)
        connection.connect((self.host, self.port))
        return connection

    def send(self, *pieces: bytes) -> Answer:
        """Send ``pieces`` one after the other, and return the bytes that come until the gateway closes or the answer is
        complete."""
        with self.connect() as connection:
            for each in pieces:
                connection.sendall(each)
            return read_answer(connection)


@dataclass
class Answer:
    """``rest`` holds the bytes behind it."""

    status: int
    headers: dict[str, str]
    body: bytes
    rest: bytes = b""

    def json(self) -> Any:
        return json.loads(self.body)


def read_answer(connection: socket.socket, begun: bytes = b"") -> Answer:
    """Read the next answer, by the length in its headers. Its status is 0 if the connection ended instead."""
    data = begun
    while b"\r\n\r\n" not in data:
        data += (piece := _received(connection))
        if not piece:
            return Answer(0, {}, data)
    head, _, rest = data.partition(b"\r\n\r\n")
    lines = head.decode("latin-1").split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:])}
    length = int(headers.get("content-length", "0"))
    while len(rest) < length and (piece := _received(connection)):
        rest += piece
    return Answer(int(lines[0].split()[1]), headers, rest[:length], rest[length:])


def _received(connection: socket.socket) -> bytes:
    try:
        return connection.recv(65_536)
    except ConnectionError:
        return b""


@contextmanager
def gateway_process(endpoint: str, folder: Path, *options: str, under: Sequence[str] = ()) -> Iterator[GatewayProcess]:
    """Run a gateway before ``endpoint``, until the block ends. ``under`` is a command that becomes it."""
    told, log = folder / "gateway.port", folder / "gateway.log"
    command = [
        *under,
        *CORTADO,
        "gateway",
        "-e",
        endpoint,
        "--listen",
        "127.0.0.1:0",
        "--port-file",
        str(told),
        *options,
    ]
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output)
    try:
        wait_until(lambda: told.exists() or process.poll() is not None, "a gateway", WAIT_S)
        assert process.poll() is None, log.read_text()
        host, _, port = told.read_text().strip().rpartition(":")
        yield GatewayProcess(process, host, int(port), log)
    finally:
        process.kill()
        process.wait()
