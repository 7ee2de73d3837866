"""Routes of calls: the addresses that are known, and the one that is believed to lead.

A route starts at the first endpoint that the caller named. From then on it follows the nodes' replies::

    NotLeader(leader)  from the node that was asked ......... there, at once
    a member's word, of a term as new as any seen ........... there
    nothing of the kind, and the node can't be reached ...... the next address

No hint is trusted for long: an address that just failed is not gone back to on a hint, since followers name a dead
leader until their own election is over. A wrong guess costs one refused call.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from typing import Final

from cortado.store.client.endpoints import is_endpoint

DISTRUST_S: Final = 0.25
"""How long an address that failed is not gone to on another node's hint."""


class Route:
    """Shared by all threads of a client. ``target`` is read without a lock."""

    def __init__(self, endpoints: tuple[str, ...], now_s: Callable[[], float]) -> None:
        self._endpoints = endpoints
        self._now_s = now_s
        self._lock = threading.Lock()
        self._failed_s: dict[str, float] = {}
        # The term of region 1, as Members tells it: terms of two regions do not compare.
        self._term = 0
        self._any = 0
        self.addresses = endpoints
        """The caller's endpoints, then members that nodes told of."""
        self.target = endpoints[0]
        self.known_leader = ""
        """The target, if a node said that it leads; empty if it is a guess."""

    @property
    def has_one_endpoint(self) -> bool:
        """Whether the caller named one node."""
        return len(self._endpoints) == 1

    def address(self, anywhere: bool, turn: int | None) -> str:
        """Return a call's address: one of the endpoints that the caller named, if it has a ``turn``; any member; or the
        leader."""
        if turn is not None:
            return self._endpoints[turn % len(self._endpoints)]
        return self.anyone() if anywhere else self.target

    def follow(self, hinted: str, by: str) -> bool:
        """Follow a hint: ``by`` does not lead, and names ``hinted``. False if that is no help."""
        with self._lock:
            if hinted == by or not is_endpoint(hinted) or self._is_distrusted(hinted):
                return False
            if self.target in (by, hinted) or self._is_distrusted(self.target):
                self.target = self.known_leader = hinted
            return self.target != by

    def lead(self, address: str, term: int) -> bool:
        """Note that a member names ``address`` as leader in ``term``. False if that is old news, or it has just
        failed."""
        with self._lock:
            if term < self._term or self._is_distrusted(address):
                return False
            self._term = term
            self.target = self.known_leader = address
            return True

    def turn_from(self, address: str) -> None:
        """Turn to the next address if ``address``, the target, can't be reached or does not know the leader."""
        with self._lock:
            if self.target == address:
                place = self.addresses.index(address) + 1 if address in self.addresses else 0
                self.target = self.addresses[place % len(self.addresses)]
                self.known_leader = ""

    def failed(self, address: str) -> None:
        """Note that an address could not be reached, or was silent."""
        with self._lock:
            self._failed_s[address] = self._now_s()

    def learn(self, members: Iterable[str]) -> set[str]:
        """Learn the members' addresses as of now; return those that are known no longer."""
        told = [each for each in dict.fromkeys(members) if is_endpoint(each)]
        if not told:
            return set()
        with self._lock:
            before = set(self.addresses)
            self.addresses = self._endpoints + tuple(each for each in told if each not in self._endpoints)
            gone = before - set(self.addresses)
            if self.target in gone:
                self.target = self.addresses[0]
                self.known_leader = ""
            return gone

    def anyone(self) -> str:
        """Return an address for calls that any member may answer: each in turn, leaving out those that just failed."""
        with self._lock:
            for _ in self.addresses:
                self._any += 1
                address = self.addresses[self._any % len(self.addresses)]
                if not self._is_distrusted(address):
                    return address
            return self.target

    def forget_terms(self) -> None:
        """Forget the terms: another cluster answers now, which counts its own."""
        with self._lock:
            self._term = 0

    def _is_distrusted(self, address: str) -> bool:
        failed_s = self._failed_s.get(address)
        return failed_s is not None and self._now_s() - failed_s < DISTRUST_S
