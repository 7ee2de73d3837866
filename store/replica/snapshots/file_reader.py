"""Reading a snapshot file: frame by frame, and whole, to verify it before it is used."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Final

from cortado.errors import NotFound
from cortado.store.engine.interface import Space
from cortado.store.mvcc.damage import Damage, damaged_keys
from cortado.store.process.snapshot_files import SnapshotFiles
from cortado.store.replica.apply.applied_state import AppliedState
from cortado.store.replica.group_range import GroupRange
from cortado.store.replica.snapshots.file_format import (
    BLOCK,
    DIGEST_BYTES,
    END,
    FRAME_HEAD_BYTES,
    HEADER,
    PREFIX_BYTES,
    Block,
    FileHeader,
    check_prefix,
    damaged,
    decode_block,
    decode_end,
    decode_header,
    frame_bytes,
    open_frame,
)

_ORDER: Final = (Space.DATA, Space.REQUESTS, Space.META)


@dataclass(frozen=True, slots=True)
class WholeFile:
    """A snapshot file, every byte verified."""

    name: str
    header: FileHeader
    state: AppliedState
    blocks_at: int
    """The place of the first block."""
    blocks: int
    size_bytes: int
    damaged: tuple[Damage, ...] = ()
    """Items that were damaged at the sender, and are so here: no member has them whole."""


def header_in(beginning: bytes) -> FileHeader | None:
    """Return the header, or None if ``beginning`` has not all of it. Raises DataLoss if there is no header."""
    if len(beginning) < PREFIX_BYTES + FRAME_HEAD_BYTES:
        return None
    check_prefix(beginning)
    end = PREFIX_BYTES + frame_bytes(beginning[PREFIX_BYTES:], PREFIX_BYTES)
    if len(beginning) < end:
        return None
    tag, body = open_frame(beginning[PREFIX_BYTES:end], PREFIX_BYTES)
    if tag != HEADER:
        raise damaged(f"its first frame has tag {tag!r}")
    return decode_header(body)


def check_header(header: FileHeader, *, cluster_id: str, group_id: int) -> None:
    """Raises DataLoss if it is of another cluster, or of another group."""
    if header.cluster_id != cluster_id:
        raise damaged(f"it is of cluster {header.cluster_id}, this node belongs to {cluster_id}")
    if header.group_id != group_id:
        raise damaged(f"it is of group {header.group_id}, not {group_id}")


class FrameReader:
    """Reads frames in their order, from ``offset`` on."""

    def __init__(self, files: SnapshotFiles, name: str, offset: int = PREFIX_BYTES) -> None:
        self._files = files
        self._name = name
        self.offset = offset

    def next(self) -> bytes:
        """Return the next whole frame, its checksum not yet looked at. Raises DataLoss if the file ends."""
        head = self._files.read(self._name, self.offset, FRAME_HEAD_BYTES)
        length = frame_bytes(head, self.offset)
        frame = self._files.read(self._name, self.offset, length)
        if len(frame) != length:
            raise damaged(f"it is cut off at byte {self.offset + len(frame)}, in a frame of {length} bytes")
        self.offset += length
        return frame

    def next_block(self) -> Block:
        """Return the next frame, which must be a block. Raises DataLoss."""
        offset = self.offset
        tag, body = open_frame(self.next(), offset)
        if tag != BLOCK:
            raise damaged(f"a frame {tag!r} stands at byte {offset} instead of a block")
        return decode_block(body)


class Verification:
    """Reads a whole file in steps of about ``slice_bytes``, for a thread that others wait for."""

    def __init__(self, files: SnapshotFiles, name: str, of: GroupRange, *, cluster_id: str, slice_bytes: int) -> None:
        self._files = files
        self._name = name
        self._of = of
        self._cluster_id = cluster_id
        self._slice_bytes = slice_bytes
        self._frames = FrameReader(files, name)
        self._digest = hashlib.blake2b(digest_size=DIGEST_BYTES)
        self._header: FileHeader | None = None
        self._state: AppliedState | None = None
        self._blocks_at = self._blocks = self._items = 0
        self._last = (0, b"")
        self._damaged: list[Damage] = []

    def step(self) -> WholeFile | None:
        """Go on; the outcome when the end is reached. Raises DataLoss if the file is damaged, or gone."""
        try:
            if self._header is None:
                self._begin()
            stop_at = self._frames.offset + self._slice_bytes
            while self._frames.offset < stop_at:
                offset = self._frames.offset
                frame = self._frames.next()
                tag, body = open_frame(frame, offset)
                if tag == END:
                    return self._end(body)
                self._digest.update(frame)
                self._block(tag, body, offset)
        except NotFound as gone:
            raise damaged(f"its file {gone.name} is gone") from gone
        return None

    def _begin(self) -> None:
        prefix = self._files.read(self._name, 0, PREFIX_BYTES)
        check_prefix(prefix)
        frame = self._frames.next()
        self._header = header_in(prefix + frame)
        assert self._header is not None
        check_header(self._header, cluster_id=self._cluster_id, group_id=self._of.group_id)
        self._digest.update(prefix + frame)
        self._blocks_at = self._frames.offset

    def _block(self, tag: bytes, body: bytes, offset: int) -> None:
        if tag != BLOCK:
            raise damaged(f"a frame {tag!r} stands at byte {offset} instead of a block")
        space, keys, values = decode_block(body)
        start, end = self._of.bounds(space)
        first = (_ORDER.index(space), keys[0] if keys else b"")
        if not keys or first <= self._last or keys[0] < start or keys[-1] >= end:
            raise damaged(f"the block at byte {offset} is not in its place")
        self._last = (first[0], keys[-1])
        if space is Space.META:
            self._state = AppliedState.decode(values[0])
        else:
            self._damaged += [Damage.at(space, key) for key in damaged_keys(keys, values)]
        self._blocks += 1
        self._items += len(keys)

    def _end(self, body: bytes) -> WholeFile:
        end, header, state = decode_end(body), self._header, self._state
        assert header is not None
        if (end.blocks, end.items) != (self._blocks, self._items):
            raise damaged(f"it has {self._blocks} blocks and {self._items} items, not {end.blocks} and {end.items}")
        if end.digest != self._digest.digest():
            raise damaged("the digest of all its bytes is wrong")
        size_bytes = self._files.size(self._name)
        if size_bytes != self._frames.offset:
            raise damaged(f"it has {size_bytes} bytes and ends at byte {self._frames.offset}")
        if state is None or (state.index, state.term) != (header.index, header.term):
            raise damaged(f"it says that it stands at ({header.index}, {header.term}), and its state at {state}")
        return WholeFile(self._name, header, state, self._blocks_at, self._blocks, size_bytes, tuple(self._damaged))
