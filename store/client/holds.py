"""Holds: each keeps the versions that reads at its timestamp or above need from being collected."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from hashlib import blake2b
from types import TracebackType
from typing import Final, Self

from cortado.errors import Cancelled, CortadoError, HoldExpired, InvalidArgument, Unsupported
from cortado.proto.v1 import collection_pb2 as pb
from cortado.store.client.arguments import flag, shown, text
from cortado.store.client.connection import Connection
from cortado.store.client.public_faces import public_face
from cortado.store.client.values import At, at_to_proto, timestamp_of
from cortado.store.clock.timestamp import Timestamp

TTL_S_DEFAULT: Final = 60.0
TTL_S_MIN: Final = 1.0
TTL_S_MAX: Final = 600.0
CONSUMER_TTL_S_DEFAULT: Final = 7 * 86_400.0
CONSUMER_TTL_S_MAX: Final = 30 * 86_400.0
CONSUMER_CHARS_MAX: Final = 100
OWNER_CHARS_MAX: Final = 100
LABEL_CHARS_MAX: Final = 200
ID_BYTES: Final = 16
END_S: Final = 2.0
"""The time in which a holder tries to tell the cluster of the end; after that the hold ends by itself."""
_KEEPS_PER_TTL: Final = 3
"""Two keep-alives may be lost before the third saves the hold."""
_AGAIN_S: Final = 1.0
"""The wait after a keep-alive that failed."""


@dataclass(frozen=True, slots=True)
class HoldInfo:
    """An existing hold: it keeps the versions that reads at ``timestamp`` or above need. The leader last heard its
    holder ``silent_s`` ago, and must hear it every ``ttl_s``. With a ``consumer`` it is the consumer's place, last
    moved ``silent_s`` ago and due every ``ttl_s``; only ``owner`` moves it, if that is not empty.
    It belongs to ``principal``, empty without one: only that principal and operators keep or end it."""

    hold_id: str
    timestamp: Timestamp
    ttl_s: float
    label: str
    acquired: Timestamp
    silent_s: float
    consumer: str = ""
    owner: str = ""
    principal: str = ""


class HoldKeeper:
    """Sends the keep-alives of a hold, beside its holder's work."""

    def __init__(self, connection: Connection, hold_id: bytes, *, ttl_s: float, timeout_s: float) -> None:
        self._connection = connection
        self._request = pb.KeepLeaseRequest(lease_id=hold_id)
        self._every_s = ttl_s / _KEEPS_PER_TTL
        self._timeout_s = min(timeout_s, self._every_s)
        self._over = connection.runtime.signal()
        self._kept = connection.runtime.signal()
        self.is_lost = False
        """The cluster has answered that the hold does not exist any more."""

    def begin(self) -> None:
        """Start the keep-alives; call it once."""
        self._connection.runtime.beside(self._keep())

    def end(self) -> None:
        """Stop the keep-alives; :meth:`ended` waits for the one under way."""
        self._over.give()

    async def ended(self) -> None:
        """Wait, after :meth:`end`, for the last keep-alive: at most ``END_S``, in any state of the network."""
        await self._kept.wait(END_S)

    async def _keep(self) -> None:
        wait_s = self._every_s
        keep = self._connection.stubs.collection.KeepLease
        try:
            while not await self._over.wait(wait_s):
                wait_s = self._every_s
                try:
                    await self._connection.call(keep, self._request, timeout_s=self._timeout_s)
                except HoldExpired:
                    self.is_lost = True
                    return
                except Cancelled:
                    return  # The client was closed.
                except CortadoError:
                    # No leader, or the network is cut: the hold may live for its whole time once there is a leader.
                    wait_s = min(_AGAIN_S, self._every_s)
        finally:
            self._kept.give()


