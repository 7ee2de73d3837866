"""One suite over both engines: tests that take ``engine`` run on LMDB, on LMDB with the scan kernel, and in memory."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from cortado.store.engine.interface import Engine
from cortado.store.mvcc.store import VersionStore
from support.engines import open_lmdb
from support.kernels import row_kernel
from support.memory_engine import MemoryEngine


@pytest.fixture(params=["lmdb", "kernel", "memory"])
def engine(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Engine]:
    if request.param == "kernel":
        monkeypatch.setattr(VersionStore, "kernel", row_kernel())
    opened: Engine = MemoryEngine() if request.param == "memory" else open_lmdb(tmp_path / "data")
    yield opened
    opened.close()
