"""Files stored for their owner alone: looked at under a umask that hides nothing."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def no_umask() -> Iterator[None]:
    before = os.umask(0)
    try:
        yield
    finally:
        os.umask(before)


def shared(path: Path) -> list[str]:
    """Return the paths that users other than the owner may read, write or enter, in a directory and below it."""
    found = [path, *path.rglob("*")]
    return sorted(str(each.relative_to(path)) for each in found if stat.S_IMODE(each.lstat().st_mode) & 0o077)
