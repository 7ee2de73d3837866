"""The settings of a server as they are written: flags, and one TOML file with the same names.

::

    # /etc/cortado.toml
    data-dir = "/var/lib/cortado"
    listen = "0.0.0.0:7621"
    advertise = "db1.example.org:7621"
    node-id = "db1"
    tls-cert = "/etc/cortado/db1.pem"
    ...
    [limit]
    writes_max = 4096

Flags win over the file. What is unknown, of another type, or out of its bounds stops the start, naming the setting,
where it stands, the value and the bound. Paths in the file are relative to the directory that the file is in.
"""

from __future__ import annotations

import dataclasses
import re
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias

from cortado.errors import InvalidArgument
from cortado.store.node.limits import NodeLimits
from cortado.store.server.config import ServerConfig

_UNITS: Final = {"": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}
_SIZE = re.compile(r"([0-9]{1,15})(KiB|MiB|GiB|TiB|)")
_WHOLE = re.compile(r"[+-]?[0-9]{1,18}")

Read: TypeAlias = Callable[[str, Any], Any]
"""Takes the setting's name and what was written, gives the value. Raises InvalidArgument."""


class Setting(NamedTuple):
    """``name`` is the flag without its dashes and the key in the file, ``field`` that of :class:`ServerConfig`."""

    name: str
    field: str
    read: Read


# --- what may be written ---------------------------------------------------------------------------------------


def read_text(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise InvalidArgument(name, "must be text", repr(value))
    return value


def read_path(name: str, value: Any) -> Path:
    if not isinstance(value, str | Path) or not str(value):
        raise InvalidArgument(name, "must be a path", repr(value))
    if not str(value).isprintable():
        # Half a character or a control character: neither logs nor answers could name it.
        raise InvalidArgument(name, "must be a path of characters that print", repr(value))
    return Path(value)


def read_flag(name: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise InvalidArgument(name, "must be true or false", repr(value))
    return value


def read_whole(name: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int | str) or not _WHOLE.fullmatch(str(value)):
        raise InvalidArgument(name, "must be a whole number", repr(value))
    return int(value)


def read_size(name: str, value: Any) -> int:
    """Bytes of ``4096``, ``64MiB`` and the like."""
    match = _SIZE.fullmatch(str(value)) if isinstance(value, int | str) else None
    if match is None:
        raise InvalidArgument(name, "must be a number of bytes, perhaps with KiB, MiB, GiB or TiB", repr(value))
    return int(match[1]) * _UNITS[match[2]]


def read_list(name: str, value: Any) -> tuple[str, ...]:
    """Texts, one after the other or with commas between."""
    given = [value] if isinstance(value, str) else value
    if not isinstance(given, list | tuple) or not all(isinstance(each, str) for each in given):
        raise InvalidArgument(name, "must be a list of texts", repr(value))
    found = tuple(part.strip() for each in given for part in each.split(","))
    if "" in found:
        raise InvalidArgument(name, "has an empty element", repr(value))
    return found


def read_numbers(name: str, value: Any) -> dict[str, int]:
    """``name=number``, each, or a table of them."""
    if isinstance(value, Mapping):
        field, where, file = name.partition(" in ")
        return {key: read_whole(f"{field}.{key}{where}{file}", number) for key, number in value.items()}
    numbers: dict[str, int] = {}
    for text in read_list(name, value):
        key, _, number = text.partition("=")
        if not _WHOLE.fullmatch(number):
            raise InvalidArgument(name, f"must look like {key or 'name'}=1000", repr(text))
        numbers[key] = int(number)
    return numbers


def read_limits(name: str, value: Any) -> dict[str, int]:
    """As :func:`read_numbers`, of the bounds that a node has."""
    numbers = read_numbers(name, value)
    known = [each.name for each in dataclasses.fields(NodeLimits)]
    for key in numbers:
        if key not in known:
            raise InvalidArgument(name, f"must be one of {', '.join(known)}", repr(key))
    return numbers


SETTINGS: Final = (
    Setting("data-dir", "data_dir", read_path),
    Setting("listen", "listen", read_text),
    Setting("advertise", "advertise", read_text),
    Setting("node-id", "node_id", read_text),
    Setting("join", "join", read_list),
    Setting("join-timeout-ms", "join_timeout_ms", read_whole),
    Setting("tls-cert", "tls_cert", read_path),
    Setting("tls-key", "tls_key", read_path),
    Setting("tls-ca", "tls_ca", read_path),
    Setting("insecure", "insecure", read_flag),
    Setting("port-file", "port_file", read_path),
    Setting("map-size", "map_size_bytes", read_size),
    Setting("max-clock-offset-ms", "max_clock_offset_ms", read_whole),
    Setting("clock-offset-ms", "clock_offset_ms", read_whole),
    Setting("cluster-id", "cluster_id", read_text),
    Setting("verify", "verify", read_flag),
    Setting("stop-grace-ms", "stop_grace_ms", read_whole),
    Setting("heartbeat-ms", "heartbeat_ms", read_whole),
    Setting("election-ms", "election_ms", read_whole),
    Setting("lease", "lease", read_flag),
    Setting("raft", "raft", read_numbers),
    Setting("limit", "limits", read_limits),
    Setting("faults-file", "faults_file", read_path),
    Setting("parent-fd", "parent_fd", read_whole),
)
_BY_NAME: Final = {each.name: each for each in SETTINGS}
_NAME_OF_FIELD: Final = {each.field: each.name for each in SETTINGS}


# --- from what is written to a configuration -------------------------------------------------------------------


def configuration(flags: Mapping[str, Any], file: Path | None = None) -> ServerConfig:
    """The configuration of ``flags`` (by the settings' names; None where not given) over ``file``, checked.

    Raises InvalidArgument naming the setting as it stands: ``--listen``, or ``listen in /etc/cortado.toml``.
    """
    fields: dict[str, Any] = {}
    places: dict[str, str] = {}
    given = [] if file is None else [(name, value, f"{name} in {file}") for name, value in _file(file).items()]
    given += [(name, value, f"--{name}") for name, value in flags.items() if value is not None]
    for name, value, place in given:
        setting = _BY_NAME.get(name)
        if setting is None:
            raise InvalidArgument(place, f"is no setting; there are {', '.join(_BY_NAME)}", repr(value))
        read = setting.read(place, value)
        if isinstance(read, Path) and file is not None and not place.startswith("--"):
            read = file.parent / read
        # Of several numbers each is a setting of its own.
        fields[setting.field] = {**fields.get(setting.field, {}), **read} if isinstance(read, dict) else read
        places[setting.field] = place
    fields["limits"] = dataclasses.replace(NodeLimits(), **fields.get("limits", {}))
    config = ServerConfig(**fields)
    try:
        config.check()
    except InvalidArgument as refused:
        raise InvalidArgument(_place(refused.field, places), refused.problem, refused.value) from None
    return config


def _place(path: str, places: Mapping[str, str]) -> str:
    """Where a wrong field was written; a default that is wrong beside something else goes by its flag."""
    field, dot, rest = path.partition(".")
    name, where, file = (places.get(field) or f"--{_NAME_OF_FIELD.get(field, field)}").partition(" in ")
    return f"{name}{dot}{rest}{where}{file}"


def _file(file: Path) -> dict[str, Any]:
    try:
        with file.open("rb") as opened:
            return tomllib.load(opened)
    except OSError as error:
        raise InvalidArgument("--config", f"cannot be read: {error.strerror}", str(file)) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidArgument("--config", f"is not TOML: {error}", str(file)) from error
