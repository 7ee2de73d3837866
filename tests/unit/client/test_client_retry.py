"""The result of each failure, as a pure function of the failure and the time."""

from __future__ import annotations

import pytest

from cortado.errors import (
    Cancelled,
    ConditionFailed,
    CortadoError,
    DeadlineExceeded,
    Internal,
    InvalidArgument,
    KeyLocked,
    NotLeader,
    OutcomeUnknown,
    QuotaExceeded,
    ResourceExhausted,
    Unavailable,
)
from cortado.store.client.retry import (
    BACKOFF_FIRST_S,
    BACKOFF_MAX_S,
    CONNECT_S,
    MOVES_MAX,
    SEARCH_BACKOFF_MAX_S,
    Attempts,
    Failure,
)

WRITE_ID = b"r" * 20


def attempts(request_id: bytes = b"", *, timeout_s: float = 10.0) -> Attempts:
    return Attempts(request_id, 0.0, timeout_s, random=lambda: 1.0)


def answered(error: CortadoError) -> Failure:
    return Failure(error, answered=True, sent=True)


def broken() -> Failure:
    return Failure(Unavailable("Socket closed"), answered=False, sent=True)


def never_sent() -> Failure:
    return Failure(Unavailable("failed to connect to all addresses"), answered=False, sent=False)


def late() -> Failure:
    return Failure(DeadlineExceeded(), answered=False, sent=True)


def test_no_attempt_is_begun_that_would_be_late() -> None:
    call = attempts(WRITE_ID, timeout_s=1.0)
    refused = answered(NotLeader())
    call.delay_after(refused, 0.5)
    call.check_time_left(refused, 0.94)
    with pytest.raises(NotLeader):
        call.check_time_left(refused, 0.96)


@pytest.mark.parametrize("request_id", [b"", WRITE_ID])
@pytest.mark.parametrize("error", [InvalidArgument("field", "is wrong"), ConditionFailed("k", "absent", "present")])
def test_a_refusal_of_the_server_ends_the_call(error: CortadoError, request_id: bytes) -> None:
    with pytest.raises(type(error)) as raised:
        attempts(request_id).delay_after(answered(error), 0.0)
    assert raised.value is error


@pytest.mark.parametrize("error", [Unavailable(), NotLeader(), ResourceExhausted()])
@pytest.mark.parametrize("request_id", [b"", WRITE_ID])
def test_what_may_work_later_is_tried_again(error: CortadoError, request_id: bytes) -> None:
    assert attempts(request_id).delay_after(answered(error), 0.0) == BACKOFF_FIRST_S


def test_waits_grow_to_a_bound_and_are_shortened_at_random() -> None:
    call = attempts(timeout_s=1_000)
    waits = [call.delay_after(broken(), 0.0) for _ in range(10)]
    assert waits == sorted(waits)
    assert waits[-1] == BACKOFF_MAX_S
    assert Attempts(b"", 0.0, 10.0, random=lambda: 0.5).delay_after(broken(), 0.0) == BACKOFF_FIRST_S / 2


def test_the_servers_delay_is_waited_for() -> None:
    assert attempts().delay_after(answered(ResourceExhausted(retry_delay_ms=700)), 0.0) == 0.7


def test_a_delay_beyond_the_deadline_ends_the_call_now() -> None:
    with pytest.raises(ResourceExhausted):
        attempts().delay_after(answered(ResourceExhausted(retry_delay_ms=700)), 9.5)


@pytest.mark.parametrize("end", [late(), broken(), answered(Unavailable()), never_sent()])
def test_a_write_that_may_have_been_sent_ends_as_unknown_never_as_a_failure(end: Failure) -> None:
    call = attempts(WRITE_ID)
    call.delay_after(broken(), 0.0)
    with pytest.raises(OutcomeUnknown) as raised:
        call.delay_after(end, 10.0)
    assert raised.value.request_id == WRITE_ID.hex()


def test_a_write_whose_deadline_passes_is_unknown() -> None:
    with pytest.raises(OutcomeUnknown) as raised:
        attempts(WRITE_ID).delay_after(late(), 10.0)
    assert "10000 ms" in str(raised.value)


@pytest.mark.parametrize("error", [Internal("UNKNOWN: oops"), Cancelled()])
def test_a_write_that_ends_without_an_answer_of_the_server_is_unknown(error: CortadoError) -> None:
    with pytest.raises(OutcomeUnknown):
        attempts(WRITE_ID).delay_after(Failure(error, answered=False, sent=True), 0.0)


