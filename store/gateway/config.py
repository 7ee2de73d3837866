"""The settings of a gateway, checked before it opens anything."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cortado.errors import InvalidArgument
from cortado.store.gateway.certificate import ServedFiles
from cortado.store.gateway.limits import GatewayLimits
from cortado.store.ports.addresses import is_loopback, split_address
from cortado.store.settings.gateway import GATEWAY_SETTINGS, PREFIX
from cortado.store.settings.gather import Found, check_variables, gather


@dataclass(frozen=True, slots=True)
class GatewayConfig:
    """``listen`` is HOST:PORT; port 0 takes a free one. It is a loopback address, unless there is a certificate in
    ``https``, or insecure was set. ``port_file``: the file to write the port to. ``acts_without_roles``: whether the
    console changes anything while roles are off. ``metrics``: host and port for the operator's pages, None for nowhere.
    ``log_format`` and ``log_level``: as those of a node."""

    listen: str
    port_file: Path | None = None
    https: ServedFiles | None = None
    limits: GatewayLimits = field(default_factory=GatewayLimits)
    acts_without_roles: bool = False
    metrics: tuple[str, int] | None = None
    log_format: str = "text"
    log_level: str = "info"


def configuration(flags: Mapping[str, Any], environment: Mapping[str, str]) -> GatewayConfig:
    """Read flags, by the settings' names, and the environment. Raises InvalidArgument naming the place."""
    check_variables(GATEWAY_SETTINGS, environment, PREFIX)
    found = {
        each.setting.name: each
        for each in gather(GATEWAY_SETTINGS, flags=flags, environment=environment, prefix=PREFIX)
    }
    listen, limits = found["listen"], {}
    for name, each in found.items():
        table, _, rest = name.partition(".")
        if table == "limit":
            limits[rest.replace("-", "_")] = each.value
    host, _ = split_address(listen.named(), listen.value, port_min=0)
    https, insecure = _https(found["https-cert"], found["https-key"]), found["insecure"]
    if https is not None and insecure.value:
        raise InvalidArgument(insecure.named(), "contradicts https-cert: with it, every connection is encrypted")
    if not is_loopback(host) and https is None and not insecure.value:
        problem = (
            "must be a loopback address without https-cert and https-key, unless insecure is set: tokens and data "
            "could be read on the way, and without roles all callers that reach the port may read and change everything"
        )
        raise InvalidArgument(listen.named(), problem, listen.value)
    acts, metrics = found["console-acts-without-roles"], _metrics(found["metrics-listen"])
    if https is not None and acts.value:
        raise InvalidArgument(acts.named(), "contradicts https-cert: with it, calls are served only while roles are on")
    return GatewayConfig(
        listen.value,
        port_file=found["port-file"].value,
        https=https,
        limits=GatewayLimits(**limits),
        acts_without_roles=acts.value,
        metrics=metrics,
        log_format=found["log-format"].value,
        log_level=found["log-level"].value,
    )


def _metrics(given: Found) -> tuple[str, int] | None:
    if not given.value:
        return None
    port = given.value.removeprefix(":")
    return split_address(given.named(), f"127.0.0.1:{port}" if port.isdecimal() else given.value, port_min=0)


def _https(cert: Found, key: Found) -> ServedFiles | None:
    if cert.value is None and key.value is None:
        return None
    for each, other in ((cert, key), (key, cert)):
        if each.value is None:
            raise InvalidArgument(each.named(), f"must be given, too, beside {other.named()}")
    return ServedFiles(cert.value, key.value)
