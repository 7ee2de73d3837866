"""``cortado gateway``: HTTP before a cluster, in the foreground.

Its options are the settings of :mod:`cortado.store.settings.gateway`. The server's modules are imported at its start.
"""

from __future__ import annotations

import os
from typing import Any

from cortado.extras import needing
from cortado.store.cli.session import Session
from cortado.store.cli.tree import command
from cortado.store.settings.gateway import GATEWAY_SETTINGS


@command(
    "gateway",
    in_shell=False,
    settings=GATEWAY_SETTINGS,
    examples="""
        cortado gateway
        cortado gateway --listen 127.0.0.1:7629 --endpoint 10.0.0.1:7621,10.0.0.2:7621
        cortado gateway --listen 127.0.0.1:0 --port-file /tmp/gateway.port
    """,
)
def gateway(session: Session, flags: dict[str, Any]) -> None:
    """Serve documents and pairs over HTTP, in the foreground, until Ctrl-C or SIGTERM.

    It keeps nothing: run as many as you like, anywhere near the cluster that --endpoint names. Each option can also be
    set in the environment: --listen is CORTADO_GATEWAY_LISTEN.

    Needs the extra [gateway]: pip install 'cortadodb[gateway]'.
    """
    with needing("gateway", "a gateway"):
        from cortado.store.gateway.config import configuration
        from cortado.store.gateway.serving import serve
    from cortado.store.client import AsyncClient
    from cortado.store.client.aio.runtime import AsyncioRuntime

    config, tls = configuration(flags, os.environ), session.tls()
    serve(
        config,
        lambda: AsyncClient._of(
            AsyncioRuntime(ahead=False), session.endpoint, timeout_s=session.timeout_s, tls=tls, token=session.token
        ),
    )
