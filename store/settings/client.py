"""The settings of the command line: the cluster, its protection, and the form of answers.

They may stand in a context, which is a table of a file, as well as in the environment and in flags.
"""

from __future__ import annotations

from typing import Final

from cortado.store.settings.kinds import ADDRESSES, PATH, SECONDS, choice
from cortado.store.settings.setting import Setting

PREFIX: Final = "CORTADO_"
CONFIG_VARIABLE: Final = "CORTADO_CONFIG"
CONTEXT_VARIABLE: Final = "CORTADO_CONTEXT"
TOKEN_VARIABLE: Final = "CORTADO_TOKEN"
# Other variables that the command line reads.
OTHER_VARIABLES: Final = (CONFIG_VARIABLE, CONTEXT_VARIABLE, TOKEN_VARIABLE, "CORTADO_DEBUG")

TIMEOUT_S_DEFAULT: Final = 10.0
TIMEOUT_S_MAX: Final = 86_400
_GROUP: Final = "Global options"

ENDPOINTS: Final = Setting(
    "endpoints",
    ADDRESSES,
    ("127.0.0.1:7621",),
    "The server to talk to, or several of its cluster: one that answers is enough.",
    _GROUP,
    flag_name="--endpoint",
)
TLS_CA: Final = Setting(
    "tls-ca",
    PATH,
    None,
    "Encrypt: the certificate authority (CA) of the servers.",
    _GROUP,
    metavar="PEM",
    default_text="no encryption",
)
TLS_CERT: Final = Setting("tls-cert", PATH, None, "The client's certificate.", _GROUP, metavar="PEM")
TLS_KEY: Final = Setting("tls-key", PATH, None, "The private key of the client's certificate.", _GROUP, metavar="PEM")
TOKEN_FILE: Final = Setting(
    "token-file",
    PATH,
    None,
    "A file with the token that identifies you, if the cluster has roles.",
    _GROUP,
    metavar="FILE",
)
TIMEOUT: Final = Setting(
    "timeout",
    SECONDS,
    TIMEOUT_S_DEFAULT,
    "How long to wait for an answer.",
    _GROUP,
    unit="s",
    bound=f"above 0, at most {TIMEOUT_S_MAX}",
)
OUTPUT: Final = Setting(
    "output",
    choice("table", "json"),
    "table",
    "Tables for people, or JSON for scripts: one object a line.",
    _GROUP,
)

CLIENT_SETTINGS: Final = (ENDPOINTS, TLS_CA, TLS_CERT, TLS_KEY, TOKEN_FILE, TIMEOUT, OUTPUT)
