"""The packages as they would be published, built from the files under version control."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from support.environments import ROOT


class Packages(NamedTuple):
    """The archive of the source, and the wheel that is made of it."""

    sdist: Path
    wheel: Path


def kept_files() -> list[Path]:
    """Return the files and links that version control keeps, or would keep, relative to the repository's root."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    found = map(Path, filter(None, names.split("\0")))
    return [each for each in found if (ROOT / each).is_file() or (ROOT / each).is_symlink()]


def copy_source(target: Path) -> None:
    """Copy the files that version control keeps, or would: a build leaves folders behind, and must not find any."""
    for name in kept_files():
        origin, copy = ROOT / name, target / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        if origin.is_symlink():
            copy.symlink_to(origin.readlink())
        else:
            copy.write_bytes(origin.read_bytes())


def build(source: Path, out: Path, *kinds: str) -> None:
    """Build with the setuptools of this environment: the requirements of a build are not fetched for each."""
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(out), *kinds, str(source)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, cwd=out.parent)
    assert ended.returncode == 0, f"{ended.stdout}\n{ended.stderr}"
