"""A checker that cannot fail proves nothing: each is shown a history, or a cluster, that it must refuse."""

from __future__ import annotations

from dataclasses import replace
from math import inf

import pytest

from cortado.store.clock.timestamp import ZERO, Timestamp
from support.linearizability import Call, is_linearizable, unexplained
from support.list_append import Transaction, problems
from support.simulation.checkers import (
    Truth,
    check_linearizable,
    check_lists,
    check_reads,
    check_writes,
    value_at,
)
from support.simulation.history import History, ReadCall, WriteCall
from support.simulation.transactors import Begun, Transactor, check_transactions
from support.simulation.workload import appended

# --- linearizability -------------------------------------------------------------------------------------------

EXPLAINED = {
    "an append in each order": [
        Call("append", 0, 9, b"1 ", b"2 1 "),
        Call("append", 0, 9, b"2 ", b"2 "),
        Call("get", 10, 11, b"2 1 "),
    ],
    "an unknown put that took effect late": [
        Call("put", 0, inf, b"1"),
        Call("put", 1, 2, b"2"),
        Call("get", 3, 4, b"2"),
        Call("get", 5, 6, b"1"),
    ],
    "an unknown put that never did": [Call("put", 0, inf, b"1"), Call("get", 5, 6, None)],
    "a compare-and-set refused beside the put that it missed": [
        Call("put", 0, 5, b"1"),
        Call("cas", 1, 4, b"2", b"1", held=False),
        Call("get", 6, 7, b"1"),
    ],
    "gets on both sides of a put that they overlap": [
        Call("put", 0, 9, b"1"),
        Call("get", 1, 2, None),
        Call("get", 3, 4, b"1"),
    ],
    "many calls at once": [
        *(Call("put", 0, 100, b"%d" % number) for number in range(12)),
        *(Call("get", 101 + number, 102 + number, b"7") for number in range(12)),
    ],
    "many unknown calls": [
        *(Call("put", number, inf, b"%d" % number) for number in range(14)),
        Call("get", 20, 21, b"3"),
        Call("get", 22, 23, b"9"),
        Call("get", 24, 25, b"1"),
    ],
}

UNEXPLAINED = {
    "lost": [Call("put", 0, 1, b"1"), Call("get", 2, 3, None)],
    "flickering": [Call("put", 0, 9, b"1"), Call("get", 1, 2, b"1"), Call("get", 3, 4, None)],
    "old": [Call("put", 0, 1, b"1"), Call("put", 2, 3, b"2"), Call("get", 4, 5, b"1")],
    "two winners": [
        Call("put", 0, 1, b"1"),
        Call("cas", 2, 3, b"2", b"1"),
        Call("cas", 2, 3, b"3", b"1"),
    ],
    "refused for nothing": [Call("put", 0, 1, b"1"), Call("cas", 2, 3, b"2", b"1", held=False)],
    "before it was written": [Call("put", 5, inf, b"1"), Call("get", 1, 2, b"1")],
    "an unknown put that happened twice": [
        Call("put", 0, inf, b"1"),
        Call("get", 1, 2, b"1"),
        Call("put", 3, 4, b"2"),
        Call("get", 5, 6, b"1"),
    ],
    "an append that lost another": [
        Call("append", 0, 1, b"1 ", b"1 "),
        Call("append", 2, 3, b"2 ", b"2 "),
    ],
    "two readers who disagree": [
        Call("put", 0, 9, b"1"),
        Call("put", 0, 9, b"2"),
        Call("get", 10, 11, b"1"),
        Call("get", 12, 13, b"2"),
    ],
}


@pytest.mark.parametrize("calls", EXPLAINED.values(), ids=EXPLAINED)
def test_a_history_with_an_explanation_is_taken(calls: list[Call]) -> None:
    assert is_linearizable(calls)
    assert is_linearizable(calls[::-1])


