"""The answers to a peer's requests: joining, vouching, ranges, snapshots.

Each has a connection of its own. Nothing here changes state, or reads more than one small message, before the caller is
known: by its certificate if connections have them, and by the Hello in its request.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from typing import Final, TypeAlias, TypeVar

import google_crc32c
from google.protobuf.message import DecodeError, Message

from cortado.errors import InvalidArgument, NotFound, NotLeader, PeerRefused, Unavailable
from cortado.proto.internal.peers_pb2 import (
    FetchSnapshotRequest,
    Hello,
    JoinRequest,
    JoinResponse,
    ReadRangeRequest,
    SnapshotChunk,
    VouchRequest,
    VouchResponse,
)
from cortado.raft.registry import Member
from cortado.store.peers.connection import Connection
from cortado.store.peers.frames import Frame, Kind
from cortado.store.peers.hello import check_certificate
from cortado.store.peers.identity import check_name
from cortado.store.peers.interface import PeerNode
from cortado.store.peers.ranges import asked, range_response
from cortado.store.peers.transport import PeerTransport
from cortado.store.peers.versions import check_versions, versions_of

_LOG: Final = logging.getLogger(__name__)

_ID_LENGTH_MAX: Final = 128
_ADDRESS_LENGTH_MAX: Final = 300

_M = TypeVar("_M", bound=Message)
Certificate: TypeAlias = tuple[str, str] | None
Answering: TypeAlias = Callable[[bytes, Certificate, Connection], Awaitable[None]]


class PeersService:
    """Answers for ``node``. ``transport`` knows the peers."""

    def __init__(self, node: PeerNode, transport: PeerTransport) -> None:
        self._node = node
        self._transport = transport
        self._answering: dict[Kind, Answering] = {
            Kind.JOIN: self._join,
            Kind.VOUCH: self._vouch,
            Kind.READ_RANGE: self._read_range,
            Kind.FETCH_SNAPSHOT: self._fetch_snapshot,
        }

    @property
    def requests(self) -> frozenset[Kind]:
        """The kinds of requests that it answers."""
        return frozenset(self._answering)

    async def answer(self, request: Frame, certificate: Certificate, connection: Connection) -> None:
        """Write the answer. ``certificate``: the caller's role and name, None if connections have none. Raises
        CortadoError, for the caller."""
        await self._answering[request.kind](request.payload, certificate, connection)

    async def _fetch_snapshot(self, message: bytes, certificate: Certificate, connection: Connection) -> None:
        request = _decoded(FetchSnapshotRequest(), message)
        self._check(request.hello, certificate, connection)
        if len(request.snapshot_id) > _ID_LENGTH_MAX:
            raise InvalidArgument("snapshot_id", f"may have {_ID_LENGTH_MAX} characters")
        offset, limits = request.offset, self._transport.limits
        pieces = self._node.read_snapshot(request.group_id, request.snapshot_id, offset)
        async with aclosing(pieces):
            async for piece in pieces:
                for at in range(0, len(piece), limits.chunk_bytes):
                    data = piece[at : at + limits.chunk_bytes]
                    chunk = SnapshotChunk(offset=offset, data=data, checksum=google_crc32c.value(data))
                    await self._send(connection, Kind.SNAPSHOT_CHUNK, chunk.SerializeToString())
                    offset += len(data)
        await self._send(connection, Kind.SNAPSHOT_END, b"")

    def _check(self, hello: Hello, certificate: Certificate, connection: Connection) -> None:
        """Raise PeerRefused if the caller is no member."""
        self._transport.admission.check(hello, certificate)
        connection.is_known = True

    async def _send(self, connection: Connection, kind: Kind, payload: bytes) -> None:
        """Raise Unavailable if the caller does not take it: it keeps one of few connections."""
        patience_ms = self._transport.limits.patience_ms
        try:
            async with asyncio.timeout(patience_ms / 1000):
                await connection.write(kind, payload)
        except TimeoutError:
            raise Unavailable(f"nothing was taken for {patience_ms} ms") from None

    async def _vouch(self, message: bytes, certificate: Certificate, connection: Connection) -> None:
        """Answer members alone: the members of a cluster are not public."""
        request = _decoded(VouchRequest(), message)
        self._check(request.hello, certificate, connection)
        member = self._node.meta.known_member(request.node_id)
        is_member = member is not None and bool(member.storage_id) and member.storage_id == request.storage_id
        term, index = self._node.meta.log_position()
        word = VouchResponse(is_member=is_member, last_term=term, last_index=index)
        await self._send(connection, Kind.VOUCHED, word.SerializeToString())

    async def _read_range(self, message: bytes, certificate: Certificate, connection: Connection) -> None:
        request = _decoded(ReadRangeRequest(), message)
        self._check(request.hello, certificate, connection)
        answer = range_response(await self._node.read_range(request.group_id, asked(request)))
        await self._send(connection, Kind.RANGE, answer.SerializeToString())

    async def _join(self, message: bytes, certificate: Certificate, connection: Connection) -> None:
        request = _decoded(JoinRequest(), message)
        check_certificate(request.node_id, certificate)
        self._check_join(request)
        self._check_address(request)
        try:
            roster = await self._node.meta.bind_member(
                Member(request.node_id, request.peer_address, request.storage_id, request.address)
            )
        except NotLeader as elsewhere:
            # Clients know the leader by another address.
            members = self._transport.roster.members
            leader = next((each for each in members if each.address == elsewhere.leader), None)
            raise NotLeader(elsewhere.problem, leader="" if leader is None else leader.peer_address) from None
        except (InvalidArgument, NotFound):
            # The leader said so, and it knows all members there are.
            if self._transport.roster.member(request.node_id) is not None:
                raise
            if self._node.meta.is_removed(request.node_id):
                problem = "was removed, and an id is never used again: add it under another one"
                raise InvalidArgument("node id", problem, request.node_id) from None
            advice = f"announce it first: cortado member add {request.node_id} {request.peer_address}"
            raise InvalidArgument("node id", f"no member {request.node_id} is known; {advice}") from None
        _LOG.info(
            "node %s joined at %s with data directory %s", request.node_id, request.peer_address, request.storage_id
        )
        joined = JoinResponse(
            cluster_id=self._transport.identity.cluster_id,
            roster=roster.to_message(),
        )
        await self._send(connection, Kind.JOINED, joined.SerializeToString())

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
        self._transport.processes.check(request)
        is_here = request.node_id == ours.node_id
        if is_here and request.process not in (0, self._transport.processes.own):
            problem = f"node {ours.node_id} runs here, and another process with its data directory says to be it"
            raise PeerRefused(f"{problem}: that one runs on a copy of the directory")
        if is_here and request.storage_id != ours.storage_id:
            raise PeerRefused(
                f"the node that answers is called {ours.node_id} itself: give the new one another node id"
            )

    def _check_address(self, request: JoinRequest) -> None:
        """Check that a new node is reached at its announced address. (One that has joined may move.)"""
        announced = self._transport.roster.member(request.node_id)
        if announced is not None and not announced.storage_id and announced.peer_address != request.peer_address:
            problem = f"node {request.node_id} was announced at {announced.peer_address}, and says to be reached at"
            advice = "start it with that address, or remove it and announce it again"
            raise InvalidArgument("peer_address", f"{problem} {request.peer_address}: {advice}")


def _decoded(message: _M, encoded: bytes) -> _M:
    try:
        message.ParseFromString(encoded)
    except DecodeError:
        raise InvalidArgument("request", "is not one of the peers' protocol") from None
    return message
