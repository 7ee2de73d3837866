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

from cortado.store.peers import versions

ROOT = Path(__file__).parents[2]
SOURCES = ("proto", "raft", "schema", "src", "store")
FROM = "CORTADO_UPGRADE_FROM"
"""A commit to upgrade from, such as that of the last release, instead of from this build to the next one."""


@dataclass(frozen=True, slots=True)
class Build:
    """The source in ``folder``."""

    folder: Path

    @property
    def path(self) -> str:
        """Return the PYTHONPATH from which this build is imported. It stands before installed packages."""
        return str(self.folder / "src")

    @property
    def cortado(self) -> Sequence[str]:
        """Its command line, in this environment."""
        return ("env", f"PYTHONPATH={self.path}", sys.executable, "-m", "cortado.store.cli")


def builds_in_a_row(folder: Path) -> tuple[Build, Build]:
    """Return two builds that must run together: the earlier one, and the one that follows it.

    This one, and one that might come next, which reads formats that this one does not write yet. Or the one that
    ``FROM`` names, and this one.
    """
    this, commit = Build(ROOT), os.environ.get(FROM)
    if commit:
        return build_of(commit, folder), this
    read = (
        "newest_protocol={},\n    entries_written=log_entry.FORMAT,\n    oldest_entries=log_entry.FORMAT,\n"
        "    newest_entries={},"
    )
    ours = versions.OURS.newest_protocol
    return this, changed_build(
        folder,
        "store/peers/versions.py",
        read.format(ours, "log_entry.FORMAT"),
        read.format(ours + 1, "log_entry.FORMAT + 1"),
    )


def build_of(commit: str, folder: Path) -> Build:
    """Build the source of a commit."""
    folder.mkdir(parents=True, exist_ok=True)
    archive = folder / "source.tar"
    with archive.open("wb") as out:
        subprocess.run(["git", "archive", commit, *SOURCES], cwd=ROOT, stdout=out, check=True)
    with tarfile.open(archive) as source:
        source.extractall(folder, filter="tar")
    return Build(folder)


def changed_build(folder: Path, file: str, old: str, new: str) -> Build:
    """Return this build with ``old`` in one file replaced by ``new``."""
    for name in SOURCES:
        shutil.copytree(ROOT / name, folder / name, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
    text = (folder / file).read_text()
    assert text.count(old) == 1, f"{file} has {old!r} {text.count(old)} times"
    (folder / file).write_text(text.replace(old, new))
    return Build(folder)