@pytest.mark.parametrize("calls", UNEXPLAINED.values(), ids=UNEXPLAINED)
def test_a_history_without_an_explanation_is_refused(calls: list[Call]) -> None:
    assert not is_linearizable(calls)


def test_keys_are_judged_one_by_one() -> None:
    lost = UNEXPLAINED["lost"]
    history = [(b"a", call) for call in lost] + [(b"b", Call("get", 0, 1, None))]
    assert [key for key, _ in unexplained(history)] == [b"a"]


# --- answers to clients, against the state in the end ----------------------------------------------------------


def at(number: int) -> Timestamp:
    return Timestamp(0, 1_000 + number, 0)


TRUTH: Truth = {
    b"r0": [(at(1), b"v1"), (at(3), None), (at(5), b"v5")],
    b"l0": [(at(2), b"a "), (at(4), b"a b ")],
    b"b0": [(at(6), b"t6")],
    b"b1": [(at(6), b"t6")],
}


def write(
    kind: str, keys: tuple[bytes, ...], value: bytes | None, outcome: str, ts: Timestamp = ZERO, **more: object
) -> WriteCall:
    call = WriteCall("c0", kind, keys, value, None, 0, ZERO)  # type: ignore[arg-type]
    for name, each in {"outcome": outcome, "ts": ts, "reply": value or b"deleted", "end_ms": 1.0, **more}.items():
        setattr(call, name, each)
    return call


def read(key: bytes, value: bytes | None, ts: Timestamp) -> ReadCall:
    return ReadCall("c0", "at", "n1", ts, {key: value}, 0, 1, ZERO)


def test_the_value_at_a_timestamp_is_the_newest_one_not_above_it() -> None:
    assert [value_at(TRUTH, b"r0", at(number)) for number in range(7)] == [
        None, b"v1", b"v1", None, None, b"v5", b"v5",
    ]  # fmt: skip
    assert value_at(TRUTH, b"nothing", at(9)) is None


def test_answers_that_are_true_for_ever_are_taken() -> None:
    reads = [read(b"r0", value_at(TRUTH, b"r0", at(number)), at(number)) for number in range(8)]
    writes = [
        write("put", (b"r0",), b"v1", "acknowledged", at(1)),
        write("delete", (b"r0",), None, "acknowledged", at(3)),
        write("put", (b"r0",), b"v5", "unknown"),
        write("append", (b"l0",), b"a", "acknowledged", at(2), reply=b"a "),
        write("append", (b"l0",), b"b", "acknowledged", at(4), reply=b"a b "),
        write("batch", (b"b0", b"b1"), b"t6", "acknowledged", at(6)),
        write("put", (b"r0",), b"never", "unknown"),
        write("put", (b"r0",), b"not now", "did not happen"),
    ]
    assert check_reads(TRUTH, reads) == []
    assert check_writes(TRUTH, writes) == []
    assert check_lists(TRUTH, [b"l0"], appended) == []


@pytest.mark.parametrize(
    "call",
    [read(b"r0", None, at(1)), read(b"r0", b"v1", at(3)), read(b"r0", b"v1", at(5)), read(b"r0", b"v9", at(9))],
    ids=["a commit came below it", "it missed a delete", "it was old", "what it saw was lost"],
)
def test_an_answer_that_did_not_stay_true_is_found(call: ReadCall) -> None:
    assert len(check_reads(TRUTH, [call])) == 1


BAD_WRITES = {
    "lost": ([write("put", (b"r0",), b"v2", "acknowledged", at(2))], "lost"),
    "another value": ([write("put", (b"r0",), b"v9", "acknowledged", at(5))], "changed"),
    "a refused one happened": ([write("put", (b"r0",), b"v5", "refused")], "refused, and yet"),
    "it did not happen and did": ([write("put", (b"r0",), b"v5", "did not happen")], "did not happen, and yet"),
    "a refused append": ([write("append", (b"l0",), b"b", "did not happen")], "did not happen, and yet"),
    "two at one timestamp": (
        [
            write("put", (b"r0",), b"v5", "acknowledged", at(5)),
            write("put", (b"r0",), b"v5", "acknowledged", at(5)),
        ],
        "two writes",
    ),
    "half a batch": ([write("batch", (b"b0", b"r0"), b"t6", "unknown")], "by halves"),
}


