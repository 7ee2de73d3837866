"""Forced recovery from a lost majority: one survivor becomes a cluster of its own; and from an impossible term.

If most voters are gone for ever, the remaining nodes may decide no more, which is right: the others might still decide
without them. An operator who knows that they are gone says so, on the stopped node that holds the most::

    survey(path)                 the state of this node, and its possible losses; nothing is written
    force_new_cluster(path)      1. a new cluster id: the old nodes refuse this one, and are refused, should they return
                                 2. the log says: one voter, which is this node; unapplied entries will be applied

It may lose all writes that the lost majority acknowledged and had not sent here yet. Entries may appear that the leader
had sent here and that were never acknowledged to a caller. Both steps are durable before they return, and a recovery
that was cut off between them is done again: with the new id and the old members a node only waits. In the other order
it would lead alone, and the others, should they return, would hear it. LMDB is not written: the log decides the fate of
the data.

If a snapshot was installed and the log not reset to its place yet, the log's new beginning is that place: it is reset
in the same write.

:func:`reset_term` is another matter, and loses nothing: a node with a stored term out of bounds goes on in a term that
its log can have reached. See :func:`cortado.raft.bootstrap.reset_term_writes`.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from cortado.errors import DataDirectoryError, InvalidArgument, Unsupported
from cortado.raft.bootstrap import TermReport as TermReport
from cortado.raft.bootstrap import force_single_writes, reset_term_writes
from cortado.raft.journal import Journal
from cortado.raft.records import StoredLog, Writes, decode_hard_state, reset_to
from cortado.raft.registry import Member, Roster
from cortado.store.clock.timestamp import Timestamp
from cortado.store.engine.data_directory import Identity
from cortado.store.engine.interface import Engine, Space
from cortado.store.engine.lmdb_engine import LmdbEngine
from cortado.store.host.opening import stored_log
from cortado.store.host.patrol import WALK_BYTES, WALK_ITEMS
from cortado.store.log_files.log_files import LogFiles
from cortado.store.log_files.recovery import StoredGroup
from cortado.store.mvcc.verifying import VerifyingPass
from cortado.store.replica.apply.applied_state import AppliedState
from cortado.store.replica.group_range import META_GROUP
from cortado.store.replica.snapshots.marker import applied_key, marker_key, reset_key
from cortado.store.server.locked_out import MARK
from cortado.store.server.stores import Stores, read_log_groups

_FORMAT_FILE: Final = "FORMAT"


@dataclass(frozen=True, slots=True)
class Survey:
    """The state of a stopped node. ``removed`` are the other members, which recovery leaves behind."""

    cluster_id: str
    member: Member
    applied_index: int
    last_ts: Timestamp
    last_index: int
    removed: tuple[Member, ...]
    damaged: tuple[str, ...] = ()
    """Stored items with wrong checksums: the other members may have them whole, and no node will after the recovery."""

    @property
    def unapplied(self) -> int:
        """Entries that this node did not know to be committed when it stopped. Recovery takes them for committed."""
        return self.last_index - self.applied_index


@dataclass(frozen=True, slots=True)
class _Held:
    """Both stores of a stopped node: the log as a start would have it, and the ``resets`` that make it so.
    ``log_files`` is set if the log may be written."""

    path: Path
    engine: LmdbEngine
    log_files: LogFiles | None
    log: StoredLog
    resets: Writes

    def meta(self, key: bytes) -> bytes | None:
        with self.engine.read() as txn:
            return txn.get(Space.META, key)

    @property
    def applied(self) -> AppliedState | None:
        """Raises DataLoss."""
        encoded = self.meta(applied_key(META_GROUP.group_id))
        return None if encoded is None else AppliedState.decode(encoded)


def survey(path: Path) -> Survey:
    """Return the state of the node; not a byte is written. Raises DataDirectoryError: nothing there, in use, damaged;
    Unsupported if it cannot be a cluster of its own, DataLoss if its log or applied state is damaged."""
    with _held(path, may_write=False) as held:
        return replace(_survey(held), damaged=_damaged(held.engine))


def force_new_cluster(path: Path, *, dry_run: bool) -> str:
    """Make the node a cluster of one, durably, unless ``dry_run``; return the new cluster's id, empty after a dry run.
    Raises as :func:`survey` does, InvalidArgument if it is one already, ResourceExhausted."""
    with _held(path, may_write=not dry_run) as held:
        found = _survey(held)
        if not found.removed:
            raise InvalidArgument("data-dir", "this node is a cluster of one already", found.member.node_id)
        writes, _ = force_single_writes(META_GROUP.group_id, held.log, found.member)
        if held.log_files is None:
            return ""
        cluster_id = str(uuid.uuid4())
        held.engine.begin_cluster(cluster_id)
        held.log_files.append([*held.resets, *writes])
        return cluster_id


def reset_term(path: Path, *, dry_run: bool) -> TermReport:
    """Take a node back from a term out of bounds, durably, unless ``dry_run``. Raises InvalidArgument if its term is in
    bounds, or that of its applied state is not; DataDirectoryError, ResourceExhausted; DataLoss if it is damaged."""
    with _held(path, may_write=not dry_run) as held:
        state = held.applied or AppliedState()
        writes, report = reset_term_writes(META_GROUP.group_id, held.log, (state.index, state.term))
        if held.log_files is not None:
            held.log_files.append([*held.resets, *writes])
        return report


def disable_auth(path: Path, *, dry_run: bool) -> None:
    """Have the node switch roles off once it leads, unless ``dry_run``. Raises as :func:`survey` does."""
    with _held(path, may_write=not dry_run) as held:
        _survey(held)
        if not dry_run:
            (path / MARK).touch(mode=0o600)


# --- both stores -----------------------------------------------------------------------------------------------


@contextmanager
def _held(path: Path, *, may_write: bool) -> Iterator[_Held]:
    """Open both stores. Raises DataDirectoryError: nothing there, in use, damaged; DataLoss."""
    if not may_write:
        with closing(LmdbEngine.open_stopped(path)) as engine:
            yield _as_a_start(path, engine, None, read_log_groups(path))
        return

    def never() -> Identity:
        raise DataDirectoryError(str(path), "holds no node's data")

    if not (path / _FORMAT_FILE).exists():
        never()
    with closing(Stores.open(path, new_identity=never)) as stores:
        yield _as_a_start(path, stores.engine, stores.log_files, stores.log_files.groups)


def _as_a_start(path: Path, engine: LmdbEngine, log_files: LogFiles | None, groups: Mapping[int, StoredGroup]) -> _Held:
    """Return the stores as :func:`cortado.store.host.opening.open_group` finds them. Raises DataLoss."""
    held = _Held(path, engine, log_files, stored_log(groups, META_GROUP.group_id, owner=engine.identity.storage_id), [])
    encoded = held.meta(reset_key(META_GROUP.group_id))
    if encoded is not None:
        state = decode_hard_state(META_GROUP.group_id, encoded)
        if held.log.hard_state.base_index < state.base_index:
            log, resets = reset_to(META_GROUP.group_id, held.log, state)
            return replace(held, log=log, resets=resets)
    return held


def _survey(held: _Held) -> Survey:
    """Return the survey without its damaged items. Raises Unsupported, DataLoss."""
    path, identity, log = held.path, held.engine.identity, held.log
    if not identity.cluster_id:
        raise Unsupported("recovery of this directory", f"{path} never joined a cluster, so it holds nothing")
    if held.meta(marker_key(META_GROUP.group_id)) is not None:
        problem = (
            f"{path} was receiving a snapshot when it stopped: its data is no complete state. Take another survivor, "
            "or start this one: it goes on by itself if the snapshot's file is whole"
        )
        raise Unsupported("recovery of this directory", problem)
    state = held.applied
    if state is None:
        raise Unsupported("recovery of this directory", f"{path} never received the cluster's data")
    # A log that ends before the applied index was lost in part.
    Journal(META_GROUP.group_id, log, (state.index, state.term))
    return Survey(
        cluster_id=identity.cluster_id,
        member=_voter(log.roster, identity, path),
        applied_index=state.index,
        last_ts=state.last_ts,
        last_index=log.last[0],
        removed=log.roster.others(identity.node_id),
    )


def _damaged(engine: Engine) -> tuple[str, ...]:
    """Return the damaged items, after reading all of them."""
    found: list[str] = []
    verifying, is_last = VerifyingPass(engine), False
    while not is_last:
        piece = verifying.step(WALK_ITEMS, WALK_BYTES)
        found += [each.what for each in piece.damage]
        is_last = piece.is_last
    return tuple(found)


def _voter(roster: Roster, identity: Identity, path: Path) -> Member:
    member = roster.member(identity.node_id)
    if member is None:
        problem = f"{path} is that of {identity.node_id}, which was removed from its cluster"
        raise Unsupported("recovery of this directory", problem)
    if not roster.is_voter(identity.node_id):
        problem = f"{path} is that of a learner, {identity.node_id}: no majority counted on it; take a voter's"
        raise Unsupported("recovery of this directory", problem)
    return member
