"""Errors over the wire: every error comes back as it went, within the bounds of a header."""

from __future__ import annotations

import json
import traceback
from urllib.parse import quote

import grpc
import pytest
from google.rpc import error_details_pb2, status_pb2

from cortado import errors
from cortado.errors import CortadoError
from cortado.store.wire.rpc_errors import DETAILS_KEY, from_row_error, status_message, to_row_error, trailing_metadata
from support.grpc_errors import from_rpc_error, status_code, was_answered

EXAMPLES: list[CortadoError] = [
    errors.InvalidArgument("key.id", "must be an int", "'a'"),
    errors.KeyTooLong("the primary key of table a.b", "too long", "", 600, 499),
    errors.TooLarge("value", "must have at most 10 bytes", "11 bytes", 11, 10),
    errors.InvalidDocument("a.b", "must be a string", "1", 7),
    errors.InvalidSchema("R.f", "unknown type", "foo"),
    errors.InvalidFilter("filter", "expected a value", "", 5),
    errors.InvalidPageToken("page_token", "is damaged"),
    errors.TimestampInFuture("at", "is ahead", "1.2.3", "0.1.0"),
    errors.NotFound("table", "a.b"),
    errors.AlreadyExists("table", "a.b"),
    errors.IncompatibleSchema("s", "FULL", [{"version": 1, "path": "R.f", "kind": "TYPE", "message": "int to string"}]),
    errors.SnapshotTooOld("0.1.0", "0.2.0"),
    errors.HoldExpired("00ff"),
    errors.Restoring("aa", "0.1.0"),
    errors.Unauthenticated("no token"),
    errors.PermissionDenied("app", "writer", "table:shop.orders"),
    errors.IndexNotReady("by_code of table shop.items", "is being built, and cannot be read yet", "0.1.0"),
    errors.Unsupported("nothing", "because"),
    errors.ConditionFailed("k", "absent", "0.1.2", 3),
    errors.UniqueViolation("by_a", "('x')", "t(2)", "t(1)", 4),
    errors.OutOfBounds("t('a').left", "at least 0", "-1", 2),
    errors.WriteConflict("k", "0.1.0", "0.2.0", 5, "range"),
    errors.TransactionAborted("settled"),
    errors.KeyLocked("", 200, "d.t(7)", "aa"),
    errors.Unavailable("stopping", 1500),
    errors.NotLeader("elsewhere", 10, "127.0.0.1:1"),
    errors.ResourceExhausted("full", 50, "writes", 8192),
    errors.QuotaExceeded("used up", 50, "calls_per_second", 100, "database:shop"),
    errors.OutcomeUnknown("lost", "00ff"),
    errors.DeadlineExceeded("late", 100),
    errors.Cancelled("gone"),
    errors.DataLoss("a page", "at 7"),
    errors.DataDirectoryError("/data", "in use"),
    errors.ClockOutOfBounds(300, 250),
    errors.PeerRefused("no member"),
    errors.Internal("a defect"),
]


class Ended(grpc.RpcError):
    """A call as a client sees it end."""

    def __init__(self, error: CortadoError) -> None:
        self._error = error

    def code(self) -> grpc.StatusCode:
        return status_code(self._error)

    def details(self) -> str:
        return status_message(self._error)

    def trailing_metadata(self) -> tuple[tuple[str, bytes | str], ...]:
        return (("other", "x"), *trailing_metadata(self._error))


class Broken(grpc.RpcError):
    """A call that ended without an answer of a Cortado server."""

    def __init__(self, code: grpc.StatusCode) -> None:
        self._code = code

    def code(self) -> grpc.StatusCode:
        return self._code

    def details(self) -> str:
        return "connection reset"

    def trailing_metadata(self) -> None:
        return None


def details_of(error: CortadoError) -> dict[str, object]:
    status = status_pb2.Status.FromString(dict(trailing_metadata(error))[DETAILS_KEY])
    found: dict[str, object] = {}
    for detail in status.details:
        for kind in (error_details_pb2.ErrorInfo, error_details_pb2.BadRequest, error_details_pb2.RetryInfo):
            message = kind()
            if detail.Unpack(message):
                found[kind.__name__] = message
    return found


@pytest.mark.parametrize("error", EXAMPLES, ids=lambda error: type(error).__name__)
def test_an_error_comes_back_as_it_went(error: CortadoError) -> None:
    ended = Ended(error)
    back = from_rpc_error(ended)
    assert (type(back), back.fields()) == (type(error), error.fields())
    assert was_answered(ended)


