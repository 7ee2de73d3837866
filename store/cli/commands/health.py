"""``cortado health``: whether a node or a gateway serves, as an exit code: for a container's health check."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, Any, Final

from cortado.errors import CortadoError, InvalidArgument, PermissionDenied, Unauthenticated
from cortado.store.cli.answers import Answer
from cortado.store.cli.failures import OK, UNAVAILABLE
from cortado.store.cli.options import Option
from cortado.store.cli.render import Renderer
from cortado.store.cli.session import Session
from cortado.store.cli.tree import command

SERVING: Final = "serving"
_HTTPS: Final = "https://"


@dataclass(frozen=True, slots=True)
class HealthAnswer:
    """For each address "serving", or why it does not."""

    states: tuple[tuple[str, str], ...]

    @property
    def exit_code(self) -> int:
        return OK if all(state == SERVING for _, state in self.states) else UNAVAILABLE

    def as_json(self) -> Iterable[Any]:
        return [{"address": address, "serving": state == SERVING, "state": state} for address, state in self.states]

    def as_table(self, show: Renderer) -> None:
        for address, state in self.states:
            show.line(f"{address}: {state}")


@command(
    "health",
    examples="""
        cortado health
        cortado health -e 127.0.0.1:7621 --timeout 3
        cortado health --gateway 127.0.0.1:7629
        cortado health --gateway https://gw.example.com:7629 --tls-ca certs/ca.crt
    """,
)
def health(
    session: Session,
    gateway: Annotated[
        str | None,
        Option("--gateway", help="Ask the gateway at this address; https:// before it for HTTPS.", metavar="HOST:PORT"),
    ] = None,
) -> Answer:
    """Check whether every node that --endpoint names can serve. Exit code 6 if one cannot.

    Each node is called directly; no other node answers in its place.
    """
    if gateway is not None:
        return HealthAnswer(((gateway, _gateway_state(gateway, session)),))
    return HealthAnswer(tuple((each, _node_state(session, each)) for each in session.endpoint.split(",")))


def _node_state(session: Session, address: str) -> str:
    from cortado.proto.v1 import cluster_pb2
    from cortado.store.client.node import NodeConnection

    try:
        with NodeConnection(address, tls=session.tls(), token=session.token, timeout_s=session.timeout_s) as node:
            try:
                return node.ask("Cluster/Status", cluster_pb2.StatusRequest(), cluster_pb2.StatusResponse).state
            except (Unauthenticated, PermissionDenied):
                # Whether it serves is no secret; the reasons are for callers with rights.
                return SERVING if node.is_serving() else "does not serve"
    except InvalidArgument:
        raise
    except CortadoError as error:
        return error.message()


def _gateway_state(asked: str, session: Session) -> str:
    from http.client import HTTPConnection, HTTPException, HTTPSConnection
    from ssl import create_default_context

    from cortado.store.client.endpoints import is_endpoint

    address = asked.removeprefix(_HTTPS)
    if not is_endpoint(address):
        raise InvalidArgument("--gateway", "must look like host:port, such as 127.0.0.1:7629", asked)
    host, _, port = address.rpartition(":")
    tls = session.tls()
    connection = HTTPConnection(host.strip("[]"), int(port), timeout=session.timeout_s)
    if asked != address:
        context = create_default_context(cadata=None if tls is None else tls.authorities())
        connection = HTTPSConnection(host.strip("[]"), int(port), timeout=session.timeout_s, context=context)
    try:
        connection.request("GET", "/healthz")
        answered = connection.getresponse()
    except (OSError, HTTPException) as error:
        return f"cannot be reached: {error}"
    finally:
        connection.close()
    return SERVING if answered.status == 200 else f"answers {answered.status} {answered.reason}"
