"""Shared parts of the tests of observing: a write as the node keeps it, and the answers of a real node's endpoint."""

from __future__ import annotations

import json
import re
import urllib.error
import urllib.request
from dataclasses import dataclass
from typing import Any

from prometheus_client.parser import text_string_to_metric_families

from cortado.store.observe.measures import EntryTimes
from support.server_process import ServerProcess

Scraped = dict[tuple[str, tuple[tuple[str, str], ...]], float]
"""Values by the sample's name and its labels."""


@dataclass
class Written:
    """A write that came to stand in line at 100 ms, and was evaluated at 103."""

    request_id: bytes = b"\1" * 20
    proposed_ms: float = 100.0
    evaluated_ms: float = 103.0
    entry: EntryTimes | None = None


def metrics_url(server: ServerProcess) -> str:
    """Return the address at which the last start of a server serves its pages, without the path."""
    found = re.findall(r"metrics on (http://[^/]+)/metrics", server.log)
    assert found, f"no metrics are served\n{server.log}"
    return str(found[-1])


def page(url: str) -> tuple[int, str]:
    """Return status and body."""
    try:
        with urllib.request.urlopen(url, timeout=10) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as refused:
        return refused.code, refused.read().decode()


def scrape(server: ServerProcess) -> Scraped:
    """Return all samples, as Prometheus' own parser reads them."""
    status, text = page(f"{metrics_url(server)}/metrics")
    assert status == 200, text
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def value(scraped: Scraped, name: str, **labels: str) -> float:
    """Return the sum of a metric's samples that have these labels."""
    return sum(
        number
        for (each, has), number in scraped.items()
        if each == name and all((label, text) in has for label, text in labels.items())
    )


def readiness(server: ServerProcess) -> tuple[int, dict[str, Any]]:
    """Return the status and the body of ``/readyz``."""
    status, text = page(f"{metrics_url(server)}/readyz")
    found: dict[str, Any] = json.loads(text)
    return status, found
