"""Out of a lost majority, by force: one survivor becomes a cluster of its own. And out of a term that nobody elected.

Where most voters are gone for ever, nobody may decide any more, which is right: the others might still decide without
us. An operator who knows that they are gone says so, on the stopped node that holds the most::

    survey(engine)               what this node holds, and what it may lack
    force_new_cluster(engine)    1. a new cluster id: the old nodes refuse this one, and are refused, should they return
                                 2. the log says: one voter, which is this node; what was not applied yet, will be

What may be lost: everything that the lost majority acknowledged and had not sent here yet. What may appear: entries
that the leader had sent here and that were never acknowledged to anybody. Both steps are durable before they return,
and a recovery that was cut off between them is done again: with the new id and the old members a node only waits.

:func:`reset_term` is another matter, and loses nothing: a node whose stored term is out of bounds goes on in one that
its log can have come to. See :func:`cortado.raft.bootstrap.reset_term_writes`.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from cortado.errors import DataDirectoryError, InvalidArgument, Unsupported
from cortado.raft.bootstrap import TermReport as TermReport
from cortado.raft.bootstrap import force_single_writes, reset_term_writes
from cortado.raft.configuration import Configuration, Member
from cortado.raft.records import Writes, decode_stored, group_range
from cortado.store.clock.timestamp import Timestamp
from cortado.store.engine.data_directory import Identity
from cortado.store.engine.interface import Engine, Space
from cortado.store.engine.lmdb_engine import LmdbEngine
from cortado.store.mvcc.damage import GROUP_ID
from cortado.store.mvcc.verifying import VerifyingPass
from cortado.store.node.applied_state import AppliedState
from cortado.store.node.patrol import WALK_BYTES, WALK_ITEMS
from cortado.store.node.snapshots.marker import applied_key, marker_key

_ALL: Final = 1 << 30
_FORMAT_FILE: Final = "FORMAT"

Stored = list[tuple[bytes, bytes]]


@dataclass(frozen=True, slots=True)
class Survey:
    """What a stopped node holds. ``removed`` are the other members, which recovery leaves behind."""

    cluster_id: str
    member: Member
    applied_index: int
    last_ts: Timestamp
    last_index: int
    removed: tuple[Member, ...]
    damaged: tuple[str, ...] = ()
    """Stored items with wrong checksums: what the others may have whole, and nobody will after the recovery."""

    @property
    def unapplied(self) -> int:
        """Entries that this node did not know to be committed when it stopped. Recovery takes them for committed."""
        return self.last_index - self.applied_index


def open_stopped(path: Path) -> LmdbEngine:
    """The engine of a node that does not run. Raises DataDirectoryError: nothing there, in use, damaged."""
    if not (path / _FORMAT_FILE).exists():
        raise DataDirectoryError(str(path), "holds no node's data")

    def never() -> Identity:
        raise DataDirectoryError(str(path), "holds no node's data")

    return LmdbEngine.open(path, new_identity=never)


def survey(engine: Engine, path: Path, identity: Identity) -> Survey:
    """What the node holds. Raises Unsupported where it cannot be a cluster of its own, DataLoss where it is damaged."""
    if not identity.cluster_id:
        raise Unsupported("recovery of this directory", f"{path} never joined a cluster, so it holds nothing")
    with engine.read() as txn:
        applied, marker = txn.get(Space.META, applied_key(GROUP_ID)), txn.get(Space.META, marker_key(GROUP_ID))
    if marker is not None:
        problem = (
            f"{path} was receiving a snapshot when it stopped: what it holds is no state. Take another survivor, or "
            "start this one: it goes on by itself where the snapshot's file is whole"
        )
        raise Unsupported("recovery of this directory", problem)
    stored = stored_log(engine)
    if applied is None or not stored:
        raise Unsupported("recovery of this directory", f"{path} never received the cluster's data")
    state = AppliedState.decode(applied)
    log = decode_stored(GROUP_ID, stored)
    return Survey(
        cluster_id=identity.cluster_id,
        member=_voter(log.configuration, identity, path),
        applied_index=state.index,
        last_ts=state.last_ts,
        last_index=max(log.last[0], state.index),
        removed=log.configuration.others(identity.node_id),
        damaged=_damaged(engine),
    )


def _damaged(engine: Engine) -> tuple[str, ...]:
    """What is damaged, by reading all of it."""
    found: list[str] = []
    verifying, is_last = VerifyingPass(engine), False
    while not is_last:
        piece = verifying.step(WALK_ITEMS, WALK_BYTES)
        found += [each.what for each in piece.damage]
        is_last = piece.is_last
    return tuple(found)


def force_new_cluster(engine: LmdbEngine, found: Survey, *, dry_run: bool) -> str:
    """Make the node that ``found`` speaks of a cluster of one, durably, unless ``dry_run``; returns the new cluster's
    id, empty where nothing was done. Raises InvalidArgument where it is one already."""
    if not found.removed:
        raise InvalidArgument("data-dir", "this node is a cluster of one already", found.member.node_id)
    writes, _ = force_single_writes(GROUP_ID, stored_log(engine), found.member)
    if dry_run:
        return ""
    cluster_id = str(uuid.uuid4())
    engine.begin_cluster(cluster_id)
    _write(engine, writes)
    return cluster_id


def reset_term(engine: LmdbEngine, *, dry_run: bool) -> TermReport:
    """Take a node back from a term out of bounds, durably, unless ``dry_run``. Raises InvalidArgument where its term is
    in bounds, or what it applied is not; DataLoss where it is damaged."""
    with engine.read() as txn:
        applied = txn.get(Space.META, applied_key(GROUP_ID))
    state = AppliedState() if applied is None else AppliedState.decode(applied)
    writes, report = reset_term_writes(GROUP_ID, stored_log(engine), (state.index, state.term))
    if not dry_run:
        _write(engine, writes)
    return report


def _write(engine: LmdbEngine, writes: Writes) -> None:
    with engine.write() as txn:
        for key, value in writes:
            if value is None:
                txn.delete(Space.LOG, key)
            else:
                txn.put(Space.LOG, key, value)


def _voter(configuration: Configuration, identity: Identity, path: Path) -> Member:
    member = configuration.member(identity.node_id)
    if member is None:
        problem = f"{path} is that of {identity.node_id}, which was removed from its cluster"
        raise Unsupported("recovery of this directory", problem)
    if not configuration.is_voter(identity.node_id):
        problem = f"{path} is that of a learner, {identity.node_id}: no majority counted on it; take a voter's"
        raise Unsupported("recovery of this directory", problem)
    return member


def stored_log(engine: Engine) -> Stored:
    """What the group's log left in the engine; nothing where the node never served."""
    start, end = group_range(GROUP_ID)
    found: Stored = []
    with engine.read() as txn:
        while True:
            page = txn.page(Space.LOG, start, end, max_items=_ALL)
            found += zip(page.keys, page.values, strict=True)
            if page.exhausted:
                return found
            start = page.keys[-1] + b"\0"