def test_a_write_that_never_left_is_a_failure_that_changed_nothing() -> None:
    with pytest.raises(Unavailable):
        attempts(WRITE_ID).delay_after(never_sent(), 10.0)


def test_a_write_that_was_refused_in_every_attempt_changed_nothing() -> None:
    call = attempts(WRITE_ID)
    call.delay_after(answered(Unavailable()), 0.0)
    with pytest.raises(Unavailable):
        call.delay_after(answered(Unavailable()), 10.0)


def test_a_later_refusal_decides_what_a_server_left_open() -> None:
    # Had the first attempt happened, its result would have come back; and it is not under way any more.
    call = attempts(WRITE_ID)
    call.delay_after(answered(OutcomeUnknown("leadership was lost")), 0.0)
    with pytest.raises(ConditionFailed):
        call.delay_after(answered(ConditionFailed("k", "absent", "present")), 0.1)


def test_a_later_refusal_says_nothing_of_an_attempt_that_may_yet_arrive() -> None:
    call = attempts(WRITE_ID)
    call.delay_after(broken(), 0.0)
    with pytest.raises(OutcomeUnknown, match=r"may still arrive.*found present"):
        call.delay_after(answered(ConditionFailed("k", "absent", "present")), 0.1)


def test_an_unknown_outcome_that_the_server_reports_is_asked_for_again_and_carries_the_request_id() -> None:
    call = attempts(WRITE_ID)
    assert call.delay_after(answered(OutcomeUnknown("the node stopped")), 0.0) > 0
    with pytest.raises(OutcomeUnknown) as raised:
        call.delay_after(answered(Unavailable()), 10.0)
    assert raised.value.request_id == WRITE_ID.hex()
    with pytest.raises(OutcomeUnknown, match="too old") as raised:
        attempts(WRITE_ID).delay_after(answered(OutcomeUnknown("too old")), 10.0)
    assert raised.value.request_id == WRITE_ID.hex()


def test_a_read_whose_deadline_passes_says_how_long_it_waited() -> None:
    with pytest.raises(DeadlineExceeded) as raised:
        attempts(timeout_s=2.5).delay_after(late(), 2.5)
    assert raised.value.timeout_ms == 2500


def test_an_endpoint_that_was_never_reached_is_given_up_early() -> None:
    call = attempts(timeout_s=60)
    call.delay_after(never_sent(), 1.0, was_reached=False)
    with pytest.raises(Unavailable):
        call.delay_after(never_sent(), CONNECT_S, was_reached=False)


def test_an_endpoint_that_was_reached_is_tried_until_the_deadline() -> None:
    assert attempts(timeout_s=60).delay_after(never_sent(), 59.0) > 0


@pytest.mark.parametrize("first", [broken(), answered(NotLeader())])
def test_an_endpoint_that_was_reached_by_the_first_attempt_is_tried_until_the_deadline(first: Failure) -> None:
    call = attempts(timeout_s=60)
    call.delay_after(first, 1.0, was_reached=False)
    assert call.delay_after(never_sent(), 59.0, was_reached=False) > 0


def test_an_endpoint_that_another_call_reached_meanwhile_is_tried_until_the_deadline() -> None:
    call = attempts(timeout_s=60)
    call.delay_after(never_sent(), 1.0, was_reached=False)
    assert call.delay_after(never_sent(), 59.0, was_reached=True) > 0


# --- over several nodes ------------------------------------------------------------------------------------------


def test_a_leader_that_is_known_is_gone_to_without_a_pause_a_bounded_number_of_times() -> None:
    call = attempts()
    delays = [call.delay_after(answered(NotLeader()), 0.0, f"n:{n}", is_known=True) for n in range(MOVES_MAX + 1)]
    assert delays[:MOVES_MAX] == [0.0] * MOVES_MAX
    assert delays[MOVES_MAX] > 0


def test_where_another_node_may_come_to_lead_waits_stay_short() -> None:
    call = attempts(timeout_s=1_000)
    waits = [call.delay_after(broken(), 0.0, has_others=True) for _ in range(10)]
    assert max(waits) == SEARCH_BACKOFF_MAX_S
    assert call.delay_after(answered(Unavailable(retry_delay_ms=1_000)), 0.0, has_others=True) == SEARCH_BACKOFF_MAX_S
    # An overloaded leader is the leader still: no other node helps.
    assert call.delay_after(answered(ResourceExhausted(retry_delay_ms=700)), 0.0, has_others=True) == BACKOFF_MAX_S
    # A lock of a large transaction holds at every node.
    assert call.delay_after(answered(KeyLocked(retry_delay_ms=200)), 0.0, has_others=True) == BACKOFF_MAX_S


