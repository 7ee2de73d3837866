"""The file that names a process's address."""

from __future__ import annotations

from pathlib import Path

import pytest

from cortado.errors import InvalidArgument
from cortado.store.ports.port_file import there_last


def test_it_is_there_once_the_block_has_ended_and_not_before(tmp_path: Path) -> None:
    path = tmp_path / "port"
    with there_last(path, "127.0.0.1:7621"):
        assert not path.exists()
    assert path.read_text() == "127.0.0.1:7621\n"
    assert path.stat().st_mode & 0o777 == 0o644
    with there_last(None, "127.0.0.1:7621"):
        pass
    assert list(tmp_path.iterdir()) == [path]


def test_one_that_cannot_be_written_is_refused_by_name_before_anything_is_said(tmp_path: Path) -> None:
    with (
        pytest.raises(InvalidArgument, match="port-file: cannot be written: No such file") as refused,
        there_last(tmp_path / "none" / "port", "127.0.0.1:7621"),
    ):
        pytest.fail("it was said")
    assert refused.value.value == str(tmp_path / "none" / "port")
