"""``cortado auth``: principals, their tokens and their roles."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cortado.errors import InvalidArgument
from cortado.store.cli.answers import Answer, Fields, Rows, Said
from cortado.store.cli.numbers import expiry_text, ttl
from cortado.store.cli.options import Argument, Option
from cortado.store.cli.session import Session
from cortado.store.cli.tree import command

if TYPE_CHECKING:
    from cortado.store.client import Issued, PrincipalInfo

_ROLES = "reader, writer, owner; operator or admin of the cluster"
_Name = Annotated[str, Argument(help="The principal's name.", metavar="NAME")]
_Certificate = Annotated[
    bool, Option("--certificate", help="It authenticates by a client certificate of that name, and has no token.")
]
_Out = Annotated[
    Path | None, Option("--token-out", help="Write the token to this new file, and do not show it.", metavar="FILE")
]
_Expires = Annotated[
    int,
    Option("--expires", help="How long the token is valid, such as 90d.", parser=ttl("--expires"), metavar="TIME"),
]
_Overlap = Annotated[
    int,
    Option(
        "--overlap",
        help="How long the token before it stays valid.",
        parser=ttl("--overlap"),
        metavar="TIME",
        show_default="1h",
    ),
]
_Role = Annotated[str, Argument(help=f"The role: {_ROLES}.", metavar="ROLE")]
_Resource = Annotated[
    str,
    Argument(help="The resource: cluster, database:NAME, table:DATABASE.TABLE or namespace:NAME.", metavar="RESOURCE"),
]


@command(
    "auth enable",
    examples="""
        cortado auth enable root --token-out root.token
        cortado auth enable ops --certificate
    """,
)
def enable(session: Session, name: _Name, is_certificate: _Certificate = False, token_out: _Out = None) -> Answer:
    """Switch roles on, and make NAME the first admin in the same step.

    From then on every call needs a principal with a right to it, calls of running applications too. So create their
    principals and grants before. The token is shown once.
    """
    _check_out(token_out, is_certificate)
    with session.client() as client:
        issued = client.admin.auth.enable(name, kind=_kind(is_certificate))
    return _issued(issued, token_out, f"roles are on, and {name} is an admin")


@command("auth disable", examples="cortado auth disable")
def disable(session: Session) -> Answer:
    """Switch roles off: all callers that reach the cluster may do everything. Principals and grants stay."""
    with session.client() as client:
        status = client.admin.auth.disable()
    return Said("roles are off: all callers may do everything", {"enabled": status.enabled})


@command("auth status", examples="cortado auth status -o json")
def status(session: Session) -> Answer:
    """Show whether roles are on."""
    with session.client() as client:
        found = client.admin.auth.status()
    record = {"enabled": found.enabled, "principals": found.principals, "admins": found.admins}
    shown = [("roles", "on" if found.enabled else "off: all callers may do everything")]
    return Fields([*shown, ("principals", found.principals), ("admins", found.admins)], record)


@command("auth whoami", examples="cortado auth whoami --token-file app.token")
def whoami(session: Session) -> Answer:
    """Show your principal and its roles."""
    with session.client() as client:
        found = client.admin.auth.who_am_i()
    if found.principal is None:
        text = "an unknown caller; roles are off, so you may do everything"
        return Said(text, {"enabled": found.enabled, "principal": None})
    fields = [("principal", found.principal.name), ("kind", found.principal.kind), ("grants", _grants(found.principal))]
    return Fields(fields, {"enabled": found.enabled, "principal": _record(found.principal)})


@command("auth principal list", examples="cortado auth principal list -o json")
def list_(session: Session) -> Answer:
    """Show all principals: the ids of their tokens, and their grants."""
    with session.client() as client:
        found = client.admin.auth.principals()
    rows = [(each.name, each.kind, _tokens(each) or "-", _grants(each) or "-") for each in found]
    return Rows(("principal", "kind", "tokens", "grants"), rows, [_record(each) for each in found])


@command(
    "auth principal create",
    examples="""
        cortado auth principal create reports --token-out reports.token
        cortado auth principal create nightly --expires 90d
        cortado auth principal create spark --certificate
    """,
)
def create(
    session: Session,
    name: _Name,
    is_certificate: _Certificate = False,
    expires_ms: _Expires = 0,
    token_out: _Out = None,
) -> Answer:
    """Create a principal without rights, and its token, which is shown once.

    Names have lower-case letters a to z, digits, '_', '-' and '.'.
    """
    _check_out(token_out, is_certificate)
    with session.client() as client:
        issued = client.admin.auth.create(name, kind=_kind(is_certificate), lifetime_ms=expires_ms)
    return _issued(issued, token_out, f"created principal {name}")


@command(
    "auth principal rotate",
    examples="""
        cortado auth principal rotate reports --overlap 1h --token-out reports.token.new
    """,
)
def rotate(
    session: Session,
    name: _Name,
    overlap_ms: _Overlap = 3_600_000,
    expires_ms: _Expires = 0,
    token_out: _Out = None,
) -> Answer:
    """Give a principal a new token. The token before it stays valid for the overlap; older tokens end."""
    _check_out(token_out, False)
    with session.client() as client:
        issued = client.admin.auth.rotate(name, overlap_ms=overlap_ms, lifetime_ms=expires_ms)
    return _issued(issued, token_out, f"rotated the token of {name}")


@command(
    "auth principal revoke",
    examples="""
        cortado auth principal revoke reports
        cortado auth principal revoke reports --token 9f86d081884c7d65
    """,
)
def revoke(
    session: Session,
    name: _Name,
    token_id: Annotated[str, Option("--token", help="Remove only the token with this id.", metavar="ID")] = "",
) -> Answer:
    """Remove a principal with its tokens and grants, or one of its tokens. Calls that run by it end within a second."""
    with session.client() as client:
        client.admin.auth.revoke(name, token_id=token_id)
    what = f"token {token_id} of {name}" if token_id else f"principal {name}"
    return Said(f"revoked {what}", {"principal": name, "token_id": token_id or None})


@command(
    "auth grant",
    examples="""
        cortado auth grant reports reader database:shop
        cortado auth grant checkout writer table:shop.orders
        cortado auth grant checkout writer namespace:carts
        cortado auth grant ops operator cluster
    """,
)
def grant(session: Session, name: _Name, role: _Role, resource: _Resource) -> Answer:
    """Give a principal a role. The resource need not exist yet: the role holds for its name.

    A reader reads; a writer also writes; an owner also defines, drops, and grants roles on the resource. A role on a
    database holds for its tables, one on the cluster for all data. An operator runs the cluster; an admin may do
    everything.
    """
    with session.client() as client:
        principal = client.admin.auth.grant(name, role, resource)
    return Said(f"{name} is {role} of {resource}", _record(principal))


@command("auth revoke", examples="cortado auth revoke reports reader database:shop")
def ungrant(session: Session, name: _Name, role: _Role, resource: _Resource) -> Answer:
    """Take a role away. Calls that run by it end within a second."""
    with session.client() as client:
        principal = client.admin.auth.revoke_grant(name, role, resource)
    return Said(f"{name} is no longer {role} of {resource}", _record(principal))


def _kind(is_certificate: bool) -> str:
    return "certificate" if is_certificate else "token"


def _check_out(token_out: Path | None, is_certificate: bool) -> None:
    """Check the file before making a token that could not be kept."""
    if token_out is None:
        return
    if is_certificate:
        raise InvalidArgument("--token-out", "must not be given with --certificate: there is no token")
    if token_out.exists():
        raise InvalidArgument("--token-out", "must be a file that does not exist", str(token_out))
    if not token_out.absolute().parent.is_dir():
        raise InvalidArgument("--token-out", "must be in a directory that exists", str(token_out))


def _issued(issued: Issued, token_out: Path | None, text: str) -> Answer:
    record = _record(issued.principal)
    if issued.token is None:
        return Said(text, record)
    note = "keep the token: it is not shown again"
    if token_out is not None:
        try:
            token_out.touch(mode=0o600, exist_ok=False)
            token_out.write_text(issued.token.text + "\n", encoding="ascii")
        except OSError as error:
            # There is no other copy: if it is the only admin's, it must not be lost.
            note = f"{token_out} cannot be written ({error.strerror}); {note}"
        else:
            return Said(f"{text}; its token is in {token_out}", {**record, "token_file": str(token_out)})
    return Said(f"{text}\n\n{issued.token.text}\n", {**record, "token": issued.token.text}, note=note)


def _tokens(principal: PrincipalInfo) -> str:
    return ", ".join(
        each.token_id + (f" until {expiry_text(each.expires_ms)}" if each.expires_ms else "")
        for each in principal.tokens
    )


def _grants(principal: PrincipalInfo) -> str:
    return ", ".join(f"{each.role} of {each.resource}" for each in principal.grants)


def _record(principal: PrincipalInfo) -> dict[str, Any]:
    return {
        "principal": principal.name,
        "kind": principal.kind,
        "tokens": [
            {"token_id": each.token_id, "created_ms": each.created_ms, "expires_ms": each.expires_ms or None}
            for each in principal.tokens
        ],
        "grants": [{"role": each.role, "resource": each.resource} for each in principal.grants],
    }
