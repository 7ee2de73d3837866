"""Facts of a node's log files, from outside: their number, sizes, permissions and damaged places.

Nothing is changed and no lock is taken, so the node may be running: it appends to the newest segment and drops old ones
meanwhile. A place that looks damaged is therefore read twice, and is damaged if both reads find the same.

It needs the server's packages. If only a client is installed, it returns sizes and permissions alone.
"""

from __future__ import annotations

import stat
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Final

from cortado.errors import Unsupported
from cortado.extras import needing
from cortado.store.doctor.probes import Facts

LOG_FOLDER: Final = "log"
DAMAGED_MAX: Final = 20
_BETWEEN_LOOKS_S: Final = 0.25
_OTHERS: Final = 0o077


def log_facts(data_dir: Path, *, sleep_s: Callable[[float], None] = time.sleep) -> Facts:
    """Return the facts of the folder in ``data_dir``. Raises OSError if it cannot be read."""
    folder = data_dir.absolute() / LOG_FOLDER
    files = sorted(folder.iterdir()) if folder.is_dir() else []
    if not files:
        return {"missing": True}
    modes = {each: stat.S_IMODE(each.lstat().st_mode) for each in (folder, *files)}
    return {
        "missing": False,
        "files": len(files),
        "bytes": sum(each.lstat().st_size for each in files),
        "others_may_use": [
            str(each.relative_to(data_dir.absolute())) for each, mode in modes.items() if mode & _OTHERS
        ],
        **_damage(folder, sleep_s),
    }


def _damage(folder: Path, sleep_s: Callable[[float], None]) -> Facts:
    try:
        with needing("server", "reading the log"):
            first = _look(folder)
            if first:
                sleep_s(_BETWEEN_LOOKS_S)
                second = _look(folder)
                first = [each for each in first if each in second]
    except Unsupported as error:
        return {"not_read": str(error)}
    return {"damaged": first[:DAMAGED_MAX]}


def _look(folder: Path) -> list[str]:
    """Return the damaged places and their defects."""
    from cortado.store.engine.failures import StorageFailed
    from cortado.store.log_files.files import FolderFiles
    from cortado.store.log_files.walk import walk

    found: list[str] = []
    with closing(FolderFiles(folder, may_write=False)) as files:
        try:
            found += [f"{each.segment:016d} byte {each.offset}: {each.text}" for each in walk(files) if each.is_damage]
        except StorageFailed as error:
            # One that the node drops meanwhile is not met again; one that may not be read is.
            found.append(str(error))
    return found
