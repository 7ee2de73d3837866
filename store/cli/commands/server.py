"""``cortado server``: run a node in the foreground.

A flag that is not given is None here, so that a configuration file can say it; what each may hold, and the defaults,
are in :mod:`cortado.store.server.settings`, which is imported when a server is started and not before.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Final, TypeAlias

import typer

from cortado.errors import Unsupported
from cortado.store.cli.failures import EndedWith
from cortado.store.cli.session import Session, command

_CLUSTER: Final = "The cluster"
_SECURITY: Final = "Security"
_MORE: Final = "Bounds and timers"
_TESTS: Final = "For tests only"


def _option(help: str, metavar: str, default: str | None = None, panel: str | None = None) -> Any:
    return typer.Option(help=help, metavar=metavar, show_default=default or False, rich_help_panel=panel)


def _flag(name: str, help: str, panel: str | None = None) -> Any:
    return typer.Option(name, help=help, show_default=False, rich_help_panel=panel)


Text: TypeAlias = str | None
Texts: TypeAlias = list[str] | None
Given: TypeAlias = bool | None


def add_to(app: typer.Typer) -> None:
    @command(
        app,
        "server",
        remote=False,
        examples="""
            cortado server
            cortado server --data-dir /var/lib/cortado --listen 127.0.0.1:7621
            cortado server --config /etc/cortado.toml
            cortado server --listen 127.0.0.1:7622 --data-dir n2 --node-id n2 --join 127.0.0.1:7621
            cortado server --listen 127.0.0.1:0 --port-file /tmp/cortado.port
            cortado server --verify
        """,
    )
    def server(
        _: Session,
        config: Annotated[
            Path | None, _option("A TOML file with settings, named as these options are; options win.", "PATH")
        ] = None,
        data_dir: Annotated[
            Text, _option("Where everything durable lies; made at the first start.", "PATH", "cortado-data")
        ] = None,
        listen: Annotated[
            Text, _option("Address to serve on. Port 0 takes a free one.", "HOST:PORT", "127.0.0.1:7621")
        ] = None,
        port_file: Annotated[Text, _option("Write the address there once it is served.", "PATH")] = None,
        verify: Annotated[
            Given, _flag("--verify", "Look at every page of the data file before serving, however large it is.")
        ] = None,
        advertise: Annotated[
            Text, _option("Address under which others reach this node.", "HOST:PORT", "--listen", _CLUSTER)
        ] = None,
        node_id: Annotated[
            Text, _option("This node's name in the cluster, for ever.", "ID", "a drawn one", _CLUSTER)
        ] = None,
        join: Annotated[
            Texts,
            _option(
                "Join the cluster of these servers, which was told of this node by cortado member add; may be "
                "repeated. Ignored once joined.",
                "HOST:PORT,...",
                None,
                _CLUSTER,
            ),
        ] = None,
        join_timeout_ms: Annotated[
            Text, _option("How long to look for that cluster's leader.", "MS", "60000", _CLUSTER)
        ] = None,
        cluster_id: Annotated[
            Text, _option("Name of the cluster, at the first start.", "NAME", "a new one", _CLUSTER)
        ] = None,
        tls_cert: Annotated[Text, _option("This node's certificate.", "PEM", None, _SECURITY)] = None,
        tls_key: Annotated[Text, _option("The certificate's private key.", "PEM", None, _SECURITY)] = None,
        tls_ca: Annotated[
            Text, _option("The authority that everybody's certificate is of.", "PEM", None, _SECURITY)
        ] = None,
        insecure: Annotated[
            Given, _flag("--insecure", "Allow an address that is not loopback. Nothing is encrypted.", _SECURITY)
        ] = None,
        map_size: Annotated[
            Text,
            _option(
                "Bound on the data: bytes, or with KiB, MiB, GiB or TiB.",
                "SIZE",
                "256GiB, or what the process may map",
                _MORE,
            ),
        ] = None,
        limit: Annotated[
            Texts,
            _option("One bound of the node, such as writes_max=8192; may be repeated.", "NAME=N", None, _MORE),
        ] = None,
        max_clock_offset_ms: Annotated[
            Text,
            _option("How far ahead of this clock a timestamp from outside may be.", "MS", "250", _MORE),
        ] = None,
        stop_grace_ms: Annotated[
            Text, _option("How long calls may go on once it was told to stop.", "MS", "5000", _MORE)
        ] = None,
        heartbeat_ms: Annotated[Text, _option("How often a leader is heard.", "MS", "100", _MORE)] = None,
        election_ms: Annotated[
            Text, _option("After how long without a leader another one is sought.", "MS", "700", _MORE)
        ] = None,
        lease: Annotated[
            Given,
            _flag("--lease", "Answer reads at the leader on the word of the clocks, without asking.", _MORE),
        ] = None,
        raft: Annotated[
            Texts,
            _option("A setting of replication, such as retain_entries=10000; may be repeated.", "NAME=N", None, _MORE),
        ] = None,
        clock_offset_ms: Annotated[Text, _option("Added to the physical clock.", "MS", "0", _TESTS)] = None,
        faults_file: Annotated[Text, typer.Option(hidden=True, metavar="PATH")] = None,
        parent_fd: Annotated[Text, typer.Option(hidden=True, metavar="N")] = None,
    ) -> None:
        """Run a server in the foreground, until Ctrl-C or SIGTERM.

        On an empty directory it begins a cluster of one, or with --join becomes a member of another one.

        Needs the extra \\[server]: pip install 'cortado\\[server]'.
        """
        given = {name.replace("_", "-"): value for name, value in locals().items() if name not in ("_", "config")}
        # Of an option that may be repeated, none is an empty list.
        _run({name: value for name, value in given.items() if value not in (None, [])}, config)


def _run(flags: dict[str, Any], file: Path | None) -> None:
    try:
        from cortado.store.server import StartRefused, serve
        from cortado.store.server.settings import configuration
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("cortado"):
            raise
        raise Unsupported(f"a server without {error.name}", "pip install 'cortado[server]'") from None
    try:
        serve(configuration(flags, file))
    except StartRefused as refused:
        raise EndedWith(refused.error, refused.exit_code) from refused
