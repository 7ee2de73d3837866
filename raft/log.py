"""The seam between a node and its replicated log.

A :class:`ReplicatedLog` is a core without I/O, in the manner of etcd's ``raft.Node``: the node gives it proposals,
messages and time, and takes what is to be done as values. The order is what matters, and the node's driver keeps it::

    step(sender, body) ...                         what arrived
    append(payload) ...                            at the leader: what was proposed
    tick(now_ms)
    outbox()   ->  messages that may leave at once
    ready()    ->  one synced transaction: writes + committed entries, applied
    synced(ready)
    outbox()   ->  messages that waited for it
    durable_commit_index   callers of entries up to here may be answered

Nothing that depends on a Ready's ``writes`` leaves the node before they are durable: ``outbox`` holds it back. At most
one Ready is outstanding. A log knows nothing of tables, of gRPC, or of what a payload means.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

from cortado.raft.configuration import Configuration, Member


class Payload(Protocol):
    """What an entry carries. Encoded only when it must be stored or sent; a group of one never needs to."""

    def encode(self) -> bytes: ...


@dataclass(frozen=True, slots=True)
class Encoded:
    """A payload that came from the disk or from a peer."""

    body: bytes

    def encode(self) -> bytes:
        return self.body


@dataclass(frozen=True, slots=True)
class Nothing:
    """The first entry of a leader's term. Applying it moves the place in the log, and that is all."""

    def encode(self) -> bytes:
        return b""


@dataclass(frozen=True, slots=True)
class Entry:
    """One place in the log.

    ``payload`` is the proposer's own object on the node that proposed it in this life, :class:`Encoded` elsewhere, and
    :class:`Nothing` or a :class:`~cortado.raft.configuration.Configuration` for the log's own entries.
    """

    index: int
    term: int
    payload: Payload


@dataclass(frozen=True, slots=True)
class Doubt:
    """An entry that a follower did not keep, since it was worked out from what is not so: ``stored_key`` is a key with
    its version as the engine stores it, which the leader must have lost. Empty where it is the follower that lacks
    something, or cannot tell: then it mends itself, and is sent the entry again."""

    index: int
    stored_key: bytes = b""


Examine: TypeAlias = "Callable[[Sequence[Entry], Entry], Doubt | None]"
"""Whether an entry may be kept, behind those before it that are not applied."""


@dataclass(frozen=True, slots=True)
class Message:
    """Opaque bytes for the peer with the node id ``to``."""

    to: str
    body: bytes


@dataclass(frozen=True, slots=True)
class Ready:
    """Work for one round: ``writes`` (key, value; None deletes; in this order) into the log's space, and ``committed``
    to be applied, go into one synced transaction."""

    writes: Sequence[tuple[bytes, bytes | None]] = field(default=())
    committed: Sequence[Entry] = field(default=())

    def __bool__(self) -> bool:
        return bool(self.writes or self.committed)


@dataclass(frozen=True, slots=True)
class SnapshotMeta:
    """A state to be brought to a peer: everything applied up to ``index``, whose entry is of ``term``.

    ``snapshot_id`` names the spool of one sender, so that an interrupted transfer resumes; ``size_bytes`` is the
    spool's length.
    """

    snapshot_id: str
    index: int
    term: int
    configuration: Configuration
    size_bytes: int


@dataclass(frozen=True, slots=True)
class SnapshotOffer:
    """A leader's word, on a replica that fell behind, that ``meta`` can be fetched from ``sender``."""

    sender: str
    meta: SnapshotMeta


@dataclass(frozen=True, slots=True)
class PeerProgress:
    """What a leader knows of a member: for status pages, and for decisions about promotion and hand-over."""

    member: Member
    is_voter: bool
    match_index: int
    last_heard_ms: float
    """Milliseconds since its last answer."""
    needs_snapshot: bool


