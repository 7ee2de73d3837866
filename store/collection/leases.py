"""Leases: promises that reads at a timestamp, and at all above it, find their versions for as long as the lease lasts.

::

    ............. safepoint ............ lease ............ newest ......
      collected      |  may be collected  |  kept: the safepoint does not pass the oldest lease

A lease is a versioned key, ``m "lease" id``, so it is replicated, and survives leaders, as all keys do. The log has its
acquisition and its end. Its holder's signs of life go to the leader alone, which ends a lease that was not renewed for
longer than its ``ttl_ms`` (:mod:`cortado.store.replica.collection.leases`).

All leases are listed under one more key, ``m "leases"``. Those that ended lately are keys still, as deletes, and may be
a hundred thousand: with the list no reader passes them.

- *A lease is never below a safepoint*: :func:`acquire` is evaluated at append, against the newest ones, in flight or
  applied. And *no safepoint passes a lease*: a rise of one is evaluated at append, too, and asks the same reader for
  the :func:`oldest_lease`. The log orders the two, so one of them sees the other.
- *The safepoint of every table counts*, and the cluster's: a lease's promise covers all that can be read. So no lease
  reaches the past that a table with a longer retention keeps.
- *Acquiring is idempotent*: its holder makes up the id. A repetition has the first one's answer.
- A *consumer's* lease is the place of a consumer that comes and goes: versions above it are kept while it is away. It
  is moved by an entry each time, so the log has its last time, and no holder has to keep it alive. If it has an
  *owner*, that owner alone moves it: two owners that moved one place would each let go of versions that the other has
  not read yet.
- Each principal has ids of its own (:mod:`cortado.store.auth.owners`), and finds no lease of another one. Operators end
  any lease by the id under which it is stored. Each principal has a share of the leases.
- Without a timestamp a lease is at that of its own entry: nothing that was acknowledged before is above it, and no
  safepoint can have come to lie above it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Final

from google.protobuf.message import DecodeError

from cortado.errors import (
    AlreadyExists,
    DataLoss,
    InvalidArgument,
    SnapshotTooOld,
    TimestampInFuture,
)
from cortado.proto.internal import collection_pb2 as pb
from cortado.store.auth.owners import ANYBODY, TAG_BYTES, Asker, check_share, own_id, tag_of
from cortado.store.clock.timestamp import TIMESTAMP_BYTES, Timestamp
from cortado.store.keys.keyspace import meta_key
from cortado.store.keys.types import LogicalKey
from cortado.store.mvcc.evaluation import Evaluate, Evaluation
from cortado.store.mvcc.mutations import Mutations
from cortado.store.mvcc.reader import Reader, Version, read_list
from cortado.store.mvcc.safepoints import safepoints_of

LEASE_ID_BYTES: Final = 16
TTL_MS_DEFAULT: Final = 60_000
TTL_MS_MIN: Final = 1_000
TTL_MS_MAX: Final = 600_000
AGE_MS_MAX: Final = 24 * 3_600_000
"""Even while its holder is alive: a lease that no holder ends would fill the disk in the end."""
CONSUMER_TTL_MS_DEFAULT: Final = 7 * 86_400_000
CONSUMER_TTL_MS_MAX: Final = 30 * 86_400_000
CONSUMER_CHARS_MAX: Final = 100
OWNER_CHARS_MAX: Final = 100
LABEL_CHARS_MAX: Final = 200
LEASES_MAX: Final = 1_000


@dataclass(frozen=True, slots=True)
class Lease:
    """It is stored under ``lease_id``, and belongs to ``principal``, which is empty if there was none.

    ``acquired_ts`` is its own entry's; versions from ``ts`` on are kept, which is at or below that. ``consumer`` is
    empty, or names the consumer of this place: then ``acquired_ts`` is the time of its last move, and ``owner`` alone
    moves it; empty: any caller may."""

    lease_id: bytes
    ts: Timestamp
    ttl_ms: int
    label: str
    acquired_ts: Timestamp
    consumer: str = ""
    owner: str = ""
    principal: str = ""


def check_lease_id(lease_id: bytes) -> None:
    """Raises InvalidArgument."""
    if len(lease_id) != LEASE_ID_BYTES:
        raise InvalidArgument("lease_id", f"must have {LEASE_ID_BYTES} bytes", f"{len(lease_id)} bytes")


def check_lease(ttl_ms: int, label: str) -> None:
    """Raise InvalidArgument if a lease's fields are out of bounds."""
    if not TTL_MS_MIN <= ttl_ms <= TTL_MS_MAX:
        raise InvalidArgument("ttl_ms", f"must be between {TTL_MS_MIN} and {TTL_MS_MAX}", str(ttl_ms))
    if len(label) > LABEL_CHARS_MAX:
        raise InvalidArgument("label", f"must have at most {LABEL_CHARS_MAX} characters", f"{len(label)} characters")


