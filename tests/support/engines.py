"""Engines for tests: the real one in a temporary directory, and its twin in memory."""

from __future__ import annotations

from pathlib import Path

from cortado.store.engine.data_directory import Identity
from cortado.store.engine.lmdb_engine import LmdbEngine

IDENTITY = Identity("cluster-a", "node-1", "storage-1")


def open_lmdb(path: Path, *, map_bytes: int | None = 1 << 30, reserve_bytes: int | None = None) -> LmdbEngine:
    """Without waiting for the disk: what a test loses in a power cut it does not miss."""
    return LmdbEngine.open(
        path, new_identity=lambda: IDENTITY, map_bytes=map_bytes, reserve_bytes=reserve_bytes, sync=False
    )
