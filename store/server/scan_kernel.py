"""A server's choice of the reader of scan slices: the compiled kernel, or Python (ADR 45).

The kernel is compiled by a child process, never by the server: compiling holds the interpreter's lock for seconds.
Until it is loaded Python reads, so no caller waits for it. Running scans then go on, slice by slice, either way.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from asyncio.subprocess import DEVNULL, PIPE
from contextlib import suppress
from typing import Final

from cortado.store.host.host import Host
from cortado.store.mvcc.kernel.seam import COMPILING, Unfit, compiled_folder, load

_LOG: Final = logging.getLogger(__name__)

COMPILED: Final = "compiled"
_THREADS_MAX: Final = 8
"""The bound of threads that stream scans: one for each core, but few enough to leave the interpreter to the event
loop."""
_REASON_CHARACTERS_MAX: Final = 300


async def use_scan_kernel(host: Host, choice: str) -> None:
    """Load the kernel, compile it first if needed, and let the host's scans use it; or record why they don't."""
    try:
        if choice == "off":
            raise Unfit("the setting scan-kernel is off")
        if isinstance(host.process.engine.mapped, str):
            raise Unfit(host.process.engine.mapped)
        loop = asyncio.get_running_loop()
        folder = await loop.run_in_executor(None, compiled_folder)
        if folder is None:
            host.scan_path = "python: the scan kernel is being compiled"
            await _compile()
            folder = await loop.run_in_executor(None, compiled_folder)
        if folder is None:
            raise Unfit("the compiled file is missing")
        kernel = await loop.run_in_executor(None, load, folder)
        host.use_scan_kernel(kernel, min(_THREADS_MAX, os.cpu_count() or 1))
    except Unfit as reason:
        host.scan_path = f"python: {reason}"
        _LOG.info("scans are read by Python: %s", reason)
        return
    host.scan_path = COMPILED
    _LOG.info("scans are read by the compiled kernel")


async def _compile() -> None:
    """Compile the kernel in a child process, which ends with this one. Raises Unfit."""
    try:
        child = await asyncio.create_subprocess_exec(
            sys.executable, "-m", COMPILING, stdin=DEVNULL, stdout=DEVNULL, stderr=PIPE
        )
    except OSError as problem:
        raise Unfit(f"nothing can be started to compile it: {problem.strerror}") from problem
    try:
        _, told = await child.communicate()
    except asyncio.CancelledError:
        with suppress(ProcessLookupError):
            child.kill()
        raise
    if child.returncode:
        lines = told.decode(errors="replace").strip().splitlines()
        reason = lines[-1] if lines else f"the compiler ended with {child.returncode}"
        raise Unfit(reason.removeprefix("no scan kernel: ")[:_REASON_CHARACTERS_MAX])
