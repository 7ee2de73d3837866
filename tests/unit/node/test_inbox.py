"""A peer that floods a node loses messages of its own, and delays no other peer's."""

from __future__ import annotations

from itertools import count

from cortado.store.replica.inbox import LANE_BYTES_MAX, LANE_MESSAGES_MAX, Inbox

FOREVER_MS = 1e12


def test_messages_of_one_peer_wait_for_one_of_another_at_most() -> None:
    inbox, taken = Inbox(lambda: 0.0), list[tuple[str, bytes]]()
    inbox.put("flood", [b"%d" % number for number in range(1_000)])
    inbox.put("n2", [b"first", b"second"])
    assert inbox.step(lambda sender, body: taken.append((sender, body)), FOREVER_MS)
    assert taken[:5] == [("flood", b"0"), ("n2", b"first"), ("flood", b"1"), ("n2", b"second"), ("flood", b"2")]
    assert [body for sender, body in taken if sender == "flood"] == [b"%d" % number for number in range(1_000)]
    assert inbox.is_empty


def test_each_peer_has_room_of_its_own_in_count_and_in_bytes() -> None:
    inbox = Inbox(lambda: 0.0)
    for _ in range(10):
        inbox.put("empty", [b""] * LANE_MESSAGES_MAX)
        inbox.put("large", [bytes(LANE_BYTES_MAX // 2)] * 3)
    assert inbox.use == (LANE_MESSAGES_MAX + 2, LANE_BYTES_MAX)
    inbox.put("n2", [b"heard"])
    taken = list[bytes]()
    inbox.step(lambda sender, body: taken.append(body) if sender == "n2" else None, FOREVER_MS)
    assert taken == [b"heard"]


def test_one_message_is_taken_however_large_it_is_and_one_is_stepped_however_late_it_is() -> None:
    inbox, taken = Inbox(count().__next__), list[bytes]()
    inbox.put("n2", [bytes(LANE_BYTES_MAX + 1), b"no room"])
    inbox.put("n3", [b"a", b"b"])
    assert inbox.use == (3, LANE_BYTES_MAX + 3)
    while not inbox.step(lambda _, body: taken.append(body), -1.0):
        pass
    assert [len(each) for each in taken] == [LANE_BYTES_MAX + 1, 1, 1]
    assert inbox.is_empty
    assert inbox.use == (0, 0)
