"""Real nodes with certificates, and calls with an operator's certificate."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from subprocess import run as run_process

from cortado.store.client import Tls
from cortado.store.peers.credentials import TlsFiles
from support.certificates import Certifier
from support.server_process import ServerProcess


def client_tls(files: TlsFiles) -> Tls:
    return Tls(ca=files.ca, cert=files.cert, key=files.key)


def node_process(folder: Path, files: TlsFiles, node_id: str, *options: str) -> ServerProcess:
    tls = ("--tls-cert", str(files.cert), "--tls-key", str(files.key), "--tls-ca", str(files.ca))
    return ServerProcess(folder / node_id, "--node-id", node_id, *tls, *options)


def command(files: TlsFiles, endpoint: str, *arguments: str) -> str:
    tls = ("--tls-cert", str(files.cert), "--tls-key", str(files.key), "--tls-ca", str(files.ca))
    line = [sys.executable, "-m", "cortado.store.cli", *arguments, "--endpoint", endpoint, *tls]
    ended = run_process(line, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


@contextmanager
def two_nodes(tmp_path: Path, certifier: Certifier) -> Iterator[tuple[ServerProcess, ServerProcess]]:
    """Run n1 and n2, both voters, with certificates."""
    n1 = node_process(tmp_path, certifier.node("n1"), "n1")
    operator = certifier.client("operator")
    n2: ServerProcess | None = None
    try:
        n1.start()
        n2 = node_process(tmp_path, certifier.node("n2"), "n2", "--join", n1.peer_address)
        command(operator, n1.endpoint, "member", "add", "n2", n2.peer_address)
        n2.start()
        command(operator, n1.endpoint, "member", "promote", "n2", "--wait")
        yield n1, n2
    finally:
        for each in (n1, n2):
            if each is not None:
                each.kill()
