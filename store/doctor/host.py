"""Facts of the host: versions, memory, limits of the process, and whether the clock is synchronized."""

from __future__ import annotations

import ctypes
import os
import platform
import resource
import sys
import time
from contextlib import suppress
from importlib import metadata
from pathlib import Path
from typing import Any, Final

import cortado
from cortado.store.doctor.probes import Facts

_PACKAGES: Final = ("grpcio", "protobuf", "lmdb", "pysyncobj", "uvloop", "cryptography", "numpy", "fastavro", "pyarrow")
_CLOCK_SOURCE: Final = Path("/sys/devices/system/clocksource/clocksource0/current_clocksource")
_MEMINFO: Final = Path("/proc/meminfo")
_TIME_ERROR: Final = 5


def host_facts() -> Facts:
    """Return the facts of this machine and this interpreter."""
    return {
        "cortado": cortado.__version__,
        "python": platform.python_version(),
        "packages": {name: _version(name) for name in _PACKAGES},
        "lmdb_library": _lmdb_library(),
        "os": _os(),
        "kernel": f"{platform.system()} {platform.release()} {platform.machine()}",
        "cpus": os.cpu_count() or 0,
        "load": [round(each, 2) for each in os.getloadavg()],
        "memory": _memory(),
        "limits": _limits(),
        "clock": _clock(),
    }


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _lmdb_library() -> str | None:
    try:
        import lmdb
    except ImportError:
        return None
    return ".".join(map(str, lmdb.version()))


def _os() -> str:
    with suppress(OSError):
        return platform.freedesktop_os_release().get("PRETTY_NAME", platform.system())
    return platform.platform()


def _memory() -> dict[str, int]:
    """Return the bytes of memory, in all and available; nothing if the system does not say."""
    found = {}
    with suppress(OSError, ValueError):
        for line in _MEMINFO.read_text().splitlines():
            name, _, rest = line.partition(":")
            if name in ("MemTotal", "MemAvailable"):
                found["total_bytes" if name == "MemTotal" else "available_bytes"] = int(rest.split()[0]) << 10
    return found


def _limits() -> dict[str, int | None]:
    """Soft limits of a process that is started here; None for no limit."""
    names = {
        "open_files": resource.RLIMIT_NOFILE,
        "address_space_bytes": resource.RLIMIT_AS,
        "file_size_bytes": resource.RLIMIT_FSIZE,
        "core_bytes": resource.RLIMIT_CORE,
    }
    soft = {name: resource.getrlimit(each)[0] for name, each in names.items()}
    return {name: None if value == resource.RLIM_INFINITY else value for name, value in soft.items()}


def _clock() -> dict[str, Any]:
    source = None
    with suppress(OSError):
        source = _CLOCK_SOURCE.read_text().strip()
    return {
        "source": source,
        "synchronized": _is_synchronized(),
        "utc": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "wall_ms": time.time_ns() // 1_000_000,
    }


def _is_synchronized() -> bool | None:
    """Return whether a daemon (chrony, ntpd) synchronizes the kernel's clock. None if the kernel does not tell."""
    if sys.platform != "linux":
        return None
    with suppress(OSError, AttributeError):
        # Room for more than struct ntptimeval has on any system.
        state: int = ctypes.CDLL(None).ntp_gettime(ctypes.create_string_buffer(256))
        return None if state < 0 else state != _TIME_ERROR
    return None
