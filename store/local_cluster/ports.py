"""Ports for nodes that keep them: free now, and below those that the system hands out for connections.

A port from the system's own range could be taken by a connection of any program while the node that has it is down.
"""

from __future__ import annotations

import socket
from typing import Final

from cortado.errors import InvalidArgument, Unavailable

HOST: Final = "127.0.0.1"
PORT_DEFAULT: Final = 7621
_LOOKED_AT_MAX: Final = 2_000


def free_ports(count: int, first: int = PORT_DEFAULT, *, taken: frozenset[int] = frozenset()) -> list[int]:
    """``count`` free ports from ``first`` on, none of ``taken``. Raises InvalidArgument, Unavailable (none free)."""
    if not 1024 <= first <= 65_535:
        raise InvalidArgument("--port", "must be between 1024 and 65535", str(first))
    found: list[int] = []
    for port in range(first, min(first + _LOOKED_AT_MAX, 65_536)):
        if port not in taken and _is_free(port):
            found.append(port)
            if len(found) == count:
                return found
    raise Unavailable(f"there are no {count} free ports from {first} on: give another --port")


def _is_free(port: int) -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as tried:
        # As servers do: leftover connections of an earlier one do not hold the port.
        tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            tried.bind((HOST, port))
        except OSError:
            return False
    return True
