"""The chart as helm renders it: objects that Kubernetes takes, commands and settings that exist, values by a schema."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from cortado.store.settings.client import CLIENT_SETTINGS
from support.commands import check_command
from support.environments import ROOT, Environment, locked

CHART: Final = str(ROOT / "deploy" / "helm" / "cortado")
ALONE: Final = "insecure=true,replicas=1"
SECURE: Final = "tls.secretName=t"
ALL: Final = (
    f"{SECURE},growTokenSecretName=k,zonesRequired=true,serviceMonitor.enabled=true,networkPolicy.enabled=true,"
    "networkPolicy.clients[0].podSelector.matchLabels.app=shop,networkPolicy.metrics[0].namespaceSelector.matchLabels.a=b,"
    "gateway.enabled=true,gateway.replicas=2,gateway.tls.secretName=g,gateway.ingress.enabled=true,"
    "gateway.ingress.host=cortado.example,gateway.ingress.className=c,gateway.ingress.tlsSecretName=i,"
    "backup.enabled=true,backup.url=s3://backups/cortado/,backup.tokenSecretName=k,backup.env[0].name=X,backup.env[0].value=y"
)


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    return locked(tmp_path_factory.mktemp("chart") / "venv", "requirements-chart.lock")


def rendered(environment: Environment, values: str) -> str:
    return environment.run("helm", "template", "cortado", CHART, "--namespace", "db", "--set", values)


def containers(objects: list[dict[str, Any]]) -> list[dict[str, Any]]:
    found = []
    for each in objects:
        spec = each["spec"]["jobTemplate"]["spec"] if each["kind"] == "CronJob" else each.get("spec", {})
        found += spec.get("template", {}).get("spec", {}).get("containers", [])
    return found


@pytest.mark.parametrize(
    ("values", "kinds"),
    [
        (ALONE, {"ConfigMap", "Service", "StatefulSet", "PodDisruptionBudget"}),
        (f"{SECURE},replicas=5", {"ConfigMap", "Service", "StatefulSet", "PodDisruptionBudget", "Job"}),
        (f"{SECURE},backup.enabled=true,backup.claimName=b,networkPolicy.enabled=true", {"CronJob", "NetworkPolicy"}),
        (ALL, {"CronJob", "Deployment", "Ingress", "Job", "NetworkPolicy", "ServiceMonitor"}),
    ],
    ids=["one node", "five", "backups to a volume", "everything"],
)
def test_what_it_renders_is_taken_by_kubernetes_and_runs(
    environment: Environment, values: str, kinds: set[str], tmp_path: Path
) -> None:
    text = rendered(environment, values)
    objects = [each for each in yaml.safe_load_all(text) if each]
    assert kinds <= {each["kind"] for each in objects}
    # It knows no kinds of operators.
    known = tmp_path / "known.yaml"
    known.write_text(yaml.safe_dump_all([each for each in objects if each["kind"] != "ServiceMonitor"]))
    environment.run("kubernetes-validate", "--strict", str(known))
    found = containers(objects)
    assert found
    read = {f"CORTADO_{each.name.upper().replace('-', '_')}" for each in CLIENT_SETTINGS}
    for each in found:
        check_command([re.sub(r"\$\(\w+\)", "x", word) for word in each["args"]])
        named = {one["name"] for one in each.get("env", []) if one["name"].startswith("CORTADO_")}
        assert named <= read
        mounted = [one["mountPath"] for one in each["volumeMounts"]] if "volumeMounts" in each else []
        for one in each.get("env", []):
            path = one.get("value", "")
            assert not path.startswith("/") or any(path.startswith(f"{folder}/") for folder in mounted), path


def test_each_nodes_settings_are_ones_that_a_server_takes(environment: Environment, tmp_path: Path) -> None:
    for values in ("insecure=true", f'{ALONE},settings=retention = "24h"'):
        objects = yaml.safe_load_all(rendered(environment, values))
        (files,) = [each["data"] for each in objects if each and each["kind"] == "ConfigMap"]
        for name, text in files.items():
            (tmp_path / name).write_text(text)
            command = [sys.executable, "-m", "cortado.store.cli", "config", "check", str(tmp_path / name)]
            subprocess.run(command, check=True, capture_output=True)


@pytest.mark.parametrize(
    ("values", "refusal"),
    [
        ("replicas=3", "give tls.secretName, or insecure: true"),
        (f"{ALONE},tls.secretName=t", "tls.secretName and insecure: one of them"),
        (f"{ALONE},growTokenSecretName=k", "growTokenSecretName needs tls.secretName"),
        (f"{ALONE},backup.enabled=true", "backup.claimName or backup.url: one of them"),
        (
            f"{ALONE},backup.enabled=true,backup.claimName=b,backup.url=s3://b",
            "backup.claimName or backup.url: one of them",
        ),
        (
            f"{ALONE},backup.enabled=true,backup.claimName=b,backup.tokenSecretName=k",
            "backup.tokenSecretName needs tls",
        ),
        (f"{SECURE},gateway.enabled=true,gateway.ingress.enabled=true", "gateway.ingress needs gateway.tls.secretName"),
        (f"{ALONE},replica=3", "property replica is not allowed|additional properties 'replica' not allowed"),
        (f"{ALONE},replicas=0", "replicas: Must be greater|replicas.*minimum"),
        (f"{ALONE},backup.url=monday", "backup.url: Does not match|backup.url.*pattern"),
    ],
)
def test_values_that_cannot_be_meant_are_refused(environment: Environment, values: str, refusal: str) -> None:
    with pytest.raises(AssertionError, match=refusal):
        rendered(environment, values)


def test_the_linter_finds_nothing(environment: Environment) -> None:
    environment.run("helm", "lint", "--strict", CHART, "--set", ALL)
