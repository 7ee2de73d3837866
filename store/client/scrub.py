"""A scrub: all stored data of the replicas is verified, and compared at one timestamp.

::

    the rest     remembered requests, the log, the applied state: verified on each replica by itself
    the data     piece by piece: every replica verifies the same range and answers with its digest
                 digests differ: the items of that piece are listed, and the ones that are not alike are named
    the tables   indexes against rows, on one replica in which nothing was found: the others hold the same

The first replica makes the pieces (some thousand versions, at most 1 MiB), so messages and lists are short. The
comparison covers all versions that reads at the timestamp find. Reads miss versions that a newer one or a delete
hides; each replica verifies these by itself, since they are removed in time, and not everywhere at
once. A key that lies wrong, so that a read would miss it, has a wrong checksum where it is, and is missing where it
was: the other replicas name it. The caller holds a lease at the timestamp, if the cluster gives one.

Nothing is changed on any replica. The pace is bounded, ``rate_bytes_s`` for each replica, so that traffic goes on.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Final, TypeVar

from cortado.errors import CortadoError
from cortado.proto.v1 import inspect_pb2 as pb
from cortado.store.client.inspect import Inspected
from cortado.store.client.scrub_findings import DATA, Finding, Items, differences, own_finding
from cortado.store.client.values import timestamp_to_proto
from cortado.store.clock.timestamp import Timestamp
from cortado.store.keys.decoded import NO_NAMES, KeyNames
from cortado.store.keys.keyspace import ENGINE_KEY_BYTES_MAX

T = TypeVar("T")

FINDINGS_MAX: Final = 1_000
_WHOLE_PIECE_ITEMS: Final = 10_000
_END: Final = b"\xff" * (ENGINE_KEY_BYTES_MAX + 1)
"""Above every stored key."""
_OTHER_SPACES: Final = {
    "meta": pb.STORED_SPACE_META,
    "log": pb.STORED_SPACE_LOG,
    "requests": pb.STORED_SPACE_REQUESTS,
}


@dataclass(slots=True)
class Progress:
    """How far it is: ``items`` and ``size_bytes`` of one replica; ``stage`` is a space, or a table."""

    stage: str = ""
    items: int = 0
    size_bytes: int = 0


@dataclass(slots=True)
class Report:
    """The findings, with ``left_out`` more not listed. ``skipped`` names the unchecked parts and why: by replica, or by
    table."""

    up_to: Timestamp
    replicas: tuple[str, ...]
    findings: list[Finding] = field(default_factory=list)
    left_out: int = 0
    skipped: dict[str, str] = field(default_factory=dict)
    tables_checked: int = 0
    progress: Progress = field(default_factory=Progress)


@dataclass(slots=True)
class _Piece:
    """One replica's reply about a range: one digest, or several if it holds far more than the first replica."""

    digests: list[tuple[int, bytes]] = field(default_factory=list)
    problems: list[pb.StoredProblem] = field(default_factory=list)
    left_out: int = 0
    items: int = 0
    size_bytes: int = 0
    resume: bytes = b""

    def add(self, reply: pb.VerifyRangeResponse) -> None:
        self.digests.append((reply.digest_items, reply.digest))
        self.problems += reply.problems
        self.left_out += reply.problems_left_out
        self.items += reply.items
        self.size_bytes += reply.bytes
        self.resume = reply.resume


class Pace:
    """Keeps the average below a rate by sleeping after fast work. Idle time is no credit."""

    def __init__(
        self, rate_bytes_s: float | None, monotonic_s: Callable[[], float], sleep_s: Callable[[float], None]
    ) -> None:
        self._rate_bytes_s = rate_bytes_s
        self._now_s = monotonic_s
        self._sleep_s = sleep_s
        self._began_s = monotonic_s()

    def spend(self, size_bytes: int) -> None:
        """Note that ``size_bytes`` were read since the last call."""
        if self._rate_bytes_s is not None:
            self._wait(self._began_s + size_bytes / self._rate_bytes_s - self._now_s())

    def rest(self) -> None:
        """Sleep as long as the work since the last call took: for work whose bytes are not counted."""
        if self._rate_bytes_s is not None:
            self._wait(self._now_s() - self._began_s)

    def _wait(self, wait_s: float) -> None:
        if wait_s > 0:
            self._sleep_s(wait_s)
        self._began_s = self._now_s()