@pytest.mark.parametrize(("writes", "says"), BAD_WRITES.values(), ids=BAD_WRITES)
def test_a_write_that_came_out_otherwise_is_found(writes: list[WriteCall], says: str) -> None:
    problems = check_writes(TRUTH, writes)
    assert problems
    assert any(says in problem for problem in problems), problems


def test_what_happened_twice_is_found() -> None:
    again: Truth = {b"r0": [(at(1), b"v"), (at(2), b"w"), (at(3), b"v")]}
    assert any("twice" in each for each in check_writes(again, [write("put", (b"r0",), b"v", "unknown")]))
    lists: Truth = {b"l0": [(at(1), b"a "), (at(2), b"a a ")]}
    assert any("2 times" in each for each in check_writes(lists, [write("append", (b"l0",), b"a", "unknown")]))
    returned: Truth = {b"l0": [(at(1), b"a "), (at(2), b"b "), (at(3), b"b a ")]}
    assert any("again" in each for each in check_writes(returned, [write("append", (b"l0",), b"a", "unknown")]))


def test_a_list_that_somebody_wrote_over_is_found() -> None:
    lists: Truth = {b"l0": [(at(1), b"a "), (at(2), b"b ")]}
    assert len(check_lists(lists, [b"l0"], appended)) == 1


def test_a_stale_get_is_found_from_true_time_alone() -> None:
    history = History(
        writes=[
            write("put", (b"r0",), b"v1", "acknowledged", at(1), end_ms=1.0),
            write("put", (b"r0",), b"v5", "acknowledged", at(5), start_ms=2.0, end_ms=3.0),
        ]
    )
    get = replace(read(b"r0", b"v5", at(5)), kind="linearizable", start_ms=4, end_ms=5)
    history.reads = [get]
    truth: Truth = {b"r0": [(at(1), b"v1"), (at(5), b"v5")]}
    assert check_linearizable(truth, history, [b"r0"]) == []
    history.reads = [replace(get, values={b"r0": b"v1"})]
    assert len(check_linearizable(truth, history, [b"r0"])) == 1


# --- transactions ----------------------------------------------------------------------------------------------


def txn(name: str, *steps: str, serializable: bool = False, outcome: str = "committed") -> Transaction:
    """Return a transaction of steps such as ``x=12`` (read tokens 1 and 2 of list x) and ``x+3`` (append 3 to it)."""
    done = Transaction(name, serializable, outcome)  # type: ignore[arg-type]
    for step in steps:
        key, tokens = step[:1].encode(), tuple(bytes([token]) for token in step[2:].encode())
        done.steps.append((key, (), tokens[0]) if step[1] == "+" else (key, tokens, None))
    return done


def lists(**final: str) -> dict[bytes, tuple[bytes, ...]]:
    return {key.encode(): tuple(bytes([token]) for token in tokens.encode()) for key, tokens in final.items()}


SKEW = ("x=", "y=", "x+1"), ("x=", "y=", "y+2")

ORDERED = {
    "one after the other": ([txn("a", "x=", "x+1"), txn("b", "x=1", "x+2")], lists(x="12")),
    "own writes are read": ([txn("a", "x=", "x+1", "x=1", "x+2", "x=12")], lists(x="12")),
    "an old state": ([txn("a", "x=", "x+1"), txn("b", "x=1", "x+2"), txn("c", "x=1")], lists(x="12")),
    "write skew under snapshot": ([txn("a", *SKEW[0]), txn("b", *SKEW[1])], lists(x="1", y="2")),
    "half of it is serializable": (
        [txn("a", *SKEW[0], serializable=True), txn("b", *SKEW[1])],
        lists(x="1", y="2"),
    ),
    "unknown, and it happened": ([txn("a", "x=", "x+1", outcome="unknown"), txn("b", "x=1")], lists(x="1")),
    "unknown, and it did not": ([txn("a", "x=", "x+1", outcome="unknown"), txn("b", "x=")], lists()),
}

