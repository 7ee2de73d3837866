"""Facts of a node's log files, from outside: how many, how large, whose, and what of them is damaged.

Nothing is changed and no lock is taken, so the node may be running: it appends to the newest segment and drops old ones
meanwhile. What looks damaged is therefore looked at twice, and is damage where both looks find the same.

It needs what the server needs. Where only a client is installed, sizes and permissions are all that is told.
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
    """Of the folder in ``data_dir``. Raises OSError where it cannot be looked at."""
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
    """What is damaged, by where."""
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
