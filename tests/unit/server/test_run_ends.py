"""Plain calls of one message that are answered together: their ends, their callers, and the counters."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cortado.errors import (
    OutcomeUnknown,
    PermissionDenied,
    QuotaExceeded,
    ResourceExhausted,
)
from cortado.proto.v1 import calls_pb2
from cortado.store.auth import changes
from cortado.store.auth.stored import Kind
from cortado.store.auth.tokens import Token, header_of, make_token
from cortado.store.host.host import Host
from cortado.store.observe.requests import Ended
from cortado.store.quotas.meters import Meters
from cortado.store.quotas.quota import Quota, Target
from cortado.store.server.audit import Audit
from cortado.store.server.authority import Authority
from cortado.store.server.calls_service import CallsLimits
from cortado.store.server.runs import writing
from support.nodes import NOW_MS, until
from support.plain_calls import delete, error, etag, get, given, put, request_id, value
from support.run_twins import LIMITS, METHOD, Served, serving, sizes_of_runs

TOKENS = {name: make_token(lambda count, n=n: bytes([n]) * count) for n, name in enumerate(("root", "app"), 1)}


@pytest.fixture
def sizes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return the sizes of the runs of puts that are submitted."""
    return sizes_of_runs(monkeypatch)


# --- ends ------------------------------------------------------------------------------------------------------


def test_an_unknown_outcome_names_each_request() -> None:
    async def scenario(served: Served) -> None:
        served.disk.hold()
        calls = [put(number) for number in range(1, 6)]
        served.send(calls)
        driver = served.node.meta.driver
        await until(lambda: driver.pipeline.has_uncommitted, "the entry is appended")
        served.send([given(put(2), id=12)])
        await until(lambda: served.service.use() == (1, 6), "a retry waits")
        driver._lose(driver.log.term)
        replies = await served.receive(6)
        errors = {number: error(reply) for number, reply in replies.items()}
        assert {type(each) for each in errors.values()} == {OutcomeUnknown}
        named = {number: each.request_id for number, each in errors.items() if isinstance(each, OutcomeUnknown)}
        assert named == {call.id: request_id(call).hex() for call in calls} | {12: request_id(calls[1]).hex()}
        assert not driver.pipeline.requests and served.node.process.writes.use().count == 0

    serving(scenario)


def test_what_is_in_line_when_leadership_is_lost_did_not_happen() -> None:
    async def scenario(served: Served) -> None:
        driver = served.node.meta.driver
        served.disk.hold()
        served.send([put(1), put(2)])
        await until(lambda: driver.pipeline.has_uncommitted, "the entry is appended")
        served.send([put(number) for number in range(3, 6)])
        await until(lambda: served.node.process.writes.use().count == 5, "another run is open, or in line")
        driver._lose(driver.log.term)
        replies = await served.receive(5)
        reasons = {number: error(reply).reason for number, reply in replies.items()}
        assert reasons == dict.fromkeys((1, 2), "OUTCOME_UNKNOWN") | dict.fromkeys((3, 4, 5), "NOT_LEADER")

    serving(scenario)


def test_a_full_disk_refuses_each_call_of_a_run_and_what_is_behind_it_is_evaluated_again() -> None:
    async def scenario(served: Served) -> None:
        served.disk.hold()
        served.disk.failures.append(ResourceExhausted("no room", 1_000, "map"))
        served.send([put(number) for number in range(1, 5)])
        await until(lambda: served.node.meta.driver.pipeline.has_uncommitted, "the entry is appended")
        served.send([put(number) for number in range(5, 8)])
        await until(lambda: served.node.process.writes.use().count == 7, "another run is evaluated")
        served.disk.release()
        replies = await served.receive(7)
        assert {number: error(replies[number]).reason for number in range(1, 5)} == dict.fromkeys(
            range(1, 5), "RESOURCE_EXHAUSTED"
        )
        assert all(etag(replies[number]) for number in range(5, 8))
        assert etag((await served.call([put(1), put(2)]))[1]), "it has not happened, and nothing of it is known"

    serving(scenario)


