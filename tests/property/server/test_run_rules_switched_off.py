"""Each rule of runs (``store/server/runs``) is there because without it a run can be told from its calls. Switched off
here, one by one, it must be missed: by a test of that rule, or by random messages asked both ways.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import pytest

from cortado.store.clock.hlc import Clock
from cortado.store.clock.timestamp import Timestamp
from cortado.store.mvcc import versions
from cortado.store.mvcc.staged import Unresolved
from cortado.store.observe.requests import MethodMeasures
from cortado.store.process.admission import Gate, GatePlace
from cortado.store.quotas.meters import Meters
from cortado.store.replica import run_submission
from cortado.store.replica.write import batch
from cortado.store.replica.write.overlay import OverlayReader
from cortado.store.replica.write.request_table.lookup import KnownRequests
from cortado.store.replica.write.run import Requests, Run, RunEffects, RunPlace
from cortado.store.server import calls_service
from cortado.store.server.authority import Authority
from cortado.store.server.runs import commits, documents, kv, writing
from cortado.store.server.runs.answering import RunMethod
from cortado.store.server.runs.commits import PlainCommits
from cortado.store.server.runs.gathering import CallRun
from support import nodes, run_twins

TESTS: Final = Path(__file__).parents[2]
SEEDS: Final = range(6)
Switch = Callable[[pytest.MonkeyPatch], None]


def module(path: str) -> ModuleType:
    spec = spec_from_file_location(Path(path).stem, TESTS / path)
    assert spec is not None and spec.loader is not None
    found = module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


LIKE_CALLS: Final = module("property/server/test_runs_like_calls.py")
RULES: Final = module("unit/server/test_runs.py")
COMMITS: Final = module("unit/server/test_commit_runs.py")
DOCUMENTS: Final = module("unit/server/test_document_runs.py")
ENDS: Final = module("unit/server/test_run_ends.py")


def both_ways() -> None:
    for seed in SEEDS:
        nodes.run(lambda seed=seed: LIKE_CALLS.both_ways(seed))  # type: ignore[misc]


def of(owner: Any, name: str, other: Any) -> Switch:
    return lambda patch: patch.setattr(owner, name, other)


# --- the switches ----------------------------------------------------------------------------------------------


def let_other_writes_overtake(patch: pytest.MonkeyPatch) -> None:
    unary_methods = calls_service.unary_methods

    def all_read(*arguments: Any) -> Any:
        return {name: replace(method, only_reads=True) for name, method in unary_methods(*arguments).items()}

    patch.setattr(calls_service, "unary_methods", all_read)


def take_a_request_twice(patch: pytest.MonkeyPatch) -> None:
    takes = CallRun.takes
    patch.setattr(
        CallRun, "takes", lambda self, method, key, shown, call, _id: takes(self, method, key, shown, call, b"")
    )


def step_once_for_all(patch: pytest.MonkeyPatch) -> None:
    def tick_many(self: Clock, count: int, physical_ms: int) -> Timestamp:
        return self.tick(physical_ms)

    patch.setattr(Clock, "tick_many", tick_many)


def take_one_place(patch: pytest.MonkeyPatch) -> None:
    def take(self: Gate, size_bytes: int = 0, count: int = 1) -> GatePlace:
        self.enter(size_bytes)
        return GatePlace(self, size_bytes)

    patch.setattr(Gate, "take", take)


def forget_nothing_of_runs(patch: pytest.MonkeyPatch) -> None:
    forget = Requests.forget
    patch.setattr(Requests, "forget", lambda self, each: None if isinstance(each, Run) else forget(self, each))


def answer_who_gave_up(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(calls_service._Exchange, "_give_up", lambda self, call_id: None)


def count_one(patch: pytest.MonkeyPatch) -> None:
    end_many = MethodMeasures.end_many
    patch.setattr(
        MethodMeasures, "end_many", lambda self, call, code, _calls, sent=0: end_many(self, call, code, 1, sent)
    )


def one_for_all(function: Callable[..., Sequence[Any]]) -> Callable[..., list[Any]]:
    """Return a function that gives the first one's result to all."""

    def same(*arguments: Any) -> list[Any]:
        found = function(*arguments)
        return [found[0]] * len(found)

    return same