def test_every_class_that_is_raised_has_an_example() -> None:
    def leaves(kind: type[CortadoError]) -> set[type[CortadoError]]:
        below = kind.__subclasses__()
        return set().union(*map(leaves, below)) if below else {kind}

    groups = {errors.DidNotHappen, errors.Conflict, errors.TryAgain, errors.Broken}
    raised = {kind for kind in leaves(CortadoError) - groups if kind.__module__ == errors.__name__}
    assert raised <= {type(error) for error in EXAMPLES}


def test_a_traceback_names_an_error_as_applications_import_it() -> None:
    for error in EXAMPLES:
        assert traceback.format_exception_only(error)[0].startswith(f"cortado.errors.{type(error).__name__}: ")
    assert all(kind.__module__ == "cortado.errors" for kind in map(vars(errors).get, errors.__all__))


def test_bad_input_names_its_field_for_any_client() -> None:
    violation = details_of(EXAMPLES[0])["BadRequest"].field_violations[0]
    assert (violation.field, violation.description) == ("key.id", "must be an int")


def test_what_may_work_later_says_when() -> None:
    delay = details_of(errors.Unavailable("stopping", 1500))["RetryInfo"].retry_delay
    assert (delay.seconds, delay.nanos) == (1, 500_000_000)
    assert "RetryInfo" not in details_of(errors.Unavailable("stopping"))


@pytest.mark.parametrize(
    "error",
    [
        errors.InvalidArgument("f" * 100_000, "p" * 100_000, "v" * 100_000),
        errors.IncompatibleSchema("s" * 10_000, "FULL", [{"path": "x" * 5000, "message": "m" * 5000}] * 1000),
        errors.UniqueViolation("i", "ü" * 100_000, "ü" * 100_000, "ü" * 100_000),
        errors.InvalidDocument("ü" * 100_000, "\ud800" * 100_000, "ü" * 100_000),
    ],
    ids=lambda error: type(error).__name__,
)
def test_no_error_outgrows_a_header(error: CortadoError) -> None:
    encoded = dict(trailing_metadata(error))[DETAILS_KEY]
    # gRPC takes 8 KiB of headers by default; binary ones travel as base64, the message percent-encoded.
    assert len(encoded) * 4 / 3 + len(quote(status_message(error), safe=" ")) < 7_500
    assert type(from_rpc_error(Ended(error))) is type(error)


def test_a_long_list_of_incompatibilities_says_how_many_more_there_are() -> None:
    many = [{"version": 1, "path": f"R.field_{i}", "kind": "TYPE", "message": "int to string"} for i in range(500)]
    back = from_rpc_error(Ended(errors.IncompatibleSchema("s", "FULL", many)))
    kept = back.fields()["incompatibilities"]
    assert kept[:-1] == many[: len(kept) - 1]
    assert kept[-1]["message"] == f"and {500 - len(kept) + 1} more"


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (grpc.StatusCode.UNAVAILABLE, errors.Unavailable),
        (grpc.StatusCode.DEADLINE_EXCEEDED, errors.DeadlineExceeded),
        (grpc.StatusCode.CANCELLED, errors.Cancelled),
        (grpc.StatusCode.RESOURCE_EXHAUSTED, errors.ResourceExhausted),
        (grpc.StatusCode.UNIMPLEMENTED, errors.Unsupported),
        (grpc.StatusCode.INTERNAL, errors.Internal),
    ],
)
def test_a_call_without_our_answer_is_the_nearest_error(code: grpc.StatusCode, kind: type[CortadoError]) -> None:
    broken = Broken(code)
    assert isinstance(from_rpc_error(broken), kind)
    assert not was_answered(broken)


def test_damaged_details_are_no_answer() -> None:
    class Damaged(Broken):
        def trailing_metadata(self) -> tuple[tuple[str, bytes], ...]:
            return ((DETAILS_KEY, b"\xff\xff"),)

    assert not was_answered(Damaged(grpc.StatusCode.INTERNAL))


def test_a_row_error_comes_back_with_its_place() -> None:
    error = errors.UniqueViolation("by_a", "('x')", "t(2)", "t(1)", row=0)
    back = from_row_error(to_row_error(9, error))
    assert back.fields() == {**error.fields(), "row": 9}
    assert json.loads(to_row_error(9, error).metadata["row"]) == 0


def test_what_is_too_old_is_told_in_times_with_what_keeps_more() -> None:
    told = str(errors.SnapshotTooOld("0.1795867200000.3", "0.1795870800000.0"))
    assert told.startswith(
        "2026-11-28T12:00:00.000Z is too long ago: versions from before 2026-11-28T13:00:00.000Z may"
    )
    assert "timestamp 0.1795867200000.3, oldest readable 0.1795870800000.0" in told
    assert "cortado table alter TABLE --retention 7d" in told
    for strange in ("", "x", "1.", "0.x.0", "0.99999999999999999.0"):
        assert str(errors.SnapshotTooOld(strange, strange)).startswith(f"{strange} is too long ago")