def check_consumer(ttl_ms: int, label: str, consumer: str, owner: str) -> None:
    """Raise InvalidArgument if the fields of a consumer's lease are out of bounds."""
    if not TTL_MS_MIN <= ttl_ms <= CONSUMER_TTL_MS_MAX:
        raise InvalidArgument("ttl_ms", f"must be between {TTL_MS_MIN} and {CONSUMER_TTL_MS_MAX}", str(ttl_ms))
    if not 0 < len(consumer) <= CONSUMER_CHARS_MAX:
        problem = f"must have 1 to {CONSUMER_CHARS_MAX} characters"
        raise InvalidArgument("consumer", problem, f"{len(consumer)} characters")
    if len(owner) > OWNER_CHARS_MAX:
        raise InvalidArgument("owner", f"must have at most {OWNER_CHARS_MAX} characters", f"{len(owner)} characters")
    check_lease(TTL_MS_MIN, label)


# --- stored forms ----------------------------------------------------------------------------------------------


def lease_key(lease_id: bytes) -> LogicalKey:
    """Return the key of the lease with that id."""
    return meta_key("lease", lease_id.hex())


LEASES_KEY: Final = meta_key("leases")
_ID: Final = slice(TIMESTAMP_BYTES, TIMESTAMP_BYTES + LEASE_ID_BYTES)
_LISTED_BYTES: Final = TIMESTAMP_BYTES + LEASE_ID_BYTES + TAG_BYTES


def _listed(reader: Reader) -> Sequence[bytes]:
    """Timestamp, id and tag of the principal of each that there is, the oldest timestamp first. Raises DataLoss."""
    return read_list(reader, LEASES_KEY, _LISTED_BYTES, "leases")


def _id_of(listed: bytes) -> bytes:
    return listed[_ID]


def encode_lease(lease: Lease) -> bytes:
    """Encode a lease's value; the rest is in its key and in its version."""
    stored = pb.StoredLease(
        timestamp=bytes(lease.ts),
        ttl_ms=lease.ttl_ms,
        label=lease.label,
        consumer=lease.consumer,
        owner=lease.owner,
        principal=lease.principal,
    )
    return stored.SerializeToString(deterministic=True)


def decode_lease(lease_id: bytes, version: Version) -> Lease:
    """Raises DataLoss."""
    try:
        stored = pb.StoredLease.FromString(version.payload)
        ts = Timestamp.from_bytes(stored.timestamp)
        return Lease(
            lease_id, ts, stored.ttl_ms, stored.label, version.ts, stored.consumer, stored.owner, stored.principal
        )
    except (DecodeError, InvalidArgument) as malformed:
        raise DataLoss("lease", f"the value of {lease_id.hex()} is not a lease") from malformed


