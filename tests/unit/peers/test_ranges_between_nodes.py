"""A member's items in a range come over the wire as they were sent, and an invalid answer is refused by name."""

from __future__ import annotations

import pytest

from cortado.errors import Unavailable
from cortado.store.clock.timestamp import Timestamp
from cortado.store.peers.ranges import answered, range_response
from cortado.store.process.range_copies import Answer

ANSWER = Answer(7, Timestamp(0, 1_007, 2), bytes(range(20)), [(b"a", b""), (b"b", b"value")], [b"c"], b"d")


def test_an_answer_is_the_same_on_the_other_side() -> None:
    assert answered(range_response(ANSWER).SerializeToString(), "n2") == ANSWER


@pytest.mark.parametrize("size_bytes", [0, 19, 21])
def test_an_answer_whose_request_floor_is_no_id_is_refused(size_bytes: int) -> None:
    response = range_response(ANSWER)
    response.request_floor = bytes(size_bytes)
    with pytest.raises(Unavailable, match=f"node n2 sent a range .* a request floor of {size_bytes} bytes"):
        answered(response.SerializeToString(), "n2")
