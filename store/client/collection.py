"""Garbage collection, and the leases that keep old versions for their readers."""

from __future__ import annotations

from contextlib import aclosing, suppress
from dataclasses import dataclass
from hashlib import blake2b
from types import TracebackType
from typing import Final, Self

from cortado.errors import Cancelled, CortadoError, InvalidArgument, LeaseExpired, Unsupported
from cortado.proto.v1 import collection_pb2 as pb
from cortado.store.client.arguments import flag, hexadecimal, shown, text
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
"""The time in which a holder tries to tell the cluster of the end; after that the lease ends by itself."""
_KEEPS_PER_TTL: Final = 3
"""Two keep-alives may be lost before the third saves the lease."""
_AGAIN_S: Final = 1.0
"""The wait after a keep-alive that failed."""


@dataclass(frozen=True, slots=True)
class HeldLease:
    """An existing lease: it keeps the versions that reads at ``timestamp`` or above need. The leader last heard its
    holder ``silent_s`` ago, and must hear it every ``ttl_s``. With a ``consumer`` it is the consumer's place, last
    moved ``silent_s`` ago and due every ``ttl_s``; only ``owner`` moves it, if that is not empty.
    It belongs to ``principal``, empty without one: only that principal and operators keep or end it."""

    lease_id: str
    timestamp: Timestamp
    ttl_s: float
    label: str
    acquired: Timestamp
    silent_s: float
    consumer: str = ""
    owner: str = ""
    principal: str = ""


@dataclass(frozen=True, slots=True)
class CollectionStatus:
    """How far back reads can go: to ``safepoint``, which is ``lag_s`` ago. ``holder`` is the lease that it waits for,
    None if it follows from ``retention_ms`` alone (-1: for ever). ``tables`` have safepoints of their own.

    ``removed`` counts the stored items that the leader's node removed since its start. The node divides its store
    into ``pieces``; ``pending`` of them wait to be looked at.
    """

    safepoint: Timestamp
    retention_ms: int
    lag_s: float
    holder: HeldLease | None
    removed: int
    pieces: int
    pending: int
    tables: dict[str, Timestamp]


class LeaseKeeper:
    """Sends the keep-alives of a lease, beside its holder's work."""

    def __init__(self, connection: Connection, lease_id: bytes, *, ttl_s: float, timeout_s: float) -> None:
        self._connection = connection
        self._request = pb.KeepLeaseRequest(lease_id=lease_id)
        self._every_s = ttl_s / _KEEPS_PER_TTL
        self._timeout_s = min(timeout_s, self._every_s)
        self._over = connection.runtime.signal()
        self._kept = connection.runtime.signal()
        self.is_lost = False
        """The cluster has answered that the lease does not exist any more."""

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
                except LeaseExpired:
                    self.is_lost = True
                    return
                except Cancelled:
                    return  # The client was closed.
                except CortadoError:
                    # No leader, or the network is cut: the lease may live for its whole time once there is a leader.
                    wait_s = min(_AGAIN_S, self._every_s)
        finally:
            self._kept.give()


