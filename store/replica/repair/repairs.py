"""Every damage that is known here, and the one task that repairs it, a range at a time.

::

    report ──► a case ──► survey ──► ask a member ──► apply as far as it had ──► mend ──► survey again ... ──► repaired
                 ▲                      └─ another one, while damage is left
                 └─ later again: nobody who was asked has a whole copy, or not everybody answered

Nothing is given up for a repair: this replica goes on reading, writing, voting and leading, beside the range, and with
its whole items. If every other member has answered and has no whole copy, a case is *lost*: its items are ``DATA_LOSS``
on every replica until a member comes that has them, or an operator accepts the loss. It is looked at again from time to
time, like every other.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Set
from contextlib import suppress
from dataclasses import replace
from typing import Final, TypeAlias

from cortado.errors import CortadoError, DataLoss, InvalidArgument, Unavailable
from cortado.raft.registry import Member
from cortado.store.engine.failures import StorageFailed
from cortado.store.engine.interface import Space
from cortado.store.keys.groups import request_id_of
from cortado.store.mvcc.damage import Damage, item_text
from cortado.store.mvcc.evaluation import AcceptLoss
from cortado.store.process.range_copies import Answer, Ask
from cortado.store.process.storage_thread import run_job
from cortado.store.replica.context import GroupContext
from cortado.store.replica.repair.cases import Case, DamagedItem, Left, RepairCounts, no_copy
from cortado.store.replica.repair.ranges import (
    RANGE_BYTES_MAX,
    Mended,
    Survey,
    differs,
    mend,
    own_slice,
    standing,
    survey,
)
from cortado.store.replica.write.request_table.records import REQUEST_ID_BYTES
from cortado.store.settings.sizes import size_text

_Key: TypeAlias = tuple[Space, bytes, bytes]

_LOG: Final = logging.getLogger(__name__)

CASES_MAX: Final = 1_000
"""More are only counted; a dropped one is found again as it was the first time."""
SHOWN_MAX: Final = 100
RETRY_MS_MIN: Final = 200.0
RETRY_MS_MAX: Final = 15_000.0
REBUILD_TRIES_MAX: Final = 10
"""A comparison of everything is given up after this many tries in a row without an answer."""
_APPLIED_STEP_S: Final = 0.01
_APPLIED_STEPS_MAX: Final = 500


class Repairs:
    """All on the loop; the steps that run elsewhere share nothing with it."""

    def __init__(
        self,
        group: GroupContext,
        *,
        applied_index: Callable[[], int],
        on_repaired: Callable[[], None],
        on_failure: Callable[[BaseException], None],
    ) -> None:
        """``applied_index`` returns the node's applied index; ``on_repaired`` hears when stored items were changed,
        ``on_failure`` when the node must stop: the disk failed, or a defect was met."""
        self._engine = group.process.engine
        self._log = group.log
        self._node_id = group.node_id
        self._of = group.of
        self._transport = group.process.transport
        self._storage = group.storage_thread
        self._run_scan = group.process.scan
        self._applied_index = applied_index
        self._machine = group.machine
        self._monotonic_ms = group.process.monotonic_ms
        self._random = group.process.random
        # It is told which ranges reads may trust again.
        self._versions = group.store
        self._on_repaired = on_repaired
        self._on_failure = on_failure
        self._cases: dict[_Key, Case] = {}
        self._task: asyncio.Task[None] | None = None
        self._wake = asyncio.Event()
        self._rebuilding: asyncio.Task[int] | None = None
        self._mending = asyncio.Lock()
        self._left_out = 0
        self._is_doubt_over = False
        self._repaired = self._items_put = self._items_deleted = 0

    # --- questions of the node ---------------------------------------------------------------------------------------

    def report(self, damage: Damage) -> None:
        """Note damage that was met here. Cheap if it is known already."""
        key = (damage.space, damage.start, damage.end)
        if key in self._cases or (damage.is_of_one_key and self._cases_of(damage.space, damage.start)):
            return
        if len(self._cases) >= CASES_MAX:
            self._left_out += 1
            return
        _LOG.error("damaged here: %s", damage.what)
        self._cases[key] = Case(damage)
        self._go_on()

    def is_known(self, damage: Damage) -> bool:
        """Return whether all that is wrong in a range is known by name: then reads of the rest of it are right. Any
        thread."""
        case = self._cases.get((damage.space, damage.start, damage.end))
        return case is not None and case.is_known

    def fill(self, damage: Damage, wanted: bytes) -> None:
        """Another member has the version ``wanted`` in this range, and it is not here, even if checksums are right:
        take the others' versions. Reads of the range are to be distrusted before, and stay so until it is here."""
        self.report(damage)
        case = self._cases.get((damage.space, damage.start, damage.end))
        if case is not None:
            case.wanted.add(wanted)
            case.due_ms = 0.0
            self._go_on()

    @property
    def cases(self) -> list[Case]:
        """The damage that is known now."""
        return list(self._cases.values())

    @property
    def counts(self) -> RepairCounts:
        cases = self._cases.values()
        keys = {(each.damage.space, key) for each in cases for key in each.keys}
        damaged = len(keys) + sum(not each.keys for each in cases) + self._left_out
        return RepairCounts(damaged, self._repaired, self._items_put, self._items_deleted)

    def items(self) -> list[DamagedItem]:
        """Return the damaged items, key by key if these are known, for people: the first ones."""
        found: dict[tuple[Space, bytes | str], DamagedItem] = {}
        for case in self._cases.values():
            problem, space = case.problem or "it is being repaired", case.damage.space
            for key in sorted(case.keys):
                found.setdefault((space, key), DamagedItem(key, item_text(space, key), problem, case.is_lost))
            if not case.keys:
                found.setdefault((space, case.damage.what), DamagedItem(b"", case.damage.what, problem, case.is_lost))
            if len(found) >= SHOWN_MAX:
                break
        return list(found.values())[:SHOWN_MAX]

    def look_again(self) -> None:
        """Look at all cases now: something was done about them."""
        for case in self._cases.values():
            case.due_ms = 0.0
        self._wake.set()

    def lost(self) -> Set[tuple[Space, bytes]]:
        """Return the damaged items that no member has whole, as all members have said."""
        return {(each.damage.space, key) for each in self._cases.values() if each.is_lost for key in each.keys}

    def missing(self) -> list[Damage]:
        """Return the ranges that lack a version which another member has, as far as this replica was told."""
        return [each.damage for each in self._cases.values() if each.wanted]

    async def check_lost(self, engine_key: bytes) -> AcceptLoss:
        """Look at a damaged item now, and try to repair it. If no member has a whole copy of it, return the command
        that gives it up.

        Raises InvalidArgument if nothing damaged is stored under it (any more), Unavailable if not every member has
        answered.
        """
        damage = Damage.at(Space.DATA, engine_key)
        # A search for it may pass it by where it stands: then the range is known in which it was met.
        known = self._cases_of(Space.DATA, engine_key) or self._cases_of(Space.REQUESTS, engine_key)
        if not known and await self._is_damaged(damage):
            self.report(damage)
            known = [self._cases.get((damage.space, damage.start, damage.end)) or Case(damage)]
        for case in known:
            await self._try((case.damage.space, case.damage.start, case.damage.end), case)
        met = [case for case in known if engine_key in case.keys]
        if not met:
            problem = "the leader has nothing damaged under this key; accept what the leader itself lists as lost"
            raise InvalidArgument("key", problem, damage.what)
        for case in met:
            if not case.is_lost:
                raise Unavailable(
                    f"{damage.what} may not be lost: {case.problem}; start or remove the members that do not answer"
                )
        is_key_right = any(engine_key in case.right_keys for case in met)
        if met[0].damage.space is Space.DATA:
            return AcceptLoss(engine_key, is_key_right)
        doubted = self._versions.suspect_requests
        ends = [doubted[case.damage] for case in met if case.damage in doubted]
        if not ends:
            # Its id may have turned, and its whole neighbours are not known before the patrol's next pass.
            raise Unavailable(f"which requests {damage.what} may be is not known before the patrol's next pass")
        below = request_id_of(max(ends))[:REQUEST_ID_BYTES]
        return AcceptLoss(engine_key, False, below.ljust(REQUEST_ID_BYTES, b"\0"))

    async def _is_damaged(self, damage: Damage) -> bool:
        """Return whether something in this range may be, by one look: a whole item raises no alarm."""
        try:
            found, resume = await self._survey(damage, b"", False)
        except DataLoss:
            return True
        return found is not None or bool(resume)

    def _cases_of(self, space: Space, key: bytes) -> list[Case]:
        """Return those in which an item that is stored under this key is known to be damaged."""
        return [each for each in self._cases.values() if each.damage.space is space and key in each.keys]

    async def rebuild(self) -> int:
        """Compare everything with another member's, and make it the same; returns how many items were changed.

        It goes on where the caller leaves. Raises Unavailable if no other member can be asked.
        """
        if self._rebuilding is None or self._rebuilding.done():
            self._rebuilding = asyncio.get_running_loop().create_task(self._rebuild())
        return await asyncio.shield(self._rebuilding)

    async def stop(self) -> None:
        """End what runs, between two transactions."""
        for task in (self._task, self._rebuilding):
            if task is not None and not task.done():
                task.cancel()
                await asyncio.wait([task])
        self._task = self._rebuilding = None

    # --- the task ----------------------------------------------------------------------------------------------

    def _go_on(self) -> None:
        self._wake.set()
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._work())

    async def _work(self) -> None:
        try:
            while self._cases:
                key, case = min(self._cases.items(), key=lambda item: item[1].due_ms)
                wait_ms = case.due_ms - self._monotonic_ms()
                if wait_ms > 0:
                    await self._wait(wait_ms)
                else:
                    await self._try(key, case)
        except Exception as error:
            self._on_failure(error)

    async def _wait(self, ms: float) -> None:
        """Until then, or until something new is reported."""
        self._wake.clear()
        timer = asyncio.get_running_loop().call_later(ms / 1000, self._wake.set)
        try:
            await self._wake.wait()
        finally:
            timer.cancel()

    async def _try(self, key: _Key, case: Case) -> None:
        await self._look_at(key, case)
        if self._is_doubt_over:
            # Load again: items were put in place while reads of their range were still refused.
            self._is_doubt_over = False
            try:
                await run_job(self._storage, self._machine.repaired)
            except StorageFailed as failed:
                self._on_failure(failed)
            else:
                self._on_repaired()

    async def _look_at(self, key: _Key, case: Case) -> None:
        async with self._mending:
            case.tries += 1
            problem, keys, right_keys, is_lost, is_known = "", set[bytes](), set[bytes](), True, True
            try:
                if case.wanted and (left := await self._bring(case)) is not None:
                    problem, is_lost, is_known = left.problem, left.is_lost, False
                    keys.update(left.right_keys)
                    right_keys |= left.right_keys
                resume, is_looked_at, has_strays = b"", False, False
                while not is_looked_at:
                    found, resume = await self._survey(case.damage, resume, has_strays)
                    has_strays |= found is not None and bool(found.strays)
                    if found is not None and (outcome := await self._repair(found)) is not None:
                        problem, is_lost = outcome.problem, is_lost and outcome.is_lost
                        is_known &= outcome.is_known
                        keys.update(found.damaged)
                        right_keys |= outcome.right_keys
                    is_looked_at = not resume
            except CortadoError as failed:
                problem, is_lost, is_known = failed.message(), False, False
        case.keys, case.right_keys = frozenset(keys), frozenset(right_keys)
        case.problem, case.is_lost = problem, bool(problem) and is_lost
        case.is_known = is_known
        if not problem and case.damage.space is Space.REQUESTS:
            self._versions.trust_requests(case.damage)
        elif is_known and case.damage.space is Space.DATA:
            doubted = self._versions.suspect
            self._versions.trust(case.damage.start, case.damage.end, but=self.missing())
            self._is_doubt_over |= not set(doubted) <= set(self._versions.suspect)
        elif not case.damage.is_of_one_key:
            self._versions.distrust(case.damage)
        if not problem and case.wanted:
            # It was told while this was looked at.
            case.due_ms = 0.0
            return
        if not problem:
            if self._cases.pop(key, None) is not None:
                self._left_out = 0
                _LOG.warning("whole again: %s", case.damage.what)
            return
        if case.tries == 1:
            _LOG.error("still damaged: %s: %s", case.damage.what, problem)
        wait_ms = min(RETRY_MS_MAX, RETRY_MS_MIN * 2 ** min(case.tries, 16))
        case.due_ms = self._monotonic_ms() + wait_ms * self._random.uniform(0.5, 1.0)

    async def _bring(self, case: Case) -> Left | None:
        """Take the versions that are missing, each by its name: a key may have more newer ones than an answer holds.
        Then take what else the others have of the range and can tell, in pieces. None if nothing is missing."""
        wanted, left = sorted(case.wanted), list[Left]()
        for key in wanted:
            found = await self._bring_version(Ask(case.damage.space, key, key + b"\x00"))
            left.extend([] if found is None else [found])
        if left:
            problems = "; ".join(each.problem for each in left)
            keys = {key for each in left for key in each.right_keys}
            return Left(problems, all(each.is_lost for each in left), False, keys)
        case.wanted.difference_update(wanted)
        start = case.damage.start
        with suppress(Unavailable):
            while start < case.damage.end:
                _, start = await self._rebuild_piece(Ask(case.damage.space, start, case.damage.end), exactly=False)
        return None

    async def _bring_version(self, ask: Ask) -> Left | None:
        """None if the version is here now, or if the members have said that they have none, since it was collected. It
        is lost if no copy is whole, and no member can tell that it was collected."""
        own = await self._run_scan(lambda: own_slice(self._engine, self._of, ask))
        peers, silent, is_damaged, is_nowhere = self._peers(), list[str](), False, False
        for member in peers:
            try:
                theirs = await self._ask(member.node_id, ask)
                await self._mend(own, theirs)
                if await self._run_scan(lambda: self._has(ask.space, ask.start)):
                    return None
                self._check_said_all(member.node_id, theirs.index, own.index)
                if theirs.items and theirs.index >= own.index:
                    raise Unavailable("what it has may have been removed here since", 1_000)
                is_damaged |= ask.start in theirs.damaged
                is_nowhere |= not theirs.items
            except CortadoError as failed:
                silent.append(f"{member.node_id}: {failed.message()}")
        if silent:
            return Left(f"it was not brought yet ({'; '.join(silent)})", False, False, frozenset())
        return None if is_nowhere and not is_damaged else Left(no_copy(len(peers)), True, False, {ask.start})

    def _has(self, space: Space, key: bytes) -> bool:
        with self._engine.read() as txn:
            return txn.get(space, key) is not None

    async def _survey(self, damage: Damage, resume: bytes, has_strays: bool) -> tuple[Survey | None, bytes]:
        if not damage.end:
            raise DataLoss("a page of the data file", "it cannot be repaired in place: replace this node")
        return await self._run_scan(lambda: survey(self._engine, self._of, damage, resume, has_strays=has_strays))

    async def _repair(self, found: Survey) -> Left | None:
        """Ask one member after the other; None if all is whole."""
        silent: list[str] = []
        right_keys = set(found.right_keys)
        peers = self._peers()
        for member in peers:
            try:
                theirs = await self._ask_all(member.node_id, found.ask)
                right_keys |= theirs.right_keys
                if theirs.end < found.ask.end:
                    problem = f"more than {size_text(RANGE_BYTES_MAX)} are damaged in a row: replace this node"
                    raise Unavailable(problem, 1_000)
                if not (await self._mend(found, theirs)).left:
                    self._repaired += 1
                    return None
                self._check_said_all(member.node_id, theirs.index, found.index)
            except CortadoError as failed:
                silent.append(f"{member.node_id}: {failed.message()}")
        is_known = not found.strays and right_keys.issuperset(found.damaged)
        if silent:
            return Left(f"no whole copy was found yet ({'; '.join(silent)})", False, is_known, right_keys)
        return Left(no_copy(len(peers)), True, is_known, right_keys)

    def _check_said_all(self, node_id: str, index: int, own_index: int) -> None:
        """Raises Unavailable unless a member that has no whole copy now will have none later: it has applied as much as
        this replica, or holds nothing yet, or waits for a snapshot behind all of its log, as its leader knows."""
        matched = [each.match_index for each in self._log.progress if each.node_id == node_id]
        waits = node_id in self._log.window.snapshot_needs and bool(matched) and index >= matched[0]
        if 0 < index < own_index and not waits:
            raise Unavailable(f"it is behind, at entry {index} of {own_index}", 1_000)

    async def _ask_all(self, node_id: str, ask: Ask) -> Answer:
        """Read a member's items in a range, answer by answer, up to ``RANGE_BYTES_MAX``. A range that is damaged is
        mended as a whole: a turned key goes only when its true name comes, which may be anywhere in it."""
        theirs = await self._ask(node_id, ask)
        size_bytes = theirs.size_bytes
        while theirs.end < ask.end and size_bytes <= RANGE_BYTES_MAX:
            more = await self._ask(node_id, Ask(ask.space, theirs.end, ask.end))
            size_bytes += more.size_bytes
            theirs = theirs.joined(more)
        return theirs

    async def _ask(self, node_id: str, ask: Ask) -> Answer:
        answer = await self._transport.read_range(node_id, self._of.group_id, ask)
        answer.check(ask)
        for _ in range(_APPLIED_STEPS_MAX):
            if self._applied_index() >= answer.index:
                return answer
            await asyncio.sleep(_APPLIED_STEP_S)
        raise Unavailable(f"this replica does not come as far as entry {answer.index}, where {node_id} is", 1_000)

    async def _mend(self, found: Survey, theirs: Answer, *, exactly: bool = False) -> Mended:
        def run() -> Mended:
            usable = theirs
            if theirs.items and self._machine.removals.may_touch(theirs.index, found.ask.start, found.ask.end):
                if exactly:
                    raise Unavailable("what it has of the range may have been removed here since", 1_000)
                # If damaged, an item that still stands here was not removed. A member that waits for a snapshot stays
                # behind until this is whole, and may have the only copy.
                usable = replace(theirs, items=standing(self._engine, found.ask.space, theirs.items))
            mended = mend(self._engine, self._of, found, usable, exactly=exactly)
            if mended.put or mended.deleted:
                # Here, where nothing is applied meanwhile.
                self._machine.repaired()
            return mended

        try:
            mended = await run_job(self._storage, run)
        except StorageFailed as failed:
            self._on_failure(failed)
            raise Unavailable("the disk failed under a repair") from failed
        self._items_put += mended.put
        self._items_deleted += mended.deleted
        if mended.put or mended.deleted:
            _LOG.warning("repaired: %d items put, %d deleted", mended.put, mended.deleted)
            self._on_repaired()
        return mended

    def _peers(self) -> list[Member]:
        """Return the other members that have joined, the leader first."""
        others = self._log.roster.others(self._node_id)
        joined = [each for each in others if each.storage_id]
        return sorted(joined, key=lambda each: each.node_id != self._log.leader)

    # --- all of it ---------------------------------------------------------------------------------------------

    async def _rebuild(self) -> int:
        changed = tries = 0
        for space in (Space.DATA, Space.REQUESTS):
            start, end = self._of.bounds(space)
            while start < end:
                try:
                    # A lock for each piece: damage that is met meanwhile is not kept waiting.
                    async with self._mending:
                        items, start = await self._rebuild_piece(Ask(space, start, end))
                except Unavailable:
                    tries += 1
                    if tries == REBUILD_TRIES_MAX:
                        raise
                    await asyncio.sleep(self._random.uniform(0.2, 1.0))
                else:
                    changed += items
                    tries = 0
        _LOG.warning("compared with the other members: %d items changed", changed)
        return changed

    async def _rebuild_piece(self, ask: Ask, *, exactly: bool = True) -> tuple[int, bytes]:
        """Make the first piece of a range the same as another member's, or not ``exactly``: put missing items, replace
        damaged ones. Returns how many items changed, and where to go on."""
        own = await self._run_scan(lambda: own_slice(self._engine, self._of, ask))
        best: Answer | None = None
        problems: list[str] = []
        for member in self._peers():
            try:
                ask_member = self._ask_all if own.damaged else self._ask
                theirs = await ask_member(member.node_id, own.ask)
            except CortadoError as failed:
                problems.append(f"{member.node_id}: {failed.message()}")
                continue
            if best is None or len(theirs.damaged) < len(best.damaged):
                best = theirs
            if not best.damaged and best.index >= own.index:
                break
        if best is None:
            raise Unavailable(f"no other member's copy can be had ({'; '.join(problems) or 'there is none'})", 1_000)
        chosen = best
        if not await self._run_scan(lambda: differs(self._engine, self._of, own.ask, chosen)):
            return 0, chosen.end
        mended = await self._mend(own, chosen, exactly=exactly)
        for key in mended.left:
            self.report(Damage.at(ask.space, key))
        return mended.put + mended.deleted, chosen.end
