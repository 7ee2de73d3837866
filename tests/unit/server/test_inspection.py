"""Stored items are shown as they lie there, a bounded piece at a time, and damaged ones are named."""

from __future__ import annotations

import dataclasses

import pytest

from cortado.errors import DataLoss, InvalidArgument, InvalidPageToken, NotFound
from cortado.proto.v1 import common_pb2
from cortado.proto.v1 import inspect_pb2 as pb
from cortado.raft.records import KIND_REGISTRY, Record
from cortado.store.cli import log_answer
from cortado.store.client.values import timestamp_to_proto
from cortado.store.clock.timestamp import LARGEST
from cortado.store.engine.interface import Page, Space
from cortado.store.keys.keyspace import kv_key
from cortado.store.log_files.walk import walk
from cortado.store.server.inspection.state import Stored
from support import memory_engine
from support.inspected import (
    GROUP,
    MEMBERS,
    PAIRS,
    REQUEST_ID,
    Replica,
    damage_log,
    flipped,
    log_disk,
    make_engine,
    replace,
)


@pytest.fixture
def replica() -> Replica:
    return Replica("n1")


def items(replica: Replica, space: Space = Space.DATA) -> list[tuple[bytes, bytes]]:
    with replica.engine.read() as txn:
        page = txn.page(space, b"\0", b"\xff" * 20, max_items=1_000)
    return list(zip(page.keys, page.values, strict=True))


def pair(number: int, namespace: str = "sessions") -> pb.ReadVersionsRequest:
    return pb.ReadVersionsRequest(kv=pb.KvTarget(namespace=namespace, key=b"user-%03d0" % number))


# --- the log -------------------------------------------------------------------------------------------------------


def test_the_log_is_shown_with_its_commands_put_together_again(replica: Replica) -> None:
    shown = replica.read_log(pb.ReadLogRequest())
    assert [(entry.index, entry.kind) for entry in shown.entries] == [(3, "nothing"), (4, "configuration"), (5, "data")]
    [command] = shown.entries[2].commands
    assert command.request_id == REQUEST_ID
    assert command.timestamp == timestamp_to_proto(replica.last_applied())
    [change] = command.changes
    assert change.key.text.startswith(f"kv (\"sessions\", b'user-{PAIRS - 1:03d}0') @")
    state = shown.state
    assert (state.term, state.voted_for, state.base_index, state.applied_index) == (2, "n1", 2, 5)
    assert (state.first_index, state.last_index, len(state.base_configuration.voters)) == (3, 5, 3)


def test_the_registry_is_shown_to_people_and_to_scripts(replica: Replica) -> None:
    registry = MEMBERS.registry.without(["n2", "n3"])
    records = [each.record for each in walk(replica.log) if each.record is not None]
    replica.log = log_disk([*records, Record(KIND_REGISTRY, registry, 6, 2).log_record(GROUP)])
    shown = replica.read_log(pb.ReadLogRequest())
    entry = shown.entries[-1]
    assert (entry.kind, [each.node_id for each in entry.registry.nodes]) == ("registry", ["n1"])
    assert list(log_answer._details(entry)) == [("", "", "n1 n1:7622, n2 (removed), n3 (removed)")]
    node = {"node_id": "n1", "address": "n1:7621", "peer_address": "n1:7622", "storage_id": "disk of n1"}
    told = log_answer._entry_json(entry)
    assert (told["nodes"], told["removed"]) == ([node], ["n2", "n3"])
    assert log_answer._nodes(shown.state.base_registry) == "n1 n1:7622, n2 n2:7622, n3 n3:7622"


def test_an_entry_that_was_damaged_before_it_was_stored_is_shown_as_one_and_ends_nothing(replica: Replica) -> None:
    """If the log files find damage themselves, there is no log any more."""
    records = [each.record for each in walk(replica.log) if each.record is not None]
    records[2] = dataclasses.replace(records[2], payload=flipped(records[2].payload, 8))
    replica.log = log_disk(records)
    shown = replica.read_log(pb.ReadLogRequest()).entries
    assert [entry.kind for entry in shown] == ["nothing", "damaged", "data"]
    assert "checksum" in shown[1].problem


def test_a_log_whose_files_are_damaged_is_not_shown_as_a_log(replica: Replica) -> None:
    damage_log(replica.log, 1, b"n2:7621")
    with pytest.raises(DataLoss, match=r"the log file 0000000000000001 \(byte"):
        replica.read_log(pb.ReadLogRequest())


