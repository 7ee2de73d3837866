"""gRPC's two ends of a call behind one Protocol, and how a channel to a peer is made.

Messages are bytes here, encoded and decoded by whoever uses a stream: what does not decode is then refused with a
reason, where gRPC itself would end the call with an internal error. Explicit reads and writes cost less than iterators.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Final

import grpc

from cortado.errors import CortadoError, Unavailable
from cortado.proto.bounds import MessageBounds
from cortado.proto.internal.peers_pb2 import FetchSnapshotRequest, JoinRequest, JoinResponse, PeerBatch
from cortado.store.peers.credentials import Certificates
from cortado.store.peers.identity import dns_name_of
from cortado.store.rpc_errors import from_rpc_error

SERVICE: Final = "cortado.internal.Peers"
CONNECT: Final = f"/{SERVICE}/Connect"
FETCH_SNAPSHOT: Final = f"/{SERVICE}/FetchSnapshot"
READ_RANGE: Final = f"/{SERVICE}/ReadRange"
JOIN: Final = f"/{SERVICE}/Join"
VOUCH: Final = f"/{SERVICE}/Vouch"
MESSAGE_BYTES_MAX: Final = 8 << 20

MESSAGES_MAX: Final = 16_384
"""In one batch: four times what waits for a peer at most."""
MEMBERS_MAX: Final = 1_000
_MEMBERS: Final = {
    "cortado.internal.Configuration.voters": MEMBERS_MAX,
    "cortado.internal.Configuration.learners": MEMBERS_MAX,
}
BATCH_BOUNDS: Final = MessageBounds(
    PeerBatch,
    {"cortado.internal.PeerBatch.messages": MESSAGES_MAX},
    bytes_max=MESSAGE_BYTES_MAX,
    what="message",
)
FETCH_BOUNDS: Final = MessageBounds(FetchSnapshotRequest, {}, bytes_max=64 << 10)
JOIN_BOUNDS: Final = MessageBounds(JoinRequest, {}, bytes_max=64 << 10)
JOINED_BOUNDS: Final = MessageBounds(JoinResponse, _MEMBERS, bytes_max=MESSAGE_BYTES_MAX, what="reply")

_OPTIONS: Final[list[tuple[str, Any]]] = [
    ("grpc.max_receive_message_length", MESSAGE_BYTES_MAX),
    ("grpc.max_send_message_length", MESSAGE_BYTES_MAX),
    # A channel is one connection, made once: who dials decides when to dial again.
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.enable_retries", 0),
    # Peers are spoken to directly, whatever the environment says of proxies.
    ("grpc.enable_http_proxy", 0),
]
_BROKEN: Final = (grpc.aio.BaseError, asyncio.InvalidStateError, RuntimeError)

# What gRPC says where TLS fails, and what that means here.
_TLS_PROBLEMS: Final = (
    ("Hostname Verification Check failed", "its certificate is not that of {name}"),
    # As gRPC says it before 1.78.
    ("is not in peer certificate", "its certificate is not that of {name}"),
    ("certificate has expired", "its certificate has expired"),
    (
        "CERTIFICATE_VERIFY_FAILED",
        "its certificate does not come from an authority that this node trusts, or has expired",
    ),
    ("WRONG_VERSION_NUMBER", "it does not speak TLS"),
    ("Ssl handshake failed", "the TLS handshake failed"),
    ("Failed parsing HTTP/2", "what answers there is no Cortado server"),
    ("Domain name not found", "there is no such host"),
)


def as_it_is(message: bytes) -> bytes:
    """gRPC's serializer for bytes."""
    return message


def open_channel(address: str, certificates: Certificates | None, node_id: str = "") -> grpc.aio.Channel:
    """A new connection. With certificates, the newest; the other side must show that of ``node_id``, or, where that is
    empty, one that is good for the host name in ``address``."""
    if certificates is None:
        return grpc.aio.insecure_channel(address, options=_OPTIONS)
    options = [*_OPTIONS, ("grpc.ssl_target_name_override", dns_name_of(node_id))] if node_id else _OPTIONS
    return grpc.aio.secure_channel(address, certificates.channel_credentials(), options=options)


def explain(error: grpc.RpcError, *, name: str, secure: bool) -> CortadoError:
    """What ended a call, in words for an operator. ``name`` says whose certificate was expected."""
    found = from_rpc_error(error)
    if not isinstance(found, Unavailable):
        return found
    problem = found.problem
    for sign, meaning in _TLS_PROBLEMS:
        if sign in problem:
            return Unavailable(meaning.format(name=name))
    if "Connection refused" in problem:
        return Unavailable("nothing listens there")
    if "Socket closed" in problem or "Connection reset" in problem:
        why = "does not accept this node's certificate" if secure else "wants TLS"
        return Unavailable(f"it closed the connection: it stops, or {why}")
    # gRPC wraps the cause in several sentences.
    return Unavailable(problem.rpartition("last error: ")[2])


class CallStream:
    """The end that dialled."""

    def __init__(self, call: Any, *, name: str, secure: bool) -> None:
        self._call = call
        self._name = name
        self._secure = secure

    async def read(self) -> bytes | None:
        try:
            message = await self._call.read()
            if message is not grpc.aio.EOF:
                whole: bytes = message
                return whole
            # The end of a call that failed looks like any end: its status tells.
            if await self._call.code() is grpc.StatusCode.OK:
                return None
        except grpc.RpcError as error:
            raise explain(error, name=self._name, secure=self._secure) from None
        except _BROKEN as error:
            raise Unavailable(f"the call broke: {error}") from None
        raise await self._status()

    async def write(self, message: bytes) -> None:
        try:
            await self._call.write(message)
            return
        except grpc.RpcError as error:
            raise explain(error, name=self._name, secure=self._secure) from None
        except _BROKEN:
            pass
        # A write on a call that has ended says no more than that.
        raise await self._status()

    async def finish(self) -> None:
        """Say that nothing follows."""
        await self._call.done_writing()

    async def _status(self) -> CortadoError:
        """Why the call has ended."""
        status = grpc.aio.AioRpcError(
            await self._call.code(),
            await self._call.initial_metadata(),
            await self._call.trailing_metadata(),
            await self._call.details(),
        )
        return explain(status, name=self._name, secure=self._secure)


class ServedStream:
    """The end that serves."""

    def __init__(self, context: grpc.aio.ServicerContext[Any, Any]) -> None:
        self._context = context

    async def read(self) -> bytes | None:
        message = await self._guarded(self._context.read)
        return None if message is grpc.aio.EOF else message

    async def write(self, message: bytes) -> None:
        await self._guarded(self._context.write, message)

    async def _guarded(self, operation: Callable[..., Any], *arguments: bytes) -> Any:
        try:
            return await operation(*arguments)
        except (grpc.RpcError, *_BROKEN) as error:
            raise Unavailable(f"the call broke: {error}") from None
