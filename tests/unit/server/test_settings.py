"""Settings as flags and in a file: one set of names, flags win, and whatever is wrong is named where it stands."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cortado.errors import InvalidArgument
from cortado.store.server.config import ServerConfig
from cortado.store.server.settings import SETTINGS, configuration, read_numbers, read_size


def write(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def test_nothing_given_is_the_default() -> None:
    assert configuration({}) == ServerConfig()
    assert configuration(dict.fromkeys(each.name for each in SETTINGS)) == ServerConfig()


def test_a_file_holds_what_flags_hold(tmp_path: Path) -> None:
    for name in ("cert", "key", "ca"):
        (tmp_path / f"{name}.pem").touch()
    file = write(
        tmp_path / "cortado.toml",
        """
        data-dir = "data"
        listen = "0.0.0.0:7621"
        advertise = "db1.example.org:7621"
        node-id = "db1"
        join = ["db2:7621", "db3:7621"]
        tls-cert = "cert.pem"
        tls-key = "key.pem"
        tls-ca = "ca.pem"
        map-size = "1GiB"
        heartbeat-ms = 50
        election-ms = 350
        lease = true
        [limit]
        writes_max = 5
        reads_max = 6
        """,
    )
    config = configuration({}, file)
    assert config.data_dir == tmp_path / "data", "paths are relative to the file"
    assert config.join == ("db2:7621", "db3:7621")
    assert config.map_size_bytes == 1 << 30
    assert (config.election_ms, config.election_ms_max, config.lease) == (350, 650, True)
    assert (config.limits.writes_max, config.limits.reads_max, config.limits.scans_max) == (5, 6, 64)
    flags = {
        "data-dir": str(tmp_path / "data"),
        "listen": "0.0.0.0:7621",
        "advertise": "db1.example.org:7621",
        "node-id": "db1",
        "join": ["db2:7621,db3:7621"],
        "tls-cert": str(tmp_path / "cert.pem"),
        "tls-key": str(tmp_path / "key.pem"),
        "tls-ca": str(tmp_path / "ca.pem"),
        "map-size": "1GiB",
        "heartbeat-ms": "50",
        "election-ms": "350",
        "lease": True,
        "limit": ["writes_max=5", "reads_max=6"],
    }
    assert configuration(flags) == config


def test_flags_win_over_the_file_one_by_one(tmp_path: Path) -> None:
    file = write(tmp_path / "c.toml", 'listen = "127.0.0.1:1"\nnode-id = "a"\n[limit]\nwrites_max = 5\nreads_max = 6\n')
    config = configuration({"listen": "127.0.0.1:2", "limit": ["writes_max=7"]}, file)
    assert (config.listen, config.node_id) == ("127.0.0.1:2", "a")
    assert (config.limits.writes_max, config.limits.reads_max) == (7, 6)


@pytest.mark.parametrize(
    ("text", "field", "problem"),
    [
        ("listn = '127.0.0.1:1'", "listn in", "is no setting; there are data-dir, listen,"),
        ("listen = 7621", "listen in", "must be text"),
        ("heartbeat-ms = 'soon'", "heartbeat-ms in", "must be a whole number"),
        ("heartbeat-ms = true", "heartbeat-ms in", "must be a whole number"),
        ("heartbeat-ms = 5", "heartbeat-ms in", "must be between 10 and 10000"),
        ("heartbeat-ms = 300", "--election-ms", "must be between 1200 and"),
        ("lease = 'yes'", "lease in", "must be true or false"),
        ("join = 'a:1,,b:2'", "join in", "has an empty element"),
        ("join = ['a']", "join in", "must be host:port"),
        ("join = [1]", "join in", "must be a list of texts"),
        ("map-size = '1GB'", "map-size in", "must be a number of bytes"),
        ("[limit]\nwrites_max = 0", "limit.writes_max in", "must be between 1 and"),
        ("[limit]\nwrites = 1", "limit in", "must be one of writes_max,"),
        ("[limit]\nwrites_max = 'x'", "limit.writes_max in", "must be a whole number"),
        ("[raft]\nentry_bytes_max = 5", "raft.entry_bytes_max in", "must be at least 5243904, with limit.command"),
        ("[limit]\nturn_bytes_max = 7000000", "limit.turn_bytes_max in", "must be between 1 and 6290432"),
        ("node-id = '-a'", "node-id in", "must consist of letters"),
        ("listen = '0.0.0.0:1'\ninsecure = true", "--advertise", "must be given"),
        ("tls-cert = 'x'", "--tls-key", "must be given too"),
        ("tls-cert = 'x'\ntls-key = 'x'\ntls-ca = 'x'", "tls-cert in", "cannot be read: No such file"),
        ("faults-file = 'x'\nlisten = '10.0.0.1:1'\ninsecure = true", "faults-file in", "loopback"),
        ("listen =", "--config", "is not TOML"),
    ],
)
def test_what_is_wrong_in_a_file_is_named_with_the_file(tmp_path: Path, text: str, field: str, problem: str) -> None:
    file = write(tmp_path / "c.toml", text)
    with pytest.raises(InvalidArgument) as refused:
        configuration({}, file)
    assert refused.value.field.startswith(field)
    assert refused.value.field.startswith("--") or str(file) in refused.value.field
    assert problem in refused.value.problem


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match="--config: cannot be read: No such file"):
        configuration({}, tmp_path / "none.toml")


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ({"listen": "7621"}, "--listen: must be host:port with a port from 0 to 65535 (got 7621)"),
        ({"advertise": "0.0.0.0:1"}, "--advertise: must be an address that other hosts can reach"),
        ({"advertise": "a:0"}, "--advertise: must be host:port with a port from 1 to 65535 (got a:0)"),
        ({"heartbeat-ms": "1.5"}, "--heartbeat-ms: must be a whole number (got '1.5')"),
        ({"limit": ["writes_max"]}, "--limit: must look like writes_max=1000"),
        ({"node-id": "x" * 65}, "--node-id: may have 64 characters"),
    ],
    ids=str,
)
def test_what_is_wrong_in_a_flag_is_named_with_the_flag(flags: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidArgument) as refused:
        configuration(flags)
    assert message in refused.value.message()


def test_sizes_and_numbers() -> None:
    assert [read_size("s", text) for text in ("4096", 4096, "64MiB", "1TiB")] == [4096, 4096, 64 << 20, 1 << 40]
    for wrong in ("", "1GB", "-1", "1.5GiB", 1.5, True, None):
        with pytest.raises(InvalidArgument, match="s: must be a number of bytes"):
            read_size("s", wrong)
    assert read_numbers("n", ["a=1,b=2", "c=3"]) == {"a": 1, "b": 2, "c": 3}
    for wrong in (["a"], ["a=x"], "=", {"a": "x"}):
        with pytest.raises(InvalidArgument, match="n"):
            read_numbers("n", wrong)
