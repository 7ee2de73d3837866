"""Settings as flags, in the environment and in a file: one set of names, the nearest to the start wins, each by itself,
and each error is named with its place."""

from __future__ import annotations

import dataclasses
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from cortado.errors import InvalidArgument
from cortado.raft.settings import RaftSettings
from cortado.store.process.limits import NodeLimits
from cortado.store.server.config import ServerConfig
from cortado.store.server.settings import configuration, gathered
from cortado.store.settings.gather import Found
from cortado.store.settings.kinds import FLAG, SIZE, show_size
from cortado.store.settings.server import BY_NAME, PREFIX, SETTINGS


def write(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def of(name: str, found: tuple[Found, ...]) -> Found:
    return next(each for each in found if each.setting.name == name)


def test_nothing_given_is_the_default() -> None:
    assert configuration(gathered({})) == ServerConfig()
    assert configuration(gathered(dict.fromkeys(BY_NAME))) == ServerConfig()


def test_every_field_of_a_configuration_is_a_setting() -> None:
    plain = {each.field for each in SETTINGS if "." not in each.name}
    assert plain | {"raft", "limits", "sources"} == {each.name for each in dataclasses.fields(ServerConfig)}


@pytest.mark.parametrize(("table", "type_"), [("limit", NodeLimits), ("raft", RaftSettings)])
def test_every_bound_of_a_node_is_a_setting_with_its_default(table: str, type_: type) -> None:
    timers = {"heartbeat_ms", "election_ms_min", "election_ms_max", "lease"}
    expected = {name: value for name, value in dataclasses.asdict(type_()).items() if name not in timers}
    settings = [each for each in SETTINGS if each.name.startswith(f"{table}.")]
    assert {each.name.partition(".")[2].replace("-", "_"): each.default for each in settings} == expected
    assert ServerConfig().raft_settings() == RaftSettings(), "the defaults of the timers are one, too"


def test_names_are_one_in_all_places() -> None:
    assert (BY_NAME["data-dir"].flag, BY_NAME["data-dir"].variable(PREFIX)) == ("--data-dir", "CORTADO_SERVER_DATA_DIR")
    limit = BY_NAME["limit.writes-max"]
    assert (limit.flag, limit.variable(PREFIX)) == ("--limit.writes-max", "CORTADO_SERVER_LIMIT_WRITES_MAX")
    assert len({each.variable(PREFIX) for each in SETTINGS}) == len(SETTINGS)


@pytest.mark.parametrize("name", ["listen", "limit.writes-max", "raft.retain-bytes", "lease", "join"])
@pytest.mark.parametrize(("flag", "variable", "key"), list(product([False, True], repeat=3)))
def test_flags_win_over_the_environment_over_the_file_over_the_default(
    tmp_path: Path, name: str, flag: bool, variable: bool, key: bool
) -> None:
    setting = BY_NAME[name]
    values: dict[str, tuple[Any, Any, Any]] = {
        "listen": ("127.0.0.1:1", "127.0.0.1:2", '"127.0.0.1:3"'),
        "limit.writes-max": ("1", "2", "3"),
        "raft.retain-bytes": ("1MiB", "2MiB", '"3MiB"'),
        "lease": (False, "true", "true"),
        "join": (["a:1,b:2"], "c:3", '["d:4", "e:5"]'),
    }
    expected: dict[str, tuple[Any, Any, Any]] = {
        "listen": ("127.0.0.1:1", "127.0.0.1:2", "127.0.0.1:3"),
        "limit.writes-max": (1, 2, 3),
        "raft.retain-bytes": (1 << 20, 2 << 20, 3 << 20),
        "lease": (False, True, True),
        "join": (("a:1", "b:2"), ("c:3",), ("d:4", "e:5")),
    }
    by_flag, by_variable, by_key = values[name]
    file = write(tmp_path / "c.toml", f"# first\n{name} = {by_key}\n" if key else "")
    found = of(
        name,
        gathered(
            {name: by_flag} if flag else {},
            file,
            {setting.variable(PREFIX): by_variable} if variable else {},
        ),
    )
    if flag:
        assert (found.value, found.origin, found.place) == (expected[name][0], "flag", setting.flag)
    elif variable:
        assert (found.value, found.origin, found.place) == (
            expected[name][1],
            "environment",
            setting.variable(PREFIX),
        )
    elif key:
        assert (found.value, found.origin, found.place) == (expected[name][2], "file", f"{file}:2")
    else:
        assert (found.value, found.origin, found.source) == (setting.default, "default", "default")


def test_a_file_holds_what_flags_and_variables_hold(tmp_path: Path) -> None:
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
        writes-max = 5
        reads-max = 6
        """,
    )
    config = configuration(gathered({}, file))
    assert config.data_dir == tmp_path / "data", "paths are relative to the file"
    assert config.join == ("db2:7621", "db3:7621")
    assert config.map_size == 1 << 30
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
        "limit.writes-max": "5",
        "limit.reads-max": "6",
    }
    assert configuration(gathered(flags)) == config
    texts = flags | {"join": "db2:7621,db3:7621", "lease": "true"}
    environment = {BY_NAME[name].variable(PREFIX): str(value) for name, value in texts.items()}
    assert configuration(gathered({}, None, environment)) == config
    assert configuration(gathered({}, None, {f"{PREFIX}CONFIG": str(file)})) == config


@pytest.mark.parametrize(
    ("text", "line", "field", "problem"),
    [
        ("listn = '127.0.0.1:1'", 1, "listn in", "is no setting; did you mean listen?"),
        ("colour = 1", 1, "colour in", "is no setting; cortado config reference lists them"),
        ("\n\nlisten = 7621", 3, "listen in", "must be text"),
        ("heartbeat-ms = 'soon'", 1, "heartbeat-ms in", "must be a whole number"),
        ("heartbeat-ms = true", 1, "heartbeat-ms in", "must be a whole number"),
        ("# why\nheartbeat-ms = 5", 2, "heartbeat-ms in", "must be between 10 and 10000"),
        ("heartbeat-ms = 300", 0, "--election-ms", "must be at least 1200, four times heartbeat-ms"),
        ("heartbeat-ms = 300\nelection-ms = 400", 2, "election-ms in", "must be at least 1200"),
        ("lease = 'yes'", 1, "lease in", "must be true or false"),
        ("lease = 'true'", 1, "lease in", "must be true or false"),
        ("join = 'a:1,,b:2'", 1, "join in", "has an empty element"),
        ("join = [\n 'a'\n]", 1, "join in", "must be host:port"),
        ("join = [1]", 1, "join in", "must be a list of texts"),
        ("map-size = '1GB'", 1, "map-size in", "must be a number of bytes"),
        ("map-size = 1", 1, "map-size in", "must be between 1MiB and 64TiB"),
        ("listen = '127.0.0.1:1'\n[limit]\nwrites-max = 0", 3, "limit.writes-max in", "must be between 1 and"),
        ("limit.writes-max = 0", 1, "limit.writes-max in", "must be between 1 and"),
        ("limit.command-bytes-max = 16384", 1, "limit.command-bytes-max in", "must be between 5MiB and 1TiB"),
        ("limit = {reads-max = 1, writes-max = 0}", 1, "limit.writes-max in", "must be between 1 and"),
        ("[limit]\nwrites = 1", 2, "limit.writes in", "is no setting; did you mean limit.writes-max?"),
        ("[limit]\nwrites-max = 'x'", 2, "limit.writes-max in", "must be a whole number"),
        ("limit = 5", 1, "limit in", "is no setting"),
        ("[limits]\nwrites-max = 1", 1, "limits in", "is no setting"),
        ("[raft]\nentry-bytes-max = 5", 2, "raft.entry-bytes-max in", "must be at least 5309440, with limit.command-"),
        ("[raft]\nmax-drift-ppm = 500000", 2, "raft.max-drift-ppm in", "must be between 0 and 499999"),
        ("[limit]\nbatch-bytes-max = 7000000", 2, "limit.batch-bytes-max in", "must be at most 6224896"),
        ("node-id = '-a'", 1, "node-id in", "must consist of letters"),
        ("cluster-id = 'ü'", 1, "cluster-id in", "must be at most 100 ASCII characters"),
        ("listen = '0.0.0.0:1'\ninsecure = true", 0, "--advertise", "must be given"),
        ("tls-cert = 'x'", 0, "--tls-key", "must be given too"),
        ("tls-cert = 'x'\ntls-key = 'x'\ntls-ca = 'x'", 1, "tls-cert in", "cannot be read: No such file"),
        ("faults-file = 'x'\nlisten = '10.0.0.1:1'\ninsecure = true", 1, "faults-file in", "loopback"),
        ("data-dir = ''", 1, "data-dir in", "must be a path"),
        ("listen =", 0, "--config", "is not TOML"),
        ("a = 1\na = 2", 0, "--config", "is not TOML"),
    ],
)
def test_what_is_wrong_in_a_file_is_named_with_the_file_and_the_line(
    tmp_path: Path, text: str, line: int, field: str, problem: str
) -> None:
    file = write(tmp_path / "c.toml", text)
    with pytest.raises(InvalidArgument) as refused:
        configuration(gathered({}, file))
    assert refused.value.field.startswith(field)
    assert refused.value.field.startswith("--") or refused.value.field.endswith(f"{file}:{line}")
    assert problem in refused.value.problem


def test_the_content_of_a_key_is_never_in_a_refusal(tmp_path: Path) -> None:
    pem = "-----BEGIN PRIVATE KEY-----\nMIIsecret\n-----END PRIVATE KEY-----\n"
    file = write(tmp_path / "c.toml", f'tls-key = """{pem}"""')
    with pytest.raises(InvalidArgument) as refused:
        gathered({}, file)
    assert "MIIsecret" not in refused.value.message()
    with pytest.raises(InvalidArgument) as refused:
        gathered({}, None, {"CORTADO_SERVER_TLS_KEY": pem})
    assert "MIIsecret" not in refused.value.message()


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (None, "cannot be read: No such file"),
        (b"listen = '\xff'", "must be UTF-8: line 1 is not"),
        (b"x = '" + b"x" * (1 << 20) + b"'", "it has more than 1048576 bytes"),
        (b"x = " + b"[" * 100_000, "is n"),
    ],
)
def test_a_file_that_is_none_is_named(tmp_path: Path, content: bytes | None, problem: str) -> None:
    file = tmp_path / "c.toml"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(InvalidArgument) as refused:
        gathered({}, file)
    assert (refused.value.field, refused.value.value) == ("--config", str(file))
    assert problem in refused.value.problem
    with pytest.raises(InvalidArgument) as refused:
        gathered({}, None, {"CORTADO_SERVER_CONFIG": str(file)})
    assert refused.value.field == "CORTADO_SERVER_CONFIG"


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ({"listen": "7621"}, "--listen: must be host:port with a port from 0 to 65535 (got 7621)"),
        ({"advertise": "0.0.0.0:1"}, "--advertise: must be an address that other hosts can reach"),
        ({"advertise": "a:0"}, "--advertise: must be host:port with a port from 1 to 65535 (got a:0)"),
        ({"heartbeat-ms": "1.5"}, "--heartbeat-ms: must be a whole number (got '1.5')"),
        ({"limit.writes-max": "0"}, "--limit.writes-max: must be between 1 and"),
        ({"node-id": "x" * 65}, "--node-id: may have 64 characters"),
    ],
    ids=str,
)
def test_what_is_wrong_in_a_flag_is_named_with_the_flag(flags: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidArgument) as refused:
        configuration(gathered(flags))
    assert message in refused.value.message()


@pytest.mark.parametrize(
    ("environment", "message"),
    [
        ({"LISTN": "x"}, "CORTADO_SERVER_LISTN: is no setting; did you mean CORTADO_SERVER_LISTEN? (got 'x')"),
        (
            {"WRITES_MAX": "5"},
            "CORTADO_SERVER_WRITES_MAX: is no setting; did you mean CORTADO_SERVER_LIMIT_WRITES_MAX?",
        ),
        ({"COLOUR": "x"}, "CORTADO_SERVER_COLOUR: is no setting; cortado config reference lists them (got 'x')"),
        ({"LEASE": "yes"}, "CORTADO_SERVER_LEASE: must be true or false (got 'yes')"),
        ({"LISTEN": "7621"}, "CORTADO_SERVER_LISTEN: must be host:port"),
        ({"HEARTBEAT_MS": "5"}, "CORTADO_SERVER_HEARTBEAT_MS: must be between 10 and 10000 (got 5)"),
        ({"JOIN": "a:1,"}, "CORTADO_SERVER_JOIN: has an empty element"),
    ],
    ids=str,
)
def test_what_is_wrong_in_the_environment_is_named_with_the_variable(environment: dict[str, str], message: str) -> None:
    with pytest.raises(InvalidArgument) as refused:
        configuration(gathered({}, None, {PREFIX + name: value for name, value in environment.items()}))
    assert message in refused.value.message()


def test_variables_that_are_empty_or_made_by_kubernetes_set_nothing() -> None:
    names = ("SERVICE_HOST", "SERVICE_PORT", "SERVICE_PORT_GRPC", "PORT", "PORT_7621_TCP", "PORT_7621_TCP_ADDR")
    environment = {PREFIX + name: "tcp://10.0.0.1:7621" for name in names} | {"CORTADO_SERVER_JOIN": ""}
    assert configuration(gathered({}, None, environment)) == ServerConfig()


@pytest.mark.parametrize("setting", [each for each in SETTINGS if each.low is not None], ids=lambda each: each.name)
def test_both_bounds_of_every_number_hold(setting: Any) -> None:
    for good in (setting.low, setting.high):
        assert setting.read("x", good) == good
    for wrong in (setting.low - 1, setting.high + 1):
        if setting.kind is SIZE and wrong < 0:
            continue
        with pytest.raises(InvalidArgument, match="x: must be between"):
            setting.read("x", wrong)


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda each: each.name)
def test_what_is_shown_of_a_value_can_be_given_again(setting: Any) -> None:
    samples = {"HOST:PORT": "a:1", "HOST:PORT,...": ("a:1", "b:2"), "SIZE": 5 << 20, "TEXT": "x", "PATH": Path("/x")}
    value = setting.default if setting.default not in (None, "", ()) else samples.get(setting.kind.metavar, 5)
    shown = setting.kind.show(value)
    assert setting.kind.read("x", shown == "true" if setting.kind is FLAG else shown) == value


def test_sizes() -> None:
    size = BY_NAME["limit.write-bytes-max"]
    assert [size.read("s", text) for text in ("4096", 4096, "64MiB", "1TiB")] == [4096, 4096, 64 << 20, 1 << 40]
    for wrong in ("", "1GB", "-1", "1.5GiB", 1.5, True, None):
        with pytest.raises(InvalidArgument, match="s: must be a number of bytes"):
            size.read("s", wrong)
    assert [show_size(each) for each in (0, 1, 1024, 5 << 20, 5000)] == ["0", "1", "1KiB", "5MiB", "5000"]
