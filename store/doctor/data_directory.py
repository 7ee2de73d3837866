"""Facts of a node's data directory, from outside: nothing is opened for writing and no lock is taken, so that they may
be looked at while the node runs.

The one thing that is written is the probe of the disk: some bytes in a file without a name, which is gone with it.
"""

from __future__ import annotations

import json
import os
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any, Final

from cortado.store.doctor.probes import Facts, describe
from cortado.store.files.regular_files import read_regular

SYNCS: Final = 20
FILES_MAX: Final = 200
_PROBE_BYTES: Final = 4_096
_PROBE_FREE_BYTES_MIN: Final = 16 << 20
_MOUNTS: Final = Path("/proc/self/mountinfo")
_TEXT_BYTES_MAX: Final = 4_096


def data_directory_facts(path: Path) -> Facts:
    """Return the facts of the directory ``path``. Raises OSError if it cannot be read."""
    path = path.absolute()
    text = _text(path / "FORMAT").strip()
    names = sorted(each.name for each in path.iterdir())
    disk = os.statvfs(path)
    return {
        "path": str(path),
        "format": text,
        "identity": _identity(path / "identity.json"),
        "owner_process": _owner(path / "LOCK"),
        # Files of a directory that is no node's are private, and may be large.
        "files": list(islice(_sizes(path), FILES_MAX)) if text else [],
        "unknown_files": [name for name in names if name not in _KNOWN][:FILES_MAX] if text else [],
        "disk": {
            "filesystem": _filesystem(path),
            "total_bytes": disk.f_blocks * disk.f_frsize,
            "free_bytes": disk.f_bavail * disk.f_frsize,
            "free_files": disk.f_favail,
        },
        "sync": _sync(path, disk.f_bavail * disk.f_frsize),
    }


_KNOWN: Final = frozenset({"FORMAT", "identity.json", "LOCK", "engine", "log", "snapshots"})


def _text(path: Path) -> str:
    try:
        return read_regular(path, _TEXT_BYTES_MAX).decode(errors="replace")
    except OSError:
        return ""


def _identity(path: Path) -> dict[str, Any]:
    """Return the ids alone, without other fields of the file."""
    with suppress(ValueError, RecursionError):
        record = json.loads(_text(path))
        if isinstance(record, dict):
            return {name: str(record.get(name, "")) for name in ("cluster_id", "node_id", "storage_id")}
    return {}


def _owner(path: Path) -> dict[str, Any]:
    """Return the process that had the directory open last, and whether there is one of that id."""
    text = _text(path).strip()
    if not text.isdigit():
        return {}
    is_alive = True
    try:
        os.kill(int(text), 0)
    except ProcessLookupError:
        is_alive = False
    except (OSError, OverflowError):
        pass  # Another user's.
    return {"pid": int(text), "alive": is_alive}


def _sizes(path: Path) -> Iterator[dict[str, Any]]:
    """Yield each file's length and its size on the disk (LMDB's file is sparse)."""
    for folder, _, names in os.walk(path):
        for name in sorted(names):
            file = Path(folder) / name
            with suppress(OSError):
                status = file.lstat()
                yield {
                    "file": str(file.relative_to(path)),
                    "bytes": status.st_size,
                    "disk_bytes": status.st_blocks * 512,
                }


def _filesystem(path: Path) -> str | None:
    """Return the type of the mount that ``path`` is on; None if the system does not say."""
    best, kind = "", None
    with suppress(OSError):
        for line in _MOUNTS.read_text().splitlines():
            before, _, after = line.partition(" - ")
            point = before.split()[4].encode().decode("unicode_escape")
            is_above = str(path) == point or str(path).startswith(point.rstrip("/") + "/")
            if is_above and len(point) >= len(best):
                best, kind = point, after.split()[0]
    return kind


def _sync(path: Path, free_bytes: int) -> dict[str, Any]:
    """Return how long a small write takes until it is durable: ``SYNCS`` of them, milliseconds."""
    if free_bytes < _PROBE_FREE_BYTES_MIN:
        return {"problem": "the disk is too full to try"}
    took_ms = []
    try:
        # Without a name, so that nothing is left of it however this ends.
        with tempfile.TemporaryFile(dir=path) as file:
            for _ in range(SYNCS):
                began_s = time.perf_counter()
                os.write(file.fileno(), bytes(_PROBE_BYTES))
                os.fsync(file.fileno())
                took_ms.append((time.perf_counter() - began_s) * 1000)
    except OSError as error:
        return {"problem": describe(error)}
    return {"median_ms": round(statistics.median(took_ms), 3), "max_ms": round(max(took_ms), 3), "syncs": SYNCS}
