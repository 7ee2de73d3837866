"""A log line names the caller, the time, the event and the request; and nothing that a document or an exception of
others holds."""

from __future__ import annotations

import json
import logging
import re
from types import SimpleNamespace
from typing import Any

import pytest

from cortado.errors import DataLoss
from cortado.store.observe.call import CURRENT, Call
from cortado.store.observe.logs import JsonFormatter, TextFormatter

SECRET = "4111-1111-1111-1111"
TRACE = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


def record(message: str = "leads in term 7", *, error: BaseException | None = None) -> logging.LogRecord:
    info: Any = None if error is None else (type(error), error, error.__traceback__)
    made = logging.LogRecord("cortado.store.replica.driver", logging.WARNING, "driver.py", 1, message, (), info)
    made.created = 1_763_643_600.0125
    return made


def as_json(made: logging.LogRecord, *, shows_all: bool = False) -> dict[str, Any]:
    line = JsonFormatter(shows_all=shows_all, always={"node_id": "n1", "cluster_id": "c"}).format(made)
    assert "\n" not in line
    found: dict[str, Any] = json.loads(line)
    return found


def raised(error: BaseException) -> BaseException:
    try:
        raise error
    except BaseException as caught:
        return caught


def test_a_line_of_json_names_time_level_logger_message_and_node() -> None:
    assert as_json(record()) == {
        "time": "2025-11-20T13:00:00.012Z",
        "level": "warning",
        "logger": "cortado.store.replica.driver",
        "message": "leads in term 7",
        "node_id": "n1",
        "cluster_id": "c",
    }


def test_text_is_one_line_for_people() -> None:
    assert TextFormatter(shows_all=False).format(record()) == "2025-11-20T13:00:00.012Z WARNING leads in term 7"


def test_what_is_logged_within_a_request_belongs_to_it() -> None:
    call = Call("cortado.v1.KeyValue/Put", 0.0, TRACE)
    call.write = SimpleNamespace(request_id=bytes(19) + b"\x05")  # type: ignore[assignment]
    token = CURRENT.set(call)
    try:
        within = as_json(record())
        call.is_over = True
        after = as_json(record())
    finally:
        CURRENT.reset(token)
    assert within["method"] == "cortado.v1.KeyValue/Put"
    assert within["request_id"] == "00" * 19 + "05"
    assert within["trace_id"] == "4bf92f3577b34da6a3ce929d0e0e4736"
    assert "request_id" not in after


def test_fields_of_a_record_are_fields_of_the_object() -> None:
    made = record()
    made.fields = {"duration_ms": 12.5}
    assert as_json(made)["duration_ms"] == 12.5


@pytest.mark.parametrize("cause", [ValueError(f"bad card {SECRET}"), KeyError(SECRET)])
def test_an_exception_of_others_may_quote_data_and_is_shown_without_its_message(cause: Exception) -> None:
    error = raised(cause)
    for line in (
        TextFormatter(shows_all=False).format(record("a defect", error=error)),
        json.dumps(as_json(record("a defect", error=error))),
    ):
        assert SECRET not in line
        assert type(cause).__name__ in line
        assert re.search(r"test_log_format\.py:\d+ in raised", line)


def test_at_debug_the_message_is_shown() -> None:
    assert SECRET in as_json(record("a defect", error=raised(ValueError(SECRET))), shows_all=True)["exception"]


def test_our_own_errors_and_the_systems_are_shown_whole() -> None:
    assert "checksum" in as_json(record("x", error=raised(DataLoss("a value", "checksum"))))["exception"]
    assert "No space" in as_json(record("x", error=raised(OSError(28, "No space left"))))["exception"]


def test_a_cause_is_shown_behind_what_it_led_to() -> None:
    def fail() -> None:
        try:
            raise ValueError(SECRET)
        except ValueError as cause:
            raise RuntimeError(SECRET) from cause

    try:
        fail()
    except RuntimeError as error:
        shown = as_json(record("x", error=error))["exception"]
    assert shown.index("RuntimeError") < shown.index("after") < shown.index("ValueError")
    assert SECRET not in shown
