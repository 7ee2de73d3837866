"""A replica as an inspection sees it: an engine in memory with a table, pairs, a log and requests, and the same answers
that a running node and a stopped directory give."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cortado.proto.v1 import inspect_pb2 as pb
from cortado.proto.v1 import tables_pb2
from cortado.raft.log import LogRecord
from cortado.raft.records import KIND_CONFIGURATION, KIND_DATA, HardState, Record, nothing
from cortado.raft.registry import Member, Roster
from cortado.store.catalog.descriptors import TableDescriptor
from cortado.store.clock.timestamp import Timestamp
from cortado.store.engine.interface import Space
from cortado.store.keys.keyspace import kv_key
from cortado.store.log_files.log_files import LogFiles
from cortado.store.log_files.recovery import read_groups
from cortado.store.log_files.segments import segment_name
from cortado.store.mvcc.versions import Item, encode_versions
from cortado.store.replica.apply.applied_state import AppliedState
from cortado.store.replica.group_range import META_GROUP
from cortado.store.replica.snapshots.marker import applied_key
from cortado.store.replica.write.log_entry import LogEntry
from cortado.store.replica.write.request_table.records import Remembered, encode_remembered
from cortado.store.server.inspection.log import LogPart, log_question, read_log
from cortado.store.server.inspection.log_segments import LogSegments
from cortado.store.server.inspection.state import Stored
from cortado.store.server.inspection.verify import go_through, list_items, verify_range
from cortado.store.server.inspection.versions import read_versions
from support.log_disk import LogDisk
from support.memory_engine import MemoryEngine
from support.table_world import EngineStore, TableWorld, index

GROUP = 1
MEMBERS = Roster.of(
    voters=tuple(Member(name, f"{name}:7622", f"disk of {name}", f"{name}:7621") for name in ("n1", "n2", "n3"))
)
REQUEST_ID = bytes(Timestamp(0, 900, 0)) + bytes(range(8))
PAIRS = 20


def make_engine(pairs: int = PAIRS) -> MemoryEngine:
    """Return the engine that every sound replica holds."""
    store = EngineStore()
    world = TableWorld(store)
    fields = [{"name": "id", "type": "string"}, {"name": "n", "type": "int"}]
    world.create("rows", {"type": "record", "name": "Row", "fields": fields}, ["id"], [index("by_n", "n", unique=True)])
    world.put("rows", {"id": "UA", "n": 1})
    last = world.put("rows", {"id": "UA", "n": 2})
    items: list[Item] = []
    for number in range(pairs):
        last = last.next()
        items += encode_versions([kv_key("sessions", b"user-%03d0" % number)], [b"value %d" % number], last)
    _store(store.engine, items, last)
    return store.engine


def make_log(engine: MemoryEngine) -> LogDisk:
    """Return the log of a replica with that engine: three entries; the last one wrote a pair."""
    with engine.read() as txn:
        item = txn.seek(Space.DATA, kv_key("sessions", b"user-%03d0" % (PAIRS - 1)))
        state = AppliedState.decode(txn.get(Space.META, applied_key(GROUP)) or b"")
    assert item is not None
    entry = LogEntry(4, 2, state.last_ts, state.last_ts, [item], [(REQUEST_ID, _remembered(state.last_ts))])
    records = [nothing(3, 2), Record(KIND_CONFIGURATION, MEMBERS.configuration, 4, 2), Record(KIND_DATA, entry, 5, 2)]
    hard_state = HardState(term=2, voted_for="n1", base_index=2, base_term=1, base_roster=MEMBERS)
    return log_disk([hard_state.log_record(GROUP)], *([each.log_record(GROUP)] for each in records))


def log_disk(*appends: Sequence[LogRecord]) -> LogDisk:
    """Return log files with small segments that hold these appends."""
    disk = LogDisk()
    log_files = LogFiles.open(disk, segment_bytes_max=1)
    for each in appends:
        log_files.append(each)
    return disk


def damage_log(disk: LogDisk, segment: int, found: bytes) -> int:
    """Turn one bit of ``found``, which the segment's file holds, and return its place."""
    file = disk.files[segment_name(segment)]
    place = file.index(found)
    file[place] ^= 0x10
    return place


def _remembered(ts: Timestamp) -> bytes:
    return encode_remembered(META_GROUP.segment + REQUEST_ID, Remembered(b"h" * 16, ts, b"reply"))


def _store(engine: MemoryEngine, items: Sequence[Item], last: Timestamp) -> None:
    with engine.write() as txn:
        txn.put_many(Space.DATA, sorted(items))
        txn.put(Space.REQUESTS, GROUP.to_bytes(4) + REQUEST_ID, _remembered(last))
        state = AppliedState(index=5, term=2, last_ts=last, requests=1, request_bytes=60)
        txn.put(Space.META, applied_key(GROUP), state.encode())


def replace(engine: MemoryEngine, space: Space, key: bytes, new_key: bytes, value: bytes | None = None) -> None:
    """Put an item in the place of another one; its value stays, if none is given."""
    with engine.write() as txn:
        old = txn.get(space, key)
        assert old is not None
        txn.delete(space, key)
        txn.put(space, new_key, old if value is None else value)


def flipped(data: bytes, place: int) -> bytes:
    """Return the bytes with one bit of one byte turned; ``place`` counts as an index does."""
    found = bytearray(data)
    found[place] ^= 0x10
    return bytes(found)


class Replica:
    """A :class:`~cortado.store.client.inspect.Inspected` over an engine and log files. ``checked``: tables that it was
    asked for."""

    def __init__(self, name: str, engine: MemoryEngine | None = None, log: LogDisk | None = None) -> None:
        self._name = name
        self.engine = make_engine() if engine is None else engine
        self.log = make_log(self.engine) if log is None else log
        self.stored = Stored(self.engine, lambda: 0.0)
        self.checked: list[str] = []

    @property
    def name(self) -> str:
        return self._name

    def last_applied(self) -> Timestamp:
        return self.stored.applied().last_ts

    def tables(self) -> Sequence[TableDescriptor]:
        return self.stored.catalog().tables()

    def read_log(self, request: pb.ReadLogRequest) -> pb.ReadLogResponse:
        question = log_question(request)
        part = LogPart.of_stored(read_groups(self.log).get(GROUP), question)
        return read_log(self.stored, question, part)

    def read_versions(self, request: pb.ReadVersionsRequest) -> pb.ReadVersionsResponse:
        return read_versions(self.stored, request)

    def verify_range(self, request: pb.VerifyRangeRequest) -> pb.VerifyRangeResponse:
        return go_through(verify_range(self.stored, LogSegments(lambda: self.log), request))

    def list_items(self, request: pb.ListItemsRequest) -> pb.ListItemsResponse:
        return list_items(self.stored, request)

    def check_table(self, table: str, at: Timestamp) -> Iterator[tables_pb2.CheckTableResponse]:
        self.checked.append(table)
        yield tables_pb2.CheckTableResponse(done=True)
