"""The owner of a certificate: one name, as a URI among its subject alternative names.

::

    cortado:node:n1           the node with the id n1: it may call the Peers service as n1, and as no other node
    cortado:client:reports    a client: it may call everything but the Peers service

Host names and addresses in the same certificate say where it may be served, for clients that check it. They do not
identify a peer, since several nodes may share a host.

A node's certificate carries its id as a DNS name, too, which a peer that dials it looks for::

    n1.node.cortado.internal

Host names have no case. A node id that has keeps it by a ``~`` before each capital: ``N1`` is ``~n1``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final, Literal, TypeAlias

from cortado.errors import InvalidArgument

Role: TypeAlias = Literal["node", "client"]

NAME_LENGTH_MAX: Final = 64
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
_URI = re.compile(r"cortado:(node|client):([A-Za-z0-9][A-Za-z0-9_.-]*)")
_SHOWN_MAX: Final = 80


def uri_of(role: Role, name: str) -> str:
    """Return the URI that a certificate of this node or client carries."""
    return f"cortado:{role}:{name}"


def dns_name_of(node_id: str) -> str:
    """Return the host name by which a peer knows this node's certificate, wherever the node runs."""
    escaped = "".join(f"~{letter.lower()}" if letter.isupper() else letter for letter in node_id)
    return f"{escaped}.node.cortado.internal"


def identity_of(uris: Iterable[str]) -> tuple[str, str]:
    """Return role and name of a certificate with these URIs. ("", "") for none of ours, and for more than one: a
    certificate that names two nodes would be either."""
    found = {(match[1], match[2]) for uri in uris if (match := _URI.fullmatch(uri)) is not None}
    return found.pop() if len(found) == 1 else ("", "")


def client_of(names: Iterable[bytes]) -> str:
    """Return the client whose certificate carries these subject alternative names; empty for a node's, and for any
    other."""
    role, name = identity_of(each.decode("ascii", "replace") for each in names)
    return name if role == "client" else ""


def check_name(name: str, field: str) -> str:
    """Return ``name`` if a node or a client may be called so. Raises InvalidArgument naming ``field``."""
    if len(name) > NAME_LENGTH_MAX:
        problem = f"may have {NAME_LENGTH_MAX} characters"
        raise InvalidArgument(field, problem, f"{name[:_SHOWN_MAX]}... ({len(name)} characters)")
    if _NAME.fullmatch(name) is None:
        problem = "must consist of letters, digits, '_', '.' and '-', and begin with a letter or a digit"
        raise InvalidArgument(field, problem, repr(name))
    return name
