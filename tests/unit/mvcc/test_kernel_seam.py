"""Which path reads slices, and why: a server's actions at its start, and the obstacles to the kernel."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from cortado.store.mvcc.kernel import seam
from cortado.store.mvcc.kernel.seam import Unfit, check_machine, compile_ahead, compiled_folder, load
from support.kernels import row_kernel


@pytest.fixture
def no_folders(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Return an empty folder: nothing is compiled yet; new files go there."""
    row_kernel()
    monkeypatch.setattr(seam, "_parents", lambda: [tmp_path / "there"])
    return tmp_path / "there"


def test_what_is_compiled_is_found_until_the_source_changes(no_folders: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert compiled_folder() is None
    made = compile_ahead()
    assert compiled_folder() == made
    assert [each.name for each in no_folders.iterdir()] == [made.name], "nothing half made is left"
    monkeypatch.setattr(seam, "_folder_name", lambda: f"{seam._PREFIX}another")
    assert compiled_folder() is None


def test_another_users_folder_is_read_and_not_written(no_folders: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = compile_ahead()
    before = sorted(each.stat().st_mtime_ns for each in made.rglob("*"))
    monkeypatch.setattr(seam.os, "access", lambda *_: False)
    load(made)
    assert sorted(each.stat().st_mtime_ns for each in made.rglob("*")) == before


def test_nowhere_to_keep_it_is_said_and_fails_nothing_else(no_folders: Path) -> None:
    no_folders.write_text("a file where a directory would be made")
    with pytest.raises(Unfit, match="nowhere to keep it compiled"):
        compile_ahead()


def test_a_compiler_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seam, "_COMPILERS", ("no-such-compiler",))
    with pytest.raises(Unfit, match="no-such-compiler is not installed"):
        check_machine()


def test_a_kernel_that_cannot_be_loaded_is_a_reason_not_a_crash(no_folders: Path) -> None:
    """Without compiling, a kernel that is not compiled yet cannot run either."""
    no_folders.mkdir()
    text = "import sys; from pathlib import Path; from cortado.store.mvcc.kernel.seam import *; load(Path(sys.argv[1]))"
    done = subprocess.run(
        [sys.executable, "-c", text, str(no_folders)],
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
        capture_output=True,
        text=True,
    )
    assert "Unfit: it cannot be loaded: " in done.stderr, done.stderr
