"""The path that reads slices in this process, and why: chosen once, when a server starts.

::

    switched off, no numba, another kind of machine      Python, for good
    compiled before (make setup, an earlier start)       loaded: some tenths of a second
    not compiled yet                                     a child process compiles; Python reads until it is loaded

Compiled code lies in a folder named after all its dependencies: this package's source and place, the compiler, Python,
the processor. So nothing stale is ever loaded, and a folder is whole once it has its name. It lies below the user's
cache, so that an uninstallation leaves nothing among the packages; if that cannot be written, beside the source.
Compiling takes a processor for fifteen to twenty seconds and holds the interpreter's lock, so a server never does it
itself.
"""

from __future__ import annotations

import os
import platform
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from hashlib import blake2b
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from cortado.store.mvcc.kernel.scanning import RowKernel

COMPILING: Final = "cortado.store.mvcc.kernel.compiling"
"""The module that a child process runs."""

_SOURCE: Final = Path(__file__).parent
_COMPILERS: Final = ("numba", "llvmlite")
_PLACE: Final = blake2b(str(_SOURCE).encode(), digest_size=4).hexdigest()
_PREFIX: Final = f"scan-kernel-{sys.implementation.cache_tag}-{_PLACE}-"
"""The prefix for this source; code compiled of other sources lies beside it."""


class Unfit(Exception):
    """The kernel cannot run here; says why, as text."""


def check_machine() -> None:
    """Raise Unfit if the kernel could not even be compiled."""
    if sys.byteorder != "little" or sys.maxsize < 1 << 40:
        raise Unfit(f"it is not made for {platform.machine()}")
    for name in _COMPILERS:
        try:
            version(name)
        except PackageNotFoundError as missing:
            raise Unfit(f"{name} is not installed") from missing


def compiled_folder() -> Path | None:
    """Return the folder compiled for this very machine and source, or None. Raises Unfit."""
    check_machine()
    name = _folder_name()
    return next((each / name for each in _parents() if (each / name).is_dir()), None)


def load(folder: Path) -> RowKernel:
    """Return the kernel, after a test of itself. Raises Unfit. Takes some tenths of a second."""
    with _writable(folder) as usable:
        try:
            import numba

            # This process compiles nothing but the kernel.
            numba.config.CACHE_DIR = str(usable)
            from cortado.store.mvcc.kernel.scanning import RowKernel
            from cortado.store.mvcc.kernel.self_test import check_kernel

            kernel = RowKernel()
            check_kernel(kernel)
        except Exception as problem:
            # A compiler may raise any exception: Python reads instead.
            raise Unfit(f"it cannot be loaded: {type(problem).__name__}: {problem}") from problem
    return kernel


def compile_ahead() -> Path:
    """Compile, and return the folder. Raises Unfit. Call it in a process that does nothing else."""
    check_machine()
    name, problems = _folder_name(), list[str]()
    for parent in _parents():
        try:
            parent.mkdir(parents=True, exist_ok=True)
            made = Path(tempfile.mkdtemp(prefix="scan-kernel-making-", dir=parent))
        except OSError as problem:
            problems.append(f"{parent}: {problem.strerror}")
            continue
        try:
            load(made)
            made.chmod(0o755)
            with_name = parent / name
            if not with_name.is_dir():
                made.rename(with_name)
        finally:
            shutil.rmtree(made, ignore_errors=True)
        for old in parent.glob(f"{_PREFIX}*"):
            if old != with_name:
                shutil.rmtree(old, ignore_errors=True)
        return with_name
    raise Unfit(f"there is nowhere to keep it compiled ({'; '.join(problems)})")


def _parents() -> list[Path]:
    cached = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache")
    try:
        return [cached.expanduser() / "cortado", _SOURCE / "__pycache__"]
    except RuntimeError:
        # A user without a home.
        return [_SOURCE / "__pycache__"]


@contextmanager
def _writable(folder: Path) -> Iterator[Path]:
    """Yield a folder that the compiler may write to while it reads: a copy, if the folder is another user's."""
    if os.access(folder, os.W_OK):
        yield folder
        return
    with tempfile.TemporaryDirectory(prefix="cortado-scan-kernel-") as copied:
        shutil.copytree(folder, copied, dirs_exist_ok=True)
        yield Path(copied)


@cache
def _folder_name() -> str:
    digest = blake2b(digest_size=10)
    for text in (str(_SOURCE), sys.version, *map(version, _COMPILERS), _processor()):
        digest.update(text.encode() + b"\0")
    for path in (*sorted(_SOURCE.glob("*.py")), *_beside()):
        digest.update(path.read_bytes())
    return f"{_PREFIX}{digest.hexdigest()}"


def _beside() -> list[Path]:
    """Return other sources whose numbers are compiled in."""
    root = _SOURCE.parents[1]
    return [
        root / "engine/page_nodes.py",
        root / "engine/data_file.py",
        root / "keys/codec.py",
        root / "mvcc/versions.py",
        root / "mvcc/walks.py",
    ]


def _processor() -> str:
    """Return the processor's name and features."""
    try:
        lines = Path("/proc/cpuinfo").read_text().split("\n\n", 1)[0].splitlines()
    except OSError:
        return f"{platform.machine()} {platform.processor()}"
    wanted = ("model name", "flags", "Features", "CPU part", "CPU implementer")
    return "\n".join(line for line in lines if line.startswith(wanted))
