"""Vouching: a node that meets a stranger asks the members that it knows whether the stranger is a member, too.

::

    n9 ── Hello: "my log is ahead of yours" ──► n1, which was away
                                                 ├── Vouch(n9, its directory) ──► n2: yes, my log ends at (7, 412)
                                                 └── Vouch(n9, its directory) ──► n3: no,  my log ends at (6, 300)
                                                n2 is furthest: n9 is heard until the log of n1 reaches (7, 412)

The answer of the member whose log is furthest counts, if that is further than our own: it knows of every addition and
removal that the others know of, and of all that we know. If all members that this node knows are gone, none can
vouch, and it stays alone until one comes back: then it is to be removed, and added under a new id.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Final

from google.protobuf.message import DecodeError

from cortado.errors import CortadoError, PeerRefused, ResourceExhausted, Unavailable
from cortado.proto.internal.peers_pb2 import Hello, VouchRequest, VouchResponse
from cortado.raft.registry import Member
from cortado.raft.standing import Word, vouched_position
from cortado.store.peers.connecting import Target, ask
from cortado.store.peers.credentials import Certificates
from cortado.store.peers.frames import Kind
from cortado.store.peers.interface import PeerLimits

# So long a refusal is remembered: a stranger may knock as often as it likes.
_REMEMBERED_MS: Final = 1_000.0
_REMEMBERED_MAX: Final = 64


class Vouching:
    """Asks members, for a few strangers at a time, and not again right after they refused."""

    def __init__(
        self,
        hello_to: Callable[[str], Hello],
        certificates: Certificates | None,
        limits: PeerLimits,
        monotonic_ms: Callable[[], float],
    ) -> None:
        self._hello_to = hello_to
        self._certificates = certificates
        self._limits = limits
        self._monotonic_ms = monotonic_ms
        self._asking = 0
        self._refused: dict[tuple[str, str], tuple[float, PeerRefused]] = {}
        self.asked = 0
        """How often members were asked, since the start."""

    async def position_for(
        self, stranger: Hello, members: Sequence[Member], ours: tuple[int, int], refusal: PeerRefused
    ) -> tuple[int, int]:
        """Return the place of the log up to which ``stranger`` is to be believed. Raises PeerRefused without a voucher
        (``refusal``, and the members' answers), ResourceExhausted if too many strangers are asked for already."""
        key = (stranger.node_id, stranger.storage_id)
        until_ms, remembered = self._refused.get(key, (0.0, refusal))
        if self._monotonic_ms() < until_ms:
            raise PeerRefused(remembered.problem)
        if self._asking >= self._limits.vouched_max:
            problem = "members are being asked for too many strangers"
            raise ResourceExhausted(problem, 100, resource="strangers", limit=self._limits.vouched_max)
        self._asking += 1
        self.asked += 1
        try:
            heard = await asyncio.gather(*(self._ask(member, stranger) for member in members))
        finally:
            self._asking -= 1
        words = [word for word in heard if isinstance(word, Word)]
        position = vouched_position(words, ours)
        if position is None:
            raise self._remember(key, _no_voucher(refusal, members, heard))
        self._refused.pop(key, None)
        return position

    def _remember(self, key: tuple[str, str], refused: PeerRefused) -> PeerRefused:
        now_ms = self._monotonic_ms()
        if len(self._refused) >= _REMEMBERED_MAX:
            self._refused = {each: kept for each, kept in self._refused.items() if now_ms < kept[0]}
        if len(self._refused) < _REMEMBERED_MAX:
            self._refused[key] = now_ms + _REMEMBERED_MS, refused
        return refused

    async def _ask(self, member: Member, stranger: Hello) -> Word | CortadoError:
        request = VouchRequest(
            hello=self._hello_to(member.node_id), node_id=stranger.node_id, storage_id=stranger.storage_id
        )
        target = Target(member.peer_address, self._certificates, self._limits, member.node_id)
        try:
            async with asyncio.timeout(self._limits.hello_ms / 2000):
                answer = await ask(target, Kind.VOUCH, request.SerializeToString(), Kind.VOUCHED)
            word = VouchResponse.FromString(answer)
        except TimeoutError:
            return Unavailable(f"no answer within {self._limits.hello_ms // 2} ms")
        except CortadoError as problem:
            return problem
        except DecodeError:
            return Unavailable("its answer is not of the peers' protocol")
        return Word(word.is_member, (word.last_term, word.last_index))


def _no_voucher(refusal: PeerRefused, members: Sequence[Member], heard: Sequence[Word | CortadoError]) -> PeerRefused:
    """Return ``refusal``, with the answer of each member that was asked."""
    said = [f"{member.node_id}: {_said(word)}" for member, word in zip(members, heard, strict=True)]
    asked = "; ".join(said) if said else "no other member is known"
    return PeerRefused(f"{refusal.problem}; no member that this node knows vouches for it ({asked})")


def _said(word: Word | CortadoError) -> str:
    if isinstance(word, CortadoError):
        return word.message()
    return "it is a member, but this log is no further than ours" if word.is_member else "no"