def test_pages_of_the_log_follow_one_another_and_belong_to_their_request(replica: Replica) -> None:
    request = pb.ReadLogRequest(from_index=3, to_index=5, page_size=1)
    first = replica.read_log(request)
    request.page_token = first.next_page_token
    second = replica.read_log(request)
    assert [entry.index for reply in (first, second) for entry in reply.entries] == [3, 4]
    assert second.next_page_token == b""
    with pytest.raises(InvalidPageToken):
        replica.read_log(pb.ReadLogRequest(page_token=first.next_page_token))


def test_a_log_that_there_is_not_is_no_empty_one(replica: Replica) -> None:
    with pytest.raises(NotFound, match="no group 9"):
        replica.read_log(pb.ReadLogRequest(group_id=9))
    with pytest.raises(InvalidArgument, match="to_index: must not be below from_index, 5"):
        replica.read_log(pb.ReadLogRequest(from_index=5, to_index=3))


def test_a_node_that_never_joined_shows_an_empty_log() -> None:
    stored = Replica("n1")
    with stored.engine.write() as txn:
        for space in Space:
            txn.delete_range(space, b"\0", b"\xff" * 20)
    stored.log = log_disk()
    shown = stored.read_log(pb.ReadLogRequest())
    assert (len(shown.entries), shown.state.term, shown.state.last_index) == (0, 0, 0)


# --- versions ------------------------------------------------------------------------------------------------------


def test_a_row_is_shown_as_its_document_and_an_entry_as_the_key_that_it_names(replica: Replica) -> None:
    target = pb.RowTarget(database="shop", table="rows", key=common_pb2.Key(parts=[common_pb2.Value(string="UA")]))
    newest, oldest = replica.read_versions(pb.ReadVersionsRequest(row=target)).versions
    assert (newest.value, oldest.value) == ('{"id": "UA", "n": 2}', '{"id": "UA", "n": 1}')
    assert newest.key.text.startswith('row shop.rows ("UA") @')
    entries = pb.IndexTarget(database="shop", table="rows", index="by_n")
    shown = replica.read_versions(pb.ReadVersionsRequest(index=entries)).versions
    assert [(each.kind, each.value) for each in shown] == [("delete", ""), ("put", '("UA")'), ("put", '("UA")')]


def test_a_damaged_version_is_shown_as_one(replica: Replica) -> None:
    key, value = items(replica)[0]
    replace(replica.engine, Space.DATA, key, key, flipped(value, 3))
    [shown] = replica.read_versions(pb.ReadVersionsRequest(key=key)).versions
    assert (shown.is_intact, shown.problem) == (False, "wrong checksum")


def test_a_payload_is_cut_where_that_is_asked_for(replica: Replica) -> None:
    request = pair(1)
    request.payload_bytes_max = 3
    [shown] = replica.read_versions(request).versions
    assert (shown.payload, shown.payload_bytes) == (b"val", 7)


def test_versions_come_in_pages(replica: Replica) -> None:
    request = pb.ReadVersionsRequest(key=b"k", page_size=7)
    seen: list[bytes] = []
    while not seen or request.page_token:
        reply = replica.read_versions(request)
        assert len(reply.versions) <= 7
        seen += [each.key.key for each in reply.versions]
        request.page_token = reply.next_page_token
    assert seen == [key for key, _ in items(replica) if key[:1] == b"k"]


def test_a_piece_of_work_ends_when_its_time_is_over() -> None:
    clock = iter(range(0, 10_000, 8))
    stored = Stored(make_engine(), lambda: float(next(clock)))
    replica = Replica("n1", make_engine())
    replica.stored = stored
    reply = replica.read_versions(pb.ReadVersionsRequest(key=b"k"))
    assert len(reply.versions) == 2
    assert reply.next_page_token


