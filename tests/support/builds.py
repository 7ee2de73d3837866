"""Other builds of Cortado, to run beside this one: an earlier one from version control, and ones that might come."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = ("proto", "raft", "schema", "src", "store")
FROM = "CORTADO_UPGRADE_FROM"
"""A commit to begin at, instead of the one before the last change of the source."""


@dataclass(frozen=True, slots=True)
class Build:
    """The source in ``folder``, which is that of ``commit`` if it is of one."""

    commit: str
    folder: Path

    @property
    def path(self) -> str:
        """What PYTHONPATH must be for this build to be imported. It stands before what is installed."""
        return str(self.folder / "src")

    @property
    def cortado(self) -> Sequence[str]:
        """Its command line, in this environment."""
        return ("env", f"PYTHONPATH={self.path}", sys.executable, "-m", "cortado.store.cli")


def earlier_build(folder: Path) -> Build:
    """The build before the last change of the source. Skips the test where there is no history of it."""
    commit = os.environ.get(FROM) or f"{_git('log', '-n', '1', '--format=%H', '--', *SOURCES) or 'HEAD'}~1"
    found = _git("rev-parse", "--verify", "--quiet", f"{commit}^{{commit}}")
    if not found:
        pytest.skip(f"version control has no {commit}: there is no earlier build to upgrade from")
    folder.mkdir(parents=True, exist_ok=True)
    archive = folder / "source.tar"
    with archive.open("wb") as out:
        subprocess.run(["git", "archive", found, *SOURCES], cwd=ROOT, stdout=out, check=True)
    with tarfile.open(archive) as source:
        source.extractall(folder, filter="tar")
    return Build(found, folder)


def changed_build(folder: Path, file: str, old: str, new: str) -> Build:
    """This build with ``old`` in one file replaced by ``new``."""
    for name in SOURCES:
        shutil.copytree(ROOT / name, folder / name, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
    text = (folder / file).read_text()
    assert text.count(old) == 1, f"{file} has {old!r} {text.count(old)} times"
    (folder / file).write_text(text.replace(old, new))
    return Build("", folder)


def _git(*arguments: str) -> str:
    try:
        ended = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return ended.stdout.strip() if ended.returncode == 0 else ""
