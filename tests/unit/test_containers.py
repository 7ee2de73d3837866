"""Containers keep the promises of docs/containers.md, as far as their files show. Nothing here starts one."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from cortado.store.settings.client import CLIENT_SETTINGS
from cortado.store.settings.gateway import GATEWAY_SETTINGS
from cortado.store.settings.server import SETTINGS
from support.commands import check_command

ROOT: Final = Path(__file__).parents[2]
COMPOSE: Final = ROOT / "deploy" / "compose"
CHART: Final = ROOT / "deploy" / "helm" / "cortado"
SERVICES: Final[dict[str, Any]] = yaml.safe_load((COMPOSE / "compose.yaml").read_text())["services"]
OURS: Final = {name: each for name, each in SERVICES.items() if each["image"] == "cortadodb"}
NODES: Final = {name: each for name, each in OURS.items() if each["command"][0] == "server"}
USER: Final = "7621"


def instructions() -> list[tuple[str, str]]:
    """Return the Dockerfile's instructions, each with its arguments on one line."""
    lines = [line for line in (ROOT / "Dockerfile").read_text().splitlines() if not line.startswith("#")]
    text = "\n".join(lines).replace("\\\n", " ")
    return [(word, rest.strip()) for word, _, rest in (line.partition(" ") for line in text.splitlines() if line)]


IMAGE: Final = instructions()
LAST: Final = IMAGE[max(place for place, (word, _) in enumerate(IMAGE) if word == "FROM") :]


def templates() -> dict[str, str]:
    return {path.name: path.read_text() for path in sorted((CHART / "templates").iterdir())}


@pytest.mark.parametrize("word", ["RUN", "ENTRYPOINT", "CMD", "HEALTHCHECK"])
def test_nothing_of_the_image_needs_a_shell(word: str) -> None:
    given = [rest.rpartition("CMD ")[2] if word == "HEALTHCHECK" else rest for name, rest in IMAGE if name == word]
    assert given
    for each in given:
        assert all(isinstance(part, str) for part in json.loads(each)), each


def test_the_image_runs_what_the_command_line_has_as_nobody_in_particular() -> None:
    last = dict(LAST)
    assert last["USER"] == f"{USER}:{USER}"
    assert json.loads(last["ENTRYPOINT"]) == ["cortado"]
    check_command(json.loads(last["CMD"]))
    checked = json.loads(last["HEALTHCHECK"].rpartition("CMD ")[2])
    assert checked[:2] == ["cortado", "health"]
    check_command(checked[1:])


def test_all_that_the_image_writes_is_below_its_volume() -> None:
    last = dict(LAST)
    told = dict(each.split("=", 1) for each in last["ENV"].split())
    assert told["CORTADO_SERVER_DATA_DIR"].startswith(f"{last['VOLUME']}/")
    assert told["XDG_CACHE_HOME"].startswith(f"{last['VOLUME']}/")
    (made,) = [json.loads(rest) for word, rest in LAST if word == "RUN"]
    assert {f"--owner={USER}", f"--group={USER}", last["VOLUME"]} <= set(made)


def test_the_ports_are_those_of_the_settings() -> None:
    default = {each.name: each.default for each in SETTINGS}["listen"]
    clients = int(default.rpartition(":")[2])
    gateway = int({each.name: each.default for each in GATEWAY_SETTINGS}["listen"].rpartition(":")[2])
    ports = [clients, clients + 1, clients + 2, gateway, gateway + 1]
    assert dict(LAST)["EXPOSE"].split() == [str(port) for port in ports]


def test_the_image_installs_the_locked_versions_of_its_extras_and_no_others() -> None:
    def versions(name: str) -> dict[str, set[str]]:
        found: dict[str, set[str]] = {}
        for package, version in re.findall(r"^([\w.-]+)==(\S+)", (ROOT / name).read_text(), re.MULTILINE):
            found.setdefault(package, set()).add(version)
        return found

    image, tested = versions("requirements-image.lock"), versions("requirements.lock")
    assert {package: image[package] & tested.get(package, set()) for package in image} == image
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    wanted = {
        re.split(r"[<>=!~\[; ]", each)[0] for each in (*project["dependencies"], *extras["server"], *extras["gateway"])
    }
    assert wanted <= image.keys()
    assert not {"pyspark", "pyarrow", "pytest"} & image.keys()


