"""Putting a snapshot's state in the place of the old one, in transactions of bounded size.

::

    mark()     the marker stands: from here on the replica has no state
    clear()    ... the old items go, some thousands a transaction
    load()     ... the blocks come in, some megabytes a transaction
    finish()   the last block, which is the applied state; how to reset the log; the marker goes: one transaction

A crash before ``mark`` is durable leaves the old state, one after ``finish`` the new one; in between the marker stands,
and the next start does it all again from the file, which was synced before. If the log was not reset, a start after
``finish`` does it (:mod:`cortado.store.host.opening`); after that the reset is forgotten
(:meth:`.StateMachine.forget_log_reset`). Each method is one transaction, run on the storage thread; one that raised
ResourceExhausted did nothing, and may be run again.
"""

from __future__ import annotations

from cortado.errors import NotFound, ResourceExhausted
from cortado.store.engine.interface import Engine, Space
from cortado.store.process.snapshot_files import SnapshotFiles
from cortado.store.process.snapshot_settings import SnapshotSettings
from cortado.store.replica.apply.applied_state import AppliedState
from cortado.store.replica.feed.index import index_range
from cortado.store.replica.group_range import GroupRange
from cortado.store.replica.snapshots.file_format import Block, damaged
from cortado.store.replica.snapshots.file_reader import FrameReader, WholeFile
from cortado.store.replica.snapshots.marker import Marker, marker_key, reset_key


class Installation:
    """The installation of one verified file. Raises DataLoss if the file changed since it was verified."""

    def __init__(
        self, engine: Engine, files: SnapshotFiles, whole: WholeFile, of: GroupRange, settings: SnapshotSettings
    ) -> None:
        self._engine = engine
        self._of = of
        self._settings = settings
        self._whole = whole
        self._frames = FrameReader(files, whole.name, whole.blocks_at)
        self._ahead: Block | None = None
        self._gathered: list[Block] = []
        self._blocks_left = whole.blocks
        self._to_clear = [(*self._of.bounds(space), space) for space in (Space.DATA, Space.REQUESTS)]
        # The index lists the entries that were applied here one by one: it begins anew behind the snapshot.
        self._to_clear.append((*index_range(of.group_id), Space.CHANGES))

    def check_fits(self) -> None:
        """Raises ResourceExhausted if the state can't fit, even in the place of the old one: it is kept then."""
        use = self._engine.use()
        room_bytes = min(use.limit_bytes, use.used_bytes + self._engine.disk_free_bytes())
        if self._whole.size_bytes > room_bytes:
            problem = f"a snapshot of {self._whole.size_bytes} bytes does not fit: there is room for {room_bytes} bytes"
            raise ResourceExhausted(problem, 1_000, "disk", room_bytes)

    def mark(self) -> None:
        header = self._whole.header
        write_marker(self._engine, self._of.group_id, Marker(header.snapshot_id, header.index, header.term))

    def clear(self) -> bool:
        """Delete some of the old state. True when all is gone."""
        items_max = self._settings.transaction_items
        with self._engine.write() as txn:
            start, end, space = self._to_clear[0]
            deleted = txn.delete_range(space, start, end, max_items=items_max)
        if deleted < items_max:
            del self._to_clear[0]
        return not self._to_clear

    def load(self) -> bool:
        """Bring some of the new state in. True when only the last block is left."""
        # Kept if the transaction fails, to be written by the next attempt.
        self._gathered = self._gathered or self._gather()
        with self._engine.write() as txn:
            for space, keys, values in self._gathered:
                txn.put_many(space, zip(keys, values, strict=True))
        self._gathered = []
        return self._blocks_left == 1 and self._ahead is None

    def finish(self, log_reset: bytes) -> AppliedState:
        """Complete it; the state to go on from. ``log_reset`` is the hard state from which the log goes on; empty if it
        goes on as it is."""
        last = self._ahead = self._ahead or self._next()
        with self._engine.write() as txn:
            txn.put_many(last.space, zip(last.keys, last.values, strict=True))
            if log_reset:
                txn.put(Space.META, reset_key(self._of.group_id), log_reset)
            txn.delete(Space.META, marker_key(self._of.group_id))
        return self._whole.state

    def _gather(self) -> list[Block]:
        """Return the next blocks, but never the last of all, as many as one transaction takes."""
        blocks: list[Block] = []
        items_left, bytes_left = self._settings.transaction_items, self._settings.transaction_bytes
        while self._ahead is not None or self._blocks_left > 1:
            block = self._ahead or self._next()
            items, size_bytes = len(block.keys), sum(map(len, block.keys)) + sum(map(len, block.values))
            if blocks and (items > items_left or size_bytes > bytes_left):
                self._ahead = block
                return blocks
            self._ahead = None
            blocks.append(block)
            items_left -= items
            bytes_left -= size_bytes
        return blocks

    def _next(self) -> Block:
        try:
            block = self._frames.next_block()
        except NotFound as gone:
            raise damaged(f"its file {gone.name} is gone") from gone
        self._blocks_left -= 1
        return block


def read_marker(engine: Engine, group_id: int) -> Marker | None:
    """Return the marker that stands, if any. Raises DataLoss if a newer version wrote it."""
    with engine.read() as txn:
        encoded = txn.get(Space.META, marker_key(group_id))
    return None if encoded is None else Marker.decode(encoded)


def write_marker(engine: Engine, group_id: int, marker: Marker) -> None:
    """Durably. Raises ResourceExhausted."""
    with engine.write() as txn:
        txn.put(Space.META, marker_key(group_id), marker.encode())