@pytest.mark.parametrize(
    ("request_", "error", "named"),
    [
        (pb.ReadVersionsRequest(), InvalidArgument, "target"),
        (pb.ReadVersionsRequest(key=b""), InvalidArgument, "key"),
        (pb.ReadVersionsRequest(key=b"applied\0\0\0\1"), InvalidArgument, "applied state"),
        (pb.ReadVersionsRequest(key=b"k", page_size=1_001), InvalidArgument, "page_size"),
        (pb.ReadVersionsRequest(key=b"k", payload_bytes_max=1 << 21), InvalidArgument, "payload_bytes_max"),
        (pb.ReadVersionsRequest(row=pb.RowTarget(database="shop", table="none")), NotFound, "shop.none"),
        (
            pb.ReadVersionsRequest(index=pb.IndexTarget(database="shop", table="rows", index="no")),
            NotFound,
            "shop.rows.no",
        ),
        (pair(1, ""), InvalidArgument, "namespace"),
    ],
)
def test_a_wrong_request_is_refused_by_what_is_wrong(
    replica: Replica, request_: pb.ReadVersionsRequest, error: type[Exception], named: str
) -> None:
    with pytest.raises(error, match=named):
        replica.read_versions(request_)


# --- verifying -----------------------------------------------------------------------------------------------------


def verify(replica: Replica, **given: object) -> pb.VerifyRangeResponse:
    """Verify up to everything that may be there."""
    request = pb.VerifyRangeRequest(up_to=timestamp_to_proto(LARGEST))
    request.MergeFrom(pb.VerifyRangeRequest(**given))  # type: ignore[arg-type]
    return replica.verify_range(request)


def test_two_replicas_that_hold_the_same_have_the_same_digest_up_to_a_time() -> None:
    one, other = Replica("n1"), Replica("n2", make_engine(PAIRS + 5))
    up_to = timestamp_to_proto(one.last_applied())
    replies = [each.verify_range(pb.VerifyRangeRequest(up_to=up_to)) for each in (one, other)]
    assert len({(each.digest_items, each.digest) for each in replies}) == 1
    assert replies[0].items < replies[1].items
    later = [
        each.verify_range(pb.VerifyRangeRequest(up_to=timestamp_to_proto(other.last_applied())))
        for each in (one, other)
    ]
    assert later[0].digest != later[1].digest


@pytest.mark.parametrize("place", [-3, 0])
def test_a_bit_in_a_key_or_a_value_changes_the_digest_and_is_named(replica: Replica, place: int) -> None:
    before = verify(replica).digest
    key, value = items(replica)[5]
    if place:
        replace(replica.engine, Space.DATA, key, flipped(key, -15))
    else:
        replace(replica.engine, Space.DATA, key, key, flipped(value, 2))
    found = verify(replica)
    assert found.digest != before
    assert [problem.kind for problem in found.problems] == ["CHECKSUM"]


def test_pieces_cover_everything_once(replica: Replica) -> None:
    seen, start = 0, b""
    while True:
        reply = verify(replica, start=start, items_max=4)
        seen += reply.items
        start = reply.resume
        if not start:
            break
    assert seen == len(items(replica))


@pytest.mark.parametrize(
    ("space", "kind"),
    [(Space.REQUESTS, pb.STORED_SPACE_REQUESTS), (Space.META, pb.STORED_SPACE_META)],
)
def test_damage_beside_the_data_is_found(replica: Replica, space: Space, kind: pb.StoredSpace) -> None:
    assert not verify(replica, space=kind).problems
    key, value = items(replica, space)[0]
    replace(replica.engine, space, key, key, flipped(value, -1))
    [problem] = verify(replica, space=kind).problems
    assert (problem.kind, problem.key.key) == ("CHECKSUM", key)


def test_a_key_that_stands_out_of_order_is_found_and_the_end_is_reached(
    replica: Replica, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An engine's tree can hold that only if its page was damaged after it was looked at."""
    whole = items(replica)
    wrong = [*whole[:3], (kv_key("zzz", b"")[:-1] + bytes(13), whole[3][1]), *whole[4:]]
    keys, values = [key for key, _ in wrong], [value for _, value in wrong]
    monkeypatch.setattr(memory_engine.MemoryReads, "page", lambda *_, **__: Page(list(keys), list(values), True))
    kinds = {problem.kind for problem in verify(replica).problems}
    assert kinds == {"ORDER", "CHECKSUM"}


def test_more_problems_than_a_reply_holds_are_counted() -> None:
    replica = Replica("n1", make_engine(300))
    for key, value in items(replica)[:150]:
        replace(replica.engine, Space.DATA, key, key, flipped(value, -1))
    found = verify(replica)
    assert (len(found.problems), found.problems_left_out) == (100, 50)
