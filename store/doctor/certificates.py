"""The expiry of certificates. Of key files only the permissions are read, never the content."""

from __future__ import annotations

import ssl
import stat
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from cortado.extras import needing
from cortado.store.client.endpoints import check_endpoint
from cortado.store.files.regular_files import read_regular

_FILE_BYTES_MAX: Final = 1 << 20


def file_facts(path: Path) -> dict[str, Any]:
    """Return the facts of a PEM file with a certificate. Raises OSError, CortadoError."""
    return {"file": str(path), **_described(read_regular(path, _FILE_BYTES_MAX, follows_links=True), str(path))}


def served_facts(address: str, timeout_s: float) -> dict[str, Any]:
    """Return the facts of the certificate served at ``address``, by any signer. Raises OSError, CortadoError."""
    host, _, port = check_endpoint(address).rpartition(":")
    pem = ssl.get_server_certificate((host.strip("[]"), int(port)), timeout=timeout_s)
    return {"address": address, **_described(pem.encode(), address)}


def key_facts(path: Path) -> dict[str, Any]:
    """Return the permissions of a key's file. Raises OSError."""
    mode = stat.S_IMODE(path.stat().st_mode)
    return {"file": str(path), "mode": f"{mode:03o}", "others_may_read": bool(mode & 0o077)}


def _described(pem: bytes, name: str) -> dict[str, Any]:
    with needing("server", "reading certificates"):
        from cortado.store.peers.certificates import describe

    found = describe(pem, name)
    left = found.not_after - datetime.now(UTC)
    return {
        "subject": found.subject,
        "issuer": found.issuer,
        "identities": list(found.uris),
        "hosts": list(found.hosts),
        "not_before": found.not_before.isoformat(),
        "not_after": found.not_after.isoformat(),
        "days_left": round(left.total_seconds() / 86_400, 2),
    }