class ReplicatedLog(Protocol):
    """A group's log. All calls come from one thread, the node's loop. Times are monotonic milliseconds."""

    # --- what it knows ---

    @property
    def term(self) -> int: ...

    @property
    def is_leader(self) -> bool:
        """True where this node leads, has applied an entry of its own term, and no hand-over is under way: only then
        may commands be evaluated and appended."""

    @property
    def leader(self) -> str:
        """The leader's node id, possibly our own; empty while none is known."""

    @property
    def last(self) -> tuple[int, int]:
        """Index and term of the last entry, applied or not."""

    @property
    def durable_commit_index(self) -> int:
        """Every entry up to this index is committed and durable on a majority: it will never be taken back."""

    @property
    def configuration(self) -> Configuration:
        """The newest one in the log, committed or not."""

    def configuration_at(self, index: int) -> Configuration:
        """The one in force at entry ``index``, which the log holds or begins after."""

    @property
    def progress(self) -> Sequence[PeerProgress]:
        """At the leader, one for each other member; empty elsewhere."""

    # --- input ---

    def append(self, payload: Payload, *, is_examined: bool = False) -> Entry:
        """Append at the leader; the entry follows :attr:`last` directly. Followers ask ``examine`` whether they may
        keep one that ``is_examined``. Raises NotLeader."""

    examine: Examine | None

    def take_doubts(self) -> Sequence[Doubt]:
        """What followers doubted of this leader's entries since the last call."""

    def disown(self, index: int) -> bool:
        """Give leadership up, and the entries from ``index`` on; False where that was committed, or may have been by
        the leader of an earlier term."""

    def step(self, sender: str, body: bytes) -> None:
        """Take a message from a peer. Malformed or stale ones change nothing."""

    def tick(self, now_ms: float) -> None:
        """Let time pass, and do what is due."""

    @property
    def next_tick_ms(self) -> float:
        """When the next :meth:`tick` is due, at the latest."""

    # --- output ---

    def outbox(self) -> Sequence[Message]:
        """Messages that may leave now. Each is handed over once."""

    @property
    def has_writes(self) -> bool:
        """Whether the log itself has something to be made durable: entries, a term, a vote. False where the next
        Ready would only apply what is committed. Not to be asked while a Ready is outstanding."""

    def ready(self) -> Ready:
        """What is to be made durable and applied now; falsy where there is nothing. Each entry is handed over once."""

    def synced(self, ready: Ready) -> None:
        """The node's word that ``ready`` is durable and its committed entries are applied."""

    def withdraw(self, ready: Ready) -> bool:
        """The node could not store ``ready`` (there is no room). True: nobody else can hold its entries, so they and
        all after them are taken back, and :attr:`last` is again the last durable entry. False: they stand; the node
        must try the same Ready again, whole, or stop."""

    # --- linearizable reads ---

    def read_round(self) -> int:
        """Join a round of heartbeats that has not begun yet, and return its number. A read that was asked for before
        may be answered from the state at ``durable_commit_index`` (or later) as soon as :attr:`confirmed_round` has
        reached it *in the same term*. Where the lease holds, the number is confirmed already. Raises NotLeader."""

    @property
    def confirmed_round(self) -> int:
        """A majority has answered the leader in this round: nobody else led when it began."""

    @property
    def fresh_as_of_ms(self) -> float | None:
        """What is applied here contains everything that was committed at this local time, whatever the network did (a
        time of ours that the leader echoed). None where nothing is known. At a leader: of its last confirmed round."""

    # --- membership, at the leader: one change at a time; each raises NotLeader, InvalidArgument or Unavailable ---

    def add_learner(self, member: Member) -> Entry | None:
        """Announce a member that has no data directory yet. None where it is announced already, with this address."""

    def bind(self, node_id: str, storage_id: str, address: str) -> Entry | None:
        """A member's data directory presents itself: remember ``storage_id`` where none is known, and a new address.
        None where both are known already. Raises InvalidArgument where another data directory is known by this id."""

    def promote(self, node_id: str) -> Entry:
        """Make a learner that has caught up a voter."""

    def remove(self, node_id: str) -> Entry:
        """Remove a member other than ourselves."""

    # --- leadership ---

    def transfer(self, to: str = "") -> str:
        """Begin to hand leadership to the voter ``to`` (empty: the one that is furthest), and return its id. Nothing
        can be appended until it has happened or an election timeout has passed. Raises as the membership calls."""

    @property
    def may_lead(self) -> bool: ...

    @may_lead.setter
    def may_lead(self, value: bool) -> None:
        """False keeps this node from campaigning (its clock is wrong, it is installing a snapshot, it stops), and a
        leader from staying one where another voter can take over."""

    # --- compaction and snapshots ---

    def compact(self, index: int) -> None:
        """Entries up to ``index``, which are applied here, may go, but for those kept for followers that are a little
        behind. The deletes come with a later Ready."""

    @property
    def snapshot_needs(self) -> Sequence[str]:
        """At the leader: members whose next entry is gone."""

    def offer_snapshot(self, to: str, meta: SnapshotMeta) -> None:
        """Tell a member, again and again until it needs it no longer, where to fetch a state."""

    @property
    def snapshot_offer(self) -> SnapshotOffer | None:
        """On a replica that fell behind: what the leader of its term offers now."""

    def install(self, meta: SnapshotMeta) -> Sequence[tuple[bytes, bytes | None]]:
        """The writes that reset the log to ``meta``, for the last transaction of an installation. Nothing changes in
        memory before :meth:`installed`. No Ready may be outstanding."""

    def installed(self, meta: SnapshotMeta) -> None:
        """That transaction is durable: the log begins after ``meta.index``, and goes on from there."""
