"""Every reason for which a node can't serve, and that a look at the disk is not taken ten times a second."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from cortado.store.host.host import Host
from cortado.store.observe.readiness import Readiness, Reason
from cortado.store.replica.replica import Role

NOW_MS, LAG_MS = 50_000.0, 1_000


def node(role: Role = Role.FOLLOWER, **more: Any) -> Host:
    """Return a healthy node, but for ``more``."""
    status = {"is_stopping": False, "unreadable": "", "refused_for": "", "leader": "n1", "role": role}
    driver = {"failure": None}
    leadership = {"is_ready": True}
    log = {"fresh_as_of_ms": NOW_MS - 200}
    for part in (status, driver, leadership, log):
        part.update({name: value for name, value in more.items() if name in part})
    looks: list[int] = []

    def look() -> SimpleNamespace:
        looks.append(1)
        return SimpleNamespace(**status)

    driving = SimpleNamespace(leadership=SimpleNamespace(**leadership), **driver)
    replica = SimpleNamespace(driver=driving, log=SimpleNamespace(**log), ready=more.get("ready", True))
    return cast(Host, SimpleNamespace(status=look, meta=replica, looks=looks))


@pytest.fixture(autouse=True)
def node_status_of_these(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cortado.store.observe.readiness.node_status", lambda of: of.status())


def readiness(of: Host, now_ms: list[float] | None = None) -> Readiness:
    times = now_ms or [NOW_MS]
    made = Readiness(lambda: times[0], lag_ms_max=LAG_MS)
    made.attach(of)
    return made


@pytest.mark.parametrize(
    ("of", "reasons"),
    [
        (node(), []),
        (node(Role.LEADER), []),
        (node(Role.LEARNER), []),
        (node(Role.LEADER, fresh_as_of_ms=None), []),
        (node(Role.LEADER, is_ready=False), [Reason.LEADER_NOT_READY]),
        (node(Role.CANDIDATE, leader=""), [Reason.NO_LEADER]),
        (node(fresh_as_of_ms=None), [Reason.BEHIND]),
        (node(fresh_as_of_ms=NOW_MS - LAG_MS), []),
        (node(fresh_as_of_ms=NOW_MS - LAG_MS - 1), [Reason.BEHIND]),
        (node(refused_for="the disk is full"), [Reason.NO_ROOM]),
        (node(unreadable="a snapshot is being installed"), [Reason.INSTALLING_SNAPSHOT]),
        (node(is_stopping=True), [Reason.STOPPING]),
        (node(failure=OSError(5, "input/output error"), leader=""), [Reason.FAILED]),
        (
            node(Role.CANDIDATE, leader="", refused_for="full", unreadable="x"),
            [Reason.INSTALLING_SNAPSHOT, Reason.NO_ROOM, Reason.NO_LEADER],
        ),
    ],
)
def test_every_reason_is_named(of: Host, reasons: list[Reason]) -> None:
    found = readiness(of).problems()
    assert [each.reason for each in found] == reasons
    assert all(each.message for each in found)


def test_before_it_has_started_it_is_not_ready() -> None:
    starting = Readiness(lambda: NOW_MS)
    assert [each.reason for each in starting.problems()] == [Reason.STARTING]
    assert not starting.is_ready()


def test_one_that_cannot_start_for_want_of_room_says_so() -> None:
    starting, host = Readiness(lambda: NOW_MS), SimpleNamespace(refused_for="")
    starting.begin(cast(Host, host), lambda: True)
    assert [each.reason for each in starting.problems()] == [Reason.STARTING]
    host.refused_for = "the disk is full"
    reasons = [each.reason for each in starting.problems()]
    assert reasons == [Reason.STARTING, Reason.NO_ROOM]
    assert "the disk is full" in starting.problems()[1].message
    assert not starting.is_ready()


def test_who_asks_often_is_content_with_a_look_of_just_now() -> None:
    now_ms, of = [NOW_MS], node()
    asked = readiness(of, now_ms)
    for _ in range(10):
        assert asked.is_ready()
    looks = cast(Any, of).looks
    assert len(looks) == 1
    now_ms[0] += 501
    assert asked.is_ready()
    assert len(looks) == 2


def test_what_is_cheap_to_see_is_seen_at_once_and_looked_at_anew() -> None:
    of: Any = node()
    asked = readiness(of)
    assert asked.is_ready()
    of.meta.ready = False
    assert not asked.is_ready()
    of.meta.ready = True
    assert asked.is_ready()
    assert len(of.looks) == 2
