"""Runs the blocks of a page, one after the other, as a reader would.

Each command runs in a shell of its own that finds the working directory and the variables as the last one left them.
The page's servers are on 127.0.0.1:7621 and the next ports; the test's are elsewhere, so addresses are replaced before
a run, and put back before a comparison.

The output in a ``console`` block is compared by lines and words. Numbers and ids differ from run to run: a run of
digits stands for any other, as does a long hexadecimal number; the frames of tables are left out, since widths differ
with the cells. A line ``...`` stands for any number of lines, and ``...`` in a line for any text.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from support.pages import ROOT, Block, Page
from support.ports import free_ports
from support.server_process import ServerProcess

COMMAND_S: Final = 120.0
ANSWERS: Final = b"y\n" * 10
"""The reader's input if a command asks."""
FIRST_PORT: Final = 7621
PORTS: Final = 9

_FRAME = re.compile(r"[─━│┃┏┓┗┛┡┩├┤┬┴┼╇╞╡╪└┘┌┐╭╮╰╯+|-]{2,}|[│┃|]")
_HEX = re.compile(r"\b(?=\w*\d)[0-9a-f]{8,}\b|\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b")
_DIGITS = re.compile(r"\d+(?:[.,:]\d+)*")


def reader_environment(directory: Path) -> dict[str, str]:
    """Return the variables of a reader who has just begun: nothing of this machine's own settings of Cortado."""
    ours = {name: value for name, value in os.environ.items() if not name.startswith(("CORTADO_", "PYTHON"))}
    return {**ours, "NO_COLOR": "1", "COLUMNS": "100", "XDG_CONFIG_HOME": str(directory / ".config")}


class PageRunner:
    """Runs blocks in ``directory``. ``ports`` are the real ports for the page's; ``names`` are defined for its
    Python."""

    def __init__(self, directory: Path, ports: Sequence[int], names: Mapping[str, Any] | None = None) -> None:
        self.directory = directory
        self._ports = list(ports)
        self._state = directory.with_name(f"{directory.name}.state")
        # A module, which is where annotations of its classes are looked up.
        self._module = ModuleType("page")
        vars(self._module).update(names or {})
        self._background: list[subprocess.Popen[bytes]] = []
        directory.mkdir(exist_ok=True)

    @contextmanager
    def running(self) -> Iterator[PageRunner]:
        """Yield the runner; at the end, stop the processes that the page left running."""
        try:
            yield self
        finally:
            if (self.directory / "cortado-cluster").exists():
                self._start("cortado dev down").communicate(timeout=COMMAND_S)
            for process in self._background:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGTERM)
            for process in self._background:
                try:
                    process.wait(20)
                except subprocess.TimeoutExpired:
                    os.killpg(process.pid, signal.SIGKILL)

    def run(self, page: Page, block: Block) -> None:
        """Run one block, or write its file. Raises AssertionError naming the page and the line."""
        place = f"{page.name}:{block.line}"
        if block.file:
            (self.directory / block.file).write_text(self.here(block.text))
        elif not block.is_run:
            return
        elif block.until:
            self._run_beside(place, block)
        elif block.language == "python":
            self._run_python(place, page, block)
        elif block.language == "sh":
            self.shell(place, block.text, block.exit_code)
        else:
            for command, expected in sessions(block.text):
                shown = self.shell(place, command, block.exit_code)
                difference = differs(expected, self._there(shown))
                assert not difference, f"{place}: $ {command}\n{difference}\n--- it wrote:\n{shown}"

    def prepare(self, script: Path) -> None:
        """Run a script that makes the data that the page's commands mention."""
        self.shell(script.name, script.read_text())

    # --- addresses ---------------------------------------------------------------------------------------------

    def here(self, text: str) -> str:
        """Return ``text`` with the ports that are used here."""
        # Commands that use the default address get another one.
        text = text.replace("cortado dev up", f"cortado dev up --port {self._ports[0]}")
        endpoint = f'.option("endpoint", "127.0.0.1:{self._ports[0]}")'
        text = text.replace('.format("cortado").option("table"', f'.format("cortado"){endpoint}.option("table"')
        for place, port in enumerate(self._ports):
            text = re.sub(rf"\b{FIRST_PORT + place}\b", str(port), text)
        return text

    def _there(self, text: str) -> str:
        for place, port in enumerate(self._ports):
            text = re.sub(rf"\b{port}\b", str(FIRST_PORT + place), text)
        return text

    # --- shells ------------------------------------------------------------------------------------------------

    def shell(self, place: str, script: str, exit_code: int = 0) -> str:
        """Run a script and return its output, both streams as a terminal would show them."""
        state = shlex.quote(str(self._state))
        whole = (
            f"[ -f {state} ] && . {state}\n"
            f'trap \'code=$?; {{ export -p; echo cd "$(printf %q "$PWD")"; }} > {state}; exit $code\' EXIT\n'
            f"set -ea\n{self.here(script)}"
        )
        process = self._start(whole)
        try:
            shown, _ = process.communicate(ANSWERS, timeout=COMMAND_S)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            raise AssertionError(f"{place}: not done within {COMMAND_S:.0f} s:\n{script}") from None
        text = shown.decode()
        assert process.returncode == exit_code, f"{place}: ended with {process.returncode}:\n{script}\n---\n{text}"
        return text

    def _run_beside(self, place: str, block: Block) -> None:
        state = shlex.quote(str(self._state))
        shown = self.directory.with_name(f"{self.directory.name}.background{len(self._background)}")
        script = (
            "\n".join(command for command, _ in sessions(block.text)) if block.language == "console" else block.text
        )
        with shown.open("wb") as file:
            process = self._start(f"[ -f {state} ] && . {state}\n{self.here(script)}", file)
        self._background.append(process)
        deadline_s = time.monotonic() + COMMAND_S
        while block.until not in self._there(shown.read_text()):
            assert process.poll() is None, f"{place}: ended with {process.returncode}:\n{shown.read_text()}"
            assert time.monotonic() < deadline_s, f"{place}: never wrote {block.until!r}:\n{shown.read_text()}"
            time.sleep(0.02)

    def _start(self, script: str, file: io.BufferedWriter | None = None) -> subprocess.Popen[bytes]:
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        return subprocess.Popen(
            ["bash", "-o", "pipefail", "-c", script],
            cwd=self.directory,
            env={**reader_environment(self.directory), "PATH": path, **self.endpoints()},
            stdin=subprocess.PIPE,
            stdout=file or subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )

    def endpoints(self) -> dict[str, str]:
        """Return the variable that leads commands to the page's first server."""
        return {"CORTADO_ENDPOINTS": f"127.0.0.1:{self._ports[0]}"}

    # --- Python ------------------------------------------------------------------------------------------------

    def _run_python(self, place: str, page: Page, block: Block) -> None:
        source = "\n" * (block.line - 1) + self.here(block.text)
        shown = io.StringIO()
        was = Path.cwd()
        os.chdir(self.directory)
        try:
            with contextlib.redirect_stdout(shown):
                sys.modules[self._module.__name__] = self._module
                exec(compile(source, str(ROOT / page.name), "exec", dont_inherit=True), vars(self._module))
        finally:
            os.chdir(was)
            del sys.modules[self._module.__name__]
        # A comment behind a print shows its output.
        for said in re.findall(r"^ *print\(.*\)  # (.+)$", block.text, re.M):
            got = self._there(shown.getvalue())
            assert any(not differs(said, line) for line in got.splitlines()), f"{place}: {said!r} is not in:\n{got}"


