"""The steps by which a new data directory becomes a member: any member sends it on to the leader, which binds it.

``cortado member add n2 HOST:PORT`` announces it before. The node retries passing failures (no leader yet, no member
reached) until its deadline; any other refusal ends the attempt at once, with the cluster's reason. Joining is
idempotent: a node that is bound already gets the same answer.

A node that is to found a cluster asks all other nodes first. It founds the cluster only after each of them, in one
round, has said that it belongs to none. So a node that lost its directory finds its old cluster, and a cluster whose
nodes do not answer is not founded a second time.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence

from google.protobuf.message import DecodeError

from cortado.errors import InvalidArgument, NotFound, NotLeader, TryAgain, Unavailable
from cortado.proto.internal.peers_pb2 import JoinRequest, JoinResponse
from cortado.store.engine.data_directory import Identity
from cortado.store.peers.addresses import Addresses
from cortado.store.peers.bounds import JOINED_BOUNDS
from cortado.store.peers.connecting import Target, ask
from cortado.store.peers.credentials import Certificates
from cortado.store.peers.frames import Kind
from cortado.store.peers.interface import PeerLimits
from cortado.store.peers.versions import OURS

ATTEMPT_TIMEOUT_S = 5.0
PAUSE_S = 0.2
NO_CLUSTER = "cluster"
"""The kind of the NotFound that a node answers which waits to join (:mod:`cortado.store.peers.waiting`)."""
# A leader that sends on to another is followed so often in one round; then everyone is asked again.
_HOPS_MAX = 5


async def join(
    endpoints: Sequence[str],
    identity: Identity,
    addresses: Addresses,
    *,
    certificates: Certificates | None = None,
    timeout_s: float = 60.0,
    founds: bool = False,
    tell_process: Callable[[JoinRequest], None] = lambda _request: None,
    monotonic_s: Callable[[], float] = time.monotonic,
) -> JoinResponse | None:
    """Bind the data directory ``identity`` to its node id in the cluster of ``endpoints``, addresses of its members for
    peers. ``addresses`` reach it.

    Durable in the cluster when it returns; the caller makes the cluster id durable here, and configures its transport
    with the configuration. None if this node ``founds`` a cluster, and all the others belong to none. A member that
    tells its new addresses has ``tell_process`` write its process.

    Raises InvalidArgument (not announced, another address, joined with another directory), PeerRefused (another
    cluster, a wrong certificate), Unavailable with each endpoint's reason at the deadline.
    """
    if not endpoints:
        raise InvalidArgument("join", "needs the address of at least one member, as host:port")
    # All nodes may be given the same list. Asking oneself would only take time: nothing is answered before the join.
    others = [each for each in dict.fromkeys(endpoints) if each != addresses.peers]
    if not others:
        raise InvalidArgument(
            "join", "leads back to this node alone; it needs the address of a member", addresses.peers
        )
    message = JoinRequest(
        node_id=identity.node_id,
        storage_id=identity.storage_id,
        peer_address=addresses.peers,
        address=addresses.clients,
        cluster_id=identity.cluster_id,
    )
    OURS.tell(message)
    tell_process(message)
    request = message.SerializeToString()
    deadline_s = monotonic_s() + timeout_s
    problems: dict[str, str] = {}
    while True:
        without: set[str] = set()
        answer = await _ask_all(others, request, certificates, deadline_s, monotonic_s, problems, without)
        if answer is not None:
            return answer
        if founds and without >= set(others):
            return None
        if monotonic_s() + PAUSE_S >= deadline_s:
            reasons = "; ".join(f"{endpoint}: {problem}" for endpoint, problem in problems.items())
            if founds:
                raise Unavailable(f"not all others said within {timeout_s:g} s that they are in no cluster: {reasons}")
            raise Unavailable(f"no leader of the cluster was reached within {timeout_s:g} s: {reasons}")
        await asyncio.sleep(PAUSE_S)


async def _ask_all(
    endpoints: Sequence[str],
    request: bytes,
    certificates: Certificates | None,
    deadline_s: float,
    monotonic_s: Callable[[], float],
    problems: dict[str, str],
    without: set[str],
) -> JoinResponse | None:
    """Ask each endpoint once, and the leaders that they name. Returns None if none could let this node in now; puts
    those that belong to no cluster into ``without``."""
    waiting, hops = list(endpoints), 0
    while waiting:
        endpoint = waiting.pop(0)
        left_s = deadline_s - monotonic_s()
        if left_s <= 0:
            problems.setdefault(endpoint, "not asked")
            continue
        try:
            return await _ask(endpoint, request, certificates, min(left_s, ATTEMPT_TIMEOUT_S))
        except NotLeader as elsewhere:
            problems[endpoint] = f"it does not lead; the leader is {elsewhere.leader or 'not known to it'}"
            if elsewhere.leader and hops < _HOPS_MAX:
                hops += 1
                waiting = [elsewhere.leader, *(each for each in waiting if each != elsewhere.leader)]
        except TryAgain as problem:
            problems[endpoint] = problem.message()
        except NotFound as nothing:
            if nothing.kind != NO_CLUSTER:
                raise
            problems[endpoint] = "it belongs to no cluster"
            without.add(endpoint)
    return None


async def _ask(endpoint: str, request: bytes, certificates: Certificates | None, timeout_s: float) -> JoinResponse:
    target = Target(endpoint, certificates, PeerLimits())
    try:
        async with asyncio.timeout(timeout_s):
            reply = await ask(target, Kind.JOIN, request, Kind.JOINED)
        JOINED_BOUNDS.check(reply)
        return JoinResponse.FromString(reply)
    except TimeoutError:
        raise Unavailable(f"no answer within {timeout_s:.3g} s") from None
    except DecodeError:
        raise Unavailable("its answer is not one of the peers' protocol") from None
