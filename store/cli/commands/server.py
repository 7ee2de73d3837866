"""``cortado server``: run a node in the foreground."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path
from typing import Annotated, Final

import typer

from cortado.errors import InvalidArgument, Unsupported
from cortado.store.cli.parse import whole
from cortado.store.cli.session import Session, command

_UNITS: Final = {"": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}
_SIZE = re.compile(r"([0-9]{1,15})(KiB|MiB|GiB|TiB|)")


def add_to(app: typer.Typer) -> None:
    @command(
        app,
        "server",
        remote=False,
        examples="""
            cortado server
            cortado server --data-dir /var/lib/cortado --listen 127.0.0.1:7621
            cortado server --listen 127.0.0.1:0 --port-file /tmp/cortado.port
            cortado server --verify
        """,
    )
    def server(
        _: Session,
        data_dir: Annotated[
            Path, typer.Option(help="Where everything durable lies; made at the first start.", metavar="PATH")
        ] = Path("cortado-data"),
        listen: Annotated[
            str, typer.Option(help="Address to serve on. Port 0 takes a free one.", metavar="HOST:PORT")
        ] = "127.0.0.1:7621",
        insecure: Annotated[
            bool, typer.Option("--insecure", help="Allow an address that is not loopback. Nothing is encrypted.")
        ] = False,
        port_file: Annotated[
            Path | None, typer.Option(help="Write the address there once it is served.", metavar="PATH")
        ] = None,
        map_size: Annotated[
            str | None,
            typer.Option(
                help="Bound on the data: bytes, or with KiB, MiB, GiB or TiB.",
                show_default="256GiB, or what the process may map",
                metavar="SIZE",
            ),
        ] = None,
        max_clock_offset_ms: Annotated[
            int,
            typer.Option(
                help="How far ahead of this clock a timestamp from outside may be.",
                parser=whole("--max-clock-offset-ms"),
                metavar="MS",
            ),
        ] = 250,
        clock_offset_ms: Annotated[
            int,
            typer.Option(
                help="For tests only: added to the physical clock.",
                parser=whole("--clock-offset-ms", -(1 << 62)),
                metavar="MS",
            ),
        ] = 0,
        cluster_id: Annotated[
            str, typer.Option(help="Name of the cluster, at the first start.", show_default="a new one", metavar="NAME")
        ] = "",
        verify: Annotated[
            bool,
            typer.Option("--verify", help="Look at every page of the data file before serving, however large it is."),
        ] = False,
        stop_grace_ms: Annotated[
            int,
            typer.Option(
                help="How long calls may go on once it was told to stop.", parser=whole("--stop-grace-ms"), metavar="MS"
            ),
        ] = 5_000,
        limit: Annotated[
            list[str] | None,
            typer.Option(help="One bound of the node, such as writes_max=8192; may be repeated.", metavar="NAME=N"),
        ] = None,
    ) -> None:
        """Run a server in the foreground, until Ctrl-C or SIGTERM.

        Needs the extra \\[server]: pip install 'cortado\\[server]'.
        """
        try:
            from cortado.store.server import serve
            from cortado.store.server.config import ServerConfig
        except ModuleNotFoundError as error:
            if (error.name or "").startswith("cortado"):
                raise
            raise Unsupported(f"a server without {error.name}", "pip install 'cortado[server]'") from None
        default = ServerConfig().limits
        config = ServerConfig(
            data_dir=data_dir,
            listen=listen,
            insecure=insecure,
            port_file=port_file,
            map_size_bytes=None if map_size is None else parse_size(map_size, "--map-size"),
            max_clock_offset_ms=max_clock_offset_ms,
            clock_offset_ms=clock_offset_ms,
            cluster_id=cluster_id,
            verify=verify,
            stop_grace_ms=stop_grace_ms,
            limits=dataclasses.replace(
                default, **parse_limits(limit or [], [each.name for each in dataclasses.fields(default)])
            ),
        )
        serve(config)


def parse_size(text: str, option: str) -> int:
    """Bytes of ``4096``, ``64MiB`` and the like. Raises InvalidArgument."""
    match = _SIZE.fullmatch(text)
    if match is None:
        raise InvalidArgument(option, "must be a number of bytes, perhaps with KiB, MiB, GiB or TiB", repr(text))
    return int(match[1]) * _UNITS[match[2]]


def parse_limits(texts: list[str], names: list[str]) -> dict[str, int]:
    """``name=number``, each. Raises InvalidArgument naming the bounds there are."""
    limits: dict[str, int] = {}
    for text in texts:
        name, _, number = text.partition("=")
        if name not in names:
            raise InvalidArgument("--limit", f"must be one of {', '.join(names)}", repr(name))
        if not (number.isascii() and number.isdigit() and len(number) < 16):
            raise InvalidArgument("--limit", f"must look like {name}=1000", repr(text))
        limits[name] = int(number)
    return limits