def test_a_call_that_is_given_up_keeps_its_place_and_gets_no_reply() -> None:
    async def scenario(served: Served) -> None:
        served.disk.hold()
        served.send([put(number, b"%d" % number) for number in range(1, 6)])
        await until(lambda: served.service.use() == (1, 5), "the run waits")
        served.send([], cancelled=[2, 4, 99])
        await until(lambda: served.service.use() == (1, 3), "two are given up")
        served.disk.release()
        assert sorted(await served.receive(3)) == [1, 3, 5]
        found = await served.call([get(100 + number, b"%d" % number) for number in range(1, 6)])
        assert [value(found[100 + number]) for number in range(1, 6)] == [b"v"] * 5

    serving(scenario)


def test_a_call_whose_time_is_over_ends_alone() -> None:
    async def scenario(served: Served) -> None:
        served.disk.hold()
        calls = [put(1), given(put(2), timeout_ms=1), put(3), given(put(4), timeout_ms=3_600_000)]
        served.send(calls)
        late = await served.receive(1)
        assert isinstance(error(late[2]), OutcomeUnknown)
        served.disk.release()
        assert sorted(await served.receive(3)) == [1, 3, 4]

    serving(scenario, calls_limits=CallsLimits(sweep_ms=1.0))


def test_a_run_that_nobody_waits_for_any_more_is_dropped_before_it_is_evaluated() -> None:
    async def scenario(served: Served) -> None:
        pipeline = served.node.meta.driver.pipeline
        served.disk.hold()
        served.send([put(1), put(2)])
        await until(lambda: pipeline.has_uncommitted, "the entry is appended")
        # The open batch takes two, so these stand in line.
        served.send([put(3, b"a"), put(4, b"a")])
        served.send([put(5, b"b"), put(6, b"b")])
        await until(lambda: pipeline.use[0] == 1, "a run stands in line")
        served.send([], cancelled=[5, 6])
        await until(lambda: served.service.use() == (1, 4), "all of it are given up")
        served.disk.release()
        assert sorted(await served.receive(4)) == [1, 2, 3, 4]
        assert value((await served.call([get(7, b"b")]))[7]) is None

    serving(scenario, limits=replace(LIMITS, batch_commands_max=2))


def test_a_stream_that_breaks_leaves_nothing_behind() -> None:
    async def scenario(served: Served) -> None:
        served.disk.hold()
        served.send([put(number) for number in range(1, 6)])
        await until(lambda: served.service.use() == (1, 5), "the run waits")
        await served.hang_up()
        assert served.service.use() == (0, 0)
        served.disk.release()
        await until(lambda: served.node.process.writes.use().count == 0, "the write goes on, and leaves its places")

    serving(scenario)


# --- rights, quotas, metrics -----------------------------------------------------------------------------------


def with_roles(directory: Path, meters: Meters | None = None) -> Callable[[Host], Authority]:
    def authority(node: Host) -> Authority:
        audit = Audit(directory, "node-1", lambda: NOW_MS)
        return Authority(node, audit, meters or Meters(node.process.monotonic_ms))

    return authority


async def grant(node: Host) -> None:
    """Allow the app to write in "n", and to read there."""
    new = {name: changes.NewToken(token.token_id, token.digest) for name, token in TOKENS.items()}
    await node.meta.write(changes.enable("root", Kind.TOKEN, new["root"]))
    await node.meta.write(changes.create("app", Kind.TOKEN, new["app"]))
    await node.meta.write(changes.grant("app", "writer", "namespace:n"))


def by(token: Token, calls: Sequence[calls_pb2.Call]) -> list[calls_pb2.Call]:
    return [given(call, authorization=header_of(token.text)) for call in calls]


def audited(directory: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (directory / "audit.log").read_text().splitlines()]