class Scrub:
    """One run over ``replicas`` (at least one), up to a timestamp that all of them have applied."""

    def __init__(
        self,
        replicas: Sequence[Inspected],
        *,
        up_to: Timestamp,
        tables: Sequence[str] = (),
        names: KeyNames = NO_NAMES,
        rate_bytes_s: float | None = None,
        on_progress: Callable[[Progress], None] = lambda _: None,
        monotonic_s: Callable[[], float] = time.monotonic,
        sleep_s: Callable[[float], None] = time.sleep,
    ) -> None:
        """``rate_bytes_s`` None goes as fast as the replicas do. ``tables`` are ``database.table``."""
        self._live = list(replicas)
        self._tables = tables
        self._names = names
        self._ts = up_to
        self._up_to = timestamp_to_proto(up_to)
        self.report = Report(up_to, tuple(each.name for each in replicas))
        self._pace = Pace(rate_bytes_s, monotonic_s, sleep_s)
        self._on_progress = on_progress

    def run(self) -> Report:
        """Verify and compare everything. A replica that stops answering is left out from there on, and said to be."""
        with ThreadPoolExecutor(max(1, len(self._live))) as self._pool:
            for stage, space in _OTHER_SPACES.items():
                self._begin(stage)
                self._verify_all(stage, space)
            self._begin(DATA)
            self._compare_data()
        self._check_tables()
        return self.report

    def _begin(self, stage: str) -> None:
        self.report.progress.stage = stage
        self._on_progress(self.report.progress)

    def _advance(self, pieces: Sequence[_Piece]) -> None:
        progress = self.report.progress
        progress.items += max((each.items for each in pieces), default=0)
        size_bytes = max((each.size_bytes for each in pieces), default=0)
        progress.size_bytes += size_bytes
        self._on_progress(progress)
        self._pace.spend(size_bytes)

    def _note(self, found: Sequence[Finding], left_out: int = 0) -> None:
        room = FINDINGS_MAX - len(self.report.findings)
        self.report.findings += found[:room]
        self.report.left_out += left_out + max(0, len(found) - room)

    def _each(self, replicas: Sequence[Inspected], ask: Callable[..., T], *given: object) -> dict[str, T]:
        """Return each replica's reply to ``ask(replica, *given)``, side by side. One that fails is asked no more."""
        asked = [(replica, self._pool.submit(ask, replica, *given)) for replica in replicas]
        said: dict[str, T] = {}
        for replica, answer in asked:
            try:
                said[replica.name] = answer.result()
            except CortadoError as problem:
                self._live.remove(replica)
                self.report.skipped[replica.name] = problem.message()
        return said

    # --- verification by each replica alone --------------------------------------------------------------------

    def _verify_all(self, stage: str, space: pb.StoredSpace) -> None:
        starts = {replica.name: b"" for replica in self._live}
        while asked := [replica for replica in self._live if replica.name in starts]:
            said = self._each(asked, self._verify_from, space, starts)
            for name, piece in said.items():
                self._note([own_finding(name, stage, each) for each in piece.problems], piece.left_out)
                starts[name] = piece.resume
            starts = {name: start for name, start in starts.items() if start}
            self._advance(list(said.values()))

    def _verify_from(self, replica: Inspected, space: pb.StoredSpace, starts: Mapping[str, bytes]) -> _Piece:
        return self._verify(replica, space, starts[replica.name])

    def _verify(self, replica: Inspected, space: pb.StoredSpace, start: bytes, end: bytes = b"") -> _Piece:
        """Verify one piece from ``start``, or the whole range if its end is given."""
        piece = _Piece(resume=start)
        items_max = _WHOLE_PIECE_ITEMS if end else 0
        while True:
            request = pb.VerifyRangeRequest(
                space=space, start=piece.resume, end=end, up_to=self._up_to, items_max=items_max
            )
            piece.add(replica.verify_range(request))
            if not end or not piece.resume:
                return piece

    # --- the data ----------------------------------------------------------------------------------------------

    def _compare_data(self) -> None:
        start = b""
        while self._live:
            first, others = self._live[0], self._live[1:]
            said = self._each([first], self._verify, pb.STORED_SPACE_DATA, start)
            if first.name not in said:
                continue  # The next one makes the pieces.
            end = said[first.name].resume
            whole = end or _END
            said |= self._each(others, self._verify, pb.STORED_SPACE_DATA, start, whole)
            self._judge(start, whole, said)
            self._advance(list(said.values()))
            if not end:
                return
            start = end

    def _judge(self, start: bytes, end: bytes, said: dict[str, _Piece]) -> None:
        for name, piece in said.items():
            self._note([own_finding(name, DATA, each) for each in piece.problems], piece.left_out)
        if len({tuple(piece.digests) for piece in said.values()}) > 1:
            suspects = {name for name, piece in said.items() if piece.problems}
            held = self._each(self._live, self._items, start, end)
            self._note(differences(held, suspects, self._names))

    def _items(self, replica: Inspected, start: bytes, end: bytes) -> Items:
        items: dict[bytes, pb.StoredItem] = {}
        while True:
            reply = replica.list_items(pb.ListItemsRequest(start=start, end=end, up_to=self._up_to))
            items |= {item.key: item for item in reply.items}
            if not reply.resume:
                return items
            start = reply.resume

    # --- the tables --------------------------------------------------------------------------------------------

    def _check_tables(self) -> None:
        blamed = {name for each in self.report.findings for name in each.replica.split(",")}
        sound = next((replica for replica in self._live if replica.name not in blamed), None)
        for table in self._tables:
            self._begin(f"table {table}")
            if sound is None:
                self.report.skipped[f"table {table}"] = "no replica without damage to check it on"
                continue
            try:
                self._check_table(sound, table)
                self.report.tables_checked += 1
            except CortadoError as problem:
                self.report.skipped[f"table {table}"] = problem.message()

    def _check_table(self, replica: Inspected, table: str) -> None:
        for reply in replica.check_table(table, self._ts):
            self._note(
                [
                    Finding(
                        replica.name, f"table {table}", each.kind, b"", f"{each.index} {each.key}".strip(), each.message
                    )
                    for each in reply.problems
                ]
            )
            self._on_progress(self.report.progress)
            self._pace.rest()