def test_the_build_sees_what_it_copies_and_nothing_that_is_not_a_source() -> None:
    kept = [line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")]
    assert [each for each in kept if not (ROOT / each).exists()] == []
    manifest = (ROOT / "MANIFEST.in").read_text().split()
    packages = {path.name for path in (ROOT / "src" / "cortado").iterdir() if path.is_symlink()}
    needed = {"pyproject.toml", "src", "spark_connector", "requirements-image.lock", "README.md", "LICENSE", *packages}
    assert needed | {each for each in manifest if (ROOT / each).exists()} <= set(kept)


@pytest.mark.parametrize("name", OURS)
def test_each_container_of_the_composition_runs_a_command_and_may_do_little(name: str) -> None:
    service = OURS[name]
    check_command(service["command"])
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    test = service.get("healthcheck", {}).get("test")
    if test is not None:
        assert test[:2] == ["CMD", "cortado"]
        check_command(test[2:])


def test_the_composition_has_three_nodes_that_become_voters() -> None:
    assert list(NODES) == ["n1", "n2", "n3"]
    for name, node in NODES.items():
        options = dict(each.removeprefix("--").partition("=")[::2] for each in node["command"][1:])
        assert (options["node-id"], options["advertise"]) == (name, f"{name}:7621")
        joined = {f"{other}:7622" for other in NODES if other != name}
        assert set(options.get("join", "").split(",")) == (joined if name != "n1" else {""})
        assert node["volumes"] == [f"{name}:/var/lib/cortado"]
    assert [each for each in OURS["grow"]["command"] if "=n" in each and not each.startswith("-")] == [
        "n2=n2:7622",
        "n3=n3:7622",
    ]


def test_only_this_machine_reaches_a_published_port() -> None:
    published = [port for service in SERVICES.values() for port in service.get("ports", [])]
    assert len(published) == 3
    assert all(port.startswith("127.0.0.1:") for port in published)


def test_prometheus_asks_each_node_and_the_gateway_for_its_metrics_under_the_job_of_the_alerts() -> None:
    told = yaml.safe_load((COMPOSE / "prometheus.yml").read_text())
    (job,) = told["scrape_configs"]
    assert job["job_name"] == "cortado"
    ports = {
        name: each.rpartition(":")[2]
        for name, service in (NODES | {"gateway": OURS["gateway"]}).items()
        for each in service["command"]
        if "--metrics-" in each
    }
    assert job["static_configs"][0]["targets"] == [f"{name}:{port}" for name, port in ports.items()]
    assert told["rule_files"] == ["cortado-alerts.yml"]


def test_every_file_that_a_container_is_given_exists() -> None:
    given = [each.split(":") for service in SERVICES.values() for each in service.get("volumes", [])]
    files = [(COMPOSE / source).resolve() for source, *_ in given if source.startswith(".")]
    assert len(files) == 5
    assert [path for path in files if not path.is_file()] == []
    mounted = {target for source, target, *_ in given if source.endswith("cortado.json")}
    told = yaml.safe_load((COMPOSE / "grafana" / "dashboards.yml").read_text())
    assert mounted == {f"{told['providers'][0]['options']['path']}/cortado.json"}


def test_a_pod_of_the_chart_may_do_as_little() -> None:
    names = templates()["_names.tpl"]
    promises = ("runAsNonRoot: true", f"runAsUser: {USER}", f"fsGroup: {USER}", "automountServiceAccountToken: false")
    for promise in (*promises, "readOnlyRootFilesystem: true", "allowPrivilegeEscalation: false", "drop: [ALL]"):
        assert promise in names
    for name in ("nodes.yaml", "grow.yaml", "gateway.yaml", "backup.yaml"):
        assert 'include "cortado.pod"' in templates()[name]
        assert 'include "cortado.container"' in templates()[name]


def test_the_commands_of_the_chart_exist() -> None:
    found = 0
    for text in templates().values():
        for flow in re.findall(r"(?:args|command): (\[.*\])", text):
            words = yaml.safe_load(re.sub(r"\$\(\w+\)", "x", flow))
            check_command(words[1:] if words[0] == "cortado" else words)
            found += 1
    assert found == 1
    gateway = re.findall(r"^ +- (--[\w-]+=.*)$", templates()["gateway.yaml"], re.MULTILINE)
    assert {"--https-cert=/etc/cortado-gateway-tls/tls.crt", "--listen=127.0.0.1:7629"} <= set(gateway)
    check_command(["gateway", *gateway])
    assert "- member\n            - grow\n            - --wait-timeout=" in templates()["grow.yaml"]
    check_command(["member", "grow", "--wait-timeout=1", "a=b:1"])


def test_what_a_client_of_the_chart_is_told_is_what_clients_read() -> None:
    told = set(re.findall(r"\{name: (CORTADO_\w+),", "".join(templates().values())))
    assert told == {"CORTADO_ENDPOINTS", "CORTADO_TLS_CA", "CORTADO_TLS_CERT", "CORTADO_TLS_KEY", "CORTADO_TOKEN_FILE"}
    assert told <= {f"CORTADO_{each.name.upper().replace('-', '_')}" for each in CLIENT_SETTINGS}
    # A gateway and the job need no key of a node.
    assert [name for name, text in templates().items() if 'include "cortado.tls"' in text] == ["nodes.yaml"]


def test_the_settings_in_the_chart_are_settings() -> None:
    named = set(re.findall(r"^ +([a-z-]+) = ", templates()["settings.yaml"], re.MULTILINE))
    assert {"node-id", "listen", "join", "tls-cert", "insecure", "metrics-listen"} <= named
    assert named <= {each.name for each in SETTINGS}


def test_a_node_has_the_time_to_hand_over_that_its_settings_give_it() -> None:
    grace_s = {each.name: each.default for each in SETTINGS}["stop-grace-ms"] / 1000
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    assert values["stopGraceSeconds"] >= 2 * grace_s
    assert {node["stop_grace_period"] for node in NODES.values()} == {f"{values['stopGraceSeconds']}s"}


def test_every_value_that_a_template_asks_for_is_in_the_chart() -> None:
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    asked = {path for text in templates().values() for path in re.findall(r"\.Values((?:\.\w+)+)", text)}
    assert asked
    for path in asked:
        at: Any = values
        for part in path.strip(".").split("."):
            assert part in at, path
            at = at[part]


def test_the_schema_of_the_values_names_each_value_that_there_is() -> None:
    def check(value: Any, schema: dict[str, Any], path: str) -> None:
        assert schema.get("description") or schema.get("properties") or "enum" in schema, path
        if isinstance(value, dict) and "properties" in schema:
            assert set(value) == set(schema["properties"]) - {"global"}, path
            assert schema["additionalProperties"] is False, path
            for name, each in value.items():
                check(each, schema["properties"][name], f"{path}.{name}")

    values = yaml.safe_load((CHART / "values.yaml").read_text())
    check(values, json.loads((CHART / "values.schema.json").read_text()), "")


def test_the_chart_is_of_this_version() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert (chart["version"], chart["appVersion"]) == (version, version)
