"""Files of certificates for tests: an authority, and the certificates that it signed."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from cortado.store.peers.certificates import (
    Authority,
    Pair,
    load_authority,
    make_authority,
    make_client,
    make_gateway,
    make_node,
)
from cortado.store.peers.credentials import Certificates, TlsFiles

NOW = datetime.now(UTC)
DAYS = 30


class Certifier:
    """Makes certificates in ``directory``; ``ca.crt`` there is the authority's."""

    def __init__(self, directory: Path, *, now: datetime = NOW) -> None:
        self.directory = directory
        directory.mkdir(parents=True, exist_ok=True)
        made = make_authority("tests", DAYS * 10, now)
        self.ca = directory / "ca.crt"
        self.ca.write_bytes(made.certificate)
        (directory / "ca.key").write_bytes(made.key)
        self.authority: Authority = load_authority(
            made.certificate, made.key, certificate_name="ca.crt", key_name="ca.key"
        )

    def node(
        self, node_id: str, *, under: str = "", hosts: tuple[str, ...] = ("127.0.0.1", "localhost"), now: datetime = NOW
    ) -> TlsFiles:
        """Return files of a node's certificate, named after the node, or ``under`` another name."""
        return self._write(under or node_id, make_node(self.authority, node_id, hosts, DAYS, now))

    def client(self, name: str, *, under: str = "") -> TlsFiles:
        return self._write(under or name, make_client(self.authority, name, DAYS, NOW))

    def gateway(
        self, name: str, *, under: str = "", hosts: tuple[str, ...] = ("127.0.0.1", "localhost"), now: datetime = NOW
    ) -> TlsFiles:
        return self._write(under or name, make_gateway(self.authority, name, hosts, DAYS, now))

    def certificates(self, node_id: str) -> Certificates:
        return Certificates(self.node(node_id), node_id=node_id)

    def _write(self, name: str, made: Pair) -> TlsFiles:
        files = TlsFiles(self.directory / f"{name}.crt", self.directory / f"{name}.key", self.ca)
        for path, content in ((files.key, made.key), (files.cert, made.certificate)):
            # As an operator should: a file is replaced whole.
            temporary = path.with_name(path.name + ".new")
            temporary.write_bytes(content)
            temporary.replace(path)
        return files
