"""Times as people give them: a timestamp, an instant, so long ago, a time of today, a day."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from cortado.errors import InvalidArgument, SnapshotTooOld
from cortado.proto.v1 import kv_pb2
from cortado.store.cli.app import run
from cortado.store.cli.times import moment_of_text
from cortado.store.clock.timestamp import Timestamp
from support.fake_server import FakeServer, header, refuse

NOW = datetime(2026, 11, 28, 23, 30, 0, 250_000, UTC)


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("0.1763643600000.2", Timestamp(0, 1763643600000, 2)),
        ("2025-11-20T13:00:00Z", datetime(2025, 11, 20, 13, tzinfo=UTC)),
        (" 2025-11-20 14:00+01:00 ", datetime(2025, 11, 20, 13, tzinfo=UTC)),
        ("-5m", NOW - timedelta(minutes=5)),
        ("-90s", NOW - timedelta(seconds=90)),
        ("-250ms", NOW.replace(microsecond=0)),
        ("-7d", NOW - timedelta(days=7)),
        ("-0s", NOW),
        ("12:00Z", datetime(2026, 11, 28, 12, tzinfo=UTC)),
        ("23:30:00.250Z", NOW),
        # It is the 29th there already.
        ("00:15+01:00", datetime(2026, 11, 28, 23, 15, tzinfo=UTC)),
        ("2026-11-28", datetime(2026, 11, 28, tzinfo=UTC)),
    ],
)
def test_a_time_means_one_moment(text: str, meant: Timestamp | datetime) -> None:
    assert moment_of_text(text, NOW, "--at") == meant


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("12:00", "must name its zone"),
        ("23:31Z", "is still to come today: name the day, such as 2026-11-27T23:31Z"),
        # It is the 29th there already, and so yesterday was the 28th.
        ("23:59+14:00", r"name the day, such as 2026-11-28T23:59\+14:00"),
        ("25:00Z", "is no time of the calendar"),
        ("12:00+01:60", "is no time of the calendar"),
        ("2026-02-30", "is no day of the calendar"),
        ("-5", "must be a time"),
        ("-5 m", "must be a time"),
        ("--5m", "must be a time"),
        ("5m", "must be a time"),
        ("-999999999999999d", "lies before 1970"),
        ("-9999999999999999d", "must be a time"),
        ("yesterday", "must be a time"),
        ("12", "must look like epoch"),
        ("", "must be a time"),
    ],
)
def test_what_is_no_time_is_refused_by_the_option_and_the_text(text: str, problem: str) -> None:
    with pytest.raises(InvalidArgument, match=problem) as refused:
        moment_of_text(text, NOW, "--at")
    assert (refused.value.field, refused.value.value) == ("--at", text)


@pytest.mark.parametrize("given", [["--at", "-5m"], ["--at=-5m"]])
@pytest.mark.parametrize("is_first", [True, False])
def test_a_time_that_begins_with_a_dash_is_no_option(given: list[str], is_first: bool) -> None:
    server = FakeServer()
    server.handlers["KeyValue.Get"] = lambda request, context: kv_pb2.KvGetResponse(header=header())
    rest = ["n", "key", "-e"]
    with server.running():
        words = [*given, *rest] if is_first else ["n", "key", *given, "-e"]
        before = datetime.now(UTC)
        run(["kv", "get", *words, server.endpoint])
        after = datetime.now(UTC)
    (request,) = server.calls("KeyValue.Get")
    asked = datetime.fromtimestamp(request.at.wall_ms / 1000, UTC) + timedelta(minutes=5)
    assert before - timedelta(milliseconds=2) <= asked <= after


def test_a_watch_begins_where_the_same_words_say(capsys: pytest.CaptureFixture[str]) -> None:
    asked: list[Any] = []

    def watched(request: Any, context: Any) -> Any:
        asked.append(request.options.after)
        refuse(context, SnapshotTooOld("0.1.0", "0.2.0"))

    server = FakeServer()
    server.handlers["Watch.KeyValue"] = watched
    with server.running():
        assert run(["watch", "kv", "n", "--after", "2026-11-28", "-e", server.endpoint]) == 2
        assert asked[0].wall_ms == datetime(2026, 11, 28, tzinfo=UTC).timestamp() * 1_000
        assert run(["watch", "kv", "n", "--after", "noon", "-e", server.endpoint]) == 2
    assert "--after: must be a time" in capsys.readouterr().err
