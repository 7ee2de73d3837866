"""The search for the leader: all known members are asked at once, by one caller for all that want to know.

The search runs when a call failed without a hint where to go, and while a call waits in vain: a node that is stopped
(SIGSTOP), or cut off, keeps its connections and says nothing. A waiting caller asks the *others*. If they name another
leader, in a term as new as any seen, the call is given up and made there. If they name the same one, or none yet,
the call goes on waiting, since an answer that takes long is no sign of anything.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from google.protobuf.message import DecodeError

from cortado.proto.v1 import cluster_pb2
from cortado.store.client.channel import Channel
from cortado.store.client.retry import Failed
from cortado.store.client.route import Route
from cortado.store.client.runtime import Question, Runtime, WireClosed
from cortado.store.client.stubs import Stubs

ASK_S: Final = 0.3
"""How long a member may take to name the leader."""
ASK_BESIDE_S: Final = 2.0
AGAIN_S: Final = 0.1
"""How long a result counts before the members are asked again."""

_REQUEST: Final = cluster_pb2.MembersRequest().SerializeToString()


class LeaderSearch:
    """``channel_of`` gives the channel to an address, ``forget`` drops it."""

    def __init__(
        self,
        route: Route,
        runtime: Runtime,
        channel_of: Callable[[str], Channel],
        forget: Callable[[str], None],
    ) -> None:
        self._route = route
        self._channel_of = channel_of
        self._forget = forget
        self._now_s = runtime.environment.monotonic_s
        self._lock = runtime.lock()
        self._asked_s = float("-inf")
        self._found: str = ""

    async def is_elsewhere(self, silent: str) -> bool:
        """Whether another node than ``silent`` leads now; the route then goes there.

        If many callers wait for an answer, one of them asks. The others go on waiting: their answers may come any time.
        """
        if self._lock.locked():
            return self._route.known_leader not in ("", silent)
        return await self.look(silent) not in ("", silent)

    async def look(self, avoid: str = "", wait_s: float = ASK_S) -> str:
        """Return the leader's address, if members other than ``avoid`` name one that may be gone to; else empty.

        Takes about ``wait_s`` at most, if that is less than :data:`ASK_S`.
        """
        target = self._route.known_leader
        if avoid and target not in ("", avoid):
            return target  # Another caller has found out meanwhile.
        async with self._lock:
            if self._now_s() - self._asked_s >= AGAIN_S:
                try:
                    self._found = await self._ask(avoid, min(wait_s, ASK_S))
                finally:
                    self._asked_s = self._now_s()
            return "" if self._found == avoid else self._found

    def ask_beside(self, channel: Channel) -> None:
        """Ask one node for the members, and do not wait for it. Raises WireClosed if the client was closed."""
        channel.ask(Stubs.cluster.Members, _REQUEST, ASK_BESIDE_S).when_ended(self._learn)

    def _learn(self, call: Question) -> None:
        reply = self._answer(call)
        if reply is not None:
            for gone in self._route.learn(member.address for member in reply.members):
                self._forget(gone)

    async def _ask(self, avoid: str, wait_s: float) -> str:
        asked = [self._begin(each, wait_s) for each in self._route.addresses if each != avoid]
        term, leader = -1, ""
        known: list[str] = []
        for call in asked:
            reply = None if call is None else await self._answer_in_time(call)
            if reply is None or reply.header.term < term:
                continue
            named = _leader_of(reply)
            if reply.header.term > term or named:
                term, leader = reply.header.term, named
                known = [member.address for member in reply.members]
        for gone in self._route.learn(known):
            self._forget(gone)
        return leader if leader and leader != avoid and self._route.lead(leader, term) else ""

    def _begin(self, address: str, wait_s: float) -> Question | None:
        try:
            return self._channel_of(address).ask(Stubs.cluster.Members, _REQUEST, wait_s)
        except WireClosed:
            return None  # The client was closed.

    async def _answer_in_time(self, call: Question) -> cluster_pb2.MembersResponse | None:
        try:
            while not await call.wait(ASK_S):
                pass  # Its own deadline ends it.
        except BaseException:
            call.give_up()
            raise
        return self._answer(call)

    def _answer(self, call: Question) -> cluster_pb2.MembersResponse | None:
        try:
            return cluster_pb2.MembersResponse.FromString(call.outcome())
        except (Failed, DecodeError):
            return None


def _leader_of(reply: cluster_pb2.MembersResponse) -> str:
    """Return the leader's address, whether the reply names it by address or by id."""
    for member in reply.members:
        if reply.leader in (member.node_id, member.address):
            return member.address
    return reply.leader if ":" in reply.leader else ""