@public_face
class AsyncLease:
    """Keeps the versions that reads at a timestamp or above need, for as long as its block lasts::

        async with client.lease(label="nightly report") as lease:
            past = client.at(lease.timestamp)
            async for document in past.table("shop.items").scan():
                ...

    It keeps itself alive while the block runs. It ends if no keep-alive reaches the cluster in time, and when it is
    a day old. Then :attr:`timestamp` raises LeaseExpired, and reads below the versions collected since raise
    SnapshotTooOld. So no read ever misses a part. A lease keeps disk space in use: hold it no
    longer than you read.

    The id of a shared lease derives from its request. So all processes with the same request find the same lease, and
    acquire it again if it has ended. It ends when no holder has been heard for its time to live.
    """

    def __init__(
        self, connection: Connection, at: At = None, *, label: str, ttl_s: float, shared: bool, timeout_s: float
    ) -> None:
        """As :meth:`AsyncClient.lease`, over ``connection``."""
        self._connection = connection
        self._timeout_s = timeout_s
        ttl_s = check_ttl(ttl_s)
        self._request = pb.AcquireLeaseRequest(ttl_ms=round(ttl_s * 1000), label=check_label(label))
        _set_at(self._request, at)
        self._is_shared = flag(shared, "shared")
        if shared and not self._request.HasField("timestamp"):
            raise InvalidArgument("at", "must be a timestamp if the lease is shared", shown(at))
        lease_id = _id_of(self._request) if shared else connection.environment.random_bytes(ID_BYTES)
        self._request.lease_id = self._lease_id = lease_id
        self._keeper = LeaseKeeper(connection, lease_id, ttl_s=ttl_s, timeout_s=timeout_s)
        self._timestamp: Timestamp | None = None
        self._is_over = False

    @property
    def lease_id(self) -> str:
        """Its id, once it is acquired as ``cortado lease list`` shows it: the cluster makes a principal's own of it."""
        return self._lease_id.hex()

    @property
    def timestamp(self) -> Timestamp:
        """The timestamp to read at. Raises LeaseExpired if the lease has ended, Unsupported before its block."""
        if self._is_over or self._keeper.is_lost:
            raise LeaseExpired(self.lease_id)
        if self._timestamp is None:
            raise Unsupported("a lease outside of its block", "use it as a context manager")
        return self._timestamp

    async def __aenter__(self) -> Self:
        if self._timestamp is not None:
            raise Unsupported("entering a lease again", "acquire another")
        self._timestamp = await (self._found_or_acquired() if self._is_shared else self._acquired())
        self._keeper.begin()
        return self

    async def _acquired(self) -> Timestamp:
        stub = self._connection.stubs.collection
        reply = await self._connection.write(stub.AcquireLease, self._request, timeout_s=self._timeout_s)
        self._lease_id = reply.lease.lease_id
        return timestamp_of(reply.lease.timestamp)

    async def _found_or_acquired(self) -> Timestamp:
        """Return the timestamp of the lease, found or acquired. A lease that another holder keeps costs no write."""
        request = pb.KeepLeaseRequest(lease_id=self._request.lease_id)
        keep = self._connection.stubs.collection.KeepLease
        try:
            await self._connection.call(keep, request, timeout_s=self._timeout_s)
        except LeaseExpired:
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
            # If the cluster does not answer, the lease ends by itself: its keep-alives have stopped.
            with suppress(CortadoError):
                await self._connection.write(release, request, timeout_s=min(self._timeout_s, END_S))
        await self._keeper.ended()


