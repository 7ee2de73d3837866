"""Every state that ever was, read again at its timestamp: after crashes, in another epoch, with clocks gone wrong."""

from __future__ import annotations

import random
from datetime import UTC, datetime
from pathlib import Path

import pytest

from cortado.errors import TimestampInFuture
from cortado.store.client import Client
from cortado.store.client.kv import Delete, Put
from cortado.store.clock.timestamp import LOGICAL_MAX, Timestamp
from support.server_process import ServerProcess

pytestmark = pytest.mark.process

MS_2071 = int(datetime(2071, 1, 1, tzinfo=UTC).timestamp() * 1000)
KEYS = [b"k%d" % number for number in range(6)]

State = dict[bytes, bytes]


class History:
    """Random puts and deletes, and the state after each commit."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self.states: list[tuple[Timestamp, State]] = []

    @property
    def last(self) -> State:
        return self.states[-1][1] if self.states else {}

    def write(self, client: Client, commits: int) -> None:
        """Commit at random; timestamps rise under any change of the clocks."""
        for number in range(commits):
            state = dict(self.last)
            operations: list[Put | Delete] = []
            for key in self._random.sample(KEYS, self._random.randint(1, 3)):
                if self._random.random() < 0.3:
                    operations.append(Delete(key))
                    state.pop(key, None)
                else:
                    value = b"%d-%d" % (len(self.states), number)
                    operations.append(Put(key, value))
                    state[key] = value
            ts = Timestamp.parse(client.kv("t").batch(operations))
            assert not self.states or ts > self.states[-1][0]
            self.states.append((ts, state))

    def check(self, client: Client) -> None:
        """Read every state at its timestamp and right before the next one; the newest without a timestamp."""
        kv = client.kv("t")
        for place, (ts, state) in enumerate(self.states):
            moments = [ts]
            if place + 1 < len(self.states):
                moments.append(before(self.states[place + 1][0]))
            for at in moments:
                assert {pair.key: pair.value for pair in kv.scan(at=at)} == state
            backwards = [(pair.key, pair.value) for pair in kv.scan(at=ts, reverse=True)]
            assert backwards == sorted(state.items(), reverse=True)
            key = KEYS[place % len(KEYS)]
            pair = kv.get(key, at=ts)
            assert (None if pair is None else pair.value) == state.get(key)
        assert {pair.key: pair.value for pair in kv.scan(at=before(self.states[0][0]))} == {}
        assert {pair.key: pair.value for pair in kv.scan()} == self.last


def before(ts: Timestamp) -> Timestamp:
    if ts.logical:
        return Timestamp(ts.epoch, ts.wall_ms, ts.logical - 1)
    return Timestamp(ts.epoch, ts.wall_ms - 1, LOGICAL_MAX)


def check_future(client: Client) -> None:
    now = client.clock().now
    for at in (
        Timestamp(now.epoch, now.wall_ms + 60_000, 0),
        Timestamp(now.epoch + 1, 0, 0),
        Timestamp(now.epoch + 1, now.wall_ms, 0),
    ):
        with pytest.raises(TimestampInFuture):
            client.kv("t").get(KEYS[0], at=at)
        with pytest.raises(TimestampInFuture):
            list(client.kv("t").scan(at=at))


def test_every_state_is_read_again_over_crashes_and_a_visit_to_2071(tmp_path: Path) -> None:
    history = History(seed=41)

    def life(*options: str, commits: int, bump: bool = False) -> None:
        server = ServerProcess(tmp_path / "data", *options)
        try:
            with Client(server.start().endpoint, timeout_s=10) as client:
                if history.states:
                    history.check(client)
                check_future(client)
                history.write(client, commits)
                if bump:
                    epoch = client.clock().now.epoch
                    assert client.admin.bump_epoch(epoch) == epoch + 1
                    check_future(client)
                    history.write(client, commits)
                history.check(client)
        finally:
            server.kill()

    life(commits=20)
    ahead_ms = MS_2071 - history.states[0][0].wall_ms
    life("--clock-offset-ms", str(ahead_ms), commits=8)
    assert history.states[-1][0].as_datetime().year == 2071
    life(commits=6, bump=True)
    last, _ = history.states[-1]
    assert (last.epoch, last.as_datetime().year < 2071) == (1, True)
    # A clock that is an hour behind the last write.
    life("--clock-offset-ms", str(-3_600_000), commits=6)
    life(commits=5)


def test_what_a_read_ahead_saw_holds_over_a_kill_and_a_clock_that_went_back(tmp_path: Path) -> None:
    server = ServerProcess(tmp_path / "data")
    try:
        with Client(server.start().endpoint, timeout_s=10) as client:
            kv = client.kv("t")
            kv.put(b"k", b"seen")
            ahead = Timestamp(0, client.clock().now.wall_ms + 200, 7)
            assert [pair.value for pair in kv.scan(at=ahead)] == [b"seen"]
            assert Timestamp.parse(kv.put(b"k", b"later")) > ahead
            pair = kv.get(b"k", at=ahead)
            assert pair is not None
            assert pair.value == b"seen"
            now = client.clock().now
            further = Timestamp(0, now.wall_ms, now.logical + 1_000)
            assert kv.get(b"other", at=further) is None
        server.kill()
        server = ServerProcess(tmp_path / "data", "--clock-offset-ms", "-60000")
        with Client(server.start().endpoint, timeout_s=10) as client:
            kv = client.kv("t")
            assert Timestamp.parse(kv.put(b"other", b"later")) > further
            assert kv.get(b"other", at=further) is None
            assert [pair.value for pair in kv.scan(at=ahead)] == [b"seen"]
    finally:
        server.kill()


def test_a_time_that_was_given_out_is_below_every_later_write_even_after_a_kill(tmp_path: Path) -> None:
    server = ServerProcess(tmp_path / "data")
    try:
        with Client(server.start().endpoint, timeout_s=10) as client:
            client.kv("t").put(b"k", b"before")
            given = client.now()
        server.kill()
        server = ServerProcess(tmp_path / "data", "--clock-offset-ms", "-60000")
        with Client(server.start().endpoint, timeout_s=10) as client:
            assert Timestamp.parse(client.kv("t").put(b"k", b"after")) > given
            pair = client.kv("t").get(b"k", at=given)
            assert pair is not None
            assert pair.value == b"before"
    finally:
        server.kill()
