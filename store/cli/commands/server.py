"""``cortado server``: run a node in the foreground.

Its options are the settings of :mod:`cortado.store.settings.server`. The server's modules are imported at its start,
not before.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from cortado.errors import InvalidArgument
from cortado.extras import needing
from cortado.store.cli.failures import EndedWith
from cortado.store.cli.session import Session
from cortado.store.cli.setting_options import ConfigOption
from cortado.store.cli.tree import command
from cortado.store.settings.server import SETTINGS


@command(
    "server",
    in_shell=False,
    remote=False,
    settings=SETTINGS,
    examples="""
        cortado server
        cortado server --data-dir /var/lib/cortado --listen 127.0.0.1:7621
        cortado server --config /etc/cortado.toml
        cortado server --listen 127.0.0.1:7631 --data-dir n2 --node-id n2 --join 127.0.0.1:7622
        cortado server --listen 127.0.0.1:0 --port-file /tmp/cortado.port
        cortado server --verify --limit.writes-max 4096
    """,
)
def server(_: Session, flags: dict[str, Any], config: ConfigOption = None) -> None:
    """Run a server in the foreground, until Ctrl-C or SIGTERM.

    With an empty directory it starts a new cluster of one node, or with --join becomes a member of an existing one.
    Each option can also be set in a file or in the environment: --data-dir is data-dir and CORTADO_SERVER_DATA_DIR.

    Needs the extra [server]: pip install 'cortadodb[server]'.
    """
    _run(flags, config)


def _run(flags: dict[str, Any], file: Path | None) -> None:
    with needing("server", "a server"):
        from cortado.store.server import ServerEnded, serve
        from cortado.store.server.settings import configuration, gathered, placed
    config = configuration(gathered(flags, file, os.environ))
    try:
        serve(config)
    except InvalidArgument as refused:
        raise placed(refused, config) from refused
    except ServerEnded as refused:
        why = placed(refused.error, config) if isinstance(refused.error, InvalidArgument) else refused.error
        raise EndedWith(why, refused.exit_code) from refused
