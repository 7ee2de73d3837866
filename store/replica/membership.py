"""Changes of members, and of the leader: asked of the leader, answered when they are committed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from cortado.errors import InvalidArgument, OutcomeUnknown, Unavailable
from cortado.raft.log import Entry
from cortado.raft.registry import Member, Roster
from cortado.store.auth.caller import CALLER, denial
from cortado.store.auth.current import Roles
from cortado.store.replica.driver import Driver

# The log gives a hand-over one election's time. A longer wait is one for a leader, not for the hand-over.
TRANSFER_S: Final = 5.0


class Membership:
    """The log makes the changes; callers wait for them here. Each raises NotLeader with the leader's address,
    Unavailable if it can't be done now, InvalidArgument if it never can. It raises OutcomeUnknown if leadership was
    lost on the way: look at the members before trying again.

    Each is an entry of the log. Like a write it is authorized once more at append, by all that is evaluated before it:
    raises Unauthenticated, PermissionDenied."""

    def __init__(self, driver: Driver, node_id: str, now_ms: Callable[[], int], roles: Callable[[], Roles]) -> None:
        """``now_ms`` returns the wall time by which tokens end, ``roles`` those at the end of the log."""
        self._driver = driver
        self._node_id = node_id
        self._now_ms = now_ms
        self._roles = roles

    async def add(self, node_id: str, peer_address: str) -> Roster:
        """Announce a learner, by the address at which the other nodes will reach it."""
        self._check_may()
        return await self._made(self._driver.log.members.add_learner(Member(node_id, peer_address)))

    async def bind(self, member: Member) -> Roster:
        """Bind a member's id to its data directory, and learn its addresses."""
        self._check_may()
        return await self._made(self._driver.log.members.bind(member))

    async def promote(self, node_id: str) -> Roster:
        """Make a learner a voter."""
        self._check_may()
        return await self._made(self._driver.log.members.promote(node_id))

    async def remove(self, node_id: str) -> Roster:
        """Remove a member. A leader that is to remove itself hands over first, and answers NotLeader: the next leader
        removes it."""
        self._check_may()
        if node_id == self._node_id:
            if self._driver.is_alone:
                raise InvalidArgument("node_id", "is the only voter: there would be no cluster left", node_id)
            with suppress(InvalidArgument):
                # A leader is never removed; other objections are raised first.
                self._driver.log.members.remove(node_id)
            try:
                await self.transfer()
            except OutcomeUnknown as unknown:
                # The unknown outcome is the hand-over's: no member was removed.
                raise Unavailable(unknown.problem) from unknown
            raise self._driver.leadership.not_leader()
        return await self._made(self._driver.log.members.remove(node_id))

    async def committed(self) -> Roster:
        """Return the committed members, once all that the log holds now is committed. Raises NotLeader, and
        Unavailable if leadership is lost meanwhile."""
        self._check_leads()
        driver = self._driver
        try:
            await self._applied(*driver.log.last)
        except OutcomeUnknown as lost:
            raise Unavailable(lost.problem) from lost
        return driver.log.window.roster_at(driver.applied.index)

    async def transfer(self, to: str = "") -> str:
        """Hand leadership to a voter; return the leader's id then. Raises Unavailable if the voter did not take over,
        OutcomeUnknown if it may yet."""
        self._check_may()
        driver = self._driver
        if to == self._node_id:
            return to
        chosen = driver.log.transfer.begin(to)
        driver.transferring(chosen)
        own = ("", self._node_id)
        try:
            await asyncio.wait_for(
                driver.until(lambda: driver.log.leader not in own or driver.log.is_leader), TRANSFER_S
            )
        except TimeoutError as late:
            raise OutcomeUnknown(f"{chosen} did not take over in {TRANSFER_S:g} s, and no node leads now") from late
        if driver.log.leader == self._node_id:
            raise Unavailable(f"{chosen} did not take over in time: this node leads on")
        return driver.log.leader

    async def _applied(self, index: int, term: int) -> None:
        """Return once the entry at ``index``, which this node appended in ``term``, is applied.

        Raises OutcomeUnknown if leadership was lost before.
        """
        leadership = self._driver.leadership
        await self._driver.until(lambda: leadership.term != term or self._driver.applied.index >= index)
        if leadership.term != term:
            raise OutcomeUnknown("leadership was lost before the change was committed")

    def _check_leads(self) -> None:
        self._driver.check_running()
        if not self._driver.leadership.is_elected:
            raise self._driver.leadership.not_leader()

    def _check_may(self) -> None:
        """Check the caller's rights right before the change is appended, or begun."""
        self._check_leads()
        pipeline, caller = self._driver.pipeline, CALLER.get()
        if caller is not None:
            newest = pipeline.newest_ts
            refusal = denial(self._roles(), caller, self._now_ms, lambda: pipeline.reader(newest))
            if refusal is not None:
                raise refusal

    async def _made(self, entry: Entry | None) -> Roster:
        driver = self._driver
        # If nothing is left to change, the change that did it may still be uncommitted.
        index, term = driver.log.last if entry is None else (entry.index, entry.term)
        driver.schedule()
        try:
            await self._applied(index, term)
        except Unavailable as stopped:
            raise OutcomeUnknown(f"{stopped.problem}; the change is in its log, and may be made by others") from stopped
        return driver.log.roster
