"""How a new data directory becomes a member: it asks any member, is sent on to the leader, and is bound there.

``cortado member add n2 HOST:PORT`` announced it before. What can be settled by waiting (no leader just now, nobody
reached yet) is tried again until the deadline; anything else ends the attempt at once, with what the cluster said.
Asking twice is harmless: whoever is bound already is told the same.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence

import grpc
from google.protobuf.message import DecodeError

from cortado.errors import CortadoError, InvalidArgument, NotLeader, TryAgain, Unavailable
from cortado.proto.internal.peers_pb2 import JoinRequest, JoinResponse
from cortado.store.engine.data_directory import Identity
from cortado.store.peers.addresses import Addresses
from cortado.store.peers.credentials import Certificates
from cortado.store.peers.streams import JOIN, JOINED_BOUNDS, as_it_is, explain, open_channel
from cortado.store.peers.versions import OURS

ATTEMPT_TIMEOUT_S = 5.0
PAUSE_S = 0.2
# A leader that sends on to another is followed so often in one round; then everyone is asked again.
_HOPS_MAX = 5


async def join(
    endpoints: Sequence[str],
    identity: Identity,
    addresses: Addresses,
    *,
    certificates: Certificates | None = None,
    timeout_s: float = 60.0,
    monotonic_s: Callable[[], float] = time.monotonic,
) -> JoinResponse:
    """Bind the data directory ``identity`` to its node id in the cluster of ``endpoints``, addresses of its members for
    peers. ``addresses`` reach it.

    Durable in the cluster when it returns; the caller makes the cluster id durable here, and configures its transport
    with the configuration. Raises InvalidArgument (not announced, another address, joined with another directory),
    PeerRefused (another cluster, a wrong certificate), Unavailable with each endpoint's reason at the deadline.
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
    request = message.SerializeToString()
    deadline_s = monotonic_s() + timeout_s
    problems: dict[str, str] = {}
    while True:
        answer = await _ask_all(others, request, certificates, deadline_s, monotonic_s, problems)
        if answer is not None:
            return answer
        if monotonic_s() + PAUSE_S >= deadline_s:
            reasons = "; ".join(f"{endpoint}: {problem}" for endpoint, problem in problems.items())
            raise Unavailable(f"no leader of the cluster was reached within {timeout_s:g} s: {reasons}")
        await asyncio.sleep(PAUSE_S)


async def _ask_all(
    endpoints: Sequence[str],
    request: bytes,
    certificates: Certificates | None,
    deadline_s: float,
    monotonic_s: Callable[[], float],
    problems: dict[str, str],
) -> JoinResponse | None:
    """One round over the endpoints and the leaders that they name. None where nobody could answer now."""
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
    return None


async def _ask(endpoint: str, request: bytes, certificates: Certificates | None, timeout_s: float) -> JoinResponse:
    channel = open_channel(endpoint, certificates)
    try:
        call = channel.unary_unary(JOIN, request_serializer=as_it_is, response_deserializer=as_it_is)
        reply: bytes = await call(request, timeout=timeout_s)
        JOINED_BOUNDS.check(reply)
        return JoinResponse.FromString(reply)
    except grpc.RpcError as error:
        raise _reason(error, endpoint, timeout_s, secure=certificates is not None) from None
    except (DecodeError, InvalidArgument):
        raise Unavailable("its answer is not one of a Cortado server") from None
    finally:
        await channel.close()


def _reason(error: grpc.RpcError, endpoint: str, timeout_s: float, *, secure: bool) -> CortadoError:
    code = error.code()
    if code is grpc.StatusCode.DEADLINE_EXCEEDED:
        return Unavailable(f"no answer within {timeout_s:.3g} s")
    found = explain(error, name=f"the host of {endpoint}", secure=secure)
    if code is grpc.StatusCode.UNIMPLEMENTED:
        return Unavailable("what answers there serves no peers: is it a Cortado node of this version?")
    return found
