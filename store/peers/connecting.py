"""Connect to a node: for batches (``dial.py``), or for one request and what answers it.

A request has a connection of its own, which ends with the answer: the bulk of a snapshot must not stand before
heartbeats. Each is made with the newest certificates.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from cortado.errors import Unavailable
from cortado.store.peers.connection import Connection
from cortado.store.peers.credentials import Certificates
from cortado.store.peers.frames import Kind
from cortado.store.peers.interface import PeerLimits
from cortado.store.peers.tls import check_shown, why_failed


@dataclass(frozen=True, slots=True)
class Target:
    """The node to reach and its address: the node ``node_id``, or, if that is empty, any node whose certificate is good
    for the host in ``address``. ``certificates`` None: without TLS."""

    address: str
    certificates: Certificates | None
    limits: PeerLimits
    node_id: str = ""

    @property
    def name(self) -> str:
        return f"node {self.node_id}" if self.node_id else f"the host of {self.address}"


@asynccontextmanager
async def connected(target: Target) -> AsyncIterator[Connection]:
    """Return a connection for the length of the block. Raises Unavailable; the caller bounds the time."""
    if not target.address:
        raise Unavailable(f"the address of {target.name} is not known")
    connection = await _connect(target)
    try:
        yield connection
    finally:
        connection.abort()


async def ask(target: Target, kind: Kind, request: bytes, answer: Kind) -> bytes:
    """Return a node's answer to a request. Raises Unavailable, and the error that it answers with."""
    async with connected(target) as connection:
        connection.expect(**{answer.name: target.limits.frame_bytes_max})
        await connection.write(kind, request)
        frame = await connection.read()
        if frame is None:
            raise Unavailable("it closed the connection before it answered")
        return frame.payload


async def _connect(target: Target) -> Connection:
    host, _, port = target.address.rpartition(":")
    secure = target.certificates is not None
    refused = "does not accept this node's certificate" if secure else "wants TLS"
    unanswered = f"it closed the connection: it stops, or {refused}"
    loop = asyncio.get_running_loop()
    try:
        _, connection = await loop.create_connection(
            lambda: Connection("what answers there", unanswered), host.strip("[]"), int(port), **_tls(target)
        )
    except ssl.SSLError as problem:
        raise Unavailable(why_failed(problem, target.name)) from None
    except socket.gaierror:
        raise Unavailable("there is no such host") from None
    except ConnectionRefusedError:
        raise Unavailable("nothing listens there") from None
    except (ConnectionResetError, ConnectionAbortedError):
        raise Unavailable(unanswered) from None
    except (OSError, ValueError, OverflowError) as problem:
        raise Unavailable(_reason(problem)) from None
    if secure and target.node_id:
        try:
            check_shown(connection.told("peercert"), target.node_id)
        except Unavailable:
            connection.abort()
            raise
    return connection


def _tls(target: Target) -> dict[str, Any]:
    if target.certificates is None:
        return {}
    contexts = target.certificates.current().contexts
    context = contexts.calling if target.node_id else contexts.calling_host
    return {"ssl": context, "ssl_handshake_timeout": target.limits.hello_ms / 1000}


def _reason(problem: Exception) -> str:
    text = str(problem)
    # None of the host's addresses answered.
    if "refused" in text or "Errno 111" in text:
        return "nothing listens there"
    return f"it cannot be reached: {getattr(problem, 'strerror', None) or text}"
