"""``cortado cert``: a certificate authority of your own, and certificates for nodes and clients. Talks to no server."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

from cortado.errors import AlreadyExists, InvalidArgument
from cortado.extras import needing
from cortado.store.cli.answers import Answer, Fields, Said
from cortado.store.cli.numbers import whole
from cortado.store.cli.options import Argument, Option
from cortado.store.cli.session import Session
from cortado.store.cli.tree import command
from cortado.store.files.named_files import read_named

if TYPE_CHECKING:
    from cortado.store.peers import certificates as certificates_module

_AUTHORITY: Final = "ca"
_FILE_BYTES_MAX: Final = 1 << 20

_Dir = Annotated[Path, Option("--dir", help="Directory of the files.", metavar="PATH")]
_Days = Annotated[int, Option(help="Validity in days.", parser=whole("--days", 1), metavar="DAYS")]
_Force = Annotated[bool, Option("--force", help="Replace files that exist.")]
_CaCert = Annotated[Path | None, Option(help="The CA certificate.", show_default="ca.crt in --dir", metavar="PEM")]
_CaKey = Annotated[Path | None, Option(help="The CA key.", show_default="ca.key in --dir", metavar="PEM")]


@command(
    "cert ca",
    remote=False,
    examples="""
        cortado cert ca
        cortado cert ca --dir /etc/cortado/certs --name "Cortado of Example" --days 3650
    """,
)
def ca(
    _: Session,
    directory: _Dir = Path("certs"),
    name: Annotated[str, Option(help="The name of the CA.", metavar="NAME")] = "Cortado CA",
    days: _Days = 3650,
    force: _Force = False,
) -> Answer:
    """Create a certificate authority (CA): ca.crt for everyone, and ca.key, which signs. Keep ca.key off the nodes.

    Needs the extra [server]: pip install 'cortadodb[server]'.
    """
    made = _certificates().make_authority(name, days, _now())
    return _write(directory, _AUTHORITY, made, force=force)


@command(
    "cert node",
    remote=False,
    examples="""
        cortado cert node n1 --host 127.0.0.1 --host localhost
        cortado cert node n2 --host db2.example.com --host 10.0.0.2 --days 90
    """,
)
def node(
    _: Session,
    node_id: Annotated[str, Argument(help="The node's id.", metavar="NODE_ID")],
    host: Annotated[
        list[str] | None,
        Option(help="A DNS name or address that clients use; may be repeated.", metavar="HOST"),
    ] = None,
    directory: _Dir = Path("certs"),
    ca_cert: _CaCert = None,
    ca_key: _CaKey = None,
    days: _Days = 365,
    force: _Force = False,
) -> Answer:
    """Create a node's certificate and key, signed by the CA: NODE_ID.crt and NODE_ID.key."""
    authority = _authority(directory, ca_cert, ca_key)
    return _write(
        directory,
        node_id,
        _certificates().make_node(authority, node_id, host or [], days, _now()),
        force=force,
    )


@command(
    "cert client",
    remote=False,
    examples="""
        cortado cert client reports
        cortado cert client ada --days 30 --dir /etc/cortado/certs
    """,
)
def client(
    _: Session,
    name: Annotated[str, Argument(help="The client's name.", metavar="NAME")],
    directory: _Dir = Path("certs"),
    ca_cert: _CaCert = None,
    ca_key: _CaKey = None,
    days: _Days = 365,
    force: _Force = False,
) -> Answer:
    """Create a client's certificate and key, signed by the CA: NAME.crt and NAME.key. A node does not accept it as a
    peer's."""
    authority = _authority(directory, ca_cert, ca_key)
    return _write(directory, name, _certificates().make_client(authority, name, days, _now()), force=force)


