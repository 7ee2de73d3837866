"""Configuration fails before anything is opened, with the field, the value and the bound; every bound is documented."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import pytest

from cortado.errors import InvalidArgument
from cortado.raft.settings import RaftSettings
from cortado.store.node.limits import NodeLimits
from cortado.store.server.config import ServerConfig

OPERATIONS = Path(__file__).parents[3] / "docs" / "operations.md"


def test_the_defaults_are_good() -> None:
    ServerConfig().check()


@pytest.mark.parametrize(
    "listen", ["127.0.0.1:0", "localhost:7621", "[::1]:7621", "127.9.9.9:1"], ids=["any", "name", "six", "other"]
)
def test_loopback_needs_no_permission(listen: str) -> None:
    ServerConfig(listen=listen).check()


def test_another_address_needs_to_be_told_insecure() -> None:
    with pytest.raises(InvalidArgument, match=r"listen: .*loopback.*--insecure.*0\.0\.0\.0:7621"):
        ServerConfig(listen="0.0.0.0:7621").check()
    ServerConfig(listen="0.0.0.0:7621", advertise="db1:7621", insecure=True).check()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"listen": "7621"}, "listen: must be host:port with a port from 0 to 65535 (got 7621)"),
        ({"listen": "127.0.0.1:65536"}, "listen: must be host:port"),
        ({"listen": ":7621"}, "listen: must be host:port"),
        ({"map_size_bytes": 1}, "map_size_bytes: must be between 1048576 and"),
        ({"max_clock_offset_ms": 0}, "max_clock_offset_ms: must be between 1 and 60000 (got 0)"),
        ({"stop_grace_ms": -1}, "stop_grace_ms: must be between 0"),
        ({"cluster_id": "ü"}, "cluster_id: must be at most 100 ASCII characters"),
        ({"cluster_id": "a\nb"}, "cluster_id: must be at most 100 ASCII characters that print (got 'a\\nb')"),
        ({"clock_offset_ms": -(10**13)}, "clock_offset_ms: must be between -15768"),
        ({"port_file": Path("/no/such/directory/port")}, "port_file: must be in a directory that exists"),
        ({"limits": NodeLimits(writes_max=0)}, "limits.writes_max: must be between 1 and"),
    ],
    ids=str,
)
def test_what_is_wrong_is_named_with_its_bound(change: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidArgument) as refused:
        dataclasses.replace(ServerConfig(), **change).check()
    assert message in refused.value.message()


def documented(section: str) -> dict[str, int]:
    """The names and defaults in the tables of one section of the page."""
    text = OPERATIONS.read_text().split(f"## {section}\n")[1].split("\n## ")[0]
    units = {"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
    found = {}
    for name, default in re.findall(r"^\| `(\w+)` \| ([\d,]+(?: \w+)?) \|", text, re.MULTILINE):
        number, _, unit = default.partition(" ")
        found[name] = int(number.replace(",", "")) * units.get(unit, 1)
    return found


def test_every_bound_is_documented_with_its_default() -> None:
    assert documented("Overload") == dataclasses.asdict(NodeLimits())


def test_every_setting_of_replication_is_documented_with_its_default() -> None:
    timers = {"heartbeat_ms", "election_ms_min", "election_ms_max", "lease"}
    expected = {name: value for name, value in dataclasses.asdict(RaftSettings()).items() if name not in timers}
    assert documented("Timers and replication") == expected
    assert ServerConfig().raft_settings() == RaftSettings(), "the defaults of both are one"
