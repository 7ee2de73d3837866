"""An error in the settings of observing stops the start, by name."""

from __future__ import annotations

import pytest

from cortado.errors import InvalidArgument
from cortado.store.server.config import ServerConfig


@pytest.mark.parametrize(
    ("settings", "refusal"),
    [
        ({"metrics_listen": "nowhere"}, "metrics-listen: must be host:port"),
        ({"metrics_listen": "127.0.0.1:70000"}, "metrics-listen: must be host:port with a port from 0 to 65535"),
        ({"metrics_listen": "7621"}, "metrics-listen: must be another address than listen"),
        ({"trace_endpoint": "127.0.0.1:4317"}, "trace-endpoint: must be http://HOST:PORT"),
        ({"trace_endpoint": "http://127.0.0.1"}, "trace-endpoint: must be host:port"),
        ({"trace_percent": 101}, "trace-percent: must be between 0 and 100"),
        ({"slow_request_ms": -1}, "slow-request-ms: must be between 0"),
        ({"ready_lag_ms": 399}, "ready-lag-ms: must be at least 400, four times heartbeat-ms"),
    ],
)
def test_a_wrong_setting_is_named_with_its_bound(settings: dict[str, object], refusal: str) -> None:
    with pytest.raises(InvalidArgument) as refused:
        ServerConfig(**settings).check()  # type: ignore[arg-type]
    assert str(refused.value).startswith(refusal)


@pytest.mark.parametrize(
    ("written", "address"),
    [
        ("9464", ("127.0.0.1", 9464)),
        (":9464", ("127.0.0.1", 9464)),
        ("0", ("127.0.0.1", 0)),
        ("10.0.0.1:9464", ("10.0.0.1", 9464)),
        ("[::1]:9464", ("::1", 9464)),
    ],
)
def test_a_port_alone_is_one_of_loopback(written: str, address: tuple[str, int]) -> None:
    config = ServerConfig(metrics_listen=written)
    config.check()
    assert config.metrics_address() == address


def test_a_collector_is_reached_with_tls_or_without() -> None:
    for endpoint in ("http://127.0.0.1:4317", "https://otel.example.org:4317", "http://otel:4317/"):
        ServerConfig(trace_endpoint=endpoint).check()
