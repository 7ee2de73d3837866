"""All facts, and the texts that go into the bundle beside them."""

from __future__ import annotations

import urllib.request
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final

from cortado.errors import CortadoError
from cortado.store.client.authorization import TokenSource
from cortado.store.client.endpoints import Tls
from cortado.store.doctor.certificates import file_facts, key_facts, served_facts
from cortado.store.doctor.data_directory import data_directory_facts
from cortado.store.doctor.host import host_facts
from cortado.store.doctor.log_folder import log_facts
from cortado.store.doctor.node_facts import answering, setting_of
from cortado.store.doctor.nodes import nodes_facts
from cortado.store.doctor.probes import Facts, describe, problem_of, run_probes
from cortado.store.doctor.redact import redacted_lines
from cortado.store.local_cluster.files import ClusterFiles
from cortado.store.local_cluster.logs import tail
from cortado.store.local_cluster.prepare import client_tls
from cortado.store.settings.gather import Found, check_variables, gather
from cortado.store.settings.server import CONFIG_VARIABLE, PREFIX, SETTINGS
from cortado.store.settings.toml_file import read_toml

METRICS_BYTES_MAX: Final = 4 << 20
_LOOPBACK: Final = ("127.", "localhost:", "[::1]:")
_TLS_FILES: Final = ("tls-ca", "tls-cert", "tls-key")


@dataclass(frozen=True, slots=True)
class Sources:
    """The sources of facts. ``client`` are the settings of the command line, or the error that they raised."""

    client: tuple[Found, ...] | CortadoError
    endpoints: tuple[str, ...]
    tls: Callable[[], Tls | None]
    environment: Mapping[str, str]
    token: TokenSource | None = field(default=None, repr=False)
    config: Path | None = None
    data_dirs: tuple[Path, ...] = ()
    logs: tuple[Path, ...] = ()
    lines: int = 200
    cluster: ClusterFiles | None = None
    timeout_s: float = 3.0


@dataclass(slots=True)
class Collected:
    """``facts`` for checks and reports; ``texts`` are files of the bundle, without secrets."""

    facts: Facts
    texts: dict[str, str] = field(default_factory=dict)


def collect(sources: Sources) -> Collected:
    """Collect all facts, in some seconds at most. Raises nothing for a broken part: that is a fact, too."""
    server = _server_settings(sources)
    cluster = _cluster_facts(sources.cluster)
    probes: dict[str, Callable[[], Any]] = {"host": host_facts, "nodes": partial(_nodes, sources)}
    directories = list(dict.fromkeys([*sources.data_dirs, *_directory_of(server), *cluster["data_dirs"]]))
    probes |= _directory_probes(directories)
    found = run_probes(probes, 2 * sources.timeout_s + 4)
    nodes = found["nodes"]
    more = [each for each in _directories_of_nodes(nodes) if each not in [path.absolute() for path in directories]]
    later = _directory_probes(more)
    later |= _certificate_probes(sources, server, nodes)
    later |= {f"metrics {node}": partial(_metrics, url) for node, url in _metrics_urls(nodes).items()}
    found |= run_probes(later, sources.timeout_s + 1)
    facts: Facts = {
        "host": found["host"],
        "settings": {"client": _client_settings(sources.client), "server": _described(server)},
        "nodes": nodes,
        "data_directories": {str(each): _directory(found, each) for each in [*directories, *more]},
        "certificates": _certificates(found),
        "local_cluster": {name: value for name, value in cluster.items() if name != "data_dirs"},
        "logs": {},
    }
    collected = Collected(facts)
    _add_logs(collected, sources, facts)
    _add_metrics(collected, found)
    return collected


# --- settings --------------------------------------------------------------------------------------------------


def _client_settings(client: tuple[Found, ...] | CortadoError) -> Any:
    return {"problem": client.message()} if isinstance(client, CortadoError) else _described(client)


def _server_settings(sources: Sources) -> tuple[Found, ...] | Facts | None:
    """Return the settings of a server that would be started here, if a file or a variable sets any."""
    if sources.config is None and not any(name.startswith(PREFIX) for name in sources.environment):
        return None
    try:
        check_variables(SETTINGS, sources.environment, PREFIX, also="CONFIG")
        path, named = sources.config, "--config"
        if path is None and sources.environment.get(CONFIG_VARIABLE):
            path, named = Path(sources.environment[CONFIG_VARIABLE]), CONFIG_VARIABLE
        file = None if path is None else read_toml(path, named)
        return gather(SETTINGS, flags={}, environment=sources.environment, prefix=PREFIX, file=file)
    except CortadoError as error:
        return {"problem": error.message()}


def _described(found: tuple[Found, ...] | Facts | None) -> Any:
    if not isinstance(found, tuple):
        return found
    described = (each.described() for each in found)
    return [{name: each[name] for name in ("name", "value", "origin", "place")} for each in described]


def _values(found: tuple[Found, ...] | CortadoError | Facts | None) -> dict[str, Any]:
    return {each.setting.name: each.value for each in found} if isinstance(found, tuple) else {}


# --- nodes, directories, certificates --------------------------------------------------------------------------


def _nodes(sources: Sources) -> Facts:
    if isinstance(sources.client, CortadoError):
        raise sources.client
    return nodes_facts(sources.endpoints, sources.tls(), sources.token, sources.timeout_s)


def _directory_of(server: Any) -> list[Path]:
    path = _values(server).get("data-dir")
    return [path] if path is not None else []


def _directory_probes(paths: Sequence[Path]) -> dict[str, Callable[[], Any]]:
    """Return two probes for each directory: reading a whole log may take longer than there is time."""
    probes: dict[str, Callable[[], Any]] = {f"directory {each}": partial(data_directory_facts, each) for each in paths}
    return probes | {f"log {each}": partial(log_facts, each) for each in paths}


