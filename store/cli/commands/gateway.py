"""``cortado gateway``: HTTP before a cluster, in the foreground. What serves is imported when it is started."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cortado.store.cli.extras import needing
from cortado.store.cli.options import Option
from cortado.store.cli.session import Session
from cortado.store.cli.tree import command


@command(
    "gateway",
    examples="""
        cortado gateway
        cortado gateway --listen 127.0.0.1:7629 --endpoint 10.0.0.1:7621,10.0.0.2:7621
        cortado gateway --listen 127.0.0.1:0 --port-file /tmp/gateway.port
    """,
)
def gateway(
    session: Session,
    listen: Annotated[
        str,
        Option(
            "--listen",
            help="Address to serve on, of this machine alone. Port 0 takes a free port.",
            metavar="HOST:PORT",
        ),
    ] = "127.0.0.1:7629",
    port_file: Annotated[
        Path | None,
        Option("--port-file", help="Write the address to this file when it serves, for scripts.", metavar="PATH"),
    ] = None,
) -> None:
    """Serve documents and pairs over HTTP, in the foreground, until Ctrl-C or SIGTERM.

    It keeps nothing: run as many as you like, anywhere near the cluster that --endpoint names.

    Needs the extra [gateway]: pip install 'cortado[gateway]'.
    """
    with needing("gateway", "a gateway"):
        from cortado.store.gateway.bounds import GatewayLimits
        from cortado.store.gateway.serving import GatewayConfig, serve
    from cortado.store.client import AsyncClient

    tls = session.tls()
    config = GatewayConfig(listen, port_file, GatewayLimits())
    serve(config, lambda: AsyncClient(session.endpoint, timeout_s=session.timeout_s, tls=tls))
