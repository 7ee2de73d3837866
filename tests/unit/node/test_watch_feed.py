"""The feed of applied changes: bounded queues, and the newest changes in memory."""

from __future__ import annotations

from cortado.store.clock.timestamp import ZERO, Timestamp
from cortado.store.keys.keyspace import kv_range
from cortado.store.mvcc.versions import Item, encode_version
from cortado.store.process.limits import NodeLimits
from cortado.store.replica.feed.feed import ChangeFeed, WatchQueue
from cortado.store.replica.feed.order import size_of
from cortado.store.replica.feed.recent import Applied
from support.nodes import key

ALL = kv_range("test")


def at(number: int) -> Timestamp:
    return Timestamp(0, number, 0)


def put(name: str, number: int, value: bytes = b"v") -> Item:
    return encode_version(key(name), value, at(number))


def applied(*items: Item, last: int) -> Applied:
    return Applied(at(last), sorted(items), size_of(items))


def queue_of(feed: ChangeFeed, bounds: tuple[bytes, bytes] = ALL) -> WatchQueue:
    queue = WatchQueue(*bounds, lambda: None)
    feed.open(queue)
    return queue


def taken(feed: ChangeFeed, queue: WatchQueue) -> list[Item]:
    return feed.take(queue, events_max=100, bytes_max=1 << 20)


def test_a_queue_gets_what_is_applied_in_its_range_in_the_order_of_commits() -> None:
    feed = ChangeFeed(at(1), NodeLimits(), lambda _start, _end: None)
    queue = queue_of(feed, kv_range("test", b"b", b"d"))
    assert feed.attach(queue, at(1)) == at(1)
    feed.applied([applied(put("a", 2), put("b", 3), put("c", 2), put("d", 3), last=3)], at(3))
    assert taken(feed, queue) == [put("c", 2), put("b", 3)]
    assert (queue.events, queue.size_bytes, feed.queued_bytes) == (0, 0, 0)


def test_a_queue_that_overflows_is_detached_and_holds_nothing() -> None:
    for limits in (NodeLimits(watch_queue_events_max=2), NodeLimits(watch_queue_bytes_max=80)):
        feed = ChangeFeed(at(1), limits, lambda _start, _end: None)
        queue, other = queue_of(feed), queue_of(feed, kv_range("test", b"x", b"y"))
        feed.attach(queue, at(1))
        feed.attach(other, at(1))
        feed.applied([applied(put("a", 2), put("x", 2), last=2)], at(2))
        feed.applied([applied(put("a", 3), last=3)], at(3))
        assert (queue.is_attached, len(queue.runs), queue.events) == (False, 0, 0)
        assert other.is_attached
        assert feed.overflows == 1
        assert feed.queued_events == 1


def test_all_queues_together_are_bounded() -> None:
    feed = ChangeFeed(at(1), NodeLimits(watch_bytes_max=100), lambda _start, _end: None)
    queues = [queue_of(feed) for _ in range(8)]
    for queue in queues:
        feed.attach(queue, at(1))
    feed.applied([applied(put("a", 2), last=2)], at(2))
    assert feed.queued_bytes <= 100
    assert {queue.is_attached for queue in queues} == {True, False}


def test_what_is_kept_in_memory_serves_who_comes_back_in_time() -> None:
    feed = ChangeFeed(at(1), NodeLimits(watch_recent_entries_max=2), lambda _start, _end: None)
    for number in range(2, 6):
        feed.applied([applied(put("a", number), last=number)], at(number))
    late = queue_of(feed)
    # Entries up to 3 are forgotten: a watcher that is complete up to there misses nothing, another one needs the
    # engine.
    assert feed.attach(late, at(2)) == at(5)
    assert not late.runs
    early = queue_of(feed)
    assert feed.attach(early, at(3)) == at(3)
    assert taken(feed, early) == [put("a", 4), put("a", 5)]


def test_what_is_kept_in_memory_is_bounded_in_bytes() -> None:
    feed = ChangeFeed(at(1), NodeLimits(watch_recent_bytes_max=1_000), lambda _start, _end: None)
    for number in range(2, 50):
        feed.applied([applied(put("a", number, b"x" * 100), last=number)], at(number))
        assert feed.recent.size_bytes <= 1_000
    assert at(40) < feed.recent.floor < at(49)


def test_entries_without_changes_move_the_position_and_are_not_kept() -> None:
    feed = ChangeFeed(at(1), NodeLimits(), lambda _start, _end: None)
    feed.applied([applied(last=2)], at(2))
    assert (feed.position, feed.recent.floor) == (at(2), at(1))


def test_another_state_detaches_every_queue_and_forgets_what_is_kept() -> None:
    feed = ChangeFeed(at(1), NodeLimits(), lambda _start, _end: None)
    queue = queue_of(feed)
    feed.attach(queue, at(1))
    feed.applied([applied(put("a", 2), last=2)], at(2))
    feed.replaced(at(2))
    assert queue.is_attached
    feed.replaced(at(7))
    assert not queue.is_attached
    assert feed.attach(queue, at(2)) == at(7)


def test_more_than_a_queue_may_hold_is_not_taken_from_memory() -> None:
    feed = ChangeFeed(at(1), NodeLimits(watch_queue_events_max=2), lambda _start, _end: None)
    feed.applied([applied(*[put(name, 2) for name in "abc"], last=2)], at(2))
    queue = queue_of(feed)
    assert feed.attach(queue, at(1)) == at(2)
    assert not queue.runs


def test_taking_is_bounded_in_count_and_bytes_and_always_gives_something() -> None:
    feed = ChangeFeed(at(1), NodeLimits(), lambda _start, _end: None)
    queue = queue_of(feed)
    feed.attach(queue, at(1))
    items = [put(name, 2, b"x" * 100) for name in "abcdefgh"]
    feed.applied([applied(*items, last=2)], at(2))
    assert feed.take(queue, events_max=3, bytes_max=1 << 20) == items[:3]
    assert feed.take(queue, events_max=100, bytes_max=1) == items[3:4]
    assert feed.take(queue, events_max=100, bytes_max=200) == items[4:6]
    assert queue.events == 2
    assert taken(feed, queue) == items[6:]


def test_a_closed_queue_leaves_nothing_behind() -> None:
    feed = ChangeFeed(ZERO, NodeLimits(), lambda _start, _end: None)
    first, second = queue_of(feed), queue_of(feed)
    feed.attach(first, ZERO)
    feed.attach(second, ZERO)
    feed.applied([applied(put("a", 2), last=2)], at(2))
    feed.close(first)
    assert (feed.ranges, feed.queued_events) == (1, 1)
    feed.close(second)
    assert (feed.ranges, feed.queued_events, feed.queued_bytes) == (0, 0, 0)
