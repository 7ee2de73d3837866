"""``--verify`` looks at every page of the data file; without it a large one is looked at in part."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cortado.store.engine.lmdb_engine import CHECKED_BYTES_DEFAULT, LmdbEngine
from cortado.store.server import serve
from cortado.store.server.config import ServerConfig


class Opened(Exception):
    pass


@pytest.mark.parametrize(("verify", "checked_bytes"), [(False, CHECKED_BYTES_DEFAULT), (True, None)])
def test_verify_lifts_the_bound(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, verify: bool, checked_bytes: int | None
) -> None:
    def open_engine(*_: Any, **options: Any) -> None:
        assert options["checked_bytes"] == checked_bytes
        raise Opened

    monkeypatch.setattr(LmdbEngine, "open", open_engine)
    with pytest.raises(Opened):
        serve(ServerConfig(data_dir=tmp_path, listen="127.0.0.1:0", verify=verify))
