"""A PostgreSQL of one's own: a cluster in a temporary directory, on a port of loopback (``tools/postgres.sh`` finds or
installs its programs)."""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks.cluster.members import Member, free_ports, wait_for

USER: Final = "bench"
ACCOUNT: Final = "postgres"
"""PostgreSQL refuses to run as root: then it runs as this user, which Debian's package makes."""
SETTINGS: Final = {"shared_buffers": "1GB", "max_wal_size": "4GB"}
"""Settings that are not its defaults: memory for all rows, and no checkpoint in the midst of an append."""
FOLDERS: Final = Path("/usr/lib/postgresql")
"""Debian's folder of its programs, with a folder for each version."""
JAR: Final = Path("/usr/share/java/postgresql.jar")


class NotThere(Exception):
    """Names the missing program."""


@dataclass(frozen=True, slots=True)
class Postgres:
    """``url`` is JDBC's address; ``pid`` is the parent of all other processes."""

    url: str
    password: str
    jar: Path
    pid: int
    version: str

    @property
    def settings(self) -> str:
        changed = ", ".join(f"{name}={value}" for name, value in SETTINGS.items())
        return f"{self.version} with default settings, but {changed}"


def find_postgres() -> tuple[Path, Path]:
    """Return the folder of its programs, and its JDBC driver. Raises NotThere."""
    folders = sorted(FOLDERS.glob("*/bin"), key=lambda path: int(path.parent.name.split(".")[0]))
    on_path = shutil.which("initdb")
    folder = folders[-1] if folders else Path(on_path).parent if on_path else None
    jar = Path(os.environ.get("POSTGRESQL_JDBC_JAR", JAR))
    missing = [name for name, there in (("postgresql", folder), ("libpostgresql-jdbc-java", jar.exists())) if not there]
    if missing or folder is None:
        raise NotThere(f"not installed: {' '.join(missing)}")
    return folder, jar


@contextmanager
def running_postgres() -> Iterator[Postgres]:
    """Yield an empty database, ended and deleted on the way out. Raises NotThere."""
    programs, jar = find_postgres()
    with tempfile.TemporaryDirectory(prefix="bench-postgres-") as name:
        folder, password = Path(name), secrets.token_urlsafe()
        (folder / "password").write_text(password)
        _give(folder)
        _make(programs, folder)
        (port,) = free_ports(1)
        member = Member("postgres", f"127.0.0.1:{port}", _command(programs, folder, port), folder / "log")
        try:
            member.start()
            wait_for(lambda: _answers(programs, port), "PostgreSQL accepts connections")
            said = subprocess.run([programs / "postgres", "--version"], capture_output=True, text=True, check=True)
            version = said.stdout.strip().replace("postgres (PostgreSQL)", "PostgreSQL")
            url = f"jdbc:postgresql://127.0.0.1:{port}/postgres?reWriteBatchedInserts=true"
            yield Postgres(url, password, jar, member.pid, version)
        finally:
            member.end()


def _make(programs: Path, folder: Path) -> None:
    command = [
        *_account(),
        str(programs / "initdb"),
        "-D",
        str(folder / "data"),
        "-U",
        USER,
        "--no-locale",
        "-E",
        "UTF8",
    ]
    command += ["-A", "scram-sha-256", "--pwfile", str(folder / "password")]
    made = subprocess.run(command, capture_output=True, text=True, check=False)
    if made.returncode:
        raise NotThere(f"initdb failed: {made.stderr.strip()}")


def _command(programs: Path, folder: Path, port: int) -> Sequence[str]:
    settings = {**SETTINGS, "listen_addresses": "127.0.0.1", "unix_socket_directories": ""}
    command = [*_account(), str(programs / "postgres"), "-D", str(folder / "data"), "-p", str(port)]
    return [*command, *(part for name, value in settings.items() for part in ("-c", f"{name}={value}"))]


def _answers(programs: Path, port: int) -> bool:
    asked = [str(programs / "pg_isready"), "-q", "-h", "127.0.0.1", "-p", str(port)]
    return subprocess.run(asked, check=False).returncode == 0


def _account() -> Sequence[str]:
    """Return the prefix of a command that runs as PostgreSQL may: the program takes the place of ``setpriv``."""
    whose = ("setpriv", f"--reuid={ACCOUNT}", f"--regid={ACCOUNT}", "--clear-groups")
    return whose if os.geteuid() == 0 else ()


def _give(folder: Path) -> None:
    """Give the directory and its contents to PostgreSQL's user."""
    if os.geteuid() == 0:
        for path in (folder, *folder.iterdir()):
            shutil.chown(path, ACCOUNT, ACCOUNT)
