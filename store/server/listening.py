"""The port of a server: taken before all other work, and announced once it is served."""

from __future__ import annotations

import errno
import logging
import socket
import sys
from pathlib import Path
from typing import Any, Final

import grpc

from cortado.errors import Unavailable
from cortado.store.peers.credentials import Certificates, Material
from cortado.store.ports.addresses import address_of, why_not_bound
from cortado.store.ports.port_file import there_last
from cortado.store.server.config import MESSAGE_BYTES_MAX, METADATA_BYTES_MAX, ServerConfig

_LOG: Final = logging.getLogger(__name__)

PENDING_CALLS_MAX: Final = 65_536
PENDING_S_MAX: Final = 3_600
PEER_BACKLOG: Final = 128
# A name such as localhost may stand for an address of IPv6 on a machine that has none.
_NOT_OURS: Final = frozenset({errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT})
# Bounds of the time in which a peer has to show that it speaks TLS and HTTP/2, and of the time without a call.
HANDSHAKE_MS_MAX: Final = 10_000
IDLE_MS_MAX: Final = 300_000
STREAMS_MAX: Final = 8_192


def new_server(connections_max: int) -> grpc.aio.Server:
    """Return a server without a port yet, which accepts ``connections_max`` at a time. If a client's connection was
    ended for being idle, its next call makes a new one."""
    return grpc.aio.server(
        options=[
            ("grpc.max_receive_message_length", MESSAGE_BYTES_MAX),
            ("grpc.max_send_message_length", MESSAGE_BYTES_MAX),
            ("grpc.max_allowed_incoming_connections", connections_max),
            ("grpc.server_handshake_timeout_ms", HANDSHAKE_MS_MAX),
            ("grpc.max_connection_idle_ms", IDLE_MS_MAX),
            # Metadata has a bound only once the client has acknowledged it: the timeout below bounds that delay.
            ("grpc.max_metadata_size", METADATA_BYTES_MAX // 2),
            ("grpc.absolute_max_metadata_size", METADATA_BYTES_MAX),
            ("grpc.http2.settings_timeout", HANDSHAKE_MS_MAX),
            # For one connection, above the need of a client: a stream costs some 16 KiB. It is no gate: clients that
            # know of it wait without an error, and the calls of others end with their connection.
            ("grpc.max_concurrent_streams", STREAMS_MAX),
            # A PING costs half a microsecond, and no more than 10,000 answers wait to be read. To count strikes costs
            # more: a connection that is closed for them reads on meanwhile, and each further PING costs 70 us.
            ("grpc.http2.max_ping_strikes", 0),
            # Two servers must not share a port by accident.
            ("grpc.so_reuseport", 0),
            # Bytes that no method reads yet stay with their sender, but for 64 KiB of each call. gRPC's habit is to
            # widen that window as the link allows, to megabytes: thousands of calls that wait would fill the memory. A
            # message that is being read is not held up by it, since the window grows by its missing bytes.
            ("grpc.http2.bdp_probe", 0),
            # Calls that arrived and were not begun yet must not be dropped at random, as CANCELLED, which is gRPC's
            # habit from 1,000 calls on: the node's gates refuse, with a reason.
            ("grpc.server.max_pending_requests", PENDING_CALLS_MAX),
            ("grpc.server.max_pending_requests_hard_limit", PENDING_CALLS_MAX),
            # Nor after thirty seconds, which is its habit, too: a call that waits so long at a busy node has a
            # deadline.
            ("grpc.server_max_unrequested_time_in_server", PENDING_S_MAX),
        ]
    )


def bind(
    server: grpc.aio.Server, host: str, port: int, certificates: Certificates | None, *, of_clients: bool = True
) -> str:
    """Take the port, without serving on it yet; return the address. With ``certificates``, clients show theirs, too, if
    ``of_clients``. Raises Unavailable."""
    wanted = address_of(host, port)
    try:
        if certificates is None:
            bound = server.add_insecure_port(wanted)
        else:
            bound = server.add_secure_port(wanted, _credentials(certificates, of_clients))
    except RuntimeError as error:
        why = why_not_bound(host, port) or "the address is in use or not this machine's"
        raise Unavailable(f"cannot listen on {wanted}: {why}") from error
    return address_of(host, bound)


def _credentials(certificates: Certificates, of_clients: bool) -> grpc.ServerCredentials:
    """Return credentials with the newest certificate at each handshake. The port takes only callers with a certificate
    of the authorities, or asks no caller for one: gRPC offers no third way."""
    served = certificates.current()

    def configuration(material: Material) -> grpc.ServerCertificateConfiguration:
        return grpc.ssl_server_certificate_configuration([(material.key, material.cert)], material.ca)

    def fetch() -> Any:
        # None is "unchanged"; the stubs do not know it.
        nonlocal served
        newest = certificates.current()
        if newest is served:
            return None
        served = newest
        return configuration(newest)

    return grpc.dynamic_ssl_server_credentials(configuration(served), fetch, require_client_authentication=of_clients)


def bind_sockets(host: str, port: int, backlog: int = PEER_BACKLOG) -> list[socket.socket]:
    """Take a port on each address of ``host`` that this machine has, without serving on it yet. Raises Unavailable."""
    taken: list[socket.socket] = []
    problem: OSError | None = None
    try:
        for family, kind, protocol, _, address in socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        ):
            listening = socket.socket(family, kind, protocol)
            try:
                listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                # If any port will do, it is the same one on all addresses.
                chosen = taken[0].getsockname()[1] if taken else port
                listening.bind((address[0], chosen, *address[2:]))
                listening.listen(backlog)
            except OSError as error:
                listening.close()
                if error.errno not in _NOT_OURS:
                    raise
                problem = error
            else:
                taken.append(listening)
        if problem is not None and not taken:
            raise problem
    except OSError as error:
        for each in taken:
            each.close()
        raise Unavailable(f"cannot listen on {address_of(host, port)}: {error.strerror or error}") from error
    return taken


def announce(config: ServerConfig, address: str, peer_address: str) -> None:
    """Tell the address of the server: to people and scripts on stdout, and in a file if one is configured."""
    with there_last(config.port_file, address):
        sys.stdout.write(f"listening on {address}\nlistening for peers on {peer_address}\n")
        sys.stdout.flush()
        _LOG.info("serving %s on %s, and peers on %s", Path(config.data_dir).absolute(), address, peer_address)