def test_each_call_of_a_run_that_is_denied_is_audited(tmp_path: Path, sizes: list[int]) -> None:
    async def scenario(served: Served) -> None:
        await grant(served.node)
        app = TOKENS["app"]
        allowed = await served.call(by(app, [put(1), put(2), get(3), get(4)]))
        assert not any(reply.status for reply in allowed.values()) and sizes == [2]
        denied = by(
            app, [put(11, namespace="m"), put(12, namespace="m"), get(13, namespace="m"), get(14, namespace="m")]
        )
        replies = await served.call(denied)
        assert {type(error(reply)) for reply in replies.values()} == {PermissionDenied}
        assert sizes == [2]
        await until(lambda: len(audited(tmp_path)) == 4, "four lines are written")
        lines = {line["request_id"] for line in audited(tmp_path) if line["method"] == "KeyValue/Put"}
        assert lines == {request_id(call).hex() for call in denied[:2]}

    serving(scenario, authority=with_roles(tmp_path))


def test_a_run_is_checked_once_more_where_it_is_appended(tmp_path: Path) -> None:
    async def scenario(served: Served) -> None:
        await grant(served.node)
        served.disk.hold()
        # In flight: the state from before it is committed decides, and still allows the calls behind it.
        revoking = asyncio.ensure_future(served.node.meta.write(changes.ungrant("app", "writer", "namespace:n")))
        await until(lambda: served.node.meta.driver.pipeline.has_uncommitted, "the entry is appended")
        calls = by(TOKENS["app"], [put(number) for number in range(1, 4)])
        served.send(calls)
        await until(lambda: served.node.process.writes.use().count == 4, "the run is in line")
        served.disk.release()
        replies = await served.receive(3)
        await revoking
        assert {type(error(reply)) for reply in replies.values()} == {PermissionDenied}
        await until(lambda: len(audited(tmp_path)) == 3, "three lines are written")
        assert {line["request_id"] for line in audited(tmp_path)} == {request_id(call).hex() for call in calls}
        assert served.requests.method(METHOD + "Put").codes == {"PERMISSION_DENIED": 3}

    serving(scenario, authority=with_roles(tmp_path))


def test_a_quota_counts_each_call_of_a_run_and_its_bytes(tmp_path: Path, sizes: list[int]) -> None:
    now_ms = [0.0]
    meters = Meters(lambda: now_ms[0])

    async def scenario(served: Served) -> None:
        namespace = Target("namespace:n")
        meters.use({namespace: Quota(namespace, calls_per_second=10)})
        first = await served.call([put(number) for number in range(1, 9)])
        assert not any(reply.status for reply in first.values()) and sizes == [8]
        # Two are left: of three calls by themselves one is refused.
        rest = await served.call([put(number) for number in range(11, 14)])
        assert [bool(rest[number].status) for number in (11, 12, 13)] == [False, False, True]
        assert isinstance(error(rest[13]), QuotaExceeded) and sizes == [8]
        meters.use({namespace: Quota(namespace, bytes_per_second=10_000)})
        meter = meters.by_target[namespace]
        calls = [put(number) for number in range(21, 25)]
        replies = await served.call(calls)
        counted = sum(len(call.request) for call in calls) + sum(len(reply.reply) for reply in replies.values())
        assert meter.bytes is not None and meter.bytes.full_ms == pytest.approx(counted / 10)

    serving(scenario, authority=with_roles(tmp_path, meters))


def test_a_quota_counts_calls_once_that_leave_their_run(tmp_path: Path) -> None:
    meters = Meters(lambda: 0.0)

    async def scenario(served: Served) -> None:
        await served.call([put(1, b"k", bytes(900_000))])
        namespace = Target("namespace:n")
        meters.use({namespace: Quota(namespace, calls_per_second=10)})
        # The first two are a mebibyte, so the others go the general way.
        found = await served.call([get(number) for number in range(11, 21)])
        assert not any(reply.status for reply in found.values())
        meters.use({namespace: Quota(namespace, bytes_per_second=100_000_000)})
        calls = [get(number) for number in range(21, 31)]
        replies = await served.call(calls)
        counted = sum(len(call.request) for call in calls) + sum(len(reply.reply) for reply in replies.values())
        meter = meters.by_target[namespace]
        assert meter.bytes is not None and meter.bytes.full_ms == pytest.approx(counted / 100_000)

    serving(scenario, authority=with_roles(tmp_path, meters))


