"""The cluster that a client calls if the application names none: that of the command line's variables."""

from __future__ import annotations

import os
from typing import TypeVar

from cortado.errors import InvalidArgument
from cortado.store.client.authorization import TokenSource, check_source
from cortado.store.client.endpoints import Endpoints, Tls, TlsNames, parse_endpoints

E = TypeVar("E", bound=Endpoints)


def reached(
    endpoint: E | None, tls: Tls | None, token: TokenSource | None
) -> tuple[E | str, Tls | None, TokenSource | None]:
    """Return endpoints, files and token as given; without endpoints, the environment supplies missing ones.

    With endpoints the environment is ignored: its token goes to the cluster that the environment names, and to no
    other. Raises InvalidArgument that names the variable.
    """
    if endpoint is not None:
        return endpoint, tls, token
    from cortado.store.settings.client import ENDPOINTS, PREFIX, TLS_CA, TLS_CERT, TLS_KEY, TOKEN_FILE, TOKEN_VARIABLE
    from cortado.store.settings.reach import reach_of_environment

    reach = reach_of_environment(os.environ)
    try:
        parse_endpoints(reach.endpoint)
    except InvalidArgument as refused:
        raise InvalidArgument(ENDPOINTS.variable(PREFIX), refused.problem, refused.value) from None
    if reach.token is not None:
        variable = TOKEN_VARIABLE if isinstance(reach.token, str) else TOKEN_FILE.variable(PREFIX)
        check_source(reach.token, variable)
    if tls is None and reach.tls_ca is not None:
        names = TlsNames(*(each.variable(PREFIX) for each in (TLS_CA, TLS_CERT, TLS_KEY)))
        tls = Tls(reach.tls_ca, reach.tls_cert, reach.tls_key, names)
    return reach.endpoint, tls, reach.token if token is None else token
