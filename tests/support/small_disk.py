"""A disk of few bytes, for tests that fill it."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from support.needs import need, need_root


@contextmanager
def mounted_disk(disk: Path, size_mib: int) -> Iterator[Path]:
    """Mount a tmpfs of ``size_mib`` at ``disk``, for the length of the block. Skips the test if that fails."""
    need_root()
    disk.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size_mib}m", "tmpfs", str(disk)], check=False)
    need(mounted.returncode == 0, "the privilege to mount a tmpfs")
    try:
        yield disk
    finally:
        subprocess.run(["umount", str(disk)], check=True)
