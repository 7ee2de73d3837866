"""The bounds of making, bringing and installing snapshots, each with its unit and the cost of a change."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from cortado.store.process.limits import check_bound

_LIMIT: Final = 1 << 40


@dataclass(frozen=True, slots=True)
class SnapshotSettings:
    """The settings of one node.

    - ``slice_bytes``, ``slice_items``: how much is copied, written or verified in one step on the scan thread. Larger
      ones are a little faster, and keep scans waiting for longer.
    - ``chunk_bytes``: how much is sent at a time.
    - ``sync_bytes``: how much of a file that is being fetched may be unsynced: a sync of everything at the end would
      hold the scan thread for seconds.
    - ``transaction_bytes``, ``transaction_items``: how much one transaction of an installation writes or deletes. Each
      is synced; larger ones need more memory for dirty pages.
    - ``reserve_bytes``: kept free on the disk beside a snapshot file.
    - ``keep_ms``: how long a snapshot without readers is kept (a large one for longer: a peer may be installing it),
      and the log's entries behind it. A peer that comes back later costs another copy.
    - ``heard_ms``: no snapshot is begun for a peer that was silent for longer.
    - ``retry_ms_min``, ``retry_ms_max``: waits between attempts, doubled from one to the other, with jitter.
    - ``readers_max``: streams that read snapshots at the same time; more are refused.
    """

    slice_bytes: int = 1 << 20
    slice_items: int = 4_096
    chunk_bytes: int = 256 << 10
    sync_bytes: int = 8 << 20
    transaction_bytes: int = 4 << 20
    transaction_items: int = 10_000
    reserve_bytes: int = 64 << 20
    keep_ms: int = 60_000
    heard_ms: int = 5_000
    retry_ms_min: int = 100
    retry_ms_max: int = 5_000
    readers_max: int = 16

    def check(self) -> None:
        """Raises InvalidArgument with the field, the value and the bound."""
        for name in self.__dataclass_fields__:
            low = 0 if name in ("reserve_bytes", "retry_ms_min", "retry_ms_max") else 1
            check_bound(f"snapshots.{name}", getattr(self, name), low, _LIMIT)
        check_bound("snapshots.retry_ms_max", self.retry_ms_max, self.retry_ms_min, _LIMIT)