DISORDERED = {
    "G0": ([txn("a", "x+1", "y+2"), txn("b", "x+3", "y+4")], lists(x="13", y="42"), "G0"),
    "G1a: what was aborted is read": (
        [txn("a", "x+1", outcome="aborted"), txn("b", "x=1")],
        lists(),
        "dirty read",
    ),
    "G1b: what was not the last is read": ([txn("a", "x+1", "x+2"), txn("b", "x=1")], lists(x="12"), "intermediate"),
    "G1c": ([txn("a", "x+1", "y=2"), txn("b", "y+2", "x=1")], lists(x="1", y="2"), "G1c"),
    "lost update": ([txn("a", "x=", "x+1"), txn("b", "x=", "x+2")], lists(x="12"), "G-single"),
    "an append that is gone": ([txn("a", "x=", "x+1"), txn("b", "x=", "x+2")], lists(x="2"), "lost"),
    "read skew": ([txn("a", "x+1", "y+2"), txn("b", "x=", "y=2")], lists(x="1", y="2"), "G-single"),
    "write skew where both are serializable": (
        [txn("a", *SKEW[0], serializable=True), txn("b", *SKEW[1], serializable=True)],
        lists(x="1", y="2"),
        "G2",
    ),
    "long fork": (
        [txn("a", "x+1"), txn("b", "y+2"), txn("c", "x=1", "y="), txn("d", "x=", "y=2")],
        lists(x="1", y="2"),
        "G2",
    ),
    "own writes are not read": ([txn("a", "x=", "x+1", "x=")], lists(x="1"), "did not read what it wrote"),
    "aborted, and it happened": ([txn("a", "x+1", outcome="aborted")], lists(x="1"), "aborted, and yet"),
    "it happened twice": ([txn("a", "x+1")], lists(x="11"), "again"),
}


@pytest.mark.parametrize(("done", "final"), ORDERED.values(), ids=ORDERED)
def test_transactions_that_an_order_explains_are_taken(
    done: list[Transaction], final: dict[bytes, tuple[bytes, ...]]
) -> None:
    assert problems(done, final) == []


@pytest.mark.parametrize(("done", "final", "says"), DISORDERED.values(), ids=DISORDERED)
def test_an_anomaly_is_called_by_its_name(
    done: list[Transaction], final: dict[bytes, tuple[bytes, ...]], says: str
) -> None:
    found = problems(done, final)
    assert found
    assert says in found[0], found


def counted(total: int) -> bytes:
    return total.to_bytes(8, signed=True)


def test_money_that_comes_or_goes_is_found() -> None:
    moved: Truth = {b"a0": [(at(1), b"100"), (at(2), b"40")], b"a1": [(at(2), b"60")]}
    assert check_transactions(moved, []) == []
    assert "the sum of the accounts" in check_transactions({**moved, b"a1": [(at(3), b"60")]}, [])[0]


def test_a_counter_that_is_not_what_was_added_is_found() -> None:
    adding = Begun(Transaction("t", outcome="committed"), deltas=[2], sums=[5], ts=at(2))
    actor = Transactor.__new__(Transactor)
    actor.begun = [adding]
    assert check_transactions({b"n": [(at(1), counted(3)), (at(2), counted(5))]}, [actor]) == []
    for versions in (
        [(at(1), counted(3)), (at(2), counted(6))],
        [(at(1), counted(2)), (at(2), counted(5))],
        [(at(1), counted(3))],
        [(at(1), counted(11))],
    ):
        assert "counter" in check_transactions({b"n": versions}, [actor])[0]
