"""Writing a group's state into a snapshot file: one read transaction, in steps that each take a few milliseconds.

The transaction makes the copy one state: everything applied up to one entry of the log, and nothing after it, while
writes go on. It also keeps LMDB from using pages again that were freed since, so LMDB's file grows while it lasts; the
copy runs as fast as the disk takes it, and gives up when the engine runs short of room.

Everything copied is verified by the checksums that it was stored with. Damage ends the copy, so that it is repaired
first: a copy that left it out, or brought it in the place of a whole one, would lose it. But what no member has whole
(``lost``) is copied as it is, under its true key: it is as damaged there as here, and known to be, and holds up no
snapshot. If the key is in doubt, the receiver would not know which version is missing, or would answer an older one:
that ends the copy until its loss is accepted. So does an item out of its order, since a search for the next page may
pass others by.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence, Set
from contextlib import AbstractContextManager
from itertools import pairwise
from typing import Final, NoReturn

from cortado.errors import DataLoss, Unavailable
from cortado.raft.registry import Roster
from cortado.store.engine.interface import Engine, Page, ReadTransaction, Space
from cortado.store.mvcc.damage import Damage, damaged_keys, item_text
from cortado.store.mvcc.versions import is_key_right
from cortado.store.process.snapshot_files import SnapshotFiles, check_room
from cortado.store.process.snapshot_settings import SnapshotSettings
from cortado.store.replica.apply.applied_state import AppliedState
from cortado.store.replica.group_range import GroupRange
from cortado.store.replica.snapshots.file_format import (
    DIGEST_BYTES,
    Block,
    FileEnd,
    FileHeader,
    encode_beginning,
    encode_block,
    encode_end,
)
from cortado.store.replica.snapshots.marker import applied_key

_PER_ITEM_BYTES: Final = 6


class SnapshotWriter:
    """Writes one file. All methods run on the scan thread; :meth:`close` must come, also after an error."""

    def __init__(
        self,
        engine: Engine,
        files: SnapshotFiles,
        name: str,
        of: GroupRange,
        settings: SnapshotSettings,
        lost: Set[tuple[Space, bytes]] = frozenset(),
    ) -> None:
        self._engine = engine
        self._files = files
        self._name = name
        self._of = of
        self._settings = settings
        self._lost = lost
        self._scope: AbstractContextManager[ReadTransaction] | None = None
        self._txn: ReadTransaction
        self._digest = hashlib.blake2b(digest_size=DIGEST_BYTES)
        self._blocks = self._items = 0
        self._spaces = list(of.spaces)
        self._last = b""
        """The last key that was copied of this space; empty at its beginning."""
        self.size_bytes = 0
        self.damaged: list[Damage] = []
        """The damage that ended the copy, in the page that has it."""

    def begin(self) -> AppliedState:
        """Fix the state that is copied. Raises ResourceExhausted if the disk has no room for the copy, Unavailable if
        nothing was applied yet."""
        self._admit()
        self._scope = self._engine.read()
        self._txn = self._scope.__enter__()
        encoded = self._txn.get(Space.META, applied_key(self._of.group_id))
        if encoded is None:
            raise Unavailable("this replica has no state yet")
        return AppliedState.decode(encoded)

    def write_header(self, snapshot_id: str, cluster_id: str, state: AppliedState, members: Roster) -> None:
        header = FileHeader(snapshot_id, cluster_id, self._of.group_id, state.index, state.term, members)
        self._write(encode_beginning(header))

    def step(self) -> bool:
        """Copy about ``slice_bytes``. True when the file is complete.

        Raises DataLoss if a stored item is damaged, ResourceExhausted if the disk is full, or if the engine comes near
        its end while it cannot reuse pages for this copy.
        """
        # Nothing is written to the engine; this asks whether its reserve is still whole.
        self._engine.admit(0)
        space, start, end = self._spaces[0]
        page = self._page(space, start, end)
        self._check_order(space, page, end)
        self._check_intact(space, page)
        frames = []
        for block in _blocks(space, page, self._settings.slice_bytes):
            frames.append(encode_block(block))
            self._blocks += 1
        self._items += len(page.keys)
        if page.exhausted:
            del self._spaces[0]
            self._last = b""
        else:
            self._last = page.keys[-1]
            self._spaces[0] = (space, self._last + b"\x00", end)
        self._write(b"".join(frames))
        if self._spaces:
            return False
        self._write(encode_end(FileEnd(self._blocks, self._items, self._digest.digest())))
        return True

    def _check_order(self, space: Space, page: Page, end: bytes) -> None:
        """Whether the page follows the one before, with nothing between them, and its keys ascend."""
        if self._last:
            before = next(self._txn.walk(space, page.keys[0] if page.keys else end, reverse=True), (b"", None))[0]
            if before != self._last:
                self._refuse(space, [before or self._last], "what stands here is out of its order")
        strays = [right for left, right in pairwise(page.keys) if left >= right]
        if strays:
            self._refuse(space, strays, "what stands here is out of its order")

    def _check_intact(self, space: Space, page: Page) -> None:
        if space is Space.META:
            return
        wrong = damaged_keys(page.keys, page.values)
        unknown = [each for each in wrong if (space, each) not in self._lost]
        if unknown:
            self._refuse(space, unknown, "its checksum is wrong")
        values = dict(zip(page.keys, page.values, strict=True)) if wrong else {}
        in_doubt = [each for each in wrong if space is Space.DATA and not is_key_right(each, values[each])]
        if in_doubt:
            self._refuse(space, in_doubt, "no member has it whole, and its key may have been another one")

    def _refuse(self, space: Space, keys: Sequence[bytes], problem: str) -> NoReturn:
        self.damaged = [Damage.at(space, each) for each in keys]
        raise DataLoss(item_text(space, keys[0]), problem)

    def close(self) -> None:
        """End the transaction. A second call does nothing."""
        scope, self._scope = self._scope, None
        if scope is not None:
            scope.__exit__(None, None, None)

    def _page(self, space: Space, start: bytes, end: bytes) -> Page:
        settings = self._settings
        try:
            return self._txn.page(space, start, end, max_items=settings.slice_items, max_bytes=settings.slice_bytes)
        except Exception as error:
            # The transaction's scope translates the engine's own errors.
            scope, self._scope = self._scope, None
            if scope is not None:
                scope.__exit__(type(error), error, error.__traceback__)
            raise

    def _admit(self) -> None:
        """A file has no more bytes than the pages that it is copied from."""
        needed_bytes = self._engine.use().used_bytes + self._settings.reserve_bytes
        check_room(self._files, needed_bytes)

    def _write(self, data: bytes) -> None:
        if data:
            self._files.write(self._name, self.size_bytes, data)
            self._digest.update(data)
            self.size_bytes += len(data)


def _blocks(space: Space, page: Page, block_bytes: int) -> Iterator[Block]:
    """Yield a page as blocks of at most ``block_bytes``, or of one item: a page overshoots if values are large."""
    first = size_bytes = 0
    for place, (key, value) in enumerate(zip(page.keys, page.values, strict=True)):
        item_bytes = len(key) + len(value) + _PER_ITEM_BYTES
        if size_bytes + item_bytes > block_bytes and place > first:
            yield Block(space, page.keys[first:place], page.values[first:place])
            first, size_bytes = place, 0
        size_bytes += item_bytes
    if first < len(page.keys):
        yield Block(space, page.keys[first:], page.values[first:])
