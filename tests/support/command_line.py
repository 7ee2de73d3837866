"""``cortado`` in a test: in this process, if that is enough, or in one of its own, to be killed or cut off."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from cortado.store.cli.app import run
from support.server_process import is_stopped, wait_until

_COMMAND = "from cortado.store.cli import main; main()"
_STOPS = """
import os, signal
from pathlib import Path
named, left = Path.replace, [{left}]

def replace(path, target):
    found = named(path, target)
    left[0] -= "{files}" in Path(target).name
    if left[0] == 0:
        left[0] = -1
        os.kill(os.getpid(), signal.SIGSTOP)
    return found

Path.replace = replace
from cortado.store.cli import main
main()
"""


class CommandLine:
    """Runs ``cortado`` against ``endpoint``. ``out`` and ``err`` are the output of the last run, as bytes and as
    text."""

    def __init__(self, endpoint: str, capture: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch) -> None:
        self._capture = capture
        self._monkeypatch = monkeypatch
        self.endpoint = endpoint
        self.out = b""
        self.err = ""
        monkeypatch.setenv("CORTADO_ENDPOINTS", endpoint)

    def __call__(self, *arguments: str, expect: int = 0, stdin: bytes = b"") -> bytes:
        """Run a command and return its standard output. Raises AssertionError if it ends with another code."""
        self._monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        code = run(arguments)
        self.out, err = self._capture.readouterr()
        self.err = err.decode()
        assert code == expect, f"{arguments} ended with {code}: {self.err}"
        return self.out

    def json(self, *arguments: str, expect: int = 0, stdin: bytes = b"") -> list[Any]:
        """Run a command and return the objects of its output, one a line."""
        return [json.loads(line) for line in self(*arguments, "-o", "json", expect=expect, stdin=stdin).splitlines()]

    @contextmanager
    def process(
        self, *arguments: str, stdout: int = subprocess.PIPE, code: str = _COMMAND
    ) -> Iterator[subprocess.Popen[bytes]]:
        """Run a process of its own, which is gone at the end."""
        command = [sys.executable, "-c", code, *arguments]
        environment = {**os.environ, "CORTADO_ENDPOINTS": self.endpoint}
        started = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=stdout, stderr=subprocess.PIPE, env=environment
        )
        try:
            yield started
        finally:
            started.kill()
            started.communicate()

    @contextmanager
    def stopped(self, *arguments: str, behind: int, files: str) -> Iterator[subprocess.Popen[bytes]]:
        """Run a process that is stopped once ``behind`` files exist with ``files`` in their names. The block resumes
        it, or does not."""
        with self.process(*arguments, code=_STOPS.format(files=files, left=behind)) as started:
            wait_until(lambda: is_stopped(started.pid) or started.poll() is not None, f"{behind} files are there")
            assert started.poll() is None, f"{arguments} ended with {started.returncode}"
            yield started
