"""Configuration fails before anything is opened, with the field, the value and the bound."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from cortado.errors import InvalidArgument
from cortado.store.process.limits import NodeLimits
from cortado.store.server.config import ServerConfig


def test_the_defaults_are_good() -> None:
    ServerConfig().check()


@pytest.mark.parametrize(
    "listen", ["127.0.0.1:0", "localhost:7621", "[::1]:7621", "127.9.9.9:1"], ids=["any", "name", "six", "other"]
)
def test_loopback_needs_no_permission(listen: str) -> None:
    ServerConfig(listen=listen).check()


def test_clients_without_certificates_need_encrypted_connections() -> None:
    with pytest.raises(InvalidArgument, match=r"client-certificates: must be required without tls-cert"):
        ServerConfig(client_certificates="none").check()


def test_another_address_needs_to_be_told_insecure() -> None:
    with pytest.raises(InvalidArgument, match=r"listen: .*loopback.*or --insecure.*0\.0\.0\.0:7621"):
        ServerConfig(listen="0.0.0.0:7621").check()
    ServerConfig(listen="0.0.0.0:7621", advertise="db1:7621", insecure=True).check()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"listen": "7621"}, "listen: must be host:port with a port from 0 to 65535 (got 7621)"),
        ({"listen": "127.0.0.1:65536"}, "listen: must be host:port"),
        ({"listen": ":7621"}, "listen: must be host:port"),
        ({"map_size": 1}, "map-size: must be between 1MiB and 64TiB (got 1)"),
        ({"max_clock_offset_ms": 0}, "max-clock-offset-ms: must be between 1 and 60000 (got 0)"),
        ({"stop_grace_ms": -1}, "stop-grace-ms: must be between 0"),
        ({"cluster_id": "ü"}, "cluster-id: must be at most 100 ASCII characters"),
        ({"cluster_id": "a\nb"}, "cluster-id: must be at most 100 ASCII characters that print (got 'a\\nb')"),
        ({"clock_offset_ms": -(10**13)}, "clock-offset-ms: must be between -15768"),
        ({"port_file": Path("/no/such/directory/port")}, "port-file: must be in a directory that exists"),
        ({"limits": NodeLimits(writes_max=0)}, "limit.writes-max: must be between 1 and"),
    ],
    ids=str,
)
def test_what_is_wrong_is_named_with_its_bound(change: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidArgument) as refused:
        dataclasses.replace(ServerConfig(), **change).check()
    assert message in refused.value.message()
