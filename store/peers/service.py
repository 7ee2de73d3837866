"""The Peers service: the end that serves the streams, the snapshots and the joining of peers.

Nothing here changes state, or reads more than one small message, before the caller is known: by its certificate where
connections have them, and by its Hello.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from contextlib import aclosing
from typing import Any, Final, NoReturn, TypeAlias, TypeVar

import google_crc32c
import grpc
from google.protobuf.message import DecodeError, Message

from cortado.errors import CortadoError, Internal, InvalidArgument, NotFound, NotLeader, PeerRefused, Unavailable
from cortado.proto.internal.peers_pb2 import (
    FetchSnapshotRequest,
    JoinRequest,
    JoinResponse,
    ReadRangeRequest,
    SnapshotChunk,
    VouchRequest,
    VouchResponse,
)
from cortado.proto.internal.raft_pb2 import Configuration as ConfigurationMessage
from cortado.raft.configuration import Member
from cortado.store.peers.hello import check_certificate
from cortado.store.peers.identity import check_name, identity_of
from cortado.store.peers.interface import PeerNode
from cortado.store.peers.ranges import asked, range_response
from cortado.store.peers.streams import FETCH_BOUNDS, JOIN_BOUNDS, SERVICE, ServedStream, as_it_is
from cortado.store.peers.transport import PeerTransport
from cortado.store.peers.versions import check_versions, versions_of
from cortado.store.rpc_errors import status_code, status_message, trailing_metadata

_LOG: Final = logging.getLogger(__name__)

_ID_LENGTH_MAX: Final = 128
_ADDRESS_LENGTH_MAX: Final = 300

_M = TypeVar("_M", bound=Message)
Context: TypeAlias = "grpc.aio.ServicerContext[Any, Any]"


class PeersService:
    """Serves ``node`` to its peers. ``transport`` knows who they are."""

    def __init__(self, node: PeerNode, transport: PeerTransport) -> None:
        self._node = node
        self._transport = transport

    def handler(self) -> grpc.GenericRpcHandler:
        """For ``server.add_generic_rpc_handlers``."""
        return grpc.method_handlers_generic_handler(
            SERVICE,
            {
                "Connect": grpc.stream_stream_rpc_method_handler(_ended(self._connect), as_it_is, as_it_is),
                "FetchSnapshot": grpc.unary_stream_rpc_method_handler(_ended(self._fetch_snapshot), as_it_is, as_it_is),
                "Vouch": grpc.unary_unary_rpc_method_handler(_ended(self._vouch), as_it_is, as_it_is),
                "ReadRange": grpc.unary_unary_rpc_method_handler(_ended(self._read_range), as_it_is, as_it_is),
                "Join": grpc.unary_unary_rpc_method_handler(_ended(self._join), as_it_is, as_it_is),
            },
        )

    async def _connect(self, _: object, context: Context) -> None:
        await self._transport.accept(ServedStream(context), self._certificate(context))

    async def _fetch_snapshot(self, message: bytes, context: Context) -> None:
        FETCH_BOUNDS.check(message)
        request = _decoded(FetchSnapshotRequest(), message)
        self._transport.check(request.hello, self._certificate(context))
        if len(request.snapshot_id) > _ID_LENGTH_MAX:
            raise InvalidArgument("snapshot_id", f"may have {_ID_LENGTH_MAX} characters")
        stream, offset, limits = ServedStream(context), request.offset, self._transport.limits
        pieces = self._node.read_snapshot(request.group_id, request.snapshot_id, offset)
        async with aclosing(pieces):
            async for piece in pieces:
                for at in range(0, len(piece), limits.chunk_bytes):
                    data = piece[at : at + limits.chunk_bytes]
                    chunk = SnapshotChunk(offset=offset, data=data, checksum=google_crc32c.value(data))
                    try:
                        async with asyncio.timeout(limits.patience_ms / 1000):
                            await stream.write(chunk.SerializeToString())
                    except TimeoutError:
                        raise Unavailable(f"nothing was taken for {limits.patience_ms} ms") from None
                    offset += len(data)

    async def _vouch(self, message: bytes, context: Context) -> bytes:
        """Of members alone: what a cluster's members are is not for everyone to ask."""
        request = _decoded(VouchRequest(), message)
        self._transport.check(request.hello, self._certificate(context))
        member = self._node.known_member(request.node_id)
        is_member = member is not None and bool(member.storage_id) and member.storage_id == request.storage_id
        term, index = self._node.log_position()
        return VouchResponse(is_member=is_member, last_term=term, last_index=index).SerializeToString()

    async def _read_range(self, message: bytes, context: Context) -> bytes:
        request = _decoded(ReadRangeRequest(), message)
        self._transport.check(request.hello, self._certificate(context))
        return range_response(await self._node.read_range(request.group_id, asked(request))).SerializeToString()

    async def _join(self, message: bytes, context: Context) -> bytes:
        JOIN_BOUNDS.check(message)
        request = _decoded(JoinRequest(), message)
        check_certificate(request.node_id, self._certificate(context))
        self._check_join(request)
        self._check_address(request)
        try:
            configuration = await self._node.bind_member(
                Member(request.node_id, request.peer_address, request.storage_id, request.address)
            )
        except NotLeader as elsewhere:
            # Who leads is known to clients by another address.
            leader = next((each for each in self._members() if each.address == elsewhere.leader), None)
            raise NotLeader(elsewhere.problem, leader="" if leader is None else leader.peer_address) from None
        except (InvalidArgument, NotFound):
            # The leader said so, and it knows all members there are.
            if self._transport.configuration.member(request.node_id) is not None:
                raise
            advice = f"announce it first: cortado member add {request.node_id} {request.peer_address}"
            raise InvalidArgument("node id", f"no member {request.node_id} is known; {advice}") from None
        _LOG.info(
            "node %s joined at %s with data directory %s", request.node_id, request.peer_address, request.storage_id
        )
        return JoinResponse(
            cluster_id=self._transport.identity.cluster_id,
            configuration=ConfigurationMessage.FromString(configuration.encode()),
        ).SerializeToString()

    def _check_join(self, request: JoinRequest) -> None:
        ours = self._transport.identity
        check_name(request.node_id, "node id")
        lengths_max = {
            "storage_id": _ID_LENGTH_MAX,
            "peer_address": _ADDRESS_LENGTH_MAX,
            "address": _ADDRESS_LENGTH_MAX,
        }
        for name, length_max in lengths_max.items():
            value = getattr(request, name)
            if not 0 < len(value) <= length_max or not value.isprintable():
                raise InvalidArgument(name, f"must have 1 to {length_max} printable characters", repr(value[:80]))
        check_versions(versions_of(request), request.node_id, ours.node_id)
        if request.cluster_id not in ("", ours.cluster_id):
            problem = (
                f"belongs to cluster {request.cluster_id[:80]!r}, node {ours.node_id} to cluster {ours.cluster_id}"
            )
            raise PeerRefused(f"the data directory of node {request.node_id} {problem}")
        if request.node_id == ours.node_id and request.storage_id != ours.storage_id:
            raise PeerRefused(
                f"the node that answers is called {ours.node_id} itself: give the new one another node id"
            )

    def _check_address(self, request: JoinRequest) -> None:
        """A new node is reached where it was announced. (One that has joined may move.)"""
        announced = self._transport.configuration.member(request.node_id)
        if announced is not None and not announced.storage_id and announced.peer_address != request.peer_address:
            problem = f"node {request.node_id} was announced at {announced.peer_address}, and says to be reached at"
            advice = "start it with that address, or remove it and announce it again"
            raise InvalidArgument("peer_address", f"{problem} {request.peer_address}: {advice}")

    def _members(self) -> Sequence[Member]:
        return self._transport.configuration.members

    def _certificate(self, context: Context) -> tuple[str, str] | None:
        """Role and name of the caller's certificate; None where this node serves without any."""
        if self._transport.certificates is None:
            return None
        shown = context.auth_context()
        return identity_of(uri.decode("utf-8", "replace") for uri in shown.get("peer_uri", ()))


def _decoded(message: _M, encoded: bytes) -> _M:
    try:
        message.ParseFromString(encoded)
    except DecodeError:
        raise InvalidArgument("request", "is not one of the peers' protocol") from None
    return message


def _ended(behaviour: Callable[[Any, Context], Awaitable[Any]]) -> Callable[[Any, Context], Awaitable[Any]]:
    """``behaviour``, with its errors as a status with details."""

    async def serve(request: Any, context: Context) -> Any:
        try:
            return await behaviour(request, context)
        except CortadoError as error:
            ended = error
        except Exception as defect:
            _LOG.exception("a defect in the service of the peers")
            ended = Internal(f"{type(defect).__name__}; see the server's log")
        # gRPC keeps what an abort raises, in a cycle with the call. Nothing of what was sent may hang on that until the
        # collector comes: neither by the frames of a traceback nor by this one.
        del request
        ended.__context__ = None
        return await _abort(context, ended.with_traceback(None))

    return serve


async def _abort(context: Context, error: CortadoError) -> NoReturn:
    await context.abort(status_code(error), status_message(error), trailing_metadata(error))
    raise AssertionError("abort returned")
