"""Start a Cortado node as a process of its own, and stop it whatever happens."""

from __future__ import annotations

import ctypes
import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

START_SECONDS_MAX = 30.0
STOP_SECONDS_MAX = 20.0
_PR_SET_PDEATHSIG = 1


def _die_with_parent() -> None:
    # Linux only: the kernel ends the node even where this process is killed outright.
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


@contextmanager
def running_node(data_dir: Path) -> Iterator[str]:
    """A node on a free loopback port, with default settings. Yields its address; stops it on the way out."""
    command = [
        sys.executable,
        "-m",
        "cortado.store.cli",
        "server",
        "--data-dir",
        str(data_dir),
        "--listen",
        "127.0.0.1:0",
    ]
    log = data_dir.with_name("server.log")
    with log.open("wb") as stderr:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=stderr,
            # A group of its own: Ctrl-C reaches the story, which then stops the node in order.
            start_new_session=True,
            preexec_fn=_die_with_parent,
        )
    try:
        yield _address(process, log)
    finally:
        if process.poll() is None:
            process.terminate()
            try:
                process.wait(STOP_SECONDS_MAX)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        if process.stdout is not None:
            process.stdout.close()


def _address(process: subprocess.Popen[bytes], log: Path) -> str:
    """Wait for the line that says where the node listens."""
    assert process.stdout is not None
    os.set_blocking(process.stdout.fileno(), False)
    deadline = time.monotonic() + START_SECONDS_MAX
    seen = b""
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        while time.monotonic() < deadline and process.poll() is None:
            selector.select(0.2)
            seen += process.stdout.read() or b""
            for line in seen.decode(errors="replace").splitlines(keepends=True):
                if line.endswith("\n") and "listening on " in line:
                    return line.split("listening on ")[1].split()[0]
    raise SystemExit(f"The node did not start:\n{log.read_text()[-2000:]}")