def _directory(found: Facts, path: Path) -> Any:
    directory = found[f"directory {path}"]
    return directory if problem_of(directory) else {**directory, "log": found[f"log {path}"]}


def _directories_of_nodes(nodes: Facts) -> list[Path]:
    """Return the data directories of nodes that run on this host, as far as their addresses tell."""
    paths = [Path(each["data_dir"]) for address, each in answering(nodes).items() if address.startswith(_LOOPBACK)]
    return [each for each in dict.fromkeys(paths) if each.is_dir()]


def _certificate_probes(sources: Sources, server: Any, nodes: Facts) -> dict[str, Callable[[], Any]]:
    probes: dict[str, Callable[[], Any]] = {}
    files = [_values(each) for each in (sources.client, server)]
    try:
        tls = sources.tls()
    except CortadoError:
        tls = None
    if tls is not None:
        files.append({"tls-ca": tls.ca, "tls-cert": tls.cert, "tls-key": tls.key})
    for values in files:
        for name in _TLS_FILES:
            path = values.get(name)
            if path is not None:
                probes[f"certificate {path}"] = partial(key_facts if name == "tls-key" else file_facts, Path(path))
    if tls is not None and not problem_of(nodes):
        probes |= {f"served {each}": partial(served_facts, each, sources.timeout_s) for each in nodes}
    return probes


def _certificates(found: Facts) -> Facts:
    certificates = {}
    for name, value in found.items():
        kind, _, rest = name.partition(" ")
        # The nodes' own check reports an address that does not answer.
        if kind == "certificate" or (kind == "served" and not problem_of(value)):
            certificates[rest] = value
    return certificates


# --- a local cluster, logs, metrics ----------------------------------------------------------------------------


def _cluster_facts(files: ClusterFiles | None) -> Facts:
    """Return the facts of a cluster on this machine: its plan, and its processes."""
    if files is None:
        return {"data_dirs": []}
    try:
        plan, run = files.read_plan(), files.read_run()
    except CortadoError as error:
        return {"data_dirs": [], "problem": describe(error)}
    nodes = []
    for each in plan.nodes:
        last = run.nodes.get(each.node_id)
        nodes.append(
            {
                "node_id": each.node_id,
                "address": each.address,
                "removed": each.is_removed,
                "starts": 0 if last is None else last.starts,
                "last_exit": None if last is None else last.last_exit,
                "given_up": "" if last is None else last.given_up,
            }
        )
    paths = [files.data(each.node_id) for each in plan.members]
    return {
        "dir": str(files.directory.absolute()),
        "up": run.supervisor is not None and run.supervisor.is_alive(),
        "problem": run.problem,
        "nodes": nodes,
        "data_dirs": [each for each in paths if each.is_dir()],
    }


def cluster_endpoints(files: ClusterFiles) -> tuple[tuple[str, ...], Tls | None]:
    """Return the addresses of its members, and the certificates that a client needs. Raises CortadoError."""
    plan = files.read_plan()
    return tuple(each.address for each in plan.members), client_tls(files, plan)


def _add_logs(collected: Collected, sources: Sources, facts: Facts) -> None:
    logs = {each.name: each for each in sources.logs}
    names = [each["node_id"] for each in facts["local_cluster"].get("nodes", [])]
    if sources.cluster is not None:
        logs |= {f"{name}.log": sources.cluster.log(name) for name in names}
        logs["supervisor.log"] = sources.cluster.supervisor_log
    known = {*names, *_node_ids(facts["nodes"])}
    for name, path in logs.items():
        if not path.exists():
            facts["logs"][name] = {"problem": f"{path} does not exist"}
            continue
        # A link is followed if the user has named it.
        last = tail(path, sources.lines, follows_links=path in sources.logs)
        lines = list(redacted_lines(last, known))
        levels = Counter(level for line in lines for level in ("ERROR", "WARNING") if level in line[:80].upper())
        facts["logs"][name] = {"path": str(path), "lines": len(lines), **{key.lower(): n for key, n in levels.items()}}
        collected.texts[f"logs/{name}"] = "".join(f"{line}\n" for line in lines)


def _node_ids(nodes: Facts) -> Sequence[str]:
    return [member["node_id"] for each in answering(nodes).values() for member in each["members"]]


def _metrics_urls(nodes: Facts) -> dict[str, str]:
    """Return the URLs of the nodes that serve metrics, as far as their settings tell."""
    urls = {}
    for address, node in answering(nodes).items():
        listen = setting_of(node, "metrics-listen")
        if not listen:
            continue
        host, _, port = listen.rpartition(":")
        if host in ("0.0.0.0", "[::]"):
            host = address.rpartition(":")[0]
        is_ours = address.startswith(_LOOPBACK)
        if port != "0" and (is_ours or host not in ("", "localhost", "127.0.0.1", "[::1]")):
            urls[node["node_id"]] = f"http://{host or '127.0.0.1'}:{port}/metrics"
    return urls


def _metrics(url: str) -> str:
    with urllib.request.urlopen(url, timeout=2) as answer:
        content: bytes = answer.read(METRICS_BYTES_MAX)
    return content.decode(errors="replace")


def _add_metrics(collected: Collected, found: Facts) -> None:
    for name, value in found.items():
        kind, _, node = name.partition(" ")
        if kind == "metrics":
            problem = problem_of(value)
            collected.facts.setdefault("metrics", {})[node] = (
                {"problem": problem} if problem else {"lines": len(value.splitlines())}
            )
            if not problem:
                collected.texts[f"metrics/{node}.txt"] = value