def sessions(text: str) -> Iterator[tuple[str, str]]:
    """Yield (command, output) of a ``console`` block. A line that ends with a backslash goes on behind ``>``."""
    for part in re.split(r"^\$ ", text, flags=re.M)[1:]:
        lines = part.splitlines()
        command = [lines.pop(0)]
        while lines and (lines[0].startswith("> ") or command[-1].endswith("\\")):
            command.append(lines.pop(0).removeprefix("> "))
        yield "\n".join(command), "\n".join(lines)


def differs(expected: str, shown: str) -> str:
    """Return the difference between the output and the page, or an empty string. A page that shows nothing says
    nothing."""
    wanted = [line for line in map(_plain, expected.splitlines()) if line]
    if not wanted:
        return ""
    got = [line for line in map(_plain, shown.splitlines()) if line]
    pattern = "\n".join("(?:.*\n)*?.*" if line == "..." else _pattern_of(line) for line in wanted)
    if re.fullmatch(pattern, "\n".join(got)):
        return ""
    missing = [line for line in wanted if line != "..." and not any(re.fullmatch(_pattern_of(line), g) for g in got)]
    return "not shown: " + "; ".join(missing) if missing else "shown in another order, or with more lines"


def _pattern_of(line: str) -> str:
    return ".*".join(map(re.escape, line.split("...")))


def _plain(line: str) -> str:
    if line.strip() == "...":
        return "..."
    line = _HEX.sub("#", _FRAME.sub(" ", line))
    return " ".join(_DIGITS.sub("#", line).split())


def run_page(page: Page, directory: Path, names: Mapping[str, Any]) -> None:
    """Run all blocks below ``directory``, on ports that are free here; a server listens on the first, if the page wants
    one. ``names`` are defined for its Python."""
    ports = free_ports(PORTS)
    server = ServerProcess(directory / "data", listen=f"127.0.0.1:{ports[0]}")
    try:
        if page.world.startswith("server"):
            server.start()
        with PageRunner(directory / "page", ports, names).running() as runner:
            if page.prepare:
                runner.prepare(ROOT / "tests" / "docs" / page.prepare)
            for block in page.blocks:
                runner.run(page, block)
    finally:
        server.kill()