def test_a_run_of_deletes_frees_room_as_each_of_them_does(tmp_path: Path, sizes: list[int]) -> None:
    async def scenario(served: Served) -> None:
        admit = served.node.process.engine.admit

        def admitted(size_bytes: int, *, behind_bytes: int, frees: bool) -> None:
            frees_room.append(frees)
            admit(size_bytes, behind_bytes=behind_bytes, frees=frees)

        served.node.process.engine.admit = admitted  # type: ignore[method-assign]
        await served.call([put(1), put(2), delete(3), delete(4)])
        assert sizes == [2, 2] and frees_room == [False, True]

    frees_room: list[bool] = []
    serving(scenario, authority=with_roles(tmp_path))


def test_what_is_full_takes_no_run(tmp_path: Path, sizes: list[int]) -> None:
    meters = Meters(lambda: 0.0)

    async def scenario(served: Served) -> None:
        namespace = Target("namespace:n")
        meters.use({namespace: Quota(namespace, stored_bytes=100)})
        meters.measured(meters.by_target[namespace], 100)
        calls = [put(1), put(2), put(3, namespace="m"), put(4, namespace="m")]
        replies = await served.call(calls)
        assert [type(error(replies[number])) for number in (1, 2)] == [QuotaExceeded, QuotaExceeded]
        assert etag(replies[3]) and etag(replies[4]) and sizes == [2]

    serving(scenario, authority=with_roles(tmp_path, meters))


class Seen:
    """An observer."""

    def __init__(self) -> None:
        self.all: list[Ended] = []

    def ended(self, ended: Ended) -> None:
        self.all.append(ended)


def test_slow_calls_of_a_run_are_shown_one_by_one() -> None:
    async def scenario(served: Served) -> None:
        served.requests.slow, served.requests.slow_s = seen, 0.0
        calls = [put(1), put(2, b"other"), get(3), get(4, b"other")]
        await served.call(calls)
        assert served.requests.slow_calls == 4
        puts = [each for each in seen.all if each.call.method == METHOD + "Put"]
        assert [each.request.SerializeToString() for each in puts if each.request] == [c.request for c in calls[:2]]
        assert [request_id(call) for call in calls[:2]] == shown
        assert all(each.reply_bytes and each.code == "OK" for each in seen.all)

    shown: list[bytes] = []
    seen = Seen()
    look = seen.ended

    def ended(each: Ended) -> None:
        if each.call.write is not None:
            shown.append(each.call.write.request_id)
            assert each.call.write.entry is not None and each.call.write.entry.committed_ms
        look(each)

    seen.ended = ended  # type: ignore[method-assign]
    serving(scenario)


def test_with_a_tracer_there_are_no_runs(sizes: list[int]) -> None:
    async def scenario(served: Served) -> None:
        served.requests.tracer = seen = Seen()
        await served.call([given(put(number), traceparent=f"of {number}") for number in range(1, 4)])
        assert sizes == []
        assert sorted(each.call.traceparent for each in seen.all) == ["of 1", "of 2", "of 3"]

    serving(scenario)


def test_a_defect_in_a_run_is_internal_for_each_call(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(served: Served) -> None:
        monkeypatch.setattr(writing, "with_headers", lambda *_: 1 // 0)
        replies = await served.call([put(1), put(2)])
        assert [error(replies[number]).code for number in (1, 2)] == ["INTERNAL"] * 2
        assert served.requests.method(METHOD + "Put").codes == {"INTERNAL": 2}

    serving(scenario)
