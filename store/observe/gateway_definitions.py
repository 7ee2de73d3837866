"""The metrics of an HTTP gateway, in the form of :mod:`cortado.store.observe.definitions`."""

from __future__ import annotations

from typing import Final

from cortado.store.observe.definitions import DEFINITIONS, Definition, Kind, Part


def _gauge(name: str, meaning: str, *labels: str) -> Definition:
    return Definition(f"gateway_{name}", Kind.GAUGE, meaning, labels)


def _counter(name: str, meaning: str, *labels: str) -> Definition:
    return Definition(f"gateway_{name}", Kind.COUNTER, meaning, labels)


GATEWAY: Final = Part(
    "An HTTP gateway",
    "At the address that the gateway's own `metrics-listen` names. A route is a path as the gateway's table has it, "
    "such as `/v1/kv/{namespace}/{key:path}`, or `none`; it is shown after its first call. A gateway shows what its "
    "process is, too.",
    (
        _gauge("info", "Always 1; the labels say what runs.", "version", "python"),
        _counter("requests_total", "Calls that were answered, by status.", "route", "method", "status"),
        Definition(
            "gateway_request_duration_seconds",
            Kind.HISTOGRAM,
            "Time from a call's head to the last byte of its answer; streams are left out.",
            ("route", "method"),
        ),
        _counter("received_bytes_total", "Bytes of calls' bodies.", "route", "method"),
        _counter("sent_bytes_total", "Bytes of answers' bodies, as they are sent.", "route", "method"),
        _counter("cut_total", "Answers that did not end: the caller left, or the stream failed.", "route", "method"),
        _gauge("connections", "Open connections."),
        _gauge("connections_limit", "Maximum number of open connections."),
        _gauge("calls", "Calls under way, streams among them."),
        _gauge("calls_limit", "Maximum number of calls under way."),
        _gauge("streams", "Open streams of rows and of changes."),
        _gauge("streams_limit", "Maximum number of open streams."),
        _gauge("body_bytes", "Bytes of bodies that are read or worked on."),
        _gauge("body_bytes_limit", "Maximum number of these bytes."),
        _counter(
            "rejections_total",
            "Calls and connections that the gateway refused or cut off by itself, by cause.",
            "cause",
        ),
        _counter(
            "upstream_errors_total",
            "Calls that failed since the cluster could not be reached, was overloaded, or did not answer in time.",
            "reason",
        ),
    ),
)

GATEWAY_DEFINITIONS: Final = {
    each.name: each
    for each in (
        *GATEWAY.definitions,
        *(each for name, each in DEFINITIONS.items() if name.startswith("process_")),
    )
}
