"""Page, dashboard and alerts speak of the metrics that there are, and of nothing else; each alert is explained."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from cortado.store.observe.definitions import DEFINITIONS, PARTS, Definition, Kind
from cortado.store.observe.gateway_definitions import GATEWAY, GATEWAY_DEFINITIONS
from cortado.store.observe.readiness import Reason
from cortado.store.observe.reference import reference

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "metrics.md").read_text()
OPERATIONS = (ROOT / "docs" / "operations.md").read_text()
ALERTS: list[dict[str, Any]] = [
    rule
    for group in yaml.safe_load((ROOT / "deploy" / "prometheus" / "cortado-alerts.yml").read_text())["groups"]
    for rule in group["rules"]
]
DASHBOARD = json.loads((ROOT / "deploy" / "grafana" / "cortado.json").read_text())
PANELS: list[dict[str, Any]] = [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]

# The names that Prometheus makes of a histogram; a counter's name has its ending already.
ENDINGS = {Kind.HISTOGRAM: ("_bucket", "_sum", "_count"), Kind.COUNTER: ("",), Kind.GAUGE: ("",)}
ALL = DEFINITIONS | GATEWAY_DEFINITIONS
SERIES = {each.full_name + ending: each for each in ALL.values() for ending in ENDINGS[each.kind]}


def named_in(expression: str) -> set[str]:
    return set(re.findall(r"\bcortado_[a-z0-9_]+", expression))


def test_the_pages_tables_are_the_definitions() -> None:
    assert PAGE.partition("## All of them\n")[2].strip() == reference().strip(), (
        "write the tables anew: python -m cortado.store.observe.reference"
    )


def test_every_reason_for_not_being_ready_is_explained() -> None:
    assert set(re.findall(r"^\| `(\w+)` \|", PAGE.partition("## Ready")[2].partition("##")[0], re.M)) == set(Reason)


def test_no_metric_is_defined_twice() -> None:
    assert len(ALL) == sum(len(part.definitions) for part in (*PARTS, GATEWAY))


@pytest.mark.parametrize("definition", ALL.values(), ids=lambda each: each.name)
def test_names_end_with_their_unit_and_counters_with_total(definition: Definition) -> None:
    assert re.fullmatch(r"[a-z][a-z0-9_]+", definition.name)
    assert definition.name.endswith("_total") == (definition.kind is Kind.COUNTER)
    assert not re.search(r"(_ms|_millis|_percent|_kb|_mb)(_|$)", definition.name)
    assert definition.meaning.endswith(".")
    if definition.kind is Kind.HISTOGRAM:
        assert definition.name.endswith(("_seconds", "_bytes", "_commands"))


@pytest.mark.parametrize("rule", ALERTS, ids=lambda rule: str(rule["alert"]))
def test_an_alert_asks_for_what_there_is_and_is_explained(rule: dict[str, Any]) -> None:
    assert named_in(rule["expr"]) <= set(SERIES)
    assert named_in(rule["expr"]) or "up{" in rule["expr"]
    assert rule["labels"]["severity"] in ("critical", "warning")
    assert re.fullmatch(r"\d+[smh]", str(rule["for"]))
    section = re.search(rf"^### {rule['alert']}$(.*?)(?=^##|\Z)", OPERATIONS, re.M | re.S)
    assert section is not None
    assert "*Do:*" in section[1]
    assert rule["annotations"]["runbook_url"] == f"docs/operations.md#{rule['alert'].lower()}"


@pytest.mark.parametrize("rule", ALERTS, ids=lambda rule: str(rule["alert"]))
def test_labels_that_an_alert_speaks_of_are_there(rule: dict[str, Any]) -> None:
    spoken = set(re.findall(r"\$labels\.(\w+)", rule["annotations"]["summary"])) - {"instance", "job"}
    had = {label for name in named_in(rule["expr"]) for label in SERIES[name].labels}
    assert spoken <= had
    # If an aggregation drops labels, it must keep those.
    for kept in re.findall(r"\bby \(([^)]*)\)", rule["expr"]):
        assert spoken <= {each.strip() for each in kept.split(",")}


def test_no_alert_is_explained_that_is_not_there() -> None:
    assert set(re.findall(r"^### (Cortado\w+)$", OPERATIONS, re.M)) == {rule["alert"] for rule in ALERTS}


@pytest.mark.parametrize("panel", PANELS, ids=lambda panel: str(panel["title"]))
def test_a_panel_draws_what_there_is(panel: dict[str, Any]) -> None:
    assert panel["targets"]
    for target in panel["targets"]:
        names = named_in(target["expr"])
        assert names
        assert names <= set(SERIES)
        for name in re.findall(r"rate\((\w+)|increase\((\w+)", target["expr"]):
            assert SERIES[name[0] or name[1]].kind is not Kind.GAUGE
        labels = {label for each in names for label in SERIES[each].labels} | {"instance", "job", "le"}
        assert set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"])) <= labels


def test_panels_have_places_and_ids_of_their_own() -> None:
    ids = [panel["id"] for panel in DASHBOARD["panels"]]
    assert len(set(ids)) == len(ids)
    taken: set[tuple[int, int]] = set()
    for panel in DASHBOARD["panels"]:
        at = panel["gridPos"]
        cells = {(at["x"] + dx, at["y"] + dy) for dx in range(at["w"]) for dy in range(at["h"])}
        assert not cells & taken, panel["title"]
        assert max(x for x, _ in cells) < 24
        taken |= cells
