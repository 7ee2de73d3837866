"""Engines for tests: the real one in a temporary directory, alone or with the log files beside it."""

from __future__ import annotations

from pathlib import Path

from cortado.store.engine.data_directory import Identity
from cortado.store.engine.lmdb_engine import LmdbEngine
from cortado.store.server.stores import Stores

IDENTITY = Identity("cluster-a", "node-1", "storage-1")


def open_lmdb(path: Path, *, map_bytes: int | None = 1 << 30, reserve_bytes: int | None = None) -> LmdbEngine:
    """Open LMDB without waiting for the disk: tests do not miss data that a power cut would lose."""
    return LmdbEngine.open(
        path, new_identity=lambda: IDENTITY, map_bytes=map_bytes, reserve_bytes=reserve_bytes, sync=False
    )


def open_stores(path: Path, identity: Identity = IDENTITY) -> Stores:
    """Open both stores as a server does, but without LMDB's syncs."""
    return Stores.open(path, new_identity=lambda: identity, map_bytes=16 << 20, sync=False)


def open_made(path: Path) -> LmdbEngine:
    """Open the engine of a stopped node's directory, to change it behind the node's back."""

    def never() -> Identity:
        raise AssertionError(f"{path} holds no node's data")

    return LmdbEngine.open(path, new_identity=never)
