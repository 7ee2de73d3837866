"""An engine on a disk, for all tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from cortado.store.engine.lmdb_engine import LmdbEngine
from support.engines import open_lmdb


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[LmdbEngine]:
    opened = open_lmdb(tmp_path / "data")
    yield opened
    opened.close()
