"""One suite over both engines: tests that take ``engine`` run once on LMDB and once in memory."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from cortado.store.engine.interface import Engine
from support.engines import open_lmdb
from support.memory_engine import MemoryEngine


@pytest.fixture(params=["lmdb", "memory"])
def engine(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Engine]:
    opened: Engine = MemoryEngine() if request.param == "memory" else open_lmdb(tmp_path / "data")
    yield opened
    opened.close()
