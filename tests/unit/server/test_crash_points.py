"""A killed process, a full disk and a failing disk at every write and every sync of both stores, on the real files.

After each: a restart finds everything that was acknowledged, and beyond that only the operation under way, whole. The
log files after a loss of power are in ``tests/unit/log_files/test_log_crashes.py``: no real file can tell.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, TypeVar

import pytest

from cortado.errors import DataDirectoryError, ResourceExhausted
from cortado.raft.log import LogRecord
from cortado.store.engine.failures import StorageFailed
from cortado.store.engine.interface import Space
from cortado.store.engine.lmdb_engine import LmdbEngine
from cortado.store.log_files import log_files as log_files_module
from cortado.store.log_files.files import FolderFiles
from cortado.store.log_files.log_files import LogFiles
from cortado.store.server.stores import create_log, log_folder
from support.crash_points import Fault, Killed, Striking, points_in_source, struck
from support.engines import IDENTITY
from support.log_histories import SMALL, entry, hard_state

T = TypeVar("T")

NAMES: Final = {
    "DataDirectory.begin_cluster > _write_cluster": "the identity, for a new cluster",
    "DataDirectory.join_cluster > _write_cluster": "the identity, for the cluster that is joined",
    "DataDirectory._write_cluster > _write_durably": "the identity's file",
    "DataDirectory.open > mkdir": "the data directory",
    "DataDirectory.open > _lock": "the lock",
    "DataDirectory.open > _create": "what a new directory holds",
    "_create > mkdir": "the engine's directory",
    "_create > unlink": "what a creation that was cut off left of the engine",
    "_create > _sync_directory": "the names of the engine's files, and of the directory",
    "_create > _write_durably": "the identity's file, and the format's",
    "_lock > open": "the lock's file",
    "_lock > pwrite": "the lock's owner",
    "_lock > ftruncate": "the lock's owner, no longer than it is",
    "_sync_directory > fsync": "a directory's names, synced",
    "_write_durably > unlink": "a small file: what an earlier try left",
    "_write_durably > open": "a small file: made",
    "_write_durably > write": "a small file: its text",
    "_write_durably > flush": "a small file: its text, given to the system",
    "_write_durably > fsync": "a small file: synced",
    "_write_durably > replace": "a small file: under its name",
    "_write_durably > _sync_directory": "a small file: its name, synced",
    "make_private > _mend": "rights of others",
    "_mend > chmod": "rights of others, taken away",
    "LmdbEngine.open.<locals>.create > _open_environment": "a new engine",
    "LmdbEngine.open > _open_largest": "the engine",
    "_open_largest > _open_environment": "the engine",
    "_open_environment > open": "the engine: its environment",
    "_open_environment > open_db": "the engine: its trees",
    "LmdbWriteTransaction.__exit__ > commit": "what is applied: committed and synced",
    "Headroom.keep > _grow": "blocks ahead of the data file's pages",
    "Headroom._grow > posix_fallocate": "blocks ahead of the data file's pages, promised",
    "FolderFiles.__init__ > mkdir": "the log's folder",
    "FolderFiles.__init__ > _sync_folder": "the log's folder: its name, and what is in it",
    "FolderFiles.create > open": "a segment: made",
    "FolderFiles.create > _preallocate": "a segment: its blocks",
    "FolderFiles.create > fsync": "a segment: its size, synced",
    "FolderFiles.create > _sync_folder": "a segment: its name, synced",
    "FolderFiles.create > unlink": "a segment: taken back",
    "FolderFiles.write > pwrite": "a frame, a segment's beginning, its end, zeros over a refused frame",
    "FolderFiles.sync > _sync_data": "what was written to a segment",
    "FolderFiles.remove > unlink": "a segment that nothing needs",
    "FolderFiles.remove > _sync_folder": "a segment that nothing needs: that it is gone",
    "_preallocate > posix_fallocate": "blocks, promised",
    "_preallocate > ftruncate": "a size, where the file system promises no blocks",
    "_sync_data > fdatasync": "what was written to a segment, synced",
    "_sync_data > fcntl": "the same on macOS",
    "_sync_folder > fsync": "the names of a folder, synced",
}
"""Each write and each sync of the stores, with its meaning."""

NOT_PASSED: Final = {
    "_preallocate > ftruncate": "the file system here promises blocks",
    "_sync_data > fcntl": "macOS alone",
    "make_private > _mend": "nobody but the owner has rights here: tests/unit/engine/test_private_files.py",
    "_mend > chmod": "as above",
    "DataDirectory.begin_cluster > _write_cluster": "a recovery, by a command: tests/unit/server/test_recovery.py",
}

AFTER: Final = {
    "_create > unlink": Fault.KILL,
    "FolderFiles.create > unlink": Fault.FULL,
}
"""Passed only if this struck before."""

JOINING: Final = replace(IDENTITY, cluster_id="")
APPENDS: Final = 14
PAYLOAD_BYTES: Final = 900


@dataclass
class Promised:
    """The acknowledged entries, and those that were at least asked for."""

    entries: list[int] = field(default_factory=lambda: [0, 0])
    applied: list[int] = field(default_factory=lambda: [0, 0])
    base: list[int] = field(default_factory=lambda: [0, 0])
    cluster_ids: list[str] = field(default_factory=lambda: ["", ""])


@contextmanager
def promising(what: list[T], value: T) -> Iterator[None]:
    """Ask for a value; acknowledge it if the block ends well."""
    what[1] = value
    yield
    what[0] = value


class Replica:
    """The two stores of one life, written as a node does: the log first, then the applied entries, then the base."""

    def __init__(self, path: Path, promised: Promised) -> None:
        self.promised = promised
        self.engine = LmdbEngine.open(
            path,
            new_identity=lambda: JOINING,
            map_bytes=16 << 20,
            sync=False,
            create_beside=create_log,
        )
        try:
            self.log = LogFiles.open(FolderFiles(log_folder(path)), segment_bytes_max=SMALL, may_begin=False)
        except BaseException:
            self.engine.close()
            raise
        group = self.log.take_groups().get(1)
        self.base = 0 if group is None or group.hard_state is None else group.hard_state.index
        self.entries = [] if group is None else group.entries

    def close(self) -> None:
        self.log.close()
        self.engine.close()

    def join(self) -> None:
        with promising(self.promised.cluster_ids, IDENTITY.cluster_id):
            self.engine.join_cluster(IDENTITY.cluster_id)

    def append(self, index: int) -> None:
        begins = [hard_state(1, 0)] if index == 1 else []
        with promising(self.promised.entries, index):
            self.log.append([*begins, entry_at(index)])

    def apply(self, index: int) -> None:
        promised = self.promised
        with promising(promised.applied, index), self.engine.write() as txn:
            for each in range(promised.applied[0] + 1, index + 1):
                txn.put(Space.DATA, key_of(each), b"v")
            txn.put(Space.META, b"applied", b"%d" % index)

    def drop(self, index: int) -> None:
        with promising(self.promised.base, index):
            self.log.append([hard_state(1, index)])

    def check(self) -> None:
        """Check that a start finds the promised state, or that and all of the operation under way."""
        promised = self.promised
        assert self.engine.identity.cluster_id in promised.cluster_ids
        assert self.base in promised.base
        last = self.entries[-1].index if self.entries else self.base
        assert last in promised.entries
        assert self.entries == [entry_at(index) for index in range(self.base + 1, last + 1)]
        with self.engine.read() as txn:
            applied = int(txn.get(Space.META, b"applied") or b"0")
            keys, _ = txn.keys(Space.DATA, b"", b"\xff", max_items=1_000)
        assert applied in promised.applied and self.base <= applied <= last
        assert keys == [key_of(index) for index in range(1, applied + 1)]
        promised.entries, promised.applied, promised.base = [last, last], [applied, applied], [self.base, self.base]


def entry_at(index: int) -> LogRecord:
    return entry(1, index, b"%03d" % index * (PAYLOAD_BYTES // 3))


def key_of(index: int) -> bytes:
    return b"%06d" % index


def go_on(replica: Replica) -> Iterator[None]:
    """Go on from the promised state to the end of the story: a step is done when the next one is asked for."""
    promised = replica.promised
    if not replica.engine.identity.cluster_id:
        replica.join()
        yield
    while True:
        last, applied, base = promised.entries[0], promised.applied[0], promised.base[0]
        if last - applied >= 3 or (last == APPENDS and applied < last):
            replica.apply(last)
        elif applied - base >= 5:
            replica.drop(applied)
        elif last < APPENDS:
            replica.append(last + 1)
        else:
            return
        yield


def live(path: Path, promised: Promised, striking: Striking) -> None:
    """Run one life, up to the end of the story or an error. A full disk has room again when it is asked again."""
    try:
        with closing(Replica(path, promised)) as replica:
            replica.check()
            try:
                deque(go_on(replica), maxlen=0)
            except ResourceExhausted:
                deque(go_on(replica), maxlen=0)
    except (Killed, StorageFailed, DataDirectoryError, ResourceExhausted):
        striking.end()


@pytest.fixture(autouse=True)
def small_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_files_module, "FIRST_SEGMENT_BYTES", SMALL)


def test_each_write_and_each_sync_has_a_name() -> None:
    assert points_in_source() == set(NAMES)


def test_the_story_passes_every_point_but_those_that_are_excused(tmp_path: Path) -> None:
    striking = Striking()
    with struck(striking):
        live(tmp_path / "data", Promised(), striking)
    assert not striking.is_off
    assert set(NAMES) - striking.points == {*NOT_PASSED, *AFTER}


@pytest.mark.parametrize("fault", Fault)
def test_whatever_ends_a_process_at_a_point_what_was_acknowledged_is_there(tmp_path: Path, fault: Fault) -> None:
    counting = Striking()
    with struck(counting):
        live(tmp_path / "whole", Promised(), counting)
    points = set[str]()
    for number, where in enumerate(counting.passed):
        path, promised, striking = tmp_path / str(number), Promised(), Striking(number, fault)
        try:
            with struck(striking):
                live(path, promised, striking)
                assert striking.passed[number] == where
                striking.is_off = True
                # The first start makes repairs, the second one needs none.
                for _ in range(2):
                    live(path, promised, striking)
            points |= striking.points
            assert (promised.entries[0], promised.applied[0]) == (APPENDS, APPENDS)
        except BaseException as error:
            raise AssertionError(f"{fault.value} at {number}, {where}: {error!r}") from error
    assert {point for point, after in AFTER.items() if after is fault} <= points
