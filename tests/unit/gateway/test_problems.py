"""Each error of the tree has a status, and reaches the caller with its reason and its fields."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import pytest

from cortado import errors
from cortado.errors import CortadoError
from cortado.store.gateway.problems import Refused, problem_response, status_of

# Errors that a caller cannot mend by asking otherwise; with the subclasses of Broken.
SERVERS = {
    "CortadoError",
    "DidNotHappen",
    "Restoring",
    "Unsupported",
    "TryAgain",
    "KeyLocked",
    "Unavailable",
    "NotLeader",
    "OutcomeUnknown",
    "DeadlineExceeded",
    "Cancelled",
}


def kinds(root: type[CortadoError]) -> list[type[CortadoError]]:
    return [root, *(kind for child in root.__subclasses__() for kind in kinds(child))]


def made(kind: type[CortadoError]) -> CortadoError:
    """Return an error with a value in each field."""
    values: dict[str, Any] = {"str": "text", "int": 7, "list[dict[str, Any]]": [{"path": "a"}]}
    return kind(**{field.name: values[str(field.type)] for field in dataclasses.fields(kind)})


@pytest.mark.parametrize(
    # Twins of other tests have errors of their own.
    "kind",
    [kind for kind in kinds(CortadoError) if kind.__module__ == CortadoError.__module__],
    ids=lambda kind: kind.__name__,
)
def test_every_error_is_told_with_its_fields(kind: type[CortadoError]) -> None:
    error = made(kind)
    response = problem_response(error)
    told = json.loads(bytes(response.body))
    assert (told["status"], told["reason"]) == (response.status_code, error.reason)
    assert response.media_type == "application/problem+json"
    assert {name: told[name] for name in error.fields() if name != "detail"} == {
        name: value for name, value in error.fields().items() if name != "detail"
    }
    assert (response.status_code >= 500) == (kind.__name__ in SERVERS or issubclass(kind, errors.Broken))


def test_an_outcome_that_is_not_known_is_not_taken_for_a_failure() -> None:
    response = problem_response(errors.OutcomeUnknown("the leader was lost", "00ff"))
    told = json.loads(bytes(response.body))
    assert (response.status_code, told["outcome"], told["request_id"]) == (504, "unknown", "00ff")
    late = problem_response(errors.DeadlineExceeded("late", 10))
    assert (late.status_code, "outcome" in json.loads(bytes(late.body))) == (504, False)


@pytest.mark.parametrize(("delay_ms", "seconds"), [(0, "1"), (1, "1"), (1_000, "1"), (1_001, "2"), (60_000, "60")])
def test_a_delay_is_told_in_whole_seconds_and_never_too_short(delay_ms: int, seconds: str) -> None:
    for error in (errors.ResourceExhausted("full", delay_ms), errors.NotLeader("moved", delay_ms)):
        assert problem_response(error).headers["Retry-After"] == seconds


def test_a_condition_that_fails_on_no_version_has_no_etag() -> None:
    assert "ETag" not in problem_response(errors.ConditionFailed("k", "present", "absent")).headers
    assert problem_response(errors.ConditionFailed("k", "absent", "0.17.2")).headers["ETag"] == '"0.17.2"'
    assert status_of(errors.OutOfBounds("k", "at least 0", "-1")) == 409


def test_what_is_not_unicode_does_not_break_the_answer() -> None:
    response = problem_response(Refused(415, errors.InvalidArgument("body", "bad", "\ud800")))
    assert (response.status_code, json.loads(bytes(response.body))["field"]) == (415, "body")
