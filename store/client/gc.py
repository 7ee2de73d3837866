"""Garbage collection: its state, the holds that it waits for, and a run at once."""

from __future__ import annotations

from contextlib import aclosing
from dataclasses import dataclass
from hashlib import blake2b

from cortado.errors import InvalidArgument
from cortado.proto.v1 import collection_pb2 as pb
from cortado.store.client.arguments import hexadecimal, text
from cortado.store.client.connection import Connection
from cortado.store.client.holds import (
    CONSUMER_CHARS_MAX,
    CONSUMER_TTL_S_DEFAULT,
    CONSUMER_TTL_S_MAX,
    ID_BYTES,
    OWNER_CHARS_MAX,
    HoldInfo,
    check_label,
    checked_ttl,
    hold_from_proto,
    set_at,
)
from cortado.store.client.public_faces import public_face
from cortado.store.client.values import At, timestamp_of
from cortado.store.clock.timestamp import Timestamp


@dataclass(frozen=True, slots=True)
class GcStatus:
    """How far back reads can go: to ``safepoint``, which is ``lag_s`` ago. ``holder`` is the hold that it waits for,
    None if it follows from ``retention_ms`` alone (-1: for ever). ``tables`` have safepoints of their own.

    ``removed`` counts the stored items that the leader's node removed since its start. The node divides its store
    into ``pieces``; ``pending`` of them wait to be looked at.
    """

    safepoint: Timestamp
    retention_ms: int
    lag_s: float
    holder: HoldInfo | None
    removed: int
    pieces: int
    pending: int
    tables: dict[str, Timestamp]


@public_face
class AsyncGc:
    """The holds that keep old versions from being collected, and the collection's state."""

    def __init__(self, connection: Connection, *, timeout_s: float) -> None:
        self._connection = connection
        self._timeout_s = timeout_s
        self._stub = connection.stubs.collection

    async def holds(self) -> list[HoldInfo]:
        """Return all holds, the oldest timestamp first."""
        reply = await self._connection.call(self._stub.ListLeases, pb.ListLeasesRequest(), timeout_s=self._timeout_s)
        return [hold_from_proto(each) for each in reply.leases]

    async def status(self) -> GcStatus:
        """Return how far back reads can go, for which hold, and how many items were removed."""
        found = await self._connection.call(self._stub.Status, pb.CollectionStatusRequest(), timeout_s=self._timeout_s)
        return GcStatus(
            timestamp_of(found.safepoint),
            found.retention_ms,
            found.lag_ms / 1000,
            hold_from_proto(found.holder) if found.HasField("holder") else None,
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

    async def advance_consumer(
        self, consumer: str, at: At, *, label: str = "", ttl_s: float = CONSUMER_TTL_S_DEFAULT, owner: str = ""
    ) -> HoldInfo:
        """Keep the versions above ``at``, a timestamp, for a consumer that comes and goes, and no longer those before.

        A consumer of batches moves its place behind each batch. The place is a hold without keep-alives: it ends if
        it was not moved for ``ttl_s``, 1 second to 30 days; by :meth:`end_hold`; and while the disk is nearly full.
        Until then only the first ``owner``, such as a query, moves it.
        Raises InvalidArgument if it is another owner's, SnapshotTooOld if versions that it needs were collected,
        TimestampInFuture, ResourceExhausted.
        """
        request = pb.AcquireLeaseRequest(
            lease_id=blake2b(f"consumer {text(consumer, 'consumer')}".encode(), digest_size=ID_BYTES).digest(),
            ttl_ms=round(checked_ttl(ttl_s, CONSUMER_TTL_S_MAX) * 1000),
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
        set_at(request, at)
        reply = await self._connection.write(self._stub.AcquireLease, request, timeout_s=self._timeout_s)
        return hold_from_proto(reply.lease)

    async def end_hold(self, hold_id: str) -> bool:
        """End a hold: the versions that it kept may be collected then. Return False if it does not exist. With roles
        on, another principal's hold counts as missing, except for operators."""
        encoded = hexadecimal(hold_id, "hold_id", ID_BYTES)
        request = pb.ReleaseLeaseRequest(lease_id=encoded)
        ended: bool = (await self._connection.write(self._stub.ReleaseLease, request, timeout_s=self._timeout_s)).ended
        return ended