def leases_of(reader: Reader) -> list[Lease]:
    """Return all that ``reader`` sees, the oldest timestamp first. Raises DataLoss."""
    ids = list(map(_id_of, _listed(reader)))
    found = zip(ids, reader.get_many([lease_key(each) for each in ids]), strict=True)
    return [_there(lease_id, version) for lease_id, version in found]


def oldest_lease(reader: Reader) -> Lease | None:
    """Return the one with the oldest timestamp. Raises DataLoss."""
    listed = _listed(reader)
    if not listed:
        return None
    lease_id = _id_of(listed[0])
    return _there(lease_id, reader.get(lease_key(lease_id)))


def _there(lease_id: bytes, version: Version | None) -> Lease:
    if version is None:
        raise DataLoss("lease", f"{lease_id.hex()} is listed, and not there")
    return decode_lease(lease_id, version)


def find_lease(reader: Reader, lease_id: bytes) -> Lease | None:
    """Return the lease that is stored under that id, if there is one."""
    version = reader.get(lease_key(lease_id))
    return None if version is None else decode_lease(lease_id, version)


def lease_of(reader: Reader, lease_id: bytes, asker: Asker) -> Lease | None:
    """Return the caller's lease of that id: its own one, or the one that is stored under ``lease_id``, if the caller
    may use that."""
    own = find_lease(reader, own_id(asker.principal, lease_id))
    stored = find_lease(reader, lease_id) if own is None else None
    return own if stored is None or not asker.owns(stored.principal) else stored


# --- changes ---------------------------------------------------------------------------------------------------


def acquire(
    lease_id: bytes, ts: Timestamp | None, ttl_ms: int, label: str, asked_by: Callable[[], Asker] = lambda: ANYBODY
) -> Evaluate:
    """Acquire a lease at ``ts``, or at the timestamp of its own entry; replies the Lease. Raises InvalidArgument.

    ``asked_by`` tells the caller at the time of evaluation. Refuses with SnapshotTooOld, TimestampInFuture,
    AlreadyExists (another lease of the caller has that id), ResourceExhausted (there are too many).
    """
    check_lease_id(lease_id)
    check_lease(ttl_ms, label)

    def evaluate(reader: Reader, commit_ts: Timestamp) -> Evaluation:
        asker = asked_by()
        own = own_id(asker.principal, lease_id)
        known = find_lease(reader, own)
        if known is not None:
            if (known.ttl_ms, known.label) != (ttl_ms, label) or ts not in (None, known.ts):
                raise AlreadyExists("lease", lease_id.hex())
            return Evaluation(Mutations(), known)
        at = commit_ts if ts is None else ts
        lease = Lease(own, at, ttl_ms, label, commit_ts, principal=asker.principal)
        return Evaluation(_written(reader, lease, None, asker), lease)

    return evaluate


def move(
    lease_id: bytes,
    ts: Timestamp | None,
    ttl_ms: int,
    label: str,
    consumer: str,
    owner: str = "",
    asked_by: Callable[[], Asker] = lambda: ANYBODY,
) -> Evaluate:
    """Move the consumer's lease to ``ts``, from any place, and create it if there was none; replies the Lease.

    A consumer is its principal's. A place that was moved without a principal becomes the caller's if its ``owner``
    moves it. Otherwise it stays beside the caller's own, since any caller could name the same consumer. Raises and
    refuses as :func:`acquire` does; refuses with InvalidArgument if it has another ``owner``.
    """
    check_lease_id(lease_id)
    check_consumer(ttl_ms, label, consumer, owner)

    def evaluate(reader: Reader, commit_ts: Timestamp) -> Evaluation:
        asker = asked_by()
        stored_id = own_id(asker.principal, lease_id)
        known = lease_of(reader, lease_id, asker)
        if known is not None and known.lease_id != stored_id and not (owner and owner == known.owner):
            known = None
        if known is not None and known.consumer != consumer:
            raise AlreadyExists("lease", lease_id.hex())
        if known is not None and known.owner != owner:
            own, other = (each or "no owner" for each in (owner, known.owner))
            problem = f"is the place of {other}, which moved it at {known.acquired_ts}, and not of {own}"
            end = f"use a name for each, or end the hold {lease_id.hex()}"
            raise InvalidArgument("consumer", f"{problem}: {end}", consumer)
        at = commit_ts if ts is None else ts
        lease = Lease(stored_id, at, ttl_ms, label, commit_ts, consumer, owner, asker.principal)
        return Evaluation(_written(reader, lease, known, asker), lease)

    return evaluate


