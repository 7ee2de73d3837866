"""The encryption and the credentials of one use of the data source, from its options."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from cortado.errors import InvalidArgument
from cortado.store.auth.tokens import check_token
from cortado.store.client import Tls
from cortado.store.client.authorization import TokenSource, check_source
from cortado.store.client.endpoints import TlsNames


def tls_of(given: Mapping[str, str]) -> Tls | None:
    """Raises InvalidArgument naming the option that is missing."""
    own = [name for name in ("tlsCert", "tlsKey") if name in given]
    if own and "tlsCa" not in given:
        raise InvalidArgument("option tlsCa", f"must be given with {own[0]}")
    if len(own) == 1:
        other = "tlsKey" if own == ["tlsCert"] else "tlsCert"
        raise InvalidArgument(f"option {other}", f"must be given with {own[0]}")
    if "tlsCa" not in given:
        return None
    names = TlsNames("option tlsCa", "option tlsCert", "option tlsKey")
    return Tls(given["tlsCa"], given.get("tlsCert"), given.get("tlsKey"), names)


def token_of(given: Mapping[str, str]) -> TokenSource | None:
    """Raises InvalidArgument naming the option, if its text or file holds no token."""
    if "tokenFile" in given:
        if "token" in given:
            raise InvalidArgument("option tokenFile", "must not be given with token", given["tokenFile"])
        path = Path(given["tokenFile"])
        check_source(path, "option tokenFile")
        return path
    return check_token(given["token"], "option token") if "token" in given else None
