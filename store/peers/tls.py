"""The causes of a failed TLS handshake, in words for an operator, and the identity in a caller's certificate.

Both sides show a certificate of an authority that the other one trusts. The dialling side checks for the node that it
meant: by the DNS name that each node's certificate carries, or, if it only knows an address, by the host in it. The
dialled side takes role and name from the caller's certificate. In TLS 1.3 a caller learns only from its first read
that its certificate was refused, and not why: the other side's log says it.
"""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from typing import Any, Final

from cortado.errors import PeerRefused, Unavailable
from cortado.store.peers.credentials import shown_identity
from cortado.store.peers.identity import dns_name_of

_EXPIRED: Final = 10
_WRONG_NAMES: Final = frozenset({62, 64})
_NO_TLS: Final = frozenset(
    {"WRONG_VERSION_NUMBER", "HTTP_REQUEST", "HTTPS_PROXY_REQUEST", "UNKNOWN_PROTOCOL", "RECORD_LAYER_FAILURE"}
)


def why_failed(problem: ssl.SSLError, whose: str) -> str:
    """Return the defect of the other side, whose certificate should have been that of ``whose``."""
    if isinstance(problem, ssl.SSLCertVerificationError):
        if problem.verify_code == _EXPIRED:
            return "its certificate has expired"
        if problem.verify_code in _WRONG_NAMES:
            return f"its certificate is not that of {whose}"
        return f"its certificate does not come from an authority that this node trusts: {problem.verify_message}"
    if problem.reason in _NO_TLS:
        return "it does not speak TLS"
    if problem.reason == "PEER_DID_NOT_RETURN_A_CERTIFICATE":
        return "it shows no certificate"
    return f"the TLS handshake failed: {problem.reason or problem}"


def check_shown(shown: Mapping[str, Any] | None, node_id: str) -> None:
    """Check that a certificate is that of the dialled node. Raises Unavailable."""
    if ("DNS", dns_name_of(node_id)) not in (shown or {}).get("subjectAltName", ()):
        raise Unavailable(f"its certificate is not that of node {node_id}")


def caller_of(shown: Mapping[str, Any] | None) -> tuple[str, str]:
    """Return role and name of a caller's certificate. Raises PeerRefused without one."""
    if not shown:
        raise PeerRefused("it shows no certificate")
    return shown_identity(shown)
