"""A gateway's own metrics: each call under its route, refusals by their cause, and whether it can serve."""

from __future__ import annotations

import asyncio
import json
import re
import socket
from pathlib import Path

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from cortado.errors import InvalidArgument, Unauthenticated, Unavailable
from cortado.store.client import AsyncClient
from cortado.store.gateway.application import Application, all_operations
from cortado.store.gateway.config import configuration
from cortado.store.gateway.limits import GatewayLimits
from cortado.store.gateway.metrics import Pages
from cortado.store.observe.http import Request
from support.gateway_process import GatewayProcess, gateway_process
from support.gateways import Gateway, gateway
from support.server_process import wait_until

Labels = tuple[tuple[str, str], ...]


def scraped(page: bytes) -> dict[tuple[str, Labels], float]:
    """Return samples by name and labels."""
    return {
        (sample.name.removeprefix("cortado_gateway_"), tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(page.decode())
        for sample in family.samples
    }


async def page_of(application: Application, client: AsyncClient, path: str = "/metrics") -> tuple[int, bytes]:
    pages = Pages(client, application.bounds, lambda: 3)
    response = await pages.by_path[path](Request(path, {}))
    return response.status, response.body


def labels(route: str, method: str, **more: str) -> Labels:
    return tuple(sorted({"route": route, "method": method, **more}.items()))


@pytest.fixture
def own(served: Gateway) -> Gateway:
    """Return an application of the test's own before the same node: nothing is counted yet."""
    return Gateway(served.loop, served.client, Application(served.client, GatewayLimits(streams_max=1)))


def metrics(of: Gateway) -> dict[tuple[str, Labels], float]:
    return scraped(of.run(page_of(of.application, of.client))[1])


def test_calls_are_counted_by_their_route_and_never_by_their_path(own: Gateway) -> None:
    assert own.request("PUT", "/v1/kv/metered/secret-key", content=b"12345",
                       headers={"Content-Type": "application/octet-stream"}).status_code == 200  # fmt: skip
    for _ in range(2):
        assert own.request("GET", "/v1/kv/metered/secret-key").status_code == 200
    assert own.run(own.http.head("/v1/kv/metered/none")).status_code == 404
    for path in ("/nothing/secret-key", "/v1/db/x"):
        assert own.request("GET", path).status_code == 404
    assert own.request("BREW", "/v1/kv/metered/secret-key").status_code == 405
    found, route = metrics(own), "/v1/kv/{namespace}/{key:path}"
    assert {key: value for key, value in found.items() if key[0] == "requests_total"} == {
        ("requests_total", labels(route, "PUT", status="200")): 1,
        ("requests_total", labels(route, "GET", status="200")): 2,
        ("requests_total", labels(route, "GET", status="404")): 1,
        ("requests_total", labels("none", "none", status="404")): 2,
        ("requests_total", labels("none", "none", status="405")): 1,
    }
    assert found["received_bytes_total", labels(route, "PUT")] == 5
    assert found["request_duration_seconds_count", labels(route, "GET")] == 3
    assert found["request_duration_seconds_sum", labels(route, "GET")] > 0
    assert found["sent_bytes_total", labels(route, "GET")] >= 10
    assert "secret" not in repr(found)
    routes = {dict(each).get("route", "none") for _, each in found}
    assert routes <= {"none", *(each.path for each in all_operations())}


def test_a_stream_is_an_answer_without_a_duration(own: Gateway) -> None:
    own.run(own.client.kv("metered").put(b"a", b"1"))
    lines = own.request("GET", "/v1/kv/metered", headers={"Accept": "application/x-ndjson"})
    assert lines.status_code == 200
    found, route = metrics(own), labels("/v1/kv/{namespace}", "GET")
    assert found["requests_total", labels("/v1/kv/{namespace}", "GET", status="200")] == 1
    assert found["request_duration_seconds_count", route] == 0
    assert found["sent_bytes_total", route] == len(lines.content)
    assert found["cut_total", route] == 0


def test_what_a_gateway_refuses_has_a_cause_and_is_no_error_behind_it(own: Gateway) -> None:
    assert own.request("GET", "/v1/kv/n/a", headers={"Host": "evil.example"}).status_code == 421
    assert own.request("GET", "/v1/kv/n/a", headers={"Origin": "http://evil.example"}).status_code == 403
    assert own.request("GET", "/v1/kv/n/a", headers={f"x-{i}": "" for i in range(200)}).status_code == 431

    async def full() -> httpx.Response:
        with own.application.bounds.stream():
            return await own.http.get("/v1/kv/metered", headers={"Accept": "application/x-ndjson"})

    assert own.run(full()).status_code == 429
    found = metrics(own)
    assert {each[0][1]: value for (name, each), value in found.items() if name == "rejections_total"} == {
        "host": 1, "origin": 1, "head": 1, "streams": 1,
    }  # fmt: skip
    assert not [name for name, _ in found if name == "upstream_errors_total"]
    assert (found["streams", ()], found["streams_limit", ()], found["connections", ()]) == (0, 1, 3)


def test_a_cluster_that_is_not_there_is_an_error_behind_the_gateway_and_not_ready() -> None:
    async def run() -> tuple[int, dict[tuple[str, Labels], float], tuple[int, bytes]]:
        with socket.socket() as nobody:
            nobody.bind(("127.0.0.1", 0))
            endpoint = f"127.0.0.1:{nobody.getsockname()[1]}"
            async with AsyncClient(endpoint, timeout_s=0.2) as client:
                application = Application(client, GatewayLimits())
                transport = httpx.ASGITransport(app=application)
                async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as http:
                    answered = await http.get("/v1/kv/n/a")
                found = scraped((await page_of(application, client))[1])
                return answered.status_code, found, await page_of(application, client, "/readyz")

    status, found, (ready, told) = asyncio.run(run())
    assert status in (503, 504)
    assert sum(value for (name, _), value in found.items() if name == "upstream_errors_total") == 1
    assert ready == 503
    assert json.loads(told)["ready"] is False
    assert [each["reason"] for each in json.loads(told)["reasons"]] == ["cluster"]


def test_ready_is_who_is_answered_even_if_only_that_it_may_not_ask() -> None:
    class Answering:
        def __init__(self, error: Exception | None) -> None:
            self._error = error

        def with_timeout(self, _timeout_s: float) -> Answering:
            return self

        async def clock(self) -> None:
            if self._error is not None:
                raise self._error

    def ready(error: Exception | None, *, stopping: bool = False) -> tuple[int, list[str]]:
        application = Application(Answering(error), GatewayLimits())  # type: ignore[arg-type]
        if stopping:
            application.bounds.stop()
        status, told = asyncio.run(page_of(application, Answering(error), "/readyz"))  # type: ignore[arg-type]
        return status, [each["reason"] for each in json.loads(told)["reasons"]]

    assert ready(None) == (200, [])
    assert ready(Unauthenticated("no token")) == (200, [])
    assert ready(Unavailable("no leader")) == (503, ["cluster"])
    assert ready(None, stopping=True) == (503, ["stopping"])


@pytest.mark.parametrize(
    ("given", "address"),
    [("", None), ("7630", ("127.0.0.1", 7630)), (":0", ("127.0.0.1", 0)), ("0.0.0.0:7630", ("0.0.0.0", 7630))],
)
def test_the_pages_have_an_address_of_their_own(given: str, address: tuple[str, int] | None) -> None:
    assert configuration({"metrics-listen": given} if given else {}, {}).metrics == address


def test_an_address_that_is_none_is_refused_by_name() -> None:
    with pytest.raises(InvalidArgument) as error:
        configuration({"metrics-listen": "here"}, {})
    assert error.value.field == "--metrics-listen"


def test_a_gateway_logs_what_it_is_told_to_in_the_form_that_it_is_told() -> None:
    assert (configuration({}, {}).log_format, configuration({}, {}).log_level) == ("text", "info")
    chosen = configuration({"log-level": "warning"}, {"CORTADO_GATEWAY_LOG_FORMAT": "json"})
    assert (chosen.log_format, chosen.log_level) == ("json", "warning")
    with pytest.raises(InvalidArgument) as error:
        configuration({"log-level": "loud"}, {})
    assert error.value.field == "--log-level"


@pytest.mark.process
def test_a_gateway_shows_its_connections_and_what_it_cut_off(tmp_path: Path) -> None:
    with gateway() as node, gateway_process(
        node.client.endpoint, tmp_path, "--metrics-listen", "0", "--limit.head-ms", "2000", "--log-format", "json"
    ) as process:  # fmt: skip
        assert process.send(b"nothing\r\n\r\n").status == 400
        with process.connect() as silent:
            assert silent.recv(1) == b""
        assert process.send(b"GET /v1/kv/n/a HTTP/1.1\r\nHost: localhost\r\n\r\n").status == 404
        with process.connect() as kept:
            kept.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert kept.recv(4096).startswith(b"HTTP/1.1 200")
            found = scraped(shown(process, "/metrics").content)
            assert found["connections", ()] >= 1
            assert found["rejections_total", (("cause", "head"),)] == 1
            assert found["rejections_total", (("cause", "late head"),)] == 1
        assert shown(process, "/healthz").text == "alive\n"
        assert shown(process, "/readyz").json() == {"ready": True, "reasons": []}
        assert process.send(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n").status == 404


def shown(process: GatewayProcess, path: str) -> httpx.Response:
    told = re.compile(r"metrics on (http://\S+)/metrics")
    wait_until(lambda: told.search(process.log.read_text()) is not None, "the pages' address")
    lines = process.log.read_text().splitlines()
    address = next(found for each in lines if (found := told.search(each)))
    assert {"level", "message"} < json.loads(address.string).keys()
    return httpx.get(address[1] + path)