@public_face
class AsyncHold:
    """Keeps the versions that reads at a timestamp or above need, for as long as its block lasts::

        async with client.hold(label="nightly report") as hold:
            past = client.at(hold.timestamp)
            async for document in past.table("shop.items").scan():
                ...

    It keeps itself alive while the block runs. It ends if no keep-alive reaches the cluster in time, and when it is
    a day old. Then :attr:`timestamp` raises HoldExpired, and reads below the versions collected since raise
    SnapshotTooOld. So no read ever misses a part. A hold keeps disk space in use: keep it no
    longer than you read.

    The id of a shared hold derives from its request. So all processes with the same request find the same hold, and
    acquire it again if it has ended. It ends when no holder has been heard for its time to live.
    """

    def __init__(
        self, connection: Connection, at: At = None, *, label: str, ttl_s: float, shared: bool, timeout_s: float
    ) -> None:
        """As :meth:`AsyncClient.hold`, over ``connection``."""
        self._connection = connection
        self._timeout_s = timeout_s
        ttl_s = check_ttl(ttl_s)
        self._request = pb.AcquireLeaseRequest(ttl_ms=round(ttl_s * 1000), label=check_label(label))
        set_at(self._request, at)
        self._is_shared = flag(shared, "shared")
        if shared and not self._request.HasField("timestamp"):
            raise InvalidArgument("at", "must be a timestamp if the hold is shared", shown(at))
        hold_id = _id_of(self._request) if shared else connection.environment.random_bytes(ID_BYTES)
        self._request.lease_id = self._hold_id = hold_id
        self._keeper = HoldKeeper(connection, hold_id, ttl_s=ttl_s, timeout_s=timeout_s)
        self._timestamp: Timestamp | None = None
        self._is_over = False

    @property
    def hold_id(self) -> str:
        """Its id, once it is acquired as ``cortado hold list`` shows it: the cluster makes a principal's own of it."""
        return self._hold_id.hex()

    @property
    def timestamp(self) -> Timestamp:
        """The timestamp to read at. Raises HoldExpired if the hold has ended, Unsupported before its block."""
        if self._is_over or self._keeper.is_lost:
            raise HoldExpired(self.hold_id)
        if self._timestamp is None:
            raise Unsupported("a hold outside of its block", "use it as a context manager")
        return self._timestamp

    async def __aenter__(self) -> Self:
        if self._timestamp is not None:
            raise Unsupported("entering a hold again", "acquire another")
        self._timestamp = await (self._found_or_acquired() if self._is_shared else self._acquired())
        self._keeper.begin()
        return self

    async def _acquired(self) -> Timestamp:
        stub = self._connection.stubs.collection
        reply = await self._connection.write(stub.AcquireLease, self._request, timeout_s=self._timeout_s)
        self._hold_id = reply.lease.lease_id
        return timestamp_of(reply.lease.timestamp)

    async def _found_or_acquired(self) -> Timestamp:
        """Return the timestamp of the hold, found or acquired. A hold that another holder keeps costs no write."""
        request = pb.KeepLeaseRequest(lease_id=self._request.lease_id)
        keep = self._connection.stubs.collection.KeepLease
        try:
            await self._connection.call(keep, request, timeout_s=self._timeout_s)
        except HoldExpired:
            return await self._acquired()
        return timestamp_of(self._request.timestamp)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._keeper.end()
        self._is_over = True
        if not self._is_shared:
            request = pb.ReleaseLeaseRequest(lease_id=self._request.lease_id)
            release = self._connection.stubs.collection.ReleaseLease
            # If the cluster does not answer, the hold ends by itself: its keep-alives have stopped.
            with suppress(CortadoError):
                await self._connection.write(release, request, timeout_s=min(self._timeout_s, END_S))
        await self._keeper.ended()


def hold_from_proto(lease: pb.Lease) -> HoldInfo:
    """Return a hold as a value."""
    return HoldInfo(
        lease.lease_id.hex(),
        timestamp_of(lease.timestamp),
        lease.ttl_ms / 1000,
        lease.label,
        timestamp_of(lease.acquired),
        lease.silent_ms / 1000,
        lease.consumer,
        lease.owner,
        lease.principal,
    )


def check_ttl(ttl_s: float) -> float:
    """Return ``ttl_s`` if a hold may have it. Raises InvalidArgument."""
    return checked_ttl(ttl_s, TTL_S_MAX)


def checked_ttl(ttl_s: float, most_s: float) -> float:
    is_number = isinstance(ttl_s, int | float) and not isinstance(ttl_s, bool)
    if not is_number or not TTL_S_MIN <= ttl_s <= most_s:
        raise InvalidArgument("ttl_s", f"must be between {TTL_S_MIN:.0f} and {most_s:.0f} seconds", shown(ttl_s))
    return float(ttl_s)


def check_label(label: str) -> str:
    """Return ``label`` if a hold may have it. Raises InvalidArgument."""
    if len(text(label, "label")) > LABEL_CHARS_MAX:
        raise InvalidArgument("label", f"must have at most {LABEL_CHARS_MAX} characters", f"{len(label)} characters")
    return label


def _id_of(request: pb.AcquireLeaseRequest) -> bytes:
    """Return the id of a shared hold: equal requests have equal ids."""
    return blake2b(request.SerializeToString(deterministic=True), digest_size=ID_BYTES).digest()


def set_at(request: pb.AcquireLeaseRequest, at: At) -> None:
    wanted = at_to_proto(at)
    if wanted is None:
        return
    if wanted.HasField("timestamp"):
        request.timestamp.CopyFrom(wanted.timestamp)
    elif wanted.HasField("wall_ms"):
        request.wall_ms = wanted.wall_ms
    else:
        raise InvalidArgument("at", "must be a timestamp or a wall time: a hold is at one of them", shown(at))
