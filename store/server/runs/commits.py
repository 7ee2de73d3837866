"""Runs of commits: ``Transactions.Commit`` of transactions that put and delete pairs of one namespace.

The commits of a run are evaluated in their order, each at its own timestamp::

    nothing that it read or writes was written since its start, by the run neither? ── yes ──► its changes
                                   │ no, or in doubt
                                   ▼
         evaluated as a commit by itself, on the state with the run's earlier changes over it ──► its changes, or
                                                                                                  a refusal of its own

So the quick way only ever accepts, and all refusals are those of the general way. A commit that was refused changes
nothing and is not remembered; its caller is told when those of the others are, since it may rest on their writes.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from itertools import compress
from typing import Final, NamedTuple, TypeAlias

from cortado.errors import CortadoError
from cortado.proto.v1 import common_pb2, transactions_pb2
from cortado.store.auth.caller import Caller
from cortado.store.catalog.catalog import Catalog
from cortado.store.clock.timestamp import Timestamp
from cortado.store.keys.keyspace import kv_keys
from cortado.store.keys.types import LogicalKey
from cortado.store.mvcc.versions import encode_in_turn
from cortado.store.observe.call import Call
from cortado.store.replica.replica import Replica
from cortado.store.replica.write.overlay import Layer, OverlayReader
from cortado.store.replica.write.run import EvaluateRun, RunEffects
from cortado.store.server.footprint_rights import check_may_read
from cortado.store.server.operation_messages import operations_of
from cortado.store.server.runs.answering import LetIn
from cortado.store.server.runs.gathering import CallRun, Outcome
from cortado.store.server.runs.kv import KEYS_OF_RUN_MAX, fits
from cortado.store.server.runs.wire import put_etags
from cortado.store.server.runs.writing import PlainWrites
from cortado.store.server.service import KEYS_ON_THE_LOOP, READ_ON_THE_LOOP_BYTES, Service
from cortado.store.server.transactions_service import begun
from cortado.store.transactions.commit import evaluate_commit
from cortado.store.transactions.footprint import Footprint
from cortado.store.transactions.limits import TransactionLimits
from cortado.store.transactions.operations import Commit, Isolation

READ_KEYS_MAX: Final = KEYS_ON_THE_LOOP + 1
"""The keys that the footprints of one plain commit name: mostly those that it writes, and the namespace."""


class _Plain(NamedTuple):
    """A plain commit: the values that it puts under keys of its users, None for a delete."""

    operations: Sequence[common_pb2.Operation]
    start: Timestamp | None
    isolation: Isolation
    footprint: Footprint
    user_keys: Sequence[bytes]
    values: Sequence[bytes | None]


_Changes: TypeAlias = tuple[Sequence[LogicalKey], Sequence[bytes | None]]
"""The keys that a commit writes, and the payload of each, None for a delete."""


class PlainCommits(PlainWrites):
    """Commits of at most 16 puts and deletes without conditions and expiries, all of one namespace."""

    name = "cortado.v1.Transactions/Commit"
    request_bytes_max = READ_ON_THE_LOOP_BYTES

    @property
    def calls_max(self) -> int:
        return min(super().calls_max, KEYS_OF_RUN_MAX // KEYS_ON_THE_LOOP)

    def key_of_request(self, request: transactions_pb2.CommitRequest) -> Hashable | None:
        """Return the namespace, and whether there are deletes alone: these may use the reserve of a full disk."""
        operations = request.operations
        if not 0 < len(operations) <= KEYS_ON_THE_LOOP or len(self.host.replicas) > 1:
            # The general way finds the one group that holds its reads, too.
            return None
        namespaces, kinds = set[str](), set[str | None]()
        for each in operations:
            kinds.add(kind := each.WhichOneof("operation"))
            if kind == "put_pair":
                pair: common_pb2.KvPut | common_pb2.KvDelete = each.put_pair
                if each.put_pair.HasField("expiry"):
                    return None
            elif kind == "delete_pair":
                pair = each.delete_pair
            else:
                return None
            namespaces.add(namespace := pair.namespace)
            if pair.HasField("condition") or not fits(namespace, pair.key):
                return None
        return (namespaces.pop(), kinds == {"delete_pair"}) if len(namespaces) == 1 else None

    def replica_of(self, _run: CallRun) -> Replica:
        return self.host.meta

    def left_out(self, run: CallRun) -> frozenset[bytes]:
        left_out, limits = super().left_out(run), Service(self.host).transaction_limits
        plain = {}
        for call, request_id in zip(run.calls, run.request_ids, strict=True):
            commit = _read(call.request, call.size_bytes, limits)
            if commit is not None:
                plain[request_id] = commit
        run.prepared = plain
        return left_out.union(run.request_ids.keys() - plain.keys())

    async def outcomes(self, run: CallRun, of: LetIn) -> Sequence[Outcome]:
        if not self._may_read(run, of.caller):
            return [None] * len(run)
        return await super().outcomes(run, of)

    def _may_read(self, run: CallRun, caller: Caller | None) -> bool:
        """Return whether the caller may read all that the commits have read."""
        if caller is None or caller.rights is None:
            return True
        catalog = Service(self.host).catalog(self.host.meta)
        try:
            for request_id in run.request_ids:
                commit: _Plain = run.prepared[request_id]
                check_may_read(caller, commit.footprint, catalog, commit.start)
        except CortadoError:
            return False
        return True

    def evaluation(self, run: CallRun) -> EvaluateRun:
        limits = Service(self.host).transaction_limits

        def evaluate(reader: OverlayReader, first: Timestamp) -> RunEffects:
            turns = _InTurn(run.key[0], reader, first, self.host.meta.catalog(reader), limits)
            for place, request_id in enumerate(run.request_ids):
                turns.take(place, run.prepared[request_id])
            return turns.effects(len(run))

        return evaluate

    def _ended(self, run: CallRun, of: LetIn, call: Call, outcomes: Sequence[Outcome]) -> None:
        super()._ended(run, of, call, outcomes)
        measures = self.host.meta.driver.pipeline.measures.commits
        for outcome in outcomes:
            if outcome is not None:
                measures.ended(outcome if isinstance(outcome, CortadoError) else None)


def _read(request: transactions_pb2.CommitRequest, size_bytes: int, limits: TransactionLimits) -> _Plain | None:
    """Return a plain commit; None for one that is refused by itself, has read ranges or tables, or is too large."""
    try:
        start, isolation, footprint = begun(request, limits)
    except CortadoError:
        return None
    operations = request.operations
    if footprint.ranges or footprint.tables or len(footprint.keys) > READ_KEYS_MAX:
        return None
    if size_bytes > limits.bytes_max or len(operations) > limits.operations_max:
        return None
    user_keys, values = list[bytes](), list[bytes | None]()
    for each in operations:
        put = each.put_pair if each.HasField("put_pair") else None
        user_keys.append(each.delete_pair.key if put is None else put.key)
        values.append(None if put is None else put.value)
    return _Plain(operations, start, isolation, footprint, user_keys, values)


class _InTurn:
    """The commits of a run, evaluated one after the other on the state ``reader``."""

    def __init__(
        self, namespace: str, reader: OverlayReader, first: Timestamp, catalog: Catalog, limits: TransactionLimits
    ) -> None:
        self._namespace = namespace
        self._generation = catalog.generation_of(namespace)
        self._reader = reader
        self._first = first
        self._catalog = catalog
        self._limits = limits
        self._keys: list[LogicalKey] = []
        self._payloads: list[bytes | None] = []
        self._places: list[int] = []
        self._written: set[LogicalKey] = set()
        self._refused: dict[int, CortadoError] = {}
        self._layer = Layer()
        self._laid = 0
        """How many of the changes are in the layer."""

    def take(self, place: int, commit: _Plain) -> None:
        """Evaluate the next commit."""
        first = self._first
        ts = Timestamp(first.epoch, first.wall_ms, first.logical + place)
        try:
            changes = self._unopposed(commit, ts) or self._by_itself(commit, ts)
        except CortadoError as refusal:
            self._refused[place] = refusal.with_traceback(None)
            return
        keys, payloads = changes
        self._keys += keys
        self._payloads += payloads
        self._places += [place] * len(keys)
        self._written.update(keys)

    def effects(self, count: int) -> RunEffects:
        """Return the effects of all ``count`` commits."""
        # Commits and puts have the same reply: the etag of what was written.
        replies = put_etags(self._first, count)
        for place in self._refused:
            replies[place] = b""
        return RunEffects(self._keys, self._payloads, replies, self._places, refused=self._refused)

    def _unopposed(self, commit: _Plain, ts: Timestamp) -> _Changes | None:
        """Return the changes of a commit that meets no other write; None if it may meet one."""
        start, values, reader = commit.start, commit.values, self._reader
        keys = kv_keys(self._namespace, commit.user_keys, self._generation)
        rests_on = dict.fromkeys((*commit.footprint.keys, *keys))
        if len(set(keys)) < len(keys) or not self._written.isdisjoint(rests_on):
            return None
        try:
            if start is not None:
                is_behind = start < ts and self._catalog.changed_ts <= start
                if not is_behind or reader.changed_since(list(rests_on), (), start) is not None:
                    return None
            if None not in values:
                return keys, values
            # A delete of an absent key changes nothing.
            pairs = zip(keys, values, strict=True)
            changed = [value is not None or reader.get(key) is not None for key, value in pairs]
            return list(compress(keys, changed)), list(compress(values, changed))
        except CortadoError:
            return None

    def _by_itself(self, commit: _Plain, ts: Timestamp) -> _Changes:
        """Evaluate a commit the general way, behind those before it. Raises its refusal."""
        keys, payloads, places = self._keys[self._laid :], self._payloads[self._laid :], self._places[self._laid :]
        self._layer.add(keys, encode_in_turn(keys, payloads, self._first, places))
        self._laid = len(self._keys)
        asked = Commit(
            operations_of(self._catalog, commit.operations, "operations"),
            commit.start,
            commit.isolation,
            commit.footprint,
            limits=self._limits,
        )
        mutations = evaluate_commit(self._reader.over(self._layer), ts, self._catalog, asked).mutations
        return mutations.keys, mutations.payloads
