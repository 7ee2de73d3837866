"""A restore: an empty cluster takes the versions of a backup at their own timestamps, and serves no caller meanwhile.

::

    Begin ──► m "restore" {id, timestamp, parts}         nothing else is read or written from here on
    Put   ──► versions as they were, and which parts are all there          any number, in any order, any of them twice
    End   ──► m "restored" in its place, the safepoints raised              the cluster serves

The state is a versioned key like any other: every member has it, through changes of leaders, restarts and snapshots.

- *Half a backup is never seen.* The entry that begins or ends a restore closes its batch, and nothing is evaluated
  before it is applied. From then on the pipeline refuses every write that is not the restore's own, and all reads.
- *A version that is put late is refused.* Putting names the restore, and is evaluated at append: after its end, or in
  another restore, it is refused.
- *Idempotent.* A restored version has its own timestamp, so the same version lies under the same stored key.
  Collection is a write, too, and stands still meanwhile: a delete that was put and collected would not hide the older
  version that is put again after it.
- *Timestamps above all.* A restore begins only if the cluster's clock is above the backup's timestamp. So every later
  commit sorts above the restored versions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from google.protobuf.message import DecodeError

from cortado.errors import DataLoss, InvalidArgument, NotFound, Restoring, Unavailable
from cortado.proto.internal import backup_pb2 as pb
from cortado.store.clock.timestamp import ZERO, Timestamp
from cortado.store.keys.dump import dump
from cortado.store.keys.keyspace import meta_key
from cortado.store.keys.types import LogicalKey
from cortado.store.mvcc.archive import RESTORE_NAME, RESTORED_NAME, archived_ranges
from cortado.store.mvcc.evaluation import Cleared, Evaluate, Evaluation, Removal
from cortado.store.mvcc.mutations import Mutations
from cortado.store.mvcc.reader import Reader
from cortado.store.mvcc.safepoints import SAFEPOINTS_KEY, Safepoints, safepoints_of
from cortado.store.mvcc.versions import Item, newest_in

RESTORE_KEY: Final = meta_key(RESTORE_NAME)
RESTORED_KEY: Final = meta_key(RESTORED_NAME)
PARTS_MAX: Final = 100_000
CHANGED_KEYS_MAX: Final = 3
"""A write that begins, changes or ends a restore has no more keys."""
CLEARED_ITEMS: Final = 4_000


@dataclass(frozen=True, slots=True)
class RestoreState:
    """A restore under way. ``done`` has a bit for each part that is all put, the first part in the lowest bit."""

    restore_id: str
    timestamp: Timestamp = ZERO
    readable_from: Timestamp = ZERO
    parts: int = 0
    done: int = 0
    is_abandoned: bool = False

    @property
    def parts_done(self) -> list[int]:
        """Return the parts that are all put, from 0."""
        return [part for part in range(self.done.bit_length()) if self.done >> part & 1]

    @property
    def progress(self) -> str:
        """Return the progress as text."""
        if self is UNREADABLE:
            return _UNREADABLE_STATE
        given_up = ", which is being abandoned" if self.is_abandoned else ""
        return f"the backup of {self.timestamp}, {len(self.parts_done)} of {self.parts} parts{given_up}"

    def encode(self) -> bytes:
        return pb.StoredRestore(
            restore_id=self.restore_id,
            timestamp=bytes(self.timestamp),
            readable_from=bytes(self.readable_from),
            parts=self.parts,
            parts_done=self.done.to_bytes((self.done.bit_length() + 7) // 8, "little"),
            is_abandoned=self.is_abandoned,
        ).SerializeToString(deterministic=True)

    @classmethod
    def decode(cls, encoded: bytes) -> RestoreState:
        """Decode a state. Raises DataLoss."""
        try:
            stored = pb.StoredRestore.FromString(encoded)
            return cls(
                stored.restore_id,
                Timestamp.from_bytes(stored.timestamp),
                Timestamp.from_bytes(stored.readable_from),
                stored.parts,
                int.from_bytes(stored.parts_done, "little"),
                stored.is_abandoned,
            )
        except (DecodeError, InvalidArgument) as malformed:
            raise DataLoss("the state of a restore", str(malformed)) from malformed

    def refusal(self) -> Restoring | Unavailable:
        """Return the refusal of all other callers."""
        if self is UNREADABLE:
            return Unavailable(_UNREADABLE_STATE, retry_delay_ms=_UNREADABLE_RETRY_MS)
        return Restoring(self.restore_id, str(self.timestamp))


UNREADABLE: Final = RestoreState("?")
"""Stands for a damaged state: no caller is served until it is repaired. It is no restore, and never said to be one."""
_UNREADABLE_STATE: Final = "damaged records do not say whether a restore is under way; they are to be repaired"
_UNREADABLE_RETRY_MS: Final = 1_000


def restore_of(reader: Reader) -> RestoreState | None:
    """Return the restore under way, or None. Raises DataLoss."""
    version = reader.get(RESTORE_KEY)
    return None if version is None else RestoreState.decode(version.payload)


def ended_restore(reader: Reader) -> str:
    """Return the id of the restore that has ended here; empty if there was none."""
    version = reader.get(RESTORED_KEY)
    return "" if version is None else RestoreState.decode(version.payload).restore_id


def restored_at(reader: Reader) -> Timestamp:
    """Return when the restore that has ended here did; ZERO if there was none. Its versions are older, and were not
    there before: so timestamps cannot tell the changes since an earlier time than this."""
    version = reader.get(RESTORED_KEY)
    return ZERO if version is None else version.ts


def begun_restore(asked: RestoreState, empty_at: Timestamp) -> Evaluate:
    """Begin a restore, or go on with it. The cluster was empty at ``empty_at``. Replies with the state."""

    def evaluate(reader: Reader, commit_ts: Timestamp) -> Evaluation:
        standing = restore_of(reader)
        if standing is not None:
            same = replace(standing, done=0)
            if same != asked:
                raise standing.refusal()
            return Evaluation(Mutations(), standing)
        if commit_ts <= asked.timestamp:
            problem = f"is above the cluster's clock, {commit_ts}: begin an epoch first"
            raise InvalidArgument("timestamp", problem, str(asked.timestamp))
        changed = reader.changed_since((), archived_ranges(), empty_at)
        if changed is not None:
            raise not_empty(changed.key)
        return _with_state(asked)

    return evaluate


def put_back(restore_id: str, items: Sequence[Item], highest: Timestamp, part_done: int | None) -> Evaluate:
    """Put versions of the restore under way, as they are stored, none above ``highest``. Replies with the state."""

    def evaluate(reader: Reader, _commit_ts: Timestamp) -> Evaluation:
        state = _under_way(reader, restore_id)
        if state.is_abandoned:
            raise InvalidArgument("restore_id", "is being abandoned", restore_id)
        if highest > state.timestamp:
            raise InvalidArgument("run", f"must have versions up to {state.timestamp} alone", str(highest))
        if part_done is None or state.done >> part_done & 1:
            return Evaluation(Mutations(), state, restored=items)
        if part_done >= state.parts:
            raise InvalidArgument("part_done", f"must be below {state.parts}", str(part_done))
        done = _with_state(replace(state, done=state.done | 1 << part_done))
        return replace(done, restored=items)

    return evaluate


def ended(restore_id: str) -> Evaluate:
    """Serve the restored data. Idempotent."""

    def evaluate(reader: Reader, _commit_ts: Timestamp) -> Evaluation:
        if restore_of(reader) is None and ended_restore(reader) == restore_id:
            return Evaluation(Mutations(), None)
        state = _under_way(reader, restore_id)
        missing = state.parts - len(state.parts_done)
        if missing or state.is_abandoned:
            problem = "is being abandoned" if state.is_abandoned else f"has {missing} parts that are not there yet"
            raise InvalidArgument("restore_id", problem, restore_id)
        safepoints = safepoints_of(reader)
        raised = Safepoints(max(safepoints.cluster, state.readable_from), safepoints.tables)
        mutations = Mutations()
        mutations.delete(RESTORE_KEY)
        mutations.put(RESTORED_KEY, state.encode())
        mutations.put(SAFEPOINTS_KEY, raised.encode())
        return Evaluation(mutations, None, removal=Removal(safepoints=raised))

    return evaluate


def abandoned(restore_id: str, left: Sequence[tuple[bytes, bytes]], seen: RestoreState | None) -> Evaluate:
    """Take back a piece of the restored data: the first items of the ranges ``left``, or the state if no range is left.
    ``seen`` is the state that was applied when ``left`` was read. Replies with the state."""

    def evaluate(reader: Reader, _commit_ts: Timestamp) -> Evaluation:
        state = restore_of(reader)
        if state is None:
            return Evaluation(Mutations(), None)
        if state.restore_id != restore_id:
            raise state.refusal()
        if seen is None or not seen.is_abandoned:
            # Earlier puts are applied before the next call looks.
            return _with_state(replace(state, is_abandoned=True))
        if left:
            cleared = [Cleared(start, end, CLEARED_ITEMS) for start, end in left[:1]]
            return Evaluation(Mutations(), state, removal=Removal(cleared=cleared))
        mutations = Mutations()
        mutations.delete(RESTORE_KEY)
        return Evaluation(mutations, None)

    return evaluate


def applied_restore(items: Sequence[Item], before: RestoreState | None) -> RestoreState | None:
    """Return the state once these versions, in the order of their keys, are applied. Raises DataLoss."""
    is_there, version = newest_in(items, RESTORE_KEY)
    if not is_there:
        return before
    return None if version is None else RestoreState.decode(version.payload)


def not_empty(found: bytes) -> InvalidArgument:
    """Return the refusal of a restore into a cluster that holds, or held, the key that was ``found``."""
    problem = "must never have held anything to take a backup, and has versions of"
    return InvalidArgument("cluster", f"{problem} {dump(found)}")


def changes_restore(keys: Sequence[LogicalKey]) -> bool:
    """Return whether a write of these keys begins, changes or ends a restore."""
    return len(keys) <= CHANGED_KEYS_MAX and RESTORE_KEY in keys


def _with_state(state: RestoreState) -> Evaluation:
    mutations = Mutations()
    mutations.put(RESTORE_KEY, state.encode())
    return Evaluation(mutations, state)


def _under_way(reader: Reader, restore_id: str) -> RestoreState:
    """Return the restore under way. Raises NotFound if there is no restore, Restoring if it is another one."""
    state = restore_of(reader)
    if state is None:
        raise NotFound("restore", restore_id)
    if state.restore_id != restore_id:
        raise state.refusal()
    return state
