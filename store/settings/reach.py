"""The endpoints and the credentials of a client, from the environment: for command line, applications and Spark alike.

=========================================================  ==============================================
``CORTADO_ENDPOINTS``                                      nodes of the cluster; 127.0.0.1:7621
``CORTADO_TLS_CA``, ``CORTADO_TLS_CERT``,                  files for encrypted connections; none
``CORTADO_TLS_KEY``
``CORTADO_TOKEN``, else ``CORTADO_TOKEN_FILE``             the token itself, or a file that holds it; none
=========================================================  ==============================================
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from cortado.errors import InvalidArgument
from cortado.store.settings.client import (
    CLIENT_SETTINGS,
    ENDPOINTS,
    OTHER_VARIABLES,
    PREFIX,
    TLS_CA,
    TLS_CERT,
    TLS_KEY,
    TOKEN_FILE,
    TOKEN_VARIABLE,
)
from cortado.store.settings.gather import FLAGS, Found, check_near_variables, gather
from cortado.store.settings.setting import Setting

_SETTINGS: Final = (ENDPOINTS, TLS_CA, TLS_CERT, TLS_KEY, TOKEN_FILE)
_OF_OTHERS: Final = ("CORTADO_SERVER_", "CORTADO_GATEWAY_")


@dataclass(frozen=True, slots=True)
class Reach:
    """The cluster, the files of encrypted connections, and the token: its text, a file that holds it, or None."""

    endpoint: str
    tls_ca: Path | None
    tls_cert: Path | None
    tls_key: Path | None
    token: str | Path | None = field(repr=False)


def reach_of_environment(environment: Mapping[str, str]) -> Reach:
    """Raise InvalidArgument that names the variable."""
    check_variables_of_clients(environment)
    found = {each.setting.name: each for each in gather(_SETTINGS, flags={}, environment=environment, prefix=PREFIX)}
    ca, cert, key = (found[each.name].value for each in (TLS_CA, TLS_CERT, TLS_KEY))
    check_tls_files(ca, cert, key, lambda setting: setting.variable(PREFIX))
    token = token_source(found[TOKEN_FILE.name], environment)
    return Reach(",".join(found[ENDPOINTS.name].value), ca, cert, key, token)


def check_variables_of_clients(environment: Mapping[str, str]) -> None:
    """Raise InvalidArgument for a variable whose name is nearly one of a client's."""
    known = {each.variable(PREFIX) for each in CLIENT_SETTINGS} | set(OTHER_VARIABLES)
    ours = {name: value for name, value in environment.items() if not name.startswith(_OF_OTHERS)}
    check_near_variables(known, ours, PREFIX)


def check_tls_files(ca: Any, cert: Any, key: Any, named: Callable[[Setting], str]) -> None:
    """Raise InvalidArgument if one of the files is missing; ``named`` is a setting as its user gives it."""
    if ca is None:
        for setting, value in ((TLS_CERT, cert), (TLS_KEY, key)):
            if value is not None:
                raise InvalidArgument(named(TLS_CA), f"must be given with {named(setting)}")
    elif (cert is None) != (key is None):
        given, missing = (TLS_CERT, TLS_KEY) if key is None else (TLS_KEY, TLS_CERT)
        raise InvalidArgument(named(missing), f"must be given with {named(given)}")


def token_source(found: Found, environment: Mapping[str, str]) -> str | Path | None:
    """Return the token's source. A flag names a file; else the environment holds the token itself, or a file is named
    there or in the context. The text is never an option's: other users of the host see those."""
    text = environment.get(TOKEN_VARIABLE)
    source: str | Path | None = found.value if found.origin == FLAGS or not text else text
    return source