@command(
    "cert gateway",
    remote=False,
    examples="""
        cortado cert gateway gw --host gw.example.com --host 10.0.0.9
        cortado gateway --listen 0.0.0.0:7629 --https-cert certs/gw.crt --https-key certs/gw.key
    """,
)
def gateway(
    _: Session,
    name: Annotated[str, Argument(help="The name of the files.", metavar="NAME")],
    host: Annotated[
        list[str] | None,
        Option(help="A DNS name or address that callers use; may be repeated.", metavar="HOST"),
    ] = None,
    directory: _Dir = Path("certs"),
    ca_cert: _CaCert = None,
    ca_key: _CaKey = None,
    days: _Days = 365,
    force: _Force = False,
) -> Answer:
    """Create the certificate and key that an HTTP gateway serves with, signed by the CA: NAME.crt and NAME.key. It is
    no client certificate: a cluster with certificates needs a second one from the gateway."""
    authority = _authority(directory, ca_cert, ca_key)
    return _write(directory, name, _certificates().make_gateway(authority, name, host or [], days, _now()), force=force)


@command(
    "cert show",
    remote=False,
    examples="""
        cortado cert show certs/n1.crt
        cortado cert show certs/n1.crt -o json
    """,
)
def show(
    _: Session,
    file: Annotated[Path, Argument(help="A certificate.", metavar="FILE")],
) -> Answer:
    """Show the subject, the issuer and the validity of a certificate."""
    found = _certificates().describe(_read(file, "FILE"), str(file))
    now = _now()
    state = "expired" if now > found.not_after else "not valid yet" if now < found.not_before else "valid"
    record: dict[str, Any] = {
        "file": str(file),
        "state": state,
        "identities": list(found.uris),
        "hosts": list(found.hosts),
        "authority": found.is_authority,
        "subject": found.subject,
        "issuer": found.issuer,
        "serial": found.serial,
        "not_before": found.not_before.isoformat(),
        "not_after": found.not_after.isoformat(),
    }
    lists = {name: ", ".join(record[name]) or "-" for name in ("identities", "hosts")}
    return Fields(list({**record, **lists}.items()), record)


def _certificates() -> Any:
    """Return the module that makes certificates. Raises Unsupported if its package is not installed."""
    with needing("server", "making certificates"):
        from cortado.store.peers import certificates
    return certificates


def _authority(directory: Path, ca_cert: Path | None, ca_key: Path | None) -> certificates_module.Authority:
    cert = directory / f"{_AUTHORITY}.crt" if ca_cert is None else ca_cert
    key = directory / f"{_AUTHORITY}.key" if ca_key is None else ca_key
    if ca_cert is None and not cert.exists():
        raise InvalidArgument("--ca-cert", f"there is no CA in {directory}: create one with cortado cert ca")
    loaded: certificates_module.Authority = _certificates().load_authority(
        _read(cert, "--ca-cert"), _read(key, "--ca-key"), certificate_name=str(cert), key_name=str(key)
    )
    return loaded


def _read(path: Path, argument: str) -> bytes:
    try:
        return read_named(path, _FILE_BYTES_MAX)
    except OSError as error:
        raise InvalidArgument(argument, f"cannot be read: {error.strerror}", str(path)) from None


def _write(directory: Path, name: str, made: certificates_module.Pair, *, force: bool) -> Answer:
    certificate, key = directory / f"{name}.crt", directory / f"{name}.key"
    for path in (certificate, key):
        if path.exists() and not force:
            raise AlreadyExists("file", str(path))
    try:
        directory.mkdir(parents=True, exist_ok=True)
        # The key first: a certificate without its key is useless.
        _write_file(key, made.key, 0o600)
        _write_file(certificate, made.certificate, 0o644)
    except OSError as error:
        raise InvalidArgument("--dir", f"cannot be written: {error.strerror}", str(directory)) from None
    return Said(f"wrote {certificate} and {key}", {"certificate": str(certificate), "key": str(key)})


def _write_file(path: Path, content: bytes, mode: int) -> None:
    """Whole or not at all; a key is never readable to others, not even for a moment."""
    temporary = path.with_name(path.name + ".new")
    temporary.unlink(missing_ok=True)
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)


def _now() -> datetime:
    return datetime.now(UTC)
