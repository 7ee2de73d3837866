"""The leader's part in large transactions: put ended ones in place, or take them away; end those not kept alive.

::

    open, and its lease has ended ──► aborted, by an entry
    committed ──► staged rows, piece by piece in the order of their keys ─► in their place, through the log ──► resolved
    aborted ────► staged rows, piece by piece in the order of their keys ─► away, through the log ────────────► resolved
    no record ──► looked for if no transaction is known ─────────────────► away, through the log

A piece is found in the applied state, beside the loop, and evaluated at append: values that a writer has moved since
are left alone. Payloads travel again, so that replicas do nothing but put bytes. This keeps no state that a next leader
would miss: it begins with the first staged row that is left.

An operator may give up a record that is damaged everywhere; then its rows have no transaction. They belong to none (L8)
and block none, but they take room that would never be found.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Final

from cortado.errors import DataLoss
from cortado.store.clock.timestamp import TIMESTAMP_BYTES, Timestamp
from cortado.store.engine.interface import Space
from cortado.store.keys.keyspace import STAGED_SPACE, key_of_staged, prefix_range, staged_range
from cortado.store.keys.types import LogicalKey
from cortado.store.mvcc.evaluation import Evaluate, Evaluation
from cortado.store.mvcc.many_versions import encode_contents
from cortado.store.mvcc.reader import Reader, logical_of
from cortado.store.mvcc.staged import TRANSACTION_ID_BYTES, LargeTransaction, Staged, Unresolved
from cortado.store.mvcc.versions import PAYLOAD, PUT_KIND, suffix_of, unexpired
from cortado.store.replica.context import GroupContext
from cortado.store.replica.driver import Driver
from cortado.store.staging.records import expire, forget, is_leased, records_of, resolve
from cortado.store.staging.stage import Piece, put_in_place, take_strays_away

_LOG: Final = logging.getLogger(__name__)

LOOK_EVERY_S: Final = 0.2
KEPT_MS: Final = 24 * 3_600_000
"""The record of an ended one is kept this long."""
APPLICATION_KEPT_MS: Final = 3_600_000
"""The record of an application's is kept this long; its number is kept for ever: a stream makes one a second."""
_FORGET_EVERY_MS: Final = 60_000.0
"""The time between looks for records to forget, and for rows without one."""
_FORGOTTEN_AT_ONCE: Final = 100
_PIECE_ITEMS: Final = 4_000
_PIECE_BYTES: Final = 2 << 20


