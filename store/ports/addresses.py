"""Addresses as an operator writes them: a host, by name or number, and a port."""

from __future__ import annotations

import ipaddress
import re
import socket
from typing import Final

from cortado.errors import InvalidArgument

PORT_MAX: Final = 65_535

_HOST = re.compile(r"\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]{1,253}")


def split_address(field: str, address: str, *, port_min: int = 1) -> tuple[str, int]:
    """Host (without brackets) and port of ``host:port``. Raises InvalidArgument naming ``field``."""
    host, colon, port = address.rpartition(":")
    is_number = port.isascii() and port.isdigit() and len(port) <= 5
    if not colon or not host or not is_number or not port_min <= int(port) <= PORT_MAX:
        raise InvalidArgument(field, f"must be host:port with a port from {port_min} to {PORT_MAX}", address)
    if not _HOST.fullmatch(host):
        raise InvalidArgument(field, "must be host:port; an IPv6 address stands in brackets", address)
    return host.strip("[]"), int(port)


def check_address(field: str, address: str) -> str:
    """``address``, under which others can reach a node. Raises InvalidArgument naming ``field``."""
    host, _ = split_address(field, address)
    if is_wildcard(host):
        raise InvalidArgument(field, "must be an address that other hosts can reach, not the one for all", address)
    return address


def is_loopback(host: str) -> bool:
    """Return whether only this machine reaches ``host``."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def is_wildcard(host: str) -> bool:
    """Return whether ``host`` stands for all of a machine's addresses, so that no client can connect to it by that
    name."""
    try:
        return ipaddress.ip_address(host).is_unspecified
    except ValueError:
        return False


def address_of(host: str, port: int) -> str:
    """Return the two as one text."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def why_not_bound(host: str, port: int) -> str:
    """Why nothing can listen there, as the system says it; gRPC does not. Empty if something could by now."""
    try:
        for family, kind, protocol, _, address in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM):
            with socket.socket(family, kind, protocol) as probe:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                probe.bind(address)
                probe.listen(1)
    except OSError as error:
        return error.strerror or str(error)
    return ""
