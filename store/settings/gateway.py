"""The settings of an HTTP gateway: flags of ``cortado gateway``, and variables. The settings of its connection to the
cluster are the command line's (:mod:`cortado.store.settings.client`)."""

from __future__ import annotations

from typing import Final

from cortado.store.gateway.limits import GatewayLimits
from cortado.store.settings.kinds import ADDRESS, FLAG, PATH, SIZE, WHOLE, Kind
from cortado.store.settings.logs import log_settings
from cortado.store.settings.setting import Setting

PREFIX: Final = "CORTADO_GATEWAY_"
GATEWAY: Final = "The gateway"

_COUNT_MAX: Final = 1_000_000
_BODY_BYTES_MAX: Final = 64 << 20
_MS_MAX: Final = 3_600_000


def _limit(name: str, meaning: str, kind: Kind, high: int, unit: str = "", low: int = 1) -> Setting:
    """``name`` is a field of GatewayLimits, which has the default."""
    default = getattr(GatewayLimits(), name)
    return Setting(f"limit.{name.replace('_', '-')}", kind, default, meaning, GATEWAY, unit, low=low, high=high)


GATEWAY_SETTINGS: Final[tuple[Setting, ...]] = (
    Setting(
        "listen",
        ADDRESS,
        "127.0.0.1:7629",
        "Address to serve HTTP on. Port 0 takes a free port.",
        GATEWAY,
        bound="a loopback address, unless https-cert is given or insecure is true",
    ),
    Setting(
        "https-cert",
        PATH,
        None,
        "Serve HTTPS with this certificate, on any address, to a cluster with roles alone. Reloaded on change.",
        GATEWAY,
        bound="https-cert and https-key: both, or none",
        metavar="PEM",
    ),
    Setting("https-key", PATH, None, "The certificate's private key.", GATEWAY, bound="as https-cert", metavar="PEM"),
    Setting(
        "insecure",
        FLAG,
        False,
        "Allow an address that is not loopback without HTTPS: no encryption. Callers must still name localhost or a "
        "loopback address as the host, as those of a port that is forwarded from there do.",
        GATEWAY,
        bound="not together with https-cert",
    ),
    Setting(
        "port-file",
        PATH,
        None,
        "Write the address to this file when the gateway serves, for scripts.",
        GATEWAY,
        bound="in a directory that exists",
        default_text="nowhere",
    ),
    Setting(
        "metrics-listen",
        ADDRESS,
        "",
        "Serve /metrics, /healthz and /readyz at this address, over HTTP. A port alone means 127.0.0.1; port 0 takes a "
        "free port, which the log names.",
        GATEWAY,
        bound="not the address of listen; no encryption and no authentication there",
        default_text="nowhere",
    ),
    *log_settings(GATEWAY),
    Setting(
        "console-acts-without-roles",
        FLAG,
        False,
        "Let the console change things while roles are off: all its visitors can then drop, remove and create. "
        "While roles are on it always can, with its visitor's rights.",
        GATEWAY,
    ),
    _limit(
        "connections_max",
        "Most open connections; fewer if the limit of open files is low. A further one takes the place of an idle one, "
        "of the address with the most of them; if none is idle, it is answered 429, and closed.",
        WHOLE,
        _COUNT_MAX,
    ),
    _limit("calls_max", "Most calls in flight, including streams. A further one is answered 429.", WHOLE, _COUNT_MAX),
    _limit(
        "streams_max",
        "Most streams of rows and of changes in flight. A further one is answered 429.",
        WHOLE,
        _COUNT_MAX,
    ),
    _limit("body_bytes_max", "Most bytes of one request body. A larger one is answered 413.", SIZE, _BODY_BYTES_MAX),
    _limit(
        "bodies_bytes_max",
        "Most bytes of all request bodies in flight. A call that exceeds it takes the room of a stalled body, or of "
        "the caller that holds the most; otherwise it is answered 429.",
        SIZE,
        1 << 36,
    ),
    _limit("head_ms", "Most time for a request line and its headers to arrive.", WHOLE, _MS_MAX, "ms", 100),
    _limit(
        "body_ms", "Most time for a request body to arrive. A later one is answered 408.", WHOLE, _MS_MAX, "ms", 100
    ),
    _limit("idle_ms", "How long an idle connection is kept.", WHOLE, _MS_MAX, "ms", 1_000),
    _limit(
        "stalled_ms", "How long a client may read nothing of an answer before it is cut off.", WHOLE, _MS_MAX, "ms", 100
    ),
)
