"""Fetching one snapshot: from a peer, through streams that may break, into a file that goes on where it stopped.

Bytes are written in slices on the scan thread, and synced every few of them. Written bytes count as received; if a
stream breaks, the next one asks for the bytes that follow. The header is looked at as soon as it is there, so that a
snapshot of another cluster or place costs one slice and not all of it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Final

from cortado.errors import CortadoError, Unavailable
from cortado.raft.log import SnapshotMeta
from cortado.store.process.snapshot_files import check_room, fetched_name
from cortado.store.replica.context import GroupContext
from cortado.store.replica.snapshots.file_format import FileHeader, damaged
from cortado.store.replica.snapshots.file_reader import check_header, header_in
from cortado.store.replica.snapshots.sender import any_since

_HEADER_BYTES_MAX: Final = 1 << 20


class Fetch:
    """One snapshot on its way from ``peer``; ``offered`` is None if the leader offered no certain snapshot. A snapshot
    of a place below ``index_min`` is refused."""

    def __init__(
        self,
        group: GroupContext,
        peer: str,
        offered: SnapshotMeta | None,
        index_min: int = 0,
    ) -> None:
        self.peer = peer
        self._offered = offered
        self._transport = group.process.transport
        self._files = group.process.snapshot_files
        self._run_scan = group.process.scan
        self._settings = group.process.snapshot_settings
        self._cluster_id = group.process.identity.cluster_id
        self._group_id = group.of.group_id
        self._index_min = index_min
        self._pending = bytearray()
        self._synced_bytes = 0
        self.snapshot_id = any_since(index_min) if offered is None else offered.snapshot_id
        self.header: FileHeader | None = None
        self.received_bytes = 0

    @property
    def name(self) -> str:
        return fetched_name(self._group_id, self.snapshot_id)

    @property
    def size_bytes(self) -> int:
        """0 if it is not known."""
        return 0 if self._offered is None else self._offered.size_bytes

    def restart(self) -> None:
        """Drop the received bytes: begin again."""
        self.received_bytes = self._synced_bytes = 0
        self.header = None

    async def attempt(self) -> bool:
        """Receive until the stream ends. Return True if all is here, and durable; else another attempt goes on.

        Raises the transport's errors, DataLoss if this is not the snapshot that was offered, ResourceExhausted.
        """
        left_bytes = max(self.size_bytes - self.received_bytes, 0)
        await self._run_scan(lambda: check_room(self._files, left_bytes + self._settings.reserve_bytes))
        self._pending.clear()
        stream = self._transport.fetch_snapshot(self.peer, self._group_id, self.snapshot_id, self.received_bytes)
        try:
            async for piece in stream:
                self._pending += piece
                if len(self._pending) >= self._settings.slice_bytes:
                    await self._flush()
        finally:
            await _close(stream)
        await self._flush()
        if self.header is None or (self.size_bytes and self.received_bytes < self.size_bytes):
            return False
        await self._run_scan(self._sync)
        return True

    async def _flush(self) -> None:
        """Write the pending bytes, once they are known to be part of the right snapshot."""
        if self.header is None and not self._read_header():
            return
        data, self._pending = bytes(self._pending), bytearray()
        if self.size_bytes and self.received_bytes + len(data) > self.size_bytes:
            raise damaged(f"its peer sends more than the {self.size_bytes} bytes that it offered")
        name, offset = self.name, self.received_bytes

        def write() -> None:
            check_room(self._files, len(data) + self._settings.reserve_bytes)
            if data:
                self._files.write(name, offset, data)

        await self._run_scan(write)
        self.received_bytes += len(data)
        if self.received_bytes - self._synced_bytes >= self._settings.sync_bytes:
            await self._run_scan(self._sync)

    def _sync(self) -> None:
        try:
            self._files.sync(self.name)
        except CortadoError:
            # After a failed sync it is unknown which part of the file will still be there.
            self.restart()
            raise
        self._synced_bytes = self.received_bytes

    def _read_header(self) -> bool:
        header = header_in(bytes(self._pending[:_HEADER_BYTES_MAX]))
        if header is None:
            if len(self._pending) >= _HEADER_BYTES_MAX:
                raise damaged(f"its header has more than {_HEADER_BYTES_MAX} bytes")
            return False
        check_header(header, cluster_id=self._cluster_id, group_id=self._group_id)
        if header.index < self._index_min:
            raise Unavailable(f"{self.peer} has a state of index {header.index}; {self._index_min} is needed", 1_000)
        offered = self._offered
        if offered is not None:
            expected = (offered.snapshot_id, offered.index, offered.term, offered.roster)
            if (header.snapshot_id, header.index, header.term, header.roster) != expected:
                raise damaged(f"it says {header}, offered was {offered}")
        self.snapshot_id = header.snapshot_id
        self.header = header
        return True


async def _close(stream: AsyncIterator[bytes]) -> None:
    close = getattr(stream, "aclose", None)
    if close is not None:
        await close()