def _written(reader: Reader, lease: Lease, known: Lease | None, asker: Asker) -> Mutations:
    """``lease`` in the place of the one that is ``known``."""
    if lease.ts > lease.acquired_ts:
        problem = "is above everything that is committed"
        raise TimestampInFuture("at", problem, str(lease.ts), str(lease.acquired_ts))
    safepoint = safepoints_of(reader).highest
    # Without a timestamp it is at that of its own entry, which no safepoint has passed.
    if lease.ts < safepoint:
        raise SnapshotTooOld(str(lease.ts), str(safepoint))
    listed = [each for each in _listed(reader) if known is None or _id_of(each) != known.lease_id]
    tag = tag_of(lease.principal)
    if known is None:
        own = sum(each.endswith(tag) for each in listed)
        check_share(asker, "holds", own=own, total=len(listed), limit=LEASES_MAX)
    mutations = Mutations()
    if known is not None and known.lease_id != lease.lease_id:
        mutations.delete(lease_key(known.lease_id))
    mutations.put(lease_key(lease.lease_id), encode_lease(lease))
    mutations.put(LEASES_KEY, b"".join(sorted([*listed, bytes(lease.ts) + lease.lease_id + tag])))
    return mutations


def end(*lease_ids: bytes, asked_by: Callable[[], Asker] = lambda: ANYBODY) -> Evaluate:
    """End those leases that are the caller's to end; replies the ids of those that there were. Raises
    InvalidArgument."""
    for lease_id in lease_ids:
        check_lease_id(lease_id)

    def evaluate(reader: Reader, _commit_ts: Timestamp) -> Evaluation:
        mutations, asker = Mutations(), asked_by()
        ending = [_to_end(reader, each, asker) for each in lease_ids]
        return Evaluation(mutations, end_with(mutations, reader, [each for each in ending if each is not None]))

    return evaluate


def _to_end(reader: Reader, lease_id: bytes, asker: Asker) -> bytes | None:
    """Return the id under which the caller's ``lease_id`` is stored, if the caller may end that lease."""
    found = lease_of(reader, lease_id, asker) or find_lease(reader, lease_id)
    may_end = found is not None and (asker.is_open or asker.operates or found.principal == asker.principal)
    return found.lease_id if found is not None and may_end else None


def end_as_seen(*leases: Lease) -> Evaluate:
    """End those of the leases that are still as they were seen: a consumer's may have been moved since; replies the ids
    of those that ended."""

    def evaluate(reader: Reader, _commit_ts: Timestamp) -> Evaluation:
        mutations = Mutations()
        same = [each.lease_id for each in leases if find_lease(reader, each.lease_id) == each]
        return Evaluation(mutations, end_with(mutations, reader, same))

    return evaluate


def end_with(mutations: Mutations, reader: Reader, lease_ids: Collection[bytes]) -> tuple[bytes, ...]:
    """End those leases by ``mutations``, which end or begin no others; returns the ids of those that there were."""
    listed = _listed(reader)
    ended = {_id_of(each) for each in listed}.intersection(lease_ids)
    if ended:
        for lease_id in sorted(ended):
            mutations.delete(lease_key(lease_id))
        mutations.put(LEASES_KEY, b"".join([each for each in listed if _id_of(each) not in ended]))
    return tuple(each for each in dict.fromkeys(lease_ids) if each in ended)