def put_all_at_the_first_time(patch: pytest.MonkeyPatch) -> None:
    encode_in_turn = batch.encode_in_turn

    def at_first(keys: Any, payloads: Any, first: Timestamp, *_: Any) -> list[Any]:
        pairs = zip(keys, payloads, strict=True)
        return [item for key, payload in pairs for item in encode_in_turn([key], [payload], first)]

    patch.setattr(batch, "encode_in_turn", at_first)


def see_no_write_of_the_run(patch: pytest.MonkeyPatch) -> None:
    init = commits._InTurn.__init__

    class Nothing(set[Any]):
        def update(self, *_: Any) -> None:
            """Keep nothing."""

    def begin(self: Any, *arguments: Any) -> None:
        init(self, *arguments)
        self._written = Nothing()

    patch.setattr(commits._InTurn, "__init__", begin)


def take_deletes_with_puts(patch: pytest.MonkeyPatch) -> None:
    key_of = PlainCommits.key_of_request
    patch.setattr(PlainCommits, "key_of_request", lambda self, asked: (key := key_of(self, asked)) and (key[0], True))


CASES: Final[dict[str, tuple[Switch, Callable[..., None]]]] = {
    "order: a run ends before any other write": (let_other_writes_overtake, both_ways),
    "order: and before a second put of a request": (take_a_request_twice, both_ways),
    "order: one run of writes is gathered at a time": (
        of(writing.PlainWrites, "only_reads", True),
        RULES.test_puts_and_deletes_happen_in_the_order_of_their_message,
    ),
    "order: each put has a timestamp of its own": (step_once_for_all, both_ways),
    "bounds: at most 256 calls": (
        of(writing.PlainWrites, "calls_max", 100_000),
        RULES.test_a_run_has_at_most_256_calls,
    ),
    "bounds: what a batch may hold": (
        of(RunMethod, "bytes_max", 1 << 40),
        RULES.test_a_run_is_what_a_batch_may_hold,
    ),
    "bounds: gates take n places": (
        take_one_place,
        RULES.test_a_run_takes_as_many_places_as_it_has_calls_and_refused_each_call_is_refused,
    ),
    "bounds: what is refused by itself is found before": (
        of(kv, "fits", lambda _namespace, _key: True),
        both_ways,
    ),
    "alone: what may be refused when it is evaluated": (
        of(Unresolved, "meets", lambda _self, _keys: False),
        DOCUMENTS.test_beside_an_open_transaction_what_it_has_staged_is_locked,
    ),
    "alone: documents of another table are read again": (
        of(documents._Rows, "fit", lambda _self, _view: True),
        DOCUMENTS.test_documents_are_read_again_where_their_table_is_another_one_by_then,
    ),
    "ids: a known one leaves the run": (of(KnownRequests, "not_new", lambda self, ids: frozenset()), both_ways),
    "ids: the hash is that of the message": (
        of(writing, "request_hashes", lambda requests: [bytes(16)] * len(requests)),
        both_ways,
    ),
    "ids: a retry waits for its place": (
        of(Run, "place_of", lambda self, _request_id: RunPlace(self, 0)),
        RULES.test_a_retry_waits_for_its_place_of_the_run,
    ),
    "ends: an unknown outcome names each request": (
        of(Run, "outcome_at", lambda self, _place: self.outcome),
        ENDS.test_an_unknown_outcome_names_each_request,
    ),
    "ends: what is taken back is known no longer": (
        forget_nothing_of_runs,
        ENDS.test_a_full_disk_refuses_each_call_of_a_run_and_what_is_behind_it_is_evaluated_again,
    ),
    "ends: who gave up gets no reply": (
        answer_who_gave_up,
        ENDS.test_a_call_that_is_given_up_keeps_its_place_and_gets_no_reply,
    ),
    "conflicts: with the writes of the run": (see_no_write_of_the_run, both_ways),
    "conflicts: told by what was written in the run": (of(OverlayReader, "over", lambda self, _layer: self), both_ways),
    "conflicts: what is refused is not remembered": (
        of(RunEffects, "accepted", property(lambda self: range(len(self.replies)))),
        both_ways,
    ),
    "conflicts: what is refused is known no longer": (
        of(Requests, "forget_refused", lambda self, *_: None),
        COMMITS.test_of_two_commits_that_write_one_key_the_first_wins,
    ),
    "bounds: the keys that commits look up in one piece": (
        of(commits, "KEYS_OF_RUN_MAX", 1 << 20),
        COMMITS.test_a_run_has_as_many_commits_as_look_up_a_thousand_keys,
    ),
    "bounds: the keys that one commit has read": (
        of(commits, "READ_KEYS_MAX", 1 << 20),
        COMMITS.test_a_run_has_as_many_commits_as_look_up_a_thousand_keys,
    ),
    "bounds: who may use the reserve": (
        take_deletes_with_puts,
        COMMITS.test_commits_that_only_delete_may_use_the_reserve_and_are_runs_of_their_own,
    ),
    "rights: of what a commit has read": (
        of(PlainCommits, "_may_read", lambda self, *_: True),
        COMMITS.test_a_footprint_of_what_the_caller_may_not_read_is_denied_alone,
    ),
    "measures count how commits end": (of(PlainCommits, "_ended", RunMethod._ended), both_ways),
    "rights: looked at where a run begins": (
        of(Authority, "lets_in", lambda self, *_: True),
        ENDS.test_each_call_of_a_run_that_is_denied_is_audited,
    ),
    "rights: looked at where it is evaluated": (
        of(run_submission, "checked", lambda evaluate, *_: evaluate),
        ENDS.test_a_run_is_checked_once_more_where_it_is_appended,
    ),
    "quotas count each call": (
        of(Meters, "begin_many", lambda self, *_: True),
        ENDS.test_a_quota_counts_each_call_of_a_run_and_its_bytes,
    ),
    "measures count each call": (count_one, both_ways),
    "slow calls are shown": (
        of(MethodMeasures, "is_shown", lambda self, _call: False),
        ENDS.test_slow_calls_of_a_run_are_shown_one_by_one,
    ),
    "bytes: items": (put_all_at_the_first_time, both_ways),
    "bytes: records and replies": (of(kv, "put_etags", one_for_all(kv.put_etags)), both_ways),
    "bytes: headers": (of(writing, "with_headers", one_for_all(writing.with_headers)), both_ways),
    "bytes: expiries": (
        of(batch, "encode_in_turn", lambda *given: versions.encode_in_turn(*given[:4])),
        DOCUMENTS.test_documents_expire_as_their_table_says,
    ),
    "bounds: the keys that are looked up in one piece": (
        of(kv, "KEYS_OF_RUN_MAX", 1 << 20),
        RULES.test_a_run_looks_up_as_many_keys_as_one_piece_may,
    ),
    "bounds: a reply that ends early": (
        of(kv, "REPLY_BYTES_MAX", 1 << 30),
        RULES.test_a_reply_ends_early_where_that_of_a_call_by_itself_does,
    ),
    "bytes: replies to gets of several keys": (
        of(kv, "multi_get_reply", lambda head, _keys, _versions: head),
        both_ways,
    ),
    "bytes: replies to gets": (of(kv, "get_replies", one_for_all(kv.get_replies)), both_ways),
}


@pytest.mark.parametrize(("switch", "test"), CASES.values(), ids=CASES)
def test_a_rule_that_is_switched_off_is_missed(
    switch: Switch, test: Callable[..., None], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    # A call without an answer now will never have one.
    monkeypatch.setattr(run_twins, "WAIT_S", 5.0)
    monkeypatch.setattr(nodes, "WAIT_S", 5.0)
    given = {"sizes": run_twins.sizes_of_runs(monkeypatch), "tmp_path": tmp_path, "monkeypatch": monkeypatch}
    switch(monkeypatch)
    with pytest.raises((AssertionError, TimeoutError, ValueError)):
        test(**{name: given[name] for name in inspect.signature(test).parameters})