def test_the_last_error_names_every_node_and_why_it_failed() -> None:
    call = attempts()
    call.delay_after(never_sent(), 0.0, "a:1")
    shared = broken()
    with pytest.raises(Unavailable) as raised:
        call.delay_after(shared, 10.0, "b:2")
    one, two = str(raised.value).split("; ")
    assert one == "a:1: cannot reach it: failed to connect to all addresses"
    assert two == "b:2: cannot reach it: Socket closed"
    # Threads that lost the same stream hold the same error: it stays as it was.
    assert raised.value is not shared.error
    assert str(shared.error) == "Socket closed"


def test_one_node_alone_is_named_once() -> None:
    with pytest.raises(Unavailable) as raised:
        attempts().delay_after(never_sent(), 10.0, "a:1")
    assert str(raised.value) == "cannot reach a:1: failed to connect to all addresses"


def test_a_deadline_names_the_nodes_that_were_tried_before() -> None:
    call = attempts(timeout_s=2)
    call.delay_after(answered(NotLeader("this node does not lead")), 0.0, "a:1")
    with pytest.raises(DeadlineExceeded, match="2000 ms; a:1: this node does not lead"):
        call.delay_after(late(), 2.0, "b:2")


def test_a_quota_is_waited_for_within_the_time_and_else_is_the_answer() -> None:
    used_up = QuotaExceeded("used up", 700, "calls_per_second", 5, "database:shop")
    assert attempts(WRITE_ID).delay_after(answered(used_up), 0.0, has_others=True) >= 0.7
    with pytest.raises(QuotaExceeded) as refused:
        attempts(WRITE_ID).delay_after(answered(used_up), 9.5)
    assert (refused.value.quota, refused.value.retry_delay_ms) == ("database:shop", 700)


def test_a_long_wait_for_a_quota_is_slept_in_pieces_since_it_may_be_lifted_meanwhile() -> None:
    used_up = QuotaExceeded("used up", 8_000, "calls_per_second", 5, "database:shop")
    for chance, slept_s in ((0.0, 0.5), (0.5, 0.75), (1.0, 1.0)):
        call = Attempts(b"", 0.0, 10.0, random=lambda chance=chance: chance)
        assert call.delay_after(answered(used_up), 0.0) == slept_s
        assert call.delay_after(answered(used_up), slept_s) == slept_s
        with pytest.raises(QuotaExceeded):
            call.delay_after(answered(used_up), 2.0)


def test_who_was_often_refused_for_a_quota_waits_no_longer_than_who_was_not() -> None:
    used_up = QuotaExceeded("used up", 20, "calls_per_second", 50, "database:shop")
    for chance, slept_s in ((0.0, 0.02), (1.0, 0.51)):
        call = Attempts(b"", 0.0, 1_000.0, random=lambda chance=chance: chance)
        assert [call.delay_after(answered(used_up), 1.0 * n) for n in range(9)] == [pytest.approx(slept_s)] * 9
    # A quota of one call a second holds no more than one: a caller that comes later than told loses some of it.
    alone = QuotaExceeded("used up", 900, "calls_per_second", 1, "database:shop")
    assert Attempts(b"", 0.0, 10.0, random=lambda: 1.0).delay_after(answered(alone), 0.0) == 0.9
    # Nor does it wait its own time away.
    short = Attempts(b"", 0.0, 0.22, random=lambda: 1.0)
    assert short.delay_after(answered(used_up), 0.0) == pytest.approx(0.12)


def test_who_calls_for_others_waits_for_no_quota() -> None:
    call = attempts(WRITE_ID)
    call.waits_for_quotas = False
    assert call.delay_after(answered(ResourceExhausted(retry_delay_ms=10)), 0.0) > 0
    with pytest.raises(QuotaExceeded):
        call.delay_after(answered(QuotaExceeded(retry_delay_ms=10)), 0.1)


def test_a_write_that_may_have_happened_and_then_meets_a_quota_is_unknown() -> None:
    call = attempts(WRITE_ID)
    call.delay_after(broken(), 0.0)
    with pytest.raises(OutcomeUnknown):
        call.delay_after(answered(QuotaExceeded(retry_delay_ms=20_000)), 0.1)