@public_face
class AsyncCollection:
    """The leases that keep old versions from being collected, and the collection's state."""

    def __init__(self, connection: Connection, *, timeout_s: float) -> None:
        self._connection = connection
        self._timeout_s = timeout_s
        self._stub = connection.stubs.collection

    async def leases(self) -> list[HeldLease]:
        """Return all leases, the oldest timestamp first."""
        reply = await self._connection.call(self._stub.ListLeases, pb.ListLeasesRequest(), timeout_s=self._timeout_s)
        return [_held(each) for each in reply.leases]

    async def status(self) -> CollectionStatus:
        """Return how far back reads can go, for which lease, and how many items were removed."""
        found = await self._connection.call(self._stub.Status, pb.CollectionStatusRequest(), timeout_s=self._timeout_s)
        return CollectionStatus(
            timestamp_of(found.safepoint),
            found.retention_ms,
            found.lag_ms / 1000,
            _held(found.holder) if found.HasField("holder") else None,
            found.removed,
            found.pieces,
            found.pieces_pending,
            {each.table: timestamp_of(each.safepoint) for each in found.tables},
        )

    async def run(self) -> int:
        """Collect garbage at once; return how many stored items were removed.

        The timeout bounds each wait for a report of progress, not the whole run.
        """
        replies = self._connection.replies(self._stub.Run, pb.RunCollectionRequest(), timeout_s=self._timeout_s)
        removed = 0
        async with aclosing(replies):
            async for reply in replies:
                removed = reply.removed
        return removed

    async def move_consumer(
        self, consumer: str, at: At, *, label: str = "", ttl_s: float = CONSUMER_TTL_S_DEFAULT, owner: str = ""
    ) -> HeldLease:
        """Keep the versions above ``at``, a timestamp, for a consumer that comes and goes, and no longer those before.

        A consumer of batches moves its place behind each batch. The place is a lease without keep-alives: it ends if
        it was not moved for ``ttl_s``, 1 second to 30 days; by :meth:`end_lease`; and while the disk is nearly full.
        Until then only the first ``owner``, such as a query, moves it.
        Raises InvalidArgument if it is another owner's, SnapshotTooOld if versions that it needs were collected,
        TimestampInFuture, ResourceExhausted.
        """
        request = pb.AcquireLeaseRequest(
            lease_id=blake2b(f"consumer {text(consumer, 'consumer')}".encode(), digest_size=ID_BYTES).digest(),
            ttl_ms=round(_checked_ttl(ttl_s, CONSUMER_TTL_S_MAX) * 1000),
            label=check_label(label),
            consumer=consumer,
            owner=text(owner, "owner"),
        )
        if not 0 < len(consumer) <= CONSUMER_CHARS_MAX:
            problem = f"must have 1 to {CONSUMER_CHARS_MAX} characters"
            raise InvalidArgument("consumer", problem, f"{len(consumer)} characters")
        if len(owner) > OWNER_CHARS_MAX:
            raise InvalidArgument(
                "owner", f"must have at most {OWNER_CHARS_MAX} characters", f"{len(owner)} characters"
            )
        _set_at(request, at)
        reply = await self._connection.write(self._stub.AcquireLease, request, timeout_s=self._timeout_s)
        return _held(reply.lease)

    async def end_lease(self, lease_id: str) -> bool:
        """End a lease: the versions that it kept may be collected then. Return False if it does not exist. With roles
        on, another principal's lease counts as missing, except for operators."""
        encoded = hexadecimal(lease_id, "lease_id", ID_BYTES)
        request = pb.ReleaseLeaseRequest(lease_id=encoded)
        ended: bool = (await self._connection.write(self._stub.ReleaseLease, request, timeout_s=self._timeout_s)).ended
        return ended


def _held(lease: pb.Lease) -> HeldLease:
    return HeldLease(
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
    """Return ``ttl_s`` if a lease may have it. Raises InvalidArgument."""
    return _checked_ttl(ttl_s, TTL_S_MAX)


def _checked_ttl(ttl_s: float, most_s: float) -> float:
    is_number = isinstance(ttl_s, int | float) and not isinstance(ttl_s, bool)
    if not is_number or not TTL_S_MIN <= ttl_s <= most_s:
        raise InvalidArgument("ttl_s", f"must be between {TTL_S_MIN:.0f} and {most_s:.0f} seconds", shown(ttl_s))
    return float(ttl_s)


def check_label(label: str) -> str:
    """Return ``label`` if a lease may have it. Raises InvalidArgument."""
    if len(text(label, "label")) > LABEL_CHARS_MAX:
        raise InvalidArgument("label", f"must have at most {LABEL_CHARS_MAX} characters", f"{len(label)} characters")
    return label


def _id_of(request: pb.AcquireLeaseRequest) -> bytes:
    """Return the id of a shared lease: equal requests have equal ids."""
    return blake2b(request.SerializeToString(deterministic=True), digest_size=ID_BYTES).digest()


def _set_at(request: pb.AcquireLeaseRequest, at: At) -> None:
    wanted = at_to_proto(at)
    if wanted is None:
        return
    if wanted.HasField("timestamp"):
        request.timestamp.CopyFrom(wanted.timestamp)
    elif wanted.HasField("wall_ms"):
        request.wall_ms = wanted.wall_ms
    else:
        raise InvalidArgument("at", "must be a timestamp or a wall time: a lease is at one of them", shown(at))
