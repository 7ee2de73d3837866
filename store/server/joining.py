"""The first start in a directory: its node begins a cluster, or joins one, once and for ever.

::

    empty, no --join ......... a new cluster id and node id; the node begins a cluster of one
    empty, --join and
           --found-cluster ... as the first, once each other node of --join has said that it belongs to no cluster; as
                               the next one, if there is a cluster after all
    empty, --join ............ a storage id and the announced node id, and no cluster yet
                               ─► Join at the cluster's leader, which remembers the storage id
                               ─► the mark that it joined, with the members that admitted it, and the cluster's id:
                                  from now on --join is ignored
    made by an earlier start . the names that it holds; other names in the settings are refused, and --join if it
                               began a cluster and is alone in it

A crash between any two steps leaves a directory with which the same start goes on. The mark matters if the node was
stopped before it had received an entry: without a log it must not begin a cluster, but wait for the one that it joined.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import uuid
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Final

from cortado.errors import CortadoError, InvalidArgument, NotFound, TryAgain, Unavailable
from cortado.proto.internal.peers_pb2 import JoinRequest
from cortado.raft.registry import Member, Roster
from cortado.store.engine.data_directory import Identity
from cortado.store.engine.interface import Engine, Space
from cortado.store.engine.lmdb_engine import CHECKED_BYTES_DEFAULT
from cortado.store.peers.addresses import Addresses
from cortado.store.peers.credentials import Certificates
from cortado.store.peers.join import NO_CLUSTER, join
from cortado.store.peers.waiting import WaitingListener
from cortado.store.replica.replica import Replica, Role
from cortado.store.server.config import ServerConfig
from cortado.store.server.exits import EXIT_CONFIG, EXIT_UNAVAILABLE, StartRefused
from cortado.store.server.stores import Stores

_LOG: Final = logging.getLogger(__name__)

_JOINED_KEY: Final = b"joined"
_LET_IN_KEY: Final = b"let in by"
_MOVED_POLL_S: Final = 1.0
_MOVED_POLL_S_MAX: Final = 60.0
# The cluster may have taken the addresses once before, without this node having heard of it.
_MOVED_TOLD_MAX: Final = 2
_TOLD_AGAIN: Final = (
    "told the cluster %d times of the addresses %s, and it knows %s: does another process run with a copy of this data "
    "directory? Next in %.0f s"
)


def open_stores(config: ServerConfig) -> Stores:
    """Open the stores of the configured directory; make them if it is empty. Raises DataDirectoryError, DataLoss,
    ResourceExhausted; InvalidArgument if the directory is another node's or cluster's than the configuration says.
    """

    def new_identity() -> Identity:
        if config.join and not config.node_id:
            problem = "must be given with --join: the one that cortado member add announced"
            raise InvalidArgument("node-id", problem)
        if config.has_tls and not config.node_id:
            # A drawn one is in no certificate, and would stay in the directory.
            raise InvalidArgument("node-id", "must be given with tls-cert, at the first start: the certificate's")
        cluster_id = "" if config.join else config.cluster_id or str(uuid.uuid4())
        return Identity(cluster_id, node_id=config.node_id or str(uuid.uuid4()), storage_id=str(uuid.uuid4()))

    stores = Stores.open(
        config.data_dir,
        new_identity=new_identity,
        map_bytes=config.map_size,
        checked_bytes=None if config.verify else CHECKED_BYTES_DEFAULT,
    )
    try:
        _check_identity(config, stores.engine.identity)
    except CortadoError:
        stores.close()
        raise
    return stores


def _check_identity(config: ServerConfig, identity: Identity) -> None:
    if config.cluster_id not in ("", identity.cluster_id) and identity.cluster_id:
        problem = f"the data directory belongs to cluster {identity.cluster_id}"
        raise InvalidArgument("cluster-id", problem, config.cluster_id)
    if config.node_id not in ("", identity.node_id):
        raise InvalidArgument("node-id", f"the data directory is that of node {identity.node_id}", config.node_id)


def joined_members(engine: Engine) -> Roster | None:
    """Return the members that admitted this directory, if it belongs to a cluster that another node began. Until it has
    a log of its own, it hears them alone. Raises DataLoss."""
    with engine.read() as txn:
        if txn.get(Space.META, _JOINED_KEY) is None:
            return None
        return Roster.decode(txn.get(Space.META, _LET_IN_KEY) or b"")


async def join_cluster(
    config: ServerConfig, stores: Stores, addresses: Addresses, certificates: Certificates | None
) -> None:
    """Make a directory that belongs to no cluster yet a member of the one that it is to join.

    Others will reach this node at ``addresses``. Raises StartRefused: its exit code says whether to try again later.
    """
    engine = stores.engine
    identity = engine.identity
    if identity.cluster_id:
        if config.join and not config.found_cluster:
            _check_not_alone(config, stores, addresses.peers)
            _LOG.info("node %s is in cluster %s already; join is ignored", identity.node_id, identity.cluster_id)
        return
    if not config.join:
        problem = f"must be given: {config.data_dir} was made to join a cluster, and has not joined it yet"
        raise StartRefused(InvalidArgument("join", problem), EXIT_CONFIG)
    _LOG.info("node %s asks %s to join their cluster", identity.node_id, ", ".join(config.join))
    try:
        answer = await join(
            config.join,
            identity,
            addresses,
            certificates=certificates,
            timeout_s=config.join_timeout_ms / 1000,
            founds=config.found_cluster,
        )
    except TryAgain as error:
        raise StartRefused(error, EXIT_UNAVAILABLE) from error
    except CortadoError as error:
        raise StartRefused(error, EXIT_CONFIG) from error
    if answer is None:
        # Without the mark that it joined, it begins the cluster.
        engine.join_cluster(config.cluster_id or str(uuid.uuid4()))
        _LOG.info("node %s founds cluster %s: all others are in none", identity.node_id, engine.identity.cluster_id)
        return
    if config.cluster_id not in ("", answer.cluster_id):
        problem = f"the cluster that was to be joined is {answer.cluster_id}"
        raise StartRefused(InvalidArgument("cluster-id", problem, config.cluster_id), EXIT_CONFIG)
    with engine.write() as txn:
        txn.put(Space.META, _JOINED_KEY, answer.cluster_id.encode())
        txn.put(Space.META, _LET_IN_KEY, Roster.from_message(answer.roster).encode())
    engine.join_cluster(answer.cluster_id)
    _LOG.info("node %s joined cluster %s as a learner", identity.node_id, answer.cluster_id)


@asynccontextmanager
async def answering_meanwhile(
    config: ServerConfig, identity: Identity, peer_sockets: Sequence[socket.socket], certificates: Certificates | None
) -> AsyncIterator[None]:
    """Answer nodes that ask during :func:`join_cluster`: this node waits for a cluster itself."""
    if identity.cluster_id:
        yield
        return
    waits = NotFound(NO_CLUSTER, f"that node {identity.node_id} belongs to")
    # Two nodes that are to found a cluster would each hear that the other has none.
    founds = Unavailable(f"node {identity.node_id} is to found a cluster, too: one node alone may")
    async with WaitingListener(peer_sockets, founds if config.found_cluster else waits, certificates):
        yield


def _check_not_alone(config: ServerConfig, stores: Stores, peer_address: str) -> None:
    """Raise StartRefused if the directory began a cluster and is its only member: an operator who sets ``join`` wants
    another.

    It would serve, and clients that know both addresses would write to one cluster today and to the other tomorrow. In
    a list that all nodes have, the one that began the cluster finds itself.
    """
    engine = stores.engine
    if joined_members(engine) is not None or peer_address in config.join:
        return
    if len(stores.log().roster.members) > 1:
        return
    problem = (
        f"{config.data_dir} began a cluster of its own, {engine.identity.cluster_id}, and joins no other: "
        "start with an empty directory, or without join"
    )
    raise StartRefused(InvalidArgument("join", problem, ",".join(config.join)), EXIT_CONFIG)


async def tell_addresses(
    replica: Replica,
    identity: Identity,
    addresses: Addresses,
    certificates: Certificates | None,
    tell_process: Callable[[JoinRequest], None],
) -> None:
    """Tell the cluster ``addresses``, if it knows this node by others. Return when it knows them.

    It backs off when it has to tell again and again: another process, with a copy of this directory, may tell its own
    addresses in turn, and members cannot tell which one is the copy. ``tell_process`` names this process in a request.
    """
    bound = Member(identity.node_id, addresses.peers, identity.storage_id, addresses.clients)
    said, told, wait_s = "", 0, _MOVED_POLL_S
    while True:
        roster = replica.roster
        member = roster.member(identity.node_id)
        if member is not None and member.storage_id and _addresses_of(member) == addresses:
            return
        try:
            if member is not None:
                others = [each.peer_address for each in roster.others(identity.node_id)]
                if replica.role is Role.LEADER:
                    await replica.bind_member(bound)
                    told += 1
                elif others:
                    await join(others, identity, addresses, certificates=certificates, tell_process=tell_process)
                    told += 1
                if told > _MOVED_TOLD_MAX:
                    wait_s = min(2 * wait_s, _MOVED_POLL_S_MAX)
                    _LOG.warning(_TOLD_AGAIN, told, addresses, _addresses_of(member), wait_s)
        except CortadoError as problem:
            if problem.message() != said:
                said = problem.message()
                _LOG.warning("the cluster could not be told of the addresses %s: %s", addresses, said)
        await asyncio.sleep(wait_s)


def _addresses_of(member: Member) -> Addresses:
    return Addresses(member.address, member.peer_address)