class LargeTransactions:
    """One replica's; :meth:`run` is the duty of a leader. All methods run on the loop."""

    def __init__(self, group: GroupContext, driver: Driver, *, write: Callable[[Evaluate], Awaitable[object]]) -> None:
        """``write`` returns once it is committed; it may use the disk's reserve."""
        self._group = group
        self._driver = driver
        self._write = write
        self._records = group.machine.features.large_transactions
        self._monotonic_ms = group.process.monotonic_ms
        self.placed = 0
        """How many staged values this node has put in place, or taken away, as a leader since its start."""

    async def run(self) -> None:
        """Do so for as long as this node leads."""
        forget_from_ms = 0.0
        while True:
            for transaction in list(self._unresolved.all.values()):
                try:
                    await self._go_on(transaction)
                except DataLoss as damage:
                    # It is repaired, or an operator gives it up: others go on meanwhile.
                    _LOG.warning("transaction %s waits: %s", transaction.transaction_id.hex(), damage)
            if self._monotonic_ms() >= forget_from_ms:
                forget_from_ms = self._monotonic_ms() + _FORGET_EVERY_MS
                await self._forget()
                await self._sweep()
            await asyncio.sleep(LOOK_EVERY_S)

    async def _go_on(self, transaction: LargeTransaction) -> None:
        if transaction.is_open:
            await self._expire(transaction.transaction_id)
        else:
            await self._put_in_place(transaction)

    @property
    def _unresolved(self) -> Unresolved:
        return self._records.durable

    @property
    def _applied(self) -> Reader:
        return self._group.machine.snapshot(self._driver.applied.last_ts)

    async def _expire(self, transaction_id: bytes) -> None:
        if not is_leased(self._applied, transaction_id):
            await self._write(lambda reader, _ts: expire(reader, transaction_id))

    async def _forget(self) -> None:
        clock = self._group.process.clock
        long_ago = [
            record.transaction_id
            for record, version in await self._group.process.scan(lambda: records_of(self._applied))
            if record.is_resolved
            and _age_ms(version.ts, clock.physical_ms, clock.epoch)
            > (APPLICATION_KEPT_MS if record.application else KEPT_MS)
        ]
        for begin in range(0, len(long_ago), _FORGOTTEN_AT_ONCE):
            await self._write(partial(_forget, long_ago[begin : begin + _FORGOTTEN_AT_ONCE]))

    async def _put_in_place(self, transaction: LargeTransaction) -> None:
        """Move all that it has staged. Raises DataLoss if some of it is damaged here."""
        for start, end in transaction.ranges:
            position: LogicalKey | None = staged_range(start, end)[0]
            behind = staged_range(start, end)[1]
            while position is not None:
                looked_ts = self._driver.applied.last_ts
                found, position = await self._group.process.scan(partial(self._look, transaction, position, behind))
                if found.stored:
                    await self._write(self._placing(found, looked_ts))
                    self.placed += len(found.stored)
        await self._write(lambda reader, _ts: resolve(reader, transaction.transaction_id))
        resolved = self._group.log.durable_commit_index
        await self._driver.until(lambda: self._driver.applied.index >= resolved)

    def _look(
        self, transaction: LargeTransaction, start: LogicalKey, end: LogicalKey
    ) -> tuple[Piece, LogicalKey | None]:
        """Return the next piece that it has staged, and the place to go on at, None at the end."""
        stored: list[bytes] = []
        contents: dict[LogicalKey, bytes] = {}
        found, resume = self._page(start, end)
        for key, payload in found:
            if payload[:TRANSACTION_ID_BYTES] != transaction.transaction_id:
                continue
            stored.append(key)
            staged_key = logical_of(key)
            content = transaction.content_of(staged_key, payload)
            if content is not None:
                # The newest version of a key comes first, and includes the others.
                contents.setdefault(staged_key, content)
        if transaction.commit_ts is None:
            return Piece(stored, []), resume
        suffix = suffix_of(transaction.commit_ts)
        engine_keys = [key_of_staged(key) + suffix for key in contents]
        return Piece(stored, encode_contents(engine_keys, list(contents.values()))), resume

    def _page(self, start: LogicalKey, end: LogicalKey) -> tuple[list[tuple[bytes, bytes]], LogicalKey | None]:
        """Return the next staged payloads by stored key, and the place to go on at (None: end). Raises DataLoss."""
        store = self._group.store
        doubted = store.suspect
        with store.tree_reported(), store.engine.read() as txn:
            keys, values, is_end = txn.page(Space.DATA, start, end, max_items=_PIECE_ITEMS, max_bytes=_PIECE_BYTES)
        resume = None if is_end else LogicalKey(keys[-1] + b"\0")
        store.check_trusted(start, end if resume is None else resume, doubted)
        store.check_intact(keys, values)
        found: list[tuple[bytes, bytes]] = []
        for key, value in zip(keys, values, strict=True):
            if value[0] == PUT_KIND:
                found.append((key, value[PAYLOAD]))
            elif (version := unexpired(key, value, key[-TIMESTAMP_BYTES:])) is not None:
                found.append((key, version.payload))
        return found, resume

    async def _sweep(self) -> None:
        """Take away staged values without a transaction, once no transaction is unresolved: its rows are many."""
        start, end = prefix_range(STAGED_SPACE)
        position: LogicalKey | None = start
        while position is not None and not self._unresolved:
            found, position = await self._group.process.scan(partial(self._page, position, end))
            if found:
                _LOG.warning("%d staged values are looked at that no transaction is known of", len(found))
                await self._write(_taking_away(found))

    def _placing(self, piece: Piece, looked_ts: Timestamp) -> Evaluate:
        def evaluate(reader: Reader, _commit_ts: Timestamp) -> Evaluation:
            is_whole = self._records.moved_ts <= looked_ts
            return put_in_place(piece if is_whole else piece.without_moved(reader))

        return evaluate


def _taking_away(found: Sequence[tuple[bytes, bytes]]) -> Evaluate:
    """Return a write that takes these strays away. Raises DataLoss."""
    staged = [(key, Staged.decode(logical_of(key), payload)) for key, payload in found]
    return lambda reader, _ts: take_strays_away(reader, staged)


def _age_ms(ts: Timestamp, now_ms: int, epoch: int) -> int:
    """Return the age by the wall clock. The age of an ended epoch's timestamp is unknown, and counts as old."""
    return now_ms - ts.wall_ms if ts.epoch == epoch else KEPT_MS + 1


def _forget(ids: Sequence[bytes], reader: Reader, _commit_ts: Timestamp) -> Evaluation:
    return forget(reader, ids)
