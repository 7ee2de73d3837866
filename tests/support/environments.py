"""Virtual environments that hold only the packages a test installs, on each Python of this machine."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from support.needs import need

ROOT = Path(__file__).parents[2]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())
SUPPORTED = sorted(
    tuple(int(number) for number in each.rsplit(" ", 1)[1].split("."))
    for each in PROJECT["project"]["classifiers"]
    if re.fullmatch(r"Programming Language :: Python :: \d\.\d+", each)
)
"""The versions of Python that the classifiers name, oldest first."""

COMMAND_S = 300.0


class Environment:
    """A virtual environment of ``python`` in ``folder``, made at once."""

    def __init__(self, folder: Path, python: str = sys.executable) -> None:
        self.folder = folder
        _run([python, "-m", "venv", str(folder)])

    @property
    def python(self) -> str:
        return str(self.folder / "bin/python")

    @property
    def cortado(self) -> str:
        return str(self.folder / "bin/cortado")

    @property
    def site_packages(self) -> Path:
        (found,) = self.folder.glob("lib/python*/site-packages")
        return found

    def install(self, *requirements: str) -> None:
        _run([self.python, "-m", "pip", "--disable-pip-version-check", "install", "--quiet", *requirements])

    def uninstall(self, name: str) -> None:
        _run([self.python, "-m", "pip", "--disable-pip-version-check", "uninstall", "--quiet", "--yes", name])

    def check(self) -> None:
        """Raise AssertionError if the installed packages do not fit together."""
        _run([self.python, "-m", "pip", "--disable-pip-version-check", "check"])

    def run(self, *command: str, **settings: str) -> str:
        """Run a command of the environment and return its output. ``settings`` are variables. Raises AssertionError if
        it fails."""
        return _run([str(self.folder / "bin" / command[0]), *command[1:]], settings)

    def execute(self, code: str, *arguments: str) -> str:
        """Run Python code with warnings as errors, and return its output. Raises AssertionError if it fails."""
        return self.run("python", "-W", "error", "-c", code, *arguments)

    def files(self) -> set[str]:
        """Return all files below, but for caches of compiled code."""
        found = (each for each in self.folder.rglob("*") if each.is_file() and "__pycache__" not in each.parts)
        return {str(each.relative_to(self.folder)) for each in found}


def locked(folder: Path, lock: str) -> Environment:
    """Return an environment with exactly the packages of a lock file; end the test if they cannot be installed."""
    made = Environment(folder)
    try:
        made.install("--require-hashes", "-r", str(ROOT / lock))
    except AssertionError as problem:
        need(False, f"the packages of {lock}: {problem}")
    return made


def python_of(version: tuple[int, ...]) -> str | None:
    """Return an interpreter of that version on this machine, on the path or among pyenv's, or None."""
    name = "python" + ".".join(map(str, version))
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    for candidate in (sys.executable, name, *sorted(map(str, pyenv.glob(f"{name[6:]}.*/bin/python")))):
        code = f"import sys; sys.exit(sys.version_info[:2] != {tuple(version)})"
        try:
            if subprocess.run([candidate, "-c", code], capture_output=True, check=False).returncode == 0:
                return candidate
        except OSError:
            continue
    return None


def lower_bounds(*extras: str) -> list[str]:
    """Return the requirements of the base and of ``extras``, each at exactly its lower bound, the highest if it has
    two."""
    project = PROJECT["project"]
    groups = [project["dependencies"], *(project["optional-dependencies"][each] for each in extras)]
    lowest: dict[str, str] = {}
    for requirement in (each for group in groups for each in group):
        matched = re.fullmatch(r"([A-Za-z0-9-]+)(?:>=|==)([0-9.]+)(,[^;]*)?(;.*)?", requirement)
        assert matched is not None, requirement
        name, version = matched[1], matched[2]
        lowest[name] = max(lowest.get(name, version), version, key=_numbers)
    return [f"{name}=={version}" for name, version in lowest.items()]


def _numbers(version: str) -> list[int]:
    return [int(number) for number in version.split(".")]


def _run(command: Iterable[str], settings: Mapping[str, str] | None = None) -> str:
    outer = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONHOME")}
    ended = subprocess.run(
        list(command),
        env={**outer, **(settings or {})},
        # Not the repository's root: its folders would be imported from it.
        cwd="/",
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=COMMAND_S,
        check=False,
    )
    assert ended.returncode == 0, f"{list(command)} ended with {ended.returncode}\n{ended.stdout}\n{ended.stderr}"
    return ended.stdout
